"""The kernels that a model file may hold: their classes, and which values each parameter can have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as theirs
from sklearn.gaussian_process.kernels import Kernel

from gpclass import kernels as ours
from gpclass.persistence.schema import is_integer, is_number

METRICS = ("linear", "additive_chi2", "chi2", "poly", "polynomial", "rbf", "laplacian", "sigmoid", "cosine")
EXTRAS = ("degree", "coef0")  # of a metric; others, such as n_jobs, are no numbers of the model


LARGEST = 1e100  # a hyperparameter beyond this, or below its inverse, leaves no finite covariances


def _numbers(value: Any) -> Any:
    """Return one number, or a vector of them, as a float array; None if it is neither."""
    if is_number(value):
        return np.array(float(value))
    if isinstance(value, list | tuple) and all(is_number(v) for v in value):
        value = np.array(value, dtype=float)
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.ndim <= 1 and value.size:
        return value.astype(float)
    return None


def _positive(value: Any) -> bool:
    numbers = _numbers(value)
    return numbers is not None and bool((numbers > 1.0 / LARGEST).all() and (numbers < LARGEST).all())


def _at_least_zero(value: Any) -> bool:
    return is_number(value) and 0.0 <= float(value) < LARGEST


def _power(value: Any) -> bool:
    return is_number(value) and 0.0 < float(value) < 1e3  # others are not positive definite, or too steep


def _order(value: Any) -> bool:
    # Covariances of a large order are found by as many steps; such a kernel is an RBF by then.
    return value == np.inf or (is_number(value) and 0.0 < float(value) <= 1e3)


def _bounds(value: Any) -> bool:
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


def _columns(value: Any) -> bool:
    if isinstance(value, slice):
        return (
            all(v is None or is_integer(v) for v in (value.start, value.stop, value.step)) and value.step != 0
        )
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iubOU" and value.ndim == 1 and _columns(value.tolist())
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(v, str | bool | np.bool_) or is_integer(v) for v in value)
    return isinstance(value, str) or is_integer(value)


def _metric(value: Any) -> bool:
    return isinstance(value, str) and value in METRICS


def _extras(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict) and all(name in EXTRAS and is_number(v) for name, v in value.items())
    )


def _kernel(value: Any) -> bool:
    return isinstance(value, Kernel)


def _kernels(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(map(_kernel, value))


Check = Callable[[Any], bool]


def _with_bounds(**checks: Check) -> dict[str, Check]:
    return checks | {f"{name}_bounds": _bounds for name in checks}


PAIR: dict[str, Check] = {"k1": _kernel, "k2": _kernel}

# A kernel of one's own is one line more, in this file and in the program that loads.
KERNELS: dict[str, tuple[type, dict[str, Check]]] = {
    "RBF": (theirs.RBF, _with_bounds(length_scale=_positive)),
    "Matern": (theirs.Matern, {**_with_bounds(length_scale=_positive), "nu": _order}),
    "RationalQuadratic": (theirs.RationalQuadratic, _with_bounds(length_scale=_positive, alpha=_positive)),
    "ExpSineSquared": (theirs.ExpSineSquared, _with_bounds(length_scale=_positive, periodicity=_positive)),
    "ConstantKernel": (theirs.ConstantKernel, _with_bounds(constant_value=_at_least_zero)),
    "WhiteKernel": (theirs.WhiteKernel, _with_bounds(noise_level=_at_least_zero)),
    "DotProduct": (theirs.DotProduct, _with_bounds(sigma_0=_at_least_zero)),
    "PairwiseKernel": (
        theirs.PairwiseKernel,
        {**_with_bounds(gamma=_at_least_zero), "metric": _metric, "pairwise_kernels_kwargs": _extras},
    ),
    "Sum": (theirs.Sum, PAIR),
    "Product": (theirs.Product, PAIR),
    "Exponentiation": (theirs.Exponentiation, {"kernel": _kernel, "exponent": _power}),
    "sklearn.CompoundKernel": (theirs.CompoundKernel, {"kernels": _kernels}),
    "CompoundKernel": (ours.CompoundKernel, {"kernels": _kernels}),
    "Columns": (ours.Columns, {"kernel": _kernel, "columns": _columns}),
    "NeuralNetwork": (
        ours.NeuralNetwork,
        _with_bounds(bias_variance=_at_least_zero, weight_variance=_positive),
    ),
    "GaussianUnits": (ours.GaussianUnits, _with_bounds(unit_width=_positive, center_scale=_positive)),
}
NAMES = {cls: name for name, (cls, _) in KERNELS.items()}


def complaint(name: str, params: dict[str, Any]) -> str:
    """Return what is wrong with the parameters of a kernel, as the end of a sentence, if anything is."""
    checks = KERNELS[name][1]
    if set(params) != set(checks):
        return f"the kernel {name} has other parameters than {', '.join(checks)}"
    for key, value in params.items():
        if not checks[key](value):
            return f"{key} of the kernel {name} is {value!r:.80}, which is not possible"
    return ""
