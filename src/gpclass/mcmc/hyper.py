"""Sampling the hyperparameters together with the latent function.

Theta and f are strongly tied to each other, so that a chain which moves them in turn hardly moves. Two ways
out:

    PseudoMarginal  proposes theta alone, with the evidence in the Metropolis ratio estimated by importance
                    sampling from an approximation q(f | theta). An unbiased estimate, kept until the next
                    acceptance, leaves p(theta | y) exactly invariant (Andrieu & Roberts 2009; Filippone &
                    Girolami 2014), and the weighted draws behind it are draws from p(f | theta, y).
    JointWhitened   writes f = m(theta) + A(theta) z and proposes theta with z as it is, so that f moves along
                    (Murray & Adams 2010); elliptical slices of f given theta move z.

Theta is proposed by a random walk with the covariance of the draws so far, and after warming up in most
steps from a Student distribution fitted to them, which makes long moves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gpclass.core.protocols import Array, HasExpected, Inference, Sites
from gpclass.core.registry import stored
from gpclass.inference import Laplace
from gpclass.mcmc.elliptical import slice_step
from gpclass.posteriors.target import Target
from gpclass.priors import NotPositiveError

DEGREES = 3.0  # of freedom of the long moves: a chain in a tail must find back
LONG = 0.7  # share of them among all moves, once there are any


@dataclass(frozen=True, slots=True, eq=False)
class HyperModel:
    """What a sampler of hyperparameters must know.

    ``at(theta, whiten, jitter, init)`` gives the target at theta with the Gaussian of ``whiten``, and its
    sites to warm-start the next one; it raises `NotPositiveError` where theta is beyond double precision.
    """

    at: Callable[[Array, Inference | None, float, Sites | None], tuple[Target, Sites | None]]
    log_prior: Callable[[Array], float]
    bounds: Array


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """Random walk with covariance ``scale² root rootᵀ``; long moves about ``mean``, if it is known."""

    root: Array
    scale: float
    mean: Array | None = None

    def draw(self, theta: Array, rng: np.random.Generator) -> tuple[Array, float]:
        """Return a proposal and the log of its density back over that there."""
        z = rng.standard_normal(len(theta))
        if self.mean is None or rng.uniform() > LONG:
            return theta + self.scale * (self.root @ z), 0.0
        z *= np.sqrt(DEGREES / rng.chisquare(DEGREES))
        new = self.mean + self.root @ z
        return new, self._log_density(theta) - self._log_density(new)

    def _log_density(self, theta: Array) -> float:
        assert self.mean is not None
        z = np.linalg.solve(self.root, theta - self.mean)
        return -0.5 * (DEGREES + len(z)) * float(np.log1p(z @ z / DEGREES))


@dataclass(frozen=True, slots=True, eq=False)
class HyperState:
    """Where one chain is.

    ``f`` are latent draws at theta, one a row, with weights exp(log_weight) that sum to one; ``value`` is the
    log of the density that the Metropolis ratio is of, ``z`` the coordinates of f where those are kept.
    """

    model: HyperModel
    theta: Array
    value: float
    target: Target
    sites: Sites | None
    f: Array
    log_weight: Array
    proposal: Proposal
    z: Array | None = None


@stored
@dataclass(frozen=True, slots=True)
class PseudoMarginal:
    """Pseudo-marginal Metropolis sampling of theta.

    Parameters
    ----------
    whiten : settings record of `gpclass.inference`
        The approximation that importance sampling starts from.
    n_importance : int
        Importance draws for each estimate of the evidence, in antithetic pairs.
    n_refine : int
        Steps of variational inference by which the approximation is bettered first, where the
        likelihood has what they need. Laplace's has its centre at the mode, off the mean of a skewed
        posterior, and that costs more draws than two steps do.

    Examples
    --------
    >>> from gpclass.inference import VI
    >>> sampler = PseudoMarginal(VI(), n_importance=16, n_refine=0)
    """

    whiten: Inference = Laplace()  # noqa: RUF009
    n_importance: int = 64
    n_refine: int = 2

    def __post_init__(self) -> None:
        if self.n_importance < 2 or self.n_refine < 0 or self.whiten is None:
            raise ValueError(
                f"{self!r} is not possible: whiten must be an approximation, n_importance 2 or more and "
                "n_refine 0 or more."
            )

    def init(
        self, model: HyperModel, theta: Array, rng: np.random.Generator, proposal: Proposal
    ) -> HyperState:
        """Return the state of a chain at theta."""
        target, sites = model.at(theta, self.whiten, 0.0, None)
        return self._enter(model, theta, target, sites, rng, proposal)

    def step(self, rng: np.random.Generator, state: HyperState) -> tuple[HyperState, float]:
        """Propose theta once; return where the chain is, and the probability of moving."""
        theta, back = state.proposal.draw(state.theta, rng)
        moved = _target_at(state, theta, self.whiten, 0.0)
        probability, end = 0.0, state
        if moved is not None:
            there = self._enter(state.model, theta, *moved, rng, state.proposal)
            probability = float(np.exp(min(0.0, there.value - state.value + back)))
            end = there if rng.uniform() < probability else state
        return self.move_latent(rng, end), probability

    def move_latent(self, rng: np.random.Generator, state: HyperState) -> HyperState:
        """Return the chain with other importance draws at its theta.

        An estimate that is too high by chance would hold a chain for long. The draws behind it and an index k
        have the density p(theta) Π q(f_j) w(f_k), where f_k is from the posterior: it may be moved by
        any step that leaves that invariant, and then all others be drawn anew (Andrieu, Doucet &
        Holenstein 2010). By symmetry the mirror image of f_k goes with it.
        """
        target = state.target
        k = rng.choice(len(state.f), p=np.exp(state.log_weight))
        D: Array = state.f[k : k + 1] - target.mean
        r: Array = target.remainder(D)
        for wide in (False, True):
            D, r, _ = slice_step(target, D, r, 1.0, rng, wide=wide)
        others = target.shifts(target.normals((self.n_importance + 1) // 2 - 1, rng))
        return self._weighed(state, np.concatenate([D, others]))

    def _enter(
        self,
        model: HyperModel,
        theta: Array,
        target: Target,
        sites: Sites | None,
        rng: np.random.Generator,
        proposal: Proposal,
    ) -> HyperState:
        target = refined(target, self.n_refine)
        state = HyperState(model, theta, 0.0, target, sites, np.empty(0), np.empty(0), proposal)
        return self._weighed(state, target.shifts(target.normals((self.n_importance + 1) // 2, rng)))

    def _weighed(self, state: HyperState, D: Array) -> HyperState:
        """Return the state with these draws and their mirror images, and the evidence estimated by them."""
        target, D = state.target, np.concatenate([D, -D])
        log_w = target.remainder(D)
        total = float(np.logaddexp.reduce(log_w))
        evidence = total - float(np.log(len(D))) + target.log_mass
        value = evidence + state.model.log_prior(state.theta)
        return replace(state, value=value, f=target.mean + D, log_weight=log_w - total)


@stored
@dataclass(frozen=True, slots=True)
class JointWhitened:
    """Metropolis sampling of theta with the whitened latent values kept, and elliptical slices of those.

    Parameters
    ----------
    whiten : settings record of `gpclass.inference`, or None
        The Gaussian whose coordinates are kept: that of an approximation, or the prior. The
        prior's are cheap and mix well with few or uncertain labels, those of an approximation
        cost a fit of it at every proposal.
    n_latent_steps : int
        Elliptical slices of the latent values to each proposal of theta.
    """

    whiten: Inference | None = None
    n_latent_steps: int = 5
    jitter: float = 1e-8

    def __post_init__(self) -> None:
        if self.n_latent_steps < 1 or not self.jitter > 0.0:
            raise ValueError(f"{self!r} is not possible: n_latent_steps and jitter must be positive.")

    def init(
        self, model: HyperModel, theta: Array, rng: np.random.Generator, proposal: Proposal
    ) -> HyperState:
        """Return the state of a chain at theta."""
        target, sites = model.at(theta, self.whiten, self.jitter, None)
        z = target.normals(1, rng)
        return self._enter(model, theta, target, sites, z, proposal)

    def step(self, rng: np.random.Generator, state: HyperState) -> tuple[HyperState, float]:
        """Propose theta with z kept, then move f at the theta there is."""
        theta, back = state.proposal.draw(state.theta, rng)
        moved = _target_at(state, theta, self.whiten, self.jitter)
        probability, end = 0.0, state
        if moved is not None:
            assert state.z is not None
            there = self._enter(state.model, theta, *moved, state.z, state.proposal)
            probability = float(np.exp(min(0.0, there.value - state.value + back)))
            end = there if rng.uniform() < probability else state
        return self.move_latent(rng, end), probability

    def move_latent(self, rng: np.random.Generator, state: HyperState) -> HyperState:
        """Return the chain with other latent values at its theta, by elliptical slices."""
        target = state.target
        D: Array = state.f - target.mean
        r: Array = target.remainder(D)
        for _ in range(self.n_latent_steps):
            D, r, _ = slice_step(target, D, r, 1.0, rng, wide=False)
            if not target.is_prior:
                D, r, _ = slice_step(target, D, r, 1.0, rng, wide=True)
        value = float(r[0]) + target.log_mass + state.model.log_prior(state.theta)
        return replace(state, f=target.mean + D, value=value, z=target.whiten(target.mean + D))

    def _enter(
        self,
        model: HyperModel,
        theta: Array,
        target: Target,
        sites: Sites | None,
        z: Array,
        proposal: Proposal,
    ) -> HyperState:
        D = target.shifts(z)
        value = float(target.remainder(D)[0]) + target.log_mass + model.log_prior(theta)
        return HyperState(model, theta, value, target, sites, target.mean + D, np.zeros(1), proposal, z)


def refined(target: Target, n_steps: int) -> Target:
    """Return the target beside a better Gaussian, by the fixed point of variational inference.

    With expectations under its marginals N(m, v): tau = -w E[l''], nu = w E[l'] + tau m.
    """
    likelihood = target.likelihood
    if not isinstance(likelihood, HasExpected):
        return target
    for _ in range(n_steps):
        var = np.einsum("ij,ij->i", target.root, target.root)
        e = likelihood.expected(target.y, target.mean, var)
        tau = -target.weight * e.curvature
        target = target.with_sites(Sites(nu=target.weight * e.slope + tau * target.mean, tau=tau))
    return target


def _target_at(
    state: HyperState, theta: Array, whiten: Inference | None, jitter: float
) -> tuple[Target, Sites | None] | None:
    """Return the target at a proposal, or None where it cannot be accepted."""
    low, high = state.model.bounds.T
    if not ((low <= theta) & (theta <= high)).all() or not np.isfinite(state.model.log_prior(theta)):
        return None
    try:
        return state.model.at(theta, whiten, jitter, state.sites)
    except NotPositiveError:  # covariances that double precision cannot hold: as good as impossible
        return None


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
