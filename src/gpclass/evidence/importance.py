"""The evidence by importance sampling from q and a distribution with heavier tails.

A Gaussian site decreases like exp(-tau f²/2) on the side where the likelihood is flat, so the importance
weights grow like exp(tau f²/2) there. Their tail index is up to 1 - 1/λ, λ the largest eigenvalue of B: they
have no variance if λ > 2. A Student distribution with the same mean and scale has heavy enough tails, but in
many dimensions it hardly overlaps with q. So half of the draws come from each of the two, and all are
weighted by the density of the mixture (Hesterberg 1995): in few dimensions the tails are covered, and in many
at most half of the draws are lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import gammaln

from gpclass.core.checks import check_integers
from gpclass.core.protocols import AnySites, Array
from gpclass.evidence.weights import EvidenceEstimate, summarise
from gpclass.posteriors.target import make_target

DEGREES = 3.0  # of freedom of the Student distribution
SHARES = {"normal": 0.0, "mixed": 0.5, "student": 1.0}  # of the draws that come from it
MOST_VALUES = 4000  # latent values n C of several functions: the time grows as their cube


class Weighed(Protocol):
    """What importance sampling needs of a posterior and its Gaussian q; `posteriors.target.Target` is the usual one."""

    @property
    def rank(self) -> int:
        """Number of independent directions."""

    @property
    def log_mass(self) -> float:
        """The constant of the log weights."""

    def normals(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw standard normal coordinates."""

    def shifts(self, Z: Array) -> Array:
        """Return draws of q less its mean for rows of standard normal coordinates."""

    def remainder(self, D: Array) -> Array:
        """Return log w - log_mass for each row of D."""


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Pairs of draws mean ± D with the logarithms of two kinds of importance weights, shape (2, len(D)).

    ``log_q`` corrects the proposal to q (zero if it is q), ``log_weights`` to prior times likelihood, less
    the log_mass of the target. The first ``n_student`` rows of D are from the Student distribution.
    """

    D: Array
    log_q: Array
    log_weights: Array
    n_student: int


def importance_evidence(
    likelihood: Any,
    K: Array,
    y: Array,
    sites: AnySites,
    *,
    weight: Array | None = None,
    n_samples: int = 2000,
    tails: str = "mixed",
    rng: np.random.Generator | int | None = None,
) -> EvidenceEstimate:
    """Return the evidence by importance sampling, with Pareto-smoothed weights.

    Draws come in antithetic pairs m ± d, because the error of a Gaussian approximation is mostly skewness.

    Parameters
    ----------
    likelihood : Likelihood
    K : array of shape (n, n) or (C, n, n)
        Prior covariance at the data, one for all latent functions or one for each.
    y : array of shape (n,) or (n, C)
    sites : Sites or CoupledSites
        Of any method: they define the proposal q. Better sites give a smaller error, not another value.
    weight : array of shape (n,), optional
        Weight k counts a data point as k copies.
    n_samples : int
    tails : {"mixed", "normal", "student"}
        Half of the draws from each, or all from q, or all from a Student distribution with the mean and
        scale of q and three degrees of freedom.
    rng : numpy Generator or seed

    Returns
    -------
    EvidenceEstimate

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.inference import Laplace
    >>> from gpclass.kernels import RBF
    >>> from gpclass.likelihoods import Probit
    >>> from gpclass.priors import DensePrior
    >>> X, y = np.array([[0.0], [1.0]]), np.array([1.0, 1.0])
    >>> kernel = 4.0 * RBF(1.0)
    >>> laplace = Laplace()(DensePrior(kernel, X), Probit(), y)
    >>> estimate = importance_evidence(Probit(), kernel(X), y, laplace.sites, n_samples=20_000, rng=0)
    >>> exact = np.log(0.25 + np.arcsin(kernel(X)[0, 1] / 5.0) / (2.0 * np.pi))
    >>> round(laplace.evidence, 2), round(estimate.value, 2), round(float(exact), 2)
    (-1.18, -1.11, -1.11)
    """
    target = make_target(likelihood, K, y, sites, weight)
    return estimate(target, n_samples, np.random.default_rng(rng), tails)[0]


def estimate(
    target: Weighed, n_samples: int, rng: np.random.Generator, tails: str = "mixed"
) -> tuple[EvidenceEstimate, Draws, Array]:
    """Return the evidence, the draws it comes from, and their smoothed weights with sum one."""
    drawn = draw(target, n_samples, tails, rng)
    found, weights = summarise(drawn.log_weights, target.log_mass, drawn.log_q, drawn.n_student)
    return found, drawn, weights


def draw(target: Weighed, n_samples: int, tails: str, rng: np.random.Generator) -> Draws:
    """Draw pairs from q, from the Student distribution, or both."""
    if tails not in SHARES:
        raise ValueError(f"tails={tails!r} is not known, expected one of {', '.join(SHARES)}.")
    check_integers(4, n_samples=n_samples)  # draws come in pairs
    half = (n_samples + 1) // 2
    n_student = round(SHARES[tails] * half)
    Z = target.normals(half, rng)
    Z[:n_student] *= np.sqrt(DEGREES / rng.chisquare(DEGREES, size=(n_student, 1)))
    log_q = _normal_over_mixture(np.einsum("ij,ij->i", Z, Z), target.rank, n_student / half)
    D = target.shifts(Z)
    remainder = np.stack([target.remainder(D), target.remainder(-D)])
    return Draws(D, np.stack([log_q, log_q]), remainder + log_q, n_student)


def _normal_over_mixture(square: Array, rank: int, share: float) -> Array:
    """Return log N(z) - log((1 - share) N(z) + share t(z)) for z with the squared length ``square``."""
    if share == 0.0:
        return np.zeros_like(square)
    ratio = _normal_over_student(square, rank, DEGREES)
    return ratio if share == 1.0 else -np.logaddexp(np.log1p(-share), np.log(share) - ratio)


def _normal_over_student(square: Array, rank: int, dof: float) -> Array:
    """Return log N(z | 0, I) - log t(z | 0, I, dof) for z with the squared length ``square``."""
    constant = gammaln(0.5 * dof) - gammaln(0.5 * (dof + rank)) + 0.5 * rank * np.log(0.5 * dof)
    out: Array = constant - 0.5 * square + 0.5 * (dof + rank) * np.log1p(square / dof)
    return out


def check_size(shape: tuple[int, ...]) -> None:
    """Raise if latent values of shape (n, C) are too many for importance sampling."""
    n_values = int(np.prod(shape))
    if len(shape) > 1 and n_values > MOST_VALUES:
        raise ValueError(
            f"{shape[0]} rows of {shape[1]} classes have {n_values} latent values, too many for importance "
            f"sampling (at most {MOST_VALUES}): check a model of fewer rows."
        )
