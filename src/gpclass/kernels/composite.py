"""Constants, noise, sums, products and powers of kernels.

A constant is a number and noise a diagonal here, never a matrix.
"""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Exponentiation, Kernel, Product, Sum, WhiteKernel

from gpclass.core.protocols import Array, Inputs
from gpclass.kernels.dispatch import (
    diagonal,
    evaluate,
    fill,
    is_free,
    pull,
    pull_diagonal,
    pull_inputs,
)


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
    """Return whether the kernel gives each row noise of its own, so that it tells copies of a row apart.

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
    return isinstance(kernel, WhiteKernel) or fill.is_default(kernel)  # who knows what a stranger does


def _dtype(X: Inputs) -> type:
    return np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64


# --------------------------------------------------------------------------- constant


@fill.register(ConstantKernel)
def _(kernel: Kernel, X: Inputs, Z: Inputs, out: Array) -> None:
    out[...] = kernel.constant_value


@diagonal.register(ConstantKernel)
def _(kernel: Kernel, X: Inputs) -> Array:
    return np.full(len(X), kernel.constant_value, dtype=_dtype(X))


@pull.register(ConstantKernel)
def _(kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
    return _gradient(kernel, "constant_value", scale * kernel.constant_value * G.sum(dtype=float))


@pull_diagonal.register(ConstantKernel)
def _(kernel: Kernel, X: Inputs, g: Array) -> Array:
    return _gradient(kernel, "constant_value", kernel.constant_value * g.sum(dtype=float))


def _gradient(kernel: Kernel, name: str, value: float) -> Array:
    return np.array([value] if is_free(kernel, name) else [], dtype=float)


# ------------------------------------------------------------------------------ noise


@fill.register(WhiteKernel)
def _(kernel: Kernel, X: Inputs, Z: Inputs, out: Array) -> None:
    out[...] = 0.0


@diagonal.register(WhiteKernel)
def _(kernel: Kernel, X: Inputs) -> Array:
    return np.full(len(X), kernel.noise_level, dtype=_dtype(X))


@pull.register(WhiteKernel)
def _(kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
    return _gradient(kernel, "noise_level", 0.0)


@pull_diagonal.register(WhiteKernel)
def _(kernel: Kernel, X: Inputs, g: Array) -> Array:
    return _gradient(kernel, "noise_level", kernel.noise_level * g.sum(dtype=float))


@pull_inputs.register(ConstantKernel, WhiteKernel)
def _(kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
    return np.zeros(X.shape)


# -------------------------------------------------------------------------------- sum


@fill.register(Sum)
def _(kernel: Kernel, X: Inputs, Z: Inputs, out: Array) -> None:
    first, second = kernel.k1, kernel.k2
    if _is_constant(first) or _is_noise(first):
        first, second = second, first
    fill(first, X, Z, out)
    if _is_constant(second):
        out += out.dtype.type(second.constant_value)
    elif not _is_noise(second):
        out += evaluate(second, X, Z, out.dtype)


@diagonal.register(Sum)
def _(kernel: Kernel, X: Inputs) -> Array:
    return diagonal(kernel.k1, X) + diagonal(kernel.k2, X)


@pull.register(Sum)
def _(kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
    # Beside noise, the matrix of the sum is that of the other summand.
    first = pull(kernel.k1, X, Z, G, K if _is_noise(kernel.k2) else None, scale)
    second = pull(kernel.k2, X, Z, G, K if _is_noise(kernel.k1) else None, scale)
    return np.concatenate([first, second])


@pull_diagonal.register(Sum)
def _(kernel: Kernel, X: Inputs, g: Array) -> Array:
    return np.concatenate([pull_diagonal(kernel.k1, X, g), pull_diagonal(kernel.k2, X, g)])


@pull_inputs.register(Sum)
def _(kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
    return pull_inputs(kernel.k1, X, Z, G) + pull_inputs(kernel.k2, X, Z, G)


# ---------------------------------------------------------------------------- product


@fill.register(Product)
def _(kernel: Kernel, X: Inputs, Z: Inputs, out: Array) -> None:
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


@diagonal.register(Product)
def _(kernel: Kernel, X: Inputs) -> Array:
    return diagonal(kernel.k1, X) * diagonal(kernel.k2, X)


@pull.register(Product)
def _(kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
    if _is_constant(kernel.k1):
        return np.concatenate(_pull_multiple(kernel.k1, kernel.k2, X, Z, G, K, scale))
    if _is_constant(kernel.k2):
        return np.concatenate(_pull_multiple(kernel.k2, kernel.k1, X, Z, G, K, scale)[::-1])
    if _is_noise(kernel):
        return np.zeros(kernel.n_dims)
    first, second = evaluate(kernel.k1, X, Z), evaluate(kernel.k2, X, Z)
    return scale * np.concatenate(
        [pull(kernel.k1, X, Z, G * second, first, 1.0), pull(kernel.k2, X, Z, G * first, second, 1.0)]
    )


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


@pull_diagonal.register(Product)
def _(kernel: Kernel, X: Inputs, g: Array) -> Array:
    first = pull_diagonal(kernel.k1, X, g * diagonal(kernel.k2, X))
    second = pull_diagonal(kernel.k2, X, g * diagonal(kernel.k1, X))
    return np.concatenate([first, second])


@pull_inputs.register(Product)
def _(kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
    for constant, other in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
        if _is_constant(constant):
            return float(constant.constant_value) * pull_inputs(other, X, Z, G)
    first = pull_inputs(kernel.k1, X, Z, G * evaluate(kernel.k2, X, Z))
    return first + pull_inputs(kernel.k2, X, Z, G * evaluate(kernel.k1, X, Z))


# ------------------------------------------------------------------------------ power


def _power_slope(K: Array, exponent: float) -> Array:
    """Return d K^p / dK, with 0 for the pole at K = 0: there K has underflowed and dK with it."""
    slope = np.zeros_like(K)
    np.power(K, exponent - 1, out=slope, where=(K != 0) | (exponent >= 1))
    slope *= exponent
    return slope


@fill.register(Exponentiation)
def _(kernel: Kernel, X: Inputs, Z: Inputs, out: Array) -> None:
    fill(kernel.kernel, X, Z, out)
    np.power(out, kernel.exponent, out=out)


@diagonal.register(Exponentiation)
def _(kernel: Kernel, X: Inputs) -> Array:
    return np.asarray(diagonal(kernel.kernel, X) ** kernel.exponent)


@pull.register(Exponentiation)
def _(kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
    base = evaluate(kernel.kernel, X, Z)
    return scale * pull(kernel.kernel, X, Z, G * _power_slope(base, kernel.exponent), base, 1.0)


@pull_diagonal.register(Exponentiation)
def _(kernel: Kernel, X: Inputs, g: Array) -> Array:
    base = diagonal(kernel.kernel, X)
    return pull_diagonal(kernel.kernel, X, g * _power_slope(base, kernel.exponent))


@pull_inputs.register(Exponentiation)
def _(kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
    slope = _power_slope(evaluate(kernel.kernel, X, Z), kernel.exponent)
    return pull_inputs(kernel.kernel, X, Z, G * slope)
