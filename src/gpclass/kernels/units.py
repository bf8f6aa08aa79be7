"""Covariance of an infinitely wide network of Gaussian bumps (Williams, 1998)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from gpclass.core.protocols import Array
from gpclass.kernels import dispatch
from gpclass.kernels.distances import (
    are_long,
    centred,
    squared_distances,
    squared_norms,
    weighted_differences,
    weighted_squares,
)

Bounds = Any  # a pair of numbers or "fixed"


class GaussianUnits(Kernel):
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

    @property
    def hyperparameter_unit_width(self) -> Hyperparameter:
        """Return the specification of the width of the units."""
        return Hyperparameter("unit_width", "numeric", self.unit_width_bounds)

    @property
    def hyperparameter_center_scale(self) -> Hyperparameter:
        """Return the specification of the scale of the centres."""
        return Hyperparameter("center_scale", "numeric", self.center_scale_bounds)

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False) -> Any:
        """Return k(X, Y), and its gradient with respect to theta if asked (Y must be None then)."""
        X = np.atleast_2d(np.asarray(X, dtype=float))
        if Y is not None:
            if eval_gradient:
                raise ValueError("Y was given with eval_gradient=True: the gradient is that of k(X, X) only.")
            return dispatch.evaluate(self, X, np.atleast_2d(np.asarray(Y, dtype=float)))
        K = dispatch.evaluate(self, X, X)
        np.fill_diagonal(K, self.diag(X))
        return (K, self._gradient(X, K)) if eval_gradient else K

    def diag(self, X: ArrayLike) -> Array:
        """Return k(x_i, x_i)."""
        return dispatch.diagonal(self, np.atleast_2d(np.asarray(X, dtype=float)))

    def is_stationary(self) -> bool:
        """Return False."""
        return False

    def __repr__(self) -> str:
        return f"GaussianUnits(unit_width={self.unit_width:.3g}, center_scale={self.center_scale:.3g})"

    def _gradient(self, X: Array, K: Array) -> Array:
        norms = squared_norms(X)
        D = np.empty(K.shape)
        squared_distances(*centred(X, X, np.array(1.0)), 1.0, D, exact=True)
        np.fill_diagonal(D, 0.0)
        slopes = _exponent_gradient(self, norms[:, None] + norms, D)
        return np.stack([K * slope for slope in slopes], axis=-1) if slopes else np.empty((*K.shape, 0))


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
        if dispatch.is_free(kernel, name)
    ]


@dispatch.fill.register(GaussianUnits)
def _(kernel: Kernel, X: Array, Z: Array, out: Array) -> None:
    rates = _rates(kernel)
    A, B = centred(X, Z, np.array(rates.decay**-0.5), out.dtype)
    squared_distances(A, B, -0.5, out)
    out -= (0.5 * rates.fade * squared_norms(X)).astype(out.dtype)[:, None]
    out -= (0.5 * rates.fade * squared_norms(Z)).astype(out.dtype)
    np.exp(out, out=out)


@dispatch.diagonal.register(GaussianUnits)
def _(kernel: Kernel, X: Array) -> Array:
    return np.exp(X.dtype.type(-_rates(kernel).fade) * squared_norms(X))


@dispatch.pull.register(GaussianUnits)
def _(kernel: Kernel, X: Array, Z: Array, G: Array, K: Array | None, scale: float) -> Array:
    if K is None:
        K = scale * dispatch.evaluate(kernel, X, Z)
    H = np.multiply(G, K, dtype=float)
    length = np.array(_rates(kernel).decay ** -0.5)
    A, B = centred(X, Z, length)
    squares = length**2 * weighted_squares(H, A, B, exact=are_long(A, B)).sum()
    sums = H.sum(axis=1) @ squared_norms(X) + H.sum(axis=0) @ squared_norms(Z)
    return np.array(_exponent_gradient(kernel, sums, squares), dtype=float)


@dispatch.pull_diagonal.register(GaussianUnits)
def _(kernel: Kernel, X: Array, g: Array) -> Array:
    weights = g * dispatch.diagonal(kernel, X)
    return np.array(_exponent_gradient(kernel, 2.0 * weights @ squared_norms(X), 0.0), dtype=float)


@dispatch.pull_inputs.register(GaussianUnits)
def _(kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
    rates = _rates(kernel)
    H = G * dispatch.evaluate(kernel, X, Z)
    differences = weighted_differences(H, *centred(X, Z, np.array(1.0)))
    return np.asarray(-rates.decay * differences - rates.fade * H.sum(axis=1)[:, None] * X)
