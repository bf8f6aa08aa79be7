"""The evidence by importance sampling.

A Gaussian site decreases like exp(-tau f²/2) on the side where the likelihood is flat, so the importance
weights grow like exp(tau f²/2) there. Their tail index is up to 1 - 1/λ, λ the largest eigenvalue of B: they
have no variance if λ > 2. A Student distribution with the same mean and scale has heavy enough tails, but in
many dimensions it hardly overlaps with q. So half of the draws come from each of the two, and all are
weighted by the density of the mixture (Hesterberg 1995): in few dimensions the tails are covered, and in many
at most half of the draws are lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from gpclass.core.checks import check_integers
from gpclass.core.protocols import Array
from gpclass.sampling.checks import Seed
from gpclass.sampling.weigh import ImportanceEstimate, stable_weights

DEGREES = 3.0  # degrees of freedom of the Student distribution
MOST_VALUES = 4000  # maximum number n C of latent values; the time grows with its cube


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Pairs of draws mean ± D, with importance weights that sum to one.

    ``base``, shape (len(D),), are the weights of the pairs for averages over q, and ``weights``, shape (2, len(D)),
    those of the draws for averages over the posterior.
    """

    D: Array
    base: Array
    weights: Array


def importance_evidence(target: Any, n_samples: int = 2000, rng: Seed = None) -> ImportanceEstimate:
    """Return the log evidence by importance sampling, with Pareto-smoothed weights.

    Draws come in antithetic pairs m ± d, because the error of a Gaussian approximation is mostly skewness.

    Parameters
    ----------
    target : Target
        The posterior, with the sites of any method, which define the proposal q: see
        `gpclass.posteriors.target.make_target`. Better sites reduce the error, not the expected value.
    n_samples : int
    rng : numpy Generator or seed

    Returns
    -------
    ImportanceEstimate

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.inference import Laplace
    >>> from gpclass.kernels import RBF
    >>> from gpclass.likelihoods import Probit
    >>> from gpclass.posteriors.target import make_target
    >>> from gpclass.priors import DensePrior
    >>> X, y = np.array([[0.0], [1.0]]), np.array([1.0, 1.0])
    >>> kernel = 4.0 * RBF(1.0)
    >>> laplace = Laplace()(DensePrior(kernel, X), Probit(), y)
    >>> target = make_target(Probit(), kernel(X), y, laplace.sites)
    >>> estimate = importance_evidence(target, n_samples=20_000, rng=0)
    >>> exact = np.log(0.25 + np.arcsin(kernel(X)[0, 1] / 5.0) / (2.0 * np.pi))
    >>> round(laplace.evidence, 2), round(estimate.value, 2), round(float(exact), 2)
    (-1.18, -1.11, -1.11)
    """
    return estimate(target, n_samples, np.random.default_rng(rng))[0]


def estimate(target: Any, n_samples: int, rng: np.random.Generator) -> tuple[ImportanceEstimate, Draws]:
    """Return the log evidence and its draws, half of them from q and half from the Student distribution.

    The target is a `gpclass.posteriors.target.Target`, or has its ``rank``, ``log_mass``, ``normals``, ``shifts`` and
    ``remainder``.
    """
    check_integers(4, n_samples=n_samples)  # draws come in pairs
    half = (n_samples + 1) // 2
    n_student = half // 2
    Z = target.normals(half, rng)
    Z[:n_student] *= np.sqrt(DEGREES / rng.chisquare(DEGREES, size=(n_student, 1)))
    log_q = normal_over_mixture(np.einsum("ij,ij->i", Z, Z), target.rank, n_student / half)
    D, to_q = target.shifts(Z), np.exp(log_q)
    log_weights = np.stack([target.remainder(D), target.remainder(-D)]) + log_q
    smoothed, khat = stable_weights(log_weights.ravel())
    top = float(smoothed.max())
    w = np.exp(smoothed - top).reshape(log_weights.shape)
    terms = w.mean(axis=0)  # one for each pair of draws, which are independent
    if (noise := float(to_q.var())) > 0.0:
        # The weights to q have mean one, so they are a control variate (Owen & Zhou 2000).
        slope = float(np.mean((terms - terms.mean()) * to_q)) / noise
        corrected = terms - slope * (to_q - 1.0)
        terms = corrected if corrected.mean() > 0.0 else terms  # a negative mean shows too few draws
    mean, error = float(terms.mean()), float(terms.std()) / half**0.5
    ess = float(w.sum() ** 2 / np.vdot(w, w))
    value = target.log_mass + top + float(np.log(mean))
    return ImportanceEstimate(value, error / mean, khat, ess, w.size), Draws(
        D, to_q / to_q.sum(), w / w.sum()
    )


def normal_over_mixture(square: Array, rank: int, share: float) -> Array:
    """Return log N(z) - log((1 - share) N(z) + share t(z)) for z with the squared length ``square``."""
    constant = gammaln(0.5 * DEGREES) - gammaln(0.5 * (DEGREES + rank)) + 0.5 * rank * np.log(0.5 * DEGREES)
    over_student = constant - 0.5 * square + 0.5 * (DEGREES + rank) * np.log1p(square / DEGREES)
    return -np.logaddexp(np.log1p(-share), np.log(share) - over_student)
