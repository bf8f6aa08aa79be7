"""The canvas of one column: the latent function above the probability."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.explore.page.look import COLOURS, DASHES, FAINT, INK, draw_points, figure
from gpclass.explore.pictures import BAND, Curves
from gpclass.explore.points import MOST_CLASSES

CURVE = ("x", "mean", "below", "above", "p", "low", "high")  # the columns of the source of a curve
STRIP = (-0.155, -0.105)  # where the decision is drawn, below the probabilities


@dataclass(frozen=True, eq=False)
class LinePanel:
    """Two figures over the same line, and the sources of what they draw."""

    latent: Any
    proba: Any
    curves: list[Any]  # one source per class
    draws: Any  # thin lines
    truth: Any  # the probability by sampling
    strip: Any
    boundaries: Any
    column: Any


def line_panel(points: Any, cursor: Any, x_range: Any) -> LinePanel:
    """Return the figures of one method."""
    from bokeh.layouts import column
    from bokeh.models import ColumnDataSource, Range1d

    top = figure(230, x_range=x_range, y_range=Range1d(-1.0, 1.0), y_axis_label="latent function f")
    bottom = figure(290, x_range=x_range, y_range=Range1d(-0.19, 1.09), y_axis_label="probability")
    top.min_border_left = bottom.min_border_left = 62
    bottom.yaxis.ticker = [0.0, 0.25, 0.5, 0.75, 1.0]
    draws = ColumnDataSource({"xs": [], "ys": []})
    top.multi_line("xs", "ys", source=draws, color="#555555", alpha=0.35, line_width=1)
    curves = [_curve(top, bottom, k) for k in range(MOST_CLASSES)]
    truth = ColumnDataSource({"x": [], "p": []})
    bottom.line("x", "p", source=truth, color=INK, line_width=2, line_dash="dashed")
    strip = ColumnDataSource({name: [] for name in ("left", "right", "colour", "pattern")})
    bottom.quad(
        left="left", right="right", bottom=STRIP[0], top=STRIP[1], source=strip, fill_color="colour",
        line_color=None, hatch_pattern="pattern", hatch_color=INK, hatch_alpha=0.5,
    )  # fmt: skip
    boundaries = ColumnDataSource({"x": [], "low": [], "high": []})
    bottom.segment("x", "low", "x", "high", source=boundaries, color=INK, line_width=1.5, line_dash="dotted")
    draw_points(bottom, points, "y")
    for fig in (top, bottom):
        fig.vspan("x", source=cursor, color=FAINT, line_dash="dashed", line_width=1, level="underlay")
    return LinePanel(
        top, bottom, curves, draws, truth, strip, boundaries, column(top, bottom, sizing_mode="stretch_width")
    )


def _curve(top: Any, bottom: Any, k: int) -> Any:
    from bokeh.models import ColumnDataSource

    source = ColumnDataSource({name: [] for name in CURVE})
    colour = COLOURS[k]
    dash = DASHES[max(k - 1, 0)]  # solid for the second class, which is alone where there are two
    top.varea("x", "below", "above", source=source, fill_color=colour, fill_alpha=0.15)
    top.line("x", "mean", source=source, color=colour, line_width=2.5, line_dash=dash)
    bottom.varea("x", "low", "high", source=source, fill_color=colour, fill_alpha=0.18)
    bottom.line("x", "p", source=source, color=colour, line_width=2.5, line_dash=dash)
    return source


def marker_heights(codes: Any, n_classes: int) -> Array:
    """Return where points are drawn beside the probabilities: at 0 and 1, or in rows for three classes and more."""
    if n_classes == 2:
        return np.asarray(codes, dtype=float)
    return 1.0 - 0.055 * np.asarray(codes, dtype=float)


def show_curves(panel: LinePanel, curves: Curves | None, title: str, labels: tuple[str, ...]) -> None:
    """Draw a picture; None removes the last one."""
    panel.latent.title.text = title
    for k, source in enumerate(panel.curves):
        source.data = {name: [] for name in CURVE}
        if curves is not None and k in curves.shown:
            source.data = _data(curves, curves.shown.index(k))
    show_decisions(panel, curves)
    if curves is None:
        return
    one = len(curves.shown) == 1
    panel.proba.yaxis.axis_label = f"probability of class {labels[curves.shown[0]]}" if one else "probability"


def _data(curves: Curves, i: int) -> dict[str, Any]:
    mean, std, p = curves.mean[:, i], curves.std[:, i], curves.proba[:, i]
    low = p if curves.low is None else curves.low[:, i]
    high = p if curves.high is None else curves.high[:, i]
    return {
        "x": curves.x, "mean": mean, "below": mean - BAND * std, "above": mean + BAND * std,
        "p": p, "low": low, "high": high,
    }  # fmt: skip


def show_decisions(panel: LinePanel, curves: Curves | None) -> None:
    """Draw the decision at each place as a strip, and the boundaries between decisions."""
    data: dict[str, list[Any]] = {name: [] for name in ("left", "right", "colour", "pattern")}
    places: list[float] = []
    if curves is not None:
        places = curves.boundaries
        edges = [curves.x[0], *places, curves.x[-1]]
        for left, right in pairwise(edges):
            code = int(curves.decision[int(np.abs(curves.x - 0.5 * (left + right)).argmin())])
            data["left"].append(left)
            data["right"].append(right)
            data["colour"].append("#dddddd" if code < 0 else COLOURS[code])
            data["pattern"].append("/" if code < 0 else " ")
    panel.strip.data = data
    n = len(places)
    panel.boundaries.data = {"x": places, "low": [STRIP[0]] * n, "high": [1.09] * n}
