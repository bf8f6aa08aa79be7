"""Fit every method to the same rows and score its predictions; the failure of one method does not stop the others.

A method is a classifier of gpclass or of scikit-learn by name, or any classifier object.
"""

from __future__ import annotations

import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier as SklearnGP
from sklearn.gaussian_process.kernels import RBF, Kernel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing as rows_of

from gpclass.comparison.table import Comparison, ComparisonRow, score
from gpclass.core.checks import check_integers, is_integer, seed_of
from gpclass.core.progress import reporter
from gpclass.core.protocols import Index
from gpclass.estimator import GaussianProcessClassifier
from gpclass.kernels.names import takes_vectors
from gpclass.learning.fitted import DoubtfulFitWarning
from gpclass.parameters import check_parameters
from gpclass.tables import Encoder, needs_coding, read_inputs
from gpclass.validation import Encode, check_labels

METHODS = ("laplace", "ep", "vi", "mcmc")  # names in gpclass.parameters.INFERENCES, for any number of rows
NOTED = (ConvergenceWarning, DoubtfulFitWarning)


def compare(
    X: Any,
    y: Any,
    *,
    methods: Any = METHODS,
    kernel: Any = None,
    likelihood: Any = "probit",
    learn: bool = True,
    cv: Any = 5,
    X_test: Any = None,
    y_test: Any = None,
    n_samples: int = 1000,
    random_state: Any = None,
    verbose: int = 0,
    **options: Any,
) -> Comparison:
    """Fit several methods to the same rows and compare their evidence, predictions and time.

    Parameters
    ----------
    X, y : array-like or data frame of shape (n, n_features), array-like of shape (n,)
        Training rows and their labels. Tables may have categories and missing values, which classifiers of
        scikit-learn given by name take as `gpclass.tables.Encoder` codes them.
    methods : sequence, or mapping of label to method, default=("laplace", "ep", "vi", "mcmc")
        A method is a name or a settings record as for ``GaussianProcessClassifier(inference=...)``, a pair
        (method, likelihood), or an unfitted classifier of any library that has ``predict_proba``. The names
        "sklearn-gp", "logistic-regression" and "gradient-boosting" are classifiers of scikit-learn to compare with.
    kernel, likelihood, **options
        Parameters of `GaussianProcessClassifier`, the same for every method. "sklearn-gp" has the kernel too, if
        it is a kernel object; otherwise it learns ``1.0 * RBF(1.0)`` on standardised columns.
    learn : bool, default=True
        Whether each method learns the hyperparameters by its own evidence; False keeps those of the kernel.
    cv : int, splitter, iterable of (train, test) or None, default=5
        Cross-validation, the same for every method, unless X_test is given. An integer is the number of
        stratified, shuffled folds. None scores no predictions.
    X_test, y_test : array-like, default=None
        Test rows, instead of cross-validation.
    n_samples : int, default=1000
        Draws for the corrected evidence; 0 omits it.
    random_state : int, RandomState or None, default=None
        For folds, restarts and draws.
    verbose : int, default=0
        Whether to show progress on standard error.

    Returns
    -------
    Comparison
        One row per method, and its ``findings`` in sentences. Failures, convergence warnings and doubtful
        approximations are in the ``note`` of the row.

    Examples
    --------
    >>> from gpclass.comparison import compare
    >>> from gpclass.datasets import interval
    >>> from gpclass.kernels import RBF
    >>> X, y, X_test, y_test = interval()
    >>> held_out = {"X_test": X_test, "y_test": y_test}
    >>> result = compare(X, y, kernel=9.0 * RBF(15.0), learn=False, random_state=0, **held_out)
    >>> [(row.label, round(row.log_loss, 2)) for row in result.rows]
    [('laplace', 0.21), ('ep', 0.15), ('vi', 0.15), ('mcmc', 0.15)]
    """
    check_integers(0, n_samples=n_samples)
    seed = seed_of(random_state)
    if not learn:
        options["optimizer"] = None
    shared = {**options, "kernel": kernel, "likelihood": likelihood, "random_state": seed}
    categories = options.get("categorical_features", "from_dtype")
    coding = [Encoder(categories)] if needs_coding(X, categories) else []
    classifiers = classifiers_of(methods, shared, coding)
    vectors = takes_vectors(kernel)
    # The rows are checked once, so that not every method reports errors in them.
    checker = GaussianProcessClassifier(categorical_features=categories)
    _, y = read_inputs(checker, X, y, vectors=vectors, fitting=True)
    if X_test is not None:
        read_inputs(checker, X_test, vectors=vectors, fitting=False)
    task = _task(X, y, X_test, y_test, cv, seed)
    n_steps = len(classifiers) * (1 + bool(n_samples) + len(task.parts))
    rows: list[ComparisonRow] = []
    with reporter(verbose, f"comparing on {len(y)} rows", n_steps) as report:
        try:
            for label, clf in classifiers.items():
                rows.append(_row(label, clf, task, n_samples, seed, report or (lambda step: None)))
        except KeyboardInterrupt:
            if not rows:
                raise
    return replace(task.scored, rows=tuple(rows), n_methods=len(classifiers))


# ------------------------------------------------------------------------------------ the rows


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """The training rows, the rows to predict, and the comparison before results are filled in."""

    X: Any
    y: Any
    parts: Sequence[
        tuple[Any, Any, Index]
    ]  # training rows (None: all), test inputs, their places in `scored`
    scored: Comparison


def _task(X: Any, y: Any, X_test: Any, y_test: Any, cv: Any, seed: int) -> _Task:
    check_labels(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y has only the class {classes}, expected two or more.")
    if (X_test is None) != (y_test is None):
        raise ValueError("Only one of X_test and y_test is given, expected both or neither.")
    if X_test is not None:
        y_test, rows = np.asarray(y_test), np.arange(len(X_test))
        if y_test.shape != rows.shape:
            raise ValueError(
                f"y_test has shape {y_test.shape}, expected {rows.shape}, one label for each row of X_test."
            )
        scored = Comparison((), classes, Encode(classes).codes(y_test), rows, None, len(y))
        return _Task(X, y, [(None, X_test, rows)], scored)
    if is_integer(cv):
        cv = StratifiedKFold(cv, shuffle=True, random_state=seed)
    splits = [] if cv is None else list(check_cv(cv, codes, classifier=True).split(X, codes))
    rows = np.concatenate([np.empty(0, dtype=np.intp), *(test for _, test in splits)])
    fold = np.repeat(np.arange(len(splits)), [len(test) for _, test in splits])
    order = np.argsort(rows, kind="stable")
    places = np.argsort(order)
    parts = [(train, rows_of(X, test), places[fold == k]) for k, (train, test) in enumerate(splits)]
    rows, fold = rows[order], fold[order]
    return _Task(X, y, parts, Comparison((), classes, codes[rows], rows, fold, len(y)))


# ------------------------------------------------------------------------------------ one method


def _row(label: str, clf: Any, task: _Task, n_samples: int, seed: int, report: Any) -> ComparisonRow:
    notes: dict[str, str] = {}
    likelihood = getattr(clf, "likelihood", None)
    known: dict[str, Any] = {"likelihood": getattr(likelihood, "name", likelihood)}
    report(f"{label}: all rows")
    start = time.perf_counter()
    fitted = _attempt(notes, "", lambda: _fit(clf, task.X, task.y))
    if fitted is not None:
        known["fit_seconds"] = time.perf_counter() - start
        known |= {"estimator": fitted, "kernel": getattr(fitted, "kernel_", None)}
        if n_samples:
            report(f"{label}: checking the approximation")
            known["check"] = _attempt(notes, "checking", lambda: _check(fitted, n_samples, seed))
        if task.parts:
            known |= (
                _attempt(notes, "predicting", lambda: _predictions(label, clf, fitted, task, report)) or {}
            )
        if all(model.problem.is_of_labels for model in _models_of(fitted)):  # others are not comparable
            check, own = known.get("check"), getattr(fitted, "log_marginal_likelihood_value_", None)
            known |= {"evidence": own, "corrected_evidence": getattr(check, "corrected", None)}
            known |= {name: getattr(check, name, None) for name in ("standard_error", "khat")}
    row = ComparisonRow(label, **known)
    verdict = [row.check.verdict] if row.doubtful else []
    return replace(row, note=" ".join([*notes.values(), *verdict]))


def _attempt(notes: dict[str, str], step: str, action: Callable[[], Any]) -> Any:
    """Return the result of an action, or None if it fails; errors and warnings are added to ``notes``."""
    value, messages = None, []
    with warnings.catch_warnings(record=True) as caught:
        for category in NOTED:
            warnings.simplefilter("always", category)
        try:
            value = action()
        except Exception as error:
            messages.append(f"failed with {type(error).__name__}: {error}")
    for warning in caught:
        if issubclass(warning.category, NOTED):
            messages.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    for message in messages:  # messages that differ only in their numbers are recorded once
        kind = re.sub(r"[-+]?\d[\d.]*(e[-+]?\d+)?", "#", message)
        notes.setdefault(kind, f"{message} [{step}]" if step else message)
    return value


def _fit(clf: Any, X: Any, y: Any) -> Any:
    """Fit a copy of a classifier."""
    fitted = clone(clf).fit(X, y)
    # An interrupted fit keeps its best result so far; here the interruption ends the comparison.
    if any(model.interrupted for model in _models_of(fitted)):
        raise KeyboardInterrupt
    return fitted


def _models_of(fitted: Any) -> Any:
    return getattr(getattr(fitted, "base_estimator_", None), "models", ())


def _check(fitted: Any, n_samples: int, seed: int) -> Any:
    """Return the result of ``check_approximation``, or None if the posterior cannot be checked."""
    if len(_models_of(fitted)) > 1 or not hasattr(fitted, "check_approximation"):
        return None  # several two-class models have no joint evidence of the labels
    with suppress(ValueError):
        return fitted.check_approximation(n_samples=n_samples, random_state=seed)


def _predictions(label: str, clf: Any, fitted: Any, task: _Task, report: Any) -> dict[str, Any]:
    """Predict the test rows, or each fold from the other folds, and score all predictions together."""
    scored, seconds = task.scored, 0.0
    log_proba = np.empty((len(scored.codes), len(scored.classes)))
    for k, (rows, X, places) in enumerate(task.parts, start=1):
        report(f"{label}: {'the test rows' if rows is None else f'fold {k} of {len(task.parts)}'}")
        model = fitted if rows is None else _fit(clf, rows_of(task.X, rows), task.y[rows])
        if not np.array_equal(model.classes_, scored.classes):
            raise ValueError(f"only the classes {model.classes_} were among its training rows.")
        start = time.perf_counter()
        if hasattr(model, "posterior_"):
            log_proba[places] = model.predict_log_proba(X)
        else:  # other classifiers may predict a probability of zero
            log_proba[places] = np.log(np.maximum(model.predict_proba(X), np.finfo(float).tiny))
        seconds += time.perf_counter() - start
    scores = score(log_proba, scored.codes, fold=scored.fold, cost=getattr(clf, "cost_matrix", None))
    return {**scores, "proba": np.exp(log_proba), "predict_seconds": seconds}


# ------------------------------------------------------------------------------------ the classifiers


BASELINES = ("sklearn-gp", "logistic-regression", "gradient-boosting")


def classifiers_of(methods: Any, shared: dict[str, Any], coding: list[Any]) -> dict[str, Any]:
    """Return an unfitted classifier for each label; repeated labels are numbered.

    ``coding`` holds an encoder if the rows need one for the classifiers of scikit-learn that are given by name.
    """
    methods = [methods] if isinstance(methods, str) else methods
    named = methods.items() if isinstance(methods, Mapping) else [(_label(one), one) for one in methods]
    out: dict[str, Any] = {}
    seen = Counter[str]()
    for label, method in named:
        seen[label] += 1
        unique = f"{label} ({seen[label]})" if seen[label] > 1 else str(label)
        out[unique] = _classifier(method, shared, coding)
    if not out:
        raise ValueError("methods is empty, expected at least one.")
    return out


def _label(method: Any) -> str:
    if isinstance(method, tuple):
        return "/".join(_label(part) for part in method)
    return method if isinstance(method, str) else type(method).__name__


def _classifier(method: Any, shared: dict[str, Any], coding: list[Any]) -> Any:
    if isinstance(method, str) and method in BASELINES:
        steps = [*coding, *_baseline(method, shared["kernel"], shared["random_state"])]
        return make_pipeline(*steps) if len(steps) > 1 else steps[0]
    if not hasattr(method, "fit"):
        inference, likelihood = method if isinstance(method, tuple) else (method, shared["likelihood"])
        clf = GaussianProcessClassifier(**{**shared, "inference": inference, "likelihood": likelihood})
        check_parameters(clf)
        return clf
    if isinstance(method, type) or not hasattr(method, "predict_proba"):
        raise ValueError(f"{method!r} is not valid as a method: expected a classifier with predict_proba.")
    return clone(method)


def _baseline(name: str, kernel: Any, seed: int) -> list[Any]:
    """Return the pipeline steps of a classifier of scikit-learn that is given by name."""
    if name == "gradient-boosting":
        return [HistGradientBoostingClassifier(random_state=seed)]
    if name == "logistic-regression":
        return [StandardScaler(), LogisticRegression(max_iter=1000, random_state=seed)]
    if isinstance(kernel, Kernel):
        return [SklearnGP(kernel, random_state=seed)]
    # Scikit-learn does not learn its default kernel. A single length scale needs standardised columns.
    return [StandardScaler(), SklearnGP(1.0 * RBF(1.0), random_state=seed)]
