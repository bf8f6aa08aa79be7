"""What a comparison runs: one classifier per method, and rows and folds that are the same for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing as rows_of

from gpclass.comparison.baselines import BASELINES, baseline
from gpclass.comparison.scores import Codes
from gpclass.core.checks import check_option, is_integer
from gpclass.core.protocols import Array
from gpclass.estimator import GaussianProcessClassifier
from gpclass.kernels import takes_vectors
from gpclass.parameters import check_parameters
from gpclass.validation import check_inputs, check_labels, check_weights

Splits = list[tuple[Codes, Codes]]


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
    """What is the same for every method: the rows, the folds, the seed."""

    X: Any
    y: Any
    weight: Array | None
    classes: Any
    splits: Splits
    X_test: Any
    scored: Scored
    n_samples: int
    seed: int


def classifiers_of(methods: Any, shared: dict[str, Any]) -> dict[str, Any]:
    """Return an unfitted classifier for each label; labels that occur again are numbered."""
    methods = (methods,) if isinstance(methods, str) else methods
    named = [(_label(method), method) for method in methods]
    if isinstance(methods, Mapping):
        named = [(str(label), method) for label, method in methods.items()]
    if not named:
        raise ValueError("methods is empty, expected at least one.")
    out: dict[str, Any] = {}
    for label, method in named:
        copies = sum(taken == label or taken.startswith(f"{label} (") for taken in out)
        out[f"{label} ({copies + 1})" if copies else label] = _classifier(method, shared)
    return out


def _classifier(method: Any, shared: dict[str, Any]) -> Any:
    if isinstance(method, str) and method in BASELINES:
        return baseline(method, shared["kernel"], shared["random_state"])
    if hasattr(method, "fit"):
        clf = method if isinstance(method, type) else clone(method)
    else:
        pair = method if isinstance(method, tuple) else (method, shared["likelihood"])
        if len(pair) != 2:
            raise ValueError(f"{method!r} is not possible as a method, expected a pair (method, likelihood).")
        clf = GaussianProcessClassifier(**{**shared, "inference": pair[0], "likelihood": pair[1]})
    if isinstance(clf, GaussianProcessClassifier):
        check_parameters(clf)
    elif isinstance(clf, type) or not hasattr(clf, "predict_proba"):
        raise ValueError(f"{method!r} is not possible as a method, expected a classifier with predict_proba.")
    return clf


def _label(method: Any) -> str:
    """Return a short name; that of a settings record mentions the settings that are not the defaults."""
    if isinstance(method, str):
        return method
    if isinstance(method, tuple):
        return "/".join(_label(part) for part in method)
    name = type(method).__name__
    if hasattr(method, "fit") or not is_dataclass(method):
        return name
    texts = [f"{key}={(_label if is_dataclass(value) else repr)(value)}" for key, value in changed(method)]
    return f"{name}({', '.join(texts)})"


def changed(record: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a settings record that are not at their defaults."""
    for each in fields(record):
        value = getattr(record, each.name)
        if value != each.default:
            yield each.name, value


def task_of(
    data: tuple[Any, Any, Any],
    test: tuple[Any, Any],
    classifiers: Iterable[Any],
    cv: Any,
    n_samples: int,
    seed: int,
) -> Task:
    """Check the rows once, so that no method has to report what is wrong with them, and split them."""
    X, y, sample_weight = data
    ours = [clf for clf in classifiers if isinstance(clf, GaussianProcessClassifier)]
    checker = clone(ours[0]) if ours else GaussianProcessClassifier()
    vectors = takes_vectors(checker.kernel)
    _, y = check_inputs(checker, X, y, vectors=vectors, fitting=True)
    check_labels(y)
    weight = check_weights(sample_weight, None, y)
    kept = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    if len(kept) < len(y) and weight is not None:
        X, y, weight = rows_of(X, kept), y[kept], weight[kept]
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y has the one class {classes} with positive weight, expected two or more.")
    X_test, y_test = test
    if (X_test is None) != (y_test is None):
        raise ValueError("Only one of X_test and y_test is given, expected both or neither.")
    splits: Splits = []
    if X_test is None:
        splits = _splits(cv, X, codes, seed)
        scored = _cross_validated(splits, codes, weight, kept)
    else:
        check_inputs(checker, X_test, vectors=vectors, fitting=False)
        rows = np.arange(len(X_test))
        scored = Scored(rows, rows, _codes(y_test, classes, len(X_test)))
    return Task(X, y, weight, classes, splits, X_test, scored, n_samples, seed)


def _cross_validated(splits: Splits, codes: Codes, weight: Array | None, kept: Codes) -> Scored:
    if not splits:
        return Scored(*np.empty((3, 0), dtype=np.intp))
    rows = np.concatenate([test for _, test in splits])
    fold = np.repeat(np.arange(len(splits)), [len(test) for _, test in splits])
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    return Scored(kept[rows], order, codes[rows], fold[order], None if weight is None else weight[rows])


def _codes(y_test: Any, classes: Any, n: int) -> Codes:
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


def _splits(cv: Any, X: Any, codes: Codes, seed: int) -> Splits:
    from sklearn.model_selection import StratifiedKFold, check_cv

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
