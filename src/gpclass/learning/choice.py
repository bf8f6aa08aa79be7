"""The choice of a kernel by the evidence, with the length scales integrated out.

The kernel that the classifier chooses has a bias, a smooth part with one length scale per column, and a linear part:

    k(x, z) = b + v · s(x, z) + w · Σ_j (x_j - c_j)(z_j - c_j) / l_j0²,      s: RBF or Matérn 3/2.

The length scales of s are shrunk towards each other (`Shrinkage`): log l_j = log l_j0 + a + e_j, e_j ~ N(0, scale²).
Of several scales the one with the largest integrated evidence is taken. By Laplace's method in theta, at its maximum,

    log ∫ p(y|theta) p(theta) dtheta  ≈  log p(y|theta) + log p(theta) - ½ log|H| + const,

where H = A + P / scale² with A = -∂² log p(y|theta) / ∂theta² and P the projection on the deviations e. The prior has
the factor scale^-(d-1), so that the sum is that of ½ log|A| over the directions that are free, and of
½ log|I + scale² A| over the deviations: what more freedom costs. It is finite for scale -> 0, where all columns share
one length scale, and the two extremes can be compared with all in between.

A is found by differences of the gradient with the sites of the approximation held: one factorisation for each
direction, and no iterations. Sites that follow would make A smaller, by a factor of two at most in practice, so
freedom is charged a little more than it costs, ½ log 2 for a direction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from gpclass.core.hyperpriors import SCALES, Hyperprior
from gpclass.core.protocols import Array
from gpclass.learning.maximise import Learned, Report, maximise
from gpclass.learning.problem import Problem, SiteObjective

FTOL = 3e-4  # relative gain at which a candidate is good enough to be compared
MORE = 2.0  # nats that a larger scale of shrinkage must gain: the error of the integral is of that order
SMOOTH = 1.0  # nats of evidence that the other smooth part must bring in the end
WORTH = 4.0  # nats of evidence that a linear part must bring: away from the rows it goes on without end
FALLS = 0.5  # nats below the best at which larger scales of shrinkage are not tried any more
DIRECTIONS = 40  # in which the curvature is measured; of more columns, that many random ones
FLATTEST = 0.05  # curvature below which a direction counts as flat: the evidence is not quadratic that far
GUESS = 20.0  # curvature along one direction that is expected before any is known
STEP = 0.1  # of a difference in theta


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A kernel at its best hyperparameters: the problem there, how it was reached, and its integrated evidence."""

    problem: Problem
    learned: Learned
    value: float  # integrated evidence


Found = list[Candidate]  # every candidate that was reached, also by a search that is then interrupted


def without_linear_part(problem: Problem) -> Problem:
    """Return the problem with the first two parts of the kernel, smooth part and bias, where the choice begins."""
    kernel: Any = problem.kernel
    prior = problem.hyperprior
    prior = prior.first(kernel.k1.n_dims) if isinstance(prior, Hyperprior) else prior
    return replace(problem, kernel=kernel.k1, hyperprior=prior)


def choose_kernel(problem: Problem, start: Array, found: Found, report: Report | None = None) -> Candidate:
    """Return the best kernel for a problem whose kernel has all parts; ``start`` is that of the first two."""
    simple = _at_scale(without_linear_part(problem), SCALES[0])
    kernel: Any = simple.kernel
    smooth = kernel.k1.k2
    rough = kernel.k1.k1 * Matern(smooth.length_scale, smooth.length_scale_bounds, nu=1.5)
    other = replace(simple, kernel=rough + kernel.k2)
    first = _maximised(simple, start, found, report, _first_inverse(simple), None)
    second = _maximised(other, first.theta, found, report, first.inverse_hessian, first.warm)
    better = second.objective > first.objective  # they have as many hyperparameters
    alike = _integrated(*((other, second) if better else (simple, first)), found)
    best = _best_scale(alike, found, report)
    if best is not alike:
        best = _with_smooth_part(best, smooth if better else rough.k2, found, report)
    return _with_linear_part(best, problem, found, report)


def choose_scale(problem: Problem, start: Array, found: Found, report: Report | None = None) -> Candidate:
    """Return the best scale of shrinkage for a kernel of the user's, starting from ``start``."""
    return _best_scale(_candidate(_at_scale(problem, SCALES[0]), start, found, report), found, report)


def _best_scale(first: Candidate, found: Found, report: Report | None) -> Candidate:
    """Return the candidate with the best scale of shrinkage; ``first`` is that of the smallest scale."""
    prior = first.problem.hyperprior
    if not isinstance(prior, Hyperprior) or not prior.open:
        return first
    best = last = first
    for scale in SCALES[1:]:
        last = _candidate(_at_scale(last.problem, scale), last.learned.theta, found, report, last)
        if last.value > best.value + MORE:
            best = last
        if last.value < best.value - FALLS:
            break
    return best


def _with_smooth_part(best: Candidate, smooth: Any, found: Found, report: Report | None) -> Candidate:
    """Return the candidate with another smooth part, if that is better now that each column has its length scale."""
    kernel: Any = best.problem.kernel
    other = replace(best.problem, kernel=kernel.k1.k1 * smooth + kernel.k2)
    learned = best.learned
    end = _maximised(other, learned.theta, found, report, learned.inverse_hessian, learned.warm)
    if end.objective - learned.objective <= SMOOTH:
        return best
    return Candidate(other.at(end.theta), end, best.value + end.objective - learned.objective)


def _with_linear_part(best: Candidate, problem: Problem, found: Found, report: Report | None) -> Candidate:
    """Return the candidate with the linear part of the problem's kernel, if that is worth having."""
    kernel: Any = problem.kernel
    n_dims = kernel.k1.n_dims
    prior, simple = problem.hyperprior, best.problem.hyperprior
    if isinstance(prior, Hyperprior) and isinstance(simple, Hyperprior) and simple.groups:
        prior = prior.with_scale(simple.groups[0].scale)
    more = replace(best.problem, kernel=best.problem.kernel + kernel.k2, hyperprior=prior)
    inverse = best.learned.inverse_hessian
    if inverse is not None:  # nothing is known about the variance of the linear part
        inverse = np.insert(np.insert(inverse, n_dims, 0.0, axis=0), n_dims, 0.0, axis=1)
        inverse[n_dims, n_dims] = 1.0
    start = np.insert(best.learned.theta, n_dims, kernel.k2.theta)
    end = _maximised(more, start, found, report, inverse, best.learned.warm)
    if end.objective - best.learned.objective <= WORTH:
        return best
    return Candidate(more.at(end.theta), end, best.value)


# ------------------------------------------------------------------------ one candidate


def _at_scale(problem: Problem, scale: float) -> Problem:
    """Return the problem with this scale of shrinkage; with one column there is nothing to shrink."""
    prior = problem.hyperprior
    return replace(problem, hyperprior=prior.with_scale(scale)) if isinstance(prior, Hyperprior) else problem


def _candidate(
    problem: Problem, start: Array, found: Found, report: Report | None, before: Candidate | None = None
) -> Candidate:
    """Maximise the objective of a problem and integrate over its hyperparameters."""
    inverse, warm = _first_inverse(problem), None
    if before is not None and before.learned.inverse_hessian is not None:
        # What was found at another scale, with this scale's part in place of that one's.
        H = np.linalg.inv(before.learned.inverse_hessian) - _prior_hessian(before.problem)
        inverse, warm = _inverse(H + _prior_hessian(problem)), before.learned.warm
    return _integrated(problem, _maximised(problem, start, found, report, inverse, warm), found)


def _integrated(problem: Problem, learned: Learned, found: Found) -> Candidate:
    """Return the candidate of a run that has ended, with its integrated evidence and its curvature."""
    A = curvature(problem, learned.theta, learned.warm)
    learned = replace(learned, inverse_hessian=_inverse(A + _prior_hessian(problem)))
    value = learned.objective - _half_logdet(problem, learned.theta, A)
    found.append(Candidate(problem.at(learned.theta), learned, value))
    return found[-1]


def _maximised(
    problem: Problem, start: Array, found: Found, report: Report | None, inverse: Array | None, warm: Any
) -> Learned:
    """Return the end of one run. An interrupted one is kept as a candidate in case there is no other."""
    end = maximise(
        SiteObjective(problem),
        start,
        problem.bounds,
        hyperprior=problem.hyperprior,
        warm=warm,
        report=report,
        inverse_hessian=inverse,
        ftol=FTOL,
        max_iter=30,
    )
    if end.interrupted:
        found.append(Candidate(problem.at(end.theta), end, -np.inf))
        raise KeyboardInterrupt
    return end


def _first_inverse(problem: Problem) -> Array:
    """Return an inverse Hessian to start from, where only that of the prior is known."""
    p = len(problem.theta)
    return _inverse(_prior_hessian(problem) + np.diag(np.full(p, GUESS / p)))


def _inverse(H: Array) -> Array:
    """Return the inverse of a Hessian whose flat or bent directions are given some curvature."""
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    out: Array = (vectors / np.maximum(values, 0.5)) @ vectors.T
    return out


def _prior_hessian(problem: Problem) -> Array:
    """Return minus the second derivative of the log prior: P / scale² for each group of length scales."""
    out = np.zeros((len(problem.theta),) * 2)
    prior = problem.hyperprior
    for group in prior.groups if isinstance(prior, Hyperprior) else ():
        d = len(group.places)
        out[np.ix_(group.places, group.places)] = (np.eye(d) - 1.0 / d) / group.scale**2
    return out


def curvature(problem: Problem, theta: Array, sites: Any) -> Array:
    """Return A = -∂² log evidence / ∂theta² with the sites held.

    With many columns A is known along some directions Z only, and A ≈ A Z (Zᵀ A Z)⁻¹ Zᵀ A. What that misses of the
    trace, which the directions tell about as well, is spread evenly over all other directions.
    """
    p = len(theta)
    objective = SiteObjective(problem)
    Z = np.eye(p)
    if p > DIRECTIONS:
        Z = np.linalg.qr(np.random.default_rng(0).standard_normal((p, DIRECTIONS)))[0]
    middle = objective.gradient_at_sites(theta, sites)
    signs = np.where(theta + STEP <= problem.bounds[:, 1], STEP, -STEP)
    steps = signs[:, None] * Z if p <= DIRECTIONS else STEP * Z
    AZ = np.stack([middle - objective.gradient_at_sites(theta + step, sites) for step in steps.T], axis=1)
    if p <= DIRECTIONS:
        A: Array = AZ / signs
        return 0.5 * (A + A.T)
    AZ /= STEP
    values, vectors = np.linalg.eigh(0.5 * (Z.T @ AZ + AZ.T @ Z))
    good = values > 1e-3 * max(float(values.max(initial=0.0)), 1e-12)
    root = (AZ @ vectors[:, good]) / np.sqrt(values[good])
    found: Array = root @ root.T
    missed = max(0.0, p / DIRECTIONS * float(values.sum()) - float(np.trace(found)))
    Q = np.linalg.qr(root)[0]
    out: Array = found + missed / (p - Q.shape[1]) * (np.eye(p) - Q @ Q.T)
    return out


def _half_logdet(problem: Problem, theta: Array, A: Array) -> float:
    """Return ½ log|H| + (d-1) log scale, the second term being that of the prior's density: finite for any scale."""
    p = len(theta)
    units, ones = np.ones(p), np.zeros(p)
    T, spanned = np.eye(p), np.zeros(p, dtype=bool)
    prior = problem.hyperprior
    for group in prior.groups if isinstance(prior, Hyperprior) else ():
        d = len(group.places)
        # The first column of the basis is the common value, the others are the deviations.
        basis = np.linalg.qr(np.column_stack([np.ones(d), np.eye(d)[:, 1:]]))[0]
        T[np.ix_(group.places, group.places)] = basis
        units[group.places[1:]], ones[group.places[1:]] = group.scale, 1.0
        spanned[group.places] = True
    M = (T.T @ A @ T) * np.outer(units, units) + np.diag(ones)
    low, high = problem.bounds.T
    inside = spanned | ((theta > low + 1e-6) & (theta < high - 1e-6))
    values = np.linalg.eigvalsh(M[np.ix_(inside, inside)])
    return 0.5 * float(np.log(np.maximum(values, FLATTEST)).sum())
