"""Fitting by Gaussian sites: learn the hyperparameters, then infer the latent functions at the best of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gpclass.core.hyperpriors import Hyperprior
from gpclass.core.protocols import AnySites, Array
from gpclass.data.rows import Data
from gpclass.inference import VI
from gpclass.inference.variational import response
from gpclass.learning.choice import Found, Grid, Model, choose, compared, curvature, integral, prior_of
from gpclass.learning.fitted import FittedModel
from gpclass.learning.initial import Look, starts
from gpclass.learning.maximise import (
    Learned,
    Plan,
    attempt,
    best_of,
    for_more_rows,
    joined,
    last_tol,
    maximise,
    rung_sizes,
    rung_tol,
)
from gpclass.learning.problem import OneFunction, Problem, SiteObjective, pose_classes
from gpclass.sparse.inputs import choose as choose_inputs
from gpclass.sparse.settings import Inducing

POOL_ROWS = 20_000  # of which the rungs of rows that are passed over are taken


def fit_by_sites(
    problem: Problem,
    plan: Plan,
    *,
    init: AnySites | None = None,
    seed: Any = None,
    first: State | None = None,
) -> FittedModel:
    """Fit a problem by its approximation; learning starts from ``first`` if that is given."""
    problem, learned = learn_problem(problem, plan, np.random.default_rng(seed), init=init, first=first)
    if learned is None:
        return _inferred(problem, init)
    return finished(partial(_inferred, problem, learned.warm), replace(learned, warm=None))


def finished(fit: Callable[[], FittedModel], learned: Learned | None) -> FittedModel:
    """Return the model of hyperparameters that are learned; if its inference is interrupted, it is run again."""
    model, learned = attempt(fit, learned)
    return replace(fit() if model is None else model, learned=learned)


def _inferred(problem: Problem, init: AnySites | None) -> FittedModel:
    """Return the model at the hyperparameters of the problem."""
    prior = problem.prior(last=True)
    result = problem.infer(prior, init)
    q = result.conditioned
    likelihood = problem.likelihood if problem.predictive is None else problem.predictive
    loo = likelihood.log_predict(*left_out(problem, result))
    posterior: Any = prior.posterior(q)
    return FittedModel(
        likelihood=likelihood,
        posterior=posterior if result.offset is None else replace(posterior, offset=result.offset),
        kernel=problem.kernel.clone_with_theta(problem.kernel.theta),
        evidence=result.evidence,
        info=result.info,
        problem=problem,
        sites=result.sites,
        latent_sites=prior.latent_sites(result.sites),
        loo=loo if problem.first is None else loo[problem.first],
    )


def left_out(problem: Problem, result: Any) -> tuple[Array, Array]:
    """Return mean and (co)variance of the latent values of each data point from the other data points."""
    q = result.conditioned
    softmax = isinstance(problem.inference, VI) and problem.y.ndim == 2
    moved = [response(problem.y, q.alpha, result.sites.tau)] if softmax else []
    mean, cov = q.left_out(problem.copies, *moved)
    return (mean if result.offset is None else mean + result.offset), cov


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Where learning stands: the problem of a rung with what was chosen, at the best theta so far.

    ``learned`` has the curvature there and the sites of the rung's rows.
    """

    problem: Problem
    learned: Learned


def learn_problem(
    problem: Problem,
    plan: Plan,
    rng: np.random.Generator,
    *,
    init: AnySites | None = None,
    first: State | None = None,
) -> tuple[Problem, Learned | None]:
    """Return a problem at its best hyperparameters, and how they were found: None if there are none to learn.

    Learning climbs from rung to rung. On the first one starts and, if the plan says so, models are compared, unless
    that has been done in ``first``.
    """
    if not (plan.enabled and len(problem.theta)):
        return problem, None
    given = problem
    if plan.optimizer is not None and not plan.choose:
        learned = _best_of(problem, [problem.theta], plan, rng, warm=init)
        return problem.at(learned.theta), learned
    state = begin(problem, plan, rng) if first is None else first
    problem = problem.like(state.problem)
    sizes = rung_sizes(problem.n_rows) if plan.optimizer is None else []
    for rung in [*map(problem.some, sizes), problem]:
        larger = rung is problem or rung.n_rows > state.problem.n_rows
        if larger and not state.learned.interrupted:
            state = climb(rung, state, plan, last=rung is problem)
    learned = state.learned
    if state.problem.n_rows < problem.n_rows:  # interrupted
        learned = replace(learned, history=joined([]), warm=None)
    elif not learned.interrupted:
        learned = _not_below_start(problem, given, learned, plan)
    return problem.at(learned.theta), learned


def first_rung(problem: Problem) -> Problem:
    """Return the problem on the rows that learning begins with."""
    sizes = rung_sizes(problem.n_rows)
    return problem.some(sizes[0]) if sizes else problem


def climb(rung: Problem, state: State, plan: Plan, *, last: bool) -> State:
    """Return the state after the search on a rung; an interruption keeps the best so far."""
    before = state.learned
    if not last:
        plan.announce(f"{rung.n_rows} rows")
    tol = last_tol(rung.n_rows) if last else rung_tol(len(rung.theta))
    inverse = for_more_rows(before.inverse_hessian, state.problem.n_rows, rung.n_rows)
    if plan.optimizer is None and type(rung.inference) is not type(state.problem.inference):
        inverse = measured_inverse(rung, before.theta, before.warm)
    search = partial(
        maximise,
        SiteObjective(rung.with_tol(tol)),
        before.theta,
        rung.support,
        plan.optimizer,
        hyperprior=rung.hyperprior,
        warm=before.warm if state.problem.n_rows == rung.n_rows else None,
        report=plan.report,
        inverse_hessian=inverse,
        tol=tol,
    )
    # An interruption before the first evaluation has ended keeps the last rung, if there was one.
    learned, stopped = attempt(search, before if np.isfinite(before.objective) else None)
    return State(state.problem, stopped or before) if learned is None else State(rung, learned)


def measured_inverse(problem: Problem, theta: Array, sites: AnySites | None) -> Array:
    """Return the inverse Hessian of minus the objective at theta, measured on the first rung."""
    few, prior = first_rung(problem), prior_of(problem)
    if sites is None or few is not problem:
        sites = SiteObjective(few).evaluate(theta, gradient=False).warm
    A = curvature(few, prior, theta, sites) * (problem.n_rows / few.n_rows)
    return integral(prior, A)[0]


def _not_below_start(problem: Problem, given: Problem, learned: Learned, plan: Plan) -> Learned:
    """Return the end of learning, or what is reached from the kernel as given if that is better already."""
    theta = given.theta
    rungs = first_rung(problem) is not problem
    if plan.choose or plan.optimizer is not None or not rungs or len(theta) != len(learned.theta):
        return learned
    prior, tol = problem.hyperprior, last_tol(problem.n_rows)
    objective = SiteObjective(problem.with_tol(tol))
    try:
        value = objective.evaluate(theta, gradient=False).evidence
    except ValueError:
        return learned
    except KeyboardInterrupt:
        return replace(learned.stopped(), warm=learned.warm)
    value += 0.0 if prior is None else prior(theta)[0]
    if not value > learned.objective:
        return learned
    return maximise(objective, theta, problem.support, hyperprior=prior, report=plan.report, tol=tol)


def begin(problem: Problem, plan: Plan, rng: np.random.Generator) -> State:
    """Find a start on the first rung, and choose kernel or shrinkage if that is asked for, there and on the second.

    All this is done with the problem's guide, whose optimum is near and which is many times faster.
    """
    few = first_rung(problem)
    guide, looks, found = few.guide(), list[Look](), Found()
    tol = rung_tol(len(few.theta))
    chooses = plan.choose or (isinstance(few.hyperprior, Hyperprior) and few.hyperprior.open)
    grid = Grid(guide.with_tol(tol), plan.choose)
    simple = grid.at(Model()) if chooses else grid.problem
    try:
        plan.announce("looking at length scales")
        thetas = starts(simple, looks)
        if chooses:
            plan.announce("choosing the kernel")
            thetas += _random_starts(simple, plan.n_restarts, rng)
            best = choose(grid, thetas, found, tol, plan.report)
            for more in (problem.some(n) for n in rung_sizes(problem.n_rows)[1:2]):
                if more.n_rows > few.n_rows:
                    plan.announce(f"choosing the kernel on {more.n_rows} rows")
                    grid = Grid(more.guide().with_tol(tol), plan.choose, grid.problem)
                    few, best = more, choose(grid, best, found, tol, plan.report)
            reached, learned = best.problem, best.learned
        else:
            learned = _best_of(simple, thetas, plan, rng, tol=tol)
            reached = simple.at(learned.theta)
            if plan.optimizer is None and not learned.interrupted:
                # That of a few quasi-Newton steps may promise far too little along a ridge.
                prior = prior_of(simple)
                A = curvature(simple, prior, learned.theta, learned.warm)
                learned = replace(learned, inverse_hessian=integral(prior, A)[0])
    except KeyboardInterrupt:
        if not found and not looks:
            raise
        if found:
            best = max(found, key=lambda each: (each.problem.n_rows, each.value))
            return State(few.like(best.problem), best.learned.stopped())
        value, theta = max(looks, key=lambda look: look[0])
        return State(few.like(simple.at(theta)), Learned(theta, value, joined([])).stopped())
    if guide.inference is not few.inference:
        learned = replace(learned, warm=None)
    return State(few.like(reached), learned)


def _best_of(problem: Problem, thetas: list[Array], plan: Plan, rng: Any, **options: Any) -> Learned:
    """Return the best search of those from some starts and from random ones."""
    options |= {"hyperprior": problem.hyperprior}
    return best_of(partial(SiteObjective, problem), thetas, problem.support, plan, rng, **options)


def begin_on_some(
    problem: Problem, data: Data, n_rows: int, n_latents: int, plan: Plan, rng: np.random.Generator
) -> tuple[Problem, State]:
    """Learn on some rows, after the kernel is chosen there if that is asked for; return the problem at the best theta.

    Several classes, which take longer, have the start by Dirichlet classification only.
    """
    rows = data.sample(POOL_ROWS, np.random.default_rng(0))
    pool = replace(problem, X=np.asarray(rows.X, dtype=float), y=rows.y, weight=rows.weight)
    if n_latents > 1:
        state = begin(pose_classes(pool, rows.y), plan, rng)
    else:
        some = pool.some(n_rows)
        state = begin(pool, plan, rng)
        if not state.learned.interrupted and plan.optimizer is None:  # a user's own works on all rows
            some, learned = learn_problem(some, replace(plan, choose=False), rng, first=state)
            state = State(some, state.learned if learned is None else learned)
    return problem.like(state.problem).at(state.learned.theta), state


def _random_starts(problem: Problem, n: int, rng: np.random.Generator) -> list[Array]:
    """Return draws of theta from the hyperprior, about the kernel as given."""
    prior, p = problem.hyperprior, len(problem.theta)
    if not n or not isinstance(prior, Hyperprior):
        return []
    moves = prior.unwhitened(rng.standard_normal((prior.n_free(p), n)), p)
    return [problem.theta + moves[:, k] for k in range(n)]


def fit_with_residual(problem: Problem, plan: Plan, settings: Inducing, *, seed: Any = None) -> FittedModel:
    """Fit by Laplace or EP with inducing inputs (FITC): some rows without them first, then all rows with them."""
    rng = np.random.default_rng(seed)
    X = np.asarray(problem.X)
    order = rng.permutation(len(X))
    few, learned, first = problem.some(settings.rows[0]), None, None
    if plan.enabled and plan.optimizer is None and few is not problem:
        few, learned = learn_problem(few, plan, np.random.default_rng(seed))
        problem = problem.like(few)
        first = None if learned is None else State(few, replace(learned, warm=None))

    def fit(plan: Plan) -> FittedModel:
        Z = choose_inputs(settings, problem.kernel, X[order], settings.most(), rng)
        return fit_by_sites(replace(problem, make_prior=OneFunction(Z)), plan, seed=seed, first=first)

    model, learned = attempt(partial(fit, plan), learned)
    return replace(fit(replace(plan, enabled=False)), learned=learned) if model is None else model
