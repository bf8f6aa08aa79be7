"""Checks of the posterior of a fitted model: by importance sampling, or by the agreement of Markov chains.

Inducing inputs are checked by the exact posterior of neighbourhoods (`sparse.local_check`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpclass.core.linalg import mirrored
from gpclass.core.optimisers import TOL_NATS
from gpclass.core.protocols import Array
from gpclass.data.rows import Data, Rows
from gpclass.evidence import ApproximationCheck
from gpclass.evidence.check import check_approximation, check_chains, check_draws
from gpclass.evidence.importance import check_size
from gpclass.evidence.verdicts import Missing, make_missing
from gpclass.inference import EP, Laplace
from gpclass.kernels import CompoundKernel
from gpclass.learning.fitted import FittedModel
from gpclass.learning.problem import Problem, pose_classes
from gpclass.posteriors.target import Target, make_target
from gpclass.priors import DensePrior
from gpclass.sparse.engine import Q, latent_of
from gpclass.sparse.local_check import NearestStep, exact_left_out
from gpclass.sparse.loo import LeaveOut, leave_out, log_scores
from gpclass.sparse.objective import PassObjective
from gpclass.sparse.sums import SiteRule

PLACES = 200  # rows around which a neighbourhood is treated exactly
AROUND = 200  # rows of a neighbourhood


def check(model: FittedModel, n_samples: int, rng: np.random.Generator) -> ApproximationCheck:
    """Check the posterior of a fitted latent function, or of those of all classes."""
    if model.inducing is not None or model.problem.Z is not None:
        return check_inducing(model, rng)
    if not model.is_of_labels:
        raise ValueError(
            "Dirichlet classification is regression on targets made from the labels: its posterior is exact for those, "
            "so there is no approximate posterior of the labels to check. Compare its predictions instead, "
            "by loo_log_score_ or gpclass.compare, or use inference='vi'."
        )
    name = type(model.problem.inference).__name__
    if model.draws is None:
        target = make_check_target(model, model.problem, model.latent_sites)
        known = {"evidence": model.evidence, "baseline": model.baseline}
        return check_approximation(target, method=name, n_samples=n_samples, rng=rng, **known)  # type: ignore[arg-type]
    if model.chains is not None and model.chains.theta is not None:
        return check_chains(model.chains, np.exp(model.likelihood.log_classes(model.chains.f)[..., 1]))
    # Draws are compared with importance sampling from an approximation of the same posterior.
    problem, sites = model.problem, model.sites
    if problem.y.ndim == 2:
        problem = pose_classes(problem, problem.y)
    if sites is None:
        problem = replace(problem, inference=EP() if problem.elementwise else Laplace())
        prior = problem.prior()
        sites = prior.latent_sites(problem.infer(prior, None).sites)
    target = make_check_target(model, problem, sites)
    points = slice(None) if problem.first is None else problem.first
    return check_draws(
        target,
        model.draws,
        model.chains,
        model.evidence,
        name,
        n_samples,
        rng,
        points=points,
        baseline=model.baseline,
    )


def make_check_target(model: FittedModel, problem: Problem, sites: object) -> Target:
    """Return the exact posterior together with its Gaussian approximation by the sites of the latent functions."""
    labels, kernel = problem.y, problem.kernel
    if labels.ndim == 1:
        return make_target(model.likelihood, _dense(problem, kernel), problem.y, sites, problem.weight)  # type: ignore[arg-type]
    check_size(labels.shape)
    kernels = kernel.kernels if isinstance(kernel, CompoundKernel) else [kernel]
    Ks = np.stack([_dense(problem, each) for each in kernels])
    return make_target(model.likelihood, Ks[0] if len(Ks) == 1 else Ks, labels, sites)  # type: ignore[arg-type]


def _dense(problem: Problem, kernel: object) -> Array:
    return mirrored(DensePrior(kernel, problem.X).K)


# --------------------------------------------------------------------- with inducing inputs


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The parts of a fitted model with inducing inputs that the checks need.

    Neighbourhoods are chosen from ``rows``, with labels in the form that the rule of ``left`` takes.
    """

    left: LeaveOut
    q: Q
    rows: Data
    method: Any
    y: Array | None = None  # FITC only: the labels; those of ``rows`` are positions in them

    def labelled(self, rows: Rows) -> Rows:
        """Return rows with labels in the form that the likelihood takes."""
        return rows if self.y is None else replace(rows, y=self.y[rows.y.astype(int)])


def view_of(model: FittedModel) -> View:
    """Return the view of a model that was fitted in passes, or by Laplace or EP with FITC's prior."""
    problem, objective, report = model.problem, model.objective, model.inducing
    method = problem.with_tol(TOL_NATS).inference
    if report is None:
        prior: Any = problem.prior()
        sites: Any = model.sites
        conditioned = prior.condition(sites)
        X, y, w = np.asarray(problem.X), np.asarray(problem.y), problem.weight
        q = Q((prior.A.T @ conditioned.alpha)[:, None], conditioned.P[None])
        left = LeaveOut(latent_of(prior.basis, q), SiteRule(sites, prior.residual), model.likelihood)
        return View(left, q, Rows(X, np.arange(float(len(X))), w), method, y)
    if not isinstance(objective, PassObjective):
        raise ValueError(
            "The approximation is checked on the training rows, which this model does not keep after partial_fit or in "
            "a file: call check_approximation in Python on the classifier that was fitted."
        )
    offset, data = getattr(model.posterior, "offset", None), objective.engine.data
    left = leave_out(objective, problem.kernel, model.likelihood, report.q, offset)
    return View(left, report.q, data, method)


def check_inducing(model: FittedModel, rng: np.random.Generator) -> ApproximationCheck:
    """Check the inducing inputs by exact neighbourhoods."""
    view, name = view_of(model), type(model.problem.inference).__name__
    missing = find_missing(view, rng)
    exact = f"q(u) is exact for the targets of {name} classification. " if view.left.rule.fixed else ""
    return ApproximationCheck(
        name,
        model.evidence,
        None,
        None,
        None,
        0.0,
        0,
        None,
        None,
        None,
        exact + missing.verdict,
        missing=missing,
    )


def find_missing(
    view: View, rng: np.random.Generator, *, places: int = PLACES, around: int = AROUND
) -> Missing:
    """Compare leave-one-out probabilities with those of exact neighbourhoods of random rows."""
    C, data = len(view.q.P), view.rows
    if C > 1 and not view.left.rule.fixed:  # iterations with expectations of softmax
        around, places = around // 2, max(10, places // C)
    whole = data.n_rows <= around
    if whole:
        near = [data.sample(data.n_rows, rng)]
    else:
        centres = np.asarray(data.sample(places, rng).X, dtype=float)
        near = [rows for _, rows in data.total(NearestStep(view.left.latent, centres, around)).found]
    where = slice(None) if whole else slice(0, 1)
    compared = [_compare(view, rows, where) for rows in near]
    ours, exact, score = (np.concatenate(parts) for parts in zip(*compared, strict=True))
    return make_missing(ours, exact, score, len(near[0]), whole=whole)


def _compare(view: View, rows: Rows, where: slice) -> tuple[Array, Array, Array]:
    """Return leave-one-out probabilities by the inducing inputs and exactly, and the gain of the log score."""
    left, rows = view.left, replace(rows, X=np.asarray(rows.X, dtype=float))
    labelled, at = view.labelled(rows), left.latent.at(rows.X)
    g, h, *_ = left.rule(rows, at)
    ours = left.moments(labelled, at, g, h)
    exact = exact_left_out(view.method, left.likelihood, labelled, at, g, h, fixed=left.rule.fixed)
    log_p, log_exact = (left.log_predict(mean[where], cov[where]) for mean, cov in (ours, exact))
    y = labelled.y[where]
    return np.exp(log_p), np.exp(log_exact), log_scores(y, log_exact) - log_scores(y, log_p)
