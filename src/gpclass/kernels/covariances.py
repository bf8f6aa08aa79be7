"""Covariances with their pullbacks, by the class of the kernel.

For each class of kernels one function is registered. It returns the covariances of some inputs together with the
function that pulls an adjoint back to the hyperparameters. A sum or a product of kernels combines the results of its
parts. A kernel that is not registered is differentiated by central differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import drop_tiny
from gpclass.core.protocols import Array, Inputs

STEP = np.finfo(float).eps ** (1 / 3)  # balances rounding and truncation errors of central differences


@dataclass(frozen=True, slots=True, eq=False)
class Covariances:
    """Covariances of inputs X and Z, or variances of X, with their derivatives as pullbacks.

    Parameters
    ----------
    values : callable
        Returns k(x_i, z_j) without noise, of shape (n, m), or k(x_i, x_i) with noise, of shape (n,), as a new array
        that the caller may overwrite; 0-dimensional if all of them are the same number.
    pull : callable
        Returns Σ G · ∂values/∂theta for an adjoint G, in double precision. The second argument is the values
        if they are known, else None.
    """

    values: Callable[[], Array]
    pull: Callable[[Array, Array | None], Array]


# Called with a kernel, X, Z (None for the variances of X) and the floating-point type of the values.
Formulas = Callable[[Any, Any, Any, Any], Covariances]


def _own_diag(kernel: Any, X: Inputs) -> Any:
    return kernel.diag(X)


def by_differences(
    kernel: Kernel, X: Inputs, Z: Inputs | None, dtype: Any, diag: Callable[..., Any] = _own_diag
) -> Covariances:
    """Return the covariances by the methods of the kernel itself, with central differences as derivatives.

    The inputs may be anything that the kernel understands: rows of an array, strings, graphs.
    """
    X, Z = _in_double(X), _in_double(Z)

    def evaluate(other: Any) -> Array:
        return np.asarray(diag(other, X) if Z is None else other(X, Z), dtype=float)

    def values() -> Array:
        K, shape = evaluate(kernel), (len(X),) if Z is None else (len(X), len(Z))
        if K.shape != shape:
            raise ValueError(
                f"{type(kernel).__name__} returned an array of shape {K.shape}, expected {shape}: "
                "a covariance function must return one number for each pair of inputs."
            )
        return drop_tiny(K.astype(dtype))

    def pull(G: Array, K: Array | None) -> Array:
        return np.array([np.vdot(G, slope) for slope in differences(kernel, evaluate)], dtype=float)

    return Covariances(values, pull)


def _in_double(X: Any) -> Any:
    return X.astype(float) if getattr(X, "dtype", None) == np.float32 else X


def differences(kernel: Kernel, values: Callable[[Kernel], Array]) -> Iterator[Array]:
    """Yield the derivative of an array with respect to each entry of theta, by central differences."""
    theta = kernel.theta
    for step in STEP * np.eye(len(theta)):
        up, down = (values(kernel.clone_with_theta(at)) for at in (theta + step, theta - step))
        yield (up - down) / (2.0 * STEP)


# ------------------------------------------------------------------------------------------- registry

_REGISTERED: dict[type, Formulas] = {}


def register(cls: type, formulas: Formulas = by_differences) -> None:
    """Register the formulas for a class of kernels, and allow the class in model files.

    Parameters
    ----------
    cls : type
        A subclass of scikit-learn's ``Kernel``. Its constructor parameters are what a model file stores.
    formulas : callable, default=by_differences
        `Stationary` with a `Profile`, or a function of a kernel, X, Z and a floating-point type that returns
        `Covariances`.
    """
    name = cls.__name__
    if any(other.__name__ == name and other.__module__ != cls.__module__ for other in _REGISTERED):
        raise TypeError(f"Two classes of kernels cannot both be stored as {name}: rename yours.")
    _REGISTERED[cls] = formulas


def registered() -> tuple[type, ...]:
    """Return all registered classes of kernels."""
    return tuple(_REGISTERED)


def formulas_of(kernel: Kernel) -> Formulas:
    """Return the formulas for a kernel.

    A subclass of a registered class that has its own ``__call__`` or ``diag`` is a different kernel: it does
    not get the formulas of its parent.
    """
    cls = type(kernel)
    for base in cls.__mro__:
        if base in _REGISTERED:
            same = cls.__call__ is base.__call__ and getattr(cls, "diag", None) is getattr(base, "diag", None)
            return _REGISTERED[base] if same else by_differences
    return by_differences


def covariances(kernel: Kernel, X: Inputs, Z: Inputs | None, dtype: Any = float) -> Covariances:
    """Return k(x_i, z_j), or k(x_i, x_i) if Z is None, by the formulas for the kernel."""
    return formulas_of(kernel)(kernel, X, Z, dtype)
