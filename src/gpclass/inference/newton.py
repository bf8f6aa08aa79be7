"""The mean of q at given variances, by a Newton search that all methods share, and the iteration of the variances.

A method replaces log p(y_i|f_i) by a function h_i of the mean of data point i, which depends on a
variance: zero (Laplace), the marginal one (variational), the cavity's (expectation propagation). The mean maximises

    Psi(alpha) = Σ_i h_i(m_i) - ½ alphaᵀ m,    m = K alpha,

and the sites there have the precision T = -h''(m) and nu = h'(m) + T m. The step from (alpha, m) with residual
r = h'(m) - alpha is

    (I + T K) d = r,    alpha += d,    m += K d,

and lambda² = rᵀ K d, the squared Newton decrement, is twice the remaining gain in Psi (R&W algorithm 3.1).

Where the curves depend on the variances of q, the sites found by the search give new variances, for one factorisation.
Means follow the variances at once, so the error falls about tenfold per iteration. Where the derivative of the
variances with respect to sites is available (`_follow`), the next iteration starts from an approximate Newton step in
both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gpclass.core.protocols import Adjoint, AnySites, Array, Info, Result, Sites
from gpclass.priors.base import Conditioned, Prior

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
MODE_STEPS = 100  # maximum number of Newton steps in one iteration
STUCK = 15  # iterations without a smaller disagreement after which the method stops
FAR = 3.0  # change of a log variance beyond which a warm start is discarded
INNER = 0.01  # tolerance of the mode search, as a fraction of the previous disagreement
FIRST = 0.1  # tolerance of the first mode search, a Newton decrement: the variances will still change
LEAST_SHARE = 0.1  # smallest damping factor of a step in the log variances
FOLLOW = 3.0  # disagreement above which first-order steps do not help
FOLLOW_STEPS = 20  # maximum number of first-order steps between two factorisations
DEPTH = 8  # number of iterations, or of first-order steps, that Anderson acceleration combines
SECOND_ORDER = 0.02  # first-order steps at a disagreement r end at this times r²; their error is 0.2 r²
FOLLOW_TOL = 0.1  # tolerance of first-order steps, as a fraction of ``tol``
SLOW = 0.5  # ratio of successive disagreements above which acceleration begins
LONGEST = 5.0  # largest damped step of a log variance
CUT_OFF = 1e-8  # relative size below which a positive curvature, or a singular value, is a rounding error


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


# ----------------------------------------------------- fixed points of means and variances


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """The curves at the marginals of q: their variances and derivatives, and the log evidence."""

    variance: Array
    slope: Array
    curvature: Array
    evidence: float


@dataclass(frozen=True, slots=True, eq=False)
class VarianceTerms(Terms, ABC):
    """Local terms that depend on variances."""

    @abstractmethod
    def curve(self, variance: Array, slope: Array | None = None) -> Curve:
        """Return the curves at these variances; ``slope`` is an estimate of their slopes at the first call."""

    def variance(self, var: Array, tau: Array) -> Array:
        """Return the variances that the curves need, given marginal variances and precisions of sites."""
        return var

    @abstractmethod
    def local(self, q: Conditioned) -> Local:
        """Return the curves at the marginals of q."""

    @abstractmethod
    def likelihood_gradient(self, q: Any) -> Array:
        """Return d evidence / d theta of the likelihood."""


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """A search for the mode: the variances, their curves, and the point to start from."""

    variance: Array
    curve: Curve
    start: Mode


def iterate(prior: Prior, terms: VarianceTerms, init: Any, *, tol: float, max_iter: int) -> Result:
    """Return the fixed point, found by iterating the variances until the sites agree with them to ``tol``.

    From the first iteration that does not halve the disagreement, the log variances are accelerated (`anderson`): at
    large prior variances they would oscillate. One that doubles it halves the next step, others make it longer again.
    Coupled sites of another method are not used as a start.
    """
    init = None if init is None or init.coupled else init
    search = _begin(prior, terms, init)
    residual, least, reached, share = np.inf, np.inf, 0, 1.0
    images, changes, slow = list[Array](), list[Array](), False
    for n_iter in range(1, max_iter + 1):
        last, inner = residual, max(1e-10, min(FIRST, INNER * residual))
        mode, _ = find_mode(prior, terms, search.curve, search.start, tol=inner, max_iter=MODE_STEPS)
        tau = np.maximum(-mode.curvature, 0.0)  # zero where log p(y|f) is not concave
        sites = Sites(mode.slope + tau * mode.mean, tau, search.variance)
        q = prior.condition(sites)
        local = terms.local(q)
        residual = _disagreement(sites, local, q)
        least, reached = (residual, n_iter) if residual < least else (least, reached)
        if residual <= tol or n_iter >= reached + STUCK:
            break
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.log(local.variance / search.variance)
        # Variances that are far too small make the sites and the bound flat, and the iteration may stop there.
        if init is not None and n_iter == 1 and not (np.abs(ratio) <= FAR).all():
            search, residual = _begin(prior, terms, None), np.inf
            continue
        share = max(LEAST_SHARE, 0.5 * share) if residual > 2.0 * last else min(1.0, 1.5 * share)
        if q.responds and residual < min(FOLLOW, 0.5 * last):
            target = max(FOLLOW_TOL * tol, SECOND_ORDER * residual**2)
            search = _follow(prior, terms, q, tau, local, target)
            continue
        ratio = np.where(np.isfinite(ratio), ratio, 0.0)  # negative variances (rounding) stay as they are
        with np.errstate(divide="ignore", invalid="ignore"):  # variances may be zero
            before = np.log(search.variance)
            images, changes = [*images, before + ratio][-DEPTH:], [*changes, ratio][-DEPTH:]
            slow = slow or residual > SLOW * last
            end = anderson(images, changes) if slow else images[-1]
            step = np.nan_to_num(share * (end - before))
        variance = search.variance * np.exp(np.clip(step, -LONGEST, LONGEST))
        curve = terms.curve(variance, local.slope)
        search = Search(variance, curve, at(curve, q.alpha, q.mean))
    adjoint, gradient = partial(Adjoint, q.alpha, q), partial(terms.likelihood_gradient, q)
    info, exact = Info(residual <= tol, n_iter, residual), not (mode.curvature > CUT_OFF / q.var).any()
    return Result(sites, q, local.evidence, adjoint, info, gradient, exact)


def _begin(prior: Prior, terms: VarianceTerms, init: Sites | None) -> Search:
    variance = prior.variances() if init is None else init.variance
    if variance is None:
        variance = terms.local(prior.condition(init)).variance
    curve = terms.curve(variance)
    return Search(variance, curve, first_point(prior, curve, init))


def _follow(
    prior: Prior, terms: VarianceTerms, q: Conditioned, tau: Array, local: Local, target: float
) -> Search:
    """Return a search at variances that agree with the sites to first order.

    If the precisions of q change by dtau, its variances change by -(Σ∘Σ) dtau to first order; Σ is its covariance.
    The error is of second order, so the next factorisation gains about twice as many digits. Means and variances step
    together, the means by (I + T K) d = h' - alpha with the sites of q: no new factorisation is needed.
    """
    alpha, mean, variance, var = q.alpha, q.mean, local.variance, q.var
    images, changes, n, least = list[Array](), list[Array](), len(tau), np.inf
    for _ in range(FOLLOW_STEPS):
        curve = terms.curve(variance, local.slope)
        start = at(curve, alpha, mean)
        d = q.reduce(start.slope - alpha)
        Kd, new_tau = prior.multiply(d), np.maximum(-start.curvature, 0.0)
        # This form is exact for one data point, where 1 / v grows by dtau.
        moved = terms.variance(var / (1.0 - np.clip(q.respond(new_tau - tau) / var, -2.0, 0.5)), new_tau)
        change = np.concatenate([Kd / np.sqrt(var), np.log(moved / variance)])
        size = float(np.abs(change).max())
        if size < least or least == np.inf:
            best, least = Search(variance, curve, start), size
        if not target < size < np.inf:
            break
        images.append(np.concatenate([alpha + d, mean + Kd, np.log(moved)]))
        changes.append(change)
        x = anderson(images[-DEPTH:], changes[-DEPTH:])
        alpha, mean, variance = x[:n], x[n : 2 * n], np.exp(x[2 * n :])
    return best


def anderson(images: list[Array], changes: list[Array]) -> Array:
    """Return the next x, given the last few g(x) of an iteration x → g(x) and the changes g(x) - x.

    It is the combination of these g(x) that minimises the combined change (Anderson acceleration).
    """
    if len(changes) == 1:
        return images[0]
    differences = np.diff(changes, axis=0).reshape(len(changes) - 1, -1)
    weights, *_ = np.linalg.lstsq(differences.T, changes[-1].ravel(), rcond=CUT_OFF)
    return images[-1] - np.tensordot(weights, np.diff(images, axis=0), 1)


def _disagreement(sites: Sites, local: Local, q: Conditioned) -> float:
    """Return the largest difference between the sites of q and the sites computed from q, in posterior deviations."""
    by_tau = np.abs(np.maximum(-local.curvature, 0.0) - sites.tau) * q.var
    by_nu = np.abs(local.slope - (sites.nu - sites.tau * q.mean)) * np.sqrt(q.var)
    return float(max(by_tau.max(initial=0.0), by_nu.max(initial=0.0)))
