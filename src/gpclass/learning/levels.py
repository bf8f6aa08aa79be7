"""Rungs with inducing inputs: the bound in passes over some rows and over all rows, as levels of the ladder.

At the hyperparameters of earlier rungs, the number of inducing inputs is doubled as long as the leave-one-out score
gains enough for the cost, with the new ones where the residual variance lowers the bound most. Then hyperparameters are
learned as long as a step is worth its cost and the leave-one-out score does not fall. Gain and cost are compared at a
fixed exchange rate (`sparse.work`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from gpclass.core.frequencies import class_counts
from gpclass.core.optimisers import MAX_ITER
from gpclass.core.protocols import Array
from gpclass.data.rows import Data, Rows
from gpclass.inference.dirichlet import DEFAULT, Targets
from gpclass.learning.ladder import Rung, State
from gpclass.learning.loo import with_eps
from gpclass.learning.maximise import Learned, Plan, is_clear
from gpclass.learning.problem import Problem
from gpclass.sparse.checkpoint import Checkpoint
from gpclass.sparse.collapsed import Collapsed
from gpclass.sparse.engine import Engine, Fit, Q
from gpclass.sparse.loo import copies, leave_out, log_scores
from gpclass.sparse.objective import MAX_PASSES, PassObjective
from gpclass.sparse.settings import Inducing, choose, grown, n_candidates
from gpclass.sparse.work import EVALUATION, START, Work, allowed_gap, entropy_of

FIRST_INPUTS = 150  # initial number of inducing inputs; passes with so few cost little
SCORED_ROWS = 5000  # rows with leave-one-out scores: the standard error of differences is about 0.001 nats
POOL_ROWS = 20_000  # number of rows that samples in memory are taken from
LAST_PASSES = 4  # final passes over all rows: one projects the sites, three iterate q to convergence


def engine_of(problem: Problem, data: Data, n_latents: int, dtype: Any, **options: Any) -> Engine:
    """Return the engine that passes over the data: variational, or Dirichlet classification in closed form."""
    if problem.closed:
        method: Any = problem.inference
        targets = Targets.at(DEFAULT if method.eps is None else method.eps)
        return Collapsed(data, targets, n_latents, dtype, **options)
    return Engine(data, problem.likelihood, n_latents, dtype, **options)


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """A problem with the inducing inputs Z on the rows of ``data``; passes start from ``q``."""

    problem: Problem
    data: Data
    Z: Array
    q: Q | None = None


@dataclass(slots=True, eq=False)
class Run:
    """One fit in passes: its data and settings, and its progress so far."""

    problem: Problem
    data: Data
    n_latents: int
    plan: Plan
    settings: Inducing
    rng: np.random.Generator
    level: Level | None = None  # best level so far
    fit: Fit | None = None  # fit at that level, if known
    reverted: bool = False  # whether a step was undone
    scored: Rows | None = None  # rows with leave-one-out scores
    inverse: Array | None = None  # initial inverse Hessian of learning on all rows
    checkpoint: Checkpoint = field(default_factory=lambda: Checkpoint(None, {}))
    passes: int = 0
    stage: str = ""  # name of the current stage, for progress
    started: float = field(default_factory=time.perf_counter)
    work: Work = field(init=False)

    def __post_init__(self) -> None:
        # Learning on a few rows without inducing inputs counts even if it is skipped.
        start = START * float(min(self.settings.rows[0], self.data.n_rows)) ** 3
        self.work = Work(self.settings.gain, self.n_latents, self.problem.closed, start)

    def objective(self, level: Level, tol: float | None = None, *, last: bool = False) -> PassObjective:
        """Return the bound as an objective; q is iterated while a pass is worth its cost, or to ``tol`` nats.

        The ``last`` one may take twice as many passes, with a checkpoint after each.
        """
        work, n_rows, size = self.work, level.data.n_rows, len(level.Z)
        engine = engine_of(level.problem, level.data, self.n_latents, np.dtype(self.settings.dtype).type)

        def gap() -> float:
            return min(work.needed(work.of_pass(n_rows, size), n_rows), allowed_gap(n_rows))

        return PassObjective(
            replace(engine, report=partial(self.heard, level, last)),
            level.problem.kernel,
            level.Z,
            self.settings.jitter,
            tol=gap if tol is None else tol,
            max_passes=min(MAX_PASSES, int(getattr(level.problem.inference, "max_iter", MAX_PASSES))) << last,
            start=level.q,
        )

    # ----------------------------------------------------------------------------------- rungs

    def ladder(self) -> list[Rung]:
        """Return the rungs in passes: more rows, where inducing inputs are chosen, then all of them.

        A run that is resumed has its inducing inputs.
        """
        last = self.settings.max_refine > 0 or self.plan.optimizer is not None
        some = self.level is None and (self.data.n_rows > self.settings.rows[1] or not last)
        return [*([self.on_some] if some else []), *([self.on_all] if last else [])]

    def on_some(self, state: State) -> State:
        """Return the state on more rows, with inducing inputs for the hyperparameters of the state."""
        level = self.with_inputs(state.problem)
        self.enter("learning on", level.data.n_rows)
        return self._search(state, level)

    def on_all(self, state: State) -> State:
        """Return the state on all rows, with the inducing inputs of the rung before; the same one to learn nothing."""
        if self.reverted:
            return state
        level = self.extended(state.problem)
        after = self._search(state, level)
        self.inverse = after.learned.inverse_hessian
        self.enter("learning on all", self.data.n_rows)
        self.write(level, level.q)
        return after

    def extended(self, problem: Problem) -> Level:
        """Return the level of all rows with the inducing inputs so far; they are chosen for a problem if needed."""
        level = self.with_inputs(problem) if self.level is None else self.level
        q = level.q if self.fit is None else self.fit.next_q
        if level.data is not self.data and q is not None and not self.problem.closed:
            q = q.repeated(self.data.n_rows / level.data.n_rows)
        self.level, self.fit = replace(level, data=self.data, q=q), None
        return self.level

    def _search(self, state: State, level: Level) -> State:
        """Return the state of a search on a level, which ends if a leave-one-out score is clearly worse than before.

        The bound is below the evidence because of the residual variance, which is smaller for a smoother kernel: with
        few inducing inputs for a rough function, learning raises the bound and makes predictions worse.
        """
        work, n_rows, size = self.work, level.data.n_rows, len(level.Z)
        best = list[tuple[Level, Fit, Array]]()  # the step with the best leave-one-out score

        def improved(theta: Array, fit: Fit) -> None:
            here = replace(level, problem=level.problem.at(theta))
            if self.plan.optimizer is None and not self.problem.closed:
                scores = self.loo_scores(here, fit)
                if best and is_clear(best[0][2] - scores):
                    self.reverted = True
                    self.keep(*best[0][:2])
                    raise StopIteration
                if not best or scores.mean() >= best[0][2].mean():
                    best[:] = [(here, fit, scores)]
            self.keep(here, fit)

        steps = self.settings.max_refine if level.data is self.data else MAX_ITER
        return state.onto(
            level.problem,
            level.data,
            objective=lambda problem: self.objective(replace(level, problem=problem)),
            tol=lambda: work.needed(EVALUATION * work.of_pass(n_rows, size), n_rows),
            options={"max_iter": steps, "improved": improved, "report": None},
        )

    def loo_scores(self, level: Level, fit: Fit) -> Array:
        """Return the leave-one-out log probability of the labels of some rows."""
        if self.scored is None:
            self.scored = self.data.sample(SCORED_ROWS, np.random.default_rng(0))
        engine = self.objective(replace(level, data=self.scored)).engine
        step = leave_out(engine, fit.basis, level.problem.likelihood, fit.next_q, fit.offset)
        log_p = np.concatenate(self.scored.total(step).log_proba)
        known = copies(self.scored) > 0.0
        return log_scores(self.scored.y[known], log_p, self.problem.likelihood.labels)

    # ------------------------------------------------------------------------- inducing inputs

    def with_inputs(self, problem: Problem) -> Level:
        """Return the level of more rows, with inducing inputs for the kernel and hyperparameters of a problem."""
        rows = self.data.sample(self.settings.rows[1], self.rng)
        rows = rows.take(self.rng.permutation(rows.n_rows))  # the sample may be sorted
        self.scored = rows.take(slice(0, SCORED_ROWS))
        self.enter("choosing inducing inputs on", rows.n_rows)
        self.work.entropy = entropy_of(class_counts(rows.y, rows.weight, self.problem.likelihood.labels))
        problem = with_eps(self.problem.like(problem), DEFAULT)
        most = self.settings.most(self.problem.closed)
        first = most if self.problem.closed else min(FIRST_INPUTS, most)
        Z = choose(self.settings, problem.kernel, np.asarray(rows.X, dtype=float), first, self.rng)
        self.level = Level(problem, rows, Z)
        return self.level if self.problem.closed else self._grown(self.level)

    def _grown(self, level: Level) -> Level:
        """Double the inducing inputs, at the same hyperparameters, as long as that is worth its cost.

        The gain is that of the leave-one-out score. From one doubling to the next it is assumed to fall by the same
        factor as before. Hyperparameters are not learned with few inducing inputs, because the functions
        would become too smooth for the data, and would remain so.
        """
        rows: Any = level.data
        work, theta, fixed = self.work, level.problem.theta, self.settings.inputs is not None
        n_rows, n_all, start, score, gain = rows.n_rows, self.data.n_rows, None, -np.inf, np.inf
        while True:
            size = len(level.Z)
            more = size if fixed else min(2 * size, self.settings.most(by_residual=False))
            objective = self.objective(level)
            fit = objective.fit_at(theta, start, gradient=False)
            level = replace(level, q=fit.next_q)
            self.keep(level, fit)
            if more <= size:
                return level
            before, score = score, float(self.loo_scores(level, fit).mean())
            gain, last = max(score - before, 0.0), gain
            expected = gain * min(gain / max(last, 1e-300), 1.0) if np.isfinite(last) else gain
            cost = LAST_PASSES * (work.of_pass(n_all, more) - work.of_pass(n_all, size))
            if self.settings.n == "auto" and n_rows * expected < work.needed(cost, n_rows):
                return level
            pool = rows.take(slice(0, n_candidates(more)))
            X, precision = np.asarray(pool.X, dtype=float), objective.engine.precisions(fit, pool)
            Z = grown(fit.basis, X, precision, more, self.rng)
            if len(Z) == size:
                return level
            level, start = replace(level, Z=Z, q=None), fit

    # -------------------------------------------------------------------------------- progress

    def keep(self, level: Level, fit: Fit) -> None:
        """Keep the best level so far."""
        self.level, self.fit = level, fit
        if level.data is self.data:
            self.write(level, fit.next_q)

    def write(self, level: Level, q: Q | None) -> None:
        """Write a checkpoint, with the initial inverse Hessian of learning on all rows."""
        problem, eps = level.problem, getattr(level.problem.inference, "eps", None)
        if q is not None:
            self.checkpoint.write(
                theta=problem.theta, Z=level.Z, mean=q.mean, P=q.P, inverse_hessian=self.inverse, eps=eps,
                work=self.work.done,
            )  # fmt: skip

    def resume(self, problem: Problem) -> State | None:
        """Return the state of the checkpoint, of which this run takes the level; None if there is none."""
        kept = self.checkpoint.read("theta", "Z", "mean", "P", "work")
        if kept is None:
            return None
        eps = float(kept["eps"]) if "eps" in kept else None
        problem = with_eps(problem.at(kept["theta"]), eps)
        rows = self.data.sample(POOL_ROWS, np.random.default_rng(0))
        self.work.entropy = entropy_of(class_counts(rows.y, rows.weight, problem.likelihood.labels))
        self.work.done, self.inverse = float(kept["work"]), kept.get("inverse_hessian")
        self.level = Level(problem, self.data, kept["Z"], Q(kept["mean"], kept["P"]))
        return State(problem, Learned(problem.theta, 0.0, inverse_hessian=self.inverse), self.data)

    def enter(self, name: str, n_rows: int) -> None:
        """Set the name of the next stage and its number of rows."""
        self.stage = f"{name} {n_rows:,} rows"
        self.plan.announce(self.stage)

    def heard(self, level: Level, writes: bool, bound: float, q: Q | None) -> None:
        """Count a pass, and report the bound per row, which is comparable for any number of rows."""
        n_rows, size = level.data.n_rows, len(level.Z)
        self.passes += 1
        self.work.done += self.work.of_pass(n_rows, size)
        self.plan.announce(f"{self.stage}, {size} inducing inputs, bound {bound / n_rows:.4f} per row")
        if writes:
            self.write(level, q)

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.perf_counter() - self.started
