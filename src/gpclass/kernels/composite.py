"""Constants, noise, sums, products and powers of kernels, and the kernels inside a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Exponentiation, Kernel, Product, Sum, WhiteKernel

from gpclass.core.linalg import drop_tiny
from gpclass.core.protocols import Array
from gpclass.kernels.covariances import Covariances, by_differences, covariances, formulas_of, register
from gpclass.kernels.theta import is_free


def inner_kernels(kernel: Any) -> list[Any]:
    """Return the direct parts of a composite kernel; none for any other kernel."""
    inside = getattr(kernel, "kernels", None) or kernel.get_params(deep=False).values()
    return [part for part in inside if isinstance(part, Kernel)]


def has_noise(kernel: Kernel) -> bool:
    """Return whether the kernel gives each row its own noise, so that it distinguishes copies of a row."""
    if parts := inner_kernels(kernel):
        return any(has_noise(part) for part in parts)
    # A kernel that is not registered may have noise.
    return isinstance(kernel, WhiteKernel) or formulas_of(kernel) is by_differences


def _number(kernel: Any, name: str, value: float) -> Covariances:
    """Return covariances that are all equal to the value of one hyperparameter, or to zero."""

    def pull(G: Array, K: Array | None) -> Array:
        return np.array([value * G.sum(dtype=float)] if is_free(kernel, name) else [], dtype=float)

    return Covariances(lambda: np.array(value, dtype=float), pull)


def _constant(kernel: Any, X: Any, Z: Any, dtype: Any) -> Covariances:
    return _number(kernel, "constant_value", kernel.constant_value)


def _noise(kernel: Any, X: Any, Z: Any, dtype: Any) -> Covariances:
    return _number(kernel, "noise_level", kernel.noise_level if Z is None else 0.0)


def _in_place(operation: np.ufunc, first: Array, second: Array) -> Array:
    """Return the result of an operation on two arrays or numbers, written into the larger array."""
    out: Array = operation(first, second, out=first if first.ndim else second)
    return out


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
        return np.concatenate([_times(K2, G, first.pull, K1), _times(K1, G, second.pull, K2)])

    return Covariances(values, pull)


def _times(factor: Array, G: Array, pull: Callable[..., Array], *known: Array) -> Array:
    """Return the pullback of G times a factor; as pullbacks are linear, a number is multiplied afterwards.

    The pullback to a constant, whose value is 0-dimensional, needs only the sum of the products.
    """
    if not factor.ndim:
        return factor * pull(G, *known)
    alone = known and not known[0].ndim and G.dtype == factor.dtype == np.float64
    return pull(np.asarray(np.vdot(G, factor)) if alone else G * factor, *known)


def _power(kernel: Any, *at: Any) -> Covariances:
    base, p = covariances(kernel.kernel, *at), kernel.exponent

    def values() -> Array:
        K = base.values()
        np.power(K, p, out=K)
        return drop_tiny(K) if K.ndim else K

    def adjoint(G: Array) -> Array:
        """Return G · d K^p / dK, with 0 for the pole at K = 0, where K and dK have underflowed."""
        K = base.values()
        slope = np.zeros_like(K)
        np.power(K, p - 1, out=slope, where=(K != 0) | (p >= 1))
        return np.asarray(p * slope * G)

    return Covariances(values, lambda G, K: base.pull(adjoint(G), None))


register(ConstantKernel, _constant)
register(WhiteKernel, _noise)
register(Sum, _sum)
register(Product, _product)
register(Exponentiation, _power)
