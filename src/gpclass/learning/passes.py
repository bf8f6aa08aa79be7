"""Fitting in passes over the data, with inducing inputs; and updating the model with more rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpclass.core.protocols import Info
from gpclass.data.rows import Data, Rows
from gpclass.learning.fitted import FittedModel
from gpclass.learning.ladder import State, ascend, begin, rungs
from gpclass.learning.maximise import NO_HISTORY, Learned, Plan
from gpclass.learning.problem import Problem, needs_eps, with_eps
from gpclass.learning.run import POOL_ROWS, Run, allowed_gap, engine_of
from gpclass.priors.inducing import make_basis, process
from gpclass.sparse.checkpoint import Checkpoint, identity_of
from gpclass.sparse.engine import Fit, InducingReport, PassObjective, Q
from gpclass.sparse.settings import Inducing

EXACT_NATS = 1e-9  # tolerance of the bound per row if nothing is learned: seven digits


def fit_in_passes(
    problem: Problem, data: Data, n_latents: int, plan: Plan, settings: Inducing, *, seed: Any = None
) -> FittedModel:
    """Return a model fitted to the rows of any source; the rows of the problem are not used."""
    run = Run(problem, data, n_latents, plan, settings, np.random.default_rng(seed))
    learning = plan.enabled and len(problem.theta) > 0
    state = _begun(run, learning)
    if learning:
        state = ascend(state, run.ladder(), plan, data.n_rows, problem.theta)
    learned = state.learned if state.data is data else replace(state.learned, history=NO_HISTORY)
    found = run.best
    if found is None or found.data is not data or not isinstance(found.learned.warm, Fit):
        found = run.on_all_rows(state.problem)  # q at its hyperparameters, iterated to convergence
        objective = run.objective(found, None if learning else EXACT_NATS * data.n_rows, last=True)
        fit = objective.fit_at(found.problem.theta, found.learned.warm, gradient=False)
        run.keep(found := run.state(found.problem, data, fit))
    return _model(run, found, learned if learning else None)


def _begun(run: Run, learning: bool) -> State:
    """Return the first state: from a checkpoint, from some rows without inducing inputs, or as given."""
    plan, problem, state = run.plan, run.problem, None
    if learning and plan.choose:  # a resumed run chooses the same kernel again
        state = _on_some(run)
        problem = problem.like(state.problem)
    path, identity = run.settings.checkpoint, dict[str, str]()
    if path is not None:
        names = ("kernel", "likelihood", "inference", "hyperprior")
        model = {name: getattr(run.problem, name) for name in names} | dict(plan.asked)
        model |= {"optimizer": learning and (plan.optimizer or True)}
        identity = identity_of(run.data, run.n_latents, model, run.settings)
    run.checkpoint = Checkpoint(path, identity)
    if (resumed := run.resume(problem)) is not None:
        return resumed
    if state is None and ((learning and plan.optimizer is None) or needs_eps(problem)):
        state = _on_some(run)
    return State(problem, Learned(problem.theta, 0.0)) if state is None else state


def _on_some(run: Run) -> State:
    """Learn on some rows without inducing inputs, and choose the kernel there if requested.

    For several classes, which take longer, only Dirichlet classification is used here.
    """
    plan, rows = run.plan, run.data.sample(POOL_ROWS, np.random.default_rng(0))
    pool = replace(run.problem, X=np.asarray(rows.X, dtype=float), y=rows.y, weight=rows.weight)
    most = min(getattr(run.problem.inference, "rows", None) or run.settings.rows[0], rows.n_rows)
    run.enter("starting without inducing inputs", most)
    if run.problem.closed:
        pool = pool.some(most)
    if not (plan.enabled and len(pool.theta)):
        return State(with_eps(pool), Learned(pool.theta, 0.0))
    state = begin(pool, plan, run.rng)
    return ascend(state, rungs(pool, most), plan) if run.problem.closed or run.n_latents == 1 else state


def _model(run: Run, state: State, learned: Learned | None) -> FittedModel:
    """Return the fitted model, with a report of the fit."""
    fit: Fit = state.learned.warm
    problem, n_rows, kernel = state.problem, run.data.n_rows, fit.basis.kernel
    report = InducingReport(
        Z=fit.basis.Z,
        q=Q(fit.q.mean, fit.q.P),  # without factors
        n_rows=n_rows,
        n_inducing=fit.basis.size,
        passes=run.passes,
        seconds=run.seconds,
        residual=fit.residual,
        jitter=fit.basis.jitter,
        counts=fit.counts,
    )
    engine = engine_of(problem, run.data, run.n_latents, np.float64)
    return FittedModel(
        likelihood=problem.likelihood,
        posterior=process(fit.basis, fit.q.P, fit.q.mean, fit.offset),
        kernel=kernel.clone_with_theta(kernel.theta),
        evidence=fit.bound,
        info=Info(fit.gap <= allowed_gap(n_rows), run.passes, fit.gap),
        problem=replace(problem, kernel=kernel, X=report.Z, y=np.empty(0), weight=None, Z=None),
        learned=None if learned is None else replace(learned, theta=problem.theta, warm=None),
        inducing=report,
        objective=PassObjective(
            engine, kernel, report.Z, report.jitter, tol=EXACT_NATS * n_rows, start=report.q
        ),
    )


def update(model: FittedModel, rows: Rows) -> FittedModel:
    """Return the model updated with more rows; its posterior is their prior (streaming variational Bayes)."""
    report = model.inducing
    if report is None:
        raise ValueError("A model without inducing inputs cannot be updated: fit it to all rows again.")
    offset = getattr(model.posterior, "offset", None)
    options = {"base": report.q} if offset is None else {"base": report.q, "offset": offset}
    engine = engine_of(model.problem, rows, len(report.q.P), np.float64, **options)
    basis = make_basis(model.kernel, report.Z, report.jitter)
    fit = engine.converge(basis, report.q, tol=EXACT_NATS * rows.n_rows)
    q = Q(fit.next_q.mean, fit.next_q.P)
    passes, counts = report.passes + fit.passes, report.counts + fit.counts
    report = replace(report, q=q, n_rows=report.n_rows + rows.n_rows, passes=passes, counts=counts)
    return replace(
        model,
        posterior=process(basis, q.P, q.mean, fit.offset),
        evidence=(model.evidence or 0.0) + fit.bound,
        info=Info(fit.gap <= allowed_gap(rows.n_rows), fit.passes, fit.gap),
        inducing=report,
        objective=None,
        learned=None if model.learned is None else replace(model.learned, message=""),
    )
