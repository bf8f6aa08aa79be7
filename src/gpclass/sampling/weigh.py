"""Importance sampling: averages over a density p from draws of a proposal q, weighted by w = p / q.

    plain             mean of w h           p normalised
    self-normalised   Σ w h / Σ w           p known up to a factor

The standard error is that of a mean of independent numbers, which for the ratio are w (h - value) / mean w by
the delta method.

The tail of the weights shows whether an estimate can be trusted. A generalised Pareto distribution is fitted to the
M = min(S/5, 3√S) largest of S weights, which are replaced by its expected order statistics if they have no variance
(Vehtari, Simpson, Gelman, Yao & Gabry 2024). Its shape k shows how many moments the weights have: with k < ½ they have
a variance, with k > 0.7 no practical number of draws is enough.

**The evidence** is the mean weight of draws from a Gaussian approximation q. A Gaussian site decreases like
exp(-tau f²/2) on the side where the likelihood is flat, so the weights grow like exp(tau f²/2) there. Their tail index
is up to 1 - 1/λ, λ the largest eigenvalue of B: they have no variance if λ > 2. A Student distribution with the same
mean and scale has heavy enough tails, but in many dimensions it hardly overlaps with q. So half of the draws come from
each of the two, and all are weighted by the density of the mixture (Hesterberg 1995): in few dimensions the tails are
covered, and in many at most half of the draws are lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import boxcox, gammaln

from gpclass.core.checks import check_integers
from gpclass.core.protocols import Array
from gpclass.sampling.checks import Function, Seed, log_ratio, proposed

SMOOTHED = 0.5  # khat above which weights have no variance, so that smoothing is worth its small bias
MIN_TAIL = 5  # minimum number of weights for fitting a Pareto distribution
DEGREES = 3.0  # degrees of freedom of the Student distribution
MOST_VALUES = 4000  # maximum number n C of latent values; the time grows with its cube


@dataclass(frozen=True, slots=True, eq=False)
class ImportanceEstimate:
    """An average, or the logarithm of one, by importance sampling.

    Parameters
    ----------
    value, standard_error : float, or array if h has several values
    khat : float or None
        Shape of the tail of the weights or, if it is heavier, of their products with h. None if all are
        equal; infinite if there are too few draws, or too few with nonzero h, to estimate it.
    ess : float
        Effective sample size, (Σw)² / Σw².
    n_samples : int
    weights, draws : arrays of n_samples, optional
        ``value`` is the product of the weights with the values of h.
    """

    value: Any
    standard_error: Any
    khat: float | None
    ess: float
    n_samples: int
    weights: Array | None = None
    draws: Array | None = None

    @property
    def reliable(self) -> bool:
        """Whether value and standard error can be trusted: khat below min(0.7, 1 - 1/log10 n_samples)."""
        return self.khat is None or self.khat < khat_limit(self.n_samples)


def importance(
    h: Function,
    log_density: Function,
    proposal: Any,
    n_samples: int,
    rng: Seed = None,
    *,
    normalised: bool = False,
) -> ImportanceEstimate:
    """Estimate the average of h over a density, from draws of a proposal.

    Parameters
    ----------
    h : callable
        Takes draws, shape (m,) or (m, d), and returns numbers, shape (m,) or (m, k).
    log_density : callable
        Takes draws and returns the log density of each; -inf is allowed.
    proposal : frozen distribution of scipy.stats
        Or another object with ``rvs(size, random_state)`` and ``logpdf(x)``; its tails should be the heavier ones.
    n_samples : int
    rng : numpy Generator or seed
    normalised : bool
        Whether the density is normalised: this selects the plain estimate, otherwise the self-normalised one.
        With h = 1 the plain estimate is the mass of the density.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import t
    >>> from gpclass.sampling import importance
    >>> estimate = importance(np.square, lambda x: -0.5 * x**2, t(df=5), 10_000, rng=0)
    >>> abs(estimate.value - 1.0) < 3 * estimate.standard_error < 0.06, estimate.reliable
    (True, True)
    """
    check_integers(2, n_samples=n_samples)
    x = proposed(proposal, n_samples, np.random.default_rng(rng))
    values, log_w = np.asarray(h(x), dtype=float), log_ratio(log_density, proposal, x)
    if values.shape[:1] != log_w.shape or not np.isfinite(values).all():
        raise ValueError(
            f"h returned the shape {values.shape}, or NaN, for {n_samples} draws, expected a finite number for each."
        )
    if log_w.max() == -np.inf:
        raise ValueError("All weights are zero: the proposal must cover the density.")
    w, top, khat, ess = stable_weights(log_w)
    w *= np.exp(top) / n_samples if normalised else 1.0 / w.sum()
    value: Any = np.tensordot(w, values, axes=1)
    terms = (w * (values if normalised else values - value).T).T
    error: Any = n_samples**0.5 * terms.std(axis=0)
    with np.errstate(divide="ignore"):
        columns = log_w + np.log(np.abs(values)).reshape(n_samples, -1).T
    shapes = [pareto_smooth(column)[1] for column in columns] + ([] if normalised else [khat])
    khat = max((k for k in shapes if k is not None), default=None)
    if values.ndim == 1:
        value, error = float(value), float(error)
    return ImportanceEstimate(value, error, khat, ess, n_samples, w, x)


def khat_limit(n_samples: int) -> float:
    """Return min(0.7, 1 - 1/log10 n_samples), below which khat must be: Vehtari et al. 2024, eq. 13."""
    return min(0.7, 1.0 - 1.0 / float(np.log10(max(n_samples, 11))))


def stable_weights(log_weights: Array) -> tuple[Array, float, float | None, float]:
    """Return weights over the largest, smoothed if they have no variance; its logarithm, k-hat and effective size."""
    smoothed, khat = pareto_smooth(log_weights.ravel())
    log_w = log_weights if khat is None or khat < SMOOTHED else smoothed.reshape(log_weights.shape)
    top = float(log_w.max())
    w = np.exp(log_w - top)
    return w, top, khat, float(w.sum() ** 2 / np.vdot(w, w))


def pareto_smooth(log_weights: Array) -> tuple[Array, float | None]:
    """Return smoothed log weights and k-hat.

    Parameters
    ----------
    log_weights : array of shape (S,)

    Returns
    -------
    smoothed : array of shape (S,)
        None of them is above the largest that was given.
    khat : float or None
        None if the largest weights are all equal; infinite if there are too few draws for a fit, or if one
        of them dominates all others.
    """
    log_weights = np.asarray(log_weights, dtype=float)
    n = int((log_weights > -np.inf).sum())  # weights of zero are not informative about the tail
    n_tail = int(min(0.2 * n, 3.0 * n**0.5))
    if n_tail < MIN_TAIL:
        return log_weights, np.inf
    order = np.argsort(log_weights, kind="stable")
    tail, cutoff = order[-n_tail:], float(log_weights[order[-n_tail - 1]])
    above = log_weights[tail] - cutoff
    if above[-1] <= 1e-10:  # the weights are equal up to rounding
        return log_weights, None
    excess = np.expm1(above) / np.expm1(above[-1]) if above[-1] < 500.0 else np.zeros(n_tail)
    if excess[n_tail // 4 - 1] <= 0.0:  # one draw dominates
        return log_weights, np.inf
    k, sigma = fit_pareto(excess)
    smoothed = log_weights.copy()
    quantiles = sigma * boxcox(n_tail / (n_tail - 0.5 - np.arange(n_tail)), k)  # σ ((1 - p)^-k - 1) / k
    smoothed[tail] = cutoff + np.minimum(np.log1p(np.expm1(above[-1]) * quantiles), above[-1])
    return smoothed, k


def fit_pareto(x: Array) -> tuple[float, float]:
    """Return shape and scale of a generalised Pareto distribution for the ascending numbers x.

    The density is (1 + k x/σ)^(-1/k - 1) / σ. Given b = -k/σ, the likelihood is greatest at
    k(b) = mean log(1 - b x). Zhang & Stephens (2009) average b over its profile likelihood, on a grid
    that follows a prior scaled by the first quartile. With few data k is uncertain, so it is averaged
    with ½, which counts as ten observations (Vehtari et al. 2024, appendix G).
    """
    n = len(x)
    n_grid = 30 + int(n**0.5)
    quartile = x[int(n / 4 + 0.5) - 1]
    j = np.arange(1, n_grid + 1)
    b = 1.0 / x[-1] + (1.0 - np.sqrt(n_grid / (j - 0.5))) / (3.0 * quartile)
    b = np.where(b == 0.0, np.finfo(float).eps / x[-1], b)  # b = 0 is the exponential distribution
    k = np.log1p(-b[:, None] * x).mean(axis=1)
    profile = n * (np.log(-b / k) - k - 1.0)
    mass = np.exp(profile - profile.max())
    best = float(b @ mass / mass.sum())
    shape = float(np.log1p(-best * x).mean())
    return (n * shape + 10.0 * 0.5) / (n + 10.0), -shape / best


# ------------------------------------------------------------ the evidence


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
    return estimate_evidence(target, n_samples, np.random.default_rng(rng))[0]


def estimate_evidence(
    target: Any, n_samples: int, rng: np.random.Generator
) -> tuple[ImportanceEstimate, Draws]:
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
    w, top, khat, ess = stable_weights(log_weights)
    terms = w.mean(axis=0)  # one for each pair of draws, which are independent
    if (noise := float(to_q.var())) > 0.0:
        # The weights to q have mean one, so they are a control variate (Owen & Zhou 2000).
        slope = float(np.mean((terms - terms.mean()) * to_q)) / noise
        corrected = terms - slope * (to_q - 1.0)
        terms = corrected if corrected.mean() > 0.0 else terms  # a negative mean shows too few draws
    mean, error = float(terms.mean()), float(terms.std()) / half**0.5
    found = ImportanceEstimate(target.log_mass + top + float(np.log(mean)), error / mean, khat, ess, w.size)
    return found, Draws(D, to_q / to_q.sum(), w / w.sum())


def normal_over_mixture(square: Array, rank: int, share: float) -> Array:
    """Return log N(z) - log((1 - share) N(z) + share t(z)) for z with the squared length ``square``."""
    constant = gammaln(0.5 * DEGREES) - gammaln(0.5 * (DEGREES + rank)) + 0.5 * rank * np.log(0.5 * DEGREES)
    over_student = constant - 0.5 * square + 0.5 * (DEGREES + rank) * np.log1p(square / DEGREES)
    return -np.logaddexp(np.log1p(-share), np.log(share) - over_student)
