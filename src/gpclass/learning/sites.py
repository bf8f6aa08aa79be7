"""Fitting by Gaussian sites: learn the hyperparameters, then infer the latent functions at the optimum."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpclass.core.protocols import AnySites
from gpclass.inference.dirichlet import DEFAULT
from gpclass.learning.fitted import FittedModel
from gpclass.learning.ladder import State, learn, rungs
from gpclass.learning.loo import left_out, with_eps
from gpclass.learning.maximise import Plan, attempt
from gpclass.learning.problem import Problem
from gpclass.sparse.settings import Inducing
from gpclass.sparse.settings import choose as choose_inputs


def fit_by_sites(
    problem: Problem,
    plan: Plan,
    settings: Inducing | None = None,
    *,
    init: AnySites | None = None,
    seed: Any = None,
    first: State | None = None,
) -> FittedModel:
    """Return a model fitted by the approximation of a problem; learning starts from ``first`` if it is given.

    With ``settings`` the prior has inducing inputs (FITC): hyperparameters are learned on some rows without them first,
    then on all rows with them. ``rows`` of Dirichlet classification bounds the rows that are learned from.
    """
    some, ladder = problem.some(getattr(problem.inference, "rows", None) or problem.n_rows), None
    with_inputs = partial(_with_inputs, settings, problem.X, np.random.default_rng(seed))
    if settings is not None:
        ladder = rungs(problem, most=settings.rows[0])
        ladder.append(lambda state: state.onto(with_inputs(problem.like(state.problem))))
        if plan.optimizer is not None or not plan.enabled or settings.rows[0] >= problem.n_rows:
            problem = some = with_inputs(problem)
            ladder = None
    found, learned = learn(some, plan, np.random.default_rng(seed), ladder=ladder, init=init, first=first)
    problem = with_eps(problem.like(found), DEFAULT)  # sets eps if an interruption left it open
    if settings is not None and problem.Z is None:  # not chosen because of an interruption
        problem = with_inputs(problem)
    if learned is not None:
        init = learned.warm if some.n_rows == problem.n_rows else None
        learned = replace(learned, warm=None)
    # If the last inference is interrupted, it is run again.
    fit = partial(_inferred, problem, init)
    model, learned = attempt(fit, learned)
    return replace(fit() if model is None else model, learned=learned)


def _with_inputs(settings: Any, X: Any, rng: np.random.Generator, problem: Problem) -> Problem:
    """Return a problem with inducing inputs that are chosen for its kernel."""
    X = np.asarray(X)[rng.permutation(len(X))]
    return replace(problem, Z=choose_inputs(settings, problem.kernel, X, settings.most(), rng))


def _inferred(problem: Problem, init: AnySites | None) -> FittedModel:
    """Return the model at the hyperparameters of the problem."""
    prior = problem.prior(last=True)
    result = problem.infer(prior, init)
    loo = problem.likelihood.log_predict(*left_out(problem, result))
    posterior: Any = prior.posterior(result.conditioned)
    return FittedModel(
        likelihood=problem.likelihood,
        posterior=posterior if result.offset is None else replace(posterior, offset=result.offset),
        kernel=problem.kernel.clone_with_theta(problem.kernel.theta),
        evidence=result.evidence,
        info=result.info,
        problem=problem,
        sites=result.sites,
        latent_sites=prior.latent_sites(result.sites),
        loo=loo if problem.first is None else loo[problem.first],
    )
