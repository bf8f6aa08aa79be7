"""Files to download: the points, the fitted model, a picture, and the code."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

from gpclass.explore.code import python_code
from gpclass.explore.fit import fit
from gpclass.explore.points import to_csv
from gpclass.explore.state import State

KINDS = {
    "csv": ("points.csv", "text/csv"),
    "py": ("explore.py", "text/x-python"),
    "gpc": ("model.gpc", "application/octet-stream"),
    "png": ("picture.png", "image/png"),
    "svg": ("picture.svg", "image/svg+xml"),
}


def file_of(state: State, kind: str) -> bytes:
    """Return the content of a file of that kind.

    Examples
    --------
    >>> from gpclass.explore.points import make_points
    >>> file_of(State(make_points([[0.0], [10.0]], [0, 1])), "csv").splitlines()
    [b'x,class', b'0.0,0', b'10.0,1']
    """
    if kind == "csv":
        return to_csv(state.points).encode()
    if kind == "py":
        fit(state)  # code that fails is not handed out
        return python_code(state).encode()
    clf = fit(state).clf
    if kind == "gpc":
        return _written(clf.save, "model.gpc")
    return _written(_drawn(state, clf), f"picture.{kind}")


def _written(write: Callable[[str], Any], name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        write(path)
        with open(path, "rb") as file:
            return file.read()


def _drawn(state: State, clf: Any) -> Callable[[str], None]:
    """Return what draws the model with the displays of the library, without a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from gpclass.plotting import LatentDisplay, PredictiveContourDisplay

    points, line = state.points, state.points.n_columns == 1
    figure = Figure(figsize=(6.4, 6.4) if line else (6.4, 5.0), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2, 1, sharex=True) if line else figure.subplots()
    display = LatentDisplay if line else PredictiveContourDisplay
    display.from_estimator(clf, points.X, points.codes, ax=panels)
    return lambda path: figure.savefig(path, dpi=160)
