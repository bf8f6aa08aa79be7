"""The canvas: the pictures of a method and of a second one beside it, their difference, and the points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpclass.explore.page import figures
from gpclass.explore.page.figures import COLOURS, LineChart, Plane, outlines, smooth
from gpclass.explore.scene import Picture, Scene, grid
from gpclass.explore.state import PageState, title
from gpclass.explore.steps import Running
from gpclass.plotting.contour import decision_margins

EVENTS = ("tap", "panstart", "pan", "panend")
SIDE_BY_SIDE = {"sizing_mode": "stretch_width", "stylesheets": [":host { flex-wrap: wrap; gap: 4px; }"]}
DRAW = {"colour": "#555555", "alpha": 0.35, "width": 1.0}
CHAINS = {"colour": figures.INK, "dash": "dashed", "width": 2.0}
APART = "#7b3294"


class Canvas:
    """All figures for one and for two columns; those that are not needed are hidden."""

    def __init__(self) -> None:
        from bokeh.layouts import column, row
        from bokeh.models import ColumnDataSource, Range1d

        names = ("x", "y", "marker", "colour", "ring")
        self.points = ColumnDataSource({name: [] for name in names}, name="points-data")
        self.ranges = Range1d(0.0, 1.0), Range1d(0.0, 1.0)
        self.latents = [LineChart(230, (-1.0, 1.0), self.ranges[0]) for _ in range(2)]
        self.probas = [LineChart(290, (-0.19, 1.09), self.ranges[0]) for _ in range(2)]
        self.apart = LineChart(190, (-1.0, 1.0), self.ranges[0])
        self.planes = [Plane(420, self.ranges) for _ in range(3)]
        for graph in self.probas:
            graph.fig.yaxis.ticker = [0.0, 0.25, 0.5, 0.75, 1.0]
        for panel in (*self.probas, *self.planes):
            panel.draw_points(self.points)
        self.latents[0].fig.name, self.probas[0].fig.name, self.planes[0].fig.name = (
            "latent",
            "proba",
            "plane",
        )
        pairs = zip(self.latents, self.probas, strict=True)
        self.lines = [column(f.fig, p.fig, sizing_mode="stretch_width") for f, p in pairs]
        maps = [plane.fig for plane in self.planes]
        for side in (*self.lines, *maps):
            side.styles = {"flex": "1 1 300px", "min-width": "0"}
        rows = row(*self.lines, **SIDE_BY_SIDE), self.apart.fig, row(*maps, **SIDE_BY_SIDE)
        self.root = column(*rows, name="canvas", sizing_mode="stretch_width")

    def listen(self, on_event: Callable[[str, Any], None]) -> None:
        """Call ``on_event(kind, place)`` for clicks and drags; there are no markers on latent functions."""

        def tell(event: Any) -> None:
            if event.x is not None and event.y is not None:
                on_latent = event.model in [graph.fig for graph in self.latents]
                on_event(event.event_name, (event.x, np.nan if on_latent else event.y))

        for panel in (*self.latents, *self.probas, *self.planes):
            for kind in EVENTS:
                panel.fig.on_event(kind, tell)

    def show_points(self, state: PageState) -> None:
        """Draw the points; this needs no model."""
        points, (x, y) = state.points, state.points.markers.T
        ring = np.where(np.arange(len(points)) == state.selected, 20.0, 0.0)
        markers, colours = ([names[c] for c in points.codes] for names in (figures.MARKERS, COLOURS))
        self.points.data = {"x": x, "y": y, "marker": markers, "colour": colours, "ring": ring}
        for axis, ends in zip(self.ranges, points.view.tolist(), strict=False):
            axis.update(start=ends[0], end=ends[1])

    def show(self, scene: Scene) -> None:
        """Draw the predictions of the methods of a state; erase what cannot be drawn."""
        comparing, line = bool(scene.state.other), scene.state.points.n_columns == 1
        for each, needed in zip(self.lines, (line, line and comparing), strict=True):
            each.visible = needed
        self.apart.fig.visible = line and comparing
        for plane, needed in zip(self.planes, (True, True, comparing), strict=True):
            plane.fig.visible = needed and not line
        (self._show_lines if line else self._show_planes)(scene)

    def _show_lines(self, scene: Scene) -> None:
        for k, picture in enumerate((scene.picture, scene.other)):
            self._show_line(k, picture)
        bands = [band for picture in scene.pictures for band in picture.latent[1:]]
        if bands:  # both latent functions on the same scale, so that they can be compared
            low, high = float(min(map(np.min, bands))), float(max(map(np.max, bands)))
            edge = 0.05 * (high - low)
            for graph in self.latents:
                graph.fig.y_range.update(start=low - edge, end=high + edge)
        values = scene.difference
        if values is not None:
            x, most = grid(scene.state)[0][0], 1.1 * float(np.abs(values).max(initial=1e-4))
            self.apart.show(x, [{"ys": values, "colour": APART}], [(0.0 * x, values, APART)])
            self.apart.fig.y_range.update(start=-most, end=most)
            first, second = (title(each.state.method) for each in scene.pictures)
            self.apart.fig.title.text = f"probability by {first} minus that by {second}"

    def _show_line(self, k: int, picture: Picture | None, draws: Any = (), chains: Any = None) -> None:
        """Draw the latent functions above the probabilities, with those of Markov chains."""
        latent, proba = self.latents[k], self.probas[k]
        latent.fig.title.text = "" if picture is None else picture.title
        if picture is None:
            latent.put()
            proba.put()
            return
        x, points, codes = picture.sides[0], picture.state.points, picture.curves
        mean, low, high = picture.latent
        looks = [{"colour": COLOURS[code], "dash": figures.DASHES[code]} for code in codes]
        curves = [{"ys": mean[:, i], **look} for i, look in enumerate(looks)]
        bands = [(low[:, i], high[:, i], look["colour"]) for i, look in enumerate(looks)]
        latent.show(x, [{"ys": f, **DRAW} for f in draws] + curves, bands)
        latent.label("", "latent function f")
        curves = [{"ys": picture.proba[:, c], **look} for c, look in zip(codes, looks, strict=True)]
        if chains is not None and len(codes) == 1:
            curves.append({"ys": chains[:, codes[0]], **CHAINS})
        bands = [] if picture.interval is None else [(*picture.interval, COLOURS[codes[0]])]
        places, decided = picture.boundaries()
        edges = np.array([x[0], *places, x[-1]])
        strip = {
            "left": edges[:-1],
            "right": edges[1:],
            "colour": [COLOURS[code] for code in decided],
        }
        proba.show(x, curves, bands, strip=strip, boundaries={"x": places})
        of = f" of class {points.labels[codes[0]]}" if len(codes) == 1 else ""
        proba.label(points.names[0], f"probability{of}")

    def _show_planes(self, scene: Scene) -> None:
        one, two, values = scene.picture, scene.other, scene.difference
        first, second, third = self.planes
        for panel in self.planes:
            panel.label(*scene.state.points.names)
        if one is None:
            for panel in self.planes:
                panel.put()
            return
        _show_proba(first, one)
        boundary = outlines(one.sides, one.margin)
        if not scene.state.other:
            field = (smooth(one.deviation), "Cividis256", 0.0, float(one.deviation.max()))
            second.show(one.sides, "standard deviation of f", field, boundary=boundary)
        elif two is None or values is None:
            second.put()
            third.put()
        else:
            _show_proba(second, two)
            most, palette = float(np.abs(values).max(initial=1e-9)), figures.diverging("#5e3c99", "#e66101")
            words, low = f"{title(one.state.method)} minus {title(two.state.method)}", -most
            if one.second is None:
                words, low, palette = "total variation distance", 0.0, palette[127:]
            third.show(one.sides, words, (smooth(values), palette, low, most), boundary=boundary)

    def show_running(self, picture: Picture, running: Running) -> None:
        """Draw the chains so far over the first method: functions as thin lines, and their average probability."""
        state = picture.state
        if state.points.n_columns == 1:
            self._show_line(0, picture, running.lines, running.proba)
        else:
            margin = decision_margins(running.proba)
            self.planes[0].sources["chains"].data = outlines(picture.sides, margin)


def _show_proba(plane: Plane, picture: Picture) -> None:
    """Draw the probability of the second class, or the mixed colours of several."""
    points, field, of, colours = picture.state.points, None, "class probabilities", []
    if picture.second is None:
        colours = [figures.blend(smooth(picture.proba))]
    else:
        of = f"p(class {points.labels[picture.curves[0]]})"
        palette = figures.diverging(*(COLOURS[code] for code in points.present))
        field = (smooth(picture.second), palette, 0.0, 1.0)
    by = f"{of} by {title(picture.state.method)}"
    plane.show(picture.sides, by, field, colours, boundary=outlines(picture.sides, picture.margin))
