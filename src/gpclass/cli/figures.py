"""Figures in files, drawn by the displays of `gpclass.plotting`."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from gpclass import plotting
from gpclass.cli.errors import InputError, access
from gpclass.cli.modelfile import Model
from gpclass.core import files

FORMATS = (".png", ".pdf", ".svg", ".jpg")
BESIDE = 4  # methods drawn beside each other


def _pyplot() -> Any:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def check_ending(path: str) -> None:
    """Raise unless figures can be drawn, in a format that the ending names."""
    ending = os.path.splitext(path)[1].lower()
    if ending not in FORMATS:
        raise InputError(f"{path} ends in {ending!r}, expected a figure in {', '.join(FORMATS)}.")
    _pyplot()


def save_figure(figure: Any, path: str) -> None:
    """Write a figure in the format that the ending of the path names."""
    image = image_of(figure, os.path.splitext(path)[1][1:].lower(), dpi=160)
    with access(path, "written"), files.replacing(path) as file:
        file.write(image)


def image_of(figure: Any, form: str, dpi: int) -> bytes:
    """Return a figure as the content of a file; Pillow reports no error if the disk is full."""
    image = io.BytesIO()
    figure.savefig(image, format=form, dpi=dpi)
    return image.getvalue()


def comparison_figure(result: Any, X: Any, y: Any, names: tuple[str, ...]) -> Any:
    """Return the figure of a comparison; with one or two columns also what each method predicts."""
    plt, d = _pyplot(), X.shape[1]
    rows = [row for row in result.rows if row.estimator is not None and (d == 2 or row.is_gpclass)]
    if d > 2 or not rows:
        return _closed(plotting.ComparisonDisplay(result).plot())
    panels, lines = 2 if d == 1 else 1, -(-len(rows) // BESIDE)  # panels of one method, lines of methods
    heights = [lines * (4.6 if d == 1 else 3.2), max(3.6, 2.1 + 0.32 * len(result.rows))]
    figure = plt.figure(figsize=(12.0, sum(heights)), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=heights)
    grid = top.subplots(panels * lines, min(len(rows), BESIDE), squeeze=False, sharex=True, sharey="row")
    places = [column for line in np.split(grid, lines) for column in line.T]
    for column, row in zip(places, rows, strict=False):
        _draw_row(column, row, X, y, names)
    for axis in grid[:, 1:].flat:
        axis.set_ylabel("")
    for axis in np.ravel(places[len(rows) :]):
        axis.set_visible(False)
    plotting.ComparisonDisplay(result).plot(bottom.subplots(1, 3))
    plt.close(figure)
    return figure


def _draw_row(column: Any, row: Any, X: Any, y: Any, names: tuple[str, ...]) -> None:
    if len(names) == 1:
        plotting.LatentDisplay.from_estimator(row.estimator, X, y, ax=column, legend=False)
    else:
        options: dict[str, Any] = {"legend": False, "grid_resolution": 60}
        plotting.PredictiveContourDisplay.from_estimator(row.estimator, X, y, ax=column[0], **options)
        column[0].set_ylabel(names[1])
    column[-1].set_xlabel(names[0])
    column[0].set_title(row.label, fontsize=10)


def model_figure(model: Model, kind: str, n_top: int | None = None) -> Any:
    """Return a figure of a model; the kind "auto" is chosen by its columns."""
    clf, columns = model.clf, model.encoder.columns_
    pairs = clf.n_classes_ > 2 and clf.multi_class == "one_vs_one"  # no latent function of a class
    if kind == "auto":
        numbers = all(column.kind == "number" for column in columns)
        by_columns = {1: "relevance" if pairs else "latent", 2: "contour"}
        kind = by_columns.get(len(columns) if numbers else 0, "relevance")
    if kind == "trace":
        if getattr(clf, "chains_", None) is None:
            raise InputError("--kind trace is for models with Markov chains: fit with --inference mcmc.")
        return _closed(plotting.TraceDisplay.from_estimator(clf))
    if kind == "relevance":
        return _relevance(model, n_top)
    needed = {"latent": 1, "contour": 2}[kind]
    if clf.n_features_in_ != needed:
        raise InputError(
            f"--kind {kind} is for {needed} column{'s' * (needed > 1)} and the model has "
            f"{clf.n_features_in_}: use --kind relevance."
        )
    X, y = clf.training_rows()
    if kind == "latent":
        return _in_units(plotting.LatentDisplay.from_estimator(clf, X, y), model, ("x",))
    contour = plotting.PredictiveContourDisplay.from_estimator(clf, X, y, latent_std=not pairs)
    return _in_units(contour, model, ("x0", "x1"))


def _in_units(display: Any, model: Model, grids: tuple[str, ...]) -> Any:
    """Draw a display again, in the units and with the names of the table; ``grids`` are its axes."""
    _closed(display)
    axes = model.encoder.in_units(np.column_stack([getattr(display, name) for name in grids]))
    for name, values in zip(grids, axes.T, strict=True):
        setattr(display, name, values)
    if display.X is not None:
        display.X = model.encoder.in_units(display.X.reshape(-1, len(grids))).reshape(display.X.shape)
    display.names = model.encoder.get_feature_names_out()
    display.name = display.names[0]
    return _closed(display.plot())


def _relevance(model: Model, n_top: int | None) -> Any:
    try:
        display = plotting.RelevanceDisplay.from_estimator(model.clf)
    except ValueError:
        raise InputError(
            "The model has more columns than can be drawn, and no length scale for each of them: fit it with "
            "--kernel rbf, matern12, matern32 or matern52."
        ) from None
    _closed(display)
    display.names = model.encoder.get_feature_names_out()
    return _closed(display.plot(n_top=n_top))


def _closed(display: Any) -> Any:
    """Return the figure of a display, which pyplot then forgets."""
    _pyplot().close(display.figure_)
    return display.figure_
