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

A is found by differences of the gradient with the sites of the approximation held, one factorisation for each
direction; sites follow the hyperparameters slowly.
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

FTOL = 1e-5  # relative gain at which a candidate is good enough to be compared
WORTH = 1.0  # nats of evidence that a part of the kernel must bring
FALLS = 1.0  # nats below the best at which larger scales of shrinkage are not tried any more
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

    @property
    def inverse(self) -> Array | None:
        """The inverse Hessian of minus the objective."""
        return self.learned.inverse_hessian


def choose_kernel(problem: Problem, start: Array, report: Report | None = None) -> Candidate:
    """Return the best kernel for a problem whose kernel has all parts, starting from ``start``."""
    kernel: Any = problem.kernel
    problem = _at_scale(problem, SCALES[0])
    best = _candidate(problem, start, report)
    smooth = kernel.k1.k1.k2
    rough = kernel.k1.k1.k1 * Matern(smooth.length_scale, smooth.length_scale_bounds, nu=1.5)
    other = replace(problem, kernel=rough + kernel.k1.k2 + kernel.k2)
    best = max(best, _candidate(other, best.learned.theta, report, best), key=lambda found: found.value)
    best = choose_scale(best, report)
    return _without_linear_part(best, report)


def choose_scale(first: Candidate, report: Report | None = None) -> Candidate:
    """Return the candidate with the best scale of shrinkage; ``first`` is that of the smallest scale."""
    best = last = first
    groups = first.problem.hyperprior
    if not isinstance(groups, Hyperprior) or not groups.open:
        return first
    for scale in SCALES[1:]:
        last = _candidate(_at_scale(last.problem, scale), last.learned.theta, report, last)
        if last.value > best.value:
            best = last
        if last.value < best.value - FALLS or last.learned.interrupted:
            break
    return best


def first_candidate(problem: Problem, start: Array, report: Report | None = None) -> Candidate:
    """Return the candidate of the smallest scale for a user's kernel with an open `Shrinkage`."""
    return _candidate(_at_scale(problem, SCALES[0]), start, report)


def _without_linear_part(best: Candidate, report: Report | None) -> Candidate:
    """Return the candidate without its linear part, unless that is worth having."""
    kernel: Any = best.problem.kernel
    low = float(kernel.k2.k1.bounds[0, 0])
    simple = replace(best.problem, kernel=kernel.k1, hyperprior=_restricted(best.problem, kernel.k1.n_dims))
    theta = best.learned.theta
    kept = np.delete(
        np.arange(len(theta)), kernel.k1.n_dims
    )  # the variance of the linear part is the last one
    inverse = None if best.inverse is None else best.inverse[np.ix_(kept, kept)]
    if theta[kernel.k1.n_dims] <= low + 1e-3:
        learned = replace(best.learned, theta=theta[kept], inverse_hessian=inverse)
        return Candidate(simple, learned, best.value)
    found = _maximised(simple, theta[kept], report, inverse, best.learned.warm)
    if best.learned.objective - found.objective > WORTH:
        return best
    return Candidate(simple.at(found.theta), found, best.value)


# ------------------------------------------------------------------------ one candidate


def _restricted(problem: Problem, n_dims: int) -> Any:
    """Return the prior on the first hyperparameters alone."""
    prior = problem.hyperprior
    return prior.first(n_dims) if isinstance(prior, Hyperprior) else prior


def _at_scale(problem: Problem, scale: float) -> Problem:
    """Return the problem with this scale of shrinkage; with one column there is nothing to shrink."""
    prior = problem.hyperprior
    return replace(problem, hyperprior=prior.with_scale(scale)) if isinstance(prior, Hyperprior) else problem


def _candidate(
    problem: Problem, start: Array, report: Report | None, before: Candidate | None = None
) -> Candidate:
    """Maximise the objective of a problem and integrate over its hyperparameters."""
    hessian = _prior_hessian(problem)
    if before is None:
        H = hessian + np.diag(np.full(len(start), GUESS / max(1, len(start))))
        warm = None
    else:
        # What was found at another scale, with this scale's part in place of that one's.
        H = np.linalg.inv(before.inverse) - _prior_hessian(before.problem) + hessian  # type: ignore[arg-type]
        warm = before.learned.warm if before.problem.kernel.n_dims == problem.kernel.n_dims else None
    learned = _maximised(problem, start, report, _inverse(H), warm)
    A = curvature(problem, learned)
    learned = replace(learned, inverse_hessian=_inverse(A + hessian))
    return Candidate(
        problem.at(learned.theta), learned, learned.objective - _half_logdet(problem, learned.theta, A)
    )


def _maximised(problem: Problem, start: Array, report: Report | None, inverse: Any, warm: Any) -> Learned:
    return maximise(
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


def curvature(problem: Problem, learned: Learned) -> Array:
    """Return A = -∂² log evidence / ∂theta² with the sites held.

    With many columns A is known along some directions Z only, and A ≈ A Z (Zᵀ A Z)⁻¹ Zᵀ A.
    """
    theta, p = learned.theta, len(learned.theta)
    objective = SiteObjective(problem)
    Z = np.eye(p)
    if p > DIRECTIONS:
        Z = np.linalg.qr(np.random.default_rng(0).standard_normal((p, DIRECTIONS)))[0]
    middle = objective.gradient_at_sites(theta, learned.warm)
    signs = np.where(theta + STEP <= problem.bounds[:, 1], STEP, -STEP)
    steps = signs[:, None] * Z if p <= DIRECTIONS else STEP * Z
    AZ = np.stack(
        [middle - objective.gradient_at_sites(theta + step, learned.warm) for step in steps.T], axis=1
    )
    if p <= DIRECTIONS:
        A: Array = AZ / signs
        return 0.5 * (A + A.T)
    AZ /= STEP
    values, vectors = np.linalg.eigh(0.5 * (Z.T @ AZ + AZ.T @ Z))
    good = values > 1e-3 * max(float(values.max(initial=0.0)), 1e-12)
    root = (AZ @ vectors[:, good]) / np.sqrt(values[good])
    out: Array = root @ root.T
    return out


def _half_logdet(problem: Problem, theta: Array, A: Array) -> float:
    """Return ½ log|H| plus the logarithm of the prior's factor scale^-(d-1): finite for any scale."""
    p = len(theta)
    units, ones = np.ones(p), np.zeros(p)
    T, spanned = np.eye(p), np.zeros(p, dtype=bool)
    prior = problem.hyperprior
    normaliser = 0.0
    for group in prior.groups if isinstance(prior, Hyperprior) else ():
        d = len(group.places)
        # The first column of the basis is the common value, the others are the deviations.
        basis = np.linalg.qr(np.column_stack([np.ones(d), np.eye(d)[:, 1:]]))[0]
        T[np.ix_(group.places, group.places)] = basis
        units[group.places[1:]], ones[group.places[1:]] = group.scale, 1.0
        spanned[group.places] = True
        normaliser += (d - 1) * (np.log(group.scale) + 0.5 * np.log(2.0 * np.pi))
    M = (T.T @ A @ T) * np.outer(units, units) + np.diag(ones)
    low, high = problem.bounds.T
    inside = spanned | ((theta > low + 1e-6) & (theta < high - 1e-6))
    values = np.linalg.eigvalsh(M[np.ix_(inside, inside)])
    # log p(theta) has -(d-1) log scale in it, and |H| has scale^-2(d-1): they cancel.
    return 0.5 * float(np.log(np.maximum(values, FLATTEST)).sum()) - normaliser
