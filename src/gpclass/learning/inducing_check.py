"""How accurate a model with inducing inputs is: its Gaussian q(u), and what the inducing inputs miss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpclass.core.optimisers import TOL_NATS
from gpclass.core.protocols import Array, Likelihood, Sites
from gpclass.data.rows import Data, Rows
from gpclass.evidence import ApproximationCheck
from gpclass.evidence.check import make_report, probability_shifts
from gpclass.evidence.importance import estimate
from gpclass.evidence.verdicts import Missing, make_missing
from gpclass.learning.fitted import FittedModel
from gpclass.priors.basis import Basis, make_basis
from gpclass.sparse.engine import Q, factor
from gpclass.sparse.importance import inducing_target
from gpclass.sparse.local_check import NearestStep, exact_left_out, with_residual, without
from gpclass.sparse.loo import (
    Rule,
    TargetRule,
    counts,
    left_out,
    likely,
    marginals,
    responding_roots,
    rule_of,
)
from gpclass.sparse.objective import PassObjective

INSTEAD = "check a fit of fewer rows with inducing=None instead"
SHIFT_VALUES = 300  # probabilities that are followed over the draws
PLACES = 200  # rows around which a neighbourhood is treated exactly
AROUND = 200  # rows of a neighbourhood


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A fitted model with inducing inputs, as the checks see it.

    ``rows`` are where neighbourhoods come from: their labels are what ``rule`` takes, and ``labelled`` gives them
    the labels of the likelihood.
    """

    basis: Basis
    q: Q
    data: Data
    rows: Data
    rule: Rule
    likelihood: Likelihood
    method: Any
    offset: Array | None = None
    averaged: bool = False  # whether the terms are FITC's
    y: Array | None = None

    def labelled(self, rows: Rows) -> Rows:
        """Return rows with labels as the likelihood takes them."""
        return rows if self.y is None else replace(rows, y=self.y[rows.y.astype(int)])


@dataclass(frozen=True, slots=True, eq=False)
class SiteRule:
    """The sites of Laplace and EP with FITC's prior as sites on a_iᵀ u, for positions of rows as labels.

    ∫ N(f | a u, r) exp(nu f - tau f² / 2) df ∝ exp(nu/c a u - tau/c (a u)² / 2), c = 1 + tau r.
    """

    sites: Sites
    residual: Array

    def __call__(self, y: Array, weight: Array | None, mean: Array, var: Array) -> tuple[Array, Array]:
        """Return g = nu - h m and the precision h."""
        i = y.astype(int)
        stretch = 1.0 + self.sites.tau[i] * self.residual[i]
        h = (self.sites.tau[i] / stretch)[:, None]
        return (self.sites.nu[i] / stretch)[:, None] - h * mean, h


def view_of(model: FittedModel) -> View:
    """Return what the checks need of a model that was fitted in passes, or by Laplace or EP with FITC's prior."""
    problem, objective = model.problem, model.objective
    if model.inducing is None:
        prior: Any = problem.prior()
        sites: Any = model.sites
        q = prior.condition(sites)
        X, y = np.asarray(problem.X), np.asarray(problem.y)
        return View(
            basis=prior.basis,
            q=Q((prior.A.T @ q.alpha)[:, None], q.P[None]),
            data=Rows(X, y, problem.weight),
            rows=Rows(X, np.arange(float(len(X))), problem.weight),
            rule=SiteRule(sites, prior.residual),
            likelihood=model.likelihood,
            method=problem.with_tol(TOL_NATS).inference,
            averaged=True,
            y=y,
        )
    if not isinstance(objective, PassObjective):
        raise ValueError(
            "The approximation is checked on the training rows, which this model does not keep after partial_fit or in "
            "a file: call check_approximation in Python on the classifier that was fitted."
        )
    offset, data = getattr(model.posterior, "offset", None), objective.engine.data
    return View(
        basis=make_basis(problem.kernel, model.inducing.Z, model.inducing.jitter),
        q=model.inducing.q,
        data=data,
        rows=data,
        rule=rule_of(objective.engine, model.likelihood, offset),
        likelihood=model.likelihood,
        method=problem.with_tol(TOL_NATS).inference,
        offset=offset,
    )


def check_inducing(model: FittedModel, n_samples: int, rng: np.random.Generator) -> ApproximationCheck:
    """Check q(u) by importance sampling, and the inducing inputs by exact neighbourhoods."""
    view, name = view_of(model), type(model.problem.inference).__name__
    if isinstance(view.rule, TargetRule):  # q is exact for the targets
        missing = find_missing(view, rng)
        verdict = f"q(u) is exact for the targets of {name} classification. {missing.verdict}"
        return ApproximationCheck(
            name, model.evidence, None, None, None, 0.0, 0, None, None, None, verdict, missing=missing
        )
    target = inducing_target(view.basis, view.likelihood, view.data, view.q, averaged=view.averaged)
    found, drawn = estimate(target, n_samples, rng)
    C = view.q.mean.shape[1]
    some = view.data.sample(max(20, SHIFT_VALUES // C), rng).X
    shift, error = probability_shifts(lambda D: target.probabilities(some, D), drawn)
    missing = find_missing(view, rng)
    report = make_report(
        name,
        model.evidence,
        found,
        shift,
        error,
        about=f"{name} of the inducing values",
        # A model that lacks inducing inputs may be worse than class frequencies for want of them.
        baseline=None if missing.matters else model.baseline,
        remedy=INSTEAD,
    )
    return replace(report, verdict=f"{report.verdict} {missing.verdict}", missing=missing)


def find_missing(
    view: View, rng: np.random.Generator, *, places: int | None = None, around: int | None = None
) -> Missing:
    """Compare leave-one-out probabilities with those of exact neighbourhoods of random rows."""
    C, places, around = view.q.mean.shape[1], places or PLACES, around or AROUND
    if C > 1 and not isinstance(view.rule, TargetRule):  # iterations with expectations of softmax
        around, places = around // 2, max(10, places // C)
    whole = view.rows.n_rows <= around
    if whole:
        near = [view.rows.sample(view.rows.n_rows, rng)]
    else:
        centres = view.rows.sample(places, rng).X
        basis = view.basis
        step = NearestStep(basis.kernel, basis.Z, basis.T, np.asarray(centres, dtype=float), around)
        near = view.rows.total(step).rows
    roots = tuple(factor(view.q).roots)
    responding = responding_roots(view.data, view.rule, view.basis, view.q)
    where = slice(None) if whole else slice(0, 1)
    compared = [_compare(view, rows, roots, responding, where) for rows in near]
    ours, exact, score = (np.concatenate(parts) for parts in zip(*compared, strict=True))
    return make_missing(ours, exact, score, len(near[0]), whole=whole)


def _compare(
    view: View, rows: Rows, roots: tuple[Array, ...], responding: tuple[Array, ...], where: slice
) -> tuple[Array, Array, Array]:
    """Return leave-one-out probabilities by the inducing inputs and exactly, and the gain of the log score."""
    basis, labelled, X = view.basis, view.labelled(rows), np.asarray(rows.X, dtype=float)
    at = marginals(basis.kernel, basis.Z, basis.T, view.q.mean, roots, X)
    g, h = view.rule(rows.y, rows.weight, at.mean, at.var)
    ours = left_out(at, labelled.y, g, h, counts(labelled.y, labelled.weight), responding)
    prior = with_residual(without(at, roots, g, h), basis.kernel, X, at.A)
    sites = Sites(g + h * (at.mean - prior.mean), np.maximum(h, 0.0))  # relative to the prior mean
    fixed = isinstance(view.rule, TargetRule)
    exact = exact_left_out(view.method, view.likelihood, labelled, prior, sites, fixed=fixed)
    shift, y = 0.0 if view.offset is None else view.offset, labelled.y[where]
    log_p, log_exact = (
        view.likelihood.log_predict(mean[where] + shift, cov[where]) for mean, cov in (likely(*ours), exact)
    )
    truth = np.stack([y < 0.0, y > 0.0], axis=1) if y.ndim == 1 else y / y.sum(axis=1, keepdims=True)
    gain = np.where(truth > 0.0, truth * (log_exact - log_p), 0.0).sum(axis=1)
    return np.exp(log_p), np.exp(log_exact), gain
