"""Learning with inducing inputs: on some rows, then on all rows, as long as that is worth the work.

Some rows without inducing inputs give the first hyperparameters. For these the number of inducing inputs is doubled as
long as that is worth its cost, with the new ones where the residual variance costs the bound most. Then hyperparameters
and places are learned together, on more rows and on all rows, as long as a step is worth its cost. Gain and cost are
compared by one rate of exchange (`sparse.work`).
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
from gpclass.learning.maximise import Compared, History, Learned, Plan, joined, maximise
from gpclass.learning.problem import Problem
from gpclass.learning.sites import begin_on_some
from gpclass.sparse.checkpoint import CHOSEN, Checkpoint, State
from gpclass.sparse.collapsed import Collapsed
from gpclass.sparse.engine import Engine, Fit
from gpclass.sparse.identity import digest, identity_of
from gpclass.sparse.inputs import choose, grown, n_candidates
from gpclass.sparse.objective import MAX_PASSES, PassObjective
from gpclass.sparse.search import Point, climb
from gpclass.sparse.settings import Inducing
from gpclass.sparse.work import EVALUATION, allowed_gap, pass_work, start_work

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
    work: float = 0.0  # in the unit of `sparse.work`
    passes: int = 0
    promised: float | None = None  # nats per row that is left on the table
    stopped: str = ""  # what the next steps would gain and cost
    missed: tuple[float, float] = (0.0, 0.0)  # nats per row and work of twice as many inducing inputs
    compared: tuple[Compared, ...] = ()  # models
    stage: str = ""  # what is being done
    started: float = field(default_factory=time.perf_counter)

    def fit(self) -> tuple[Fit, Learned | None]:
        """Return q at the best hyperparameters found, and how they were found; None if there are none to learn."""
        learning = self.plan.enabled and len(self.problem.theta) > 0
        learned: Learned | None = None
        interrupted = False
        try:
            given = self.problem.theta
            learned = self._learn(given if learning else None, resumed=self._begin(learning))
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
        return fit, replace(learned, warm=None, compared=self.compared) if learning else None

    # ------------------------------------------------------------------------------- the start

    def _begin(self, learning: bool) -> bool:
        """Find the first state: in a checkpoint, which is returned, on some rows, or as given."""
        self.work = start_work(min(self.settings.rows[0], self.data.n_rows))  # also where the kernel is given
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
        inverse, rows = first.learned.inverse_hessian, first.problem.n_rows
        self.compared = first.learned.compared
        self.state = State(self.problem.theta, None, None, inverse, self._eps, rows)
        if first.learned.interrupted:
            raise KeyboardInterrupt

    @property
    def _state(self) -> State:
        if self.state is None:
            raise ValueError("Learning has not begun.")
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

    def _learn(self, given: Array | None, *, resumed: bool) -> Learned | None:
        """Add inducing inputs and learn hyperparameters on more rows, then both places and them on all rows.

        An optimizer of the user's works on all rows instead. ``given`` is the theta of the kernel, None to keep it.
        """
        own, steps = self.plan.optimizer, self.settings.max_refine
        searched = given is not None and own is None
        if not resumed:
            rows = self._sample()
            self._place(rows)
            if not self._closed:  # where the residual variance decides
                self._grow(rows)
            if searched and (self._moves or rows.n_rows < self.data.n_rows):
                self._climb(rows, MAX_ITER, moves=False)
        if given is None:
            return None
        if own is not None:
            return self._by_the_user(own)
        if steps:
            self._climb(self.data, steps, moves=self._moves)
            self._start_again(given, steps)
        return None

    def _sample(self) -> Rows:
        """Return rows in random order; rows in memory may be sorted."""
        rows = self.data.sample(self.settings.rows[1], self.rng)
        return rows.take(self.rng.permutation(rows.n_rows))

    def _grow(self, rows: Rows) -> None:
        """Double the inducing inputs, at the same hyperparameters, as long as that is worth what learning costs then.

        To first order the residual variance costs the bound ``lost`` nats. The next doubling is taken to reduce it by
        the same factor as the last one. Hyperparameters are not learned with few inducing inputs, because they would
        become smoother than the data are, and would remain so.
        """
        objective, start, ratio, before = (
            self._objective(rows, np.asarray(self._state.Z)),
            None,
            FIRST_RATIO,
            np.inf,
        )
        fixed = self.settings.inputs is not None
        while True:
            size = len(objective.Z)
            more = size if fixed else min(2 * size, self.settings.most(by_residual=False))
            objective.tol = self._needed(self._pass(rows.n_rows, size), rows.n_rows)
            fit = objective.fit_at(self._state.theta, start, gradient=False)
            self._keep(replace(self._state_on(rows), Z=objective.Z, q=fit.next_q), fit)
            ratio = ratio if before == np.inf else min(fit.lost / max(before, 1e-300), 1.0)
            gain, before = fit.lost * (1.0 - ratio), fit.lost
            steps, n_rows = STEPS * EVALUATION, self.data.n_rows
            cost = steps * (self._pass(n_rows, more) - self._pass(n_rows, size))
            self.missed = gain / rows.n_rows, steps * self._pass(n_rows, 2 * size)
            if more <= size or (self.settings.n == "auto" and gain < self._needed(cost, rows.n_rows)):
                return
            pool = rows.take(slice(0, n_candidates(more)))
            X, precision = np.asarray(pool.X, dtype=float), objective.engine.precisions(fit, pool)
            objective.Z, start = grown(fit.basis, X, precision, more, self.rng), fit
            if len(objective.Z) == size:
                return

    def _climb(self, data: Data, steps: int, *, moves: bool) -> None:
        """Take steps of hyperparameters and inducing inputs as long as each gains enough for its work."""
        last, state = data is self.data, self._state_on(data)
        objective = self._objective(data, np.asarray(state.Z))
        cost = EVALUATION * self._pass(data.n_rows, len(objective.Z))
        self._enter("all rows" if last else "more rows", data.n_rows)
        if last:
            self.checkpoint.write(state)

        def tol() -> float:
            gap = self._needed(cost / EVALUATION, data.n_rows)  # a pass is worth it by the same rule
            objective.tol = min(gap, allowed_gap(data.n_rows))
            return self._needed(cost, data.n_rows)

        def seen(point: Point, better: bool) -> None:
            fit = point.fit
            if last:
                self.records.append((point.theta, fit.bound, float(np.linalg.norm(point.slope))))
            if better:
                self.end = point if last else None
                now = replace(state, theta=point.theta, Z=fit.basis.Z, q=fit.next_q)
                self._keep(replace(now, inverse_hessian=point.inverse), fit)

        tol()
        promised = climb(
            objective,
            state.theta,
            self.end.fit if self.end is not None else state.q,
            self.problem.support,
            np.eye(len(state.theta)) / data.n_rows
            if state.inverse_hessian is None
            else state.inverse_hessian,
            tol,
            moves=moves,
            log_prior=self.problem.hyperprior,
            max_iter=steps,
            seen=seen,
        )
        (gain, more), n_rows = self.missed, data.n_rows
        self.promised = max(promised / n_rows, gain)
        self.stopped = (
            f"The next step promises {promised / n_rows:.1g} nats per row for {cost / self.work:.2g} times the work so "
            f"far, twice as many inducing inputs {gain:.1g} for {more / self.work:.2g} times."
        )

    def _start_again(self, theta: Array, steps: int) -> None:
        """Learn from the kernel as given, if that is better on all rows than what was found."""
        state, prior = self._state, self.problem.hyperprior
        if self.end is None or self.plan.choose or np.allclose(theta, state.theta):
            return
        objective = self._objective(self.data, np.asarray(state.Z))
        objective.tol = self._needed(self._pass(self.data.n_rows, len(objective.Z)), self.data.n_rows)
        fit = objective.fit_at(theta, self.end.fit, gradient=False)
        if fit.bound + (0.0 if prior is None else prior(theta)[0]) > self.end.value:
            self.state, self.end = replace(state, theta=theta, q=fit.next_q), None
            self._climb(self.data, steps, moves=self._moves)

    def _keep(self, state: State, fit: Fit) -> None:
        """Make a state the best so far."""
        self.state = replace(state, eps=self._eps, work=self.work)
        if state.n_rows == self.data.n_rows:
            self.checkpoint.write(self.state)
        if self.watch is not None:
            self.watch(fit)

    def _state_on(self, data: Data) -> State:
        """Return the state with q and the inverse Hessian for these rows."""
        state, n_rows = self._state, data.n_rows
        inverse = None if state.inverse_hessian is None else state.inverse_hessian * (state.n_rows / n_rows)
        q = state.q if state.q is None or self._closed else state.q.repeated(n_rows / state.n_rows)
        return replace(state, q=q, inverse_hessian=inverse, n_rows=n_rows)

    def _needed(self, cost: float, n_rows: int) -> float:
        """Return the nats on so many rows that work of this cost must gain; per regression in closed form."""
        n_bounds = self.n_latents if self._closed else 1
        return self.settings.gain * n_rows * n_bounds * cost / self.work

    def _pass(self, n_rows: int, size: int) -> float:
        """Return the work of a pass; in closed form it is the same for any number of classes."""
        return pass_work(n_rows, size, 1 if self._closed else self.n_latents)

    def _place(self, rows: Rows) -> None:
        """Choose the first inducing inputs, for the hyperparameters of the state; in closed form all of them."""
        self._enter("choosing inducing inputs", rows.n_rows)
        kernel, most = self.problem.at(self._state.theta).kernel, self.settings.most(self._closed)
        first = most if self._closed else min(FIRST_INPUTS, most)
        Z = choose(self.settings, kernel, np.asarray(rows.X, dtype=float), first, self.rng)
        self.state = replace(self._state, Z=Z)

    def _by_the_user(self, optimizer: Any) -> Learned:
        """Return the end of the user's own search, on all rows."""
        state = self._state_on(self.data)
        objective = self._objective(self.data, np.asarray(state.Z))
        objective.tol = self._needed(self._pass(self.data.n_rows, len(objective.Z)), self.data.n_rows)
        objective.start, objective.watch = state.q, self.watch
        return maximise(
            objective, state.theta, self.problem.support, optimizer, hyperprior=self.problem.hyperprior
        )

    def _converged(self) -> Fit:
        """Return q on all rows at the hyperparameters of the state, iterated to convergence."""
        if self._state.Z is None:
            self._place(self._sample())
        state, n_rows = self._state_on(self.data), self.data.n_rows
        objective = self._objective(self.data, np.asarray(state.Z))
        objective.tol, objective.max_passes = EXACT_NATS * n_rows, 2 * self._most_passes
        objective.after = lambda theta, q: self.checkpoint.write(replace(state, q=q, work=self.work))
        fit = objective.fit_at(state.theta, state.q, gradient=False)
        if self.watch is not None:
            self.watch(fit)
        return fit

    @property
    def _most_passes(self) -> int:
        return min(MAX_PASSES, int(getattr(self.problem.inference, "max_iter", MAX_PASSES)))

    def _objective(self, data: Data, Z: Array) -> PassObjective:
        engine = engine_of(self.problem, data, self.n_latents, np.dtype(self.settings.dtype).type)
        objective = PassObjective(
            engine, self.problem.kernel, Z, self.settings.jitter, max_passes=self._most_passes
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
        self.work += self._pass(n_rows, size)
        self._report(f"{self.stage}: {size} inducing inputs, bound {bound / n_rows:.4f} per row")

    def _report(self, words: str) -> None:
        if self.plan.report is not None:
            self.plan.report(f"{words}, {time.perf_counter() - self.started:.0f} s")
