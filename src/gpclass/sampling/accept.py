"""Rejection sampling: keep a proposal x with probability p(x) / (bound · q(x)).

The draws kept are independent and exact. The mean acceptance probability over all proposals is the mass of p
over the bound; it is known more accurately than the share of proposals kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.checks import check_integers, check_numbers
from gpclass.core.protocols import Array
from gpclass.sampling.checks import Function, Seed, density_of, shown, values_of

MAX_PROPOSALS = 10_000_000
PILOT = 10_000  # proposals after which the rate is first looked at; then their number is doubled each time
CHUNK = 1 << 20  # numbers proposed at a time
SLACK = 1e-9  # by which rounding may take a ratio above its bound
Draw = Callable[[int, np.random.Generator], Array]


@dataclass(frozen=True, slots=True, eq=False)
class RejectionSample:
    """Independent draws, and their cost.

    Parameters
    ----------
    draws : array of shape (size,) or (size, d)
    acceptance_rate : float
        Share of all proposals that were accepted.
    n_proposals : int
    log_mass : float
        Logarithm of the integral of the density, which is one if that is normalised.
    standard_error : float
        Of ``log_mass``.
    """

    draws: Array
    acceptance_rate: float
    n_proposals: int
    log_mass: float
    standard_error: float


def rejection(
    density: Function,
    bound: float,
    interval: tuple[float, float],
    size: int,
    rng: Seed = None,
    *,
    max_proposals: int = MAX_PROPOSALS,
) -> RejectionSample:
    """Draw from a density on an interval, given an upper bound.

    Parameters
    ----------
    density : callable
        Takes an array of shape (m,) and returns one; it need not be normalised.
    bound : float
        An upper bound of the density; a violation found at a proposal raises an error.
    interval : (low, high)
        Finite.
    size : int
        Number of draws.
    rng : numpy Generator or seed
    max_proposals : int
        Largest number of proposals; an error is raised early if more would be needed.

    Returns
    -------
    RejectionSample

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.sampling import rejection
    >>> result = rejection(np.sin, 1.0, (0, np.pi), 100_000, rng=0)
    >>> round(result.acceptance_rate, 1), round(float(result.draws.std()), 2)  # 2 / π, √(π²/4 - 2)
    (0.6, 0.68)
    >>> round(float(np.exp(result.log_mass)), 1)
    2.0
    """
    from scipy.stats import uniform

    low, high = float(interval[0]), float(interval[1])
    if not (low < high and np.isfinite(high - low)):
        raise ValueError(f"interval=({low:g}, {high:g}) is not possible, expected finite ends in order.")
    check_numbers("(0, inf)", bound=bound)

    return generalised_rejection(
        lambda x: log_of(density_of(density, x, "density")),
        uniform(low, high - low),
        float(np.log(bound) + np.log(high - low)),
        size,
        rng,
        max_proposals=max_proposals,
    )


def generalised_rejection(
    log_density: Function,
    proposal: Any,
    log_bound: float,
    size: int,
    rng: Seed = None,
    *,
    max_proposals: int = MAX_PROPOSALS,
) -> RejectionSample:
    """Draw from a density in any dimension, using a proposal distribution that covers it.

    Parameters
    ----------
    log_density : callable
        Takes an array of shape (m,) or (m, d) and returns one of shape (m,); -inf is allowed. The
        density need not be normalised.
    proposal : frozen distribution of scipy.stats
        Or another object with ``rvs(size, random_state)`` and ``logpdf(x)``.
    log_bound : float
        An upper bound of log_density less the log density of the proposal; a violation found at a proposal
        raises an error.
    size, rng, max_proposals
        As for `rejection`.

    Returns
    -------
    RejectionSample

    Examples
    --------
    A normal distribution from a Cauchy proposal; their ratio is largest at -1 and 1:

    >>> import numpy as np
    >>> from scipy.stats import cauchy
    >>> from gpclass.sampling import generalised_rejection
    >>> log_bound = -0.5 - cauchy.logpdf(1.0)
    >>> result = generalised_rejection(lambda x: -0.5 * x**2, cauchy(), log_bound, 100_000, rng=0)
    >>> round(result.acceptance_rate, 2), round(float(result.draws.std()), 1)
    (0.66, 1.0)
    """
    check_numbers("(-inf, inf)", log_bound=log_bound)
    check_proposal(proposal)

    def log_accept(x: Array) -> Array:
        excess = log_ratio(log_density, proposal, x) - log_bound
        i = int(np.argmax(excess))
        if excess[i] > SLACK:
            raise ValueError(
                f"The density exceeds its bound at {shown(x[i])} by a factor of {np.exp(excess[i]):.4g}: raise the "
                "bound to the largest ratio of density and proposal, or take a proposal with heavier tails."
            )
        return excess

    draws, tally = accept(lambda n, rng: draw(proposal, n, rng), log_accept, size, rng, max_proposals)
    return RejectionSample(draws, *tally.summary(log_bound))


def check_proposal(proposal: Any) -> None:
    """Raise unless draws can be proposed from an object."""
    if not (hasattr(proposal, "rvs") and hasattr(proposal, "logpdf")):
        raise TypeError(
            f"{proposal!r} cannot propose: it lacks rvs or logpdf, which continuous distributions of scipy.stats have."
        )


def draw(proposal: Any, n: int, rng: np.random.Generator) -> Array:
    """Draw n times; multivariate distributions of SciPy drop the axis of a single draw."""
    return np.asarray(proposal.rvs(size=max(n, 2), random_state=rng), dtype=float)[:n]


def log_ratio(log_density: Function, proposal: Any, x: Array) -> Array:
    """Return log_density(x) less that of the proposal, for draws x of the proposal."""
    below = values_of(lambda x: np.atleast_1d(proposal.logpdf(x)), x, "The proposal's log density")
    if (below == -np.inf).any():
        i = int(np.argmin(below))
        raise ValueError(
            f"The proposal's log density is -inf at {shown(x[i])}, which is one of its own draws."
        )
    return values_of(log_density, x, "log_density") - below


def log_of(values: Array) -> Array:
    """Return the logarithm, -inf at zero."""
    with np.errstate(divide="ignore"):
        return np.log(values)


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Counts of proposals, and the sums of their acceptance probabilities and of the squares."""

    n_accepted: int = 0
    n_proposals: int = 0
    total: float = 0.0
    square: float = 0.0

    @property
    def mean(self) -> float:
        """Return the mean acceptance probability."""
        return self.total / self.n_proposals

    @property
    def error(self) -> float:
        """Return its standard error."""
        return float(np.sqrt(max(self.square - self.total * self.mean, 0.0))) / self.n_proposals

    def add(self, log_p: Array, n_accepted: int) -> Tally:
        """Return the tally with one more batch."""
        p = np.exp(log_p)
        return Tally(
            self.n_accepted + n_accepted,
            self.n_proposals + len(p),
            self.total + float(p.sum()),
            self.square + float(p @ p),
        )

    def summary(self, log_scale: float) -> tuple[float, int, float, float]:
        """Return acceptance rate, proposals, log mass and its error, for a bound of mass exp(log_scale)."""
        log_mass = log_scale + float(np.log(self.mean))
        return self.n_accepted / self.n_proposals, self.n_proposals, log_mass, self.error / self.mean

    def check_feasible(self, size: int, max_proposals: int, remedy: str) -> None:
        """Raise if even the upper end of a confidence interval of the rate is too low."""
        n, missing = self.n_proposals, size - self.n_accepted
        needed, known = float(size), "even if all are accepted"
        if n > 0:
            # If none of n proposals is accepted, the rate may be up to 5 / n: exp(-5) is less than 1 %.
            needed = n + missing / min(self.mean + 3.0 * self.error + 5.0 / n, 1.0)
            known = f"as {self.n_accepted:,} of {n:,} were accepted"
        if needed > max_proposals:
            raise ValueError(
                f"{size:,} draws by rejection need {needed:,.0f} proposals or more, {known}, but "
                f"max_proposals={max_proposals:,}: ask for fewer draws, or use {remedy}."
            )


def accept(
    propose: Draw,
    log_accept: Callable[[Array], Array],
    size: int,
    rng: Seed,
    max_proposals: int,
    chunk: int = CHUNK,
    remedy: str = "a proposal or an interval closer to the density, or importance sampling",
) -> tuple[Array, Tally]:
    """Propose in batches of at most ``chunk`` until ``size`` are accepted, or raise if that is infeasible."""
    check_integers(size=size, max_proposals=max_proposals)
    rng = np.random.default_rng(rng)
    kept: list[Array] = []
    tally = Tally()
    while tally.n_accepted < size:
        tally.check_feasible(size, max_proposals, remedy)
        most = min(chunk, max_proposals - tally.n_proposals)
        x = propose(min(max(PILOT, tally.n_proposals), most), rng)
        log_p = np.minimum(log_accept(x), 0.0)
        kept.append(x[-rng.standard_exponential(len(x)) <= log_p])
        tally = tally.add(log_p, len(kept[-1]))
    return np.concatenate(kept)[:size], tally
