"""The fixed-point iteration of methods whose local terms depend on the variances of q.

At given variances (marginal ones, or those of the cavities) a method is a set of curves, whose maximum `find_mode`
finds with matrix-vector products. The sites found there give new variances, for one factorisation. Means follow the
variances at once, so the iteration contracts fast, about tenfold per round. Where it is known how variances respond to
sites (`_follow`), the next round starts from a step of Newton's type in both.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from gpclass.core.protocols import Array, Info, Sites
from gpclass.inference.newton import Curve, LocalTerms, Mode, at, elementwise_sites, find_mode, first_point
from gpclass.priors.base import Conditioned, Prior

MODE_STEPS = 100  # most Newton steps in one round
STUCK = 15  # rounds without a smaller disagreement, after which the iteration is given up
FAR = 3.0  # logarithm of a ratio of variances beyond which a warm start is dropped
INNER = 0.01  # accuracy of the mode as a share of the last disagreement
FIRST = 0.1  # Newton decrement at which the first mode is accurate enough: its variances will still change
LEAST_SHARE = 0.1  # smallest fraction of the step of the logarithms of the variances
FOLLOW = 3.0  # disagreement above which a first-order step is no better than a plain round
FOLLOW_STEPS = 20  # most first-order steps between two rounds
FOLLOW_DEPTH = 8  # first-order steps that Anderson acceleration combines
SECOND_ORDER = 0.02  # a round after first-order steps from a disagreement r leaves about 0.2 r²
FOLLOW_TOL = 0.1  # share of the tolerance at which first-order steps end
LONGEST = 5.0  # longest damped step of the logarithm of a variance
CUT_OFF = 1e-8  # relative size below which a positive curvature, or a singular value, is rounding


class VarianceTerms(LocalTerms, Protocol):
    """A method on one set of data."""

    def curve(self, variance: Array, near: Local | None = None) -> Curve:
        """Return the curves at these variances; ``near``, if given, has the derivatives at similar ones."""

    def variance(self, q: Conditioned, var: Array, tau: Array) -> Array:
        """Return the variances that the curves need, given marginal variances and precisions near those of q."""

    def local(self, q: Conditioned) -> Local:
        """Return the curves at the marginals of q."""


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """The curves at the marginals of q: their variances and derivatives, and the log evidence.

    ``mode`` is the point of the curves at these variances where the mean is that of q.
    """

    variance: Array
    slope: Array
    curvature: Array
    evidence: float
    mode: Mode | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FixedPoint:
    """The end of the iteration."""

    sites: Sites
    conditioned: Conditioned
    evidence: float
    info: Info
    stationary: bool  # whether no precision was cut off at zero
    local: Local


def iterate(prior: Prior, terms: VarianceTerms, init: Any, *, tol: float, max_iter: int) -> FixedPoint:
    """Iterate the variances until the sites agree with them to ``tol``.

    A round that doubles the disagreement halves the next steps of the logarithms of the variances; other rounds
    restore them. Coupled sites of another method are not used as a start.
    """
    init = None if init is None or init.coupled else init
    search, warm = _begin(prior, terms, init), init is not None
    residual, least, reached, share = np.inf, np.inf, 0, 1.0
    for n_iter in range(1, max_iter + 1):
        last, inner = residual, max(1e-10, min(FIRST, INNER * residual))
        mode = find_mode(prior, terms, search.curve, search.start, tol=inner, max_iter=MODE_STEPS)
        sites = elementwise_sites(mode.mean, mode.slope, mode.curvature)
        q = prior.condition(sites)
        local, var = terms.local(q), q.var()
        residual = _disagreement(sites, local, q.mean, var)
        info = Info(residual <= tol, n_iter, residual)
        concave = not (mode.curvature > CUT_OFF / var).any()
        ended = FixedPoint(replace(sites, variance=search.variance), q, local.evidence, info, concave, local)
        least, reached = (residual, n_iter) if residual < least else (least, reached)
        if residual <= tol or n_iter >= reached + STUCK:
            return ended
        if warm and n_iter == 1 and _far(local.variance, search.variance):
            search, residual = _begin(prior, terms, None), np.inf
            continue
        share = max(LEAST_SHARE, 0.5 * share) if residual > 2.0 * last else min(1.0, 2.0 * share)
        followed = _follow(terms, ended, tol) if residual < min(FOLLOW, 0.5 * last) else None
        if followed is not None:
            search = followed
            continue
        variance = _damped(search.variance, local.variance, share)
        known = local.mode if share == 1.0 else None
        search = _at(terms, variance, q.alpha, q.mean, near=local, known=known)
    return ended


def _damped(variance: Array, proposed: Array, share: float) -> Array:
    """Return variances part of the way to the proposed ones."""
    if share == 1.0:
        return proposed
    with np.errstate(invalid="ignore", divide="ignore"):
        step = np.log(proposed / variance)
    step = np.where(np.isfinite(step), step, 0.0)  # a variance that rounding made negative is not changed
    return np.asarray(variance * np.exp(np.clip(share * step, -LONGEST, LONGEST)))


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """A search for the mode: the variances, their curves, and the point to start from."""

    variance: Array
    curve: Curve
    start: Mode


def _begin(prior: Prior, terms: VarianceTerms, init: Sites | None) -> Search:
    variance = prior.variances() if init is None else init.variance
    if variance is None:
        variance = terms.local(prior.condition(init)).variance
    curve = terms.curve(variance)
    return Search(variance, curve, first_point(prior, curve, init))


def _at(
    terms: VarianceTerms,
    variance: Array,
    alpha: Array,
    mean: Array,
    near: Local | None = None,
    known: Mode | None = None,
) -> Search:
    """Return the search at these variances from these means."""
    curve = terms.curve(variance, near)
    return Search(variance, curve, at(curve, alpha, mean) if known is None else known)


def _follow(terms: VarianceTerms, last: FixedPoint, tol: float) -> Search | None:
    """Return a search at variances that agree with the sites to first order; None if the prior has no response.

    If the precisions of q change by dtau, its variances change by -(Σ∘Σ) dtau to first order; Σ is its covariance.
    The error is of second order, so the next factorisation gains about twice as many digits. Means and variances step
    together, the means by (I + T K) d = h' - alpha with the sites of q: no new factorisation is needed.
    """
    q, tau, var, local = last.conditioned, last.sites.tau, last.conditioned.var(), last.local
    if not q.responds:
        return None
    target = max(FOLLOW_TOL * tol, SECOND_ORDER * last.info.residual**2)
    alpha, mean, variance, point = q.alpha, q.mean, local.variance, local.mode
    anderson, root, n = Anderson(FOLLOW_DEPTH), np.sqrt(var), len(tau)
    best, least = None, np.inf
    for _ in range(FOLLOW_STEPS):
        search = _at(terms, variance, alpha, mean, near=local, known=point)
        r, point = search.start.slope - alpha, None
        d = r - q.multiply_R(q.multiply_K(r))
        Kd, new_tau = q.multiply_K(d), np.maximum(-search.start.curvature, 0.0)
        response = q.respond(new_tau - tau)
        # With one data point this is exact: 1 / v grows by dtau.
        moved = terms.variance(q, var / (1.0 - np.clip(response / var, -2.0, 0.5)), new_tau)
        change = np.concatenate([Kd / root, np.log(moved / variance)])
        size = float(np.abs(change).max())
        best, least = (search, size) if size < least else (best, least)
        if not target < size < np.inf:
            break
        x = anderson.advance(np.concatenate([alpha + d, mean + Kd, np.log(moved)]), change)
        alpha, mean, variance = x[:n], x[n : 2 * n], np.exp(x[2 * n :])
    return best


@dataclass(slots=True, eq=False)
class Anderson:
    """Anderson acceleration: the combination of the last few g(x) that minimises the combined change g(x) - x."""

    depth: int
    g: list[Array] = field(default_factory=list)
    f: list[Array] = field(default_factory=list)

    def advance(self, g: Array, f: Array) -> Array:
        """Return the next x, given its image g and the change f, in units that make all entries comparable."""
        self.g, self.f = [*self.g, g][-self.depth :], [*self.f, f][-self.depth :]
        if len(self.f) == 1:
            return g
        weights, *_ = np.linalg.lstsq(np.diff(self.f, axis=0).T, f, rcond=CUT_OFF)
        return g - weights @ np.diff(self.g, axis=0)


def _far(proposed: Array, variance: Array) -> bool:
    """Return whether the variances of a warm start differ by orders of magnitude from those computed from it.

    Variances that are far too small make the sites and the bound flat, and the iteration may stop there.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return not bool((np.abs(np.log(proposed / variance)) <= FAR).all())


def _disagreement(sites: Sites, local: Local, mean: Array, var: Array) -> float:
    """Return the largest difference between the sites and those of their q, in posterior standard deviations."""
    by_tau = np.abs(np.maximum(-local.curvature, 0.0) - sites.tau) * var
    by_nu = np.abs(local.slope - (sites.nu - sites.tau * mean)) * np.sqrt(var)
    return float(max(by_tau.max(initial=0.0), by_nu.max(initial=0.0)))
