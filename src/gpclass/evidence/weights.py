"""Importance weights: smoothed, and summed up with a standard error and a warning.

The largest weights decide an importance-sampling estimate, and are the ones known worst. Pareto smoothing
(Vehtari, Simpson, Gelman, Yao & Gabry 2024) fits a generalised Pareto distribution to the
M = min(S/5, 3√S) largest of S weights and puts its expected order statistics in their place. Its shape k says
how many moments the weights have: with k < ½ a variance, with k > 0.7 nothing that S draws can tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpclass.protocols import Array

SMOOTHED = 0.5  # khat from which smoothing is worth its small bias: the weights have no variance
SMALLEST_TAIL = 5  # weights that a Pareto distribution can be fitted to


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceEstimate:
    """A log evidence by sampling.

    Parameters
    ----------
    value : float
        The log evidence.
    standard_error : float
        Of ``value``, by the delta method; it means little where ``khat`` is above 0.7.
    khat : float or None
        Shape of the weights' tail; None where there is no tail, as all weights are equal.
    ess : float
        Effective sample size, (Σw)² / Σw².
    n_samples : int
    """

    value: float
    standard_error: float
    khat: float | None
    ess: float
    n_samples: int

    @property
    def reliable(self) -> bool:
        """Whether value and standard error can be believed: khat below min(0.7, 1 - 1/log10 n_samples)."""
        return self.khat is None or self.khat < min(0.7, 1.0 - 1.0 / np.log10(max(self.n_samples, 11)))


def summarise(
    log_weights: Array, constant: float, log_q: Array | None = None, split: int = 0
) -> tuple[EvidenceEstimate, Array]:
    """Return the estimate of constant + log E[w], and the smoothed weights with sum one.

    Rows of ``log_weights``, shape (k, S/k), are draws that belong together, as antithetic ones do: the
    standard error is that of the means over columns, which are independent. The first ``split`` columns
    and the others are strata of a mixture. ``log_q`` are the log weights that make q of that
    mixture: their mean is known to be one, so they serve as a control variate (Owen & Zhou 2000).
    """
    smoothed, khat = pareto_smooth(log_weights.ravel())
    if khat is None or khat < SMOOTHED:
        smoothed = log_weights.ravel()
    top = float(smoothed.max())
    w = np.exp(smoothed - top).reshape(log_weights.shape)
    known = np.ones_like(w) if log_q is None else np.exp(log_q)
    mean, error = _regress(w.mean(axis=0), known.mean(axis=0), split)
    ess = float(w.sum() ** 2 / np.vdot(w, w))
    estimate = EvidenceEstimate(constant + top + float(np.log(mean)), error / mean, khat, ess, w.size)
    return estimate, w / w.sum()


def _regress(g: Array, known: Array, split: int) -> tuple[float, float]:
    """Return mean g - slope (mean known - 1), with the slope that makes its variance least, and its error.

    The variance is a mean of squares, to which few draws may contribute much: it is taken larger by its own
    standard error, (Σe⁴)^½, so that an estimate which was lucky in missing them is not trusted too far.
    """
    strata = [s for s in (slice(0, split), slice(split, None)) if len(g[s]) > 1]

    def centred(a: Array) -> Array:
        return np.concatenate([a[s] - a[s].mean() for s in strata])

    a, b = centred(g), centred(known)
    noise = float(b @ b)
    slope = float(a @ b) / noise if noise > 0.0 else 0.0
    mean = float(g.mean()) - slope * (float(known.mean()) - 1.0)
    if mean <= 0.0:  # too few draws to correct anything by
        slope, mean = 0.0, float(g.mean())
    square = (a - slope * b) ** 2
    variance = float(square.sum()) + float(square @ square) ** 0.5
    return mean, variance**0.5 / len(g)


def pareto_smooth(log_weights: Array) -> tuple[Array, float | None]:
    """Return smoothed log weights and k-hat.

    Parameters
    ----------
    log_weights : array of shape (S,)

    Returns
    -------
    smoothed : array of shape (S,)
        None of them above the largest that was given.
    khat : float or None
        None if the largest weights are all equal; infinite if there are too few draws for a fit, or one
        of them outweighs all others beyond measure.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> light, heavy = rng.standard_exponential((2, 100_000)) * [[0.3], [1.2]]
    >>> round(pareto_smooth(light)[1], 1), round(pareto_smooth(heavy)[1], 1)
    (0.3, 1.3)
    """
    log_weights = np.asarray(log_weights, dtype=float)
    n_tail = int(min(0.2 * log_weights.size, 3.0 * log_weights.size**0.5))
    if n_tail < SMALLEST_TAIL:
        return log_weights, np.inf
    order = np.argsort(log_weights, kind="stable")
    tail, cutoff = order[-n_tail:], float(log_weights[order[-n_tail - 1]])
    above = log_weights[tail] - cutoff
    if above[-1] <= 1e-10:  # the weights are equal up to rounding
        return log_weights, None
    with np.errstate(under="ignore"):
        excess = np.expm1(np.minimum(above, 700.0)) / np.expm1(min(above[-1], 700.0))
    if excess[n_tail // 4 - 1] <= 0.0 or above[-1] > 500.0:
        return log_weights, np.inf  # one draw is everything
    k, sigma = fit_pareto(excess)
    smoothed = log_weights.copy()
    quantiles = pareto_quantiles((np.arange(n_tail) + 0.5) / n_tail, k, sigma)
    smoothed[tail] = cutoff + np.minimum(np.log1p(np.expm1(above[-1]) * quantiles), above[-1])
    return smoothed, k


def fit_pareto(x: Array) -> tuple[float, float]:
    """Return shape and scale of a generalised Pareto distribution for the ascending numbers x.

    The density is (1 + k x/σ)^(-1/k - 1) / σ. Given b = -k/σ, the likelihood is greatest at
    k(b) = mean log(1 - b x). Zhang & Stephens (2009) average b over its profile likelihood, on a grid
    that follows a prior scaled by the first quartile. Few data say little about k, so it is drawn
    to ½ by the worth of ten observations (Vehtari et al. 2024, appendix G).
    """
    n = len(x)
    n_grid = 30 + int(n**0.5)
    quartile = x[int(n / 4 + 0.5) - 1]
    j = np.arange(1, n_grid + 1)
    b = 1.0 / x[-1] + (1.0 - np.sqrt(n_grid / (j - 0.5))) / (3.0 * quartile)
    b = np.where(b == 0.0, np.finfo(float).eps / x[-1], b)  # there the distribution is exponential
    k = np.log1p(-b[:, None] * x).mean(axis=1)
    profile = n * (np.log(-b / k) - k - 1.0)
    mass = np.exp(profile - profile.max())
    best = float(b @ mass / mass.sum())
    shape = float(np.log1p(-best * x).mean())
    return (n * shape + 10.0 * 0.5) / (n + 10.0), -shape / best


def pareto_quantiles(p: Array, k: float, sigma: float) -> Array:
    """Return the quantiles σ ((1 - p)^-k - 1) / k."""
    exponent = -np.log1p(-p)
    out: Array = sigma * (np.expm1(k * exponent) / k if k != 0.0 else exponent)
    return out
