"""Learning on a ladder: searches (rungs) on more and more rows, each starting from the result of the last one.

On the first rung starting points are found and, if requested, models are compared. Around its optimum the evidence
of r rows is uncertain by about p / 2 nats for p hyperparameters (Wilks), so a rung below all rows ends when Newton's
step promises a tenth of that, and the last rung at a thousandth. A rung starts from the theta of the last one, and from
its inverse Hessian, scaled by the ratio of the numbers of rows. A rung may depend on the state that it starts from:
Dirichlet classification chooses eps there, FITC its inducing inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gpclass.core.optimisers import TOL_NATS
from gpclass.core.protocols import Array, Objective
from gpclass.data.rows import Data
from gpclass.learning.choice import Candidate, Grid, Model, choose, curvature, integral
from gpclass.learning.initial import Look, starts
from gpclass.learning.maximise import Compared, Learned, Plan, best_of, maximise
from gpclass.learning.problem import Problem, SiteObjective, with_eps

FIRST_ROWS = 300  # number of rows of the first rung: thirty per hyperparameter of a typical table
GROWTH = 4  # ratio of the numbers of rows of two rungs: the cost of an evaluation grows 64-fold
EXACT_ROWS = 100  # up to this number of rows the search is as accurate as scikit-learn's
RUNG_SHARE = 0.1  # a search on a rung ends at this fraction of the sampling error, p / 2 nats
LAST_SHARE = 1e-3  # the same fraction for the search on all rows: statistically irrelevant


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The state of learning: the problem of a rung at the best theta so far, with its curvature and warm start.

    In passes with inducing inputs ``data`` has the rows, and ``run``, a `gpclass.learning.run.Run`, makes the bound
    and the options of a search.
    """

    problem: Problem
    learned: Learned
    data: Data | None = None
    run: Any = None

    @property
    def n_rows(self) -> int:
        """Number of data points."""
        return len(self.problem.X) if self.data is None else self.data.n_rows

    def objective(self, tol: float | None = None) -> Objective:
        """Return the evidence as an objective, as accurate as a search to ``tol`` nats needs."""
        if self.run is not None:
            return self.run.objective(self)
        return SiteObjective(self.problem if tol is None else self.problem.with_tol(tol))

    def onto(self, problem: Problem, data: Data | None = None, run: Any = None, warm: Any = None) -> State:
        """Return the state from which a search on other rows starts."""
        learned, after = self.learned, State(problem, self.learned, data, run)
        inverse = learned.inverse_hessian
        if inverse is not None:  # the curvature grows in proportion to the rows
            inverse = inverse * (self.n_rows / after.n_rows)
        if problem.X is self.problem.X and data is self.data and run is self.run:
            warm = learned.warm
        return replace(after, learned=replace(learned, inverse_hessian=inverse, warm=warm))


Rung = Callable[[State], State]  # returns the state on more rows, or the same one to learn nothing there


def rung_sizes(n_rows: int) -> list[int]:
    """Return the numbers of rows of the rungs, the last of which has all rows.

    A rung below with more than two thirds of all rows would save little work.

    Examples
    --------
    >>> rung_sizes(400), rung_sizes(5000)
    ([400], [300, 1200, 5000])
    """
    sizes: list[int] = []
    while 3 * (size := FIRST_ROWS * GROWTH ** len(sizes)) <= 2 * n_rows:
        sizes.append(size)
    return [*sizes, n_rows]


def rung_tol(n_dims: int, share: float = RUNG_SHARE) -> float:
    """Return the promised gain in nats at which a search ends: a fraction of the sampling error."""
    return share * 0.5 * max(n_dims, 1)


def first_rung(problem: Problem) -> Problem:
    """Return the problem on the rows that learning begins with."""
    return problem.some(rung_sizes(len(problem.X))[0])


def rungs(problem: Problem, most: int | None = None) -> list[Rung]:
    """Return rungs of increasing size up to ``most`` rows (by default all).

    Each has the kernel and the hyperparameters found on the previous one.
    """

    def rung(n: int, state: State) -> State:
        return state.onto(with_eps(problem.like(state.problem)).some(n))

    n_rows = len(problem.X)
    return [partial(rung, n) for n in rung_sizes(min(most or n_rows, n_rows))]


def learn(
    problem: Problem,
    plan: Plan,
    rng: np.random.Generator,
    *,
    ladder: Sequence[Rung] | None = None,
    first: State | None = None,
) -> tuple[Problem, Learned | None]:
    """Return a problem at its best hyperparameters, and the result of learning: None if there are none to learn.

    The default ladder is that of `rungs`. Learning starts on the first rung, or at ``first`` if it is given. An
    interruption keeps the best result so far.
    """
    if not (plan.enabled and len(problem.theta)):
        return with_eps(problem), None
    if plan.optimizer is not None and not plan.choose:
        learned = best_of(problem, [problem.theta], plan, rng)
        return problem.at(learned.theta), learned
    state = begin(problem, plan, rng) if first is None else first
    looked_at = first is not None or len(rung_sizes(len(problem.X))) == 1
    given = None if looked_at else problem.theta
    state = ascend(state, rungs(problem) if ladder is None else ladder, plan, len(problem.X), given)
    return problem.like(state.problem), state.learned


def ascend(
    state: State, ladder: Sequence[Rung], plan: Plan, n_rows: float = np.inf, given: Array | None = None
) -> State:
    """Return the state after all rungs, the last one with ``n_rows`` rows; an interruption keeps the best.

    The final objective is at least that of the theta in ``given``.
    """
    for rung in ladder:
        if state.learned.interrupted:
            break
        try:
            after = rung(state)
            last = after.n_rows == n_rows
            method = after.problem.inference
            if last or after.n_rows > state.n_rows or method is not state.problem.inference:
                state = climb(after, plan, last=last) if last or plan.optimizer is None else after
            if last and given is not None:
                state = not_below(given, state, plan)
        except KeyboardInterrupt:
            if not np.isfinite(state.learned.objective):
                raise
            state = replace(state, learned=state.learned.stopped())
    return state


def climb(state: State, plan: Plan, *, last: bool) -> State:
    """Return the state after a search on its rows."""
    problem, before = state.problem, state.learned
    inverse, tol = before.inverse_hessian, None
    plan.announce(f"learning on {state.n_rows:,} rows")
    if inverse is None and plan.optimizer is None:
        inverse = measured_inverse(state)
    if state.run is None:
        exact = last and state.n_rows <= EXACT_ROWS
        tol = TOL_NATS if exact else rung_tol(len(before.theta), LAST_SHARE if last else RUNG_SHARE)
    learned = maximise(
        state.objective(tol),
        before.theta,
        problem.bounds,
        plan.optimizer,
        hyperprior=problem.hyperprior,
        warm=before.warm,
        inverse_hessian=inverse,
        **({"tol": tol, "report": plan.report} if state.run is None else state.run.search(state)),
    )
    learned = replace(learned, compared=before.compared)
    return replace(state, problem=problem.at(learned.theta), learned=learned)


def measured_inverse(state: State) -> Array:
    """Return the inverse Hessian of minus the objective, measured on the first rung."""
    problem, theta, sites = state.problem, state.learned.theta, state.learned.warm
    if state.data is not None:
        return np.eye(len(theta)) / state.n_rows
    few = first_rung(problem)
    A = curvature(problem, theta, sites, None if few is problem else few)
    return integral(problem.hyperprior, A)[0]


def not_below(theta: Array, state: State, plan: Plan) -> State:
    """Return the result of learning on all rows, or of a search from theta if the objective is larger there."""
    learned, problem = state.learned, state.problem
    if plan.choose or plan.optimizer is not None or learned.interrupted:
        return state
    try:
        end = state.objective().evaluate(theta, learned.warm, gradient=False)
    except ValueError:  # the evidence of the given kernel is not finite
        return state
    if end.evidence + problem.hyperprior(theta)[0] <= learned.objective:
        return state
    start = replace(learned, theta=theta, inverse_hessian=None)
    return climb(replace(state, learned=start), plan, last=True)


# ---------------------------------------------------------------------------------- the first rung


def begin(problem: Problem, plan: Plan, rng: np.random.Generator) -> State:
    """Return the state that learning starts from; kernel and shrinkage are chosen on two rungs if requested.

    Everything uses the guide of the problem, which has nearly the same optimum and is many times faster.
    """
    looks, found = list[Look](), list[Candidate]()
    few = first_rung(problem)
    tol, chooses = rung_tol(len(few.theta)), plan.choose or few.hyperprior.open
    grid = Grid(few.guide().with_tol(tol), plan.choose, plan.warps)
    simple = grid.at(Model()) if chooses else grid.problem
    try:
        plan.announce(f"searching for length scales on {len(few.X):,} rows")
        thetas = starts(simple, looks)
        if chooses:
            best = _chosen(grid, problem, thetas, found, plan, rng)
            reached, learned = best.problem, best.learned
        else:
            learned = best_of(simple, thetas, plan, rng, tol)
            # After a few quasi-Newton steps the inverse Hessian may be far too small along a ridge.
            reached, learned = simple.at(learned.theta), replace(learned, inverse_hessian=None)
    except KeyboardInterrupt:
        if not looks:
            raise
        value, theta = max(looks, key=lambda look: look[0])
        reached, learned = simple.at(theta), Learned(theta, value).stopped()
        if found:
            best = max(found, key=lambda each: (len(each.problem.X), each.value))
            reached, learned = best.problem, best.learned.stopped()
    rows = few if len(reached.X) == len(few.X) else problem.some(len(reached.X))
    models = tuple(
        Compared(
            grid.describe(each.model),
            len(each.problem.X),
            each.value,
            each.learned.objective,
            each.problem is reached,
        )
        for each in found
    )
    same = grid.problem.y.ndim == 1 or type(reached.inference) is type(few.inference)
    warm = learned.warm if same else None
    return State(rows.like(reached), replace(learned, warm=warm, compared=models))


def _chosen(
    grid: Grid, problem: Problem, thetas: list[Array], found: list[Candidate], plan: Plan, rng: Any
) -> Candidate:
    """Return the model of largest integrated evidence on the first two rungs, at its best hyperparameters."""
    simple, tol = grid.at(Model()), rung_tol(len(grid.problem.theta))
    R = simple.hyperprior.root(len(simple.theta))
    draws = [simple.theta + R @ rng.standard_normal(R.shape[1]) for _ in range(plan.n_restarts)]
    best = choose(grid, [grid.start(theta) for theta in (*thetas, *draws)], found, tol, plan.report)
    for n_rows in rung_sizes(len(problem.X))[1:-1][:1]:
        more = problem.some(n_rows)
        if len(more.X) > len(grid.problem.X):
            grid = Grid(more.guide().with_tol(tol), plan.choose, plan.warps, grid.problem)
            best = choose(grid, [best], found, tol, plan.report)
    return best
