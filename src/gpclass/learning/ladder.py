"""Learning on a ladder: searches (rungs) on more and more rows, each starting from the result of the last one.

On the first rung starting points are found and, if requested, models are compared. Around its optimum the evidence
of r rows is uncertain by about p / 2 nats for p hyperparameters (Wilks), so a rung below all rows ends when Newton's
step promises a tenth of that, and the last one at a thousandth. A rung starts from the theta of the last one, and from
its inverse Hessian times (rows before / rows now). A rung may depend on the state that it starts from:
Dirichlet classification chooses eps there, FITC its inducing inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from gpclass.core.objective import Objective
from gpclass.core.optimisers import TOL_NATS, Tol
from gpclass.core.protocols import AnySites, Array
from gpclass.learning.choice import Found, Grid, Model, choose, compared
from gpclass.learning.curvature import curvature, integral
from gpclass.learning.initial import Look, starts
from gpclass.learning.maximise import Learned, Plan, attempt, best_of, joined, maximise
from gpclass.learning.problem import Problem, SiteObjective

FIRST_ROWS = 300  # rows of the first rung: thirty times the ten hyperparameters of a typical table
GROWTH = 4  # times as many rows on the next rung: an evaluation there takes 64 times as long
EXACT_ROWS = 100  # up to this number hyperparameters are learned as accurately as in scikit-learn
RUNG_SHARE = 0.1  # a search on a rung ends at this fraction of the sampling error, p / 2 nats
LAST_SHARE = 1e-3  # the same on all rows: such a difference is statistically irrelevant


class Level(Protocol):
    """The objective of a rung: a `Problem` without inducing inputs, or the bound with them in passes over rows."""

    @property
    def n_rows(self) -> int:
        """Number of data points."""

    @property
    def support(self) -> Array:
        """Bounds on theta."""

    @property
    def hyperprior(self) -> Any:
        """Log density of theta and its gradient."""

    @property
    def inference(self) -> Any:
        """The method."""

    @property
    def options(self) -> dict[str, Any]:
        """Further arguments of `maximise`."""

    def at(self, theta: Array) -> Any:
        """Return the level at other hyperparameters."""

    def needed(self) -> Tol | None:
        """Return the nats that a step must gain; None if the number of rows determines them."""

    def objective(self, tol: Tol) -> Objective:
        """Return the objective, for a search that ends at ``tol``."""

    def begun(self, before: Any, learned: Learned) -> tuple[Array, Array | None, Any]:
        """Return theta, inverse Hessian and warm start from the end of learning on another level."""

    def judged(self, state: State) -> State:
        """Return the state after a search on this level, without steps that were reverted."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The state of learning: the level of a rung with the choices made, at the best theta so far.

    ``learned`` has the curvature there and the warm start of the rung's rows.
    """

    problem: Any  # a Level
    learned: Learned


Rung = Callable[[State], Level | None]  # returns the next level; None if nothing is learned on it


def rung_sizes(n_rows: int) -> list[int]:
    """Return the numbers of rows, below ``n_rows``, of the first rungs.

    A rung with more than two thirds of all rows would save little work.

    Examples
    --------
    >>> rung_sizes(400), rung_sizes(5000)
    ([], [300, 1200])
    """
    sizes: list[int] = []
    while 3 * (size := FIRST_ROWS * GROWTH ** len(sizes)) <= 2 * n_rows:
        sizes.append(size)
    return sizes


def rung_tol(n_dims: int) -> float:
    """Return the promised gain in nats at which the search on a rung below all rows ends."""
    return RUNG_SHARE * 0.5 * max(n_dims, 1)


def last_tol(n_rows: int, n_dims: int) -> float:
    """Return the promised gain in nats at which the search on all rows ends."""
    return TOL_NATS if n_rows <= EXACT_ROWS else LAST_SHARE * 0.5 * max(n_dims, 1)


def first_rung(problem: Problem) -> Problem:
    """Return the problem on the rows that learning begins with."""
    sizes = rung_sizes(problem.n_rows)
    return problem.some(sizes[0]) if sizes else problem


def rungs(problem: Problem, *last: Rung, most: int | None = None) -> list[Rung]:
    """Return rungs of increasing size up to ``most`` rows (by default all), and then the ``last``.

    Each has the kernel and the hyperparameters found on the previous one.
    """
    most = problem.n_rows if most is None else min(most, problem.n_rows)
    sizes = [*rung_sizes(most), most]
    return [*(lambda state, n=n: problem.like(state.problem).some(n) for n in sizes), *last]


def learn(
    problem: Problem,
    plan: Plan,
    rng: np.random.Generator,
    *,
    ladder: Sequence[Rung] | None = None,
    init: AnySites | None = None,
    first: State | None = None,
) -> tuple[Problem, Learned | None]:
    """Return a problem at its best hyperparameters, and the result of learning: None if there are none to learn.

    The default ladder is that of `rungs`. Learning starts on the first rung, or at ``first`` if it is given. An
    interruption keeps the best result so far.
    """
    if not (plan.enabled and len(problem.theta)):
        return problem, None
    if plan.optimizer is not None and not plan.choose:
        learned = _best_of(problem, [problem.theta], plan, rng, warm=init)
        return problem.at(learned.theta), learned
    state = begin(problem, plan, rng) if first is None else first
    state = ascend(state, rungs(problem) if ladder is None else ladder, plan, problem.n_rows)
    last, learned = state.problem, state.learned
    end = problem.like(last)
    if last.n_rows < problem.n_rows or type(last.inference) is not type(problem.inference):  # interrupted
        return end.at(learned.theta), replace(learned, history=joined([]), warm=None)
    end = replace(end, inference=last.inference, make_prior=last.make_prior)
    if first_rung(problem) is not problem and len(problem.theta) == len(learned.theta):
        learned = not_below(problem.theta, State(end, learned), plan).learned
    return end.at(learned.theta), learned


def ascend(state: State, ladder: Sequence[Rung], plan: Plan, n_rows: float) -> State:
    """Return the state after all rungs, the last one with ``n_rows`` rows; an interruption keeps the best."""
    for rung in ladder:
        before = state.problem
        problem, learned = attempt(partial(rung, state), state.learned)
        if problem is None:
            state = State(before, state.learned if learned is None else learned)
            continue
        last = problem.n_rows == n_rows
        new = last or problem.n_rows > before.n_rows or problem.inference is not before.inference
        if new and (plan.optimizer is None or last):
            state = problem.judged(climb(problem, state, plan, last=last))
        elif new:  # a custom optimizer uses all rows
            state = State(problem, replace(state.learned, warm=None, inverse_hessian=None))
    return state


def climb(rung: Level, state: State, plan: Plan, *, last: bool) -> State:
    """Return the state after the search on a rung; an interruption keeps the best so far."""
    before = state.learned
    if not last:
        plan.announce(f"{rung.n_rows} rows")

    def search() -> Learned:
        theta, inverse, warm = rung.begun(state.problem, before)
        if inverse is None and plan.optimizer is None:
            inverse = measured_inverse(rung, theta, warm)
        return _searched(rung, theta, plan, last, inverse_hessian=inverse, warm=warm)

    # An interruption before the first evaluation has ended keeps the last rung, if there was one.
    learned, stopped = attempt(search, before if np.isfinite(before.objective) else None)
    if learned is None:
        return State(state.problem, stopped or before)
    return State(rung.at(learned.theta), replace(learned, compared=before.compared))


def _searched(rung: Level, theta: Array, plan: Plan, last: bool, **options: Any) -> Learned:
    """Return the result of a search on a rung."""
    n_dims, tol = len(theta), rung.needed()
    if tol is None:
        tol = last_tol(rung.n_rows, n_dims) if last else rung_tol(n_dims)
    options = {"report": plan.report, "hyperprior": rung.hyperprior, "tol": tol} | rung.options | options
    return maximise(rung.objective(tol), theta, rung.support, plan.optimizer, **options)


def measured_inverse(problem: Any, theta: Array, sites: AnySites | None) -> Array:
    """Return the inverse Hessian of minus the objective at theta, measured on the first rung."""
    few, prior = first_rung(problem), problem.hyperprior
    if sites is None or few is not problem:
        sites = SiteObjective(few).evaluate(theta, gradient=False).warm
    A = curvature(few, prior, theta, sites) * (problem.n_rows / few.n_rows)
    return integral(prior, A)[0]


def not_below(theta: Array, state: State, plan: Plan) -> State:
    """Return the result of learning on all rows, or of a search from theta if the objective is larger there."""
    level, learned = state.problem, state.learned
    if plan.choose or plan.optimizer is not None or learned.interrupted:
        return state
    theta, prior = level.begun(level, replace(learned, theta=theta))[0], level.hyperprior
    tol = level.needed() or last_tol(level.n_rows, len(theta))
    try:
        end = level.objective(tol).evaluate(theta, learned.warm, gradient=False)
        if end.evidence + prior(theta)[0] > learned.objective:
            learned = replace(_searched(level, theta, plan, last=True), compared=learned.compared)
    except KeyboardInterrupt:
        return State(level, replace(learned.stopped(), warm=learned.warm))
    except ValueError:  # the kernel as given has no evidence
        return state
    return State(level.at(learned.theta), learned)


# ---------------------------------------------------------------------------------- the first rung


def begin(problem: Problem, plan: Plan, rng: np.random.Generator) -> State:
    """Find a starting point on the first rung; if requested, choose kernel or shrinkage there and on the second.

    All this uses the problem's guide, which has nearly the same optimum and is many times faster.
    """
    few, looks, found = first_rung(problem), list[Look](), Found()
    guide, tol = few.guide(), rung_tol(len(few.theta))
    chooses = plan.choose or few.hyperprior.open
    grid = Grid(guide.with_tol(tol), plan.choose, plan.warps)
    simple = grid.at(Model()) if chooses else grid.problem
    try:
        plan.announce("looking at length scales")
        thetas = starts(simple, looks)
        if chooses:
            reached, learned = _chosen(grid, problem, thetas, found, plan, rng)
        else:
            learned = _best_of(simple, thetas, plan, rng, tol=tol)
            # The inverse Hessian of a few quasi-Newton steps may promise far too little along a ridge.
            reached, learned = simple.at(learned.theta), replace(learned, inverse_hessian=None)
    except KeyboardInterrupt:
        if not found and not looks:
            raise
        if found:
            best = max(found, key=lambda each: (each.problem.n_rows, each.value))
            reached, learned = best.problem, best.learned.stopped()
        else:
            value, theta = max(looks, key=lambda look: look[0])
            reached, learned = simple.at(theta), Learned(theta, value, joined([])).stopped()
    if guide.inference is not few.inference:
        learned = replace(learned, warm=None)
    rows = few if reached.n_rows == few.n_rows else problem.some(reached.n_rows)
    return State(rows.like(reached), replace(learned, compared=compared(grid, found)))


def _chosen(
    grid: Grid, problem: Problem, thetas: list[Array], found: Found, plan: Plan, rng: np.random.Generator
) -> tuple[Problem, Learned]:
    """Return the model of largest integrated evidence on the first two rungs, at its best hyperparameters."""
    simple, tol = grid.at(Model()), rung_tol(len(grid.problem.theta))
    plan.announce("choosing the kernel")
    thetas = thetas + _random_starts(simple, plan.n_restarts, rng)
    best = choose(grid, thetas, found, tol, plan.report)
    for n_rows in rung_sizes(problem.n_rows)[1:2]:
        more = problem.some(n_rows)
        if more.n_rows > grid.problem.n_rows:
            plan.announce(f"choosing the kernel on {more.n_rows} rows")
            grid = Grid(more.guide().with_tol(tol), plan.choose, plan.warps, grid.problem)
            best = choose(grid, best, found, tol, plan.report)
    return best.problem, best.learned


def _best_of(problem: Problem, thetas: list[Array], plan: Plan, rng: Any, **options: Any) -> Learned:
    """Return the best of the searches from given and from random starting points."""
    options |= {"hyperprior": problem.hyperprior}
    return best_of(partial(SiteObjective, problem), thetas, problem.support, plan, rng, **options)


def _random_starts(problem: Problem, n: int, rng: np.random.Generator) -> list[Array]:
    """Return draws of theta from the hyperprior, centred on the kernel as given."""
    prior, p = problem.hyperprior, len(problem.theta)
    if not n:
        return []
    moves = prior.unwhitened(rng.standard_normal((prior.n_free(p), n)), p)
    return [problem.theta + moves[:, k] for k in range(n)]
