"""Fitting by Gaussian sites: learn the hyperparameters, then infer the latent functions at the optimum."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpclass.core.protocols import AnySites
from gpclass.learning.fitted import FittedModel
from gpclass.learning.ladder import State, learn, rungs
from gpclass.learning.loo import left_out
from gpclass.learning.maximise import Learned, Plan, attempt
from gpclass.learning.problem import OneFunction, Problem
from gpclass.sparse.settings import Inducing
from gpclass.sparse.settings import choose as choose_inputs


def fit_by_sites(
    problem: Problem,
    plan: Plan,
    *,
    init: AnySites | None = None,
    seed: Any = None,
    first: State | None = None,
) -> FittedModel:
    """Fit a problem by its approximation; learning starts from ``first`` if that is given."""
    problem, learned = learn(problem, plan, np.random.default_rng(seed), init=init, first=first)
    return finished(problem, learned, init)


def finished(problem: Problem, learned: Learned | None, init: AnySites | None = None) -> FittedModel:
    """Return the model at learned hyperparameters; if its inference is interrupted, it is run again."""
    fit = partial(_inferred, problem, init if learned is None else learned.warm)
    model, learned = attempt(fit, None if learned is None else replace(learned, warm=None))
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


def fit_with_residual(problem: Problem, plan: Plan, settings: Inducing, *, seed: Any = None) -> FittedModel:
    """Fit by Laplace or EP with inducing inputs (FITC): some rows without them first, then all rows with them."""
    rng = np.random.default_rng(seed)
    X = np.asarray(problem.X)[rng.permutation(problem.n_rows)]

    def with_inputs(problem: Problem) -> Problem:
        Z = choose_inputs(settings, problem.kernel, X, settings.most(), rng)
        return replace(problem, make_prior=OneFunction(Z))

    if plan.optimizer is not None or not plan.enabled or settings.rows[0] >= problem.n_rows:
        return fit_by_sites(with_inputs(problem), plan, seed=seed)
    ladder = rungs(problem, lambda state: with_inputs(problem.like(state.problem)), most=settings.rows[0])
    found, learned = learn(problem, plan, np.random.default_rng(seed), ladder=ladder)
    if found.make_prior is problem.make_prior:  # interrupted before
        found = with_inputs(found)
    return finished(found, learned)
