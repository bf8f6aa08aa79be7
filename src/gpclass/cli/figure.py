"""Figures on disk: a comparison with the methods' own pictures, and the display that fits a model."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from gpclass.cli.errors import InputError
from gpclass.cli.modelfile import Model
from gpclass.comparison import Comparison
from gpclass.plotting import (
    ComparisonDisplay,
    LatentDisplay,
    PredictiveContourDisplay,
    RelevanceDisplay,
    TraceDisplay,
)

FORMATS = (".png", ".pdf", ".svg", ".jpg")
MOST = 4  # methods drawn beside each other


def _pyplot() -> Any:
    try:
        import matplotlib as mpl
    except ImportError:
        raise InputError('Figures need matplotlib: pip install "gpclass[plot]".') from None
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def check_path(path: str | None) -> None:
    """Raise unless a figure can be of the kind that a name asks for; before anything is computed."""
    if path is None:
        return
    ending = os.path.splitext(path)[1].lower()
    if ending not in FORMATS:
        raise InputError(f"{path} ends in {ending!r}, expected a figure in {', '.join(FORMATS)}.")
    check_directory(path)
    _pyplot()


def check_directory(path: str) -> None:
    """Raise unless there is a directory to write a file into."""
    directory = os.path.dirname(path) or "."
    if not os.path.isdir(directory):
        raise InputError(f"{path} cannot be written: there is no directory {directory}.")


def save_figure(figure: Any, path: str) -> None:
    """Write a figure, in the format of its ending."""
    try:
        figure.savefig(path, dpi=160)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error


def png(figure: Any) -> bytes:
    """Return a figure as the bytes of a PNG file."""
    raw = io.BytesIO()
    figure.savefig(raw, format="png", dpi=130)
    return raw.getvalue()


# ------------------------------------------------------------------------------- comparisons


def comparison_figure(result: Comparison, X: Any, y: Any, names: tuple[str, ...]) -> Any:
    """Return the picture of a comparison; of one or two columns also with what each method predicts."""
    plt = _pyplot()
    d = X.shape[1]
    rows = _drawn(result) if d <= 2 else []
    height = max(3.4, 1.9 + 0.32 * len(result.rows))
    if not rows:
        display = ComparisonDisplay(result).plot()
        plt.close(display.figure_)
        return display.figure_
    figure = plt.figure(figsize=(11.6, height + (4.6 if d == 1 else 3.4)), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[4.6 if d == 1 else 3.4, height])
    axes = top.subplots(d % 2 + 1, len(rows), squeeze=False, sharex=True, sharey="row")
    for column, row in zip(axes.T, rows, strict=True):
        _one_method(row, column, X, y, names)
        for axis in column:
            if axis is not axes[0, 0] and axis is not axes[-1, 0]:
                axis.set_ylabel("")
    ComparisonDisplay(result).plot(bottom.subplots(1, 3))
    plt.close(figure)
    return figure


def _drawn(result: Comparison) -> list[Any]:
    """Return the methods to draw: those with the likelihood of the best one, if there are many."""
    rows = [row for row in result.rows if hasattr(row.estimator, "predict_latent")]
    scored = [row for row in rows if row.log_loss is not None]
    if len(rows) > MOST and scored:
        likelihood = result.best("log_loss").likelihood
        rows = [row for row in rows if row.likelihood == likelihood]
    return rows[:MOST]


def _one_method(row: Any, axes: Any, X: Any, y: Any, names: tuple[str, ...]) -> None:
    clf = row.estimator
    if len(names) == 1:
        LatentDisplay.from_estimator(clf, X, y, ax=axes, legend=False)
    else:
        PredictiveContourDisplay.from_estimator(clf, X, y, ax=axes[0], legend=False, grid_resolution=60)
        axes[0].set_ylabel(names[1])
    axes[-1].set_xlabel(names[0])
    axes[0].set_title(row.label, fontsize=10)


# ------------------------------------------------------------------------------------ models


def model_figure(model: Model, kind: str, n_top: int | None = None) -> Any:
    """Return the picture of a model: of its own kind, or of the one that fits its columns ("auto")."""
    plt = _pyplot()
    d = model.clf.n_features_in_
    if kind == "auto":
        numbers = all(rule.kind == "number" for rule in model.encoding.rules)
        # Pairs of classes have no latent function of one class.
        latent = model.clf.n_classes_ == 2 or model.clf.multi_class != "one_vs_one"
        kind = {1: "latent" if latent else "relevance", 2: "contour"}.get(d if numbers else 0, "relevance")
    display = {"latent": _latent, "contour": _contour, "relevance": _relevance, "trace": _trace}[kind](
        model, n_top
    )
    plt.close(display.figure_)
    return display.figure_


def _training_rows(clf: Any) -> tuple[Any, Any]:
    """Return the inputs that a model was fitted to, and their labels; none for pairs of classes."""
    problems = [model.problem for model in clf.base_estimator_.models]
    _, home, truth = clf._home
    pairs = clf.n_classes_ > 2 and clf.multi_class == "one_vs_one"
    if pairs or home is None or truth.ndim > 1:  # soft labels, which no table has
        return np.concatenate([np.asarray(problem.X) for problem in problems]), None
    X, copies = np.asarray(problems[0].X), np.bincount(home)
    # Copies of a row are one row, except in the multinomial probit, where they stand one after another.
    first = np.arange(len(copies)) if len(X) == len(copies) else np.cumsum(copies) - copies
    return X[first[home]], clf.classes_[truth]


def _needs(model: Model, n: int, kind: str) -> None:
    if model.clf.n_features_in_ != n:
        raise InputError(
            f"--kind {kind} is for {n} column{'s' * (n > 1)} and the model has {model.clf.n_features_in_}: "
            "use --kind relevance."
        )


def _latent(model: Model, n_top: int | None) -> Any:
    _needs(model, 1, "latent")
    X, y = _training_rows(model.clf)
    display = LatentDisplay.from_estimator(model.clf, X, y)
    rule = model.encoding.rules[0]
    display.x, display.name = display.x * rule.scale + rule.mean, model.encoding.outputs[0]
    if display.X is not None:
        display.X = display.X * rule.scale + rule.mean
    return _again(display)


def _contour(model: Model, n_top: int | None) -> Any:
    _needs(model, 2, "contour")
    X, y = _training_rows(model.clf)
    sampled = model.clf.n_classes_ > 2 and model.clf.multi_class == "one_vs_one"
    display = PredictiveContourDisplay.from_estimator(model.clf, X, y, latent_std=not sampled)
    display.names = model.encoding.outputs
    rules = model.encoding.rules
    if len(rules) == 2:
        display.x0, display.x1 = (
            x * rule.scale + rule.mean for x, rule in zip((display.x0, display.x1), rules, strict=True)
        )
        if display.X is not None:
            display.X = display.X * [rule.scale for rule in rules] + [rule.mean for rule in rules]
    return _again(display)


def _relevance(model: Model, n_top: int | None) -> Any:
    try:
        display = RelevanceDisplay.from_estimator(model.clf)
    except ValueError:
        raise InputError(
            "The model has more columns than can be drawn, and no length scale for each of them: fit it with "
            "--kernel rbf, matern12, matern32 or matern52."
        ) from None
    display.names = model.encoding.outputs
    return _again(display, n_top=n_top)


def _trace(model: Model, n_top: int | None) -> Any:
    if not hasattr(model.clf, "chains_"):
        raise InputError("--kind trace is for models with Markov chains: fit with --inference mcmc.")
    return TraceDisplay.from_estimator(model.clf)


def _again(display: Any, **options: Any) -> Any:
    """Draw a display anew, in the units and with the names of the table."""
    _pyplot().close(display.figure_)
    return display.plot(**options)
