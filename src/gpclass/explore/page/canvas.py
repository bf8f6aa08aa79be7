"""The canvas: the pictures of a method and of a second one beside it, and the points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpclass.explore.page import figures
from gpclass.explore.page.figures import COLOURS, DASHES, MARKERS, LineChart, Map
from gpclass.explore.scene import Picture, Scene
from gpclass.explore.state import PageState

EVENTS = ("tap", "panstart", "pan", "panend", "mousemove")
SIDE_BY_SIDE = {"sizing_mode": "stretch_both", "stylesheets": [":host { flex-wrap: wrap; gap: 4px; }"]}
PHONE = 560  # height in pixels of the pictures of one method below each other
RING = 46.0  # diameter of the ring around a point that has all of the shares shown, in pixels
DRAW = {"colour": "#555555", "alpha": 0.35, "width": 1.0}  # a function drawn from the posterior


class Canvas:
    """All figures for one and for two columns; those that are not needed are hidden."""

    def __init__(self) -> None:
        from bokeh.layouts import column, row
        from bokeh.models import ColumnDataSource, Range1d

        names = ("x", "y", "marker", "colour", "ring")
        self.points = ColumnDataSource({name: [] for name in names}, name="points-data")
        self.shares = ColumnDataSource({"x": [], "y": [], "size": [], "colour": []}, name="shares-data")
        self.ranges = Range1d(0.0, 1.0), Range1d(0.0, 1.0)
        self.latents = [LineChart(180, self.ranges[0], (-1.0, 1.0)) for _ in range(2)]
        self.probas = [LineChart(220, self.ranges[0], (-0.19, 1.09)) for _ in range(2)]
        self.maps = [Map(280, *self.ranges) for _ in range(2)]
        self.panels = [*self.latents, *self.probas, *self.maps]
        for panel in self.panels[2:]:
            panel.draw_points(self.points, self.shares)
        for graph in self.probas:
            graph.fig.yaxis.ticker = [0.0, 0.25, 0.5, 0.75, 1.0]
        self.latents[0].fig.name, self.probas[0].fig.name, self.maps[0].fig.name = "latent", "proba", "plane"
        pairs = zip(self.latents, self.probas, strict=True)
        self.lines = [column(f.fig, p.fig, sizing_mode="stretch_both") for f, p in pairs]
        maps = [panel.fig for panel in self.maps]
        for side, width in zip((*self.lines, *maps), (250, 250, 340, 340), strict=True):
            side.styles = {"flex": f"1 1 {width}px", "min-width": "0"}
        self.rows = row(*self.lines, **SIDE_BY_SIDE), row(*maps, **SIDE_BY_SIDE)
        self.root = column(*self.rows, name="canvas", sizing_mode="stretch_both")

    def listen(self, on_event: Callable[[str, Any], None]) -> None:
        """Call ``on_event(kind, place)`` for clicks and drags; y is NaN on latent functions, which have no markers."""

        def tell(event: Any) -> None:
            if event.x is not None and event.y is not None:
                on_latent = event.model in [graph.fig for graph in self.latents]
                on_event(event.event_name, (event.x, np.nan if on_latent else event.y))

        for panel in self.panels:
            for kind in EVENTS:
                panel.fig.on_event(kind, tell)

    def show_points(self, state: PageState) -> None:
        """Draw the points; this needs no model."""
        points, (x, y) = state.points, state.points.markers.T
        ring = np.where(np.arange(len(points)) == state.selected, 20.0, 0.0)
        markers, colours = ([names[c] for c in points.codes] for names in (MARKERS, COLOURS))
        self.points.data = {"x": x, "y": y, "marker": markers, "colour": colours, "ring": ring}
        for axis, ends in zip(self.ranges, points.view.tolist(), strict=False):
            axis.update(start=ends[0], end=ends[1])

    def show_shares(self, state: PageState, rows: list[int], shares: list[float]) -> None:
        """Draw a ring around each of these points, whose area is its share, in the colour of the class it supports."""
        x, y = state.points.markers[rows].T
        size = RING * np.sqrt(np.abs(shares) / max(np.abs(shares).sum(), 1e-300)) if shares else []
        first, *_, last = state.points.present or [0, 0]
        colours = [COLOURS[last if share > 0.0 else first] for share in shares]
        self.shares.data = {"x": x, "y": y, "size": size, "colour": colours}

    def show(self, scene: Scene) -> None:
        """Draw the predictions of the methods of a state; erase what cannot be drawn."""
        state, points = scene.state, scene.state.points
        line, alone = points.n_columns == 1, state.large or not state.other
        narrow = PHONE if alone else 2 * PHONE
        self.root.stylesheets = [
            f"@media (max-width: 760px) {{ :host {{ height: {narrow}px !important; }} }}"
        ]
        self.rows[0].visible, self.rows[1].visible, self.lines[1].visible = line, not line, not alone
        for panel in self.panels:
            panel.enlarge(state.large)
            panel.fig.visible = not (state.large and panel in (*self.latents, self.maps[1]))
        for panel in self.maps:
            panel.label(*zip(points.names, points.levels, strict=False))
        for k, picture in enumerate((scene.picture, scene.other)):
            if picture is None:
                for each in (self.latents[k], self.probas[k], self.maps[k]):
                    each.put()
            elif line:
                self._show_line(k, picture)
            else:
                _show_proba(self.maps[k], picture)
        if line and not alone:  # both latent functions on the same scale, so that they can be compared
            ranges = [graph.fig.y_range for graph in self.latents]
            low, high = min(each.start for each in ranges), max(each.end for each in ranges)
            for each in ranges:
                each.update(start=low, end=high)
        elif not line and scene.picture is not None and alone:
            found = scene.picture
            scale, over = ("Cividis256", 0.0, float(found.deviation.max())), _over(found)
            del over["undecided"]
            self.maps[1].show("standard deviation of f", found.sides, found.deviation, scale, **over)

    def _show_line(self, k: int, picture: Picture) -> None:
        """Draw the latent functions above the probabilities."""
        latent, proba, x = self.latents[k], self.probas[k], picture.sides[0]
        points, codes = picture.state.points, picture.curves
        draws = [{"ys": f, **DRAW} for f in picture.draws]
        latent.show_functions(picture.title, x, picture.latent, codes, draws)
        latent.label(("", points.levels[0]), ("latent function f", ()))
        curves = [{"ys": picture.proba[:, c], "colour": COLOURS[c], "dash": DASHES[c]} for c in codes]
        bands = [] if picture.interval is None else [(*picture.interval, COLOURS[codes[0]])]
        places, decided = picture.boundaries()
        edges = np.array([x[0], *places, x[-1]])
        strip = {"left": edges[:-1], "right": edges[1:], "colour": [COLOURS[code] for code in decided]}
        marks = {
            "place": {"x": picture.place[0], "y": [0.5]},
            "undecided": figures.runs(x, picture.undecided),
        }
        title = picture.title if picture.state.large else ""
        proba.show(title, x, curves, bands, strip=strip, boundaries={"x": places}, **marks)
        proba.label((points.names[0], points.levels[0]))
        of = f" of class {points.labels[codes[0]]}" if len(codes) == 1 else ""
        proba.fig.yaxis.axis_label = f"probability{of}"


def _over(picture: Picture) -> dict[str, Any]:
    """Return what is drawn over a map: boundaries, undecided regions and the most informative place."""
    (x, y), sides = picture.place[0], picture.sides
    over = {"lines": figures.outlines(sides, picture.margin), "place": {"x": [x], "y": [y]}}
    return over | {"undecided": figures.regions(sides, picture.undecided)}


def _show_proba(panel: Map, picture: Picture) -> None:
    """Draw the probability of the second class, or the mixed colours of several."""
    from bokeh.palettes import interp_palette

    points, codes = picture.state.points, picture.curves
    if len(codes) > 1:
        panel.show(f"class probabilities: {picture.title}", picture.sides, picture.proba, **_over(picture))
        return
    first, second = (COLOURS[code] for code in points.present)
    scale = interp_palette((first, "#ffffff", second), 255), 0.0, 1.0
    words = f"p(class {points.labels[codes[0]]}): {picture.title}"
    panel.show(words, picture.sides, picture.proba[..., codes[0]], scale, **_over(picture))
