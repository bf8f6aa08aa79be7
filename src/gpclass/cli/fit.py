"""``gpclass fit``: a table to a model file, with scores on rows held out."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from gpclass import __version__
from gpclass.cli import output
from gpclass.cli.build import ModelOptions, classifier, was_interrupted
from gpclass.cli.data import DataOptions, Problem, folds, held_out, read_problem
from gpclass.cli.encoding import Encoding
from gpclass.cli.modelfile import Model, write_model
from gpclass.comparison import Scores, score
from gpclass.core.protocols import Array
from gpclass.estimator import GaussianProcessClassifier
from gpclass.kernels import CompoundKernel


def run(
    data: DataOptions,
    model: ModelOptions,
    *,
    path: str,
    test_fraction: float | None,
    cv: int | None,
    as_json: bool,
) -> None:
    """Fit, score what was held out, save, and say so."""
    problem = read_problem(data)
    parts = [] if cv is None else folds(problem.y, cv, data.seed)
    if test_fraction is not None:
        parts = [held_out(problem.y, test_fraction, data.seed)]
    train = parts[0][0] if test_fraction is not None else None
    with output.waiting("fitting", quiet=bool(model.verbose)):
        encoding, clf, seconds = fit_rows(problem, model, train)
    scores = None
    if test_fraction is not None:
        scores = _score(problem, parts, [clf.predict_log_proba(problem.inputs(encoding, parts[0][1]))])
    elif cv is not None:
        scores = _cross_validate(problem, model, parts)
    n_train = len(problem.y) if train is None else len(train)
    about = _about(problem, clf, n_train) | {
        "fit_seconds": round(seconds, 3),
        "scored_by": _how(len(problem.y) - n_train, cv),
        "scores": None if scores is None else asdict(scores),
    }
    write_model(Model(clf, encoding, about), path)
    if as_json:
        output.show_json({"model": path, **about})
    else:
        _show(path, about)


def fit_rows(
    problem: Problem, options: ModelOptions, rows: Any = None
) -> tuple[Encoding, GaussianProcessClassifier, float]:
    """Return the encoding and the classifier that some rows lead to, and the seconds of the fit."""
    encoding = problem.encode(rows)
    X, y = problem.inputs(encoding, rows), problem.y if rows is None else problem.y[rows]
    start = time.perf_counter()
    clf = classifier(options, X.shape[1]).fit(X, y)
    if was_interrupted(clf):
        raise KeyboardInterrupt
    return encoding, clf, time.perf_counter() - start


# ------------------------------------------------------------------------------ rows held out


def _cross_validate(problem: Problem, model: ModelOptions, parts: list[Any]) -> Scores:
    """Return scores of rows predicted from the others; means and scales too are of the others."""
    found = []
    with output.progress("cross-validation", len(parts)) as step:
        for train, test in parts:
            encoding, clf, _ = fit_rows(problem, replace(model, verbose=0), train)
            found.append(clf.predict_log_proba(problem.inputs(encoding, test)))
            step()
    return _score(problem, parts, found)


def _score(problem: Problem, parts: list[Any], found: list[Array]) -> Scores:
    rows = np.concatenate([test for _, test in parts])
    codes = np.unique(problem.y, return_inverse=True)[1][rows]
    fold = np.repeat(np.arange(len(parts)), [len(test) for _, test in parts])
    return score(np.concatenate(found), codes, fold=fold if len(parts) > 1 else None)


# ------------------------------------------------------------------------------- what is said


def _how(held_out: int, cv: int | None) -> str | None:
    if held_out:
        return f"{held_out} rows held out"
    return None if cv is None else f"{cv}-fold cross-validation"


def _about(problem: Problem, clf: GaussianProcessClassifier, n_train: int) -> dict[str, Any]:
    evidence = clf.log_marginal_likelihood_value_
    return {
        "data": problem.table.path,
        "target": problem.options.target,
        "classes": clf.classes_.tolist(),
        "training_rows": n_train,
        "columns": list(problem.features),
        "kernel": kernel_text(clf.kernel_),
        "inference": clf.inference,
        "likelihood": clf.likelihood,
        "log_evidence": None if evidence is None else float(evidence),
        "gpclass": __version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def kernel_text(kernel: Any) -> str:
    """Return the kernel in words; those of several two-class models with a bar between them."""
    parts = kernel.kernels if isinstance(kernel, CompoundKernel) else [kernel]
    return " | ".join(str(part) for part in parts)


def _show(path: str, about: dict[str, Any]) -> None:
    evidence = about["log_evidence"]
    output.show_facts(
        {
            "model": path,
            "training rows": f"{about['training_rows']} of {about['data']}",
            "columns": len(about["columns"]),
            "classes": ", ".join(map(str, about["classes"])),
            "kernel": about["kernel"],
            "log evidence": None if evidence is None else f"{evidence:.3f}",
            "seconds": f"{about['fit_seconds']:.2f}",
            **score_facts(about),
        }
    )


def score_facts(about: dict[str, Any]) -> dict[str, str]:
    """Return the scores of a model as names and texts."""
    scores = about.get("scores")
    if not scores:
        return {}
    spread = "" if scores["log_loss_error"] is None else f" ± {scores['log_loss_error']:.4f}"
    return {
        "scored by": str(about["scored_by"]),
        "log loss": f"{scores['log_loss']:.4f}{spread}",
        "error": f"{scores['error']:.4f}",
        "Brier": f"{scores['brier']:.4f}",
        "ECE": f"{scores['ece']:.4f}",
    }
