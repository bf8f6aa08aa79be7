"""Constants, noise, sums, products, powers and lists of kernels.

A constant is treated as a number and noise as a diagonal, never as a matrix.
"""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process import kernels as theirs
from sklearn.gaussian_process.kernels import ConstantKernel, Exponentiation, Kernel, Product, Sum, WhiteKernel

from gpclass.core.linalg import drop_tiny
from gpclass.core.protocols import Array, Inputs
from gpclass.kernels.formulas import (
    Expression,
    Formulas,
    diagonal,
    evaluate,
    express,
    fill,
    is_free,
    is_known,
    pull,
    pull_diagonal,
    pull_inputs,
    register,
    working_type,
)
from gpclass.kernels.parameters import are_kernels, is_exponent, is_kernel, is_not_negative

LARGEST_CONSTANT = 1e3  # in units of the other summand, to be subtracted from a sum


def _is_constant(kernel: Kernel) -> bool:
    return type(kernel) is ConstantKernel


def _is_noise(kernel: Kernel) -> bool:
    """Return whether k(x, z) = 0 for every x in one set of inputs and z in another."""
    kind = type(kernel)
    if kind is Product:
        return _is_noise(kernel.k1) or _is_noise(kernel.k2)
    if kind is Sum:
        return _is_noise(kernel.k1) and _is_noise(kernel.k2)
    if kind is Exponentiation:
        return kernel.exponent > 0 and _is_noise(kernel.kernel)
    return kind is WhiteKernel


def has_noise(kernel: Kernel) -> bool:
    """Return whether the kernel gives each row its own noise, so that it distinguishes copies of a row.

    Examples
    --------
    >>> from gpclass.kernels import RBF, WhiteKernel, has_noise
    >>> has_noise(2.0 * RBF() + WhiteKernel()), has_noise(RBF())
    (True, False)
    """
    parts = [part for part in kernel.get_params(deep=False).values() if isinstance(part, Kernel)]
    parts += getattr(kernel, "kernels", ())  # of a CompoundKernel
    if parts:
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

    def express(self, kernel: Kernel, X: Expression, n_columns: int, P: Array | None) -> Expression:
        value = float(getattr(kernel, self.name)) if self.everywhere or P is None else 0.0
        return X[[0]] * 0.0 + np.full((1, 1 if P is None else len(P)), value)


class _Sum(Formulas):
    def fill(self, kernel: Kernel, X: Inputs, Z: Inputs, out: Array) -> None:
        first, second = kernel.k1, kernel.k2
        if _is_constant(first) or _is_noise(first):
            first, second = second, first
        fill(first, X, Z, out)
        if _is_constant(second):
            out += out.dtype.type(second.constant_value)
        elif not _is_noise(second):
            out += evaluate(second, X, Z, out.dtype)

    def diagonal(self, kernel: Kernel, X: Inputs) -> Array:
        return diagonal(kernel.k1, X) + diagonal(kernel.k2, X)

    def pull(self, kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
        first = pull(kernel.k1, X, Z, G, _without(kernel.k2, K, scale), scale)
        second = pull(kernel.k2, X, Z, G, _without(kernel.k1, K, scale), scale)
        return np.concatenate([first, second])

    def pull_diagonal(self, kernel: Kernel, X: Inputs, g: Array) -> Array:
        return np.concatenate([pull_diagonal(kernel.k1, X, g), pull_diagonal(kernel.k2, X, g)])

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        return pull_inputs(kernel.k1, X, Z, G) + pull_inputs(kernel.k2, X, Z, G)

    def express(self, kernel: Kernel, X: Expression, n_columns: int, P: Array | None) -> Expression:
        return express(kernel.k1, X, n_columns, P) + express(kernel.k2, X, n_columns, P)


def _without(summand: Kernel, K: Array | None, scale: float) -> Array | None:
    """Return the matrix of a sum without one summand, if that is simple: noise is on the diagonal only."""
    if K is None or _is_noise(summand):
        return K
    if not _is_constant(summand):
        return None
    constant = scale * float(summand.constant_value)
    rest: Array = K - constant
    # The rounding of a much larger constant would be that of the difference.
    return rest if constant <= LARGEST_CONSTANT * rest.max(initial=0.0) else None


class _Product(Formulas):
    def fill(self, kernel: Kernel, X: Inputs, Z: Inputs, out: Array) -> None:
        first, second = kernel.k1, kernel.k2
        if _is_constant(first):
            first, second = second, first
        if _is_noise(kernel):
            out[...] = 0.0
            return
        fill(first, X, Z, out)
        if _is_constant(second):
            out *= out.dtype.type(second.constant_value)
        else:
            out *= evaluate(second, X, Z, out.dtype)
            drop_tiny(out)

    def diagonal(self, kernel: Kernel, X: Inputs) -> Array:
        return diagonal(kernel.k1, X) * diagonal(kernel.k2, X)

    def pull(self, kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
        if _is_constant(kernel.k1):
            return np.concatenate(_pull_multiple(kernel.k1, kernel.k2, X, Z, G, K, scale))
        if _is_constant(kernel.k2):
            return np.concatenate(_pull_multiple(kernel.k2, kernel.k1, X, Z, G, K, scale)[::-1])
        if _is_noise(kernel):
            return np.zeros(kernel.n_dims)
        first, second = evaluate(kernel.k1, X, Z), evaluate(kernel.k2, X, Z)
        return scale * np.concatenate(
            [pull(kernel.k1, X, Z, G * second, first), pull(kernel.k2, X, Z, G * first, second)]
        )

    def pull_diagonal(self, kernel: Kernel, X: Inputs, g: Array) -> Array:
        first = pull_diagonal(kernel.k1, X, g * diagonal(kernel.k2, X))
        second = pull_diagonal(kernel.k2, X, g * diagonal(kernel.k1, X))
        return np.concatenate([first, second])

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        for constant, other in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if _is_constant(constant):
                return float(constant.constant_value) * pull_inputs(other, X, Z, G)
        first = pull_inputs(kernel.k1, X, Z, G * evaluate(kernel.k2, X, Z))
        return first + pull_inputs(kernel.k2, X, Z, G * evaluate(kernel.k1, X, Z))

    def express(self, kernel: Kernel, X: Expression, n_columns: int, P: Array | None) -> Expression:
        return express(kernel.k1, X, n_columns, P) * express(kernel.k2, X, n_columns, P)


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

    def express(self, kernel: Kernel, X: Expression, n_columns: int, P: Array | None) -> Expression:
        return express(kernel.kernel, X, n_columns, P) ** float(kernel.exponent)


def _power_slope(K: Array, exponent: float) -> Array:
    """Return d K^p / dK, with 0 for the pole at K = 0: there K has underflowed, and dK as well."""
    slope = np.zeros_like(K)
    np.power(K, exponent - 1, out=slope, where=(K != 0) | (exponent >= 1))
    slope *= exponent
    return slope


register(ConstantKernel, _Number("constant_value", everywhere=True), {"constant_value": is_not_negative})
register(WhiteKernel, _Number("noise_level", everywhere=False), {"noise_level": is_not_negative})
register(Sum, _Sum(), {"k1": is_kernel, "k2": is_kernel})
register(Product, _Product(), {"k1": is_kernel, "k2": is_kernel})
register(Exponentiation, _Power(), {"kernel": is_kernel, "exponent": is_exponent})
# A list of kernels has no single matrix. gpclass.kernels has a class of the same name.
register(theirs.CompoundKernel, Formulas(), {"kernels": are_kernels}, file_name="sklearn.CompoundKernel")
