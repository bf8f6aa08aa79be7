"""Rejection sampling: keep a proposal x with probability p(x) / (bound · q(x)).

The draws kept are independent and exact. The mean acceptance probability over all proposals is the mass of p
over the bound, and has a smaller error than the fraction of proposals kept. For the posterior of a few data
points the prior proposes, and the bound is one because p(y|f) is a probability: the mass is the evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpclass.core.checks import check_integers, check_numbers
from gpclass.core.protocols import Array, Inference
from gpclass.core.registry import Method
from gpclass.inference import EP
from gpclass.posteriors.target import make_target
from gpclass.sampling.checks import Function, Seed, log_ratio, proposed, shown, values_of

MAX_PROPOSALS = 10_000_000
PILOT = 10_000  # number of proposals before the rate is first checked; it doubles each time
CHUNK = 1 << 20  # maximum number of values proposed at a time
SLACK = 1e-9  # rounding error by which a ratio may exceed its bound


@dataclass(frozen=True, slots=True)
class Rejection(Method):
    """Settings of rejection sampling: exact posterior draws, for a few data points.

    Parameters
    ----------
    n_draws : int
    max_proposals : int
        Largest number of proposals; an error is raised if more would be needed.
    learn_by : settings record
        The method whose evidence is maximised to learn the hyperparameters, before the sampling.

    Examples
    --------
    >>> from gpclass import GaussianProcessClassifier
    >>> from gpclass.kernels import RBF
    >>> clf = GaussianProcessClassifier(4.0 * RBF(1.0), inference="rejection", optimizer=None, random_state=0)
    >>> clf.fit([[0.0], [1.0], [3.0]], ["a", "a", "b"]).predict_proba([[0.5]]).round(1)
    array([[0.8, 0.2]])
    """

    n_draws: int = 4000
    max_proposals: int = 100_000_000
    learn_by: Inference = EP()  # noqa: RUF009

    def __post_init__(self) -> None:
        check_integers(n_draws=self.n_draws)
        check_integers(self.n_draws, max_proposals=self.max_proposals)


@dataclass(frozen=True, slots=True, eq=False)
class RejectionSample:
    """Independent draws, and their cost.

    Parameters
    ----------
    draws : array of shape (size,) or (size, d); of f, (size, n) or (size, n, C)
    acceptance_rate : float
    n_proposals : int
    log_mass, standard_error : float
        Logarithm of the integral of the density; for the posterior of f this is the log evidence.
    """

    draws: Array
    acceptance_rate: float
    n_proposals: int
    log_mass: float
    standard_error: float


def rejection(
    density: Function, bound: float, interval: tuple[float, float], size: int, rng: Seed = None
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

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.sampling import rejection
    >>> result = rejection(np.sin, 1.0, (0, np.pi), 100_000, rng=0)
    >>> round(result.acceptance_rate, 1), round(float(np.exp(result.log_mass)), 1)  # 2 / π, 2
    (0.6, 2.0)
    """
    from scipy.stats import uniform

    low, high = interval
    if not (low < high and np.isfinite(high - low)):
        raise ValueError(f"interval=({low:g}, {high:g}) is not valid: expected finite, increasing bounds.")
    check_numbers("(0, inf)", bound=bound)

    def log_density(x: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(values_of(density, x, "density", low=0.0))

    log_bound = float(np.log(bound) + np.log(high - low))
    proposal = uniform(low, high - low)
    return generalised_rejection(log_density, proposal, log_bound, size, rng)


def generalised_rejection(
    log_density: Function, proposal: Any, log_bound: float, size: int, rng: Seed = None
) -> RejectionSample:
    """Draw from a density in any dimension, using a proposal distribution that covers it.

    Parameters
    ----------
    log_density : callable
        Takes an array of shape (m,) or (m, d) and returns one of shape (m,); it need not be normalised.
    proposal : frozen distribution of scipy.stats
        Or another object with ``rvs(size, random_state)`` and ``logpdf(x)``.
    log_bound : float
        An upper bound of log_density less the log density of the proposal.
    size, rng
        As for `rejection`.

    Examples
    --------
    A normal distribution from a Cauchy proposal; their ratio is largest at -1 and 1:

    >>> from scipy.stats import cauchy
    >>> from gpclass.sampling import generalised_rejection
    >>> log_bound = -0.5 - cauchy.logpdf(1.0)
    >>> result = generalised_rejection(lambda x: -0.5 * x**2, cauchy(), log_bound, 100_000, rng=0)
    >>> round(result.acceptance_rate, 2), round(float(result.draws.std()), 1)
    (0.66, 1.0)
    """
    check_numbers("(-inf, inf)", log_bound=log_bound)
    return _accept(
        lambda n, rng: proposed(proposal, n, rng),
        lambda x: log_ratio(log_density, proposal, x) - log_bound,
        log_bound, size, rng, MAX_PROPOSALS,
        "a proposal or an interval closer to the density, or importance sampling",
    )  # fmt: skip


def posterior_by_rejection(
    likelihood: Any,
    K: Array,
    y: Array,
    n_samples: int,
    rng: Seed = None,
    *,
    weight: Array | None = None,
    max_proposals: int = MAX_PROPOSALS,
) -> RejectionSample:
    """Draw f from its posterior, exactly and independently, for very few data points.

    A draw takes 1 / exp(evidence) proposals on average: about a thousand with ten data points.

    Parameters
    ----------
    likelihood : Likelihood
    K : array of shape (n, n) or (C, n, n)
        Prior covariance at the data: one for all latent functions, or one for each.
    y : array of shape (n,) or (n, C)
    n_samples : int
    rng : numpy Generator or seed
    weight : array of shape (n,), optional
        Weight k counts a data point as k copies.
    max_proposals : int

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.likelihoods import Probit
    >>> from gpclass.sampling import posterior_by_rejection
    >>> K, y = np.array([[4.0, 2.0], [2.0, 4.0]]), np.array([1.0, 1.0])
    >>> posterior = posterior_by_rejection(Probit(), K, y, 10_000, rng=0)
    >>> posterior.draws.shape, round(posterior.acceptance_rate, 2)
    ((10000, 2), 0.31)
    """
    target = make_target(likelihood, K, y, weight=weight)
    sample = _accept(
        lambda n, rng: target.shifts(target.normals(n, rng)),
        lambda F: values_of(target.log_likelihood, F, "log p(y|f)"),
        0.0, n_samples, rng, max_proposals,
        "MCMC, or importance_evidence for the evidence",
    )  # fmt: skip
    return replace(sample, draws=np.ascontiguousarray(target.values(sample.draws)))


def _accept(
    propose: Callable[[int, np.random.Generator], Array],
    log_probability: Callable[[Array], Array],
    log_bound: float,
    size: int,
    rng: Seed,
    max_proposals: int,
    remedy: str,
) -> RejectionSample:
    """Propose in batches until ``size`` proposals are accepted, or raise if that is infeasible."""
    check_integers(size=size, max_proposals=max_proposals)
    rng = np.random.default_rng(rng)
    kept: list[Array] = []
    n, n_kept, total, square = 0, 0, 0.0, 0.0  # proposed, accepted; sums of p and p²
    most = PILOT
    mean = error = 1.0
    while n_kept < size:
        # If none of n proposals is accepted, the rate may be up to 5 / n: exp(-5) is less than 1 %.
        needed = n + (size - n_kept) / min(mean + 3.0 * error + 5.0 / max(n, 1), 1.0)
        if needed > max_proposals:
            raise ValueError(
                f"{size:,} draws by rejection need at least {needed:,.0f} proposals, because {n_kept:,} of {n:,} were "
                f"accepted, but max_proposals={max_proposals:,}: ask for fewer draws, or use {remedy}."
            )
        x = propose(min(max(PILOT, n), most, max_proposals - n), rng)
        most = max(256, CHUNK // x[0].size)
        log_p = log_probability(x)
        worst = int(np.argmax(log_p))
        if log_p[worst] > SLACK:
            raise ValueError(
                f"The density exceeds its bound at {shown(x[worst])} by a factor of "
                f"{np.exp(min(log_p[worst], 700.0)):.4g}: raise the bound, or use a proposal with heavier tails."
            )
        p = np.exp(log_p)
        kept.append(x[rng.random(len(x)) < p])
        n, n_kept = n + len(x), n_kept + len(kept[-1])
        total, square = total + float(p.sum()), square + float(p @ p)
        mean = total / n
        error = float(np.sqrt(max(square - total * mean, 0.0))) / n
    log_mass = log_bound + float(np.log(mean))
    return RejectionSample(np.concatenate(kept)[:size], n_kept / n, n, log_mass, error / mean)
