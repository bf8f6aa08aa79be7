"""Rejection sampling: keep a proposal x with probability p(x) / (bound · q(x)).

The draws kept are independent and exact. The mean acceptance probability over all proposals is the mass of p
over the bound; it is known more accurately than the share of proposals kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gpclass.core.checks import check_integers, check_numbers
from gpclass.core.protocols import Array
from gpclass.sampling.checks import Function, Seed, density_of, shown, values_of

MAX_PROPOSALS = 10_000_000
PILOT = 10_000  # proposals after which the rate is first looked at
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


class Proposal(Protocol):
    """What draws are proposed from; a frozen distribution of `scipy.stats` can be used as well."""

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n,) or (n, d)."""

    def log_density(self, x: Array) -> Array:
        """Return the normalised log density at each draw, shape (n,)."""


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
    >>> round(result.acceptance_rate, 2), round(float(result.draws.std()), 2)  # 2 / π, √(π²/4 - 2)
    (0.64, 0.68)
    >>> round(float(np.exp(result.log_mass)), 1)
    2.0
    """
    low, high = float(interval[0]), float(interval[1])
    if not (low < high and np.isfinite(high - low)):
        raise ValueError(f"interval=({low:g}, {high:g}) is not possible, expected finite ends in order.")
    check_numbers("(0, inf)", bound=bound)

    def log_accept(x: Array) -> Array:
        values = density_of(density, x, "density")
        i = int(np.argmax(values))
        if values[i] > bound * (1.0 + SLACK):
            raise ValueError(
                f"density is {values[i]:.6g} at {x[i]:.6g}, above bound={bound:.6g} by "
                f"{values[i] - bound:.3g}: raise the bound to the density's maximum."
            )
        return log_of(values / bound)

    draws, tally = accept(lambda n, rng: rng.uniform(low, high, n), log_accept, size, rng, max_proposals)
    return RejectionSample(draws, *tally.summary(float(np.log(bound) + np.log(high - low))))


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
    proposal : frozen distribution of scipy.stats, or Proposal
        Has ``rvs`` and ``logpdf``, or ``draw(n, rng)`` and ``log_density(x)``.
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
    draw, log_q = proposal_functions(proposal)

    def log_accept(x: Array) -> Array:
        ratio = log_ratio(log_density, log_q, x)
        i = int(np.argmax(ratio))
        if ratio[i] > log_bound + SLACK:
            raise ValueError(
                f"log_density less that of the proposal is {ratio[i]:.6g} at {shown(x[i])}, above "
                f"log_bound={log_bound:.6g} by {ratio[i] - log_bound:.3g}: raise the bound to their largest "
                "difference, or take a proposal with heavier tails."
            )
        return ratio - log_bound

    draws, tally = accept(draw, log_accept, size, rng, max_proposals)
    return RejectionSample(draws, *tally.summary(log_bound))


def proposal_functions(proposal: Any) -> tuple[Draw, Function]:
    """Return the functions that draw from a proposal and give its log density."""
    if hasattr(proposal, "draw") and hasattr(proposal, "log_density"):
        return proposal.draw, proposal.log_density
    if hasattr(proposal, "rvs") and hasattr(proposal, "logpdf"):
        # Multivariate distributions of SciPy drop the axis of a single draw.
        return (
            lambda n, rng: np.asarray(proposal.rvs(size=max(n, 2), random_state=rng), dtype=float)[:n],
            lambda x: np.atleast_1d(proposal.logpdf(x)),
        )
    raise TypeError(
        f"{proposal!r} cannot propose: it has neither rvs and logpdf, as frozen distributions of scipy.stats "
        "have, nor draw and log_density."
    )


def log_ratio(log_density: Function, log_q: Function, x: Array) -> Array:
    """Return log_density(x) - log_q(x) for draws x of q."""
    below = values_of(log_q, x, "The proposal's log density")
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
    """Counts of proposals, and the sums of powers 1 to 4 of their acceptance probabilities."""

    n_accepted: int
    n_proposals: int
    sums: Array

    @property
    def mean(self) -> float:
        """Return the mean acceptance probability."""
        return float(self.sums[0]) / self.n_proposals

    @property
    def error(self) -> float:
        """Return its standard error, with the variance increased by its own error as in `cautious_error`."""
        s, m, n = self.sums, self.mean, self.n_proposals
        second = max(float(s[1]) - n * m**2, 0.0)
        fourth = max(float(s[3] - 4.0 * m * s[2] + 6.0 * m**2 * s[1]) - 3.0 * n * m**4, 0.0)
        return float(np.sqrt(second + np.sqrt(fourth))) / n

    def add(self, log_p: Array, n_accepted: int) -> Tally:
        """Return the tally with one more batch."""
        p = np.exp(np.maximum(log_p, -170.0))  # its fourth power does not underflow
        powers = np.array([float(np.sum(p**k)) for k in (1, 2, 3, 4)])
        return Tally(self.n_accepted + n_accepted, self.n_proposals + len(p), self.sums + powers)

    def summary(self, log_scale: float) -> tuple[float, int, float, float]:
        """Return acceptance rate, proposals, log mass and its error, for a bound of mass exp(log_scale)."""
        log_mass = log_scale + float(np.log(self.mean))
        return self.n_accepted / self.n_proposals, self.n_proposals, log_mass, self.error / self.mean

    def next_batch(self, size: int, most: int) -> int:
        """Return how many to propose next, at most ``most``."""
        if self.n_proposals == 0:
            return min(most, max(PILOT, size))
        per_draw = (self.n_proposals + 1.0) / (self.n_accepted + 1.0)
        return int(min(most, 1.05 * (size - self.n_accepted) * per_draw + 100.0))

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
    tally = Tally(0, 0, np.zeros(4))
    while tally.n_accepted < size:
        tally.check_feasible(size, max_proposals, remedy)
        x = propose(tally.next_batch(size, min(chunk, max_proposals - tally.n_proposals)), rng)
        log_p = np.minimum(log_accept(x), 0.0)
        kept.append(x[-rng.standard_exponential(len(x)) <= log_p])
        tally = tally.add(log_p, len(kept[-1]))
    return np.concatenate(kept)[:size], tally
