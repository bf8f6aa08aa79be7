"""Fitting in passes over the data, with inducing inputs; and updating the model with more rows."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from gpclass.core.frequencies import class_counts
from gpclass.core.protocols import Array, Info
from gpclass.data.rows import Data, Rows
from gpclass.learning.dirichlet import choose_eps, rungs_with_eps
from gpclass.learning.fitted import FittedModel
from gpclass.learning.ladder import State, ascend, begin, not_below, rungs
from gpclass.learning.levels import PassLevel, Run, engine_of
from gpclass.learning.maximise import Learned, Plan, joined
from gpclass.learning.problem import Problem, pose_classes
from gpclass.posteriors.process import Process
from gpclass.priors.basis import Basis, make_basis, process
from gpclass.sparse.checkpoint import CHOSEN, Checkpoint, digest, identity_of
from gpclass.sparse.engine import Fit, InducingReport, Q
from gpclass.sparse.objective import PassObjective
from gpclass.sparse.settings import Inducing
from gpclass.sparse.work import EVALUATION, allowed_gap, entropy_of

POOL_ROWS = 20_000  # rows from which the rungs without inducing inputs are drawn
EXACT_NATS = 1e-9  # accuracy of q per row if nothing is learned: seven digits of the bound


def fit_in_passes(
    problem: Problem, data: Data, n_latents: int, plan: Plan, settings: Inducing, *, seed: Any = None
) -> FittedModel:
    """Fit to the rows of any source; the problem's own rows are not used."""
    run = Run(problem, data, n_latents, plan, settings, np.random.default_rng(seed))
    learning = plan.enabled and len(problem.theta) > 0
    state = _begun(run, learning)
    if learning:
        resumed = isinstance(state.problem, PassLevel)
        ladder = [rung for rung in run.ladder() if not resumed or rung == run.on_all]
        state = ascend(state, ladder, plan, data.n_rows)
        if ladder and state.problem.n_rows == data.n_rows:
            state = not_below(problem.theta, state, plan)
    fit = _last_fit(run, state, learning)
    return _model(run, fit, _on_all(run, state, fit.bound) if learning else None)


# ------------------------------------------------------------------------------------- the start


def _begun(run: Run, learning: bool) -> State:
    """Return the first state: from a checkpoint, from some rows without inducing inputs, or as given."""
    plan, problem = run.plan, run.problem
    method: Any = problem.inference
    # A resumed run chooses the same kernel again.
    state = _on_some(run) if learning and plan.choose else None
    run.checkpoint = Checkpoint(run.settings.checkpoint, _identity(run, learning, state))
    kept = run.checkpoint.read()
    if kept is not None:
        problem = run.with_eps(problem if state is None else problem.like(state.problem), kept.eps)
        rows = run.data.sample(POOL_ROWS, np.random.default_rng(0))
        run.work.entropy = entropy_of(class_counts(rows.y, rows.weight))
        run.work.done, run.inverse = kept.work, kept.inverse_hessian
        run.level = PassLevel(run, problem.at(kept.theta), run.data, np.asarray(kept.Z), kept.q)
        return State(run.level, Learned(kept.theta, 0.0, joined([]), inverse_hessian=run.inverse))
    if state is not None:
        return state
    if (learning and plan.optimizer is None) or (run.closed and method.eps is None):
        return _on_some(run)
    return State(problem, Learned(problem.theta, 0.0, joined([])))


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
    if run.n_latents == 1:
        return ascend(begin(pool, plan, run.rng), rungs(pool, most=most), plan, np.inf)
    pool = pose_classes(pool, rows.y)
    if not run.closed:
        return begin(pool, plan, run.rng)
    pool = pool.some(most)
    if plan.enabled and len(pool.theta):
        ladder = rungs_with_eps(pool) if pool.inference.eps is None else rungs(pool)  # type: ignore[attr-defined]
        return ascend(begin(pool, plan, run.rng), ladder, plan, np.inf)
    return State(run.with_eps(pool, choose_eps(pool)), Learned(pool.theta, 0.0, joined([])))


# --------------------------------------------------------------------------------------- the end


def _last_fit(run: Run, state: State, learning: bool) -> Fit:
    """Return the best fit on all rows, or q at the hyperparameters of the state, iterated to convergence."""
    level, fit = state.problem, state.learned.warm
    if isinstance(level, PassLevel) and level.data is run.data and isinstance(fit, Fit):
        return fit
    if not isinstance(level, PassLevel):
        level = run.on_some(state) if run.level is None else run.level
    q = fit.next_q if isinstance(fit, Fit) else level.q
    if level.data is not run.data and q is not None and not run.closed:
        q = q.repeated(run.data.n_rows / level.n_rows)
    run.level = level = replace(level, data=run.data, q=q)
    objective = level.objective(None if learning else EXACT_NATS * run.data.n_rows)
    objective.max_passes *= 2
    objective.after = lambda theta, q: run.write(level, q)
    fit = objective.fit_at(level.problem.theta, q, gradient=False)
    run.keep(level, fit)
    return fit


def _model(run: Run, fit: Fit, learned: Learned | None) -> FittedModel:
    """Return the fitted model, with a report of the fit."""
    problem, n_rows, kernel = run.reached.problem, run.data.n_rows, fit.basis.kernel
    promised, stopped = None, ""
    if learned is not None:
        promised, stopped = _left_over(run, learned)
    report = InducingReport(
        Z=fit.basis.Z,
        q=fit.q,
        n_rows=n_rows,
        n_inducing=fit.basis.size,
        passes=run.passes,
        seconds=time.perf_counter() - run.started,
        residual=fit.residual,
        jitter=fit.basis.jitter,
        counts=fit.counts,
        promised=promised,
        stopped=stopped,
    )
    empty = np.empty(0)
    return FittedModel(
        likelihood=problem.likelihood,
        posterior=inducing_process(fit.basis, fit.q, fit.offset, single=run.settings.dtype == "float32"),
        kernel=kernel.clone_with_theta(kernel.theta),
        evidence=fit.bound,
        info=Info(fit.gap <= allowed_gap(n_rows), run.passes, fit.gap),
        problem=replace(problem, kernel=kernel, X=fit.basis.Z, y=empty, weight=None),
        learned=learned,
        inducing=report,
        objective=objective_of(problem, run.data, run.n_latents, kernel, report),
    )


def _left_over(run: Run, learned: Learned) -> tuple[float | None, str]:
    """Return the nats per row that further work would gain, and a description of its cost."""
    if learned.interrupted:
        return None, "interrupted"
    work, n_rows, (gain, more) = run.work, run.data.n_rows, run.missed
    others = (
        f"Twice as many inducing inputs promise {gain:.1g} nats per row for {more / work.done:.2g} times the work so "
        "far."
    )
    if not run.reached.learns:
        return gain, f"Another step would raise the bound, but not the leave-one-out score. {others}"
    if learned.promised is None:
        return None, ""
    step = learned.promised / n_rows
    cost = EVALUATION * work.of_pass(n_rows, len(run.reached.Z))
    return max(step, gain), f"The next step promises {step:.1g} for {cost / work.done:.2g} times. {others}"


def _on_all(run: Run, state: State, bound: float) -> Learned:
    """Return the result of learning on all rows."""
    learned = replace(state.learned, warm=None)
    if not isinstance(state.problem, PassLevel) or state.problem.data is not run.data:
        learned = replace(learned, history=joined([]), objective=bound)
    if not learned.interrupted:
        return learned
    message = f"Learning was interrupted after {run.passes} passes: the best hyperparameters so far are kept."
    return replace(learned, message=message)


def inducing_process(basis: Basis, q: Q, offset: Array | None = None, *, single: bool) -> Process:
    """Return q(u) as a process over all inputs; for one function in single precision if requested."""
    if len(q.P) == 1:
        return process(basis, q.P[0], q.mean[:, 0], single=single)
    return process(basis, q.P, q.mean, offset)


def objective_of(
    problem: Problem, data: Data, n_latents: int, kernel: Any, report: InducingReport
) -> PassObjective:
    """Return the bound at other hyperparameters, with fixed inducing inputs, in double precision."""
    engine = engine_of(problem, data, n_latents, np.float64)
    return PassObjective(
        engine, kernel, report.Z, report.jitter, tol=EXACT_NATS * data.n_rows, start=report.q
    )


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
