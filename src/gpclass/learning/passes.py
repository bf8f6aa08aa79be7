"""Fitting in passes over the data, with inducing inputs: on some rows, on more, on all rows.

Few rows with few inducing inputs find the region; more rows with all inducing inputs find the hyperparameters, with
the curvature of the first stage; passes over all rows then find q, and steps with the exact gradient over all rows
continue while they promise to be worth a pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpclass.core.protocols import Array, Info
from gpclass.data.rows import Data, Rows
from gpclass.inference.dirichlet import DEFAULT, Dirichlet, Targets
from gpclass.learning.dirichlet import learn_dirichlet
from gpclass.learning.fitted import FittedModel
from gpclass.learning.maximise import Learned, Plan, Stage, joined, learn
from gpclass.learning.problem import Problem, pose_classes
from gpclass.learning.sites import Beginning, begin
from gpclass.posteriors.classes import IndependentProcesses
from gpclass.posteriors.process import Process
from gpclass.priors.basis import Basis, make_basis, process
from gpclass.sparse.checkpoint import Checkpoint, State
from gpclass.sparse.collapsed import Collapsed
from gpclass.sparse.engine import Engine, Fit, Q
from gpclass.sparse.inputs import choose, move
from gpclass.sparse.objective import PassObjective
from gpclass.sparse.report import InducingReport
from gpclass.sparse.settings import Inducing

BEGIN = 600  # rows of the beginning, without inducing inputs
FEW = 300  # inducing inputs of the first stage
FTOL = 1e-4  # relative gain at which the stages on some rows end
GAP = 0.3  # nats to which q is iterated while learning on them
MOST_PASSES = 20  # at the first theta of a stage
LATER_PASSES = 4  # at later ones on all rows, where q is never far off


def fit_in_passes(
    problem: Problem, data: Data, n_latents: int, plan: Plan, settings: Inducing, *, seed: Any = None
) -> FittedModel:
    """Fit to rows that may be anywhere; the problem's own rows are not used."""
    start = time.perf_counter()
    run = Run(problem, data, n_latents, plan, settings, np.random.default_rng(seed))
    fit, learned = run.fit()
    seconds = time.perf_counter() - start
    problem = run.problem  # with the kernel that was chosen
    kernel, likelihood = fit.basis.kernel, problem.likelihood
    if learned is not None:
        likelihood = likelihood.with_theta(learned.theta[kernel.n_dims :])
    report = InducingReport(
        Z=fit.basis.Z,
        q=fit.q,
        next_q=fit.next_q,
        n_rows=data.n_rows,
        n_inducing=fit.basis.size,
        passes=run.passes,
        seconds=seconds,
        residual=fit.residual,
        jitter=fit.basis.jitter,
        counts=fit.counts,
    )
    empty = np.empty(0)
    return FittedModel(
        likelihood=likelihood,
        posterior=inducing_process(fit.basis, fit.q, fit.offset, single=settings.dtype == "float32"),
        kernel=kernel.clone_with_theta(kernel.theta),
        evidence=fit.bound,
        info=Info(fit.gap <= max(1.0, 1e-4 * data.n_rows), run.passes, fit.gap),
        problem=replace(problem, kernel=kernel, likelihood=likelihood, X=fit.basis.Z, y=empty, weight=None),
        learned=learned,
        inducing=report,
        objective=objective_of(replace(problem, likelihood=likelihood), data, n_latents, kernel, report),
    )


def inducing_process(basis: Basis, q: Q, offset: Array | None = None, *, single: bool) -> Process:
    """Return q(u) as a process over all inputs; that of one function in single precision if asked for."""
    if len(q.P) == 1:
        return process(basis, q.P[0], q.mean[:, 0], single=single)
    processes = tuple(process(basis, P, q.mean[:, c]) for c, P in enumerate(q.P))
    return IndependentProcesses(processes, offset)


def engine_of(problem: Problem, data: Data, n_latents: int, dtype: Any, **options: Any) -> Engine | Collapsed:
    """Return what passes over the data: variational inference, or Dirichlet classification in closed form."""
    method = problem.inference
    if isinstance(method, Dirichlet):
        targets = Targets.at(DEFAULT if method.eps is None else method.eps)
        return Collapsed(data, targets, n_latents, dtype, **options)
    return Engine(data, problem.likelihood, n_latents, dtype, **options)


def objective_of(
    problem: Problem, data: Data, n_latents: int, kernel: Any, report: InducingReport
) -> PassObjective:
    """Return the bound at other hyperparameters, inducing inputs held, in double precision."""
    engine = engine_of(problem, data, n_latents, np.float64)
    return PassObjective(engine, kernel, report.Z, report.jitter, tol=1e-9 * data.n_rows, start=report.q)


def update(model: FittedModel, rows: Rows) -> FittedModel:
    """Return the model with more rows taken in: its posterior is their prior (streaming variational Bayes)."""
    report = model.inducing
    assert report is not None
    offset = getattr(model.posterior, "offset", None)
    options = {"base": report.q} if offset is None else {"base": report.q, "offset": offset}
    engine = engine_of(
        replace(model.problem, likelihood=model.likelihood), rows, len(report.q.P), np.float64, **options
    )
    basis = make_basis(model.kernel, report.Z, report.jitter)
    fit = engine.converge(basis, report.q, tol=1e-6 * rows.n_rows)
    single = getattr(model.posterior, "beta", None) is not None
    n_rows = report.n_rows + rows.n_rows
    return replace(
        model,
        posterior=inducing_process(basis, fit.next_q, fit.offset, single=single),
        evidence=(model.evidence or 0.0) + fit.bound,
        info=Info(fit.gap <= max(1.0, 1e-4 * rows.n_rows), fit.passes, fit.gap),
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


@dataclass(slots=True, eq=False)
class Run:
    """One fit: the stages of learning, the number of passes so far, the checkpoint."""

    problem: Problem
    data: Data
    n_latents: int
    plan: Plan
    settings: Inducing
    rng: np.random.Generator
    watch: Callable[[Fit], None] | None = (
        None  # called with every better fit on all rows, for curves of progress
    )
    passes: int = 0

    def fit(self) -> tuple[Fit, Learned | None]:
        """Return q at the best hyperparameters found, and how they were found."""
        learning = self.plan.enabled and len(self.problem.theta) > 0
        # The same kernel is chosen again by a run that resumes.
        first = self._begin() if learning and self.plan.choose else None
        checkpoint = Checkpoint(self.settings.checkpoint, self.data.n_rows, self.problem.kernel)
        state, learned = checkpoint.read(), None
        if state is not None and state.eps is not None:
            self._with_eps(state.eps)
        if state is None and learning and self.plan.optimizer is None:
            first = self._begin() if first is None else first
            interrupted = first.interrupted
            state, learned = (self._fixed(), first.learned()) if interrupted else self._coarse(first)
        elif state is None:
            state = self._fixed()
        if not learning:
            return self._converge(state, checkpoint), None
        if self.settings.max_refine == 0 or (learned is not None and learned.interrupted):
            assert learned is not None
            return self._converge(state, checkpoint), self._told(learned)
        return self._refine(state, checkpoint, learned)

    # ------------------------------------------------------------------------------- some rows

    def _coarse(self, beginning: Beginning) -> tuple[State, Learned]:
        """Return hyperparameters, inducing inputs and q from some of the rows."""
        few, more = self.settings.rows
        rows = self._sample(more)
        first = rows.take(np.arange(min(few, rows.n_rows)))
        most = self.settings.most
        sizes: list[int] = []

        def on_few(theta: Array) -> PassObjective:
            objective = self._objective(first, self._choose(theta, first, min(FEW, most)), GAP)
            sizes[:] = [len(objective.Z)]
            return objective

        def on_more(theta: Array) -> PassObjective | None:
            Z = self._choose(theta, rows, most)
            same = rows.n_rows == first.n_rows and [len(Z)] == sizes
            return None if same else self._objective(rows, Z, GAP)

        stages = [
            self._stage("few rows", on_few, first.n_rows),
            self._stage("more rows", on_more, rows.n_rows),
        ]
        if isinstance(self.problem.inference, Dirichlet):
            stages = stages[1:]  # it has been learned on few rows, without inducing inputs
        problem, plan = self.problem, replace(self.plan, report=self._words)
        learned = learn(
            stages,
            problem.theta,
            problem.bounds,
            plan,
            self.rng,
            hyperprior=problem.hyperprior,
            inverse_hessian=beginning.inverse_for(first.n_rows),
        )
        fit: Fit = learned.warm
        state = State(learned.theta, fit.basis.Z, fit.next_q, learned.inverse_hessian, self._eps)
        if self.settings.move and not learned.interrupted:
            self._words("moving the inducing inputs")
            objective = replace(self._objective(rows, state.Z, GAP), max_passes=5, later_passes=5)
            Z, q = move(objective, state.theta, state.q)
            state = replace(state, Z=Z, q=q)
        return state, learned

    def _begin(self) -> Beginning:
        """Find a start on a few rows without inducing inputs, and choose the kernel there if that is asked for."""
        if isinstance(self.problem.inference, Dirichlet):
            return self._begin_dirichlet(self.plan)
        some = self.data.sample(BEGIN, np.random.default_rng(0))
        few = replace(self.problem, X=np.asarray(some.X, dtype=float), y=some.y, weight=some.weight)
        first = begin(few if self.n_latents == 1 else pose_classes(few, some.y), self.plan)
        self.problem = self.problem.like(first.problem).at(first.theta)
        return first

    def _begin_dirichlet(self, plan: Plan) -> Beginning:
        """Learn hyperparameters and eps on some rows without inducing inputs."""
        method: Any = self.problem.inference
        some = self.data.sample(method.rows or self.settings.rows[0], np.random.default_rng(0))
        few = replace(self.problem, X=np.asarray(some.X, dtype=float))
        few, learned = learn_dirichlet(pose_classes(few, some.y), plan, self.rng)
        self.problem = replace(self.problem.like(few), inference=few.inference)
        if learned is None:
            return Beginning(few, few.theta)
        return Beginning(few, few.theta, learned.inverse_hessian, interrupted=learned.interrupted)

    @property
    def _eps(self) -> float | None:
        """What Dirichlet classification has chosen."""
        return getattr(self.problem.inference, "eps", None)

    def _with_eps(self, eps: float) -> None:
        self.problem = replace(self.problem, inference=replace(self.problem.inference, eps=eps))  # type: ignore[type-var]

    def _stage(self, name: str, objective: Callable[[Array], PassObjective | None], n_rows: int) -> Stage:
        # The curvature grows with the rows, but less than they do.
        scale = (n_rows / self.data.n_rows) ** 0.5
        whole = n_rows >= self.data.n_rows
        return Stage(name, objective, ftol=FTOL, max_iter=20, inverse_scale=scale, recorded=whole)

    def _fixed(self) -> State:
        """Return where to start with the kernel as given: q from some rows."""
        rows = self._sample(self.settings.rows[1])
        theta = self.problem.theta
        Z = self._choose(theta, rows, self.settings.most)
        if isinstance(self.problem.inference, Dirichlet):
            if self._eps is None:
                self._begin_dirichlet(replace(self.plan, enabled=False))
            return State(theta, Z, None, None, self._eps)
        if rows.n_rows >= self.data.n_rows:
            return State(theta, Z, None, None)
        objective = replace(self._objective(rows, Z, 1.0), max_passes=10)
        return State(theta, Z, objective.fit_at(theta, None, gradient=False).next_q, None)

    def _choose(self, theta: Array, rows: Rows, most: int) -> Array:
        self._words("choosing inducing inputs")
        return choose(self.settings, self.problem.at(theta).kernel, rows.X, most, self.rng)

    def _sample(self, n: int) -> Rows:
        return self.data.sample(n, self.rng)

    # -------------------------------------------------------------------------------- all rows

    def _converge(self, state: State, checkpoint: Checkpoint) -> Fit:
        """Return q on all rows at the hyperparameters of the state."""
        n = self.data.n_rows
        objective = self._objective(
            self.data, state.Z, max(1e-8 * n, 1e-7), after=self._keeper(state, checkpoint)
        )
        objective.max_passes = 2 * self._most_passes(100)
        fit = objective.fit_at(state.theta, state.q, gradient=False)
        if self.watch is not None:
            self.watch(fit)
        return fit

    def _refine(self, state: State, checkpoint: Checkpoint, coarse: Learned | None) -> tuple[Fit, Learned]:
        """Return q on all rows, the hyperparameters refined while it pays."""
        n, settings = self.data.n_rows, self.settings
        objective = self._objective(
            self.data, state.Z, min(1.0, 1e-4 * n), after=self._keeper(state, checkpoint)
        )
        objective.start, objective.later_passes = state.q, LATER_PASSES
        best: list[Fit] = []

        def watch(fit: Fit) -> None:
            if not best or fit.bound > best[0].bound:
                best[:] = [fit]
                theta = state.theta if objective.theta is None else objective.theta
                checkpoint.write(replace(state, theta=theta, q=fit.next_q))
            if self.watch is not None:
                self.watch(best[0])

        objective.watch = watch
        inverse = np.eye(len(state.theta)) / n if state.inverse_hessian is None else state.inverse_hessian
        stage = Stage(
            "all rows",
            lambda theta: objective,
            ftol=settings.gain / 0.5,  # relative to a bound of about half a nat per row
            max_iter=settings.max_refine,
            longest=0.5,
        )
        problem, plan = self.problem, replace(self.plan, n_restarts=0, report=self._words)
        learned = learn(
            [stage],
            state.theta,
            problem.bounds,
            plan,
            self.rng,
            hyperprior=problem.hyperprior,
            inverse_hessian=None if plan.optimizer is not None else inverse,
        )
        fit: Fit = learned.warm
        if coarse is not None:
            learned = replace(learned, history=joined([coarse.history, learned.history]))
        return fit, self._told(learned)

    def _keeper(self, state: State, checkpoint: Checkpoint) -> Callable[[Array, Q], None]:
        return lambda theta, q: checkpoint.write(replace(state, theta=theta, q=q))

    def _told(self, learned: Learned) -> Learned:
        message = learned.message
        if learned.interrupted:
            message = f"Learning was interrupted after {self.passes} passes: the best hyperparameters so far are kept."
        return replace(learned, message=message, warm=None)

    def _most_passes(self, most: int) -> int:
        limit: int = getattr(self.problem.inference, "max_iter", most)
        return min(most, limit)

    def _objective(
        self, data: Data, Z: Array, tol: float, after: Callable[[Array, Q], None] | None = None
    ) -> PassObjective:
        dtype = np.dtype(self.settings.dtype).type
        engine = engine_of(self.problem, data, self.n_latents, dtype, report=self._heard)
        return PassObjective(
            engine,
            self.problem.kernel,
            Z,
            self.settings.jitter,
            tol=tol,
            max_passes=self._most_passes(MOST_PASSES),
            later_passes=self._most_passes(MOST_PASSES),
            after=after,
        )

    def _heard(self, bound: float) -> None:
        self.passes += 1
        if self.plan.report is not None:
            self.plan.report(bound)

    def _words(self, what: float | str) -> None:
        """Pass on the names of stages; the bound is reported after every pass instead."""
        if self.plan.report is not None and isinstance(what, str):
            self.plan.report(what)
