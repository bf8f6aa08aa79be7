"""Fitting by Gaussian sites: learn the hyperparameters, then infer the latent functions at the best of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpclass.core.protocols import AnySites, Array, Result
from gpclass.data.rows import Rows
from gpclass.learning.fitted import FittedModel
from gpclass.learning.maximise import Learned, Plan, Stage, learn
from gpclass.learning.problem import OneFunction, Problem, SiteObjective
from gpclass.sparse.inputs import choose
from gpclass.sparse.settings import Inducing


def fit_by_sites(
    problem: Problem,
    plan: Plan,
    *,
    init: AnySites | None = None,
    coarse: Problem | None = None,
    seed: Any = None,
) -> FittedModel:
    """Fit a problem by its approximation; ``coarse`` is the problem on a subset, where learning starts."""
    learned = learn_problem(problem, plan, np.random.default_rng(seed), init=init, coarse=coarse)
    if learned is not None:
        problem, init = problem.at(learned.theta), learned.warm
        learned = replace(learned, warm=None)
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
    problem: Problem,
    plan: Plan,
    rng: np.random.Generator,
    *,
    init: AnySites | None = None,
    coarse: Problem | None = None,
) -> Learned | None:
    """Return the best hyperparameters of a problem by its own method; None if there are none to learn."""
    if not (plan.enabled and len(problem.theta)):
        return None
    stages = [Stage("", lambda theta: SiteObjective(problem), warm=init)]
    if coarse is not None and init is None:
        stages.insert(0, Stage("some rows", lambda theta: SiteObjective(coarse), recorded=False))
    learned = learn(stages, problem.theta, problem.bounds, plan, rng, hyperprior=problem.hyperprior)
    unfinished = learned.interrupted and not len(learned.history)  # the sites are those of the subset
    return replace(learned, warm=None) if unfinished else learned


def fit_with_residual(problem: Problem, plan: Plan, settings: Inducing, *, seed: Any = None) -> FittedModel:
    """Fit by Laplace or EP with inducing inputs (FITC): some rows without them first, then all rows with them."""
    rng = np.random.default_rng(seed)
    X = np.asarray(problem.X)
    order = rng.permutation(len(X))
    few = order[: settings.rows[0] // 2]
    if plan.enabled and len(problem.theta) and len(few) < len(X):
        rows = Rows(X, problem.y, problem.weight).take(few)
        pilot = replace(problem, X=rows.X, y=rows.y, weight=rows.weight)
        learned = learn_problem(pilot, plan, np.random.default_rng(seed))
        assert learned is not None
        problem = problem.at(learned.theta)
    Z = choose(settings, problem.kernel, X[order], settings.most, rng)
    return fit_by_sites(replace(problem, make_prior=OneFunction(Z)), plan, seed=seed)
