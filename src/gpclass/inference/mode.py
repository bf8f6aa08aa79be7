"""The mean of q at given variances: Newton's method, the same for every method.

Each method replaces log p(y_i|f_i) by a concave curve h_i(m_i), which knows the variance of datum i: none
(Laplace), the marginal one (variational), the cavity's (expectation propagation). The mean maximises

    Psi(alpha) = Σ_i h_i(m_i) - ½ alphaᵀ m,    m = K alpha,

and its sites are tau = -h''(m), nu = h'(m) + tau m. The step from (alpha, m) with residual
r = h'(m) - alpha is

    (I + diag(tau) K) d = r,    alpha += d,    m += K d,

and lambda² = rᵀ K d, Newton's decrement, is twice the gain in Psi that is still to be had.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gpclass.core.protocols import Array, Info, Prior, Sites

# Means -> values, slopes and curvatures of the n curves, weights included.
Curve = Callable[[Array], tuple[Array, Array, Array]]

UNKNOWN = Info(False, 0, np.inf)
ROUNDING = 1e-5  # a decrement below this that no longer falls has met the rounding of K alpha


@dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """A point of the search, with what the curves say there."""

    alpha: Array
    mean: Array
    psi: float
    slope: Array
    curvature: Array
    info: Info = UNKNOWN

    @property
    def sites(self) -> Sites:
        """The sites that this point asks for."""
        return Sites(nu=self.slope - self.curvature * self.mean, tau=-self.curvature)


def find_mode(prior: Prior, curve: Curve, start: tuple[Array, Array], *, tol: float, max_iter: int) -> Mode:
    """Return the maximum of Psi, each step only as exact as the distance to it deserves."""
    point = _point(curve, *start)
    last = np.inf
    for n_iter in range(1, max_iter + 1):
        r = point.slope - point.alpha
        d, Kd = prior.newton(-point.curvature, r, rtol=min(1e-2, max(1e-9, last)))
        decrement = max(0.0, float(r @ Kd)) ** 0.5
        if decrement <= tol:
            return _point(curve, point.alpha + d, point.mean + Kd, Info(True, n_iter, decrement))
        if decrement < ROUNDING and decrement > 0.5 * last:
            return replace(point, info=Info(True, n_iter, decrement))
        moved = _line_search(curve, point, d, Kd)
        if moved is None:
            return replace(point, info=Info(decrement < ROUNDING, n_iter, decrement))
        point, last = moved, decrement
    return replace(point, info=Info(False, max_iter, last))


def first_point(prior: Prior, curve: Curve, init: Sites | None) -> tuple[Array, Array]:
    """Return the mean that the last sites have under this prior, or zero if that is better."""
    zero = np.zeros(prior.n)
    if init is None:
        return zero, zero
    alpha, mean = prior.newton(init.tau, init.nu, rtol=1e-3)
    better = _point(curve, alpha, mean).psi >= _point(curve, zero, zero).psi
    return (alpha, mean) if better else (zero, zero)


def _point(curve: Curve, alpha: Array, mean: Array, info: Info = UNKNOWN) -> Mode:
    value, slope, curvature = curve(mean)
    psi = float(value.sum()) - 0.5 * float(alpha @ mean)
    return Mode(alpha, mean, psi, slope, curvature, info)


def _line_search(curve: Curve, point: Mode, d: Array, Kd: Array) -> Mode | None:
    """Halve the step until Psi does not fall; None if it falls however short the step is."""
    slack = 1e-13 * (1.0 + abs(point.psi))
    step = 1.0
    for _ in range(30):
        moved = _point(curve, point.alpha + step * d, point.mean + step * Kd)
        if moved.psi >= point.psi - slack:
            return moved
        step *= 0.5
    return None
