"""The mean of q at given variances, by a Newton search that all methods share.

A method replaces log p(y_i|f_i) by a function h_i of the mean of data point i, which depends on a
variance: zero (Laplace), the marginal one (variational), the cavity's (expectation propagation). The mean maximises

    Psi(alpha) = Σ_i h_i(m_i) - ½ alphaᵀ m,    m = K alpha,

and the sites there have the precision T = -h''(m) and nu = h'(m) + T m. The step from (alpha, m) with residual
r = h'(m) - alpha is

    (I + T K) d = r,    alpha += d,    m += K d,

and lambda² = rᵀ K d, the squared Newton decrement, is twice the remaining gain in Psi (R&W algorithm 3.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpclass.core.protocols import AnySites, Array, Info
from gpclass.priors.base import Prior

# A function of the means that returns values, first and second derivatives of the curves h_i, weights included.
Curve = Callable[[Array], tuple[Array, ...]]

ROUNDING = 1e-5  # a smaller decrement that no longer falls is the rounding error of K alpha
SHORTEST = 1e-9  # smallest fraction of a step that the line search tries
SHORTER = 0.05  # smallest factor by which the line search shortens a step
LOOSEST, TIGHTEST = 1e-2, 1e-9  # the relative tolerance of a step is the last decrement, within these bounds
WARM = 1e-3  # relative tolerance of the means of a warm start
STALLED = 0.5  # ratio of successive decrements above which exact Newton steps have stalled
STALLED_APPROXIMATE = 0.98  # the same for steps with approximate second derivatives
DIFFERENCE = 1e-3  # step of fourth-order differences in the likelihood's theta: errors of 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The local terms of a method on one set of data; each data point counts ``weight`` times.

    ``exact`` says whether `step_sites` has the exact second derivatives of the curves.
    """

    likelihood: Any
    y: Array
    weight: Array | float = 1.0
    exact: bool = True

    def step_sites(self, residual: Array, slope: Array, curvature: Array) -> AnySites:
        """Return sites with the precision of a Newton step and the residual as nu."""
        return self.likelihood.local_sites(np.zeros_like(residual), residual, curvature)

    def differences(self, value: Callable[[Any], float]) -> Array:
        """Return d value / d theta of the likelihood's own parameters, by central differences of fourth order."""
        theta, h = self.likelihood.theta, DIFFERENCE

        def at(step: Array) -> float:
            return value(replace(self, likelihood=self.likelihood.with_theta(theta + step)))

        steps = h * np.eye(len(theta))
        return np.array([8.0 * (at(e) - at(-e)) - (at(2.0 * e) - at(-2.0 * e)) for e in steps]) / (12.0 * h)


@dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """A point of the search, with the value and the derivatives of the curve there."""

    alpha: Array
    mean: Array
    psi: float
    slope: Array
    curvature: Array


def at(curve: Curve, alpha: Array, mean: Array) -> Mode:
    """Return the point with these means."""
    value, slope, curvature = curve(mean)
    return Mode(alpha, mean, float(value.sum()) - 0.5 * float(np.vdot(alpha, mean)), slope, curvature)


def first_point(prior: Prior, curve: Curve, init: AnySites | None) -> Mode:
    """Return the point at the mean for the previous sites under this prior, or at zero if that is not finite."""
    warm = None if init is None else at(curve, *prior.solve(init, rtol=WARM))
    zero: Array = np.zeros(prior.shape)
    return at(curve, zero, zero) if warm is None or not np.isfinite(warm.psi) else warm


def find_mode(
    prior: Prior, terms: Terms, curve: Curve, point: Mode, *, tol: float, max_iter: int
) -> tuple[Mode, Info]:
    """Return a point within ``tol`` of the maximum of Psi; each step is solved only as accurately as needed.

    The mean of q for the sites at that point is the next Newton step, so the last step is not taken here.
    """
    last, stalled = np.inf, STALLED if terms.exact else STALLED_APPROXIMATE
    for n_iter in range(1, max_iter + 1):
        r = point.slope - point.alpha
        sites = terms.step_sites(r, point.slope, point.curvature)
        if terms.exact:
            # The decrement is at most (rᵀ T⁻¹ r)^½, as (K⁻¹ + T)⁻¹ <= T⁻¹. This holds for coupled sites too:
            # diag(a)⁻¹ r is an inverse image of r, whose entries for a data point sum to zero.
            with np.errstate(over="ignore"):
                most = float(np.sqrt(np.vdot(r, r / np.maximum(sites.a, 1e-300))))
            if most <= tol:
                return point, Info(True, n_iter, most)
        d, Kd = prior.solve(sites, rtol=min(LOOSEST, max(TIGHTEST, last)))
        decrement = float(np.maximum(np.vdot(r, Kd), 0.0)) ** 0.5
        rounding = decrement < ROUNDING
        if decrement <= tol or (rounding and decrement > stalled * last):
            return point, Info(True, n_iter, decrement)
        moved = _line_search(curve, point, d, Kd) if np.isfinite(decrement) else None
        if moved is None:
            return point, Info(rounding, n_iter, decrement)
        point, last = moved, decrement
    return point, Info(False, max_iter, last)


def _line_search(curve: Curve, point: Mode, d: Array, Kd: Array) -> Mode | None:
    """Shorten the step until Psi does not fall; return None if it falls even for the shortest step.

    The next length maximises a parabola through known values, between 1/20 and 1/2 of the last length.
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
