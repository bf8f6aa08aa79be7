"""Built-in problems by the names that options accept."""

from __future__ import annotations

from typing import Any

from scipy.stats import lognorm

from gpclass.comparison import BASELINES
from gpclass.datasets import problems
from gpclass.kernels import RBF, ConstantKernel
from gpclass.parameters import INFERENCES

__all__ = ["compared", "problems", "settings_of"]


def compared() -> list[str]:
    """Return the names of the methods that can be compared: our own, and classifiers of scikit-learn."""
    return [*INFERENCES, *BASELINES]


def settings_of(problem: str) -> dict[str, Any]:
    """Return kernel and hyperprior for a built-in problem that needs its own."""
    if problem != "interval":
        return {}
    # The classes can be separated without error, so that the evidence hardly limits the signal variance.
    return {
        "kernel": ConstantKernel(1.0, (1e-3, 1e6)) * RBF(10.0, (1e-1, 1e3)),
        "hyperprior": {"constant_value": lognorm(1.0, scale=10.0)},
    }
