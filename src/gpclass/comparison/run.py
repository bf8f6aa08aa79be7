"""Fit every method to the same rows, and score its predictions; one that fails does not stop the others."""

from __future__ import annotations

import importlib
import re
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing as rows_of

from gpclass.comparison.baselines import fit_options
from gpclass.comparison.scores import score
from gpclass.comparison.table import Comparison, ComparisonRow
from gpclass.comparison.task import Task, classifiers_of, task_of
from gpclass.core.checks import check_integers, seed_of
from gpclass.core.progress import reporter
from gpclass.core.protocols import Array
from gpclass.evidence.importance import MOST_VALUES
from gpclass.learning.usefulness import DoubtfulFitWarning

METHODS = ("laplace", "ep", "vi", "mcmc")  # of gpclass.parameters.INFERENCES, those for any number of rows
Report = Callable[[str], None]
NOTED = (ConvergenceWarning, DoubtfulFitWarning)
Notes = list[tuple[str, str]]  # a message, and where it came from: "" is the fit to all training rows


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
    sample_weight: Any = None,
    n_samples: int = 1000,
    random_state: Any = None,
    verbose: int = 0,
    **options: Any,
) -> Comparison:
    """Fit several methods to the same rows and compare their evidence, predictions and time.

    The result says in words what it shows (``findings``): which methods agree, which approximation is not to be
    trusted, and which method to use.

    Parameters
    ----------
    X, y : array-like or data frame of shape (n, n_features), array-like of shape (n,)
        Training rows and their labels.
    methods : sequence, or mapping of label to method, default=("laplace", "ep", "vi", "mcmc")
        A method is a name or a settings record as for ``GaussianProcessClassifier(inference=...)``, a pair
        (method, likelihood), or an unfitted classifier of any library that has ``predict_proba``. The names
        "sklearn-gp", "logistic-regression" and "gradient-boosting" are classifiers of scikit-learn to compare with.
    kernel, likelihood, **options
        Parameters of `GaussianProcessClassifier`, the same for every method. "sklearn-gp" has the kernel too, if
        it is a kernel object; otherwise it learns ``1.0 * RBF(1.0)`` on standardised columns. With
        ``inducing=...`` the note of a method says so if its inducing inputs miss part of the function. MCMC has none.
    learn : bool, default=True
        Whether each method learns the hyperparameters by maximising its own evidence; False keeps those of
        the kernel.
    cv : int, splitter, iterable of (train, test) or None, default=5
        Cross-validation, the same for every method, unless X_test is given. An integer is the number of
        stratified, shuffled folds. None scores no predictions.
    X_test, y_test : array-like, default=None
        Test rows, instead of cross-validation.
    sample_weight : array-like of shape (n,), default=None
        Weights of the training rows, used for fitting and for the scores of cross-validation.
    n_samples : int, default=1000
        Draws for the corrected evidence; 0 omits it.
    random_state : int, RandomState or None, default=None
        For folds, restarts and draws.
    verbose : int, default=0
        Whether to show progress on standard error.

    Returns
    -------
    Comparison
        One row per method. Failures and convergence warnings are in the ``note`` of the row. After an
        interruption the finished rows are returned.

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
    >>> [row.label for row in result.rows if row.evidence is None]
    ['mcmc']
    >>> round(result["mcmc"].corrected_evidence, 1)
    -7.0
    """
    check_integers(0, n_samples=n_samples)
    seed = seed_of(random_state)
    if not learn:
        options["optimizer"] = None
    shared = {**options, "kernel": kernel, "likelihood": likelihood, "random_state": seed}
    classifiers = classifiers_of(methods, shared)
    data, test = (X, y, sample_weight), (X_test, y_test)
    task = task_of(data, test, classifiers.values(), cv, n_samples, seed)
    for late in ("joblib", "scipy.optimize"):  # else the import would count as time of the first method
        importlib.import_module(late)
    rows: list[ComparisonRow] = []
    steps = 1 + bool(n_samples) + max(len(task.splits), int(X_test is not None))
    with reporter(verbose, "comparing", " steps", len(classifiers) * steps) as report:
        try:
            for label, clf in classifiers.items():
                rows.append(_row(label, clf, task, report or (lambda doing: None)))
        except KeyboardInterrupt:
            if not rows:
                raise
    scored, n_train = task.scored, len(task.y)
    at = (scored.codes, scored.index, scored.fold, scored.weight)
    return Comparison(tuple(rows), task.classes, *at, n_train, len(classifiers))


def _row(label: str, clf: Any, task: Task, report: Report) -> ComparisonRow:
    notes: Notes = []
    report(f"{label}: fitting {len(task.y)} rows")
    fitted, fit_seconds = _attempt(notes, "", lambda: _fit(clf, task.X, task.y, task.weight))
    likelihood = getattr(clf, "likelihood", None)
    if likelihood is not None and not isinstance(likelihood, str):
        likelihood = type(likelihood).__name__.lower()
    known: dict[str, Any] = {"label": label, "likelihood": likelihood}
    if fitted is not None:
        if task.n_samples:
            report(f"{label}: checking the approximation")
        known |= _evidence(fitted, task, notes)
        known |= _predictions(clf, fitted, task, notes, lambda doing: report(f"{label}: {doing}"))
        known |= {"estimator": fitted, "kernel": getattr(fitted, "kernel_", None), "fit_seconds": fit_seconds}
    return ComparisonRow(**known, note=_text(notes))


def _fit(clf: Any, X: Any, y: Any, weight: Array | None) -> Any:
    fitted = clone(clf).fit(X, y, **fit_options(clf, weight))
    # Learning and sampling keep the best so far when they are interrupted; here it ends the comparison.
    for model in _models_of(fitted):
        if any(end is not None and end.interrupted for end in (model.learned, model.chains)):
            raise KeyboardInterrupt
    return fitted


def _evidence(fitted: Any, task: Task, notes: Notes) -> dict[str, Any]:
    """Return what is known of the evidence of the labels; Dirichlet classification has none that compares."""
    check, _ = _attempt(notes, "checking", partial(_check, fitted, task))
    missing = getattr(check, "missing", None)
    if missing is not None and missing.matters:
        notes.append((missing.verdict, ""))
    if not all(model.is_of_labels for model in _models_of(fitted)):
        return {}
    numbers = {"evidence": getattr(fitted, "log_marginal_likelihood_value_", None)}
    names = {"corrected": "corrected_evidence", "standard_error": "standard_error", "khat": "khat"}
    numbers |= {column: getattr(check, name, None) for name, column in names.items()}
    known = {name: None if number is None else float(number) for name, number in numbers.items()}
    return {**known, "check": check}


def _models_of(fitted: Any) -> Any:
    return getattr(getattr(fitted, "base_estimator_", None), "models", ())


def _check(fitted: Any, task: Task) -> Any:
    """Return the result of ``check_approximation``, or None where it does not apply.

    Several two-class models have no common evidence of the labels; joint models may be too large. Of Dirichlet
    classification only inducing inputs can be checked.
    """
    models = _models_of(fitted)
    all_rows = all(model.inducing is None for model in models)
    large = len(task.classes) > 2 and len(task.y) * len(task.classes) > MOST_VALUES
    if all_rows and (large or not all(model.is_of_labels for model in models)):
        return None
    several = isinstance(getattr(fitted, "posterior_", None), list)
    if not task.n_samples or several or not hasattr(fitted, "check_approximation"):
        return None
    return fitted.check_approximation(n_samples=task.n_samples, random_state=task.seed)


def _predictions(clf: Any, fitted: Any, task: Task, notes: Notes, report: Report) -> dict[str, Any]:
    """Predict the test rows, or those of each fold from the other folds, and score them together."""
    parts: list[Array] = []
    seconds = 0.0
    for where, model, X in _models(clf, fitted, task, notes, report):
        part = None
        if model is not None:
            part, spent = _attempt(notes, where, partial(_log_proba, model, X, task.classes))
        if part is None:
            return {}
        parts.append(part)
        seconds += spent
    if not parts:
        return {}
    scored, cost = task.scored, getattr(clf, "cost_matrix", None)
    log_proba = np.concatenate(parts)[scored.order]
    scores = score(log_proba, scored.codes, weight=scored.weight, fold=scored.fold, cost=cost)
    return asdict(scores) | {"proba": np.exp(log_proba), "predict_seconds": seconds}


def _models(
    clf: Any, fitted: Any, task: Task, notes: Notes, report: Report
) -> Iterator[tuple[str, Any, Any]]:
    """Yield a description, a fitted model (None if that failed) and the rows it is to predict."""
    if task.X_test is not None:
        report(f"predicting {len(task.scored.index)} rows")
        yield "predicting", fitted, task.X_test
    for k, (train, test) in enumerate(task.splits, start=1):
        report(f"fold {k} of {len(task.splits)}")
        weight = None if task.weight is None else task.weight[train]
        fit = partial(_fit, clf, rows_of(task.X, train), task.y[train], weight)
        yield f"fold {k}", _attempt(notes, f"fold {k}", fit)[0], rows_of(task.X, test)


def _log_proba(clf: Any, X: Any, classes: Any) -> Array:
    """Return log probabilities, by ``predict_proba`` for classifiers whose logarithms may be infinite."""
    if not np.array_equal(clf.classes_, classes):
        raise ValueError(f"only the classes {clf.classes_} of {classes} were among its training rows.")
    if hasattr(clf, "posterior_"):
        return np.asarray(clf.predict_log_proba(X))
    log_proba: Array = np.log(np.maximum(clf.predict_proba(X), np.finfo(float).tiny))
    return log_proba


def _attempt(notes: Notes, where: str, action: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of an action (None if it fails) and its seconds; note errors and warnings."""
    with warnings.catch_warnings(record=True) as caught:
        for category in NOTED:
            warnings.simplefilter("always", category)
        start, value = time.perf_counter(), None
        try:
            value = action()
        except Exception as error:
            notes.append((f"failed with {type(error).__name__}: {error}", where))
        seconds = time.perf_counter() - start
    for warning in caught:
        if issubclass(warning.category, NOTED):
            notes.append((str(warning.message), where))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return value, seconds


def _text(notes: Notes) -> str:
    """Return every message once, with the places it came from; only the numbers in it may differ there."""
    kinds: dict[str, Notes] = {}
    for note in notes:
        kinds.setdefault(re.sub(r"[-+]?\d[\d.]*(e[-+]?\d+)?", "#", note[0]), []).append(note)
    out = []
    for alike in kinds.values():
        sentence, places = alike[0][0], [where for _, where in alike]
        named = ", ".join(dict.fromkeys(place for place in places if place)).replace(", fold ", ", ")
        also = "also " if "" in places else ""
        out.append(f"{sentence} [{also}{named}]" if named else sentence)
    return " ".join(out)
