"""Which values the constructor parameters of a kernel may have in a model file.

A parameter ``name`` for which there is ``name_bounds`` is a hyperparameter: positive, one number or one per
column. Parameters of other kinds are registered with one of the checks below, which also prevent that a
hostile file causes endless work.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.kernels.formulas import Check, Entry

LARGEST = 1e100  # a hyperparameter beyond this, or below its inverse, leaves no finite covariances
METRICS = ("linear", "additive_chi2", "chi2", "poly", "polynomial", "rbf", "laplacian", "sigmoid", "cosine")
OPTIONS = ("degree", "coef0")  # of a metric; others, such as n_jobs, are not part of the model


def parameter_names(cls: type) -> tuple[str, ...]:
    """Return the names of the constructor parameters of a kernel class."""
    return tuple(name for name in inspect.signature(cls).parameters)


def checks_of(entry: Entry) -> Mapping[str, Check]:
    """Return a check for the value of each constructor parameter of a registered class."""
    names = parameter_names(entry.cls)
    return {name: entry.checks.get(name) or _usual(name, names) for name in names}


def _usual(name: str, names: tuple[str, ...]) -> Check:
    if name.endswith("_bounds"):
        return is_bounds
    return is_positive if name + "_bounds" in names else is_simple


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer and not a truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite real number."""
    return is_integer(value) or (isinstance(value, float | np.floating) and bool(np.isfinite(value)))


def is_simple(value: Any) -> bool:
    """Return whether a value is a number, a truth value, text, None or a kernel."""
    return value is None or isinstance(value, bool | str | Kernel) or is_number(value)


def is_positive(value: Any) -> bool:
    """Return whether a value is one positive number or a vector of them."""
    if isinstance(value, list | tuple) and all(is_number(v) for v in value):
        value = np.array(value, dtype=float)
    if is_number(value):
        value = np.array(float(value))
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu" or value.ndim > 1 or not value.size:
        return False
    return bool((value > 1.0 / LARGEST).all() and (value < LARGEST).all())


def is_not_negative(value: Any) -> bool:
    """Return whether a value is one number that is at least zero."""
    return is_number(value) and 0.0 <= float(value) < LARGEST


def is_exponent(value: Any) -> bool:
    """Return whether a power of a kernel is positive definite and not too steep."""
    return is_number(value) and 0.0 < float(value) < 1e3


def is_matern_order(value: Any) -> bool:
    """Return whether a smoothness is positive and not large; the work grows with it."""
    return value == np.inf or (is_number(value) and 0.0 < float(value) <= 1e3)


def is_bounds(value: Any) -> bool:
    """Return whether a value is "fixed", or one or more pairs of numbers that are at least zero."""
    if isinstance(value, str):
        return value == "fixed"
    if isinstance(value, list | tuple):
        try:
            value = np.array(value, dtype=float)
        except (TypeError, ValueError):
            return False
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu":
        return False
    pairs = np.atleast_2d(value)
    return pairs.ndim == 2 and pairs.shape[1] == 2 and bool((pairs >= 0.0).all() and len(pairs))


def is_kernel(value: Any) -> bool:
    """Return whether a value is a kernel."""
    return isinstance(value, Kernel)


def are_kernels(value: Any) -> bool:
    """Return whether a value is a list of at least one kernel."""
    return isinstance(value, list | tuple) and len(value) > 0 and all(map(is_kernel, value))


def is_columns(value: Any) -> bool:
    """Return whether a value selects columns: an index, a name, several of them, a mask or a slice."""
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return all(v is None or is_integer(v) for v in parts) and value.step != 0
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iubOU" and value.ndim == 1 and is_columns(value.tolist())
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(v, str | bool | np.bool_) or is_integer(v) for v in value)
    return isinstance(value, str) or is_integer(value)


def is_metric(value: Any) -> bool:
    """Return whether a value names a metric of ``sklearn.metrics.pairwise``."""
    return isinstance(value, str) and value in METRICS


def is_metric_options(value: Any) -> bool:
    """Return whether a value is None or a dictionary of the numbers that a metric takes."""
    return value is None or (
        isinstance(value, dict) and all(name in OPTIONS and is_number(v) for name, v in value.items())
    )
