"""Fitting in passes over the data, with inducing inputs; and updating the model with more rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpclass.core.frequencies import class_counts
from gpclass.core.protocols import Array, Info
from gpclass.data.rows import Data, Rows
from gpclass.learning.fitted import FittedModel
from gpclass.learning.ladder import State, ascend, begin, rungs
from gpclass.learning.levels import Level, Run, engine_of
from gpclass.learning.loo import with_eps
from gpclass.learning.maximise import NO_HISTORY, Learned, Plan
from gpclass.learning.problem import Problem, needs_eps, pose_classes
from gpclass.posteriors.process import Process
from gpclass.priors.basis import Basis, make_basis, process
from gpclass.sparse.checkpoint import CHOSEN, Checkpoint, digest, identity_of
from gpclass.sparse.engine import Fit, InducingReport, Q
from gpclass.sparse.objective import PassObjective
from gpclass.sparse.settings import Inducing
from gpclass.sparse.work import allowed_gap, entropy_of

POOL_ROWS = 20_000  # number of rows from which the rungs without inducing inputs are sampled
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
    return _model(run, _last_fit(run, state, learning), learned if learning else None)


def _begun(run: Run, learning: bool) -> State:
    """Return the first state: from a checkpoint, from some rows without inducing inputs, or as given."""
    plan, problem = run.plan, run.problem
    # A resumed run chooses the same kernel again.
    state = _on_some(run) if learning and plan.choose else None
    run.checkpoint = Checkpoint(run.settings.checkpoint, _identity(run, learning, state))
    kept = run.checkpoint.read()
    if kept is not None:
        problem = (problem if state is None else problem.like(state.problem)).at(kept.theta)
        problem = with_eps(problem, kept.eps)
        rows = run.data.sample(POOL_ROWS, np.random.default_rng(0))
        run.work.entropy = entropy_of(class_counts(rows.y, rows.weight, problem.likelihood.labels))
        run.work.done, run.inverse = kept.work, kept.inverse_hessian
        run.level = Level(problem, run.data, np.asarray(kept.Z), kept.q)
        return State(problem, Learned(kept.theta, 0.0, inverse_hessian=run.inverse), run.data)
    if state is not None:
        return state
    if (learning and plan.optimizer is None) or needs_eps(problem):
        return _on_some(run)
    return State(problem, Learned(problem.theta, 0.0))


def _identity(run: Run, learning: bool, chosen: State | None) -> dict[str, str]:
    """Return the identity of this fit, which its checkpoint must match."""
    if run.settings.checkpoint is None:
        return {}
    names = ("kernel", "likelihood", "inference", "hyperprior")
    model = {name: getattr(run.problem, name) for name in names} | dict(run.plan.asked)
    model |= {"optimizer": learning and (run.plan.optimizer or True)}
    out = identity_of(run.data, run.n_latents, model, run.settings)
    if chosen is not None:
        kernel = chosen.problem.kernel
        out[CHOSEN] = digest(kernel.clone_with_theta(0.0 * kernel.theta))
    return out


def _on_some(run: Run) -> State:
    """Learn on some rows without inducing inputs, and choose the kernel there if requested.

    For several classes, which take longer, only Dirichlet classification is used here.
    """
    plan, rows = run.plan, run.data.sample(POOL_ROWS, np.random.default_rng(0))
    pool = replace(run.problem, X=np.asarray(rows.X, dtype=float), y=rows.y, weight=rows.weight)
    most = min(getattr(run.problem.inference, "rows", None) or run.settings.rows[0], rows.n_rows)
    run.enter("a start without inducing inputs", most)
    if run.n_latents > 1:
        pool = pose_classes(pool, rows.y)
    if run.problem.closed:
        pool = pool.some(most)
    if not (plan.enabled and len(pool.theta)):
        return State(with_eps(pool), Learned(pool.theta, 0.0))
    state = begin(pool, plan, run.rng)
    return ascend(state, rungs(pool, most), plan) if run.problem.closed or run.n_latents == 1 else state


def _last_fit(run: Run, state: State, learning: bool) -> Fit:
    """Return the best fit on all rows, or q at the hyperparameters of the state, iterated to convergence."""
    if run.fit is not None and run.level is not None and run.level.data is run.data:
        return run.fit
    level = run.extended(state.problem)
    objective = run.objective(level, None if learning else EXACT_NATS * run.data.n_rows)
    objective.max_passes *= 2
    objective.after = lambda theta, q: run.write(level, q)
    fit = objective.fit_at(level.problem.theta, level.q, gradient=False)
    run.keep(level, fit)
    return fit


def _model(run: Run, fit: Fit, learned: Learned | None) -> FittedModel:
    """Return the fitted model, with a report of the fit."""
    level: Any = run.level
    problem, n_rows, kernel = level.problem, run.data.n_rows, fit.basis.kernel
    if learned is not None:
        learned = replace(learned, theta=problem.theta, warm=None)
    report = InducingReport(
        Z=fit.basis.Z,
        q=fit.q,
        n_rows=n_rows,
        n_inducing=fit.basis.size,
        passes=run.passes,
        seconds=run.seconds,
        residual=fit.residual,
        jitter=fit.basis.jitter,
        counts=fit.counts,
    )
    return FittedModel(
        likelihood=problem.likelihood,
        posterior=inducing_process(fit.basis, fit.q, fit.offset, single=run.settings.dtype == "float32"),
        kernel=kernel.clone_with_theta(kernel.theta),
        evidence=fit.bound,
        info=Info(fit.gap <= allowed_gap(n_rows), run.passes, fit.gap),
        problem=replace(problem, kernel=kernel, X=fit.basis.Z, y=np.empty(0), weight=None),
        learned=learned,
        inducing=report,
        objective=PassObjective(
            engine_of(problem, run.data, run.n_latents, np.float64),
            kernel,
            report.Z,
            report.jitter,
            tol=EXACT_NATS * n_rows,
            start=report.q,
        ),
    )


def inducing_process(basis: Basis, q: Q, offset: Array | None = None, *, single: bool) -> Process:
    """Return q(u) as a process over all inputs; for one function in single precision if requested."""
    if len(q.P) == 1:
        return process(basis, q.P[0], q.mean[:, 0], single=single)
    return process(basis, q.P, q.mean, offset)


def update(model: FittedModel, rows: Rows) -> FittedModel:
    """Return the model updated with more rows; its posterior is their prior (streaming variational Bayes)."""
    report = model.inducing
    if report is None:
        raise ValueError("A model without inducing inputs cannot be updated: fit it to all rows again.")
    offset = getattr(model.posterior, "offset", None)
    options = {"base": report.q} if offset is None else {"base": report.q, "offset": offset}
    engine = engine_of(
        replace(model.problem, likelihood=model.likelihood), rows, len(report.q.P), np.float64, **options
    )
    basis = make_basis(model.kernel, report.Z, report.jitter)
    fit = engine.converge(basis, report.q, tol=EXACT_NATS * rows.n_rows)
    single = getattr(model.posterior, "beta", None) is not None
    n_rows = report.n_rows + rows.n_rows
    return replace(
        model,
        posterior=inducing_process(basis, fit.next_q, fit.offset, single=single),
        evidence=(model.evidence or 0.0) + fit.bound,
        info=Info(fit.gap <= allowed_gap(rows.n_rows), fit.passes, fit.gap),
        inducing=replace(
            report,
            q=fit.next_q,
            n_rows=n_rows,
            passes=report.passes + fit.passes,
            counts=report.counts + fit.counts,
        ),
        objective=None,
        learned=None if model.learned is None else replace(model.learned, message=""),
    )
