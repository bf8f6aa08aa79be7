"""Covariance of an infinitely wide network of Gaussian bumps (Williams, 1998)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import drop_tiny
from gpclass.core.protocols import Array
from gpclass.kernels.base import FormulaKernel
from gpclass.kernels.distances import (
    are_long,
    centred,
    express_squares,
    squared_distances,
    squared_norms,
    weighted_differences,
    weighted_squares,
)
from gpclass.kernels.formulas import Expression, Formulas, diagonal, evaluate, is_free

Bounds = Any  # a pair of numbers or "fixed"


class _Rates(NamedTuple):
    """1 / s_m² and 1 / s_s², and their derivatives by log center_scale and log unit_width."""

    fade: float
    decay: float
    fade_slopes: tuple[float, float]
    decay_slopes: tuple[float, float]


def _rates(kernel: Kernel) -> _Rates:
    g2, u2 = float(kernel.unit_width) ** 2, float(kernel.center_scale) ** 2
    fade, decay = 1.0 / (2.0 * u2 + g2), 1.0 / (2.0 * g2 + g2 * (g2 / u2))
    ratio = g2 * (g2 / u2)
    return _Rates(
        fade,
        decay,
        (-4.0 * u2 * fade * fade, -2.0 * g2 * fade * fade),
        (2.0 * ratio * decay * decay, -4.0 * (g2 + ratio) * decay * decay),
    )


def _exponent_gradient(kernel: Kernel, sums: Any, squares: Any) -> list[Any]:
    """Return derivatives of -½ fade (|x|² + |z|²) - ½ decay |x - z|² by the free hyperparameters."""
    rates = _rates(kernel)
    names = ("center_scale", "unit_width")
    return [
        -0.5 * (fade * sums + decay * squares)
        for name, fade, decay in zip(names, rates.fade_slopes, rates.decay_slopes, strict=True)
        if is_free(kernel, name)
    ]


class _Formulas(Formulas):
    def fill(self, kernel: Kernel, X: Array, Z: Array, out: Array) -> None:
        rates = _rates(kernel)
        A, B = centred(X, Z, np.array(rates.decay**-0.5), out.dtype)
        squared_distances(A, B, -0.5, out)
        out -= (0.5 * rates.fade * squared_norms(X)).astype(out.dtype)[:, None]
        out -= (0.5 * rates.fade * squared_norms(Z)).astype(out.dtype)
        np.exp(out, out=out)
        drop_tiny(out, 1.0)

    def diagonal(self, kernel: Kernel, X: Array) -> Array:
        return np.exp(X.dtype.type(-_rates(kernel).fade) * squared_norms(X))

    def pull(self, kernel: Kernel, X: Array, Z: Array, G: Array, K: Array | None, scale: float) -> Array:
        if K is None:
            K = scale * evaluate(kernel, X, Z)
        H = np.multiply(G, K, dtype=float)
        length = np.array(_rates(kernel).decay ** -0.5)
        A, B = centred(X, Z, length)
        squares = length**2 * weighted_squares(H, A, B, exact=are_long(A, B)).sum()
        sums = H.sum(axis=1) @ squared_norms(X) + H.sum(axis=0) @ squared_norms(Z)
        return np.array(_exponent_gradient(kernel, sums, squares), dtype=float)

    def pull_diagonal(self, kernel: Kernel, X: Array, g: Array) -> Array:
        weights = g * diagonal(kernel, X)
        return np.array(_exponent_gradient(kernel, 2.0 * weights @ squared_norms(X), 0.0), dtype=float)

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        rates = _rates(kernel)
        H = G * evaluate(kernel, X, Z)
        differences = weighted_differences(H, *centred(X, Z, np.array(1.0)))
        return np.asarray(-rates.decay * differences - rates.fade * H.sum(axis=1)[:, None] * X)

    def gradient(self, kernel: Kernel, X: Array) -> Array:
        K, norms = evaluate(kernel, X, X), squared_norms(X)
        np.fill_diagonal(K, diagonal(kernel, X))
        D = np.empty(K.shape)
        squared_distances(*centred(X, X, np.array(1.0)), 1.0, D, exact=True)
        np.fill_diagonal(D, 0.0)
        slopes = _exponent_gradient(kernel, norms[:, None] + norms, D)
        return np.stack([K * slope for slope in slopes], axis=-1) if slopes else np.empty((*K.shape, 0))

    def express(self, kernel: Kernel, X: Expression, n_columns: int, P: Array | None) -> Expression:
        rates, norms = _rates(kernel), (X * X).sum()
        if P is None:
            return np.exp(norms * -rates.fade)
        sums = norms + squared_norms(P)[None]
        squares = express_squares(X, P, np.ones(n_columns), exact=False)
        return np.exp(sums * (-0.5 * rates.fade) + squares * (-0.5 * rates.decay))


class GaussianUnits(FormulaKernel, formulas=_Formulas()):
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
