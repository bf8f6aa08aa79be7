"""Fitting by sampling: the posterior as draws of the latent functions, and of the hyperparameters if requested."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpclass.core.hyperpriors import Hyperprior, density_of_theta
from gpclass.core.linalg import mirrored
from gpclass.core.protocols import AnySites, Array, Inference, Info
from gpclass.inference import Laplace
from gpclass.learning.fitted import FittedModel
from gpclass.learning.ladder import learn
from gpclass.learning.maximise import Plan
from gpclass.learning.problem import Problem, pose_classes
from gpclass.mcmc import MCMC, sample
from gpclass.mcmc.chains import Weighted, array_stats
from gpclass.mcmc.hyper import HyperModel
from gpclass.posteriors.mixture import Component, MixtureProcess
from gpclass.posteriors.target import Target, make_target
from gpclass.priors import DensePrior, NotPositiveError
from gpclass.sampling import Rejection, posterior_by_rejection

HYPER_THIN = 2  # factor of ``thin`` if theta is sampled, because theta moves less in one step than f does
Draws = tuple[Array, int, float, dict[str, Any]]  # f, number of draws, jitter of K, other results
MOST_DRAWS = 1000  # maximum number of draws in predictions of several classes


def fit_by_sampling(problem: Problem, plan: Plan, *, seed: Any = None) -> FittedModel:
    """Return a model with draws of f, at fixed hyperparameters or at values learned by an approximation."""
    rng = np.random.default_rng(seed)
    settings: Any = problem.inference
    posed = pose_classes(problem)
    method = settings.learn_by if posed.y.ndim == 1 or posed.margins else Laplace()
    posed, learned = learn(replace(posed, inference=method), plan, rng)
    if learned is not None:
        problem = replace(problem, kernel=posed.kernel, likelihood=posed.likelihood)
        learned = replace(learned, warm=None)
    draw = _rejection if isinstance(settings, Rejection) else _chains
    f, n_iter, jitter, found = draw(problem, plan, rng)
    some = f  # predictions of several classes average over fewer draws
    if f.ndim == 3:
        some = f[np.unique(np.linspace(0, len(f) - 1, MOST_DRAWS).round().astype(int))]
    component = Component(problem.kernel, some, np.full(len(some), 1.0 / len(some)), jitter)
    return _model(problem, (component,), problem.kernel.theta, f, n_iter, learned=learned, **found)


def _rejection(problem: Problem, plan: Plan, rng: np.random.Generator) -> Draws:
    settings: Any = problem.inference
    K = mirrored(DensePrior(problem.kernel, problem.X).K)
    drawn = posterior_by_rejection(
        problem.likelihood, K, problem.y, settings.n_draws, rng,
        weight=problem.weight, max_proposals=settings.max_proposals,
    )  # fmt: skip
    return drawn.draws, drawn.n_proposals, 0.0, {"evidence": drawn.log_mass}


def _chains(problem: Problem, plan: Plan, rng: np.random.Generator) -> Draws:
    array_stats()  # raises an error now if arviz-stats is missing
    settings: Any = problem.inference
    whiten = settings.sampler.whiten if problem.y.ndim == 1 else None
    target = target_at(problem, whiten, problem.kernel.theta, None)
    chains = sample(target, settings.sampler, **settings.counts, rng=rng, report=plan.report)
    return chains.flat(), chains.n_draws, chains.jitter, {"chains": chains, "sites": target.sites}


def _model(
    problem: Problem, components: tuple[Component, ...], theta: Array, draws: Array, n_iter: int, **found: Any
) -> FittedModel:
    kernel, posterior = problem.kernel.clone_with_theta(theta), MixtureProcess(problem.X, components)
    known = {"evidence": None, "info": Info(True, n_iter, 0.0), "problem": problem, "draws": draws}
    return FittedModel(problem.likelihood, posterior, kernel, **(known | found))


def target_at(problem: Problem, whiten: Inference | None, theta: Array, init: AnySites | None) -> Target:
    """Return the posterior at theta together with its Gaussian approximation by ``whiten``."""
    prior = DensePrior(problem.kernel.clone_with_theta(theta), problem.X)
    y, weight, likelihood, sites = problem.y, problem.weight, problem.likelihood, None
    try:
        if whiten is not None:  # for coordinates and proposals only, so it need not have converged
            sites = whiten(prior, likelihood, y, weight=weight, init=init).sites
        return make_target(likelihood, mirrored(prior.K), y, sites, weight)
    except (ValueError, np.linalg.LinAlgError) as error:
        raise NotPositiveError(str(error)) from None


# -------------------------------------------------------------------- theta sampled as well


def fit_by_sampling_theta(problem: Problem, plan: Plan, *, seed: Any = None) -> FittedModel:
    """Return a model with joint draws of theta and f, from chains that start at the most probable theta.

    Parameters of the likelihood stay at their most probable values.
    """
    array_stats()
    rng = np.random.default_rng(seed)
    settings: Any = problem.inference
    if not isinstance(settings, MCMC):  # an approximation, which finds the start of the chains
        settings = MCMC(learn_by=settings)
    log_prior = density_of_theta(problem.kernel, problem.hyperprior)
    start = replace(problem, inference=settings.learn_by, hyperprior=log_prior)
    best, learned = learn(start, plan, rng)
    problem, theta = replace(problem, likelihood=best.likelihood), best.kernel.theta
    chains = sample(
        hyper_model(problem, log_prior, theta),
        settings.hyper_sampler,
        **settings.counts | {"thin": HYPER_THIN * settings.thin},
        rng=rng,
        n_jobs=plan.n_jobs,
        n_thetas=settings.n_thetas,
        report=plan.report,
    )
    return _model(
        replace(problem, inference=settings),  # its kernel centres the prior
        _components(problem.kernel, chains.weighted),
        np.mean(np.asarray(chains.theta), axis=(0, 1)),
        chains.flat(),
        chains.n_draws,
        chains=replace(chains, weighted=()),
        learned=None if learned is None else replace(learned, warm=None),
    )


def hyper_model(problem: Problem, log_prior: Hyperprior, theta: Array) -> HyperModel:
    """Return the posterior of theta and f for a sampler, with chains that start around theta."""
    bounds = log_prior.narrow(problem.kernel.bounds)
    return HyperModel(partial(target_at, problem, Laplace()), log_prior, bounds, theta)


def _components(kernel: Any, draws: tuple[Weighted, ...]) -> tuple[Component, ...]:
    """Return draws as components of a mixture; draws that share theta form one component."""
    groups: dict[bytes, list[Weighted]] = {}
    for draw in draws:
        groups.setdefault(draw.theta.tobytes(), []).append(draw)
    return tuple(
        Component(
            kernel.clone_with_theta(group[0].theta),
            np.concatenate([draw.f for draw in group]),
            np.concatenate([draw.weight for draw in group]) / len(draws),
        )
        for group in groups.values()
    )
