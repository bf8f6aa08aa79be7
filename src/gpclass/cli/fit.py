"""``gpclass fit``: fit a model to a table, score it on other rows, and save it."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from gpclass import __version__
from gpclass.cli import output
from gpclass.cli.data import Problem, folds, held_out, read_problem
from gpclass.cli.files import check_output
from gpclass.cli.modelfile import Model, write_model
from gpclass.cli.show import describe, show_facts
from gpclass.comparison import score
from gpclass.estimator import GaussianProcessClassifier

# Options of the command that are parameters of the classifier, and those that have another name there.
SAME = ("kernel", "inference", "likelihood", "multi_class", "hyperparameters", "verbose")
OTHER = {"restarts": "n_restarts_optimizer", "jobs": "n_jobs", "seed": "random_state"}


def run(given: Mapping[str, Any]) -> None:
    """Fit, score, save and report; ``given`` are the options by name."""
    path, seed, cv, share = given["output"], given["seed"], given["cv"], given["test_fraction"]
    check_output(given, "model", path)
    problem = read_problem(given)
    given = {**given, "verbose": int(bool(given["verbose"]) or sys.stderr.isatty())}
    parts = [] if cv is None else folds(problem.y, cv, seed)
    train, how = None, None if cv is None else f"{cv}-fold cross-validation"
    if share is not None:
        train, test = held_out(problem.y, share, seed)
        parts, how = [(train, test)], f"{len(test)} rows held out"
    start = time.perf_counter()
    model = fit_rows(problem, given, train)
    seconds = time.perf_counter() - start
    about = {
        "data": given["data"],
        "training_rows": len(problem.y) if train is None else len(train),
        "gpclass": __version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "fit_seconds": round(seconds, 3),
        "scored_by": how,
        "scores": _score(problem, given, parts, None if cv is not None else model),
    }
    model = replace(model, about=about)
    write_model(model, path)
    (output.show_json if given["as_json"] else show_facts)(describe(path, model))


def fit_rows(problem: Problem, given: Mapping[str, Any], rows: Any = None) -> Model:
    """Return the model fitted to all rows, or to some of them."""
    X, y = (problem.frame, problem.y) if rows is None else (problem.frame.iloc[rows], problem.y[rows])
    names = {name: name for name in SAME} | OTHER
    chosen = {name: given[option] for option, name in names.items() if given[option] is not None}
    if given["balanced"]:
        chosen["class_weight"] = "balanced"
    clf = GaussianProcessClassifier(**chosen, categorical_features=problem.categorical).fit(X, y)
    for model in clf.base_estimator_.models:  # an interrupted fit returns its best result, which is not saved
        if any(end is not None and end.interrupted for end in (model.learned, model.chains)):
            raise KeyboardInterrupt
    return Model(clf, given["target"])


def _score(problem: Problem, given: Mapping[str, Any], parts: list[Any], fitted: Model | None) -> Any:
    """Return the scores of the test rows of all parts; a model is fitted to each part unless one is given."""
    if not parts:
        return None
    found = []
    for train, test in output.track(parts, "predicting held-out rows" if fitted else "cross-validation"):
        model = fitted or fit_rows(problem, {**given, "verbose": 0}, train)
        found.append(model.clf.predict_log_proba(problem.frame.iloc[test]))
    rows = np.concatenate([test for _, test in parts])
    codes = np.unique(problem.y, return_inverse=True)[1][rows]
    fold = np.repeat(np.arange(len(parts)), [len(test) for _, test in parts])
    return score(np.concatenate(found), codes, fold=fold if len(parts) > 1 else None)
