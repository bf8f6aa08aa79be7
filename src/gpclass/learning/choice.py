"""The choice of a model by its integrated evidence.

The kernel that the classifier chooses has a bias, a smooth part with one length scale per column, and perhaps a linear
part:

    k(x, z) = b + v · s(x, z) + w · Σ_j (x_j - c_j)(z_j - c_j) / l_j0²,      s: RBF or Matérn 3/2.

Every hyperparameter has a proper prior: variances and the common length scale wide log-normal ones, the deviations of
the length scales of the columns from each other log l_j = log l_j0 + a + e_j, e_j ~ N(0, scale²) (`Shrinkage`). A model
is a choice of smooth part, scale and linear part. Let theta = mean + R z with z ~ N(0, I) in the prior. By Laplace's
method at the maximum theta*, with A = -∂² log p(y|theta) / ∂theta² there,

    log p(y|M)  ≈  log p(y|theta*, M) - ½ |z*|² - ½ log|I + Rᵀ A R|.

It compares all models, and the largest is taken. The search visits the neighbours of the best model so far, which
differ in one choice, and ends when none is better. Each starts from the theta, the sites and the curvature of its
neighbour.

A is found by differences of the gradient with the sites of the approximation held: one factorisation for each
direction, and no iterations. On further rungs the neighbours of the model chosen before are compared again; A is
measured on the rows of the first rung there, and grows in proportion to the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from gpclass.core.hyperpriors import SCALES, Hyperprior
from gpclass.core.protocols import Array
from gpclass.learning.maximise import Learned, Report, maximise
from gpclass.learning.problem import Problem, SiteObjective

DIRECTIONS = 64  # in which the curvature is measured; with more hyperparameters, that many random ones
SHARE = (
    0.1  # of the tolerance of a rung: values that are compared must not differ by where their searches ended
)
STEP = 0.1  # most that an element of theta changes for a difference of gradients


class Model(NamedTuple):
    """Position of the smooth part in (RBF, Matérn 3/2), that of the scale in `SCALES`, and one for a linear part."""

    smooth: int = 0
    scale: int = 0
    linear: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The models of a problem whose kernel has all parts, or whose scale of shrinkage alone is to be chosen."""

    problem: Problem
    parts: bool
    few: Problem | None = None  # the problem on fewer rows, on which curvatures are measured

    def neighbours(self, model: Model) -> Iterator[Model]:
        """Yield the models that differ from this one in one choice."""
        prior = self.problem.hyperprior
        if self.parts:
            yield model._replace(smooth=1 - model.smooth)
            yield model._replace(linear=1 - model.linear)
        if isinstance(prior, Hyperprior) and prior.open:
            for scale in (model.scale + 1, model.scale - 1):
                if 0 <= scale < len(SCALES):
                    yield model._replace(scale=scale)

    def at(self, model: Model, few: Problem | None = None) -> Problem:
        """Return the problem of a model, on fewer rows if such are given."""
        problem, prior = few or self.problem, self.problem.hyperprior
        kernel: Any = self.problem.kernel
        if self.parts:
            smooth = kernel.k1.k1.k2
            if model.smooth:
                smooth = Matern(smooth.length_scale, smooth.length_scale_bounds, nu=1.5)
            simple = kernel.k1.k1.k1 * smooth + kernel.k1.k2
            if isinstance(prior, Hyperprior) and not model.linear:
                prior = prior.first(simple.n_dims)
            kernel = simple + kernel.k2 if model.linear else simple
        if isinstance(prior, Hyperprior):
            prior = prior.with_scale(SCALES[model.scale])
        return replace(problem, kernel=kernel, hyperprior=prior)

    def start(self, model: Model, near: Candidate) -> Array:
        """Return the theta of a neighbour as one of this model."""
        theta, kernel = near.learned.theta, self.problem.kernel
        if model.linear > near.model.linear:
            theta = np.insert(theta, kernel.k1.n_dims, kernel.k2.theta)
        elif model.linear < near.model.linear:
            theta = np.delete(theta, kernel.k1.n_dims)
        return theta


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A model at its best hyperparameters: the problem there, how it was reached, its integrated evidence and A."""

    model: Model
    problem: Problem
    learned: Learned
    value: float = -np.inf
    curvature: Array | None = None


Found = list[Candidate]  # every candidate that was reached, also by a search that is then interrupted


def choose(
    grid: Grid, starts: list[Array] | Candidate, found: Found, tol: float, report: Report | None = None
) -> Candidate:
    """Return the model with the largest integrated evidence.

    The search begins at the best of the ``starts`` of the simplest model, or at the model chosen on fewer rows.
    """
    if isinstance(starts, Candidate):
        best = _candidate(grid, starts.model, starts.learned.theta, starts, found, tol, report)
    else:
        runs = [_candidate(grid, Model(), theta, None, found, tol, report) for theta in starts]
        best = max(runs, key=lambda each: each.value)
    seen = {best.model}
    while True:
        center = best
        for model in grid.neighbours(center.model):
            if model not in seen:
                seen.add(model)
                start = grid.start(model, center)
                other = _candidate(grid, model, start, center, found, tol, report)
                best = other if other.value > best.value else best
        if best is center:
            return best


def _candidate(
    grid: Grid,
    model: Model,
    start: Array,
    near: Candidate | None,
    found: Found,
    tol: float,
    report: Report | None,
) -> Candidate:
    """Maximise the objective of a model and integrate over its hyperparameters."""
    problem = grid.at(model)
    prior = prior_of(problem)
    learned = maximise(
        SiteObjective(problem),
        prior.tied(start),
        problem.support,
        hyperprior=problem.hyperprior,
        warm=near.learned.warm if near is not None and near.problem.n_rows == problem.n_rows else None,
        report=report,
        inverse_hessian=_first_inverse(problem, prior, near),
        tol=SHARE * tol,
    )
    if learned.interrupted:
        found.append(Candidate(model, problem.at(learned.theta), learned))
        raise KeyboardInterrupt
    few, sites, times = problem, learned.warm, 1.0
    if grid.few is not None:
        few, times = grid.at(model, grid.few), problem.n_rows / grid.few.n_rows
        sites = SiteObjective(few).evaluate(learned.theta, gradient=False).warm
    A, inverse, log_volume = curvature(few, prior, learned.theta, sites, times)
    learned = replace(learned, inverse_hessian=inverse)
    found.append(Candidate(model, problem.at(learned.theta), learned, learned.objective - log_volume, A))
    return found[-1]


def prior_of(problem: Problem) -> Hyperprior:
    """Return the hyperprior of a problem, or one without any terms."""
    prior = problem.hyperprior
    return prior if isinstance(prior, Hyperprior) else Hyperprior(problem.kernel, {})


def _first_inverse(problem: Problem, prior: Hyperprior, near: Candidate | None) -> Array:
    """Return the inverse Hessian to start from: that of the prior, with the curvature found at a neighbour if known."""
    p = len(problem.theta)
    R = prior.unwhitened(np.eye(prior.n_free(p)), p)
    if near is None or near.curvature is None or p > DIRECTIONS:
        return prior.unwhitened(R.T, p)  # R Rᵀ
    A = _carried(near, problem) * (problem.n_rows / near.problem.n_rows)
    values, vectors = np.linalg.eigh(R.T @ A @ R)
    RV = R @ vectors
    out: Array = (RV / (1.0 + np.maximum(values, 0.0))) @ RV.T
    return out


def _carried(near: Candidate, problem: Problem) -> Array:
    """Return the curvature of a neighbour as one of this problem's theta.

    Along length scales that were tied together it is not known, and taken to be that of their common value, divided
    evenly; along the variance of a linear part it is taken to be zero.
    """
    A: Array = np.array(near.curvature)
    for group in prior_of(near.problem).groups:
        if group.scale == 0.0 and len(group.places) > 1:
            d, block = len(group.places), np.ix_(group.places, group.places)
            A[block] += max(float(A[block].sum()), 0.0) / d * (np.eye(d) - 1.0 / d)
    p, at = len(problem.theta), min(near.problem.kernel.n_dims, problem.kernel.n_dims)
    if p > len(A):
        A = np.insert(np.insert(A, at, 0.0, axis=0), at, 0.0, axis=1)
    elif p < len(A):
        A = np.delete(np.delete(A, at, axis=0), at, axis=1)
    return A


def curvature(
    problem: Problem, prior: Hyperprior, theta: Array, sites: Any, times: float = 1.0
) -> tuple[Array | None, Array, float]:
    """Return A, None with many hyperparameters; the inverse of A + the prior's Hessian; and ½ log|I + Rᵀ A R|.

    A is that of the problem, ``times`` a number.

    Directions in which the evidence is not concave count as flat. With many hyperparameters M = Rᵀ A R is known along
    orthonormal directions Q only, those of wide priors and random ones, and M ≈ M Q (Qᵀ M Q)⁻¹ Qᵀ M (Nyström). What
    that misses of the trace, which Q tells about as well, is spread evenly over all other directions.
    """
    p = len(theta)
    free = prior.n_free(p)
    Q, exact = np.eye(free), free
    if free > DIRECTIONS:
        first = prior.wide_directions(p)
        exact = min(first.shape[1], DIRECTIONS // 2)
        random = np.random.default_rng(0).standard_normal((free, DIRECTIONS - exact))
        Q = np.linalg.qr(np.column_stack([first[:, :exact], random]))[0]
    MQ = times * _differences(problem, prior, theta, sites, Q)
    inside = 0.5 * (Q.T @ MQ + MQ.T @ Q)
    values, vectors = np.linalg.eigh(inside)
    A, rest = None, 0.0
    if free <= DIRECTIONS:
        R = prior.unwhitened(np.eye(free), p)
        back = np.linalg.pinv(R)
        A = back.T @ (0.5 * (MQ + MQ.T)) @ back
    else:
        diagonal = np.maximum(inside.diagonal(), 0.0)
        trace = float(diagonal[:exact].sum() + (free - exact) * diagonal[exact:].mean())
        good = values > 1e-3 * max(float(values.max()), 1e-12)
        U, roots, _ = np.linalg.svd((MQ @ vectors[:, good]) / np.sqrt(values[good]), full_matrices=False)
        values, vectors = roots**2, U
        rest = max(0.0, trace - float(values.sum())) / (free - len(values))
    values = np.maximum(values, 0.0)
    log_volume = 0.5 * float(np.log1p(values).sum() + (free - len(values)) * np.log1p(rest))
    # (I + M)⁻¹ = I / (1 + rest) + V (1 / (1 + values) - 1 / (1 + rest)) Vᵀ
    inner = np.eye(free) / (1.0 + rest) + (vectors * (1.0 / (1.0 + values) - 1.0 / (1.0 + rest))) @ vectors.T
    half = prior.unwhitened(inner, p)
    return A, prior.unwhitened(half.T, p), log_volume


def _differences(problem: Problem, prior: Hyperprior, theta: Array, sites: Any, Q: Array) -> Array:
    """Return Rᵀ A R Q by differences of the gradient with the sites held."""
    objective, p = SiteObjective(problem), len(theta)
    directions = prior.unwhitened(Q, p)
    lengths = STEP / np.abs(directions).max(axis=0)
    middle = objective.gradient_at_sites(theta, sites)
    out = np.empty((p, Q.shape[1]))
    for k, length in enumerate(lengths):
        step = length * directions[:, k]
        if (theta + step > problem.bounds[:, 1]).any():
            step, length = -step, -length
        out[:, k] = (middle - objective.gradient_at_sites(theta + step, sites)) / length
    return prior.whitened(out)
