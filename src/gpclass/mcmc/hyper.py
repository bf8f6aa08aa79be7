"""Sampling the hyperparameters together with the latent function.

Theta and f are strongly correlated, so a chain that updates them in turn hardly moves. `PseudoMarginal` proposes
theta alone; the evidence in the Metropolis ratio is estimated by importance sampling from a Gaussian approximation
q(f | theta). An unbiased estimate, kept until the next acceptance, leaves p(theta | y) exactly invariant (Andrieu &
Roberts 2009; Filippone & Girolami 2014), and its weighted draws are draws from p(f | theta, y).

Laplace's approximation is centred at the mode, away from the mean of a skewed posterior, and would need many more
importance draws. So two steps of variational inference follow it, which cost less than they save.

Theta is proposed by a random walk with the covariance of the draws so far and, in most steps after the
warm-up, from a Student distribution fitted to them, which makes long moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpclass.core.checks import check_integers
from gpclass.core.protocols import AnySites, Array, Sites
from gpclass.core.registry import stored
from gpclass.mcmc.chains import ChainState, Draw, Weighted
from gpclass.mcmc.elliptical import slice_both
from gpclass.posteriors.target import Target
from gpclass.priors import NotPositiveError

DEGREES = 3.0  # degrees of freedom of the proposal of long moves: heavy tails let a chain return
LONG = 0.7  # fraction of long moves after their distribution was fitted
FIRST_SCALE = 0.3  # standard deviation of the first proposals of theta
REFINEMENTS = 2  # steps of variational inference after Laplace's method


@dataclass(frozen=True, slots=True, eq=False)
class HyperModel:
    """The joint posterior of theta and f; chains start around ``theta``."""

    # Returns the target at theta with Laplace's Gaussian, started from sites; raises NotPositiveError.
    at: Callable[[Array, AnySites | None], Target]
    log_prior: Callable[[Array], tuple[float, Array]]  # with its gradient
    bounds: Array
    theta: Array


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """Random walk with covariance ``scale² root rootᵀ``, and long moves about ``mean`` if it is known."""

    root: Array
    scale: float
    mean: Array | None = None

    def draw(self, theta: Array, rng: np.random.Generator) -> tuple[Array, float]:
        """Return a proposal and the log ratio of the densities of the reverse move and of this one."""
        z = rng.standard_normal(len(theta))
        if self.mean is None or rng.uniform() > LONG:
            return theta + self.scale * (self.root @ z), 0.0
        z *= np.sqrt(DEGREES / rng.chisquare(DEGREES))
        new = self.mean + self.root @ z
        back = np.linalg.solve(self.root, theta - self.mean)
        ratio = np.log1p(z @ z / DEGREES) - np.log1p(back @ back / DEGREES)
        return new, 0.5 * (DEGREES + len(z)) * float(ratio)


@dataclass(frozen=True, slots=True, eq=False)
class HyperState(ChainState):
    """The position of one chain.

    ``draws`` are importance draws of f at theta, one per row, with weights exp(log_weight) that sum to one. ``f`` is
    one of them, ``value`` the log of the estimated evidence times the prior of theta, and ``sites`` are those from
    which the next approximation is started.
    """

    model: HyperModel
    theta: Array
    proposal: Proposal
    sites: AnySites | None
    draws: Array
    log_weight: Array

    @property
    def weighted(self) -> Weighted:
        """The weighted latent vectors at theta."""
        return Weighted(self.theta, self.draws, np.exp(self.log_weight))


@stored
@dataclass(frozen=True, slots=True)
class PseudoMarginal:
    """Pseudo-marginal Metropolis sampling of theta.

    Parameters
    ----------
    n_importance : int
        Importance draws for each estimate of the evidence, in antithetic pairs.
    """

    n_importance: int = 64
    piece = 25  # steps between two adaptations

    def __post_init__(self) -> None:
        check_integers(2, n_importance=self.n_importance)

    def begin(
        self, model: HyperModel, n_chains: int, rng: np.random.Generator
    ) -> list[tuple[HyperState, np.random.Generator]]:
        """Return one state per chain, at a random point around theta or, if that is impossible, at theta."""
        theta = np.clip(model.theta, *model.bounds.T)
        proposal = Proposal(FIRST_SCALE * np.eye(len(theta)), 2.38 / np.sqrt(len(theta)))
        chains = []
        for own in rng.spawn(n_chains):
            away = np.clip(theta + 2.0 * proposal.root @ own.standard_normal(len(theta)), *model.bounds.T)
            try:
                state = self.at(model, away, own, proposal)
                usable = bool(np.isfinite(state.value))
            except ValueError:
                usable = False
            chains.append((state if usable else self.at(model, theta, own, proposal), own))
        return chains

    def at(
        self,
        model: HyperModel,
        theta: Array,
        rng: np.random.Generator,
        proposal: Proposal,
        sites: AnySites | None = None,
    ) -> HyperState:
        """Return a chain at theta with importance draws from a refined approximation, started from sites."""
        found, none = model.at(theta, sites), np.empty(0)
        target = refined(found)
        state = HyperState(target, none, none, model, theta, proposal, found.sites, none, none)
        return _with_draws(state, target.shifts(target.normals((self.n_importance + 1) // 2, rng)), rng)

    def step(self, rng: np.random.Generator, state: HyperState) -> tuple[HyperState, Array]:
        """Return the state after one proposal of theta and a move of f."""
        model = state.model
        theta, back = state.proposal.draw(state.theta, rng)
        probability = 0.0
        if ((theta >= model.bounds[:, 0]) & (theta <= model.bounds[:, 1])).all():
            try:
                there = self.at(model, theta, rng, state.proposal, state.sites)
                # If the likelihood is zero at every draw, any proposal is accepted.
                gain = float(there.value - state.value) + back if np.isfinite(state.value) else 0.0
                probability = float(np.exp(min(gain, 0.0)))
                state = there if rng.uniform() < probability else state
            except NotPositiveError:  # a covariance that is not numerically positive definite is rejected
                pass
        return self._move_latent(rng, state), np.array([probability])

    def _move_latent(self, rng: np.random.Generator, state: HyperState) -> HyperState:
        """Return the chain with other importance draws at its theta.

        With an estimate that is too high by chance a chain would not move for a long time. The draws and an index k
        have the density p(theta) Π q(f_j) w(f_k), where f_k is from the posterior. So f_k may be moved by
        any step that leaves the posterior invariant, and all others are drawn again (Andrieu, Doucet &
        Holenstein 2010). By symmetry the mirror image of f_k moves with it.
        """
        target = state.target
        D: Array = state.f - target.mean
        D, _ = slice_both(target, D, target.remainder(D), rng)
        others = target.shifts(target.normals((self.n_importance + 1) // 2 - 1, rng))
        return _with_draws(state, np.concatenate([D, others]), rng)

    def adapt(self, state: HyperState, draws: Sequence[Draw], progress: float) -> HyperState:
        """Return the state with a proposal fitted to the later half of the draws of all chains."""
        theta = np.concatenate([np.asarray(draw.theta) for draw in draws[len(draws) // 2 :]])
        accept = float(np.mean([draw.accept.mean() for draw in draws[-self.piece :]]))
        return replace(state, proposal=fitted_proposal(theta, accept, state.proposal, long=progress >= 0.5))


def _with_draws(state: HyperState, D: Array, rng: np.random.Generator) -> HyperState:
    """Return the state with the draws mean ± D, the evidence estimated by them, and one of them as f."""
    target, D = state.target, np.concatenate([D, -D])
    r = target.remainder(D)
    total = float(np.logaddexp.reduce(r))
    value = np.asarray(total - np.log(len(D)) + target.log_mass + state.model.log_prior(state.theta)[0])
    # If the likelihood is zero at every draw, all draws have equal weights.
    log_weight = r - total if np.isfinite(total) else np.full(len(r), -np.log(len(r)))
    draws, k = target.mean + D, rng.choice(len(D), p=np.exp(log_weight))
    return replace(state, f=draws[k : k + 1], value=value, draws=draws, log_weight=log_weight)


def refined(target: Target) -> Target:
    """Return the target with a better Gaussian, by steps of variational inference.

    With expectations under the marginals N(m, v): tau = -w E[l''], nu = w E[l'] + tau m. These overflow where the
    likelihood is steep and v is large (cloglog); the Gaussian stays as it is then.
    """
    for _ in range(REFINEMENTS):
        var = np.einsum("ij,ij->i", target.root, target.root)
        e = target.likelihood.expected(target.y, target.mean, var)
        tau = np.maximum(-target.weight * e.curvature, 0.0)
        sites = Sites(nu=target.weight * e.slope + tau * target.mean, tau=tau)
        try:
            target = target.with_sites(sites)
        except np.linalg.LinAlgError:
            break
    return target


def fitted_proposal(draws: Array, accept: float, last: Proposal, *, long: bool) -> Proposal:
    """Return a proposal fitted to the draws, shape (m, p), and scaled towards an acceptance of 0.3."""
    p = draws.shape[1]
    scale = last.scale * float(np.exp(np.clip(2.0 * (accept - 0.3), -0.7, 0.7)))
    if len(draws) < 10 * p:
        return replace(last, scale=scale)
    if last.mean is not None or long:  # the acceptance rate includes both kinds of moves
        scale = last.scale
    cov = np.cov(draws.T).reshape(p, p)
    cov += (1e-6 + 1e-3 * np.trace(cov) / p) * np.eye(p)
    return Proposal(np.linalg.cholesky(cov), scale, draws.mean(axis=0) if long else None)
