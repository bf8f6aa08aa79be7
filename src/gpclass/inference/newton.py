"""The mean of q at given variances, by a Newton search that all methods share.

A method replaces log p(y_i|f_i) by a function h_i of the mean of data point i, which depends on a
variance: zero (Laplace), the marginal one (variational), the cavity's (expectation propagation). The mean maximises

    Psi(alpha) = Σ_i h_i(m_i) - ½ alphaᵀ m,    m = K alpha,

and the sites there have the precision T = -h''(m) and nu = h'(m) + T m. The step from (alpha, m) with residual
r = h'(m) - alpha is

    (I + T K) d = r,    alpha += d,    m += K d,

and lambda² = rᵀ K d, Newton's decrement, is twice the gain in Psi that remains (R&W algorithm 3.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from gpclass.core.protocols import AnySites, Array, Info, Sites
from gpclass.priors.base import Prior

# Means -> values, slopes and curvatures of the n functions h, weights included.
Curve = Callable[[Array], tuple[Array, Array, Array]]

UNKNOWN = Info(False, 0, np.inf)
COIN = -0.69  # Psi per latent value if all probabilities are ½
ROUNDING = 1e-5  # a decrement below this that no longer falls is the rounding error of K alpha
SHORTEST = 1e-9  # smallest fraction of a step that the line search tries
LOOSEST, TIGHTEST = (
    1e-2,
    1e-9,
)  # range of the relative accuracy of a step, which is that of the last decrement
WARM = 1e-3  # relative accuracy of the means of a warm start
SHORTER = 0.05  # smallest factor by which the line search shortens a step
STALLED = 0.5  # ratio of successive decrements above which exact Newton steps have stalled
STALLED_APPROXIMATE = 0.98  # the same for steps with approximate second derivatives


class LocalTerms(Protocol):
    """The functions h of the data points for a method at fixed variances."""

    @property
    def exact_newton(self) -> bool:
        """Whether `step_sites` has the exact second derivatives of the curve."""

    def step_sites(self, residual: Array, slope: Array, curvature: Array) -> AnySites:
        """Return the sites whose precision is that of a Newton step, with the residual as nu."""


@dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """A point of the search, with the value and the derivatives of the curve there."""

    alpha: Array
    mean: Array
    psi: float
    slope: Array
    curvature: Array
    info: Info = UNKNOWN


def elementwise_sites(mean: Array, slope: Array, curvature: Array) -> Sites:
    """Return the sites tau = -h'', nu = h' + tau m of one curve per latent value; a negative tau is set to zero."""
    tau = np.maximum(-curvature, 0.0)
    return Sites(nu=slope + tau * mean, tau=tau)


def find_mode(
    prior: Prior, terms: LocalTerms, curve: Curve, start: Mode, *, tol: float, max_iter: int
) -> Mode:
    """Return a point within ``tol`` of the maximum of Psi; steps are solved only as accurately as needed.

    The mean of q for the sites at that point is the next Newton step, so the last step is not taken here; if
    it is not a Newton step, the last point is not evaluated.
    """
    point, last = start, np.inf
    stalled = STALLED if terms.exact_newton else STALLED_APPROXIMATE
    for n_iter in range(1, max_iter + 1):
        r = point.slope - point.alpha
        sites = terms.step_sites(r, point.slope, point.curvature)
        if terms.exact_newton and _most(sites, r) <= tol:
            return replace(point, info=Info(True, n_iter, _most(sites, r)))
        d, Kd = prior.solve(sites, rtol=min(LOOSEST, max(TIGHTEST, last)))
        decrement = float(np.maximum(np.vdot(r, Kd), 0.0)) ** 0.5
        if not np.isfinite(decrement):
            return replace(point, info=Info(False, n_iter, decrement))
        if decrement <= tol:
            point = replace(point, info=Info(True, n_iter, decrement))
            return point if terms.exact_newton else _stepped(point, d, Kd)
        if decrement < ROUNDING and decrement > stalled * last:
            return replace(point, info=Info(True, n_iter, decrement))
        moved = _line_search(curve, point, d, Kd)
        if moved is None:
            return replace(point, info=Info(decrement < ROUNDING, n_iter, decrement))
        point, last = moved, decrement
    return replace(point, info=Info(False, n_iter, last))


def first_point(prior: Prior, curve: Curve, init: AnySites | None) -> Mode:
    """Return the mean for the last sites under this prior, or zero if that is better."""
    zero: Array = np.zeros(prior.shape)
    if init is None:
        return at(curve, zero, zero)
    warm = at(curve, *prior.solve(init, rtol=WARM))
    if warm.psi >= COIN * zero.size:
        return warm
    cold = at(curve, zero, zero)
    return warm if warm.psi >= cold.psi else cold


def at(curve: Curve, alpha: Array, mean: Array, info: Info = UNKNOWN) -> Mode:
    """Return the point with these means."""
    value, slope, curvature = curve(mean)
    psi = float(value.sum()) - 0.5 * float(np.vdot(alpha, mean))
    return Mode(alpha, mean, psi, slope, curvature, info)


def _stepped(point: Mode, d: Array, Kd: Array) -> Mode:
    """Return the point after a last, small step: (I + T K) d = h' - alpha, so that h' - T K d is the new alpha."""
    return replace(point, alpha=point.alpha + d, mean=point.mean + Kd, slope=point.alpha + d)


def _most(sites: AnySites, r: Array) -> float:
    """Return a bound on the decrement that needs no solution: (rᵀ T⁻¹ r)^½, as (K⁻¹ + T)⁻¹ <= T⁻¹.

    It also holds for coupled sites: diag(a)⁻¹ r is an inverse image of r, whose entries for a data point sum to zero.
    """
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.vdot(r, r / np.maximum(sites.a, 1e-300))))


def _line_search(curve: Curve, point: Mode, d: Array, Kd: Array) -> Mode | None:
    """Shorten the step until Psi does not fall; None if it falls even for the shortest step.

    The next length maximises the parabola through known values, between a twentieth and a half of the last one.
    """
    slack, slope = 1e-13 * (1.0 + abs(point.psi)), float(np.vdot(point.slope - point.alpha, Kd))
    step = 1.0
    while step > SHORTEST:
        moved = at(curve, point.alpha + step * d, point.mean + step * Kd)
        if np.isfinite(moved.psi) and moved.psi >= point.psi - slack:
            return moved
        promised = max(slope * step, 0.0)
        best = 0.5 * promised / (promised + point.psi - moved.psi)
        step *= float(np.clip(best, SHORTER, 0.5)) if np.isfinite(best) else 0.5
    return None
