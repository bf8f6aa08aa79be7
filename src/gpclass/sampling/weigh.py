"""Importance sampling: averages over a density p from draws of a proposal q, weighted by p / q.

    plain             mean of w h           p normalised
    self-normalised   Σ w h / Σ w           p known up to a factor

The standard error is that of a mean of independent numbers e, which for the ratio are w (h - value) / mean w
by the delta method. They are skewed: where few draws dominate, an estimate is often too low and its standard
error with it. By the Cornish-Fisher expansion of a studentised mean with skewness g = Σe³ / (Σe²)^(3/2), the
deviation exceeded as rarely as 3 is 3 + g (2 · 3² + 1) / 6, nearly 3 (1 + g): the standard error is increased
by the factor 1 + |g|, so that an interval of three standard errors has its nominal coverage.

Smoothed weights (`pareto_smooth`) replace those that have no variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.checks import check_integers
from gpclass.core.protocols import Array
from gpclass.sampling.accept import check_proposal, draw, log_of, log_ratio
from gpclass.sampling.checks import Function, Seed
from gpclass.sampling.pareto import SMOOTHED, Estimate, cautious_error, pareto_smooth


@dataclass(frozen=True, slots=True, eq=False)
class ImportanceEstimate(Estimate):
    """An average by importance sampling.

    Parameters
    ----------
    value : float, or array if h has several values
    standard_error : float or array
        Of ``value``; it means little unless ``reliable``.
    khat : float or None
        Shape of the tail of the products of weights and h or, self-normalised, of the weights alone if
        that is heavier. None if all are equal; infinite if there are too few draws, or too few where h is
        not zero, to estimate it.
    ess : float
        Effective sample size, (Σw)² / Σw².
    n_samples : int
    weights : array of shape (n_samples,)
        Such that ``value`` is their product with the values of h.
    draws : array of shape (n_samples,) or (n_samples, d), optional
    """

    weights: Array
    draws: Array | None = None


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
        Or another object with ``rvs(size, random_state)`` and ``logpdf(x)``. With tails heavier than those of the
        density the weights are bounded.
    n_samples : int
    rng : numpy Generator or seed
    normalised : bool
        Whether the density is normalised: this selects the plain estimate, otherwise the self-normalised one.
        With h = 1 the plain estimate is the mass of the density.

    Returns
    -------
    ImportanceEstimate

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import t
    >>> from gpclass.sampling import importance
    >>> estimate = importance(np.square, lambda x: -0.5 * x**2, t(df=5), 10_000, rng=0)
    >>> abs(estimate.value - 1.0) < 3 * estimate.standard_error < 0.06, estimate.reliable
    (True, True)
    >>> mass = importance(np.ones_like, lambda x: -0.5 * x**2, t(df=5), 10_000, rng=0, normalised=True)
    >>> abs(mass.value - np.sqrt(2 * np.pi)) < 3 * mass.standard_error < 0.06
    True
    """
    check_integers(n_samples=n_samples)
    check_proposal(proposal)
    x = draw(proposal, n_samples, np.random.default_rng(rng))
    return importance_estimate(h(x), log_ratio(log_density, proposal, x), normalised=normalised, draws=x)


def importance_estimate(
    values: Array, log_weights: Array, *, normalised: bool = False, draws: Array | None = None
) -> ImportanceEstimate:
    """Estimate an average from values of h and log weights, one for each draw."""
    values, log_weights = np.asarray(values, dtype=float), np.asarray(log_weights, dtype=float)
    _check(values, log_weights, normalised)
    smoothed, khat = pareto_smooth(log_weights)
    w, ess = _weights(log_weights, normalised)
    khat = _tail((w * values.T).T, None if normalised else khat)
    if khat is not None and khat >= SMOOTHED:
        w, ess = _weights(smoothed, normalised)
    value: Any = np.tensordot(w, values, axes=1)
    error = _error((w * (values - (0.0 if normalised else value)).T).T)
    if values.ndim == 1:
        value, error = float(value), float(error)
    return ImportanceEstimate(value, error, khat, ess, len(w), w, draws)


def _weights(log_weights: Array, normalised: bool) -> tuple[Array, float]:
    """Return weights whose product with h is the estimate, and the effective sample size."""
    top = float(log_weights.max())
    w = np.exp(log_weights - top)
    total = float(w.sum())
    scale = np.exp(top) / len(w) if normalised else 1.0 / total
    return w * scale, float(total**2 / (w @ w))


def _error(products: Array) -> Any:
    """Return the standard error of a sum of products w h or w (h - value), increased for their skewness."""
    e = products - products.mean(axis=0)
    scale = np.abs(e).max(axis=0)
    e = e / np.where(scale > 0.0, scale, 1.0)  # its powers do not overflow, and Σe² >= 1
    square = np.maximum((e**2).sum(axis=0), 1.0)
    skewness = np.abs((e**3).sum(axis=0)) / square**1.5
    return scale * cautious_error(e) * (1.0 + skewness) * np.sqrt(len(e) / (len(e) - 1.0))


def _check(values: Array, log_weights: Array, normalised: bool) -> None:
    if log_weights.ndim != 1 or values.shape[:1] != log_weights.shape or len(values) < 2:
        raise ValueError(
            f"values and log_weights have the shapes {values.shape} and {log_weights.shape}, expected "
            "(m, ...) and (m,) with m of at least 2."
        )
    if not np.isfinite(values).all():
        raise ValueError("values has NaN or infinity: h must be finite wherever the proposal draws.")
    if np.isnan(log_weights).any() or log_weights.max() == np.inf:
        raise ValueError("log_weights has NaN or +inf, expected numbers or -inf.")
    if log_weights.max() == -np.inf:
        raise ValueError(
            "All weights are zero: the density vanishes at all draws of the proposal, which must cover it."
        )
    if normalised and abs(log_weights.max()) > 700.0:
        raise ValueError(
            f"The largest log weight is {log_weights.max():.6g}, but those of a normalised density have the "
            "mean one: give normalised=False, or a proposal that covers the density."
        )


def _tail(products: Array, khat: float | None) -> float | None:
    """Return the largest tail shape of the columns of products and of the one that is given."""
    columns = np.abs(products).reshape(len(products), -1).T
    known = [pareto_smooth(log_of(column))[1] for column in columns]
    return max((k for k in (khat, *known) if k is not None), default=None)
