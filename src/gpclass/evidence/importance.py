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
from typing import Any

import numpy as np
from scipy.special import gammaln

from gpclass.core.checks import check_integers
from gpclass.core.protocols import AnySites, Array
from gpclass.posteriors.target import make_target
from gpclass.sampling.pareto import Estimate, cautious_error, stable_weights

DEGREES = 3.0  # of freedom of the Student distribution
MOST_VALUES = 4000  # latent values n C of several functions: the time grows as their cube


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceEstimate(Estimate):
    """A log evidence by sampling.

    Parameters
    ----------
    value : float
        The log evidence.
    standard_error : float
        Of ``value``, by the delta method; it means little unless ``reliable``.
    khat : float or None
        Shape of the tail of the weights; None where all weights are equal.
    ess : float
        Effective sample size, (Σw)² / Σw².
    n_samples : int
    """

    value: float
    standard_error: float


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Pairs of draws mean ± D with the logarithms of two kinds of importance weights, shape (2, len(D)).

    ``log_q`` corrects the proposal to q, ``log_weights`` to prior times likelihood, less
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
    return estimate(target, n_samples, np.random.default_rng(rng))[0]


def estimate(target: Any, n_samples: int, rng: np.random.Generator) -> tuple[EvidenceEstimate, Draws, Array]:
    """Return the evidence, the draws it comes from, and their smoothed weights with sum one.

    The target has the attributes ``rank`` and ``log_mass`` and the methods ``normals``, ``shifts`` and ``remainder`` of
    `gpclass.posteriors.target.Target`.
    """
    drawn = draw(target, n_samples, rng)
    found, weights = summarise(drawn.log_weights, target.log_mass, drawn.log_q, drawn.n_student)
    return found, drawn, weights


def draw(target: Any, n_samples: int, rng: np.random.Generator) -> Draws:
    """Draw pairs, half of them from q and half from the Student distribution."""
    check_integers(4, n_samples=n_samples)  # draws come in pairs
    half = (n_samples + 1) // 2
    n_student = half // 2
    Z = target.normals(half, rng)
    Z[:n_student] *= np.sqrt(DEGREES / rng.chisquare(DEGREES, size=(n_student, 1)))
    log_q = _normal_over_mixture(np.einsum("ij,ij->i", Z, Z), target.rank, n_student / half)
    D = target.shifts(Z)
    remainder = np.stack([target.remainder(D), target.remainder(-D)])
    return Draws(D, np.stack([log_q, log_q]), remainder + log_q, n_student)


def _normal_over_mixture(square: Array, rank: int, share: float) -> Array:
    """Return log N(z) - log((1 - share) N(z) + share t(z)) for z with the squared length ``square``."""
    ratio = _normal_over_student(square, rank, DEGREES)
    out: Array = -np.logaddexp(np.log1p(-share), np.log(share) - ratio)
    return out


def _normal_over_student(square: Array, rank: int, dof: float) -> Array:
    """Return log N(z | 0, I) - log t(z | 0, I, dof) for z with the squared length ``square``."""
    constant = gammaln(0.5 * dof) - gammaln(0.5 * (dof + rank)) + 0.5 * rank * np.log(0.5 * dof)
    out: Array = constant - 0.5 * square + 0.5 * (dof + rank) * np.log1p(square / dof)
    return out


def summarise(
    log_weights: Array, constant: float, log_q: Array | None = None, split: int = 0
) -> tuple[EvidenceEstimate, Array]:
    """Return the estimate of constant + log E[w], and the smoothed weights with sum one.

    Columns of ``log_weights``, shape (k, S/k), are dependent draws, such as antithetic pairs: the standard
    error is that of the means of columns, which are independent. The first ``split`` columns and the others
    are strata of a mixture. ``log_q`` are the log weights from that mixture to q: their mean is known to be
    one, so they are a control variate (Owen & Zhou 2000).
    """
    smoothed, khat = stable_weights(log_weights.ravel())
    top = float(smoothed.max())
    w = np.exp(smoothed - top).reshape(log_weights.shape)
    known = np.ones_like(w) if log_q is None else np.exp(log_q)
    mean, error = _regress(w.mean(axis=0), known.mean(axis=0), split)
    ess = float(w.sum() ** 2 / np.vdot(w, w))
    estimate = EvidenceEstimate(constant + top + float(np.log(mean)), error / mean, khat, ess, w.size)
    return estimate, w / w.sum()


def _regress(g: Array, known: Array, split: int) -> tuple[float, float]:
    """Return mean g - slope (mean known - 1), with the slope of least variance, and its standard error."""
    strata = [s for s in (slice(0, split), slice(split, None)) if len(g[s]) > 1]

    def centred(a: Array) -> Array:
        return np.concatenate([a[s] - a[s].mean() for s in strata])

    a, b = centred(g), centred(known)
    noise = float(b @ b)
    slope = float(a @ b) / noise if noise > 0.0 else 0.0
    mean = float(g.mean()) - slope * (float(known.mean()) - 1.0)
    if mean <= 0.0:  # too few draws for a correction
        slope, mean = 0.0, float(g.mean())
    return mean, float(cautious_error(a - slope * b)) / len(g)


def check_size(shape: tuple[int, ...]) -> None:
    """Raise if latent values of shape (n, C) are too many for importance sampling."""
    n_values = int(np.prod(shape))
    if len(shape) > 1 and n_values > MOST_VALUES:
        raise ValueError(
            f"{shape[0]} rows of {shape[1]} classes have {n_values} latent values, too many for importance "
            f"sampling (at most {MOST_VALUES}): check a model of fewer rows."
        )
