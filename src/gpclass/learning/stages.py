"""Learning with inducing inputs: on some rows, then on all rows, as long as that is worth the work.

Some rows without inducing inputs give the first hyperparameters. Then there are two things to do, on more rows and on
all rows: a step of the hyperparameters and the places of inducing inputs, by Newton's method; and twice as many inducing
inputs, the new ones where the residual variance costs the bound most. Both promise a gain and have a cost (`sparse.work`).
The one that gains more for its work comes first, and learning ends when neither is worth it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from gpclass.core.optimisers import MAX_ITER
from gpclass.core.protocols import Array
from gpclass.data.rows import Data, Rows
from gpclass.inference.dirichlet import DEFAULT, Dirichlet, Targets
from gpclass.learning.dirichlet import begin_dirichlet
from gpclass.learning.maximise import History, Learned, Plan, for_more_rows, joined, maximise
from gpclass.learning.problem import Problem
from gpclass.learning.sites import begin_on_some
from gpclass.sparse.checkpoint import CHOSEN, Checkpoint, State
from gpclass.sparse.collapsed import Collapsed
from gpclass.sparse.engine import Engine, Fit, Q
from gpclass.sparse.identity import digest, identity_of
from gpclass.sparse.inputs import choose, grown, n_candidates
from gpclass.sparse.objective import PassObjective
from gpclass.sparse.search import Point, climb
from gpclass.sparse.settings import Inducing
from gpclass.sparse.work import EVALUATION, evaluation_work, pass_work, start_work

FIRST_INPUTS = 150  # inducing inputs to begin with: their passes cost next to nothing beside the start
FIRST_RATIO = 0.5  # of what the residual variance costs after and before the first doubling
STEPS = 8  # of learning on all rows that follow the choice of inducing inputs, as their cost is counted
EXACT_NATS = 1e-8  # per row, to which q is iterated if nothing is learned


def engine_of(problem: Problem, data: Data, n_latents: int, dtype: Any, **options: Any) -> Engine | Collapsed:
    """Return what passes over the data: variational inference, or Dirichlet classification in closed form."""
    method = problem.inference
    if isinstance(method, Dirichlet):
        targets = Targets.at(DEFAULT if method.eps is None else method.eps)
        return Collapsed(data, targets, n_latents, dtype, **options)
    return Engine(data, problem.likelihood, n_latents, dtype, **options)


@dataclass(slots=True, eq=False)
class Run:
    """One fit: ``state`` is the best so far, ``end`` the best evaluation on all rows, as soon as there is one."""

    problem: Problem
    data: Data
    n_latents: int
    plan: Plan
    settings: Inducing
    rng: np.random.Generator
    watch: Callable[[Fit], None] | None = None  # called with every fit beyond few rows
    state: State | None = None
    end: Point | None = None
    records: list[tuple[Array, float, float]] = field(default_factory=list)  # of evaluations on all rows
    checkpoint: Checkpoint = field(default_factory=lambda: Checkpoint(None, {}))
    work: float = 0.0  # multiply-adds
    passes: int = 0
    promised: float | None = None  # nats per row that is left on the table
    stopped: str = ""  # what the next steps would gain and cost
    unexplained: tuple[float, float] = (0.0, 0.0)  # gain and cost of more inducing inputs
    stage: str = ""  # what is being done
    started: float = field(default_factory=time.perf_counter)

    def fit(self) -> tuple[Fit, Learned | None]:
        """Return q at the best hyperparameters found, and how they were found; None if there are none to learn."""
        learning = self.plan.enabled and len(self.problem.theta) > 0
        learned: Learned | None = None
        interrupted = False
        try:
            learned = self._learn(learning, resumed=self._begin(learning))
        except KeyboardInterrupt:
            if self.state is None or not learning:
                raise
            interrupted, self.stopped = True, "interrupted"
        if learned is None:
            fit = self._converged() if self.end is None else self.end.fit
            history = History(*map(np.array, zip(*self.records, strict=True))) if self.records else joined([])
            value = fit.bound if self.end is None else self.end.value
            learned = Learned(self._state.theta, value, history)
        else:
            fit, interrupted = learned.warm, learned.interrupted
        if interrupted:
            message = f"Learning was interrupted after {self.passes} passes: the best hyperparameters so far are kept."
            learned = replace(learned, message=message, interrupted=True)
        return fit, replace(learned, warm=None) if learning else None

    # ------------------------------------------------------------------------------- the start

    def _begin(self, learning: bool) -> bool:
        """Find the first state: in a checkpoint, which is returned, on some rows, or as given."""
        identity: dict[str, str] = {}
        if self.settings.checkpoint is not None:
            names = ("kernel", "likelihood", "inference", "hyperprior")
            model = {name: getattr(self.problem, name) for name in names} | dict(self.plan.asked)
            model |= {"optimizer": learning and (self.plan.optimizer or True)}
            identity = identity_of(self.data, self.n_latents, model, self.settings)
        if learning and self.plan.choose:  # a run that resumes chooses the same kernel again
            self._begin_on_some(self.plan)
            if identity:
                kernel = self.problem.kernel
                identity[CHOSEN] = digest(kernel.clone_with_theta(0.0 * kernel.theta))
        self.checkpoint = Checkpoint(self.settings.checkpoint, identity)
        kept = self.checkpoint.read()
        if kept is not None:
            self.state, self.work, method = kept, kept.work, self.problem.inference
            if isinstance(method, Dirichlet):
                self.problem = replace(self.problem, inference=replace(method, eps=kept.eps))
        elif self.state is None and learning and self.plan.optimizer is None:
            self._begin_on_some(self.plan)
        elif self.state is None:
            if self._closed and self._eps is None:
                self._begin_on_some(replace(self.plan, enabled=False))
            self.state = State(self.problem.theta, None, None, None, self._eps)
        return kept is not None

    def _begin_on_some(self, plan: Plan) -> None:
        """Learn on some rows without inducing inputs, and choose the kernel there if that is asked for."""
        n_rows = min(self.settings.rows[0], self.data.n_rows)
        self._enter("a start without inducing inputs", n_rows)
        if self._closed:
            self.problem, first = begin_dirichlet(self.problem, self.data, plan, n_rows, self.rng)
        else:
            self.problem, first = begin_on_some(
                self.problem, self.data, n_rows, self.n_latents, plan, self.rng
            )
        self.work += start_work(n_rows)
        inverse, rows = first.learned.inverse_hessian, first.problem.n_rows
        self.state = State(self.problem.theta, None, None, inverse, self._eps, rows)
        if first.learned.interrupted:
            raise KeyboardInterrupt

    @property
    def _state(self) -> State:
        assert self.state is not None
        return self.state

    @property
    def _closed(self) -> bool:
        """Whether q is known in closed form."""
        return isinstance(self.problem.inference, Dirichlet)

    @property
    def _moves(self) -> bool:
        given, move = self.settings.inputs is not None, self.settings.move
        return not given and (not self._closed if move is None else move)

    @property
    def _eps(self) -> float | None:
        """What Dirichlet classification has chosen."""
        return getattr(self.problem.inference, "eps", None)

    # -------------------------------------------------------------------------------- learning

    def _learn(self, learning: bool, *, resumed: bool) -> Learned | None:
        """Add inducing inputs, then learn on more rows and on all; an optimizer of the user's has the last word."""
        own, steps = self.plan.optimizer, self.settings.max_refine
        if not resumed:
            rows = self._sample()
            self._grow(rows)
            if learning and own is None and rows.n_rows < self.data.n_rows:
                self._climb(rows, MAX_ITER)
        if learning and own is None and steps:
            self._climb(self.data, steps)
        return self._by_the_user(own) if learning and own is not None else None

    def _sample(self) -> Rows:
        """Return rows in random order; rows in memory may be sorted."""
        rows = self.data.sample(self.settings.rows[1], self.rng)
        return rows.take(self.rng.permutation(rows.n_rows))

    def _grow(self, rows: Rows) -> None:
        """Double the inducing inputs, at the same hyperparameters, as long as that is worth what learning costs then.

        To first order the residual variance costs the bound ``lost`` nats. Another doubling is taken to reduce it by
        the same factor as the last one.
        """
        objective, start = self._objective(rows, self._place(rows)), None
        most = len(objective.Z) if self.settings.inputs is not None else self.settings.most(by_residual=False)
        ratio, before = FIRST_RATIO, np.inf
        while True:
            self._enter("choosing inducing inputs", rows.n_rows)
            objective.tol = self._needed(pass_work(rows.n_rows, len(objective.Z), self.n_latents), rows.n_rows)
            fit = objective.fit_at(self._state.theta, start, gradient=False)
            size = fit.basis.size
            self.state = replace(self._state, Z=fit.basis.Z, q=fit.next_q, inverse_hessian=for_more_rows(self._state.inverse_hessian, self._state.n_rows, rows.n_rows), n_rows=rows.n_rows, work=self.work)
            more = min(2 * size, most)
            if before < np.inf:
                ratio = min(fit.lost / max(before, 1e-300), 1.0)
            cost = STEPS * (self._evaluation(self.data, more) - self._evaluation(self.data, size))
            gain, before = fit.lost * (1.0 - ratio), fit.lost
            self.unexplained = gain / rows.n_rows, cost
            print("GROW", size, "lost/row", fit.lost/rows.n_rows, "gain", gain/rows.n_rows, "share", cost/self.work, "need", self._needed(cost, 1), "bound", fit.bound)
            if more <= size or (self.settings.n == "auto" and gain < self._needed(cost, rows.n_rows)):
                return
            pool = rows.take(slice(0, n_candidates(more)))
            X, precision = np.asarray(pool.X, dtype=float), objective.engine.precisions(fit, pool)
            objective.Z, start = grown(fit.basis, X, precision, more, self.rng), fit
            if len(objective.Z) == size:
                return

    def _climb(self, data: Data, steps: int) -> None:
        """Take steps of hyperparameters and inducing inputs as long as each gains enough for its work."""
        state, last = self._state, data is self.data
        objective, start = self._objective(data, np.asarray(state.Z)), self._scaled_q(data)
        if last:
            self.checkpoint.write(replace(state, q=start, n_rows=data.n_rows))
        self._enter("all rows" if last else "more rows", data.n_rows)
        cost = self._evaluation(data, len(objective.Z))

        def tol(fit: Fit | None = None) -> float:
            objective.tol = self._needed(cost / EVALUATION, data.n_rows)  # another pass is worth it by the same rule
            return self._needed(cost, data.n_rows)

        def seen(point: Point, better: bool) -> None:
            if last:
                self.records.append((point.theta, point.fit.bound, float(np.linalg.norm(point.slope))))
            if better:
                self._keep(point, data)

        tol()
        inverse = for_more_rows(state.inverse_hessian, state.n_rows, data.n_rows)
        end, promised = climb(
            objective,
            state.theta,
            start,
            self.problem.support,
            np.eye(len(state.theta)) / data.n_rows if inverse is None else inverse,
            tol,
            moves=self._moves,
            log_prior=self.problem.hyperprior,
            max_iter=steps,
            seen=seen,
        )
        self._keep(end, data)
        self._judge(promised / data.n_rows, cost)

    def _keep(self, point: Point, data: Data) -> None:
        """Make an evaluation the best so far."""
        fit = point.fit
        self.state = State(
            point.theta, fit.basis.Z, fit.next_q, point.inverse, self._eps, data.n_rows, self.work
        )
        if data is self.data:
            self.end = point
            self.checkpoint.write(self.state)
        if self.watch is not None:
            self.watch(fit)

    def _needed(self, cost: float, n_rows: int) -> float:
        """Return the nats on so many rows that work of this cost must gain."""
        return self.settings.gain * n_rows * cost / max(self.work, 1.0)

    def _evaluation(self, data: Data, size: int) -> float:
        """Return the work of an evaluation of the bound and its gradient."""
        return evaluation_work(data.n_rows, size, self.n_latents)

    def _judge(self, promised: float, cost: float) -> None:
        """Record what the next steps promise, in nats per row, and cost, as a share of the work so far."""
        more, other = self.unexplained
        self.promised = max(promised, more)
        self.stopped = (
            f"The next step promises {promised:.1g} nats per row for {cost / self.work:.2g} times the work so far, "
            f"more inducing inputs {more:.1g} for {other / self.work:.2g} times."
        )

    def _place(self, rows: Rows) -> Array:
        """Return the inducing inputs of the state; the first ones are chosen for its hyperparameters."""
        state = self._state
        if state.Z is None:
            kernel = self.problem.at(state.theta).kernel
            first = min(FIRST_INPUTS, self.settings.most(by_residual=False))
            state = self.state = replace(state, Z=choose(self.settings, kernel, rows.X, first, self.rng))
        return np.asarray(state.Z)

    def _scaled_q(self, data: Data) -> Q | None:
        """Return q of the state for these rows."""
        q, rows = self._state.q, self._state.n_rows
        return q if q is None or self._closed else q.repeated(data.n_rows / rows)

    def _by_the_user(self, optimizer: Any) -> Learned:
        """Return the end of the user's own search, on all rows."""
        state = self._state
        objective = self._objective(self.data, np.asarray(state.Z))
        objective.tol = self._needed(pass_work(self.data.n_rows, len(objective.Z)), self.data.n_rows)
        objective.start, objective.watch = self._scaled_q(self.data), self.watch
        return maximise(
            objective, state.theta, self.problem.support, optimizer, hyperprior=self.problem.hyperprior
        )

    def _converged(self) -> Fit:
        """Return q on all rows at the hyperparameters of the state, iterated to convergence."""
        state = self._state
        if state.Z is None:
            self._place(self._sample())
        objective = self._objective(self.data, np.asarray(self._state.Z))
        objective.tol, objective.max_passes = EXACT_NATS * max(self.data.n_rows, 10), 2 * self._most_passes(100)
        state = self._state
        objective.after = lambda theta, q: self.checkpoint.write(
            replace(state, q=q, n_rows=self.data.n_rows, work=self.work)
        )
        fit = objective.fit_at(state.theta, self._scaled_q(self.data), gradient=False)
        if self.watch is not None:
            self.watch(fit)
        return fit

    def _most_passes(self, most: int) -> int:
        return min(most, int(getattr(self.problem.inference, "max_iter", most)))

    def _objective(self, data: Data, Z: Array) -> PassObjective:
        dtype = np.dtype(self.settings.dtype).type
        engine = engine_of(self.problem, data, self.n_latents, dtype)
        objective = PassObjective(
            engine, self.problem.kernel, Z, self.settings.jitter, max_passes=self._most_passes(50)
        )
        objective.engine = replace(engine, report=partial(self._heard, objective))
        return objective

    # ------------------------------------------------------------------------------- reporting

    def _enter(self, name: str, n_rows: int) -> None:
        """Name what is done next, and on how many rows."""
        self.stage = f"{name} ({n_rows:,})"
        self._report(self.stage)

    def _heard(self, objective: PassObjective, bound: float) -> None:
        """Count a pass, and report the bound per row: the one scale that few rows and all rows share."""
        n_rows, size = objective.engine.data.n_rows, len(objective.Z)
        self.passes += 1
        self.work += pass_work(n_rows, size, self.n_latents)
        self._report(f"{self.stage}: {size} inducing inputs, bound {bound / n_rows:.4f} per row")

    def _report(self, words: str) -> None:
        if self.plan.report is not None:
            self.plan.report(f"{words}, {time.perf_counter() - self.started:.0f} s")
