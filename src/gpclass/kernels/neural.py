"""Covariances of infinitely wide networks with one hidden layer (Williams, 1998).

C. K. I. Williams, Computation with infinite neural networks, Neural Computation 10, 1203-1216.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import matmul, matmul_transposed
from gpclass.core.protocols import Array
from gpclass.kernels.base import FormulaKernel
from gpclass.kernels.distances import by_column, rows_in, squared_norms
from gpclass.kernels.formulas import Formulas, is_free
from gpclass.kernels.parameters import is_not_negative

Bounds = Any  # a pair of numbers, an array of pairs, or "fixed"


def _unit_rows(kernel: Kernel, X: Array) -> tuple[Array, Array, Array]:
    """Return rows sqrt(2 Σ) x̃ / sqrt(1 + 2 x̃ᵀΣx̃), the divisors, and sqrt(2 Σ) of the columns.

    The arcsine's argument is the product of two such rows, the bias the first of their entries.
    """
    weights = by_column(kernel, "weight_variance", X.shape[1])
    roots = np.sqrt(2.0 * np.broadcast_to(weights, X.shape[1:]))
    rows = np.empty((len(X), X.shape[1] + 1))
    rows[:, 0] = np.sqrt(2.0 * kernel.bias_variance)
    np.multiply(X, roots, out=rows[:, 1:])
    divisors = np.sqrt(1.0 + squared_norms(rows))
    rows /= divisors[:, None]
    return rows, divisors, roots


def _cosines(U: Array, V: Array) -> Array:
    T = matmul_transposed(U, V)
    return np.clip(T, -1.0, 1.0, out=T)


def _arcsine_slope(T: Array) -> Array:
    """Return d/dt (2/pi) asin(t), bounded where t has rounded to ±1."""
    slope = (1.0 - T) * (1.0 + T)
    np.maximum(slope, np.finfo(float).eps, out=slope)
    np.sqrt(slope, out=slope)
    return np.divide(2.0 / np.pi, slope, out=slope)


def _by_theta(kernel: Kernel, by_entry: Array) -> Array:
    """Turn derivatives by log variance, the bias first and then each column (last axis), into theta's."""
    parts = []
    if is_free(kernel, "bias_variance"):
        parts.append(by_entry[..., :1])
    if is_free(kernel, "weight_variance"):
        by_weight = by_entry[..., 1:]
        one = np.size(kernel.weight_variance) == 1
        parts.append(by_weight.sum(axis=-1, keepdims=True) if one else by_weight)
    return np.concatenate(parts, axis=-1) if parts else by_entry[..., :0]


class _Formulas(Formulas):
    # With unit rows u, v, t = u·v and P = G ∘ (2/pi) / sqrt(1 - t²), the derivative of t by the log of the
    # variance of entry d is u_d v_d - ½ t (u_d² + v_d²): that of the numerator and of the two divisors.

    def fill(self, kernel: Kernel, X: Array, Z: Array, out: Array) -> None:
        U, V = _unit_rows(kernel, X)[0], _unit_rows(kernel, Z)[0]
        np.matmul(rows_in(U, out.dtype), rows_in(V, out.dtype).T, out=out)
        np.clip(out, -1.0, 1.0, out=out)
        np.arcsin(out, out=out)
        out *= out.dtype.type(2.0 / np.pi)

    def diagonal(self, kernel: Kernel, X: Array) -> Array:
        # asin(s / (1 + s)) = atan(s / sqrt(1 + 2 s)), which keeps its digits when s is large.
        U, divisors, _ = _unit_rows(kernel, X)
        s = squared_norms(U) * divisors**2
        return np.asarray(2.0 / np.pi * np.arctan2(s, np.sqrt(1.0 + 2.0 * s)), dtype=X.dtype)

    def pull(self, kernel: Kernel, X: Array, Z: Array, G: Array, K: Array | None, scale: float) -> Array:
        U, V = _unit_rows(kernel, X)[0], _unit_rows(kernel, Z)[0]
        T = _cosines(U, V)
        P = _arcsine_slope(T)
        P *= G
        product = np.einsum("id,id->d", U, matmul(P, V))
        P *= T
        shrink = P.sum(axis=1) @ (U * U) + P.sum(axis=0) @ (V * V)
        return scale * _by_theta(kernel, product - 0.5 * shrink)

    def pull_diagonal(self, kernel: Kernel, X: Array, g: Array) -> Array:
        # k(x, x) = (2/pi) asin(s / (1 + s)) has slope (2/pi) / ((1 + s) sqrt(1 + 2 s)); the log
        # variance of entry d changes s by u_d² (1 + s).
        U, divisors, _ = _unit_rows(kernel, X)
        slope = 2.0 / np.pi * g / np.sqrt(2.0 * divisors**2 - 1.0)
        return _by_theta(kernel, slope @ (U * U))

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        # ∂t/∂x_d = sqrt(2 Σ_d) / divisor · (v_d - t u_d)
        U, divisors, roots = _unit_rows(kernel, X)
        V = _unit_rows(kernel, Z)[0]
        T = _cosines(U, V)
        P = _arcsine_slope(T)
        P *= G
        product = matmul(P, V)
        P *= T
        product -= P.sum(axis=1)[:, None] * U
        return np.asarray(product[:, 1:] * roots / divisors[:, None])

    def gradient(self, kernel: Kernel, X: Array) -> Array:
        U, _, _ = _unit_rows(kernel, X)
        T = _cosines(U, U)
        np.fill_diagonal(T, squared_norms(U))
        squares = U * U
        both = squares[:, None, :] + squares[None, :, :]
        by_entry = U[:, None, :] * U[None, :, :] - 0.5 * T[:, :, None] * both
        return _by_theta(kernel, _arcsine_slope(T)[:, :, None] * by_entry)


class NeuralNetwork(FormulaKernel, formulas=_Formulas(), checks={"bias_variance": is_not_negative}):
    r"""Covariance of a network with infinitely many sigmoidal (erf) hidden units.

    With :math:`\tilde x = (1, x)` and :math:`\Sigma` the diagonal matrix of the variances of bias and
    weights,

    .. math:: k(x, z) = \frac{2}{\pi} \arcsin \frac{2 \tilde x^T \Sigma \tilde z}
        {\sqrt{(1 + 2 \tilde x^T \Sigma \tilde x)(1 + 2 \tilde z^T \Sigma \tilde z)}}

    is the mean of :math:`\mathrm{erf}(u^T \tilde x)\,\mathrm{erf}(u^T \tilde z)` over weights
    :math:`u \sim N(0, \Sigma)`. It is not stationary: functions vary near the origin and level off away
    from it, so centre the columns of X. Values lie in (-1, 1).

    Parameters
    ----------
    bias_variance : float, default=1.0
        Variance of the biases.
    weight_variance : float or array of shape (n_features,), default=1.0
        Variance of the weights, one for all columns or one for each.
    bias_variance_bounds, weight_variance_bounds : pair of floats >= 0 or "fixed", default=(1e-5, 1e5)
        Bounds for learning, or "fixed".

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import NeuralNetwork
    >>> NeuralNetwork(bias_variance=1.0, weight_variance=10.0)(np.array([[-1.0], [1.0]])).round(3)
    array([[ 0.812, -0.572],
           [-0.572,  0.812]])
    """

    def __init__(
        self,
        bias_variance: float = 1.0,
        weight_variance: ArrayLike = 1.0,
        bias_variance_bounds: Bounds = (1e-5, 1e5),
        weight_variance_bounds: Bounds = (1e-5, 1e5),
    ) -> None:
        self.bias_variance = bias_variance
        self.weight_variance = weight_variance
        self.bias_variance_bounds = bias_variance_bounds
        self.weight_variance_bounds = weight_variance_bounds
