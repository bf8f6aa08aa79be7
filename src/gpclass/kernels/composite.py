"""Constants, noise, sums and products of kernels, and one kernel for each class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process import kernels as theirs
from sklearn.gaussian_process.kernels import (
    ConstantKernel,
    Exponentiation,
    Hyperparameter,
    Kernel,
    Product,
    Sum,
    WhiteKernel,
)

from gpclass.core.linalg import drop_tiny
from gpclass.core.protocols import Array
from gpclass.kernels.base import Covariances, by_differences, covariances, formulas_of, free_sizes, register


def has_noise(kernel: Any) -> bool:
    """Return whether the kernel gives each row its own noise, so that it distinguishes copies of a row."""
    inside = getattr(kernel, "kernels", None) or kernel.get_params(deep=False).values()
    if parts := [part for part in inside if isinstance(part, Kernel)]:
        return any(has_noise(part) for part in parts)
    # A kernel that is not registered may have noise.
    return isinstance(kernel, WhiteKernel) or formulas_of(kernel) is by_differences


def _number(kernel: Any, value: float) -> Covariances:
    """Return constant covariances, equal to the value of the only hyperparameter or to zero."""

    def pull(G: Array, K: Array | None) -> Array:
        return np.array([value * G.sum(dtype=float)] if free_sizes(kernel) else [])

    return Covariances(lambda: np.array(value, dtype=float), pull)


def _in_place(operation: np.ufunc, first: Array, second: Array) -> Array:
    """Return the result of an operation, written into the larger array: fresh memory takes three times as long."""
    return operation(first, second, out=first if first.ndim else second)


def _sum(kernel: Any, *at: Any) -> Covariances:
    first, second = covariances(kernel.k1, *at), covariances(kernel.k2, *at)
    return Covariances(
        lambda: _in_place(np.add, first.values(), second.values()),
        lambda G, K: np.concatenate([first.pull(G, None), second.pull(G, None)]),
    )


def _product(kernel: Any, *at: Any) -> Covariances:
    first, second = covariances(kernel.k1, *at), covariances(kernel.k2, *at)

    def values() -> Array:
        K = _in_place(np.multiply, first.values(), second.values())
        return drop_tiny(K) if K.ndim else K

    def pull(G: Array, K: Array | None) -> Array:
        K1 = first.values()
        K2 = second.values() if K is None or K1.ndim or not K1 else np.asarray(K / K1)
        return np.concatenate([_scaled(K2, first.pull, G, K1), _scaled(K1, second.pull, G, K2)])

    return Covariances(values, pull)


def _scaled(factor: Array, pull: Callable[..., Array], G: Array, K: Array) -> Array:
    """Return the pullback of G times a factor; as pullbacks are linear, a number is multiplied afterwards."""
    return pull(G * factor, K) if factor.ndim else factor * pull(G, K)


register(ConstantKernel, lambda kernel, X, Z, dtype: _number(kernel, kernel.constant_value))
register(WhiteKernel, lambda kernel, X, Z, dtype: _number(kernel, kernel.noise_level if Z is None else 0.0))
register(Sum, _sum)
register(Product, _product)
register(Exponentiation)

# ------------------------------------------------------------------- a kernel for each class


class CompoundKernel(theirs.CompoundKernel):
    """A kernel for each latent function, in the order of the classes.

    Unlike in scikit-learn's class of the same name, ``theta`` can be set, which learning needs.

    Parameters
    ----------
    kernels : list of kernels

    Examples
    --------
    >>> from gpclass.kernels import RBF, CompoundKernel
    >>> kernel = CompoundKernel([RBF(1.0), 2.0 * RBF(3.0)])
    >>> [h.name for h in kernel.hyperparameters]
    ['kernels__0__length_scale', 'kernels__1__k1__constant_value', 'kernels__1__k2__length_scale']
    >>> kernel.clone_with_theta(kernel.theta + 1.0).kernels[0]
    RBF(length_scale=2.72)
    """

    @property
    def theta(self) -> Array:
        """The logarithms of all free hyperparameters, one kernel after another."""
        return np.concatenate([kernel.theta for kernel in self.kernels])

    @theta.setter
    def theta(self, theta: Array) -> None:
        ends = np.cumsum([kernel.n_dims for kernel in self.kernels])[:-1]
        for kernel, part in zip(self.kernels, np.split(np.asarray(theta), ends), strict=True):
            kernel.theta = part

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """The hyperparameters of all kernels; their names begin with the position of the kernel."""
        return [
            Hyperparameter(f"kernels__{i}__{h.name}", h.value_type, h.bounds, h.n_elements)
            for i, kernel in enumerate(self.kernels)
            for h in kernel.hyperparameters
        ]

    @property
    def bounds(self) -> Array:
        """The bounds on ``theta``."""
        return np.vstack([kernel.bounds for kernel in self.kernels if kernel.n_dims] or [np.empty((0, 2))])

    def __repr__(self) -> str:
        return f"{type(self).__name__}([{', '.join(map(repr, self.kernels))}])"


def settable(kernel: Any) -> Any:
    """Return a clone of a kernel whose ``theta`` can be set, which scikit-learn's `CompoundKernel` does not allow."""
    if isinstance(kernel, theirs.CompoundKernel):
        return CompoundKernel([clone(part) for part in kernel.kernels])
    return clone(kernel)
