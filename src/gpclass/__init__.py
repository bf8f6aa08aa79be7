"""Gaussian-process classification: class probabilities, their credible intervals and the model evidence."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpclass.comparison import compare
    from gpclass.decision import bayes_decision
    from gpclass.estimator import GaussianProcessClassifier
    from gpclass.learning.fitted import DoubtfulFitWarning
    from gpclass.onnx import to_onnx
    from gpclass.persistence import load

__version__ = "0.3.0"

__all__ = ["DoubtfulFitWarning", "GaussianProcessClassifier", "bayes_decision", "compare", "load", "to_onnx"]

# Names are imported when they are first used, so that `gpclass --help` does not wait for scikit-learn.
_HOMES = {
    "DoubtfulFitWarning": "gpclass.learning.fitted",
    "GaussianProcessClassifier": "gpclass.estimator",
    "bayes_decision": "gpclass.decision",
    "compare": "gpclass.comparison",
    "load": "gpclass.persistence",
    "to_onnx": "gpclass.onnx",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if not name.startswith("_"):
        try:
            return import_module(f"gpclass.{name}")  # `gpclass.kernels` works after `import gpclass` alone
        except ModuleNotFoundError as error:
            if error.name != f"gpclass.{name}":
                raise
    raise AttributeError(f"module 'gpclass' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
