"""Constants, noise, sums, products and powers of kernels.

A constant is treated as a number and noise as a diagonal, never as a matrix.
"""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Exponentiation, Kernel, Product, Sum, WhiteKernel

from gpclass.core.linalg import drop_tiny
from gpclass.core.protocols import Array, Inputs
from gpclass.kernels.compound import inner_kernels
from gpclass.kernels.formulas import (
    Formulas,
    diagonal,
    evaluate,
    fill,
    is_known,
    pull,
    pull_diagonal,
    pull_inputs,
    register,
    working_type,
)
from gpclass.kernels.theta import is_free


def _constant(kernel: Kernel) -> float | None:
    """Return the value of a kernel that is the same number for all pairs of different inputs, or None."""
    kind = type(kernel)
    if kind is ConstantKernel:
        return float(kernel.constant_value)
    if kind is WhiteKernel:
        return 0.0
    if kind is Exponentiation:
        base = _constant(kernel.kernel)
        return None if base is None or kernel.exponent <= 0 else base**kernel.exponent
    if kind not in (Sum, Product):
        return None
    parts = _constant(kernel.k1), _constant(kernel.k2)
    if kind is Product and 0.0 in parts:
        return 0.0
    if None in parts:
        return None
    first, second = parts
    return first + second if kind is Sum else first * second  # type: ignore[operator]


def has_noise(kernel: Kernel) -> bool:
    """Return whether the kernel gives each row its own noise, so that it distinguishes copies of a row.

    Examples
    --------
    >>> from gpclass.kernels import RBF, WhiteKernel, has_noise
    >>> has_noise(2.0 * RBF() + WhiteKernel()), has_noise(RBF())
    (True, False)
    """
    if parts := inner_kernels(kernel):
        return any(has_noise(part) for part in parts)
    return isinstance(kernel, WhiteKernel) or not is_known(kernel)  # an unknown kernel may have noise


class _Number(Formulas):
    """A kernel that is one number, its hyperparameter: for equal inputs, or for all if ``everywhere``."""

    stationary = True

    def __init__(self, name: str, everywhere: bool) -> None:
        self.name, self.everywhere = name, everywhere

    def _gradient(self, kernel: Kernel, total: float) -> Array:
        free = is_free(kernel, self.name)
        return np.array([getattr(kernel, self.name) * total] if free else [], dtype=float)

    def fill(self, kernel: Kernel, X: Inputs, Z: Inputs, out: Array) -> None:
        out[...] = getattr(kernel, self.name) if self.everywhere else 0.0

    def diagonal(self, kernel: Kernel, X: Inputs) -> Array:
        return np.full(len(X), getattr(kernel, self.name), dtype=working_type(X))

    def pull(self, kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
        return self._gradient(kernel, scale * G.sum(dtype=float) if self.everywhere else 0.0)

    def pull_diagonal(self, kernel: Kernel, X: Inputs, g: Array) -> Array:
        return self._gradient(kernel, g.sum(dtype=float))

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        return np.zeros(X.shape)


class _Sum(Formulas):
    def fill(self, kernel: Kernel, X: Inputs, Z: Inputs, out: Array) -> None:
        first, second = kernel.k1, kernel.k2
        if _constant(first) is not None:
            first, second = second, first
        fill(first, X, Z, out)
        constant = _constant(second)
        out += evaluate(second, X, Z, out.dtype) if constant is None else out.dtype.type(constant)

    def diagonal(self, kernel: Kernel, X: Inputs) -> Array:
        return diagonal(kernel.k1, X) + diagonal(kernel.k2, X)

    def pull(self, kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
        first = pull(kernel.k1, X, Z, G, _without(kernel.k2, K), scale)
        second = pull(kernel.k2, X, Z, G, _without(kernel.k1, K), scale)
        return np.concatenate([first, second])

    def pull_diagonal(self, kernel: Kernel, X: Inputs, g: Array) -> Array:
        return np.concatenate([pull_diagonal(kernel.k1, X, g), pull_diagonal(kernel.k2, X, g)])

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        return pull_inputs(kernel.k1, X, Z, G) + pull_inputs(kernel.k2, X, Z, G)


def _without(summand: Kernel, K: Array | None) -> Array | None:
    """Return the matrix of a sum without one summand, if that is only noise; else None."""
    return K if _constant(summand) == 0.0 else None


class _Product(Formulas):
    def fill(self, kernel: Kernel, X: Inputs, Z: Inputs, out: Array) -> None:
        first, second = kernel.k1, kernel.k2
        if _constant(first) is not None:
            first, second = second, first
        constant = _constant(second)
        fill(first, X, Z, out)
        if constant is not None:
            out *= out.dtype.type(constant)
        else:
            out *= evaluate(second, X, Z, out.dtype)
            drop_tiny(out)

    def diagonal(self, kernel: Kernel, X: Inputs) -> Array:
        return diagonal(kernel.k1, X) * diagonal(kernel.k2, X)

    def pull(self, kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
        if type(kernel.k1) is ConstantKernel:
            return np.concatenate(_pull_multiple(kernel.k1, kernel.k2, X, Z, G, K, scale))
        if type(kernel.k2) is ConstantKernel:
            return np.concatenate(_pull_multiple(kernel.k2, kernel.k1, X, Z, G, K, scale)[::-1])
        first, second = evaluate(kernel.k1, X, Z), evaluate(kernel.k2, X, Z)
        return scale * np.concatenate(
            [pull(kernel.k1, X, Z, G * second, first), pull(kernel.k2, X, Z, G * first, second)]
        )

    def pull_diagonal(self, kernel: Kernel, X: Inputs, g: Array) -> Array:
        first = pull_diagonal(kernel.k1, X, g * diagonal(kernel.k2, X))
        second = pull_diagonal(kernel.k2, X, g * diagonal(kernel.k1, X))
        return np.concatenate([first, second])

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        parts = []
        for varied, other in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if _constant(varied) is None:
                constant = _constant(other)
                factor = evaluate(other, X, Z) if constant is None else constant
                parts.append(pull_inputs(varied, X, Z, G * factor))
        return np.sum(parts, axis=0) if parts else np.zeros(X.shape)


def _pull_multiple(
    constant: Kernel, other: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float
) -> tuple[Array, Array]:
    """Return the two parts of the gradient of scale · constant · other."""
    scale = scale * float(constant.constant_value)
    by_constant = np.empty(0)
    if is_free(constant, "constant_value"):
        if K is None:
            K = evaluate(other, X, Z)
            K *= scale
        by_constant = np.array([np.einsum("ij,ij->", G, K, dtype=float)])
    return by_constant, pull(other, X, Z, G, K, scale)


class _Power(Formulas):
    def fill(self, kernel: Kernel, X: Inputs, Z: Inputs, out: Array) -> None:
        fill(kernel.kernel, X, Z, out)
        np.power(out, kernel.exponent, out=out)
        drop_tiny(out)

    def diagonal(self, kernel: Kernel, X: Inputs) -> Array:
        return np.asarray(diagonal(kernel.kernel, X) ** kernel.exponent)

    def pull(self, kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
        base = evaluate(kernel.kernel, X, Z)
        return scale * pull(kernel.kernel, X, Z, G * _power_slope(base, kernel.exponent), base)

    def pull_diagonal(self, kernel: Kernel, X: Inputs, g: Array) -> Array:
        base = diagonal(kernel.kernel, X)
        return pull_diagonal(kernel.kernel, X, g * _power_slope(base, kernel.exponent))

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        slope = _power_slope(evaluate(kernel.kernel, X, Z), kernel.exponent)
        return pull_inputs(kernel.kernel, X, Z, G * slope)


def _power_slope(K: Array, exponent: float) -> Array:
    """Return d K^p / dK, with 0 for the pole at K = 0: there K has underflowed, and dK as well."""
    slope = np.zeros_like(K)
    np.power(K, exponent - 1, out=slope, where=(K != 0) | (exponent >= 1))
    slope *= exponent
    return slope


register(ConstantKernel, _Number("constant_value", everywhere=True))
register(WhiteKernel, _Number("noise_level", everywhere=False))
register(Sum, _Sum())
register(Product, _Product())
register(Exponentiation, _Power())
