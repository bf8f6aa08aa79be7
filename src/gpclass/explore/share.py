"""Files to download: the points, the fitted model, a picture, and the code."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

from gpclass.explore.code import python_code
from gpclass.explore.fit import fit
from gpclass.explore.points import to_csv
from gpclass.explore.state import State

KINDS = {  # what the button says, the name of the file, and its type
    "csv": ("Points (CSV)", "points.csv", "text/csv"),
    "py": ("Python code", "explore.py", "text/x-python"),
    "gpc": ("Model", "model.gpc", "application/octet-stream"),
    "png": ("Picture (PNG)", "picture.png", "image/png"),
    "svg": ("Picture (SVG)", "picture.svg", "image/svg+xml"),
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
    if kind != "gpc":
        return _drawn(state, clf, kind)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.gpc")
        clf.save(path)
        return path.read_bytes()


def _drawn(state: State, clf: Any, form: str) -> bytes:
    """Return a picture of the model, drawn with the displays of the library, without a window."""
    from matplotlib.figure import Figure

    from gpclass.plotting import LatentDisplay, PredictiveContourDisplay

    points, line = state.points, state.points.n_columns == 1
    figure = Figure(figsize=(6.4, 6.4) if line else (6.4, 5.0), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True) if line else figure.subplots()
    display = LatentDisplay if line else PredictiveContourDisplay
    display.from_estimator(clf, points.X, points.codes, ax=panels)
    image = io.BytesIO()
    figure.savefig(image, format=form, dpi=160)
    return image.getvalue()
