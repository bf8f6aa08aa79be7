"""Rungs with inducing inputs: the bound in passes over some rows and over all rows, as levels of the ladder.

At the hyperparameters of earlier rungs, the number of inducing inputs is doubled as long as the leave-one-out score
gains enough for the cost, with the new ones where the residual variance lowers the bound most. Then hyperparameters are
learned as long as a step is worth its cost and the leave-one-out score does not fall. Gain and cost are compared at a
fixed exchange rate (`sparse.work`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from gpclass.core.frequencies import class_counts
from gpclass.core.optimisers import MAX_ITER
from gpclass.core.protocols import Array
from gpclass.data.rows import Data, Rows
from gpclass.inference.dirichlet import DEFAULT, Dirichlet, Targets
from gpclass.learning.ladder import Rung, State
from gpclass.learning.maximise import Enough, Learned, Plan, is_clear
from gpclass.learning.problem import Problem
from gpclass.sparse.checkpoint import Checkpoint, Kept
from gpclass.sparse.collapsed import Collapsed
from gpclass.sparse.engine import Engine, Fit, Q
from gpclass.sparse.loo import copies, leave_out, log_scores
from gpclass.sparse.objective import MAX_PASSES, PassObjective
from gpclass.sparse.settings import Inducing, choose, grown, n_candidates
from gpclass.sparse.work import EVALUATION, Work, allowed_gap, entropy_of

FIRST_INPUTS = 150  # initial number of inducing inputs: the cost of their passes is negligible
SCORED_ROWS = 5000  # rows of leave-one-out scores: differences have a standard error of about 0.001 nats
LAST_PASSES = (
    4  # final passes over all rows in every fit: one projects the sites, three iterate q to convergence
)


def engine_of(problem: Problem, data: Data, n_latents: int, dtype: Any, **options: Any) -> Engine:
    """Return the engine that passes over the data: variational, or Dirichlet classification in closed form."""
    method = problem.inference
    if isinstance(method, Dirichlet):
        targets = Targets.at(DEFAULT if method.eps is None else method.eps)
        return Collapsed(data, targets, n_latents, dtype, **options)
    return Engine(data, problem.likelihood, n_latents, dtype, **options)


@dataclass(frozen=True, slots=True, eq=False)
class PassLevel:
    """The bound with the inducing inputs Z on some rows; passes start from ``q``."""

    run: Run
    problem: Problem  # its own rows are not used
    data: Data
    Z: Array
    q: Q | None = None
    learns: bool = True  # whether hyperparameters are learned on more rows too

    @property
    def n_rows(self) -> int:
        """Number of data points."""
        return self.data.n_rows

    @property
    def inference(self) -> Any:
        """The method."""
        return self.problem.inference

    @property
    def support(self) -> Array:
        """Bounds on theta."""
        return self.problem.support

    @property
    def hyperprior(self) -> Any:
        """The log density of theta and its gradient."""
        return self.problem.hyperprior

    def at(self, theta: Array) -> PassLevel:
        """Return the level at other hyperparameters."""
        return replace(self, problem=self.problem.at(theta))

    def begun(self, before: Any, learned: Learned) -> tuple[Array, Array, Any]:
        """Return theta, inverse Hessian and fit to start from, after learning on another level."""
        theta, H = learned.theta, learned.inverse_hessian
        H = np.eye(len(theta)) / self.n_rows if H is None else H * (before.n_rows / self.n_rows)
        warm = learned.warm if isinstance(before, PassLevel) and before.data is self.data else None
        return theta, H, warm

    def needed(self) -> Callable[[], float]:
        """Return the gain that a step needs to be worth the work of an evaluation."""
        work, n_rows = self.run.work, self.n_rows
        return lambda: work.needed(EVALUATION * work.of_pass(n_rows, len(self.Z)), n_rows)

    def judged(self, state: State) -> State:
        """Return the state after a search: at the last step that was not reverted."""
        run, learned = self.run, state.learned
        if run.fit is None or learned.warm is run.fit or learned.interrupted:
            return state
        run.level = level = replace(run.reached, learns=False)
        prior = self.hyperprior(level.problem.theta)[0]
        return State(
            level,
            replace(
                learned,
                theta=level.problem.theta,
                objective=run.fit.bound + prior,
                warm=run.fit,
                inverse_hessian=None,
            ),
        )

    def loo_scores(self, fit: Fit) -> Array:
        """Return the leave-one-out log probability of the labels of some rows."""
        rows = self.run.scored_rows()
        objective = replace(self, data=rows).objective()
        step = leave_out(objective, fit.basis.kernel, self.problem.likelihood, fit.next_q, fit.offset)
        log_p = np.concatenate(rows.total(step).log_proba)
        return log_scores(rows.y[copies(rows) > 0.0], log_p)

    @property
    def options(self) -> dict[str, Any]:
        """Further arguments of `maximise`."""
        steps = self.run.settings.max_refine if self.data is self.run.data else MAX_ITER
        return {"max_iter": steps, "improved": Steps(self), "report": None}

    def objective(self, tol: Any = None) -> PassObjective:
        """Return the bound, with q iterated while a pass is worth its work, or to ``tol`` nats."""
        run, n_rows = self.run, self.n_rows
        engine = engine_of(self.problem, self.data, run.n_latents, np.dtype(run.settings.dtype).type)
        most = int(getattr(self.inference, "max_iter", MAX_PASSES))
        heard = partial(run.heard, n_rows, len(self.Z))

        def gap() -> float:
            return min(run.work.needed(run.work.of_pass(n_rows, len(self.Z)), n_rows), allowed_gap(n_rows))

        return PassObjective(
            replace(engine, report=heard),
            self.problem.kernel,
            self.Z,
            run.settings.jitter,
            tol=gap if callable(tol) or tol is None else tol,
            max_passes=min(MAX_PASSES, most),
            start=self.q,
        )


@dataclass(slots=True, eq=False)
class Steps:
    """Records the steps of one search, and ends it if a leave-one-out score is clearly worse than an earlier one.

    The bound is below the evidence because of the residual variance, which is smaller for a smoother kernel: with few
    inducing inputs for a rough function, learning raises the bound and makes predictions worse.
    """

    level: PassLevel
    best: tuple[PassLevel, Fit, Array] | None = None  # the step of best leave-one-out score

    def __call__(self, theta: Array, fit: Fit) -> None:
        """Keep a step that raised the bound, or return to the best one and end the search."""
        level, run = self.level.at(theta), self.level.run
        if run.plan.optimizer is None and not run.closed:
            scores = level.loo_scores(fit)
            if self.best is not None and is_clear(self.best[2] - scores):
                run.keep(*self.best[:2])
                raise Enough
            if self.best is None or scores.mean() >= self.best[2].mean():
                self.best = level, fit, scores
        run.keep(level, fit)


@dataclass(slots=True, eq=False)
class Run:
    """One fit in passes: its data and settings, and its progress so far."""

    problem: Problem
    data: Data
    n_latents: int
    plan: Plan
    settings: Inducing
    rng: np.random.Generator
    watch: Callable[[Fit], None] | None = None  # called with every better fit
    level: PassLevel | None = None  # the best so far
    fit: Fit | None = None  # there
    scored: Rows | None = None  # rows of leave-one-out scores
    inverse: Array | None = None  # initial inverse Hessian of learning on all rows
    checkpoint: Checkpoint = field(default_factory=lambda: Checkpoint(None, {}))
    passes: int = 0
    missed: tuple[float, float] = (0.0, 0.0)  # nats per row and work of twice as many inducing inputs
    stage: str = ""  # what is being done
    started: float = field(default_factory=time.perf_counter)
    work: Work = field(init=False)

    def __post_init__(self) -> None:
        n_rows = min(self.settings.rows[0], self.data.n_rows)
        self.work = Work.of_start(n_rows, self.settings.gain, self.n_latents, self.closed)

    @property
    def reached(self) -> PassLevel:
        """The last level; after an interruption its inducing inputs are used."""
        if self.level is None:
            raise ValueError("Inducing inputs have not been chosen yet.")
        return self.level

    @property
    def closed(self) -> bool:
        """Whether q is known in closed form."""
        return isinstance(self.problem.inference, Dirichlet)

    def ladder(self) -> list[Rung]:
        """Return the rungs in passes: more rows, where inducing inputs are chosen, then all of them."""
        some = self.data.n_rows > self.settings.rows[1]
        last = self.settings.max_refine > 0 or self.plan.optimizer is not None
        return [*([self.on_some] if some or not last else []), *([self.on_all] if last else [])]

    def on_some(self, state: State) -> PassLevel:
        """Return the level of more rows, with inducing inputs for the hyperparameters of the state."""
        rows = self.data.sample(self.settings.rows[1], self.rng)
        rows = rows.take(self.rng.permutation(rows.n_rows))  # rows in memory may be sorted
        self.scored = rows.take(slice(0, SCORED_ROWS))
        self.enter("choosing inducing inputs", rows.n_rows)
        self.work.entropy = entropy_of(class_counts(rows.y, rows.weight))
        problem = self.at(state)
        most = self.settings.most(self.closed)
        first = most if self.closed else min(FIRST_INPUTS, most)
        Z = choose(self.settings, problem.kernel, np.asarray(rows.X, dtype=float), first, self.rng)
        self.level = PassLevel(self, problem, rows, Z)
        if not self.closed:
            self._grow(self.level)
        self.enter("more rows", rows.n_rows)
        return self.level

    def on_all(self, state: State) -> PassLevel | None:
        """Return the level of all rows, with the inducing inputs of the one before; None to learn nothing there."""
        level = state.problem if isinstance(state.problem, PassLevel) else self.on_some(state)
        if not level.learns:
            return None
        fit, q = state.learned.warm, level.q
        if isinstance(fit, Fit):
            q = fit.next_q
        if q is not None and not self.closed:
            q = q.repeated(self.data.n_rows / level.n_rows)
        self.level = replace(level, data=self.data, q=q)
        if state.learned.inverse_hessian is not None:
            self.inverse = state.learned.inverse_hessian * (state.problem.n_rows / self.data.n_rows)
        self.enter("all rows", self.data.n_rows)
        self.write(self.level, q)
        return self.level

    def scored_rows(self) -> Rows:
        """Return the rows of leave-one-out scores."""
        if self.scored is None:
            self.scored = self.data.sample(SCORED_ROWS, np.random.default_rng(0))
        return self.scored

    def at(self, state: State) -> Problem:
        """Return the problem with the kernel and hyperparameters from rungs without inducing inputs."""
        problem = self.problem.like(state.problem).at(state.learned.theta)
        return self.with_eps(problem, getattr(state.problem.inference, "eps", None))

    def with_eps(self, problem: Problem, eps: float | None) -> Problem:
        """Return a problem with an eps of Dirichlet classification, if it is one; the default if that is None."""
        method: Any = problem.inference
        return replace(problem, inference=replace(method, eps=eps or DEFAULT)) if self.closed else problem

    def _grow(self, level: PassLevel) -> None:
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
            objective = level.objective()
            fit = objective.fit_at(theta, start, gradient=False)
            level = replace(level, q=fit.next_q)
            self.keep(level, fit)
            if more <= size:
                return
            before, score = score, float(level.loo_scores(fit).mean())
            gain, last = max(score - before, 0.0), gain
            expected = gain * min(gain / max(last, 1e-300), 1.0) if np.isfinite(last) else gain
            cost = LAST_PASSES * (work.of_pass(n_all, more) - work.of_pass(n_all, size))
            self.missed = (
                (expected if np.isfinite(expected) else 0.0),
                LAST_PASSES * work.of_pass(n_all, 2 * size),
            )
            if self.settings.n == "auto" and n_rows * expected < work.needed(cost, n_rows):
                return
            pool = rows.take(slice(0, n_candidates(more)))
            X, precision = np.asarray(pool.X, dtype=float), objective.engine.precisions(fit, pool)
            level, start = replace(level, Z=grown(fit.basis, X, precision, more, self.rng), q=None), fit
            if len(level.Z) == size:
                return

    def keep(self, level: PassLevel, fit: Fit) -> None:
        """Keep the best level so far."""
        self.level, self.fit = level, fit
        if level.data is self.data:
            self.write(level, fit.next_q)
        if self.watch is not None:
            self.watch(fit)

    def write(self, level: PassLevel, q: Q | None) -> None:
        """Write a checkpoint, with the initial inverse Hessian of learning on all rows."""
        eps = getattr(level.inference, "eps", None)
        kept = Kept(level.problem.theta, level.Z, q, self.inverse, eps, level.n_rows, self.work.done)
        self.checkpoint.write(kept)

    # ------------------------------------------------------------------------------- reporting

    def enter(self, name: str, n_rows: int) -> None:
        """Set the name of the next stage and its number of rows."""
        self.stage = f"{name} ({n_rows:,})"
        self._report(self.stage)

    def heard(self, n_rows: int, size: int, bound: float) -> None:
        """Count a pass, and report the bound per row, which is comparable for any number of rows."""
        self.passes += 1
        self.work.done += self.work.of_pass(n_rows, size)
        self._report(f"{self.stage}: {size} inducing inputs, bound {bound / n_rows:.4f} per row")

    def _report(self, words: str) -> None:
        if self.plan.report is not None:
            self.plan.report(f"{words}, {time.perf_counter() - self.started:.0f} s")
