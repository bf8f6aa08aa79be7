"""Pareto smoothing of importance weights, and the reliability of an estimate, judged by their tail.

A generalised Pareto distribution is fitted to the M = min(S/5, 3√S) largest of S weights, which are replaced by its
expected order statistics (Vehtari, Simpson, Gelman, Yao & Gabry 2024). Its shape k shows how many moments the weights
have: with k < ½ they have a variance, with k > 0.7 no practical number of draws is enough.
"""

from __future__ import annotations

import numpy as np
from scipy.special import boxcox

from gpclass.core.protocols import Array

SMOOTHED = 0.5  # khat above which weights have no variance, so that smoothing is worth its small bias
MIN_TAIL = 5  # minimum number of weights for fitting a Pareto distribution


def khat_limit(n_samples: int) -> float:
    """Return min(0.7, 1 - 1/log10 n_samples), below which khat must be: Vehtari et al. 2024, eq. 13."""
    return min(0.7, 1.0 - 1.0 / float(np.log10(max(n_samples, 11))))


def stable_weights(log_weights: Array) -> tuple[Array, float | None]:
    """Return log weights, smoothed if they have no variance, and k-hat."""
    smoothed, khat = pareto_smooth(log_weights)
    return (log_weights if khat is None or khat < SMOOTHED else smoothed), khat


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
    that follows a prior scaled by the first quartile. With few data k is uncertain, so it is shrunk
    towards ½ as by ten observations (Vehtari et al. 2024, appendix G).
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
