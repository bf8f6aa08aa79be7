"""Fit every method to the same rows, and score its predictions; one that fails does not stop the others."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing as rows_of

from gpclass.comparison.methods import classifiers_of
from gpclass.comparison.scores import Codes, score
from gpclass.comparison.table import Comparison, ComparisonRow
from gpclass.comparison.task import ComparisonTask, make_task
from gpclass.core.checks import check_integers, seed_of
from gpclass.core.progress import reporter
from gpclass.evidence.importance import MOST_VALUES
from gpclass.learning.usefulness import DoubtfulFitWarning
from gpclass.tables import Encoder, needs_coding

METHODS = ("laplace", "ep", "vi", "mcmc")  # the names in gpclass.parameters.INFERENCES for any number of rows
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

    The result includes ``findings`` in sentences: which method to use, how the others differ, and how accurate
    each approximation is.

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
        it is a kernel object; otherwise it learns ``1.0 * RBF(1.0)`` on standardised columns. With
        ``inducing=...`` the findings say whether the inducing inputs miss part of the function. MCMC has none.
    learn : bool, default=True
        Whether each method learns the hyperparameters by maximising its own evidence; False keeps those of
        the kernel.
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
    categories = options.get("categorical_features", "from_dtype")
    coding = [Encoder(categories)] if needs_coding(X, categories) else []
    classifiers = classifiers_of(methods, shared, coding)
    kernels = [getattr(clf, "kernel", None) for clf in classifiers.values()]
    vectors = all(getattr(each, "requires_vector_input", True) for each in kernels)
    settings: dict[str, Any] = {
        "vectors": vectors,
        "cv": cv,
        "seed": seed,
        "categorical_features": categories,
    }
    task = make_task(X, y, X_test, y_test, **settings)
    rows: list[ComparisonRow] = []
    n_steps = len(classifiers) * (1 + bool(n_samples) + len(task.parts))
    with reporter(verbose, "comparing", " steps", n_steps) as report:
        try:
            for label, clf in classifiers.items():
                rows.append(_row(label, clf, task, n_samples, seed, report))
        except KeyboardInterrupt:
            if not rows:
                raise
    return replace(task.empty, rows=tuple(rows), n_methods=len(classifiers))


class Notes(dict[str, str]):
    """Errors and warnings about one method; messages that differ in numbers only are kept once."""

    def add(self, message: str, step: str) -> None:
        """Record a message, with its step unless that is the fit to all training rows."""
        kind = re.sub(r"[-+]?\d[\d.]*(e[-+]?\d+)?", "#", message)
        self.setdefault(kind, f"{message} [{step}]" if step else message)

    def attempt(self, step: str, action: Callable[[], Any]) -> Any:
        """Return the result of an action, None if it fails; note errors and warnings."""
        value = None
        with warnings.catch_warnings(record=True) as caught:
            for category in NOTED:
                warnings.simplefilter("always", category)
            try:
                value = action()
            except Exception as error:
                self.add(f"failed with {type(error).__name__}: {error}", step)
        for warning in caught:
            if issubclass(warning.category, NOTED):
                self.add(str(warning.message), step)
            else:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        return value


def _row(label: str, clf: Any, task: ComparisonTask, n_samples: int, seed: int, report: Any) -> ComparisonRow:
    def tell(step: str) -> None:
        if report is not None:
            report(f"{label}: {step}")

    notes = Notes()
    likelihood = getattr(clf, "likelihood", None)
    likelihood = getattr(likelihood, "name", likelihood)
    tell(f"fitting {len(task.y)} rows")
    start = time.perf_counter()
    fitted = notes.attempt("", lambda: _fit(clf, task))
    seconds = time.perf_counter() - start
    if fitted is None:
        return ComparisonRow(label, likelihood, note=" ".join(notes.values()))
    check: Any = None
    scores: dict[str, Any] = {}
    if n_samples:
        tell("checking the approximation")
        check = notes.attempt("checking", lambda: _check(fitted, task, n_samples, seed))
    if task.parts:
        scores = notes.attempt("predicting", lambda: _predictions(clf, fitted, task, tell)) or {}
    kernel, note = getattr(fitted, "kernel_", None), " ".join(notes.values())
    known = {"estimator": fitted, "kernel": kernel, "fit_seconds": seconds, "check": check, "note": note}
    return ComparisonRow(label, likelihood, **known, **_evidence(fitted, check), **scores)


def _fit(clf: Any, task: ComparisonTask, rows: Codes | None = None) -> Any:
    """Fit a copy of a classifier to all training rows, or to some of them."""
    X, y = (task.X, task.y) if rows is None else (rows_of(task.X, rows), task.y[rows])
    fitted = clone(clf).fit(X, y)
    # An interrupted fit keeps its best result so far; here the interruption ends the comparison.
    for model in _models_of(fitted):
        if any(end is not None and end.interrupted for end in (model.learned, model.chains)):
            raise KeyboardInterrupt
    return fitted


def _models_of(fitted: Any) -> Any:
    return getattr(getattr(fitted, "base_estimator_", None), "models", ())


def _check(fitted: Any, task: ComparisonTask, n_samples: int, seed: int) -> Any:
    """Return the result of ``check_approximation``, or None if it does not apply.

    Several two-class models have no common evidence of the labels; joint models may be too large. For Dirichlet
    classification only inducing inputs can be checked.
    """
    models, n_classes = _models_of(fitted), len(task.empty.classes)
    large = n_classes > 2 and len(task.y) * n_classes > MOST_VALUES
    if any(model.inducing is None and (large or not model.is_of_labels) for model in models):
        return None
    if len(models) > 1 or not hasattr(fitted, "check_approximation"):
        return None
    return fitted.check_approximation(n_samples=n_samples, random_state=seed)


def _evidence(fitted: Any, check: Any) -> dict[str, Any]:
    """Return the evidence of the labels, own and corrected; that of Dirichlet classification is not comparable."""
    if not all(model.is_of_labels for model in _models_of(fitted)):
        return {}
    return {
        "evidence": getattr(fitted, "log_marginal_likelihood_value_", None),
        "corrected_evidence": getattr(check, "corrected", None),
        "standard_error": getattr(check, "standard_error", None),
        "khat": getattr(check, "khat", None),
    }


def _predictions(clf: Any, fitted: Any, task: ComparisonTask, tell: Callable[[str], None]) -> dict[str, Any]:
    """Predict the test rows, or those of each fold from the other folds, and score them together."""
    found, seconds, scored = [], 0.0, task.empty
    for k, (rows, X) in enumerate(task.parts, start=1):
        tell(f"predicting {len(X)} rows" if rows is None else f"fold {k} of {len(task.parts)}")
        model = fitted if rows is None else _fit(clf, task, rows)
        if not np.array_equal(model.classes_, scored.classes):
            raise ValueError(f"only the classes {model.classes_} were among its training rows.")
        start = time.perf_counter()
        if hasattr(model, "posterior_"):
            found.append(model.predict_log_proba(X))
        else:  # logarithms of zero are possible elsewhere
            found.append(np.log(np.maximum(model.predict_proba(X), np.finfo(float).tiny)))
        seconds += time.perf_counter() - start
    log_proba, cost = np.concatenate(found)[task.order], getattr(clf, "cost_matrix", None)
    scores = score(log_proba, scored.codes, fold=scored.fold, cost=cost)
    return {**scores, "proba": np.exp(log_proba), "predict_seconds": seconds}
