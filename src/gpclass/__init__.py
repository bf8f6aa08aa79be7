"""Gaussian-process classification: probabilities that can be trusted, with their evidence."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gpclass.decision import bayes_decision
from gpclass.estimator import GaussianProcessClassifier

__version__ = "0.1.0"

__all__ = ["GaussianProcessClassifier", "bayes_decision", "compare", "load", "to_onnx"]

# Loaded when first asked for: few sessions need them.
LATER = {"compare": "gpclass.comparison", "load": "gpclass.persistence", "to_onnx": "gpclass.onnx"}


def __getattr__(name: str) -> Any:
    if name in LATER:
        return getattr(import_module(LATER[name]), name)
    raise AttributeError(f"module 'gpclass' has no attribute {name!r}")
