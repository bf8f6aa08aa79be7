"""Gaussian-process classification: probabilities that can be trusted, with their evidence."""

from __future__ import annotations

from typing import Any

from gpclass.decision import bayes_decision
from gpclass.estimator import GaussianProcessClassifier

__version__ = "0.1.0"

__all__ = ["GaussianProcessClassifier", "bayes_decision", "compare"]


def __getattr__(name: str) -> Any:
    if name == "compare":  # loaded when first asked for: few sessions compare
        from gpclass.comparison import compare

        return compare
    raise AttributeError(f"module 'gpclass' has no attribute {name!r}")
