"""Sampling the hyperparameters together with the latent function.

Theta and f are strongly correlated, so a chain that updates them in turn hardly moves. Two remedies:

    PseudoMarginal  proposes theta alone; the evidence in the Metropolis ratio is estimated by importance
                    sampling from an approximation q(f | theta). An unbiased estimate, kept until the next
                    acceptance, leaves p(theta | y) exactly invariant (Andrieu & Roberts 2009; Filippone &
                    Girolami 2014), and its weighted draws are draws from p(f | theta, y).
    JointWhitened   writes f = m(theta) + A(theta) z and proposes theta with z fixed, so that f moves with it
                    (Murray & Adams 2010); elliptical slice sampling of f given theta moves z.

Theta is proposed by a random walk with the covariance of the draws so far and, in most steps after the
warm-up, from a Student distribution fitted to them, which makes long moves.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from gpclass.core.checks import check_integers, check_numbers, check_option
from gpclass.core.protocols import AnySites, Array, Inference, Sites
from gpclass.core.registry import Part
from gpclass.inference import Laplace
from gpclass.mcmc.elliptical import slice_both
from gpclass.posteriors.target import Target
from gpclass.priors import NotPositiveError

DEGREES = 3.0  # of freedom of the long moves: a chain in a tail must return
LONG = 0.7  # share of long moves among all moves, once there are any


@dataclass(frozen=True, slots=True, eq=False)
class HyperModel:
    """The joint posterior of theta and f.

    ``at(theta, whiten, jitter, init)`` returns the target at theta with the Gaussian of ``whiten``, started
    from the sites ``init``; it raises `NotPositiveError` where the covariance is beyond double precision.
    """

    at: Callable[[Array, Inference | None, float, AnySites | None], Target]
    log_prior: Callable[[Array], float]
    bounds: Array


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
        return new, self._log_density(theta - self.mean) - self._log_density(new - self.mean)

    def _log_density(self, shift: Array) -> float:
        z = np.linalg.solve(self.root, shift)
        return -0.5 * (DEGREES + len(z)) * float(np.log1p(z @ z / DEGREES))


@dataclass(frozen=True, slots=True, eq=False)
class HyperState:
    """The position of one chain.

    ``f`` are latent draws at theta, one per row, with weights exp(log_weight) that sum to one; ``value`` is
    the log density in the Metropolis ratio, ``z`` the coordinates of f where the sampler keeps them, and
    ``sites`` are those from which the next approximation is started.
    """

    model: HyperModel
    theta: Array
    target: Target
    proposal: Proposal
    sites: AnySites | None
    f: Array = field(default_factory=lambda: np.empty(0))
    log_weight: Array = field(default_factory=lambda: np.zeros(1))
    value: float = -np.inf
    z: Array | None = None

    def at(self, D: Array, r: Array, z: Array | None = None) -> HyperState:
        """Return the chain with the latent draws mean + D, where r is the remainder of the target."""
        total = float(np.logaddexp.reduce(r))
        evidence = total - float(np.log(len(D))) + self.target.log_mass
        value = evidence + self.model.log_prior(self.theta)
        # Where the likelihood is zero at every draw, they have equal weights.
        log_weight = r - total if np.isfinite(total) else np.full(len(r), -np.log(len(r)))
        return replace(self, f=self.target.mean + D, log_weight=log_weight, value=value, z=z)


class HyperSampler(Part):
    """Base class of the samplers of theta and f; a subclass is registered under its name in lower case."""

    __slots__ = ()
    kind = "hyper_sampler"

    whiten: Inference | None
    jitter: float = 0.0  # what the sampler needs added to the diagonal of K, relative to its mean

    @abstractmethod
    def enter(self, rng: np.random.Generator, state: HyperState) -> HyperState:
        """Return a chain that has come to a new theta with its latent values and their density."""

    @abstractmethod
    def move_latent(self, rng: np.random.Generator, state: HyperState) -> HyperState:
        """Return the chain with other latent values at the same theta."""

    def init(
        self, model: HyperModel, theta: Array, rng: np.random.Generator, proposal: Proposal
    ) -> HyperState:
        """Return the state of a chain at theta."""
        target = model.at(theta, self.whiten, self.jitter, None)
        return self.enter(rng, HyperState(model, theta, target, proposal, target.sites))

    def step(self, rng: np.random.Generator, state: HyperState) -> tuple[HyperState, float]:
        """Propose theta once, then move f; return the state and the probability of acceptance."""
        theta, back = state.proposal.draw(state.theta, rng)
        target = self._target_at(state, theta)
        probability, end = 0.0, state
        if target is not None:
            there = self.enter(rng, replace(state, theta=theta, target=target, sites=target.sites))
            probability = float(np.exp(min(0.0, there.value - state.value + back)))
            end = there if rng.uniform() < probability else state
        return self.move_latent(rng, end), probability

    def _target_at(self, state: HyperState, theta: Array) -> Target | None:
        """Return the target at a proposal, or None where it cannot be accepted."""
        low, high = state.model.bounds.T
        if not ((low <= theta) & (theta <= high)).all() or not np.isfinite(state.model.log_prior(theta)):
            return None
        try:
            return state.model.at(theta, self.whiten, self.jitter, state.sites)
        except NotPositiveError:  # a covariance beyond double precision is treated as impossible
            return None


@dataclass(frozen=True, slots=True)
class PseudoMarginal(HyperSampler):
    """Pseudo-marginal Metropolis sampling of theta.

    Parameters
    ----------
    whiten : settings record of `gpclass.inference`
        The approximation that importance sampling draws from.
    n_importance : int
        Importance draws for each estimate of the evidence, in antithetic pairs.
    n_refine : int
        Steps of variational inference that improve the approximation first: Laplace's is centred at the
        mode, away from the mean of a skewed posterior, and that costs more draws than two steps do.

    Examples
    --------
    >>> from gpclass.inference import VI
    >>> sampler = PseudoMarginal(VI(), n_importance=16, n_refine=0)
    """

    whiten: Inference = Laplace()  # noqa: RUF009
    n_importance: int = 64
    n_refine: int = 2

    def __post_init__(self) -> None:
        check_integers(2, n_importance=self.n_importance)
        check_integers(0, n_refine=self.n_refine)
        check_option("whiten", self.whiten, self.whiten is not None, "an approximation, for example EP()")

    def enter(self, rng: np.random.Generator, state: HyperState) -> HyperState:
        """Return the chain with importance draws from a refined approximation."""
        target = refined(state.target, self.n_refine)
        D = target.shifts(target.normals((self.n_importance + 1) // 2, rng))
        return self._weighed(replace(state, target=target), D)

    def move_latent(self, rng: np.random.Generator, state: HyperState) -> HyperState:
        """Return the chain with other importance draws at its theta.

        An estimate that is too high by chance would hold a chain for long. The draws behind it and an index k
        have the density p(theta) Π q(f_j) w(f_k), where f_k is from the posterior: it may be moved by
        any step that leaves the posterior invariant, and then all others are drawn again (Andrieu, Doucet &
        Holenstein 2010). By symmetry the mirror image of f_k moves with it.
        """
        target = state.target
        k = rng.choice(len(state.f), p=np.exp(state.log_weight))
        D: Array = state.f[k : k + 1] - target.mean
        D, _, _ = slice_both(target, D, target.remainder(D), rng)
        others = target.shifts(target.normals((self.n_importance + 1) // 2 - 1, rng))
        return self._weighed(state, np.concatenate([D, others]))

    def _weighed(self, state: HyperState, D: Array) -> HyperState:
        """Return the state with these draws and their mirror images, and the evidence estimated by them."""
        D = np.concatenate([D, -D])
        return state.at(D, state.target.remainder(D))


@dataclass(frozen=True, slots=True)
class JointWhitened(HyperSampler):
    """Metropolis sampling of theta with fixed whitened latent values, and elliptical slice sampling of those.

    Parameters
    ----------
    whiten : settings record of `gpclass.inference`, or None
        The Gaussian whose coordinates are kept: that of an approximation, or the prior. The coordinates of
        the prior are cheap and mix well with few or uncertain labels; those of an approximation
        cost one fit of it per proposal.
    n_latent_steps : int
        Elliptical slice steps of the latent values per proposal of theta.
    jitter : float
        Added to the diagonal of K, relative to its mean, so that its root is a smooth function of theta.
    """

    whiten: Inference | None = None
    n_latent_steps: int = 5
    jitter: float = 1e-8

    def __post_init__(self) -> None:
        check_integers(n_latent_steps=self.n_latent_steps)
        check_numbers("(0, inf)", jitter=self.jitter)

    def enter(self, rng: np.random.Generator, state: HyperState) -> HyperState:
        """Return the chain with its z, which is drawn if there is none yet."""
        target = state.target
        z = target.normals(1, rng) if state.z is None else state.z
        D = target.shifts(z)
        return state.at(D, target.remainder(D), z)

    def move_latent(self, rng: np.random.Generator, state: HyperState) -> HyperState:
        """Return the chain with other latent values at its theta, by elliptical slices."""
        target = state.target
        D: Array = state.f - target.mean
        r: Array = target.remainder(D)
        for _ in range(self.n_latent_steps):
            D, r, _ = slice_both(target, D, r, rng)
        return state.at(D, r, target.whiten(target.mean + D))


def refined(target: Target, n_steps: int) -> Target:
    """Return the target with a better Gaussian, by steps of variational inference.

    With expectations under the marginals N(m, v): tau = -w E[l''], nu = w E[l'] + tau m.
    """
    for _ in range(n_steps):
        var = np.einsum("ij,ij->i", target.root, target.root)
        e = target.likelihood.expected(target.y, target.mean, var)
        tau = np.maximum(-target.weight * e.curvature, 0.0)
        target = target.with_sites(Sites(nu=target.weight * e.slope + tau * target.mean, tau=tau))
    return target


def fitted_proposal(draws: Array, accept: float, last: Proposal, *, long: bool) -> Proposal:
    """Return a proposal fitted to the draws, shape (m, p), and scaled towards an acceptance of 0.3."""
    p = draws.shape[1]
    scale = last.scale * float(np.exp(np.clip(2.0 * (accept - 0.3), -0.7, 0.7)))
    if len(draws) < 10 * p:
        return replace(last, scale=scale)
    if last.mean is not None or long:  # the rate of acceptance is that of both kinds of moves
        scale = last.scale
    cov = np.cov(draws.T).reshape(p, p)
    cov += (1e-6 + 1e-3 * np.trace(cov) / p) * np.eye(p)
    return Proposal(np.linalg.cholesky(cov), scale, draws.mean(axis=0) if long else None)
