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
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from gpclass.core.checks import is_integer
from gpclass.core.protocols import Array
from gpclass.kernels.formulas import Check, Entry

LARGEST = 1e100  # a hyperparameter beyond this, or below its inverse, leaves no finite covariances
OPTIONS = ("degree", "coef0")  # of a metric; others, such as n_jobs, are not part of the model
FINITE, TINY = float(np.finfo(float).max), float(np.finfo(float).smallest_subnormal)


def parameter_names(cls: type) -> tuple[str, ...]:
    """Return the names of the constructor parameters of a kernel class."""
    return tuple(inspect.signature(cls).parameters)


def checks_of(entry: Entry) -> Mapping[str, Check]:
    """Return a check for the value of each constructor parameter of a registered class."""
    names = parameter_names(entry.cls)

    def usual(name: str) -> Check:
        if name.endswith("_bounds"):
            return is_bounds
        return is_positive if name + "_bounds" in names else is_simple

    return {name: entry.checks.get(name) or usual(name) for name in names}


def _numbers(value: Any) -> Array:
    """Return a real number, or nested lists or an array of them, as an array; else an empty array."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        return np.empty(0)
    return array.astype(float) if array.dtype.kind in "fiu" else np.empty(0)


def _is_scalar(value: Any, lowest: float, highest: float) -> bool:
    """Return whether a value is one number with lowest <= value <= highest."""
    number = _numbers(value)
    return np.isscalar(value) and number.size == 1 and bool(lowest <= number <= highest)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite real number."""
    return not isinstance(value, bool) and _is_scalar(value, -FINITE, FINITE)


def is_simple(value: Any) -> bool:
    """Return whether a value is a finite number, a truth value, text, None or a kernel."""
    return value is None or isinstance(value, bool | str | Kernel) or _is_scalar(value, -FINITE, FINITE)


def is_positive(value: Any) -> bool:
    """Return whether a value is one positive number or a vector of them."""
    numbers = _numbers(value)
    inside = (numbers > 1.0 / LARGEST) & (numbers < LARGEST)
    return numbers.size > 0 and numbers.ndim <= 1 and bool(inside.all())


def are_numbers(value: Any) -> bool:
    """Return whether a value is one finite number or a vector of them."""
    numbers = _numbers(value)
    return numbers.size > 0 and numbers.ndim <= 1 and bool(np.isfinite(numbers).all())


def is_not_negative(value: Any) -> bool:
    """Return whether a value is one number that is at least zero."""
    return _is_scalar(value, 0.0, LARGEST)


def is_exponent(value: Any) -> bool:
    """Return whether a power of a kernel is positive definite and not too steep."""
    return _is_scalar(value, TINY, 1e3)


def is_matern_order(value: Any) -> bool:
    """Return whether a smoothness is positive and not large, or infinite; the work grows with it."""
    return _is_scalar(value, TINY, 1e3) or _is_scalar(value, np.inf, np.inf)


def is_bounds(value: Any) -> bool:
    """Return whether a value is "fixed", or one or more pairs of numbers that are at least zero."""
    if isinstance(value, str):
        return value == "fixed"
    pairs = np.atleast_2d(_numbers(value))
    return pairs.size > 0 and pairs.shape[1:] == (2,) and bool((pairs >= 0.0).all())


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
    return isinstance(value, str) and value in PAIRWISE_KERNEL_FUNCTIONS


def is_metric_options(value: Any) -> bool:
    """Return whether a value is None or a dictionary of the numbers that a metric takes."""
    return value is None or (
        isinstance(value, dict)
        and all(name in OPTIONS and _is_scalar(v, -FINITE, FINITE) for name, v in value.items())
    )
