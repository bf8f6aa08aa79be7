"""Covariances of infinitely wide networks with one hidden layer (Williams, 1998).

C. K. I. Williams, Computation with infinite neural networks, Neural Computation 10, 1203-1216.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import drop_tiny, matmul, matmul_transposed
from gpclass.core.protocols import Array
from gpclass.kernels.base import FormulaKernel
from gpclass.kernels.formulas import Formulas, contract, diagonal, evaluate
from gpclass.kernels.metric import Metric, PerColumn, make_metric, per_column, rows_in, squared_norms
from gpclass.kernels.theta import is_free

Bounds = Any  # a pair of numbers, an array of pairs, or "fixed"

# ------------------------------------------------------------------------------- sigmoidal units


def _unit_rows(kernel: Kernel, X: Array) -> tuple[Array, Array, Array]:
    """Return rows sqrt(2 Σ) x̃ / sqrt(1 + 2 x̃ᵀΣx̃), the divisors, and sqrt(2 Σ) of the columns.

    The arcsine's argument is the product of two such rows, the bias the first of their entries.
    """
    weights = per_column(kernel, "weight_variance", X.shape[1]).values
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
    """Return derivatives by theta from those by log variance, the bias first and then each column (last axis)."""
    weights = per_column(kernel, "weight_variance", by_entry.shape[-1] - 1)
    parts = {"bias_variance": by_entry[..., :1], "weight_variance": weights.collect(by_entry[..., 1:])}
    free = [part for name, part in parts.items() if is_free(kernel, name)]
    return np.concatenate([by_entry[..., :0], *free], axis=-1)


class _Sigmoidal(Formulas):
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

    def slopes(self, kernel: Kernel, X: Array, Z: Array) -> Iterator[Array]:
        U, V = _unit_rows(kernel, X)[0], _unit_rows(kernel, Z)[0]
        T = _cosines(U, V)
        both = (U * U)[:, None] + V * V
        by_entry = _arcsine_slope(T)[..., None] * (U[:, None] * V - 0.5 * T[..., None] * both)
        return iter(np.moveaxis(_by_theta(kernel, by_entry), -1, 0))

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


class NeuralNetwork(FormulaKernel, formulas=_Sigmoidal()):
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


# -------------------------------------------------------------------------------- Gaussian units


def _by_size(kernel: Kernel, sums: Array, squares: Array | float) -> Iterator[Array]:
    """Yield derivatives of -½ fade (|x|² + |z|²) - ½ decay |x - z|² by the free hyperparameters."""
    fade, decay = kernel.rates()
    g2, u2 = float(kernel.unit_width) ** 2, float(kernel.center_scale) ** 2
    ratio = g2 * (g2 / u2)
    slopes = {  # of the logarithms of fade and decay
        "center_scale": (-4.0 * u2 * fade, 2.0 * ratio * decay),
        "unit_width": (-2.0 * g2 * fade, -4.0 * (g2 + ratio) * decay),
    }
    for name, (by_fade, by_decay) in slopes.items():
        if is_free(kernel, name):
            yield -0.5 * (by_fade * fade * sums + by_decay * decay * squares)


class _Gaussian(Formulas):
    def _metric(self, kernel: Kernel, X: Array, Z: Array, dtype: Any = float) -> Metric:
        return make_metric(-0.5, PerColumn(np.array(kernel.rates()[1] ** -0.5)), X, Z, dtype)

    def fill(self, kernel: Kernel, X: Array, Z: Array, out: Array) -> None:
        half = 0.5 * kernel.rates()[0]
        self._metric(kernel, X, Z, out.dtype).fill(out)
        out -= (half * squared_norms(X)).astype(out.dtype)[:, None]
        out -= (half * squared_norms(Z)).astype(out.dtype)
        np.exp(out, out=out)
        drop_tiny(out, 1.0)

    def diagonal(self, kernel: Kernel, X: Array) -> Array:
        return np.asarray(np.exp(X.dtype.type(-kernel.rates()[0]) * squared_norms(X)))

    def slopes(self, kernel: Kernel, X: Array, Z: Array) -> Iterator[Array]:
        K, S = evaluate(kernel, X, Z), self._metric(kernel, X, Z).fill(np.empty((len(X), len(Z))))
        sums = np.add.outer(squared_norms(X), squared_norms(Z))
        return (K * slope for slope in _by_size(kernel, sums, S * (-2.0 / kernel.rates()[1])))

    def pull_diagonal(self, kernel: Kernel, X: Array, g: Array) -> Array:
        return contract(_by_size(kernel, 2.0 * squared_norms(X), 0.0), g * diagonal(kernel, X))

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        H = G * evaluate(kernel, X, Z)
        fading = kernel.rates()[0] * H.sum(axis=1)[:, None] * X
        return np.asarray(self._metric(kernel, X, Z).pull_inputs(H) - fading)


class GaussianUnits(FormulaKernel, formulas=_Gaussian()):
    r"""Covariance of a network with infinitely many Gaussian hidden units.

    Units :math:`\exp(-|x - u|^2 / 2 s_g^2)` with centres :math:`u \sim N(0, s_u^2 I)` give

    .. math:: k(x, z) = \exp(-|x|^2 / 2 s_m^2) \exp(-|x - z|^2 / 2 s_s^2) \exp(-|z|^2 / 2 s_m^2),

    :math:`s_s^2 = 2 s_g^2 + s_g^4 / s_u^2` and :math:`s_m^2 = 2 s_u^2 + s_g^2`: a squared exponential that
    fades away from the origin, where there are no units; centre the columns of X. It is normalised to
    :math:`k(0, 0) = 1`: the mean of the product of two units is :math:`(s_e / s_u)^d` times as large, with
    :math:`1 / s_e^2 = 2 / s_g^2 + 1 / s_u^2`. The amplitude is left to a ``ConstantKernel``.

    Parameters
    ----------
    unit_width : float, default=1.0
        Width s_g of a unit.
    center_scale : float, default=1.0
        Standard deviation s_u of the centres.
    unit_width_bounds, center_scale_bounds : pair of floats >= 0 or "fixed", default=(1e-5, 1e5)
        Bounds for learning, or "fixed".

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import GaussianUnits
    >>> GaussianUnits(unit_width=1.0, center_scale=2.0)(np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.757],
           [0.757, 0.895]])
    """

    def __init__(
        self,
        unit_width: float = 1.0,
        center_scale: float = 1.0,
        unit_width_bounds: Bounds = (1e-5, 1e5),
        center_scale_bounds: Bounds = (1e-5, 1e5),
    ) -> None:
        self.unit_width = unit_width
        self.center_scale = center_scale
        self.unit_width_bounds = unit_width_bounds
        self.center_scale_bounds = center_scale_bounds

    def rates(self) -> tuple[float, float]:
        """Return 1 / s_m² and 1 / s_s²."""
        g2, u2 = float(self.unit_width) ** 2, float(self.center_scale) ** 2
        return 1.0 / (2.0 * u2 + g2), 1.0 / (2.0 * g2 + g2 * (g2 / u2))
