"""The problems that come with the command line, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from scipy.stats import lognorm

from gpclass import datasets
from gpclass.datasets import Split
from gpclass.kernels import RBF, ConstantKernel


def problems() -> dict[str, Callable[[], Split]]:
    """Return what makes each problem: those of `gpclass.datasets`, and two of scikit-learn's in the plane."""
    ours = {
        name: function
        for name, function in vars(datasets).items()
        if inspect.isfunction(function)
        and function.__module__ == datasets.__name__
        and function.__annotations__.get("return") == "Split"
    }
    return {"moons": moons, "circles": circles} | ours


def moons() -> Split:
    """Return two half circles that reach into each other: 100 rows, and 500 to test on."""
    from sklearn.datasets import make_moons

    return Split(*make_moons(100, noise=0.25, random_state=0), *make_moons(500, noise=0.25, random_state=1))


def circles() -> Split:
    """Return a ring around a disc: 100 rows, and 500 to test on."""
    from sklearn.datasets import make_circles

    options = {"noise": 0.15, "factor": 0.5}
    return Split(*make_circles(100, random_state=0, **options), *make_circles(500, random_state=1, **options))


def settings(name: str) -> dict[str, Any]:
    """Return kernel and hyperprior for a problem, where the classifier's own are not what it is for."""
    if name != "interval":
        return {}
    # A smooth function that is large enough separates the classes without error, so that the evidence has
    # little to say against ever larger ones. The prior on the signal variance does.
    return {
        "kernel": ConstantKernel(1.0, (1e-3, 1e6)) * RBF(10.0, (1e-1, 1e3)),
        "hyperprior": {"constant_value": lognorm(1.0, scale=10.0)},
    }
