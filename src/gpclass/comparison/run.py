"""Running every method on the same rows, with what it takes that one failure does not end all."""

from __future__ import annotations

import importlib
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils import check_random_state

from gpclass.comparison.scores import score
from gpclass.comparison.table import Comparison, ComparisonRow
from gpclass.comparison.trial import Trial, entrants_of, trial_of
from gpclass.core.protocols import Array
from gpclass.estimator import GaussianProcessClassifier
from gpclass.evidence.importance import MOST_VALUES

Notes = list[tuple[str, str]]  # a sentence, and where it was heard: "" is the fit to all training rows


def compare(
    X: Any,
    y: Any,
    *,
    methods: Any = ("laplace", "ep", "vi", "mcmc"),
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
    """Fit every method to the same rows, and compare their evidence, predictions and time.

    Parameters
    ----------
    X, y : array-like of shape (n, n_features) and (n,)
        Training rows; data frames are fine.
    methods : sequence, or mapping of label to method, default=("laplace", "ep", "vi", "mcmc")
        A method is a name or a settings record as for ``GaussianProcessClassifier(inference=...)``, a pair
        (method, likelihood), or an unfitted classifier. A classifier is taken as it is, its own kernel and
        learning included; it need not be one of gpclass.
    kernel, likelihood : as for `GaussianProcessClassifier`
        The same for every method.
    learn : bool, default=True
        Whether each method learns the hyperparameters by its own evidence; False keeps the kernel's.
    cv : int, splitter, iterable of (train, test) or None, default=5
        How rows are predicted that were not fitted, if there is no X_test. An integer is that many
        stratified folds, shuffled. The same for every method. None scores no predictions.
    X_test, y_test : array-like, default=None
        Rows held out, in place of cross-validation.
    sample_weight : array-like of shape (n,), default=None
        Weights of the training rows, in fitting and, by cross-validation, in scoring.
    n_samples : int, default=1000
        Draws for the corrected evidence; 0 leaves it out.
    random_state : int, RandomState or None, default=None
        For folds, restarts and draws.
    verbose : int, default=0
        Whether to show progress on standard error.
    **options
        Further parameters of `GaussianProcessClassifier`, for every method.

    Returns
    -------
    Comparison
        One row a method. A method that fails or does not converge says so in its ``note``, as does MCMC
        where arviz-stats is not installed; an interruption keeps the rows that were finished.

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
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    if not learn:
        options["optimizer"] = None
    shared = {**options, "kernel": kernel, "likelihood": likelihood, "random_state": seed}
    entrants = entrants_of(methods, shared)
    trial = trial_of(
        X, y, sample_weight, entrants, cv=cv, test=(X_test, y_test), n_samples=n_samples, seed=seed
    )
    for late in ("joblib", "scipy.optimize"):  # else the first method would pay for the import
        importlib.import_module(late)
    rows: list[ComparisonRow] = []
    with _progress(verbose, len(entrants) * (1 + len(trial.splits))) as report:
        try:
            for label, clf in entrants.items():
                rows.append(_row(label, clf, trial, report))
        except KeyboardInterrupt:
            if not rows:
                raise
    scored = trial.scored
    return Comparison(
        rows=tuple(rows),
        classes=trial.classes,
        codes=scored.codes,
        index=scored.index,
        fold=scored.fold,
        weight=scored.weight,
        n_train=len(trial.y),
        n_methods=len(entrants),
    )


# ------------------------------------------------------------------------------- one method


def _row(label: str, clf: Any, trial: Trial, report: Callable[[str], None]) -> ComparisonRow:
    notes: Notes = []
    report(label)
    fitted, fit_seconds = _attempt(notes, "", lambda: _fit(clf, trial.X, trial.y, trial.weight))
    known: dict[str, Any] = {"label": label, "likelihood": _likelihood_name(clf)}
    if fitted is not None:
        known |= _evidence(fitted, trial, notes)
        known |= _predictions(clf, fitted, trial, notes, lambda doing: report(f"{label}, {doing}"))
        known |= {"estimator": fitted, "kernel": getattr(fitted, "kernel_", None), "fit_seconds": fit_seconds}
    return ComparisonRow(**known, note=_text(notes))


def _fit(clf: Any, X: Any, y: Any, weight: Array | None) -> Any:
    fitted = clone(clf).fit(X, y) if weight is None else clone(clf).fit(X, y, sample_weight=weight)
    for model in getattr(getattr(fitted, "base_estimator_", None), "models", ()):
        if any(getattr(getattr(model, part, None), "interrupted", False) for part in ("learned", "chains")):
            raise KeyboardInterrupt  # which learning or sampling had kept to itself
    return fitted


def _likelihood_name(clf: Any) -> str | None:
    likelihood = getattr(clf, "likelihood", None)
    return (
        likelihood if likelihood is None or isinstance(likelihood, str) else type(likelihood).__name__.lower()
    )


def _evidence(fitted: Any, trial: Trial, notes: Notes) -> dict[str, float | None]:
    check, _ = _attempt(notes, "checking", partial(_check, fitted, trial))
    numbers = {
        "evidence": getattr(fitted, "log_marginal_likelihood_value_", None),
        "corrected_evidence": getattr(check, "corrected", None),
        "standard_error": getattr(check, "standard_error", None),
        "khat": getattr(check, "khat", None),
    }
    return {name: None if number is None else float(number) for name, number in numbers.items()}


def _check(fitted: Any, trial: Trial) -> Any:
    """Return what ``check_approximation`` says, or None where there is none.

    Several two-class models have an evidence each, and none of the labels; joint ones may be too large.
    """
    if not trial.n_samples or not hasattr(fitted, "check_approximation"):
        return None
    models = getattr(getattr(fitted, "base_estimator_", None), "models", ())
    large = len(trial.classes) > 2 and len(trial.y) * len(trial.classes) > MOST_VALUES
    if len(models) > 1 or large:
        return None
    return fitted.check_approximation(n_samples=trial.n_samples, random_state=trial.seed)


def _predictions(
    clf: Any, fitted: Any, trial: Trial, notes: Notes, report: Callable[[str], None]
) -> dict[str, Any]:
    """Predict the rows held out, or those of each fold from the others, and score all of them."""
    parts: list[Array] = []
    seconds = 0.0
    for k in range(len(trial.splits) or trial.X_test is not None):
        model, X, where = fitted, trial.X_test, "predicting"
        if trial.splits:
            train, test = trial.splits[k]
            where = f"fold {k + 1}"
            report(f"{where} of {len(trial.splits)}")
            weight = None if trial.weight is None else trial.weight[train]
            X = rows_of(trial.X, test)
            model, _ = _attempt(
                notes, where, partial(_fit, clf, rows_of(trial.X, train), trial.y[train], weight)
            )
        if model is None:
            return {}
        part, spent = _attempt(notes, where, partial(_log_proba, model, X, trial.classes))
        if part is None:
            return {}
        parts.append(part)
        seconds += spent
    if not parts:
        return {}
    scored, cost = trial.scored, getattr(clf, "cost_matrix", None)
    log_proba = np.concatenate(parts)[scored.order]
    scores = score(log_proba, scored.codes, weight=scored.weight, fold=scored.fold, cost=cost)
    return asdict(scores) | {"proba": np.exp(log_proba), "predict_seconds": seconds}


def _log_proba(clf: Any, X: Any, classes: Any) -> Array:
    if not np.array_equal(clf.classes_, classes):
        raise ValueError(f"only the classes {clf.classes_} of {classes} were among its training rows.")
    if isinstance(clf, GaussianProcessClassifier):
        return clf.predict_log_proba(X)
    log_proba: Array = np.log(np.maximum(clf.predict_proba(X), np.finfo(float).tiny))
    return log_proba


# --------------------------------------------------------------------- failures and progress


def _attempt(notes: Notes, where: str, action: Callable[[], Any]) -> tuple[Any, float]:
    """Return what an action gives, or None if it fails, and its seconds; note what it complains of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        start, value = time.perf_counter(), None
        try:
            value = action()
        except Exception as error:
            notes.append((f"failed with {type(error).__name__}: {error}", where))
        seconds = time.perf_counter() - start
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            notes.append((str(warning.message), where))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return value, seconds


def _text(notes: Notes) -> str:
    """Return every complaint once, with the places it came from; the numbers in it may differ there."""
    kinds: dict[str, tuple[str, list[str]]] = {}
    for sentence, where in notes:
        kind = re.sub(r"[-+]?\d[\d.]*(e[-+]?\d+)?", "#", sentence)
        kinds.setdefault(kind, (sentence, []))[1].append(where)
    out = []
    for sentence, places in kinds.values():
        named = ", ".join(dict.fromkeys(place for place in places if place)).replace(", fold ", ", ")
        also = "also " if "" in places else ""
        out.append(f"{sentence} [{also}{named}]" if named else sentence)
    return " ".join(out)


@contextmanager
def _progress(verbose: int, total: int) -> Iterator[Callable[[str], None]]:
    """Give a function to call with what is begun: a bar where tqdm is installed, else a rewritten line."""
    if not verbose:
        yield lambda doing: None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        done = iter(range(1, total + 1))

        def line(doing: str) -> None:
            sys.stderr.write(f"\rcomparing: {f'{next(done)} of {total} fits, {doing}':<70}")
            sys.stderr.flush()

        yield line
        sys.stderr.write("\n")
        return
    with tqdm(desc="comparing", unit=" fits", total=total, file=sys.stderr) as bar:

        def report(doing: str) -> None:
            bar.set_postfix_str(doing, refresh=False)
            bar.update()

        yield report
