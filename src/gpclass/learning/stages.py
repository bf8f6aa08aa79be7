"""The stages of learning with inducing inputs: some rows, more rows, all rows.

Some rows without inducing inputs find the region. More rows find the hyperparameters, how many inducing inputs are
worth their cost, and their places. On all rows steps with the exact gradient continue while they are worth a pass; the
bound on all rows is the judge. Every stage starts from the sites and the curvature of the last one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from gpclass.core.optimisers import Limited
from gpclass.core.protocols import Array
from gpclass.data.rows import Data, Rows
from gpclass.inference.dirichlet import DEFAULT, Dirichlet, Targets
from gpclass.learning.dirichlet import begin_dirichlet
from gpclass.learning.ladder import State as Start
from gpclass.learning.maximise import History, Learned, Plan, attempt, joined, maximise
from gpclass.learning.problem import Problem
from gpclass.learning.sites import begin_on_some
from gpclass.sparse.checkpoint import CHOSEN, Checkpoint, State
from gpclass.sparse.collapsed import Collapsed
from gpclass.sparse.engine import Engine, Fit, Q
from gpclass.sparse.identity import digest, identity_of
from gpclass.sparse.inputs import choose, lengths, move
from gpclass.sparse.objective import PassObjective
from gpclass.sparse.settings import Inducing

FEW = 300  # inducing inputs that "auto" starts from
DIRICHLET_ROWS = 5000  # on which Dirichlet classification learns with inducing inputs
ROUGHLY = 1e-3  # nats per row at which the stage on more rows ends: the inducing inputs move after it
GAP = 0.3  # nats to which q is iterated while learning on some rows
MOST_PASSES = 20  # at the first theta of a stage
LATER_PASSES = 4  # at later ones on all rows, where q is never far off
COARSE_STEPS = 30  # of hyperparameters, on some rows
WORTH = 1e-4  # nats per row that a hundred more inducing inputs must gain


def engine_of(problem: Problem, data: Data, n_latents: int, dtype: Any, **options: Any) -> Engine | Collapsed:
    """Return what passes over the data: variational inference, or Dirichlet classification in closed form."""
    method = problem.inference
    if isinstance(method, Dirichlet):
        targets = Targets.at(DEFAULT if method.eps is None else method.eps)
        return Collapsed(data, targets, n_latents, dtype, **options)
    return Engine(data, problem.likelihood, n_latents, dtype, **options)


def _for_more_rows(inverse: Array | None, n_rows: int, more: int) -> Array | None:
    """Return the inverse Hessian for more rows: the curvature grows in proportion to them."""
    return None if inverse is None else inverse * (n_rows / more)


@dataclass(slots=True, eq=False)
class Run:
    """One fit: the stages of learning, the number of passes so far, the checkpoint."""

    problem: Problem
    data: Data
    n_latents: int
    plan: Plan
    settings: Inducing
    rng: np.random.Generator
    watch: Callable[[Fit], None] | None = None  # called with every fit beyond few rows
    passes: int = 0
    stage: str = ""  # what is being done
    started: float = field(default_factory=time.perf_counter)

    def fit(self) -> tuple[Fit, Learned | None]:
        """Return q at the best hyperparameters found, and how they were found."""
        learning = self.plan.enabled and len(self.problem.theta) > 0
        problem, identity = self.problem, {}
        if self.settings.checkpoint is not None:
            model = {
                "kernel": problem.kernel,
                "likelihood": problem.likelihood,
                "inference": problem.inference,
            }
            model |= {"hyperprior": problem.hyperprior, **self.plan.asked}
            model |= {"optimizer": learning and (self.plan.optimizer or True)}
            identity = identity_of(self.data, self.n_latents, model, self.settings)
        # The same kernel is chosen again by a run that resumes.
        first = self._begin() if learning and self.plan.choose else None
        if identity and first is not None:
            kernel = self.problem.kernel
            identity[CHOSEN] = digest(kernel.clone_with_theta(0.0 * kernel.theta))
        checkpoint = Checkpoint(self.settings.checkpoint, identity)
        state, learned = checkpoint.read(), None
        if state is not None and state.eps is not None:
            method: Any = self.problem.inference
            self.problem = replace(self.problem, inference=replace(method, eps=state.eps))
        if state is None and learning and self.plan.optimizer is None:
            first = self._begin() if first is None else first
            coarse, learned = attempt(partial(self._coarse, first), first.learned)
            state, learned = (self._fixed(), learned) if coarse is None else coarse
        elif state is None:
            state = self._fixed()
        if not learning:
            return self._converge(state, checkpoint), None
        unseen = learned is None or self.settings.rows[1] < self.data.n_rows  # all rows, by any search
        if (self.settings.max_refine > 0 and unseen) or self.plan.optimizer is not None:
            refined, learned = attempt(partial(self._refine, state, checkpoint, learned), learned)
            if refined is not None:
                return refined
        fit = self._converge(state, checkpoint)
        learned = Learned(state.theta, fit.bound, joined([])) if learned is None else learned
        return fit, self._told(learned)

    # ------------------------------------------------------------------------------- some rows

    def _coarse(self, beginning: Start) -> tuple[State, Learned]:
        """Return hyperparameters, inducing inputs and q from some of the rows."""
        more = self.settings.rows[1]
        rows = self.data.sample(min(more, DIRICHLET_ROWS) if self._closed else more, self.rng)
        inverse = _for_more_rows(beginning.learned.inverse_hessian, beginning.problem.n_rows, rows.n_rows)
        learned = self._on_more(self.problem.theta, rows, inverse)
        fit, inverse = learned.warm, learned.inverse_hessian
        state = State(learned.theta, fit.basis.Z, fit.next_q, inverse, self._eps)
        share = rows.n_rows / self.data.n_rows
        times = 1.0 if self._closed else 1.0 / share
        if not self._moves or learned.interrupted:
            inverse = _for_more_rows(inverse, rows.n_rows, self.data.n_rows)
            return replace(state, inverse_hessian=inverse, q=fit.next_q.repeated(times)), learned
        self._enter("moving inducing inputs", rows.n_rows)
        steps = self.settings.steps(rows.n_rows, fit.basis.size, self.n_latents)
        state, moved = self._move(self._objective(rows, state.Z, GAP), state, steps)
        history = joined([learned.history, moved.history] if share >= 1.0 else [])
        curvature = None if state.curvature is None else state.curvature.scaled(share)
        state = replace(state, curvature=curvature, q=moved.warm.next_q.repeated(times))
        return state, replace(moved, history=history)

    def _on_more(self, theta: Array, rows: Rows, inverse: Array | None) -> Learned:
        """Learn on more rows, with more inducing inputs as long as another hundred gains enough."""
        learned: Any = None  # until the first of one size or more
        fit, before = None, np.inf
        tol = ROUGHLY if self._moves and rows.n_rows < self.data.n_rows else self.settings.gain
        for most in self._sizes():
            objective = self._objective(rows, self._choose(theta, rows, most), GAP)
            objective.start = fit
            size = len(objective.Z)
            if learned is not None:
                added = size - learned.warm.basis.size
                if added <= 0:
                    break
                # At the same hyperparameters: the next bound is higher for its inducing inputs alone.
                grown = objective.fit_at(theta, fit, gradient=False)
                if grown.bound - before < WORTH * rows.n_rows * added / 100.0:
                    break
                objective.start = grown.next_q
            self._enter("more rows", rows.n_rows)
            learned = self._maximised(objective, theta, inverse, tol, max_iter=COARSE_STEPS)
            theta, fit, inverse = learned.theta, learned.warm, learned.inverse_hessian
            before = fit.bound
            if learned.interrupted:
                break
        whole = rows.n_rows >= self.data.n_rows
        return learned if whole else replace(learned, history=joined([]))  # type: ignore[no-any-return]

    def _maximised(
        self, objective: PassObjective, theta: Array, inverse: Array | None, tol: float, **options: Any
    ) -> Learned:
        """Return the end of a search that needs ``tol`` nats per row to go on."""
        problem = self.problem
        return maximise(
            objective,
            theta,
            problem.support,
            hyperprior=problem.hyperprior,
            inverse_hessian=inverse,
            tol=tol * objective.engine.data.n_rows,
            **options,
        )

    def _move(
        self, objective: PassObjective, state: State, steps: int, checkpoint: Checkpoint | None = None
    ) -> tuple[State, Learned]:
        """Move the inducing inputs together with the hyperparameters, as long as that gains enough."""
        inverse = state.inverse_hessian if state.curvature is None else state.curvature
        taken = [state.steps]
        scale = lengths(objective.kernel_at(state.theta), state.Z) if state.scale is None else state.scale

        def after(theta: Array, fit: Fit, curvature: Limited) -> None:
            taken[0] += 1
            if checkpoint is not None:
                now = State(theta, fit.basis.Z, fit.next_q, curvature.block, self._eps)
                checkpoint.write(replace(now, curvature=curvature, scale=scale, steps=taken[0]))

        end = move(
            objective,
            state.theta,
            state.q,
            self.problem.support,
            np.eye(len(state.theta)) / self.data.n_rows if inverse is None else inverse,
            scale=scale,
            log_prior=self.problem.hyperprior,
            tol=self.settings.gain * objective.engine.data.n_rows,
            max_iter=max(steps - state.steps, 0),
            after=after,
        )
        history = History(*(np.array(each) for each in zip(*end.records, strict=True)))
        block = end.inverse.block
        learned = Learned(end.theta, end.value, history, "", end.interrupted, block, end.fit)
        now = State(end.theta, end.fit.basis.Z, end.fit.next_q, block, self._eps)
        return replace(now, curvature=end.inverse, scale=scale), learned

    def _sizes(self) -> list[int]:
        """Return the numbers of inducing inputs to try, each twice the last one."""
        sizes = [self._most]
        if self.settings.n == "auto" and self.settings.inputs is None and not self._closed:
            while sizes[0] >= 2 * FEW:
                sizes.insert(0, sizes[0] // 2)
        return sizes

    @property
    def _most(self) -> int:
        return self.settings.most(None if self._closed else self.data.n_rows, self.n_latents)

    @property
    def _closed(self) -> bool:
        """Whether q is known in closed form."""
        return isinstance(self.problem.inference, Dirichlet)

    @property
    def _moves(self) -> bool:
        if self.settings.inputs is not None:
            return False
        return not self._closed if self.settings.move is None else self.settings.move

    def _begin(self, plan: Plan | None = None) -> Start:
        """Learn on some rows without inducing inputs, and choose the kernel there if that is asked for."""
        n_rows, plan = self.settings.rows[0], plan or self.plan
        self._enter("a start without inducing inputs", min(n_rows, self.data.n_rows))
        if self._closed:
            self.problem, first = begin_dirichlet(self.problem, self.data, plan, n_rows, self.rng)
        else:
            self.problem, first = begin_on_some(
                self.problem, self.data, n_rows, self.n_latents, plan, self.rng
            )
        return first

    @property
    def _eps(self) -> float | None:
        """What Dirichlet classification has chosen."""
        return getattr(self.problem.inference, "eps", None)

    def _fixed(self) -> State:
        """Return where to start with the kernel as given: q from some rows."""
        rows = self.data.sample(self.settings.rows[1], self.rng)
        theta = self.problem.theta
        Z = self._choose(theta, rows, self._most)
        if isinstance(self.problem.inference, Dirichlet):
            if self._eps is None:
                self._begin(replace(self.plan, enabled=False))
            return State(theta, Z, None, None, self._eps)
        if rows.n_rows >= self.data.n_rows:
            return State(theta, Z, None, None)
        objective = replace(self._objective(rows, Z, 1.0), max_passes=10)
        return State(theta, Z, objective.fit_at(theta, None, gradient=False).next_q, None)

    def _choose(self, theta: Array, rows: Rows, most: int) -> Array:
        self._enter("choosing inducing inputs", rows.n_rows)
        tol = self.settings.tol * (1.0 if self._closed else 0.1)
        return choose(self.settings, self.problem.at(theta).kernel, rows.X, most, self.rng, tol)

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
        n = self.data.n_rows
        objective = self._objective(
            self.data, state.Z, max(min(1.0, 1e-4 * n), 1e-5 * n), after=self._keeper(state, checkpoint)
        )
        objective.start, objective.later_passes = state.q, LATER_PASSES
        self._enter("all rows", n)
        best: list[Fit] = []

        def watch(fit: Fit) -> None:
            if not best or fit.bound > best[0].bound:
                best[:] = [fit]
                theta = state.theta if objective.theta is None else objective.theta
                checkpoint.write(replace(state, theta=theta, Z=fit.basis.Z, q=fit.next_q))
            if self.watch is not None:
                self.watch(best[0])

        objective.watch = watch
        inverse = np.eye(len(state.theta)) / n if state.inverse_hessian is None else state.inverse_hessian
        steps = self.settings.steps(n, len(state.Z), self.n_latents)
        own = self.plan.optimizer
        if self._moves and own is None:
            objective.after, objective.watch = None, self.watch  # a trial has other inducing inputs
            checkpoint.write(state)
            learned = self._move(objective, state, steps, checkpoint)[1]
        else:
            options = {"max_iter": steps, "radius": 0.5, "optimizer": own}
            start = inverse if own is None else None
            learned = self._maximised(objective, state.theta, start, self.settings.gain, **options)
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
        return min(most, int(getattr(self.problem.inference, "max_iter", most)))

    def _objective(
        self, data: Data, Z: Array, tol: float, after: Callable[[Array, Q], None] | None = None
    ) -> PassObjective:
        dtype = np.dtype(self.settings.dtype).type
        engine = engine_of(
            self.problem, data, self.n_latents, dtype, report=partial(self._heard, n_rows=data.n_rows)
        )
        return PassObjective(
            engine,
            self.problem.kernel,
            Z,
            self.settings.jitter,
            tol=tol,
            max_passes=self._most_passes(MOST_PASSES),
            later_passes=self._most_passes(MOST_PASSES),
            after=after,
            watch=self.watch if data.n_rows > self.settings.rows[0] else None,
        )

    def _enter(self, name: str, n_rows: int) -> None:
        """Name what is done next, and on how many rows."""
        self.stage = f"{name} ({n_rows:,})"
        self._report(self.stage)

    def _heard(self, bound: float, n_rows: int) -> None:
        """Count a pass, and report the bound per row: the one scale that few rows and all rows share."""
        self.passes += 1
        self._report(f"{self.stage}: bound {bound / n_rows:.4f} per row")

    def _report(self, words: str) -> None:
        if self.plan.report is not None:
            self.plan.report(f"{words}, {time.perf_counter() - self.started:.0f} s")
