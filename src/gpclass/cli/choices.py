"""Kernels and built-in problems by the names that options accept."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import lognorm
from sklearn.datasets import make_circles, make_moons

from gpclass import datasets
from gpclass import kernels as library
from gpclass.kernels import RBF, ConstantKernel, Kernel, Matern

NAMES = {"DotProduct": "linear"}  # kernels with a more familiar name than that of their class
SETTINGS: dict[str, Any] = {
    "RationalQuadratic": {"alpha_bounds": (1e-2, 1e3)},
    "DotProduct": {"sigma_0_bounds": (1e-2, 1e2)},
}


def kernels() -> dict[str, Callable[[int], Any]]:
    """Return what builds each kernel of `gpclass.kernels` from the number of columns, by name.

    All have a learned variance, and length scales that suit standardised columns.
    """
    found: dict[str, Callable[[int], Any]] = {"rbf-shared": partial(_build, RBF, shared=True)}
    for name in library.__all__:
        cls = getattr(library, name)
        if inspect.isclass(cls) and issubclass(cls, Kernel) and _stands_alone(cls):
            # NeuralNetwork is neural-network.
            dashed = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name.removesuffix("Kernel")).lower()
            found[NAMES.get(name, dashed)] = partial(_build, cls, **SETTINGS.get(name, {}))
    for name, nu in (("matern12", 0.5), ("matern32", 1.5), ("matern52", 2.5)):
        found[name] = partial(_build, Matern, nu=nu)
    found["rbf"] = lambda n_columns: None  # the classifier's own: one length scale per column
    return dict(sorted(found.items()))


def _stands_alone(cls: Any) -> bool:
    """Return whether a kernel needs no arguments and depends on the inputs, unlike noise and constants."""
    needed = [p for p in inspect.signature(cls).parameters.values() if p.default is p.empty]
    base = inspect.isabstract(cls) or cls.__init__ is object.__init__
    return not needed and not base and bool(cls().requires_vector_input)


def _build(cls: Any, n_columns: int, *, shared: bool = False, **settings: Any) -> Any:
    if "length_scale" in inspect.signature(cls).parameters:
        scale = float(np.sqrt(n_columns))  # the order of distances between standardised rows
        several = not shared and "anisotropic" in dir(cls)
        settings["length_scale"] = np.full(n_columns, scale) if several else scale
        settings["length_scale_bounds"] = (1e-2, 1e2 * scale)
    return ConstantKernel(1.0, (1e-2, 1e4)) * cls(**settings)


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
