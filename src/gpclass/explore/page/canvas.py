"""The canvas: the figures of one method, of a second one beside it, and of their difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.explore.decide import margins, outlines
from gpclass.explore.differ import Running
from gpclass.explore.page import lines, planes
from gpclass.explore.page.look import COLOURS, MARKERS, diverging, figure
from gpclass.explore.pictures import BAND, Curves, Maps, grid
from gpclass.explore.scene import Scene
from gpclass.explore.state import State, title


@dataclass(frozen=True, eq=False)
class Canvas:
    """All figures of both kinds; those that are not needed are hidden."""

    points: Any
    cursor: Any
    ranges: tuple[Any, Any]
    line: lines.LinePanel
    other_line: lines.LinePanel
    line_apart: Any
    line_difference: Any
    root: Any
    plane: planes.PlanePanel
    other_plane: planes.PlanePanel
    uncertainty: planes.PlanePanel
    plane_apart: planes.PlanePanel

    def figures(self) -> list[Any]:
        """Return the figures in which points are clicked and dragged."""
        line_figs = [f for panel in (self.line, self.other_line) for f in (panel.latent, panel.proba)]
        return [*line_figs, *(panel.fig for panel in self.planes)]

    @property
    def planes(self) -> tuple[planes.PlanePanel, ...]:
        """All maps."""
        return self.plane, self.other_plane, self.uncertainty, self.plane_apart


def make_canvas() -> Canvas:
    """Return the figures, with nothing drawn in them."""
    from bokeh.layouts import column, row
    from bokeh.models import ColumnDataSource, Range1d

    points = ColumnDataSource(
        {name: [] for name in ("x", "y", "marker", "colour", "ring")}, name="points-data"
    )
    cursor = ColumnDataSource({"x": [], "y": []})
    x_range, y_range = Range1d(0.0, 1.0), Range1d(0.0, 1.0)
    line, other_line = (lines.line_panel(points, cursor, x_range) for _ in range(2))
    line_apart, apart = _difference_line(x_range)
    made = [planes.plane_panel(points, cursor, (x_range, y_range)) for _ in range(4)]
    style: Any = {"sizing_mode": "stretch_width", "stylesheets": [":host { flex-wrap: wrap; gap: 4px; }"]}
    for side in (line.column, other_line.column, *(panel.fig for panel in made)):
        side.styles = {"flex": "1 1 300px", "min-width": "0"}
    line.latent.name, line.proba.name, made[0].fig.name = "latent", "proba", "plane"
    root = column(
        row(line.column, other_line.column, **style), line_apart,
        row(*(panel.fig for panel in made), **style), name="canvas", sizing_mode="stretch_width",
    )  # fmt: skip
    return Canvas(points, cursor, (x_range, y_range), line, other_line, line_apart, apart, root, *made)


def _difference_line(x_range: Any) -> tuple[Any, Any]:
    from bokeh.models import ColumnDataSource, Range1d

    fig = figure(
        190, x_range=x_range, y_range=Range1d(-1.0, 1.0), y_axis_label="difference", min_border_left=62
    )
    source = ColumnDataSource({"x": [], "d": []})
    fig.hspan(y=[0.0], color="#999999")
    fig.varea("x", 0, "d", source=source, fill_color="#7b3294", fill_alpha=0.2)
    fig.line("x", "d", source=source, color="#7b3294", line_width=2.5)
    return fig, source


def listen(canvas: Canvas, on_event: Callable[[str, Any, Any], None]) -> None:
    """Call ``on_event(kind, place, height)`` for clicks and drags; height is None off the probabilities."""
    from bokeh.events import Pan, PanEnd, PanStart, Tap

    low = {id(canvas.line.proba), id(canvas.other_line.proba)}
    for fig in canvas.figures():
        marks = id(fig) in low
        for event in (Tap, PanStart, Pan, PanEnd):

            def tell(found: Any, kind: str = event.event_name, marks: bool = marks) -> None:
                on_event(kind, (found.x, found.y), found.y if marks else None)

            fig.on_event(event, tell)


def show_points(canvas: Canvas, state: State, *, cursor: bool) -> None:
    """Draw the points, and the cursor if it is wanted; this needs no model."""
    points, n = state.points, len(state.points)
    two = points.n_columns == 2
    y = points.X[:, 1] if two else lines.marker_heights(points.codes, state.n_classes)
    ring = np.zeros(n)
    if state.selected is not None and state.selected < n:
        ring[state.selected] = 20.0
    canvas.points.data = {
        "x": points.X[:, 0], "y": y, "marker": [MARKERS[c] for c in points.codes],
        "colour": [COLOURS[c] for c in points.codes], "ring": ring,
    }  # fmt: skip
    place = {"x": [state.cursor[0]], "y": [state.cursor[1] if two else 0.5]}
    canvas.cursor.data = place if cursor else {"x": [], "y": []}
    for axis, ends in zip(canvas.ranges, points.view, strict=False):
        if (axis.start, axis.end) != tuple(ends):
            axis.update(start=float(ends[0]), end=float(ends[1]))


def show_scene(canvas: Canvas, scene: Scene) -> None:
    """Draw what the methods believe."""
    state, comparing = scene.state, bool(scene.state.other)
    line = state.points.n_columns == 1
    shown = {
        canvas.line.column: line, canvas.other_line.column: line and comparing,
        canvas.line_apart: line and comparing, canvas.plane.fig: not line,
        canvas.other_plane.fig: not line and comparing, canvas.plane_apart.fig: not line and comparing,
        canvas.uncertainty.fig: not line and not comparing,
    }  # fmt: skip
    for model, visible in shown.items():
        if model.visible != visible:
            model.visible = visible
    show_running(canvas, state, None)
    (_show_lines if line else _show_planes)(canvas, scene)


def _show_lines(canvas: Canvas, scene: Scene) -> None:
    state, name = scene.state, scene.state.points.names[0]
    canvas.line.proba.xaxis.axis_label = canvas.other_line.proba.xaxis.axis_label = name
    one = scene.picture if isinstance(scene.picture, Curves) else None
    other = scene.other if isinstance(scene.other, Curves) else None
    lines.show_curves(canvas.line, one, title_of(state.method, scene.fit), state.points.labels)
    _same_height(canvas, [picture for picture in (one, other) if picture is not None])
    if not state.other:
        return
    lines.show_curves(canvas.other_line, other, title_of(state.other, scene.other_fit), state.points.labels)
    apart = scene.difference
    canvas.line_apart.title.text = f"probability by {title(state.method)} minus that by {title(state.other)}"
    if apart is None or one is None:
        canvas.line_difference.data = {"x": [], "d": []}
        return
    most = 1.1 * max(float(np.abs(apart.values).max()), 1e-4)
    canvas.line_apart.y_range.update(start=-most, end=most)
    canvas.line_difference.data = {"x": one.x, "d": apart.values}


def _same_height(canvas: Canvas, pictures: list[Curves]) -> None:
    """Give both latent functions the same scale, or they could not be compared."""
    if not pictures:
        return
    low = min(float((p.mean - BAND * p.std).min()) for p in pictures)
    high = max(float((p.mean + BAND * p.std).max()) for p in pictures)
    edge = 0.05 * (high - low)
    for panel in (canvas.line, canvas.other_line):
        panel.latent.y_range.update(start=low - edge, end=high + edge)


def _show_planes(canvas: Canvas, scene: Scene) -> None:
    state, apart = scene.state, scene.difference
    for panel in canvas.planes:
        panel.fig.xaxis.axis_label, panel.fig.yaxis.axis_label = state.points.names
    one, other = scene.picture, scene.other
    if not isinstance(one, Maps):
        for panel in canvas.planes:
            planes.clear_plane(panel)
        return
    two = len(one.shown) == 2
    words = f"p(class {state.points.labels[one.shown[1]]})" if two else "class probabilities"
    planes.show_proba(canvas.plane, one, f"{words} by {title(state.method)}")
    top = max(float(one.uncertainty.max()), 1e-9)
    if not state.other:
        values = one.uncertainty
        planes.show_field(canvas.uncertainty, one, values, one.measure, "Cividis256", (0.0, top))
    elif isinstance(other, Maps) and apart is not None:
        planes.show_proba(canvas.other_plane, other, f"{words} by {title(state.other)}")
        most = max(float(np.abs(apart.values).max()), 1e-9)
        palette, low = diverging("#5e3c99", "#e66101"), -most
        words = f"{title(state.method)} minus {title(state.other)}"
        if not apart.signed:
            palette, low, words = palette[127:], 0.0, "total variation distance"
        planes.show_field(canvas.plane_apart, one, apart.values, words, palette, (low, most))
    else:
        for panel in (canvas.other_plane, canvas.plane_apart):
            planes.clear_plane(panel)


def title_of(method: str, fit: Any) -> str:
    """Return the name of a method with its evidence."""
    if fit is None or fit.evidence is None:
        return title(method)
    return f"{title(method)}, log evidence {fit.evidence:.2f}".replace("-", "−")


def show_running(canvas: Canvas, state: State, running: Running | None) -> None:
    """Draw the chains so far over the first method: functions as thin lines, and the probability they average to."""
    (sides, _), line = grid(state), state.points.n_columns == 1
    two = len(state.points.present()) == 2
    if running is None:
        canvas.line.draws.data = {"xs": [], "ys": []}
        canvas.line.truth.data = {"x": [], "p": []}
        canvas.plane.truth.data = {"xs": [], "ys": []}
    elif line:
        canvas.line.draws.data = {"xs": [sides[0]] * len(running.lines), "ys": list(running.lines)}
        p: Any = running.proba[:, state.points.present()[1]] if two else []
        canvas.line.truth.data = {"x": sides[0] if two else [], "p": p}
    else:
        xs, ys = outlines(sides[0], sides[1], margins(state, running.proba))
        canvas.plane.truth.data = {"xs": xs, "ys": ys}
