"""Fitting by Gaussian sites: learn the hyperparameters, then infer the latent functions at the best of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpclass.core.hyperpriors import Hyperprior
from gpclass.core.protocols import AnySites, Array, Result
from gpclass.learning.choice import choose_kernel, choose_scale, first_candidate
from gpclass.learning.fitted import FittedModel
from gpclass.learning.maximise import Learned, Plan, Stage, learn, maximise
from gpclass.learning.problem import OneFunction, Problem, SiteObjective
from gpclass.learning.starts import ROWS, best_start
from gpclass.priors import NotPositiveError
from gpclass.sparse.inputs import choose
from gpclass.sparse.settings import Inducing

FEW = 300  # rows on which learning begins and a kernel is chosen
GROWTH = 4  # times as many rows in each stage: a 64th of the work of the next


def fit_by_sites(
    problem: Problem, plan: Plan, *, init: AnySites | None = None, seed: Any = None
) -> FittedModel:
    """Fit a problem by its approximation."""
    problem, learned = learn_problem(problem, plan, np.random.default_rng(seed), init=init)
    if learned is not None:
        init, learned = learned.warm, replace(learned, warm=None)
    prior = problem.prior()
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
        learned=learned,
        sites=result.sites,
        latent_sites=prior.latent_sites(result.sites),
        loo=loo if problem.first is None else loo[problem.first],
    )


def left_out(problem: Problem, result: Result) -> tuple[Array, Array]:
    """Return mean and (co)variance of the latent values of each data point from the other data points."""
    mean, cov = result.conditioned.left_out(problem.copies)
    return (mean if result.offset is None else mean + result.offset), cov


def learn_problem(
    problem: Problem, plan: Plan, rng: np.random.Generator, *, init: AnySites | None = None
) -> tuple[Problem, Learned | None]:
    """Return a problem at its best hyperparameters, and how they were found: None if there are none to learn.

    Learning begins on a few hundred rows: there a start is found and, if the plan says so, a kernel chosen.
    """
    if not (plan.enabled and len(problem.theta)):
        return problem, None
    start, inverse, few = problem.theta, None, problem
    if init is None and (plan.optimizer is None or plan.choose):
        few, start, inverse = begin(problem.some(FEW), plan)
        problem = problem.like(few)
        if inverse is not None:
            inverse = inverse * (few.n_rows / problem.n_rows) ** 0.5
    stages = [Stage("", lambda theta: SiteObjective(problem), warm=init)]
    if init is None and plan.optimizer is None:
        sizes = [few.n_rows]
        while GROWTH * sizes[-1] < problem.n_rows / 2:
            sizes.append(GROWTH * sizes[-1])
        stages = [*(_coarse(problem, n) for n in sizes if n < problem.n_rows), *stages]
        if plan.choose and len(stages) > 1:
            stages = stages[1:]  # the choice has been learned on these rows
    learned = learn(
        stages, start, problem.bounds, plan, rng, hyperprior=problem.hyperprior, inverse_hessian=inverse
    )
    unfinished = learned.interrupted and not len(learned.history)  # the sites are those of the subset
    return problem.at(learned.theta), replace(learned, warm=None) if unfinished else learned


def begin(few: Problem, plan: Plan) -> tuple[Problem, Array, Array | None]:
    """Return a problem of a few rows with its kernel chosen, where to start, and the inverse Hessian if it is known.

    Of several classes all this is done with Dirichlet classification, whose optimum is near and which is many times
    faster.
    """
    guide = few.guide()
    look = guide.some(ROWS)
    start = best_start(SiteObjective(look), look.kernel, look.X, guide.theta, guide.bounds)
    if plan.choose:
        plan.announce("choosing the kernel")
        chosen = choose_kernel(guide, start, plan.report)
    elif isinstance(few.hyperprior, Hyperprior) and few.hyperprior.open:
        plan.announce("choosing the shrinkage")
        chosen = choose_scale(first_candidate(guide, start, plan.report), plan.report)
    elif guide is few:
        return few, start, None
    else:
        return few, _better(few.some(ROWS), few.theta, _guided(guide, start, plan)), None
    return few.like(chosen.problem), chosen.learned.theta, chosen.inverse


def _guided(guide: Problem, start: Array, plan: Plan) -> Array:
    """Return the best hyperparameters by the guide's evidence."""
    end = maximise(
        SiteObjective(guide), start, guide.bounds, hyperprior=guide.hyperprior, report=plan.report, ftol=1e-5
    )
    return end.theta


def _better(few: Problem, *thetas: Array) -> Array:
    """Return the point with more evidence."""
    objective = SiteObjective(few)

    def value(theta: Array) -> float:
        try:
            end = objective.evaluate(theta, gradient=False)
        except NotPositiveError:
            return -np.inf
        return end.evidence if end.info.converged else -np.inf

    return max(thetas, key=value)


def _coarse(problem: Problem, n: int) -> Stage:
    """Return the stage on n rows; the curvature grows with the rows, but less than they do."""
    scale = (n / min(GROWTH * n, problem.n_rows)) ** 0.5
    return Stage(
        f"{n} rows",
        lambda theta: SiteObjective(problem.some(n)),
        ftol=1e-5,
        inverse_scale=scale,
        recorded=False,
    )


def fit_with_residual(problem: Problem, plan: Plan, settings: Inducing, *, seed: Any = None) -> FittedModel:
    """Fit by Laplace or EP with inducing inputs (FITC): some rows without them first, then all rows with them."""
    rng = np.random.default_rng(seed)
    X = np.asarray(problem.X)
    order = rng.permutation(len(X))
    few = problem.some(settings.rows[0] // 2)
    if plan.enabled and few is not problem:
        problem = problem.like(learn_problem(few, plan, np.random.default_rng(seed))[0])
        plan = replace(plan, choose=False)
    Z = choose(settings, problem.kernel, X[order], settings.most, rng)
    return fit_by_sites(replace(problem, make_prior=OneFunction(Z)), plan, seed=seed)
