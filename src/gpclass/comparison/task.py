"""The rows of a comparison: those that every method is fitted to, and those that it predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing as rows_of

from gpclass.comparison.scores import Codes
from gpclass.comparison.table import Comparison
from gpclass.core.checks import check_option, is_integer
from gpclass.estimator import GaussianProcessClassifier
from gpclass.tables import read_inputs
from gpclass.validation import check_labels


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonTask:
    """The training rows, the predictions to make, and the comparison that collects the results.

    Each of ``parts`` has the rows to fit (None: all) and the inputs to predict; ``order`` is the permutation of all
    predictions into the order of ``empty``.
    """

    X: Any
    y: Any
    parts: Sequence[tuple[Codes | None, Any]]
    order: Codes
    empty: Comparison


def make_task(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    vectors: bool,
    cv: Any,
    seed: int,
    categorical_features: Any = "from_dtype",
) -> ComparisonTask:
    """Check the rows once, so that errors in them are not reported by every method, and split them."""
    checker = GaussianProcessClassifier(categorical_features=categorical_features)
    _, y = read_inputs(checker, X, y, vectors=vectors, fitting=True)
    check_labels(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y has only the class {classes}, expected two or more.")
    if (X_test is None) != (y_test is None):
        raise ValueError("Only one of X_test and y_test is given, expected both or neither.")
    if X_test is not None:
        read_inputs(checker, X_test, vectors=vectors, fitting=False)
        found, rows = _test_codes(y_test, classes, len(X_test)), np.arange(len(X_test))
        empty = Comparison((), classes, found, rows, None, len(y), 0)
        return ComparisonTask(X, y, [(None, X_test)], rows, empty)
    splits = _splits(cv, X, codes, seed)
    parts = [(train, rows_of(X, test)) for train, test in splits]
    rows = np.concatenate([test for _, test in splits] or [np.empty(0, dtype=np.intp)])
    fold = np.repeat(np.arange(len(splits)), [len(test) for _, test in splits])
    order = np.argsort(rows, kind="stable")
    rows, fold = rows[order], fold[order]
    empty = Comparison((), classes, codes[rows], rows, fold, len(y), 0)
    return ComparisonTask(X, y, parts, order, empty)


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
