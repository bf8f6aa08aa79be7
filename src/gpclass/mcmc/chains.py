"""The draws of several chains, their convergence diagnostics (by arviz-stats), and the base class of samplers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gpclass.core.checks import apart, optional
from gpclass.core.protocols import Array, Inference
from gpclass.core.registry import Part, stored
from gpclass.posteriors.target import Target

MAX_RHAT, MIN_ESS = 1.01, 100.0  # R-hat of all chains, effective sample size per chain (Vehtari et al. 2021)


@dataclass(frozen=True, slots=True, eq=False)
class Diagnostics:
    """Convergence diagnostics of every quantity that was sampled.

    ``rhat`` is the rank-normalised split R-hat: above 1.01 the chains still depend on where they started.
    ``ess_bulk`` and ``ess_tail`` are effective sample sizes for the centre and for the 5 % and 95 % quantiles,
    and ``mcse`` is the Monte Carlo standard error of the mean.
    """

    rhat: Array
    ess_bulk: Array
    ess_tail: Array
    mcse: Array

    def complaint(self, n_chains: int) -> str:
        """Return a sentence if the draws should not be trusted, else an empty one."""
        rhat, ess = float(self.rhat.max()), float(min(self.ess_bulk.min(), self.ess_tail.min()))
        least = MIN_ESS * n_chains
        if rhat <= MAX_RHAT and ess >= least:
            return ""
        return (
            f"The chains have not mixed: the largest R-hat is {apart(rhat, MAX_RHAT, 3)[0]} (at most {MAX_RHAT} is "
            f"wanted) and the smallest effective sample size is {apart(ess, least, 0)[0]} (at least {least:.0f} is "
            "wanted): increase the number of draws, or thin more."
        )


@dataclass(frozen=True, slots=True, eq=False)
class Weighted:
    """Latent vectors at one theta, shape (m, n), with weights that sum to one."""

    theta: Array
    f: Array
    weight: Array


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """Draws of the latent values at the data.

    Parameters
    ----------
    f : array of shape (chains, draws, n), or (chains, draws, n, C)
    log_likelihood, accept : arrays of shape (chains, draws)
        Log p(y|f) of each draw, and the fraction of the proposals accepted since the previous one.
    accept_points : array of shape (n,) or None
        For block Metropolis, the fraction accepted at each data point.
    sampler : settings record
    n_warmup, thin : int
    jitter : float
        Added to the diagonal of K by the sampler.
    interrupted : bool
    theta : array of shape (chains, draws, p) or None
        Log hyperparameters, if they were sampled as well.
    weighted : tuple of Weighted
        All latent vectors of some of the draws, if theta was sampled.
    """

    f: Array
    log_likelihood: Array
    accept: Array
    accept_points: Array | None
    sampler: Any
    n_warmup: int
    thin: int
    jitter: float
    interrupted: bool = False
    theta: Array | None = None
    weighted: tuple[Weighted, ...] = field(default=(), repr=False, metadata={"stored": False})

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return len(self.f)

    @property
    def n_draws(self) -> int:
        """Number of draws kept of each chain."""
        return int(self.f.shape[1])

    def flat(self) -> Array:
        """Return the draws of all chains, shape (chains · draws, n) or (chains · draws, n, C)."""
        return self.f.reshape(-1, *self.f.shape[2:])

    def diagnostics(self, what: str = "f") -> Diagnostics:
        """Return R-hat, effective sample sizes and standard errors of "f", "theta" or "log_likelihood"."""
        values = {"f": self.f, "theta": self.theta, "log_likelihood": self.log_likelihood}[what]
        if values is None:
            raise ValueError("These chains have no theta: the hyperparameters were not sampled.")
        return diagnose(values)

    def complaint(self) -> str:
        """Return a sentence if the draws should not be trusted, else an empty one."""
        of_theta = "" if self.theta is None else self.diagnostics("theta").complaint(self.n_chains)
        return of_theta or self.diagnostics().complaint(self.n_chains)

    def to_arviz(self) -> Any:
        """Return the draws as a DataTree of ArviZ, for its plots and tables."""
        from_dict = optional("arviz_base", "to_arviz()", "").from_dict
        posterior = {"f": self.f} | ({} if self.theta is None else {"theta": self.theta})
        stats = {"acceptance_rate": self.accept, "log_likelihood": self.log_likelihood}
        return from_dict({"posterior": posterior, "sample_stats": stats})


def diagnose(values: Array) -> Diagnostics:
    """Return the diagnostics of values of shape (chains, draws, ...).

    A value that never changes while others do counts as a constant; if no value changes, R-hat is infinite.
    """
    stats = array_stats()
    flat = values.reshape(*values.shape[:2], -1)
    half = flat.shape[1] // 2
    # A single chain is split into two halves.
    pair = flat if len(flat) > 1 else np.concatenate([flat[:, :half], flat[:, -half:]])
    moving = (np.ptp(flat, axis=1) > 0.0).any(axis=0)
    known = ~moving & (np.ptp(flat[:, 0], axis=0) == 0.0) & moving.any()

    def of(function: Any, draws: Array, constant: float, unknown: float, **options: Any) -> Array:
        out = np.where(known, constant, unknown)
        if moving.any():
            with np.errstate(all="ignore"):  # too few draws
                found = function(draws[:, :, moving], chain_axis=0, draw_axis=1, **options)
            out[moving] = np.where(np.isnan(found), unknown, found)
        return out.reshape(values.shape[2:])

    n, inf = float(values.shape[0] * values.shape[1]), float("inf")
    return Diagnostics(
        rhat=of(stats.rhat, pair, 1.0, inf, method="rank"),
        ess_bulk=of(stats.ess, flat, n, 0.0, method="bulk"),
        ess_tail=of(stats.ess, flat, n, 0.0, method="tail", prob=(0.05, 0.95)),
        mcse=of(stats.mcse, flat, 0.0, inf, method="mean"),
    )


def array_stats() -> Any:
    """Return the functions of arviz-stats on arrays, or raise an error that says how to install it."""
    return optional("arviz_stats.base", "Judging the chains of a sampler", "mcmc").array_stats


# ---------------------------------------------------------------------- samplers


@dataclass(frozen=True, slots=True, eq=False)
class ChainState:
    """The positions of some chains; samplers add results computed there and adapted settings."""

    target: Target
    f: Array  # shape (chains, n), or (chains, C n) with several latent functions
    value: Array  # log ratio at f of the posterior to the Gaussian whose coordinates are used

    @property
    def weighted(self) -> Weighted | None:
        """The weighted latent vectors from which f was drawn, if theta is sampled."""
        return None


class Draw(NamedTuple):
    """One draw of some chains, and the fraction of proposals accepted in the steps before it."""

    f: Array  # shape (chains, n)
    accept: Array  # shape (chains,), or (chains, n) if it is known for each data point
    theta: Array | None = None  # shape (chains, p), if theta is sampled
    weighted: tuple[Weighted, ...] = ()


class Sampler(Part):
    """Base class of the samplers of f; a subclass is registered under its name in lower case."""

    __slots__ = ()
    kind = "sampler"

    whiten: Inference | None  # the approximation whose coordinates are used; None for those of the prior
    piece: int = 1  # steps between two adaptations

    @abstractmethod
    def init(self, target: Target, f: Array) -> Any:
        """Return the state of chains at the rows of f."""

    @abstractmethod
    def step(self, rng: np.random.Generator, state: Any) -> tuple[Any, Array]:
        """Move every chain once; also return the fraction of proposals accepted, as in `Draw`."""

    def adapt(self, state: Any, draws: Sequence[Draw], progress: float) -> Any:
        """Return a state tuned to the draws of the warm-up, in which ``progress`` goes from 0 to 1."""
        return state

    def begin(self, target: Target, n_chains: int, rng: np.random.Generator) -> list[Any]:
        """Return the states of all chains, each with a random generator; here one state for all chains.

        The start is overdispersed, so that R-hat detects chains that stay near their start.
        """
        f = target.mean + 2.0 * target.shifts(target.normals(n_chains, rng))
        return [(self.init(target, f), rng)]
