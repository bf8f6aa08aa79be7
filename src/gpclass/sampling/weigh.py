"""Importance sampling: averages over a density p from draws of a proposal q, weighted by w = p / q.

    plain             mean of w h           p normalised
    self-normalised   Σ w h / Σ w           p known up to a factor

The standard error is that of a mean of independent numbers, which for the ratio are w (h - value) / mean w by
the delta method. Weights that have no variance are smoothed (`pareto_smooth`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.checks import check_integers
from gpclass.core.protocols import Array
from gpclass.sampling.checks import Function, Seed, log_ratio, proposed
from gpclass.sampling.pareto import khat_limit, pareto_smooth, stable_weights


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
    """
    check_integers(2, n_samples=n_samples)
    x = proposed(proposal, n_samples, np.random.default_rng(rng))
    values, log_w = np.asarray(h(x), dtype=float), log_ratio(log_density, proposal, x)
    if values.shape[:1] != log_w.shape or not np.isfinite(values).all():
        raise ValueError(
            f"h returned the shape {values.shape} for {n_samples} draws, or NaN, expected a finite number for each."
        )
    if log_w.max() == -np.inf:
        raise ValueError("All weights are zero: the proposal must cover the density.")
    smoothed, khat = stable_weights(log_w)
    w = np.exp(smoothed - log_w.max())
    ess = float(w.sum() ** 2 / (w @ w))
    w *= np.exp(log_w.max()) / n_samples if normalised else 1.0 / w.sum()
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
