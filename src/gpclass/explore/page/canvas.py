"""The canvas: the pictures of a method and of a second one beside it, their difference, and the points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.explore.page import figures
from gpclass.explore.page.figures import Line, Panel, Plane, figure
from gpclass.explore.scene import Scene, grid
from gpclass.explore.state import State, title
from gpclass.explore.steps import Running
from gpclass.plotting.contour import decision_margins

EVENTS = ("tap", "panstart", "pan", "panend")
SIDE_BY_SIDE = {"sizing_mode": "stretch_width", "stylesheets": [":host { flex-wrap: wrap; gap: 4px; }"]}


class Canvas(Panel):
    """All figures for one and for two columns; those that are not needed are hidden."""

    def __init__(self) -> None:
        from bokeh.layouts import column, row
        from bokeh.models import Range1d

        super().__init__(points=("x", "y", "marker", "colour", "ring"), cursor=("x", "y"), apart=("x", "d"))
        points, cursor, apart = self.sources.values()
        points.name = "points-data"
        self.ranges = Range1d(0.0, 1.0), Range1d(0.0, 1.0)
        self.line, self.other_line = (Line(points, cursor, self.ranges[0]) for _ in range(2))
        self.planes = tuple(Plane(points, cursor, self.ranges) for _ in range(3))
        self.apart = fig = figure(190, x_range=self.ranges[0], y_range=Range1d(-1.0, 1.0), min_border_left=62)
        fig.yaxis.axis_label = "difference"
        fig.hspan(y=[0.0], color="#999999")
        fig.varea("x", 0, "d", source=apart, fill_color="#7b3294", fill_alpha=0.2)
        fig.line("x", "d", source=apart, color="#7b3294", line_width=2.5)
        self.line.latent.name, self.line.proba.name, self.planes[0].fig.name = "latent", "proba", "plane"
        lines, planes = (self.line.root, self.other_line.root), [plane.fig for plane in self.planes]
        for side in (*lines, *planes):
            side.styles = {"flex": "1 1 300px", "min-width": "0"}
        rows = row(*lines, **SIDE_BY_SIDE), fig, row(*planes, **SIDE_BY_SIDE)
        self.root = column(*rows, name="canvas", sizing_mode="stretch_width")

    def listen(self, on_event: Callable[[str, Any, float | None], None]) -> None:
        """Call ``on_event(kind, place, height)`` for clicks and drags; height is None off the probabilities."""
        marked = [self.line.proba, self.other_line.proba]
        others = [self.line.latent, self.other_line.latent, *(plane.fig for plane in self.planes)]

        def tell(event: Any) -> None:
            on_event(event.event_name, (event.x, event.y), event.y if event.model in marked else None)

        for fig in (*marked, *others):
            for kind in EVENTS:
                fig.on_event(kind, tell)

    def show_points(self, state: State, *, cursor: bool) -> None:
        """Draw the points, and the cursor if it is wanted; this needs no model."""
        points, two = state.points, state.points.n_columns == 2
        ring = np.where(np.arange(len(points)) == state.selected, 20.0, 0.0)
        y = points.X[:, 1] if two else marker_heights(points.codes, state.n_classes)
        markers, colours = ([names[c] for c in points.codes] for names in (figures.MARKERS, figures.COLOURS))
        data = {"x": points.X[:, 0], "y": y, "marker": markers, "colour": colours, "ring": ring}
        self.sources["points"].data = data
        place = (*state.cursor, 0.5)[:2]
        self.sources["cursor"].data = {name: [x] * cursor for name, x in zip("xy", place, strict=True)}
        for axis, ends in zip(self.ranges, points.view.tolist(), strict=False):
            axis.update(start=ends[0], end=ends[1])

    def show(self, scene: Scene) -> None:
        """Draw what the methods of a state predict."""
        comparing, line = bool(scene.state.other), scene.state.points.n_columns == 1
        self.line.root.visible = line
        self.other_line.root.visible = self.apart.visible = line and comparing
        for plane, needed in zip(self.planes, (True, True, comparing), strict=True):
            plane.fig.visible = needed and not line
        (self._show_lines if line else self._show_planes)(scene)

    def _show_lines(self, scene: Scene) -> None:
        self.line.show(scene)
        self.other_line.show(scene.other)
        pictures = [each.picture for each in (scene, scene.other) if each is not None]
        bands = [each.latent for each in pictures if each is not None and each.latent is not None]
        if bands:  # both latent functions on the same scale, so that they can be compared
            low, high = min(float(b[1].min()) for b in bands), max(float(b[2].max()) for b in bands)
            edge = 0.05 * (high - low)
            for panel in (self.line, self.other_line):
                panel.latent.y_range.update(start=low - edge, end=high + edge)
        first, second = title(scene.state.method), title(scene.state.other)
        self.apart.title.text = f"probability by {first} minus that by {second}"
        values = np.zeros(0) if scene.difference is None else scene.difference
        self.sources["apart"].data = {"x": grid(scene.state)[0][0][: len(values)], "d": values}
        most = 1.1 * float(np.abs(values).max(initial=1e-4))
        self.apart.y_range.update(start=-most, end=most)

    def _show_planes(self, scene: Scene) -> None:
        state, one, values = scene.state, scene.picture, scene.difference
        first, second, third = self.planes
        for panel in self.planes:
            panel.fig.xaxis.axis_label, panel.fig.yaxis.axis_label = state.points.names
            panel.clear()
        if one is None:
            return
        two = f"p(class {state.points.labels[one.present[1]]})"
        of = "class probabilities" if one.second is None else two
        first.show_proba(one, f"{of} by {title(state.method)}")
        if scene.other is None and one.uncertainty is not None:
            top = float(one.uncertainty.max(initial=1e-9))
            second.show(one, one.measure, (one.uncertainty, "Cividis256", 0.0, top))
        elif scene.other is not None and scene.other.picture is not None and values is not None:
            second.show_proba(scene.other.picture, f"{of} by {title(state.other)}")
            most, palette = float(np.abs(values).max(initial=1e-9)), figures.diverging("#5e3c99", "#e66101")
            if one.second is None:
                third.show(one, "total variation distance", (values, palette[127:], 0.0, most))
            else:
                words = f"{title(state.method)} minus {title(state.other)}"
                third.show(one, words, (values, palette, -most, most))

    def show_running(self, state: State, running: Running) -> None:
        """Draw the chains so far over the first method: functions as thin lines, and their average probability."""
        (sides, _), present = grid(state), state.points.present
        if state.points.n_columns == 2:
            margin = decision_margins(running.proba, state.cost_matrix, state.reject)
            self.planes[0].sources["chains"].data = figures.outlines(sides, margin)
            return
        lines = running.lines
        self.line.sources["draws"].data = {"xs": [sides[0]] * len(lines), "ys": list(lines)}
        if len(present) == 2:
            self.line.sources["chains"].data = {"x": sides[0], "p": running.proba[:, present[1]]}


def marker_heights(codes: Any, n_classes: int) -> Array:
    """Return where points are drawn beside the probabilities: at 0 and 1, or in rows for three classes or more."""
    heights = np.asarray(codes, dtype=float)
    return heights if n_classes == 2 else 1.0 - 0.055 * heights
