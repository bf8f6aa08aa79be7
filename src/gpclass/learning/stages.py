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
from gpclass.sparse.work import evaluation_work, pass_work, start_work

FIRST_INPUTS = 150  # inducing inputs to begin with: their passes cost next to nothing beside the start
GAP_SHARE = 0.1  # of the gain that a step needs, in nats, to which q is iterated: it must not hide the gain
EXACT_NATS = 1e-8  # per row, to which q is iterated if nothing is learned


def engine_of(problem: Problem, data: Data, n_latents: int, dtype: Any, **options: Any) -> Engine | Collapsed:
    """Return what passes over the data: variational inference, or Dirichlet classification in closed form."""
    method = problem.inference
    if isinstance(method, Dirichlet):
        targets = Targets.at(DEFAULT if method.eps is None else method.eps)
        return Collapsed(data, targets, n_latents, dtype, **options)
    return Engine(data, problem.likelihood, n_latents, dtype, **options)


@dataclass(slots=True, eq=False)
class Growth:
    """What more inducing inputs promise: the next doubling changes what the bound loses as the last one did."""

    most: int
    before: float | None = None  # nats that the residual variance cost before the last doubling
    ratio: float = 0.5  # of what it costs after and before a doubling: about one half at first, as the studies show

    def learn(self, fit: Fit) -> None:
        """Take in the first fit after a doubling."""
        if self.before is not None:
            self.ratio, self.before = min(fit.lost / max(self.before, 1e-300), 1.0), None

    def size(self, fit: Fit) -> int:
        """Return the next number of inducing inputs."""
        return max(min(2 * fit.basis.size, self.most), fit.basis.size)

    def gain(self, fit: Fit) -> float:
        """Return the nats that this number would gain."""
        return fit.lost * (1.0 - self.ratio) if self.size(fit) > fit.basis.size else 0.0


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
        """Climb on more rows, then on all rows; an optimizer of the user's has the last word."""
        own, last = self.plan.optimizer, self.settings.max_refine
        steps = learning and own is None
        rows = self.data.sample(self.settings.rows[1], self.rng)
        fewer = rows.n_rows < self.data.n_rows
        if not resumed and (fewer or not (steps and last)):
            self._climb(rows, rows, MAX_ITER if steps and fewer else 0)
        if steps and last:
            self._climb(self.data, rows, last)
        return self._by_the_user(own) if learning and own is not None else None

    def _climb(self, data: Data, pool: Rows, steps: int) -> None:
        """Take steps and double the inducing inputs, whichever gains more, while it is worth the work."""
        objective = self._objective(data, self._place(pool))
        start: Q | Fit | None = self._scaled_q(data)
        growth = Growth(self.settings.most(by_residual=False) if self.settings.inputs is None else 0)
        if data is self.data:
            self.checkpoint.write(replace(self._state, q=start))
        while True:
            self._enter("learning", data.n_rows)
            fit, promised = self._search(objective, start, growth, steps)
            need, cost = self._needed(1.0, data.n_rows), self._growth_cost(data.n_rows, growth.size(fit))
            self._judge(fit, promised, growth.gain(fit), cost, data.n_rows)
            wanted = self.settings.n != "auto" or growth.gain(fit) > need * cost
            if growth.size(fit) <= fit.basis.size or not wanted:
                return
            self._enter("adding inducing inputs", data.n_rows)
            some = pool.take(slice(0, n_candidates(growth.size(fit))))
            X, precision = np.asarray(some.X, dtype=float), objective.engine.precisions(fit, some)
            objective.Z = grown(fit.basis, X, precision, growth.size(fit), self.rng)
            growth, start = replace(growth, before=fit.lost), fit
            if len(objective.Z) == fit.basis.size:
                return

    def _search(
        self, objective: PassObjective, start: Q | Fit | None, growth: Growth, steps: int
    ) -> tuple[Fit, float]:
        """Take steps as long as they gain enough, and more for their work than further inducing inputs would."""
        data, state = objective.engine.data, self._state
        cost = evaluation_work(data.n_rows, len(objective.Z), self.n_latents)
        objective.tol = GAP_SHARE * self._needed(cost, data.n_rows)

        def tol(fit: Fit) -> float:
            growth.learn(fit)
            other = growth.gain(fit) / self._growth_cost(data.n_rows, growth.size(fit))
            found = cost * max(self._needed(1.0, data.n_rows), other)
            objective.tol = GAP_SHARE * found
            return found

        def seen(point: Point, better: bool) -> None:
            if data is self.data:
                self.records.append((point.theta, point.fit.bound, float(np.linalg.norm(point.slope))))
            if better:
                self._keep(point, data)

        if not steps:
            fit = objective.fit_at(state.theta, start, gradient=False)
            tol(fit)
            self.state = replace(state, Z=fit.basis.Z, q=fit.next_q, n_rows=data.n_rows, work=self.work)
            return fit, 0.0
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
        return end.fit, promised

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

    def _growth_cost(self, n_rows: int, size: int) -> float:
        """Return the work of more inducing inputs: an evaluation on these rows, and one on all rows that follows."""
        rows = n_rows if n_rows == self.data.n_rows else n_rows + self.data.n_rows
        return evaluation_work(rows, size, self.n_latents)

    def _judge(self, fit: Fit, promised: float, gain: float, cost: float, n_rows: int) -> None:
        """Record what the next steps promise, in nats per row, and cost, as a share of the work so far."""
        step, done = evaluation_work(n_rows, fit.basis.size, self.n_latents), max(self.work, 1.0)
        self.promised = max(promised, gain) / n_rows
        self.stopped = (
            f"The next step promises {promised / n_rows:.1g} nats per row for {step / done:.2g} times the work so far, "
            f"more inducing inputs {gain / n_rows:.1g} for {cost / done:.2g} times."
        )

    def _place(self, rows: Rows) -> Array:
        """Return the inducing inputs of the state; the first ones are chosen for its hyperparameters."""
        state = self._state
        if state.Z is None:
            self._enter("choosing inducing inputs", rows.n_rows)
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
        objective.tol = GAP_SHARE * self._needed(pass_work(self.data.n_rows, len(objective.Z)), self.data.n_rows)
        objective.start, objective.watch = self._scaled_q(self.data), self.watch
        return maximise(
            objective, state.theta, self.problem.support, optimizer, hyperprior=self.problem.hyperprior
        )

    def _converged(self) -> Fit:
        """Return q on all rows at the hyperparameters of the state, iterated to convergence."""
        state = self._state
        if state.Z is None:
            self._place(self.data.sample(self.settings.rows[1], self.rng))
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
