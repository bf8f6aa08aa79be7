"""The canvas: the pictures of a method and of a second one beside it, and the points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpclass.explore.page import figures
from gpclass.explore.page.figures import COLOURS, CURVES, INK, MAP, MARKERS, POINTS, Panel
from gpclass.explore.scene import Picture, Scene
from gpclass.explore.state import PageState

EVENTS = ("tap", "panstart", "pan", "panend", "mousemove")
SIDE = {"sizing_mode": "stretch_both", "styles": {"flex": "1 1 300px", "min-width": "0"}}
WRAP = ":host {{ flex-wrap: wrap; gap: 4px; }} @media (max-width: 760px) {{ :host {{ height: {}px !important; }} }}"
PHONE = 560  # height in pixels of the pictures of one method below each other
RING = 46.0  # diameter of the ring around a point that has all of the shares shown, in pixels


class Canvas:
    """A line chart of f, one of the probability and a map for each of two methods; what is not needed is hidden."""

    def __init__(self) -> None:
        from bokeh.layouts import column, row
        from bokeh.models import ColumnDataSource, Range1d

        shared = {
            "points": ColumnDataSource(
                {"x": [], "y": [], "marker": [], "fill_color": []}, name="points-data"
            ),
            "rings": ColumnDataSource({"x": [], "y": [], "size": [], "line_color": []}, name="shares-data"),
        }
        self.points, self.shares = shared.values()
        self.ranges = x, y = Range1d(0.0, 1.0), Range1d(0.0, 1.0)
        self.latents = [Panel(CURVES, 180, x, Range1d(-1.0, 1.0)) for _ in range(2)]
        self.probas = [Panel(CURVES + POINTS, 220, x, Range1d(-0.19, 1.09), **shared) for _ in range(2)]
        self.maps = [Panel(MAP + POINTS, 280, x, y, **shared) for _ in range(2)]
        for graph in self.probas:
            graph.fig.yaxis.ticker = [0.0, 0.25, 0.5, 0.75, 1.0]
        self.latents[0].fig.name, self.probas[0].fig.name, self.maps[0].fig.name = "latent", "proba", "plane"
        self.groups = list(zip(self.latents, self.probas, self.maps, strict=True))
        self.sides = [column(*(panel.fig for panel in group), **SIDE) for group in self.groups]
        self.root = row(*self.sides, name="canvas", sizing_mode="stretch_both")

    def listen(self, on_event: Callable[[str, Any], None]) -> None:
        """Call ``on_event(kind, place)`` for clicks and drags; y is NaN on latent functions, which have no markers."""

        def tell(event: Any) -> None:
            if event.x is not None and event.y is not None:
                on_latent = event.model in [graph.fig for graph in self.latents]
                on_event(event.event_name, (event.x, np.nan if on_latent else event.y))

        for panel in (*self.latents, *self.probas, *self.maps):
            for kind in EVENTS:
                panel.fig.on_event(kind, tell)

    def show_points(self, state: PageState) -> None:
        """Draw the points; this needs no model."""
        points, (x, y) = state.points, state.points.markers.T
        markers, colours = ([names[c] for c in points.codes] for names in (MARKERS, COLOURS))
        self.points.data = {"x": x, "y": y, "marker": markers, "fill_color": colours}
        for axis, ends in zip(self.ranges, points.view.tolist(), strict=False):
            axis.update(start=ends[0], end=ends[1])
        self.show_shares(state)

    def show_shares(self, state: PageState, rows: Sequence[int] = (), shares: Sequence[float] = ()) -> None:
        """Draw a ring around the selected point, and one around each of these points.

        The area of the latter is the share of the point, in the colour of the class that it supports.
        """
        chosen = [] if state.selected is None else [state.selected]
        x, y = state.points.markers[[*chosen, *rows]].T
        size = RING * np.sqrt(np.abs(shares) / max(np.abs(shares).sum(), 1e-300))
        present = state.points.present  # of two classes the first is supported by negative shares
        colours = [INK] * len(chosen) + [COLOURS[present[-1 if share > 0.0 else 0]] for share in shares]
        self.shares.data = {"x": x, "y": y, "size": [*[20.0] * len(chosen), *size], "line_color": colours}

    def show(self, scene: Scene) -> None:
        """Draw the predictions of the methods of a state; erase what cannot be drawn."""
        points, large = scene.state.points, scene.state.large
        line, alone = points.n_columns == 1, large or not scene.state.other
        self.root.stylesheets = [WRAP.format(PHONE if alone else 2 * PHONE)]
        self.sides[1].visible = not (large or (line and alone))
        axes = list(zip(points.names, points.levels, strict=False))
        for group, picture in zip(self.groups, (*scene.pictures, None, None), strict=False):
            for panel, visible in zip(group, (line and not large, line, not line), strict=True):
                panel.enlarge(large)
                panel.fig.visible = visible
                if visible:
                    panel.label(*axes)
                if picture is None:
                    panel.put()
            latent, proba, plane = group
            latent.label(("", points.levels[0]), ("latent function f", ()))
            if picture is not None and line:
                _show_line(latent, proba, picture)
            elif picture is not None:
                title = f"class probabilities: {picture.title}"
                plane.show_map(title, picture.sides, picture.proba, **_marks(picture))
        if line and scene.pictures:  # both latent functions on the same scale, so that they can be compared
            for latent in self.latents:
                latent.fit(*(end for each in scene.pictures for end in each.latent))
        elif alone and scene.picture is not None:
            std, sides = scene.picture.deviation, scene.picture.sides
            marks = _marks(scene.picture)
            self.maps[1].show_map("standard deviation of f", sides, std, (0.0, std.max()), **marks)


def _show_line(latent: Panel, proba: Panel, picture: Picture) -> None:
    """Draw the latent functions and the probabilities of one column."""
    x, codes, labels = picture.sides[0], picture.curves, picture.state.points.labels
    draws = {"xs": [x] * len(picture.draws), "ys": list(picture.draws)}
    latent.show_curves(picture.title, x, codes, *picture.latent, draws=draws)
    places, decided = picture.boundaries()
    edges = np.array([x[0], *places, x[-1]])
    marks = {
        "strip": {"left": edges[:-1], "right": edges[1:], "color": [COLOURS[code] for code in decided]},
        "boundaries": {"x": places},
        "place": {"x": picture.place[0], "y": [0.5]},
        "undecided": figures.runs(x, picture.undecided),
    }
    title = picture.title if picture.state.large else ""
    proba.show_curves(title, x, codes, picture.proba[:, codes], *picture.interval, **marks)
    of = f" of class {labels[codes[0]]}" if len(codes) == 1 else ""
    proba.fig.yaxis.axis_label = f"probability{of}"


def _marks(picture: Picture) -> dict[str, Any]:
    """Return what is drawn over a map: boundaries, undecided regions and the most informative place."""
    (x, y), sides = picture.place[0], picture.sides
    lines, undecided = figures.outlines(sides, picture.margin), figures.regions(sides, picture.undecided)
    return {"lines": lines, "undecided": undecided, "place": {"x": [x], "y": [y]}}
