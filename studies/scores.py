"""Folds that are the same for all methods, and scores of predicted class probabilities."""

from __future__ import annotations

import warnings
from typing import Any

import data
import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

CLIP = 1e-6  # least probability of the true class, for every method


def rows(y: np.ndarray, index: int, *, folds: int, train: int, test: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the training rows and of the test rows of one stratified fold.

    At most ``train`` and ``test`` rows are used, random subsets with the class frequencies of the fold.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class of fewer rows than folds
        splits = list(StratifiedKFold(folds, shuffle=True, random_state=0).split(y, y))
    inside, outside = splits[index]
    inside = inside[data.subset(y[inside], train, seed=index)]
    return inside, outside[data.subset(y[outside], test, seed=index)]


def fold(
    X: np.ndarray, y: np.ndarray, index: int, *, folds: int, train: int, test: int, standardise: bool
) -> Any:
    """Return training inputs and labels, then test inputs and labels, of one of the folds of `rows`.

    Inputs are standardised by the mean and standard deviation of the training rows that are used.
    """
    inside, outside = rows(y, index, folds=folds, train=train, test=test)
    A, B = X[inside], X[outside]
    if standardise:
        scaler = StandardScaler().fit(A)
        A, B = scaler.transform(A), scaler.transform(B)
    return A, y[inside], B, y[outside]


def score(p: np.ndarray, classes: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Return the scores of the probabilities ``p`` of ``classes`` for the true labels ``y``.

    A class that is not among ``classes`` has probability zero. The probability of the true class is clipped at `CLIP`
    for the log loss only. The Brier score is the sum over the classes, between 0 and 2. Confidences are those of the
    predicted class, for the calibration error.
    """
    if not np.isfinite(p).all():
        raise FloatingPointError("The probabilities contain NaN or infinity.")
    n_classes = int(max(classes.max(), y.max())) + 1
    full = np.zeros((len(y), n_classes))
    full[:, classes] = p
    correct = full.argmax(axis=1) == y
    return {
        "loss": float(-np.log(np.maximum(full[np.arange(len(y)), y], CLIP)).mean()),
        "brier": float(((full - np.eye(n_classes)[y]) ** 2).sum(axis=1).mean()),
        "error": float(1.0 - correct.mean()),
        "confidence": [round(float(c), 4) for c in full.max(axis=1)],
        "correct": [int(c) for c in correct],
    }


def calibration_error(confidence: np.ndarray, correct: np.ndarray, bins: int = 10) -> float:
    """Return the mean distance of accuracy and confidence over bins of equal numbers of rows.

    Examples
    --------
    >>> import numpy as np
    >>> calibration_error(np.array([0.5, 0.5, 1.0, 1.0]), np.array([0, 1, 1, 1]), bins=2)
    0.0
    """
    order = np.argsort(confidence, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    gaps = [len(part) * abs(confidence[part].mean() - correct[part].mean()) for part in parts]
    return float(sum(gaps) / len(order))
