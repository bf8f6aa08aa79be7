"""Kernels in model files: their names, and the values that their parameters may have.

A file holds the constructor parameters of a kernel. A parameter ``name`` for which there is ``name_bounds`` is a
hyperparameter: positive, one number or one per column. Other parameters are text, truth values, kernels, or numbers.
`RULES` has the exceptions, by the names that scikit-learn and gpclass use. The rules also prevent a hostile
file from causing endless work.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as theirs
from sklearn.gaussian_process.kernels import Kernel
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from gpclass.core.checks import is_integer
from gpclass.core.protocols import Array
from gpclass.kernels import CompoundKernel
from gpclass.kernels.covariances import registered
from gpclass.kernels.warped import POWERS, TRANSFORMS

LARGEST = 1e100  # for hyperparameters above this, or below its inverse, covariances are not finite
TINY = float(np.finfo(float).smallest_subnormal)
STEEPEST = 1e3  # power of a kernel, or order of a Matern kernel: the work grows with the latter

Check = Callable[[Any], bool]


def kernel_classes() -> dict[str, type]:
    """Return the classes of kernels that files may hold, by their names in files."""
    lists = {"CompoundKernel": CompoundKernel, "sklearn.CompoundKernel": theirs.CompoundKernel}
    return {cls.__name__: cls for cls in registered()} | lists


def kernel_name(kernel: Kernel) -> str | None:
    """Return the name of the class of a kernel in files, or None if files cannot hold it."""
    return next((name for name, cls in kernel_classes().items() if cls is type(kernel)), None)


def kernel_complaint(name: str, params: Mapping[str, Any]) -> str:
    """Return a clause that says what is wrong with the parameters of a kernel; '' if they are valid."""
    cls = kernel_classes()[name]
    names = tuple(inspect.signature(cls).parameters)
    if set(params) != set(names):
        return f"the kernel {name} has other parameters than {', '.join(names)}"
    rules = RULES if cls.__module__.startswith(("sklearn.", "gpclass.")) else {}
    for key, value in params.items():
        usual = _is_positive if key + "_bounds" in names else _is_simple
        check = rules.get(key, _is_bounds if key.endswith("_bounds") else usual)
        if not check(value):
            return f"{key} of the kernel {name} is {value!r:.80}, which is not possible"
    return ""


def _numbers(value: Any) -> Array:
    """Return a real number, or nested lists or an array of them, as an array; else an empty array."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        return np.empty(0)
    return array.astype(float) if array.dtype.kind in "fiu" else np.empty(0)


def _between(lowest: float, highest: float, ndim: int = 0) -> Check:
    """Return a function that checks whether a value is a number in a range, or a vector of such numbers."""

    def check(value: Any) -> bool:
        numbers = _numbers(value)
        fine = numbers.size > 0 and numbers.ndim <= ndim and bool(np.isfinite(numbers).all())
        return fine and bool(((lowest <= numbers) & (numbers <= highest)).all())

    return check


is_number = _between(-np.inf, np.inf)
_are_numbers = _between(-np.inf, np.inf, ndim=1)
_is_positive = _between(1.0 / LARGEST, LARGEST, ndim=1)
_is_not_negative = _between(0.0, LARGEST)
_is_power = _between(TINY, STEEPEST)


def _is_simple(value: Any) -> bool:
    """Return whether a value is None, a truth value, text, a kernel, or one or more finite numbers."""
    return value is None or isinstance(value, bool | str | Kernel) or _are_numbers(value)


def _is_bounds(value: Any) -> bool:
    """Return whether a value is "fixed", or one or more pairs of numbers that are at least zero."""
    if isinstance(value, str):
        return value == "fixed"
    pairs = np.atleast_2d(_numbers(value))
    return pairs.size > 0 and pairs.shape[1:] == (2,) and bool((pairs >= 0.0).all())


def _is_kernel(value: Any) -> bool:
    return isinstance(value, Kernel)


def _are_kernels(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(map(_is_kernel, value))


def _is_columns(value: Any) -> bool:
    """Return whether a value selects columns: an index, a name, several of them, a mask or a slice."""
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return all(v is None or is_integer(v) for v in parts) and value.step != 0
    items = np.asarray(value)
    listed = items.dtype.kind in "iubOU" and items.ndim <= 1 and items.size > 0
    return listed and all(isinstance(v, str | bool) or is_integer(v) for v in np.ravel(items).tolist())


def _are_groups(value: Any) -> bool:
    """Return whether a value is a vector of whole numbers from zero on, each of which occurs."""
    groups = np.asarray(value)
    return (
        groups.dtype.kind in "iu"
        and groups.ndim == 1
        and set(groups) == set(range(len(set(groups)))) != set()
    )


def _is_metric_options(value: Any) -> bool:
    """Return whether a value is None or has numbers only; n_jobs and the like are not part of a model."""
    return value is None or (
        isinstance(value, dict)
        and all(name in ("degree", "coef0") and is_number(v) for name, v in value.items())
    )


RULES: dict[str, Check] = {
    **dict.fromkeys(("k1", "k2", "kernel"), _is_kernel),
    **dict.fromkeys(("constant_value", "noise_level", "sigma_0", "gamma", "bias_variance"), _is_not_negative),
    "centre": _are_numbers,
    "columns": _is_columns,
    "exponent": _is_power,
    "groups": _are_groups,
    "kernels": _are_kernels,
    "length_scale": _between(TINY, np.inf, ndim=1),  # in units of the columns, which may be of any magnitude
    "metric": lambda value: isinstance(value, str) and value in PAIRWISE_KERNEL_FUNCTIONS,
    "nu": lambda value: _is_power(value) or (isinstance(value, float) and value == np.inf),
    "pairwise_kernels_kwargs": _is_metric_options,
    "power": lambda value: value is None or _between(*POWERS, ndim=1)(value),
    "scale": _between(0.0, np.inf, ndim=1),
    "transform": lambda value: isinstance(value, str) and value in TRANSFORMS,
}
