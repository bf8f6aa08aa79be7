"""The choice of a model by its integrated evidence.

The kernel that the classifier chooses has a bias, a smooth part with one length scale per column, and perhaps a linear
part, applied to the columns or to monotone transforms of them:

    k(x, z) = b + v · s(x, z) + w · Σ_j (x_j - c_j)(z_j - c_j) / l_j0²,      s: RBF or Matérn 3/2.

Every hyperparameter has a proper prior: variances and the common length scale wide log-normal ones, the deviations of
the length scales of the columns from each other log l_j = log l_j0 + a + e_j, e_j ~ N(0, scale²) (`Shrinkage`). A model
is a choice of transform, smooth part, scale and linear part. Let theta = mu + R z with z ~ N(0, I) in the prior. By
Laplace's method at the maximum theta*, with A = -∂² log p(y|theta) / ∂theta² there,

    log p(y|M)  ≈  log p(y|theta*, M) - ½ |z*|² - ½ log|I + Rᵀ A R|.

The model with the largest value is chosen. The likelihood does not depend on the scale, so that the gradient g and A at
one scale predict the integrated evidence of all, with e = theta* - mu:

    b = Rᵀ (g + A e),     z = (I + Rᵀ A R)⁻¹ b,     log p(y|theta*) - gᵀ e - ½ eᵀ A e + ½ bᵀ z - ½ log|I + Rᵀ A R|,

and only scales that are predicted to be better are tried. Neighbouring models have nearly the same A, so it is measured
only for models that are better with the A of their neighbour, by differences of the gradient at fixed sites: one
factorisation for each direction. On the second rung the neighbours of the chosen model are
compared again, with A measured on the rows of the first rung and scaled in proportion to the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from gpclass.core.hyperpriors import SCALES, Hyperprior
from gpclass.core.protocols import Array, Index
from gpclass.kernels import Grouped
from gpclass.kernels.warped import Warp
from gpclass.learning.maximise import Learned, Report, is_clear, maximise
from gpclass.learning.problem import Problem, SiteObjective, dirichlet_scores

SHARE = 0.1  # factor of the tolerance of a rung, so that early stopping does not affect the choice
DIRECTIONS = 64  # directions in which curvature is measured; random ones for more hyperparameters than this
STEP = 0.1  # step of theta in differences of gradients: 10 % of a hyperparameter
NEGLIGIBLE = 1e-3  # fraction of the largest eigenvalue below which one-sided differences are unreliable


class Model(NamedTuple):
    """A model to choose, as its position among the options of each part; the default is the simplest model."""

    smooth: int = 0  # smooth part: RBF, Matérn 3/2
    scale: int = 0  # scale of the shrinkage, in `SCALES`
    linear: int = 0  # linear part: without, with
    transform: int = 0  # transform of the columns: none, asinh, Yeo-Johnson


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A model at its best hyperparameters: the problem there, the search, and its integrated evidence.

    ``slope`` and ``A`` are the gradient and the curvature of the evidence there, if they are known.
    """

    model: Model
    problem: Problem
    learned: Learned
    A: Any = None
    value: float = -np.inf
    slope: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The models to choose from: parts of the kernel and scale of shrinkage, or only the scale of shrinkage."""

    problem: Problem  # its kernel has all parts
    parts: bool
    warps: tuple[Warp, ...] = ()  # available transforms of the columns
    few: Problem | None = None  # the problem on fewer rows, on which curvatures are measured

    def at(self, model: Model, few: Problem | None = None) -> Problem:
        """Return the problem of a model, on fewer rows if they are given."""
        kernel: Any = self.problem.kernel
        prior = self.problem.hyperprior.with_scale(SCALES[model.scale])
        if self.parts:
            full = getattr(kernel, "kernel", kernel)  # without the wrapper that groups length scales
            smooth = full.k1.k1.k2
            if model.smooth:
                smooth = Matern(smooth.length_scale, smooth.length_scale_bounds, nu=1.5)
            part = full.k1.k1.k1 * smooth + full.k1.k2
            if model.linear:
                part = part + full.k2
            else:
                prior = prior.first(part.n_dims)
            kernel = part if full is kernel else Grouped(part, kernel.groups)
        if model.transform:
            kernel = self.warps[model.transform - 1](kernel)
        return replace(few or self.problem, kernel=kernel, hyperprior=prior)

    def _places(self, model: Model) -> Index:
        """Return the positions of the hyperparameters of a model in theta of the kernel with all parts."""
        places = np.arange(len(self.problem.theta))
        if not self.parts or model.linear:
            return places
        return np.delete(places, self.at(model).kernel.n_dims)

    def converted(self, near: Candidate, model: Model) -> tuple[Array, Array]:
        """Return theta and the curvature of a candidate, converted to another model; a new part has no curvature."""
        theta = self.problem.theta
        A = np.zeros((len(theta), len(theta)))
        own, other = self._places(near.model), self._places(model)
        theta[own], A[np.ix_(own, own)] = near.learned.theta, near.A
        return theta[other], A[np.ix_(other, other)] * (len(self.problem.X) / len(near.problem.X))

    def curvature(self, model: Model, theta: Array, sites: Any) -> Array:
        """Return A of a model at theta along the directions of its prior, for all rows."""
        few = None if self.few is None else self.at(model, self.few)
        return curvature(self.at(model), theta, sites, few)

    def start(self, theta: Array) -> Candidate:
        """Return a starting point of the simplest model, with its sites and its curvature."""
        model = Model()
        problem = self.at(model)
        theta = problem.hyperprior.tied(theta)
        end = SiteObjective(problem).evaluate(theta, gradient=False)
        A = self.curvature(model, theta, end.warm)
        return Candidate(model, problem, Learned(theta, end.evidence, warm=end.warm), A)

    def promising(self, best: Candidate, seen: set[Model]) -> Iterator[tuple[Model, Candidate]]:
        """Yield models that may be better, each with a candidate to start from.

        These are each other transform once, scales with a higher predicted evidence, and other parts.
        """
        model, learned = best.model, best.learned
        tried = {each.transform for each in seen}
        yield from ((model._replace(transform=i), best) for i in range(1 + len(self.warps)) if i not in tried)
        if self.problem.hyperprior.open:
            scales = [model._replace(scale=i) for i in range(len(SCALES))]
            priors = [self.at(each).hyperprior for each in scales]
            if not model.scale:  # with tied length scales A is known only along their common direction
                best = replace(best, A=self.curvature(scales[-1], learned.theta, learned.warm))
            values = [predicted(prior, best) for prior in priors]
            yield from ((scales[i], best) for i in np.argsort(values)[::-1] if values[i] > best.value)
        if self.parts:
            yield model._replace(smooth=1 - model.smooth), best
            yield model._replace(linear=1 - model.linear), best

    def describe(self, model: Model) -> str:
        """Return a description of the model."""
        words = [["RBF", "Matérn 3/2"][model.smooth]] if self.parts else ["kernel as given"]
        if self.problem.hyperprior.open:
            scale = SCALES[model.scale]
            words.append(f"shrinkage {scale:g}" if scale else "length scales in proportion")
        words += ["linear part"] * model.linear
        if model.transform:
            words.append(f"{self.warps[model.transform - 1].keywords['transform']} of the columns")
        return ", ".join(words)


def choose(
    grid: Grid,
    starts: list[Candidate],
    found: list[Candidate],
    tol: float,
    report: Report | None = None,
) -> Candidate:
    """Return the model with the largest integrated evidence; every candidate is appended to ``found``.

    The search begins at the best of the ``starts``, which are points of one model.
    """
    model = starts[0].model
    best, *others = [_candidate(grid, model, each, found, tol, report) for each in starts]
    for other in others:
        best = _better(best, other)
    seen = {model}
    while True:
        last = best
        for model, start in grid.promising(last, seen):
            if model not in seen:
                seen.add(model)
                best = _better(last, _candidate(grid, model, start, found, tol, report, last.value))
                if best is not last:
                    break
        else:
            return best


def _candidate(
    grid: Grid,
    model: Model,
    near: Candidate,
    found: list[Candidate],
    tol: float,
    report: Report | None,
    least: float = -np.inf,
) -> Candidate:
    """Maximise the objective of a model, starting near another one, and integrate over its hyperparameters."""
    problem = grid.at(model)
    prior = problem.hyperprior
    theta, A = grid.converted(near, model)
    if report is not None:
        report(f"choosing the kernel on {len(problem.X):,} rows, {grid.describe(model)}")
    learned = maximise(
        SiteObjective(problem),
        prior.tied(theta),
        problem.bounds,
        hyperprior=prior,
        warm=near.learned.warm if near.problem.X is problem.X else None,
        report=report,
        inverse_hessian=integral(prior, A)[0],
        tol=SHARE * tol,
    )
    value = learned.objective - integral(prior, A)[1]
    found.append(Candidate(model, problem.at(learned.theta), learned, value=value))
    if learned.interrupted:
        raise KeyboardInterrupt
    if value > least:
        A = grid.curvature(model, learned.theta, learned.warm)
        inverse, log_volume = integral(prior, A)
        slope = SiteObjective(problem).gradient_at_sites(learned.theta, learned.warm)
        value, learned = learned.objective - log_volume, replace(learned, inverse_hessian=inverse)
        found[-1] = Candidate(model, problem.at(learned.theta), learned, A, value, slope)
    return found[-1]


def _better(best: Candidate, other: Candidate) -> Candidate:
    """Return the candidate with the larger integrated evidence.

    The evidence of Dirichlet classification is that of targets made from the labels, and a transform of the columns
    that suits the targets may not suit the labels, so its leave-one-out score must be clearly better too.
    """
    if not other.value > best.value:
        return best
    if other.model.transform == best.model.transform or other.problem.is_of_labels:
        return other
    scores = [dirichlet_scores(p, p.prior(), p.inference) for p in (other.problem, best.problem)]
    return other if is_clear(scores[0] - scores[1]) else best


def predicted(prior: Hyperprior, found: Candidate) -> float:
    """Return the integrated evidence under another prior, from the gradient and the curvature at a candidate."""
    theta, A, slope = found.learned.theta, found.A, found.slope
    inverse, log_volume = integral(prior, A)
    e = theta - prior.centre(theta)
    Ae = A @ e
    b = slope + Ae
    evidence = found.learned.objective - found.problem.hyperprior(theta)[0]
    return float(evidence - slope @ e - 0.5 * e @ Ae + 0.5 * b @ inverse @ b - log_volume)


# ------------------------------------------------------------------ curvature and integral


def integral(prior: Hyperprior, A: Array) -> tuple[Array, float]:
    """Return the inverse of A + the prior's Hessian, in the range of R, and ½ log|I + Rᵀ A R|."""
    R = prior.root(len(A))
    L = np.linalg.cholesky(np.eye(R.shape[1]) + R.T @ A @ R)
    half = np.linalg.solve(L, R.T)
    return half.T @ half, float(np.log(L.diagonal()).sum())


def curvature(problem: Problem, theta: Array, sites: Any, few: Problem | None = None) -> Array:
    """Return A along the directions of the hyperprior, zero along all others and where the evidence is not concave.

    With ``few`` it is measured on fewer rows, and scaled in proportion to the rows. With many hyperparameters A is
    measured along orthonormal directions Q only, those of wide priors and random ones, and A ≈ A Q (Qᵀ A Q)⁻¹ Qᵀ A
    (Nyström). The missing part of the trace, also estimated from Q, is distributed evenly over all other directions.
    """
    if few is not None or sites is None:
        few = few or problem
        sites = SiteObjective(few).evaluate(theta, gradient=False).warm
        return curvature(few, theta, sites) * (len(problem.X) / len(few.X))
    p, prior = len(theta), problem.hyperprior
    R = prior.root(p)
    if R.shape[1] < p or p <= DIRECTIONS:
        Q = _basis(R) if R.shape[1] < p else np.eye(p)
        values, vectors = np.linalg.eigh(_differences(problem, theta, sites, Q)[1])
        V = Q @ vectors
        return (V * np.maximum(values, 0.0)) @ V.T
    wide = _basis(prior.root(p, tied=True))[:, : DIRECTIONS // 2]
    exact = wide.shape[1]
    random = np.random.default_rng(0).standard_normal((p, DIRECTIONS - exact))
    Q = np.linalg.qr(np.column_stack([wide, random]))[0]
    AQ, inside = _differences(problem, theta, sites, Q)
    diagonal = np.maximum(inside.diagonal(), 0.0)
    trace = float(diagonal[:exact].sum() + (p - exact) * diagonal[exact:].mean())
    values, vectors = np.linalg.eigh(inside)
    good = values > NEGLIGIBLE * max(float(values.max()), 1e-12)
    U, roots, _ = np.linalg.svd((AQ @ vectors[:, good]) / np.sqrt(values[good]), full_matrices=False)
    rest = max(0.0, trace - float((roots**2).sum())) / (p - len(roots))
    return (U * np.maximum(roots**2 - rest, 0.0)) @ U.T + rest * np.eye(p)


def _basis(R: Array) -> Array:
    """Return orthonormal columns that span the range of R, with the signs of its columns."""
    Q, upper = np.linalg.qr(R)
    return np.where(upper.diagonal() < 0.0, -Q, Q)


def _differences(problem: Problem, theta: Array, sites: Any, Q: Array) -> tuple[Array, Array]:
    """Return A Q by differences of the gradient at fixed sites, and Qᵀ A Q."""
    objective, highest = SiteObjective(problem), problem.bounds[:, 1]
    middle = objective.gradient_at_sites(theta, sites)
    AQ = np.empty(Q.shape)
    for k, length in enumerate(STEP / np.abs(Q).max(axis=0)):
        step = length * Q[:, k]
        if (theta + step > highest).any():
            step, length = -step, -length
        AQ[:, k] = (middle - objective.gradient_at_sites(theta + step, sites)) / length
    AQ = np.nan_to_num(AQ, posinf=0.0, neginf=0.0)  # curvature zero where numbers overflow
    inside = Q.T @ AQ
    return AQ, 0.5 * (inside + inside.T)
