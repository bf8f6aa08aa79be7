"""Scores of predicted class probabilities: log loss, error and Brier score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import sem

from gpclass.core.protocols import Array
from gpclass.decision import bayes_decision

Codes = NDArray[np.intp]


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
        the folds, or of the rows without folds; None if there is only one. It is approximate, because folds share
        training rows. ``error``: fraction of rows whose Bayes decision is not the true class. ``brier``: mean of
        (p(class 1) - y)² for two classes, of Σ_c (p_c - y_c)² for more.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    >>> {name: round(value, 4) for name, value in score(np.log(p), np.array([0, 1, 0])).items()}
    {'log_loss': 0.646, 'log_loss_error': 0.2911, 'error': 0.3333, 'brier': 0.23}
    """
    proba, n_classes = np.exp(log_proba), log_proba.shape[1]
    each = losses = -log_proba[np.arange(len(codes)), codes]
    if fold is not None:
        each = np.array([losses[fold == k].mean() for k in np.unique(fold)])
    squares = ((proba - np.eye(n_classes)[codes]) ** 2).sum(axis=1)
    return {
        "log_loss": float(losses.mean()),
        "log_loss_error": float(sem(each)) if len(each) > 1 else None,
        "error": float((bayes_decision(proba, cost) != codes).mean()),
        "brier": float(squares.mean()) / (2.0 if n_classes == 2 else 1.0),
    }
