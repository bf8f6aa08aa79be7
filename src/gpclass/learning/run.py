"""Rungs with inducing inputs: the bound in passes over some rows and over all rows.

At the hyperparameters of earlier rungs, the number of inducing inputs is doubled as long as the leave-one-out score
gains enough for the cost, with the new ones where the residual variance lowers the bound most. Then hyperparameters are
learned as long as a step is worth its cost and the leave-one-out score does not fall.

Gain and cost are compared at a fixed exchange rate. At most the entropy of the labels can be learned: n H nats, with
H = -Σ_c p_c log p_c of the class frequencies p. Every doubling of the work so far must gain the fraction ``gain`` of
that. So work that multiplies the total by 1 + s is done if it promises n H * gain * log2(1 + s) nats. With a rare class
H is small, so that a few nats are enough. With q in closed form a pass costs the same for any number of functions, and
the bound is the sum of theirs. Work is counted in pairs of inducing inputs per row, not in seconds, so that a fit gives
the same result on every machine.

The states here have their rows in ``data`` and inducing inputs ``Z``; their warm start is q, or the fit that found it.
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
from gpclass.inference.dirichlet import DEFAULT
from gpclass.learning.ladder import Rung, State
from gpclass.learning.maximise import Learned, Plan, is_clear
from gpclass.learning.problem import Problem, with_eps
from gpclass.sparse.checkpoint import Checkpoint
from gpclass.sparse.collapsed import Collapsed
from gpclass.sparse.engine import MAX_PASSES, Engine, Fit, PassObjective, Q
from gpclass.sparse.loo import copies, leave_out, log_scores
from gpclass.sparse.settings import Inducing, choose, grown, n_candidates

FIRST_INPUTS = 150  # initial number of inducing inputs; passes with so few cost little
SCORED_ROWS = 5000  # rows with leave-one-out scores: the standard error of differences is about 0.001 nats
POOL_ROWS = 20_000  # number of rows that samples in memory are taken from
LAST_PASSES = 4  # final passes over all rows: one projects the sites, three iterate q to convergence
KERNEL = 200  # number of inducing inputs at which products take as long as kernel values (measured)
EVALUATION = 2  # passes: one projects the sites on the new inducing inputs, one computes the gradient
GAP_NATS = 1e-4  # q counts as converged if another pass gains less than this per row
START = 45  # work of learning on n rows without inducing inputs, divided by n³: 4.5 to 5 s at 1,200 rows


def engine_of(problem: Problem, data: Any, n_latents: int, dtype: Any, **options: Any) -> Engine:
    """Return the engine that passes over the data: variational, or Dirichlet classification in closed form."""
    if problem.closed:
        method: Any = problem.inference
        return Collapsed(data, method.targets, n_latents, dtype, **options)
    return Engine(data, problem.likelihood, n_latents, dtype, **options)


@dataclass(slots=True, eq=False)
class Run:
    """One fit in passes: its data and settings, and its progress so far."""

    problem: Problem
    data: Data
    n_latents: int
    plan: Plan
    settings: Inducing
    rng: np.random.Generator
    best: State | None = None  # best state with inducing inputs so far
    reverted: bool = False  # whether a step was undone
    scored: Rows | None = None  # rows with leave-one-out scores
    inverse: Array | None = None  # initial inverse Hessian of learning on all rows
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    passes: int = 0
    stage: str = ""  # name of the current stage, for progress
    started: float = field(default_factory=time.perf_counter)
    work: float = field(init=False)  # work done so far, in pairs of inducing inputs per row
    entropy: float = 0.0  # of a label, in nats

    def __post_init__(self) -> None:
        # Learning on a few rows without inducing inputs counts even if it is skipped.
        self.work = START * float(min(self.settings.rows[0], self.data.n_rows)) ** 3

    def state(self, problem: Problem, data: Data | None, warm: Q | Fit | None = None) -> State:
        """Return a state with the inducing inputs of a problem, at its hyperparameters."""
        return State(problem, Learned(problem.theta, 0.0, warm=warm), data, self)

    def objective(self, state: State, tol: float | None = None, *, last: bool = False) -> PassObjective:
        """Return the bound as an objective; q is iterated while a pass is worth its cost, or to ``tol`` nats.

        The ``last`` one may take twice as many passes, with a checkpoint after each.
        """
        problem, Z = state.problem, np.asarray(state.problem.Z)
        engine = engine_of(problem, state.data, self.n_latents, np.dtype(self.settings.dtype).type)

        def gap() -> float:
            cost = self.work_of_pass(state.n_rows, len(Z))
            return min(self.needed(cost, state.n_rows), allowed_gap(state.n_rows))

        return PassObjective(
            replace(engine, report=partial(self.heard, state, last)),
            problem.kernel,
            Z,
            self.settings.jitter,
            tol=gap if tol is None else tol,
            max_passes=min(MAX_PASSES, int(getattr(problem.inference, "max_iter", MAX_PASSES))) << last,
        )

    def work_of_pass(self, n_rows: int, size: int) -> float:
        """Return the work of a pass with M = ``size`` inducing inputs; M x M matrices count as M more rows."""
        work = float(n_rows + size) * size * (size + KERNEL)
        return work if self.problem.closed else work * self.n_latents

    def needed(self, cost: float, n_rows: int) -> float:
        """Return the least gain in nats, on this number of rows, that justifies work of this cost."""
        functions = self.n_latents if self.problem.closed else 1
        gain = self.settings.gain * self.entropy * n_rows * functions
        return gain * float(np.log2(1.0 + cost / self.work))

    # ----------------------------------------------------------------------------------- rungs

    def ladder(self) -> list[Rung]:
        """Return the rungs in passes: more rows, where inducing inputs are chosen, then all of them.

        A run that is resumed has its inducing inputs.
        """
        last = self.settings.max_refine > 0 or self.plan.optimizer is not None
        some = self.best is None and (self.data.n_rows > self.settings.rows[1] or not last)
        return [*([self.on_some] if some else []), *([self.on_all] if last else [])]

    def on_some(self, state: State) -> State:
        """Return the state on more rows, with inducing inputs for the hyperparameters of the state."""
        start = self.with_inputs(state.problem)
        self.enter("learning", start.n_rows)
        return state.onto(start.problem, start.data, self, q_of(start))

    def on_all(self, state: State) -> State:
        """Return the state on all rows, with the inducing inputs of the rung before; the same one to learn nothing."""
        if self.reverted:
            return state
        start = self.on_all_rows(state.problem)
        after = state.onto(start.problem, start.data, self, q_of(start))
        self.inverse = after.learned.inverse_hessian
        self.enter("learning", self.data.n_rows)
        self.write(start)
        return after

    def on_all_rows(self, problem: Problem) -> State:
        """Return the best state, moved to all rows; inducing inputs are chosen for a problem if there are none."""
        start = self.with_inputs(problem) if self.best is None else self.best
        self.best = self.state(start.problem, self.data, q_of(start))
        return self.best

    def search(self, state: State) -> dict[str, Any]:
        """Return the options of a search, which ends if a leave-one-out score is clearly worse than before.

        The bound is below the evidence because of the residual variance, which is smaller for a smoother kernel: with
        few inducing inputs for a rough function, learning raises the bound and makes predictions worse.
        """
        n_rows, size = state.n_rows, len(np.asarray(state.problem.Z))
        best = list[tuple[State, Array]]()  # the step with the best leave-one-out score

        def improved(theta: Array, fit: Fit) -> None:
            here = self.state(state.problem.at(theta), state.data, fit)
            if self.plan.optimizer is None and not self.problem.closed:
                scores = self.loo_scores(here)
                if best and is_clear(best[0][1] - scores):
                    self.reverted = True
                    self.keep(best[0][0])
                    raise StopIteration
                if not best or scores.mean() >= best[0][1].mean():
                    best[:] = [(here, scores)]
            self.keep(here)

        def tol() -> float:
            return self.needed(EVALUATION * self.work_of_pass(n_rows, size), n_rows)

        steps = self.settings.max_refine if state.data is self.data else MAX_ITER
        return {"tol": tol, "max_iter": steps, "improved": improved, "report": None}

    def loo_scores(self, state: State) -> Array:
        """Return the leave-one-out log probability of the labels of some rows, at the fit of a state."""
        if self.scored is None:
            self.scored = self.data.sample(SCORED_ROWS, np.random.default_rng(0))
        fit = state.learned.warm
        engine = self.objective(replace(state, data=self.scored)).engine
        step = leave_out(engine, fit.basis, state.problem.likelihood, fit.next_q, fit.offset)
        log_p = np.concatenate(self.scored.total(step).log_proba)
        known = copies(self.scored) > 0.0
        return log_scores(self.scored.y[known], log_p, self.problem.likelihood.labels)

    # ------------------------------------------------------------------------- inducing inputs

    def with_inputs(self, problem: Problem) -> State:
        """Return the state on more rows, with inducing inputs for the kernel and hyperparameters of a problem."""
        rows = self.data.sample(self.settings.rows[1], self.rng)
        rows = rows.take(self.rng.permutation(rows.n_rows))  # the sample may be sorted
        self.scored = rows.take(slice(0, SCORED_ROWS))
        self.enter("choosing inducing inputs", rows.n_rows)
        self.count_labels(rows)
        problem = with_eps(self.problem.like(problem), DEFAULT)
        most = self.settings.most(self.problem.closed)
        first = most if self.problem.closed else min(FIRST_INPUTS, most)
        Z = choose(self.settings, problem.kernel, np.asarray(rows.X, dtype=float), first, self.rng)
        self.best = self.state(replace(problem, Z=Z), rows)
        return self.best if self.problem.closed else self._grown(self.best)

    def _grown(self, state: State) -> State:
        """Double the inducing inputs, at the same hyperparameters, as long as that is worth its cost.

        The gain is that of the leave-one-out score. From one doubling to the next it is assumed to fall by the same
        factor as before. Hyperparameters are not learned with few inducing inputs, because the functions
        would become too smooth for the data, and would remain so.
        """
        rows: Any = state.data
        fixed, start = self.settings.inputs is not None, None
        score, gain = -np.inf, np.inf
        while True:
            size = len(np.asarray(state.problem.Z))
            more = size if fixed else min(2 * size, self.settings.most(by_residual=False))
            objective = self.objective(state)
            start = objective.fit_at(state.problem.theta, start, gradient=False)
            self.keep(state := self.state(state.problem, rows, start))
            if more <= size:
                return state
            before, score = score, float(self.loo_scores(state).mean())
            gain, last = max(score - before, 0.0), gain
            expected = gain * min(gain / max(last, 1e-300), 1.0) if np.isfinite(last) else gain
            n_all = self.data.n_rows
            cost = LAST_PASSES * (self.work_of_pass(n_all, more) - self.work_of_pass(n_all, size))
            if self.settings.n == "auto" and rows.n_rows * expected < self.needed(cost, rows.n_rows):
                return state
            pool = rows.take(slice(0, n_candidates(more)))
            X, precision = np.asarray(pool.X, dtype=float), objective.engine.precisions(start, pool)
            Z = grown(start.basis, X, precision, more, self.rng)
            if len(Z) == size:
                return state
            state = self.state(replace(state.problem, Z=Z), rows)

    # -------------------------------------------------------------------------------- progress

    def keep(self, state: State) -> None:
        """Keep the best state so far."""
        self.best = state
        if state.data is self.data:
            self.write(state)

    def write(self, state: State) -> None:
        """Write a checkpoint, with the initial inverse Hessian of learning on all rows."""
        problem, q, eps = state.problem, q_of(state), getattr(state.problem.inference, "eps", None)
        if q is not None:
            self.checkpoint.write(
                theta=problem.theta, Z=problem.Z, mean=q.mean, P=q.P, inverse_hessian=self.inverse, eps=eps,
                work=self.work,
            )  # fmt: skip

    def resume(self, problem: Problem) -> State | None:
        """Return the state of the checkpoint, of which this run takes the inducing inputs; None if there is none."""
        kept = self.checkpoint.read("theta", "Z", "mean", "P", "work")
        if kept is None:
            return None
        eps = float(kept["eps"]) if "eps" in kept else None
        problem = with_eps(problem.at(kept["theta"]), eps)
        self.count_labels(self.data.sample(POOL_ROWS, np.random.default_rng(0)))
        self.work, self.inverse = float(kept["work"]), kept.get("inverse_hessian")
        self.best = self.state(replace(problem, Z=kept["Z"]), self.data, Q(kept["mean"], kept["P"]))
        return State(problem, Learned(problem.theta, 0.0, inverse_hessian=self.inverse), self.data)

    def count_labels(self, rows: Rows) -> None:
        """Set the entropy of the labels, which bounds the gain of learning."""
        self.entropy = entropy_of(class_counts(rows.y, rows.weight, self.problem.likelihood.labels))

    def enter(self, name: str, n_rows: int) -> None:
        """Set the name of the next stage and its number of rows."""
        self.stage = f"{name} on {n_rows:,} rows"
        self.plan.announce(self.stage)

    def heard(self, state: State, writes: bool, bound: float, q: Q | None) -> None:
        """Count a pass, and report the bound per row, which is comparable for any number of rows."""
        n_rows, size = state.n_rows, len(np.asarray(state.problem.Z))
        self.passes += 1
        self.work += self.work_of_pass(n_rows, size)
        words = f"{self.stage}: {size} inducing inputs, bound {bound / n_rows:.4f} per row"
        self.plan.announce(words)
        if writes:
            self.write(self.state(state.problem, self.data, q))

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.perf_counter() - self.started


def q_of(state: State) -> Q | None:
    """Return the q of a state, that after another full step if its fit is known."""
    warm: Any = state.learned.warm
    return warm.next_q if isinstance(warm, Fit) else warm


def entropy_of(counts: Array) -> float:
    """Return the entropy of a label in nats, from the total weights of the classes; half a row of each is added."""
    p = (counts + 0.5) / (counts + 0.5).sum()
    return float(-(p * np.log(p)).sum())


def allowed_gap(n_rows: int) -> float:
    """Return the nats that another pass may still gain when q has converged."""
    return max(1.0, GAP_NATS * n_rows)
