"""Gaussian-process classification: probabilities that can be trusted, with their evidence."""

from __future__ import annotations

from importlib import import_module

from gpclass.decision import bayes_decision
from gpclass.estimator import GaussianProcessClassifier

__version__ = "0.1.0"

__all__ = ["GaussianProcessClassifier", "bayes_decision", "compare", "load", "to_onnx"]

# Loaded when first asked for: few sessions need them.
_LATER = {"compare": "gpclass.comparison", "load": "gpclass.persistence", "to_onnx": "gpclass.onnx"}


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'gpclass' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
