"""One latent function by Monte Carlo: sampling and prediction put together.

The counterpart of `model`, where the posterior is a Gaussian; here it is a set of draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpclass.core.hyperpriors import LogScalePrior
from gpclass.core.linalg import mirrored
from gpclass.core.protocols import Array, Inference, Info, Inputs, Sites
from gpclass.evidence import annealed_evidence
from gpclass.learning.maximise import Learned, Problem
from gpclass.learning.model import LearningPlan
from gpclass.learning.prediction import (
    average_log_proba,
    check_level,
    link_of,
    mixture_quantile,
    route_slopes,
)
from gpclass.mcmc import MCMC, Chains
from gpclass.mcmc.chains import array_stats
from gpclass.mcmc.hyper import HyperModel, PseudoMarginal
from gpclass.mcmc.hyper_run import Draw, sample_hyper
from gpclass.mcmc.sampler import whitened
from gpclass.posteriors.mixture import Component, MixturePosterior, joined
from gpclass.posteriors.target import Target, make_target
from gpclass.priors import NotPositiveError
from gpclass.sampling import Rejection, pareto_smooth, posterior_by_rejection

HYPER_THIN = 2  # steps for one: theta moves less in a step than f at a fixed theta does


@dataclass(frozen=True, slots=True, eq=False)
class SampledModel:
    """A latent function known by draws, with the problem it belongs to."""

    problem: Problem
    posterior: MixturePosterior
    chains: Chains | None  # None where draws are independent
    draws: Array  # of f at the data, of equal weight, shape (draws, n)
    evidence: float | None
    info: Info
    learned: Learned | None
    kernel: Any
    sites: Sites | None = None

    @property
    def models(self) -> Sequence[SampledModel]:
        """The two-class models: this one."""
        return (self,)

    def log_proba(self, X: Inputs, route: str, rng: np.random.Generator | None = None) -> Array:
        """Return log probabilities of the two classes, shape (n, 2), averaged over the draws."""
        likelihood = self.problem.likelihood
        if route == "map":
            return likelihood.log_classes(self.posterior.mean(X))  # type: ignore[no-any-return]
        rng = np.random.default_rng() if rng is None else rng
        # The same normals for every row: a row's answer does not depend on its company.
        normals = [rng.standard_normal(len(c.weight)) for c in self.posterior.components]
        out = np.empty((len(X), 2))
        for rows, parts in self.posterior.blocks(X):
            each = [
                average_log_proba(likelihood, p.mean, p.var, p.weight, route, z)
                for p, z in zip(parts, normals, strict=True)
            ]
            out[rows] = np.logaddexp.reduce(each, axis=0)
        # The weights sum to one up to rounding.
        normalised: Array = out - np.logaddexp.reduce(out, axis=1, keepdims=True)
        return normalised

    def latent(self, X: Inputs) -> tuple[Array, Array]:
        """Return mean and variance of f at each row."""
        return self.posterior.latent(X)

    def mean(self, X: Inputs) -> Array:
        """Return the mean of f at each row."""
        return self.posterior.mean(X)

    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return mean and full covariance of f over the rows."""
        return self.posterior.covariance(X)

    def sample(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Draw f jointly at the rows of X, shape (n, n_samples)."""
        return self.posterior.sample(X, n_samples, rng)

    def marginals(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Draw f at each row by itself, shape (n, n_samples); every row has the same draws and normals."""
        out, weight = np.empty((len(X), n_samples)), self.posterior.weight
        chosen = rng.choice(len(weight), size=n_samples, p=weight / weight.sum())
        z = rng.standard_normal(n_samples)
        for rows, parts in self.posterior.blocks(X):
            means, stds = joined(parts)
            out[rows] = means[:, chosen] + stds[:, chosen] * z
        return out

    def interval(self, X: Inputs, level: float, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return the credible interval of p(y=+1|f): the link of quantiles of the mixture."""
        check_level(level)
        link = link_of(self.problem.likelihood, "A credible interval").link
        low, high = np.empty((2, len(X)))
        for rows, parts in self.posterior.blocks(X):
            means, stds = joined(parts)
            for out, tail in ((low, 0.5 - 0.5 * level), (high, 0.5 + 0.5 * level)):
                out[rows] = link(mixture_quantile(means, stds, self.posterior.weight, tail))
        return low, high

    def proba_gradient(self, X: Array, route: str) -> Array:
        """Return the gradient of p(y=+1|x) with respect to x, shape (n, d)."""
        out = np.zeros(X.shape)
        for rows, parts in self.posterior.blocks(X):
            centre = np.sum([part.mean @ part.weight for part in parts], axis=0)
            for i, part in enumerate(parts):
                # Averaged out before the link, the draws all have the slope at their mean.
                mean = part.mean if route != "map" else np.broadcast_to(centre[:, None], part.mean.shape)
                var = np.broadcast_to(part.var[:, None], part.mean.shape)
                slopes = route_slopes(self.problem.likelihood, mean, var, route)
                out[rows] += self.posterior.slopes(i, X[rows], *slopes)
        return out

    def evidence_at(self, theta: Array, eval_gradient: bool) -> tuple[float, Array | None]:
        """Raise: sampling gives no evidence as a function of theta."""
        raise ValueError(f"{self.problem.inference!r} gives no evidence at other hyperparameters.")

    @property
    def loo(self) -> Array:
        """Log probabilities of the two classes at each datum from the others, by smoothed weights.

        A draw counts for 1 / p(y_i|f_i), smoothed as in PSIS-LOO (Vehtari, Gelman & Gabry 2017); of a
        datum that stands for several copies one is left out.
        """
        likelihood, y, f = self.problem.likelihood, self.problem.y, self.draws
        log_p = np.asarray(likelihood.log_prob(y, f))
        if self.problem.weight is not None:
            log_p = log_p * np.minimum(self.problem.weight, 1.0)
        out = np.empty((len(y), 2))
        for i in range(len(y)):
            smoothed, _ = pareto_smooth(-log_p[:, i])
            L = likelihood.log_classes(f[:, i]) + smoothed[:, None]
            out[i] = np.logaddexp.reduce(L, axis=0) - np.logaddexp.reduce(smoothed)
        return out


# ------------------------------------------------------------------------------- fitting


def fit_sampled(problem: Problem, plan: LearningPlan, *, seed: Any = None) -> SampledModel:
    """Sample f, at hyperparameters that are fixed, learned first, or sampled with it."""
    rng = np.random.default_rng(seed)
    if plan.sample and problem.kernel.n_dims > 0:
        return _fit_hyper(problem, plan, rng)
    settings: Any = problem.inference
    learned = None
    if plan.enabled and problem.kernel.n_dims > 0:
        learned = plan.learn(replace(problem, inference=settings.learn_by), rng)
        problem = replace(problem, kernel=problem.kernel.clone_with_theta(learned.theta))
    if isinstance(settings, Rejection):
        return _fit_rejection(problem, settings, learned, rng)
    array_stats()  # complain before the work, not after
    whiten, jitter = settings.sampler.whiten, settings.sampler.jitter
    target = _target_at(problem, problem.kernel.theta, whiten, jitter, None)
    sites: Any = target.sites
    chains = settings.run(target, rng, plan.report)
    f = chains.flat()
    component = Component(problem.kernel, f, np.full(len(f), 1.0 / len(f)), chains.jitter)
    return SampledModel(
        problem=problem,
        posterior=MixturePosterior(problem.X, [component]),
        chains=chains,
        draws=f,
        evidence=_annealed(problem, settings, sites, rng),
        info=Info(True, chains.n_draws, 0.0),
        learned=learned,
        kernel=problem.kernel.clone_with_theta(problem.kernel.theta),
        sites=sites,
    )


def _annealed(
    problem: Problem, settings: MCMC, sites: Sites | None, rng: np.random.Generator
) -> float | None:
    if settings.annealing is None:
        return None
    prior = problem.prior(problem.kernel.theta)
    if sites is None:
        sites = problem_result(problem, settings.learn_by, prior, None).sites
    K = mirrored(prior.K)  # type: ignore[attr-defined]
    return annealed_evidence(
        problem.likelihood,
        K,
        problem.y,
        sites,
        weight=problem.weight,
        n_chains=max(2, settings.annealing),
        rng=rng,
    ).value


def problem_result(problem: Problem, method: Inference, prior: Any, init: Sites | None) -> Any:
    """Return what a method makes of the problem at the theta of ``prior``."""
    return method(prior, problem.likelihood, problem.y, weight=problem.weight, init=init)


def _target_at(problem: Problem, theta: Array, whiten: Inference | None, jitter: float, init: Any) -> Target:
    """Return the target at theta with its Gaussian."""
    prior = problem.prior(theta)
    K = mirrored(prior.K)  # type: ignore[attr-defined]
    try:
        scale = jitter * float(K.trace()) / len(K)
        target = make_target(problem.likelihood, K, problem.y, None, problem.weight, jitter=scale)
    except (ValueError, np.linalg.LinAlgError) as error:
        raise NotPositiveError(str(error)) from None
    return whitened(target, whiten, prior, init=init)


def _fit_rejection(
    problem: Problem, settings: Rejection, learned: Learned | None, rng: np.random.Generator
) -> SampledModel:
    prior = problem.prior(problem.kernel.theta)
    K = mirrored(prior.K)  # type: ignore[attr-defined]
    drawn = posterior_by_rejection(
        problem.likelihood,
        K,
        problem.y,
        settings.n_draws,
        rng,
        weight=problem.weight,
        max_proposals=settings.max_proposals,
    )
    component = Component(problem.kernel, drawn.draws, np.full(len(drawn.draws), 1.0 / len(drawn.draws)))
    return SampledModel(
        problem=problem,
        posterior=MixturePosterior(problem.X, [component]),
        chains=None,
        draws=drawn.draws,
        evidence=drawn.evidence,
        info=Info(True, drawn.n_proposals, 0.0),
        learned=learned,
        kernel=problem.kernel.clone_with_theta(problem.kernel.theta),
    )


def _fit_hyper(problem: Problem, plan: LearningPlan, rng: np.random.Generator) -> SampledModel:
    """Sample theta and f together, starting at the most probable theta."""
    array_stats()
    settings: Any = problem.inference
    if not isinstance(settings, MCMC):  # an approximation: what importance sampling starts from
        settings = MCMC(hyper_sampler=PseudoMarginal(whiten=settings), learn_by=settings)
    log_prior = LogScalePrior(problem.kernel, problem.hyperprior)  # type: ignore[arg-type]
    start = replace(problem, inference=settings.learn_by, hyperprior=log_prior)
    learned = plan.learn(start, rng) if plan.enabled else None
    chains, draws = sample_hyper(
        hyper_model(problem, log_prior),
        settings.hyper_sampler,
        problem.kernel.theta if learned is None else learned.theta,
        n_chains=settings.n_chains,
        n_draws=settings.n_draws,
        n_warmup=settings.n_warmup,
        thin=HYPER_THIN * settings.thin,
        rng=rng,
        n_jobs=plan.n_jobs,
        n_whole=settings.n_thetas,
        report=plan.report,
    )
    kernel = problem.kernel.clone_with_theta(chains.theta.mean(axis=(0, 1)))  # type: ignore[union-attr]
    return SampledModel(
        problem=replace(problem, inference=settings),  # with its kernel, the centre of the prior
        posterior=MixturePosterior(problem.X, _components(problem.kernel, draws, settings.n_thetas)),
        chains=chains,
        draws=chains.flat(),
        evidence=None,
        info=Info(True, chains.n_draws, 0.0),
        learned=learned,
        kernel=kernel,
    )


def hyper_model(problem: Problem, log_prior: LogScalePrior) -> HyperModel:
    """Return the posterior of theta and f as a sampler sees it."""
    bounds = log_prior.narrow(problem.kernel.bounds)
    return HyperModel(at=_At(problem), log_prior=_Value(log_prior), bounds=bounds)


def _components(kernel: Any, draws: list[list[Draw]], at_most: int) -> list[Component]:
    """Return evenly spaced draws of all chains as components; those that share theta are one."""
    flat = [draw for chain in draws for draw in chain]
    whole = [draw for draw in flat if draw.f is not None]
    if 2 * len(whole) < min(at_most, len(flat)):  # interrupted early: better many draws than whole ones
        whole = [flat[i] for i in np.unique(np.linspace(0, len(flat) - 1, at_most).round().astype(int))]
    groups: dict[bytes, list[Draw]] = {}
    for draw in whole:
        groups.setdefault(draw.theta.tobytes(), []).append(draw)
    return [_component(kernel, group, len(whole)) for group in groups.values()]


def _component(kernel: Any, group: list[Draw], total: int) -> Component:
    """Return draws of one theta as a component; equal ones, where a chain stayed, are kept once."""
    counts: dict[bytes, int] = {}
    kept: dict[bytes, tuple[Array, Array]] = {}
    for draw in group:
        f, weight = draw.latents()
        key = f.tobytes()
        counts[key] = counts.get(key, 0) + 1
        kept[key] = f, weight
    return Component(
        kernel.clone_with_theta(group[0].theta),
        np.concatenate([f for f, _ in kept.values()]),
        np.concatenate([counts[key] * weight for key, (_, weight) in kept.items()]) / total,
        group[0].jitter,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _At:
    """The target as a function of theta; a class, so that it can go to another process."""

    problem: Problem

    def __call__(self, theta: Array, whiten: Inference | None, jitter: float, init: Any) -> Target:
        return _target_at(self.problem, theta, whiten, jitter, init)


@dataclass(frozen=True, slots=True, eq=False)
class _Value:
    """The value of a log density without its gradient."""

    density: LogScalePrior

    def __call__(self, theta: Array) -> float:
        return self.density(theta)[0]
