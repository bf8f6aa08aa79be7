"""The rows of a comparison: what every method is fitted to, and what it predicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing as rows_of

from gpclass.comparison.scores import Codes
from gpclass.core.checks import check_option, is_integer
from gpclass.core.protocols import Array
from gpclass.estimator import GaussianProcessClassifier
from gpclass.kernels import takes_vectors
from gpclass.validation import check_inputs, check_labels, check_weights


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The predicted rows in their original order, and the permutation ``order`` that restores it."""

    index: Codes
    order: Codes
    codes: Codes
    fold: Codes | None = None
    weight: Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """The training rows, and for each prediction its name, the rows to fit (None: all) and the inputs to predict."""

    X: Any
    y: Any
    weight: Array | None
    classes: Any
    parts: Sequence[tuple[str, Codes | None, Any]]
    scored: Scored


def task_of(
    data: tuple[Any, Any, Any], test: tuple[Any, Any], clfs: Iterable[Any], cv: Any, seed: int
) -> Task:
    """Check the rows once, so that no method has to report what is wrong with them, and split them."""
    X, y, sample_weight = data
    X_test, y_test = test
    ours = [clf for clf in clfs if isinstance(clf, GaussianProcessClassifier)]
    checker = clone(ours[0]) if ours else GaussianProcessClassifier()
    vectors = takes_vectors(checker.kernel)
    _, y = check_inputs(checker, X, y, vectors=vectors, fitting=True)
    check_labels(y)
    weight, kept = check_weights(sample_weight, None, y), np.arange(len(y))
    if weight is not None and not weight.all():
        kept = np.flatnonzero(weight)
        X, y, weight = rows_of(X, kept), y[kept], weight[kept]
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y has the one class {classes} with positive weight, expected two or more.")
    if (X_test is None) != (y_test is None):
        raise ValueError("Only one of X_test and y_test is given, expected both or neither.")
    if X_test is not None:
        check_inputs(checker, X_test, vectors=vectors, fitting=False)
        rows = np.arange(len(X_test))
        scored = Scored(rows, rows, _test_codes(y_test, classes, len(X_test)))
        return Task(X, y, weight, classes, [(f"predicting {len(X_test)} rows", None, X_test)], scored)
    splits = _splits(cv, X, codes, seed)
    names = [f"fold {k + 1} of {len(splits)}" for k in range(len(splits))]
    parts = [(name, train, rows_of(X, test)) for name, (train, test) in zip(names, splits, strict=True)]
    rows = np.concatenate([test for _, test in splits] or [np.empty(0, dtype=np.intp)])
    fold = np.repeat(np.arange(len(splits)), [len(test) for _, test in splits])
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    scored = Scored(kept[rows], order, codes[rows], fold[order], None if weight is None else weight[rows])
    return Task(X, y, weight, classes, parts, scored)


def _test_codes(y_test: Any, classes: Any, n: int) -> Codes:
    y_test = np.asarray(y_test)
    if y_test.shape != (n,):
        raise ValueError(
            f"y_test has shape {y_test.shape}, expected ({n},): one label for each row of X_test."
        )
    unknown = np.setdiff1d(y_test, classes)
    if len(unknown):
        raise ValueError(
            f"y_test has the label {unknown[0]!r}, which does not occur in y: leave such rows out."
        )
    codes: Codes = np.searchsorted(classes, y_test)
    return codes


def _splits(cv: Any, X: Any, codes: Codes, seed: int) -> list[tuple[Codes, Codes]]:
    if cv is None:
        return []
    check_option("cv", cv, not isinstance(cv, bool | float | str), "a number of folds, a splitter or None")
    if is_integer(cv):
        least = int(np.bincount(codes).min())
        if not 2 <= cv <= least:
            raise ValueError(
                f"cv={cv} is not possible, expected from 2 to {least} folds, as the smallest class has {least} rows: "
                "give fewer folds, or X_test and y_test."
            )
        cv = StratifiedKFold(int(cv), shuffle=True, random_state=seed)
    return list(check_cv(cv, codes, classifier=True).split(X, codes))
