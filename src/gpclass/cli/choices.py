"""Built-in problems by the names that options accept."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from scipy.stats import lognorm
from sklearn.datasets import make_circles, make_moons

from gpclass import datasets
from gpclass.comparison import BASELINES
from gpclass.kernels import RBF, ConstantKernel
from gpclass.parameters import INFERENCES


def problems() -> dict[str, Any]:
    """Return a function for each built-in problem: those of `gpclass.datasets`, and two of scikit-learn's."""
    found: dict[str, Any] = {
        name: function
        for name, function in inspect.getmembers(datasets, inspect.isfunction)
        if function.__annotations__.get("return") == "Split"
    }
    found["moons"] = partial(_drawn, partial(make_moons, noise=0.25))
    found["circles"] = partial(_drawn, partial(make_circles, noise=0.15, factor=0.5))
    return found


def compared() -> list[str]:
    """Return the names of the methods that can be compared: our own, and classifiers of scikit-learn."""
    return [*INFERENCES, *BASELINES]


def _drawn(make: Callable[..., Any]) -> datasets.Split:
    """Return 100 training rows and 500 test rows."""
    return datasets.Split(*make(100, random_state=0), *make(500, random_state=1))


def settings_of(problem: str) -> dict[str, Any]:
    """Return kernel and hyperprior for a built-in problem that needs its own."""
    if problem != "interval":
        return {}
    # The classes can be separated without error, so that the evidence hardly limits the signal variance.
    return {
        "kernel": ConstantKernel(1.0, (1e-3, 1e6)) * RBF(10.0, (1e-1, 1e3)),
        "hyperprior": {"constant_value": lognorm(1.0, scale=10.0)},
    }
