"""Scores of predicted class probabilities: log loss, error, Brier score and calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import sem

from gpclass.core.protocols import Array
from gpclass.decision import bayes_decision

N_BINS = 10
Codes = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """The bins that contain rows: mean probability, observed frequency, and fraction of all rows."""

    probability: Array
    frequency: Array
    share: Array


def score(log_proba: Array, codes: Codes, *, fold: Any = None, cost: Any = None) -> dict[str, float | None]:
    """Return scores of predicted class probabilities, averaged over the rows; smaller is better.

    Parameters
    ----------
    log_proba : ndarray of shape (n, n_classes)
        Log class probabilities.
    codes : ndarray of int of shape (n,)
        Positions of the true classes.
    fold : ndarray of int of shape (n,), optional
        The fold of each row.
    cost : array of shape (n_classes, n_classes), optional
        Costs of the decisions that ``error`` counts.

    Returns
    -------
    dict of str to float
        ``log_loss``: mean of -log p(true class), in nats. ``log_loss_error``: its standard error, from the means of
        the folds, or from the rows without folds; None if there is one of them. It is approximate, because folds share
        training rows. ``error``: fraction of rows whose Bayes decision is not the true class. ``brier``: mean of
        (p(class 1) - y)² for two classes, of Σ_c (p_c - y_c)² for more. ``ece``: expected calibration error, the mean
        of |observed frequency - mean probability| over the rows of ten bins of equal width. For two classes the
        probability is that of the second class; for more it is that of the most probable class, and the frequency is
        how often that class was the true one.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    >>> {name: round(value, 4) for name, value in score(np.log(p), np.array([0, 1, 0])).items()}
    {'log_loss': 0.646, 'error': 0.3333, 'brier': 0.23, 'log_loss_error': 0.2911, 'ece': 0.4333}
    """
    each = row_scores(log_proba, codes, cost)
    means = {name: float(values.mean()) for name, values in each.items()}
    losses = each["log_loss"]
    if fold is not None:
        losses = np.array([losses[fold == k].mean() for k in np.unique(fold)])
    error = float(sem(losses)) if len(losses) > 1 else None
    bins = calibration_bins(np.exp(log_proba), codes)
    ece = float(bins.share @ np.abs(bins.frequency - bins.probability))
    return {**means, "log_loss_error": error, "ece": ece}


def row_scores(log_proba: Array, codes: Codes, cost: Any = None) -> dict[str, Array]:
    """Return log loss, error and Brier score of each row; scikit-learn's metrics give the means only."""
    proba = np.exp(log_proba)
    squares = (proba - np.eye(proba.shape[1])[codes]) ** 2
    return {
        "log_loss": -log_proba[np.arange(len(codes)), codes],
        "error": (bayes_decision(proba, cost) != codes).astype(float),
        "brier": squares[:, 1] if proba.shape[1] == 2 else squares.sum(axis=1),
    }


def calibration_bins(proba: Array, codes: Codes) -> Bins:
    """Return the bins of the expected calibration error, as `score` defines it."""
    p, hit = proba.max(axis=1), proba.argmax(axis=1) == codes
    if proba.shape[1] == 2:
        p, hit = proba[:, 1], codes == 1
    p = np.minimum(p, 1.0)  # a sum of rounded numbers may exceed one
    ones = np.ones(len(codes))
    sums = np.stack([np.histogram(p, N_BINS, (0.0, 1.0), weights=of)[0] for of in (ones, p, ones * hit)])
    mass, probability, frequency = sums[:, sums[0] > 0.0]
    return Bins(probability / mass, frequency / mass, mass / mass.sum())
