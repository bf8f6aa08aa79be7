"""The choice of a model by its integrated evidence.

The kernel that the classifier chooses has a bias, a smooth part with one length scale per column, and perhaps a linear
part, of the columns as they are or of monotone transforms of them:

    k(x, z) = b + v · s(x, z) + w · Σ_j (x_j - c_j)(z_j - c_j) / l_j0²,      s: RBF or Matérn 3/2.

Every hyperparameter has a proper prior: variances and the common length scale wide log-normal ones, the deviations of
the length scales of the columns from each other log l_j = log l_j0 + a + e_j, e_j ~ N(0, scale²) (`Shrinkage`). A model
is a choice of transform, smooth part, scale and linear part. Let theta = mu + R z with z ~ N(0, I) in the prior. By
Laplace's method at the maximum theta*, with A = -∂² log p(y|theta) / ∂theta² there,

    log p(y|M)  ≈  log p(y|theta*, M) - ½ |z*|² - ½ log|I + Rᵀ A R|.

The model with the largest value is chosen. Three facts keep the search short. The likelihood does not depend on
the scale, so that the gradient g and A at one scale predict the integrated evidence of all, with e = theta* - mu:

    b = Rᵀ (g + A e),     z = (I + Rᵀ A R)⁻¹ b,     log p(y|theta*) - gᵀ e - ½ eᵀ A e + ½ bᵀ z - ½ log|I + Rᵀ A R|,

and only a scale that is predicted to be better is tried. The last term is never positive, so a search ends
when even its maximum would be below the integrated evidence of another model. And neighbouring models have nearly
the same A, so it is measured for those only that are better with the A of their neighbour.

A is found by differences of the gradient at fixed sites of the approximation: one factorisation for each
direction, and no iterations. On later rungs the neighbours of the chosen model are compared again; A is
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
from gpclass.inference.dirichlet import DEFAULT
from gpclass.kernels import Grouped
from gpclass.kernels.warped import Warp
from gpclass.learning.curvature import Curvature, curvature, integral
from gpclass.learning.loo import dirichlet_scores
from gpclass.learning.maximise import Compared, Learned, Report, is_clear, joined, maximise
from gpclass.learning.problem import Problem, SiteObjective

SHARE = 0.1  # fraction of the tolerance of a rung, so that the end of a search does not affect the choice


class Model(NamedTuple):
    """Position of the smooth part in (RBF, Matérn 3/2), that of the scale in `SCALES`, and one for a linear part.

    ``transform`` is the position of the transform of the columns in (none, asinh, Yeo-Johnson).
    """

    smooth: int = 0
    scale: int = 0
    linear: int = 0
    transform: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The models to choose from: parts of the kernel and scale of shrinkage, or only the scale of shrinkage."""

    problem: Problem
    parts: bool
    warps: tuple[Warp, ...] = ()  # transforms of the columns
    few: Problem | None = None  # the problem on fewer rows, on which curvatures are measured

    def at(self, model: Model, few: Problem | None = None) -> Problem:
        """Return the problem of a model, on fewer rows if they are given."""
        problem, prior = few or self.problem, self.problem.hyperprior
        kernel: Any = self.problem.kernel
        if self.parts:
            full = self.inner
            smooth = full.k1.k1.k2
            if model.smooth:
                smooth = Matern(smooth.length_scale, smooth.length_scale_bounds, nu=1.5)
            simple = full.k1.k1.k1 * smooth + full.k1.k2
            if not model.linear:
                prior = prior.first(simple.n_dims)
            part = simple + full.k2 if model.linear else simple
            kernel = part if full is kernel else Grouped(part, kernel.groups)
        if model.transform:
            kernel = self.warps[model.transform - 1].around(kernel)
        return replace(problem, kernel=kernel, hyperprior=prior.with_scale(SCALES[model.scale]))

    @property
    def inner(self) -> Any:
        """All parts of the kernel, without the groups of their length scales."""
        kernel: Any = self.problem.kernel
        return kernel.kernel if isinstance(kernel, Grouped) else kernel

    def start(self, model: Model, near: Candidate) -> Array:
        """Return the theta of another model, converted to one of this model."""
        theta, kernel = near.learned.theta, self.inner
        if model.linear > near.model.linear:
            theta = np.insert(theta, kernel.k1.n_dims, kernel.k2.theta)
        elif model.linear < near.model.linear:
            theta = np.delete(theta, kernel.k1.n_dims)
        return theta

    @property
    def open(self) -> bool:
        """Whether the scale of shrinkage is to be chosen."""
        return self.problem.hyperprior.open

    def promising(self, best: Candidate) -> Iterator[Model]:
        """Yield the models that may be better: other scales as predicted, best first, then other parts."""
        model = best.model
        if self.open:
            values = [
                predicted(self.at(model._replace(scale=i)).hyperprior, best) for i in range(len(SCALES))
            ]
            for scale in np.argsort(values)[::-1]:
                if values[scale] > best.value:
                    yield model._replace(scale=int(scale))
        if self.parts:
            yield model._replace(smooth=1 - model.smooth)
            yield model._replace(linear=1 - model.linear)

    def transformed(self, model: Model) -> Iterator[Model]:
        """Yield the models with other transforms of the columns."""
        for transform in range(1 + len(self.warps)):
            yield model._replace(transform=transform)

    def curvature(self, found: Candidate, *, tied: bool) -> Curvature:
        """Return A at a candidate, for all its rows; with ``tied`` only along directions that its prior leaves free."""
        problem, theta, sites, times = found.problem, found.learned.theta, found.learned.warm, 1.0
        prior = problem.hyperprior
        if self.few is not None:
            times = problem.n_rows / self.few.n_rows
            problem = self.at(found.model, self.few)
            sites = SiteObjective(problem).evaluate(theta, gradient=False).warm
        return curvature(problem, prior, theta, sites, tied=tied) * times

    def completed(self, found: Candidate) -> Candidate:
        """Return a candidate with its curvature along all directions, if other scales are predicted from it."""
        if not self.open or found.complete:
            return found
        return replace(found, curvature=self.curvature(found, tied=False), complete=True)

    def describe(self, model: Model) -> str:
        """Return a description of the model."""
        words = [["RBF", "Matérn 3/2"][model.smooth]] if self.parts else ["kernel as given"]
        if self.open:
            scale = SCALES[model.scale]
            words.append(f"shrinkage {scale:g}" if scale else "length scales in proportion")
        words += ["linear part"] * model.linear
        if model.transform:
            words.append(f"{self.warps[model.transform - 1].transform} of the columns")
        return ", ".join(words)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A model at its best hyperparameters: the problem there, the search, and its integrated evidence.

    ``slope`` and ``curvature`` are g and A; they are None if the search ended because the model cannot be the best.
    """

    model: Model
    problem: Problem
    learned: Learned
    value: float = -np.inf
    slope: Array | None = None
    curvature: Curvature | None = None
    complete: bool = False  # whether A is also known along directions that the prior does not leave free


Found = list[Candidate]  # every candidate found, also if the search is interrupted later


def choose(
    grid: Grid, starts: list[Array] | Candidate, found: Found, tol: float, report: Report | None = None
) -> Candidate:
    """Return the model with the largest integrated evidence.

    The search begins at the best of the ``starts`` of the simplest model, or at the model chosen on fewer rows.
    """
    first, near = ([starts.learned.theta], starts) if isinstance(starts, Candidate) else (starts, None)
    model = Model() if near is None else near.model
    best: Candidate | None = None
    for theta in first:
        best = _better(best, _candidate(grid, model, theta, near, found, tol, report, best))
    seen = {model}
    while best is not None:
        tried = {model.transform for model in seen}  # once each, with the simplest model
        other = next((model for model in grid.transformed(best.model) if model.transform not in tried), None)
        if other is None:
            best = grid.completed(best)
            other = next((model for model in grid.promising(best) if model not in seen), None)
        if other is None:
            return best
        seen.add(other)
        start = grid.start(other, best)
        best = _better(best, _candidate(grid, other, start, best, found, tol, report, best))
    raise ValueError("There is no starting point to choose a model from.")


def _better(best: Candidate | None, other: Candidate) -> Candidate:
    """Return the candidate with the larger integrated evidence.

    The evidence of Dirichlet classification is that of targets made from the labels, and a transform of the columns
    that suits those may not suit the labels: it must be clearly better by the leave-one-out score too.
    """
    if best is None or not other.value > best.value:
        return other if best is None else best
    if other.model.transform == best.model.transform or other.problem.is_of_labels:
        return other
    return other if is_clear(_loo_scores(other) - _loo_scores(best)) else best


def _loo_scores(found: Candidate) -> Array:
    problem: Any = found.problem
    return dirichlet_scores(problem, problem.prior(), problem.inference.eps or DEFAULT)


def _candidate(
    grid: Grid,
    model: Model,
    start: Array,
    near: Candidate | None,
    found: Found,
    tol: float,
    report: Report | None,
    best: Candidate | None = None,
) -> Candidate:
    """Maximise the objective of a model and integrate over its hyperparameters, unless it cannot be the ``best``."""
    problem = grid.at(model)
    prior = problem.hyperprior
    least, neighbour = -np.inf if best is None else best.value, near
    if near is None:
        near = _measured(grid, problem, model, prior.tied(start))
    learned = maximise(
        SiteObjective(problem),
        prior.tied(start),
        problem.support,
        hyperprior=problem.hyperprior,
        warm=near.learned.warm if near is not None and near.problem.n_rows == problem.n_rows else None,
        report=report,
        inverse_hessian=_first_inverse(problem, prior, near),
        tol=SHARE * tol,
        least=least,
    )
    found.append(Candidate(model, problem.at(learned.theta), learned))
    if learned.interrupted:
        raise KeyboardInterrupt
    if learned.objective > least:
        # With the curvature of the neighbour at first: only a model that is better so has its own measured.
        A = None if neighbour is None else _expected(problem, neighbour)
        value = np.inf if A is None else learned.objective - integral(prior, A)[1]
        found[-1] = _integrated(grid, found[-1]) if value > least else replace(found[-1], value=value)
    if report is not None:
        value = found[-1].value
        words = f"{value:.2f}" if np.isfinite(value) else f"below {least:.2f}"
        report(f"{grid.describe(model)}: integrated evidence {words}")
    return found[-1]


def _measured(grid: Grid, problem: Problem, model: Model, theta: Array) -> Candidate:
    """Return a starting point with its sites and its curvature."""
    end = SiteObjective(problem).evaluate(theta, gradient=False)
    there = Learned(theta, end.evidence, joined([]), warm=end.warm)
    found = Candidate(model, problem.at(theta), there)
    return replace(found, curvature=grid.curvature(found, tied=True))


def _integrated(grid: Grid, found: Candidate) -> Candidate:
    """Return a candidate with its integrated evidence."""
    problem, learned, prior = found.problem, found.learned, found.problem.hyperprior
    tied = prior.n_free(len(learned.theta)) < len(learned.theta)
    A = grid.curvature(found, tied=tied)
    inverse, log_volume = integral(prior, A)
    return replace(
        found,
        learned=replace(learned, inverse_hessian=inverse),
        value=learned.objective - log_volume,
        slope=SiteObjective(problem).gradient_at_sites(learned.theta, learned.warm),
        curvature=A,
        complete=not tied,
    )


def compared(grid: Grid, found: Found) -> tuple[Compared, ...]:
    """Return the models that were compared, in the order of the comparison."""
    return tuple(
        Compared(grid.describe(each.model), each.problem.n_rows, each.value, each.learned.objective)
        for each in found
    )


def _first_inverse(problem: Problem, prior: Hyperprior, near: Candidate | None) -> Array:
    """Return the inverse Hessian to start from: that of the prior, with the curvature of another model if known.

    If the other model has no linear part, the curvature along the variance of that part is assumed to be zero.
    """
    p, A = len(problem.theta), None if near is None else _expected(problem, near)
    if A is None:
        return prior.unwhitened(prior.unwhitened(np.eye(prior.n_free(p)), p).T, p)  # R Rᵀ
    return integral(prior, A)[0]


def _expected(problem: Problem, near: Candidate) -> Curvature | None:
    """Return the curvature of a model as expected from that of another one."""
    if near.curvature is None:
        return None
    A = near.curvature * (problem.n_rows / near.problem.n_rows)
    return A.moved(len(problem.theta), min(near.problem.kernel.n_dims, problem.kernel.n_dims))


def predicted(prior: Hyperprior, found: Candidate) -> float:
    """Return the integrated evidence under another prior, from the gradient and the curvature at a candidate."""
    if found.curvature is None or found.slope is None:
        return -np.inf
    theta, A, slope = found.learned.theta, found.curvature, found.slope
    e = theta - prior.centre(theta)
    Ae = A.times(e)
    b = prior.whitened((slope + Ae)[:, None])
    z, log_volume = A.inside(prior, b)
    evidence = found.learned.objective - found.problem.hyperprior(theta)[0]
    return float(evidence - slope @ e - 0.5 * e @ Ae + 0.5 * np.vdot(b, z) - log_volume)
