"""A log evidence from importance weights, with its standard error and a measure of reliability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpclass.core.protocols import Array
from gpclass.sampling.pareto import Estimate, cautious_error, stable_weights


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
