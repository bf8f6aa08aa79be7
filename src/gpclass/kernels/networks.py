"""Covariances of infinitely wide networks with one hidden layer (Williams, 1998).

C. K. I. Williams, Computation with infinite neural networks, Neural Computation 10, 1203-1216.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpclass.core.linalg import drop_tiny, matmul, matmul_transposed
from gpclass.core.protocols import Array
from gpclass.kernels.base import Covariances, FormulaKernel, free_sizes
from gpclass.kernels.stationary import collect, per_column, squared_distances

# ------------------------------------------------------------------------------- sigmoidal units


def _unit_rows(kernel: Any, X: Array) -> Array:
    """Return rows sqrt(2 Σ) x̃ / sqrt(1 + 2 x̃ᵀΣx̃): products of two are the arguments of the arcsine."""
    rows = np.empty((len(X), X.shape[1] + 1))
    rows[:, 0] = np.sqrt(2.0 * kernel.bias_variance)
    np.multiply(X, np.sqrt(2.0 * per_column(kernel, "weight_variance", X.shape[1])), out=rows[:, 1:])
    rows /= np.sqrt(1.0 + np.vecdot(rows, rows))[:, None]
    return rows


def _sigmoidal(kernel: Any, X: Array, Z: Array | None, dtype: Any) -> Covariances:
    # With unit rows u, v, t = u·v and P = G ∘ (2/pi) / sqrt(1 - t²), the derivative of t with respect to the log
    # variance of entry d is u_d v_d - ½ t (u_d² + v_d²), from the numerator and the two factors of the denominator.
    U = _unit_rows(kernel, X)
    V = U if Z is None else _unit_rows(kernel, Z)

    def cosines(dtype: Any) -> Array:
        if Z is None:
            return np.vecdot(U, U).astype(dtype)
        T = matmul_transposed(*(drop_tiny(rows.astype(dtype)) for rows in (U, V)))
        return np.clip(T, -1.0, 1.0, out=T)

    def values() -> Array:
        K = np.arcsin(cosines(dtype))
        K *= K.dtype.type(2.0 / np.pi)
        return K

    def pull(G: Array, K: Array | None) -> Array:
        T = cosines(float)
        # The divisor is bounded below, because t may be rounded to ±1.
        P = G * (2.0 / np.pi) / np.sqrt(np.maximum((1.0 - T) * (1.0 + T), np.finfo(float).eps))
        if Z is None:
            by_entry = (P * (1.0 - T)) @ (U * U)
        else:
            by_entry = np.einsum("id,id->d", U, matmul(P, V))
            P *= T
            by_entry -= 0.5 * (P.sum(axis=1) @ (U * U) + P.sum(axis=0) @ (V * V))
        weights = collect(per_column(kernel, "weight_variance", X.shape[1]), by_entry[1:])
        parts = {"bias_variance": by_entry[:1], "weight_variance": weights}
        return np.concatenate([np.empty(0), *(parts[name] for name in free_sizes(kernel))])

    return Covariances(values, pull)


class NeuralNetwork(FormulaKernel, formulas=_sigmoidal):
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
        bias_variance_bounds: Any = (1e-5, 1e5),
        weight_variance_bounds: Any = (1e-5, 1e5),
    ) -> None:
        self.bias_variance = bias_variance
        self.weight_variance = weight_variance
        self.bias_variance_bounds = bias_variance_bounds
        self.weight_variance_bounds = weight_variance_bounds


# -------------------------------------------------------------------------------- Gaussian units


def _gaussian(kernel: Any, X: Array, Z: Array | None, dtype: Any) -> Covariances:
    # k = exp(-½ fade (|x|² + |z|²) - ½ decay |x - z|²), with fade = 1 / s_m² and decay = 1 / s_s².
    g2, u2 = float(kernel.unit_width) ** 2, float(kernel.center_scale) ** 2
    ratio = g2 * (g2 / u2)
    fade, decay = 1.0 / (2.0 * u2 + g2), 1.0 / (2.0 * g2 + ratio)
    norms = np.vecdot(X, X, dtype=float)
    if Z is None:
        fading, distances = -fade * norms, None
    else:
        fading = -0.5 * fade * np.add.outer(norms, np.vecdot(Z, Z, dtype=float))
        distances = squared_distances(-0.5, np.array(decay**-0.5), X, Z, dtype)

    def values() -> Array:
        exponent = np.asarray(fading + distances.values() if distances else fading, dtype=dtype)
        return drop_tiny(np.exp(exponent), 1.0)

    def pull(G: Array, K: Array | None) -> Array:
        H = np.multiply(G, values() if K is None else K, dtype=float)
        by_fade, by_decay = np.vdot(H, fading), -0.5 * distances.pull(H, None)[0] if distances else 0.0
        by_name = {
            "center_scale": -4.0 * u2 * fade * by_fade + 2.0 * ratio * decay * by_decay,
            "unit_width": -2.0 * g2 * fade * by_fade - 4.0 * (g2 + ratio) * decay * by_decay,
        }
        return np.array([by_name[name] for name in free_sizes(kernel)], dtype=float)

    return Covariances(values, pull)


class GaussianUnits(FormulaKernel, formulas=_gaussian):
    r"""Covariance of a network with infinitely many Gaussian hidden units.

    Units :math:`\exp(-|x - u|^2 / 2 s_g^2)` with centres :math:`u \sim N(0, s_u^2 I)` give

    .. math:: k(x, z) = \exp(-|x|^2 / 2 s_m^2) \exp(-|x - z|^2 / 2 s_s^2) \exp(-|z|^2 / 2 s_m^2),

    :math:`s_s^2 = 2 s_g^2 + s_g^4 / s_u^2` and :math:`s_m^2 = 2 s_u^2 + s_g^2`: a squared exponential that
    fades away from the origin, where there are no units; centre the columns of X. It is normalised to
    :math:`k(0, 0) = 1`: the mean of the product of two units is :math:`(s_e / s_u)^d` times as large, with
    :math:`1 / s_e^2 = 2 / s_g^2 + 1 / s_u^2`. For an amplitude, multiply by a ``ConstantKernel``.

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
        unit_width_bounds: Any = (1e-5, 1e5),
        center_scale_bounds: Any = (1e-5, 1e5),
    ) -> None:
        self.unit_width = unit_width
        self.center_scale = center_scale
        self.unit_width_bounds = unit_width_bounds
        self.center_scale_bounds = center_scale_bounds
