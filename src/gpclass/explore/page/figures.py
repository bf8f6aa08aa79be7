"""The figures of the page: curves over one column, and maps over two columns or two hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpclass.core.protocols import Array
from gpclass.explore.state import MOST_CLASSES
from gpclass.plotting.style import STYLES, mixed_colours

COLOURS = tuple(colour for colour, _, _ in STYLES[:MOST_CLASSES])
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle")
DASHES = ("solid", "solid", "dashed", "dotdash", "dotted")  # with two classes only the second one is drawn
INK = "#222222"
IMAGE = ("image", "x", "y", "dw", "dh")
HATCH = {"hatch_pattern": "/", "hatch_color": "#555555", "hatch_alpha": 0.45, "hatch_weight": 0.8}
GREY = {"fill_color": "#777777", "fill_alpha": 0.12, "line_color": None, "hatch_scale": 9.0, **HATCH}
RING = {"marker": "circle", "fill_color": None, "line_width": 2.5, "level": "overlay"}
CROSS = {"marker": "cross", "size": 20, "level": "overlay"}
STAR = {"marker": "star", "color": "white", "line_color": INK, "size": 22, "line_width": 2}
# What is drawn, from the lowest to the highest: the data source, the glyph, its columns, and what is the same for all.
CURVES: list[tuple[str, str, Sequence[str], dict[str, Any]]] = [
    ("bands", "patches", ("xs", "ys", "color"), {"fill_alpha": 0.17, "line_color": None}),
    ("draws", "multi_line", ("xs", "ys"), {"line_color": "#555555", "line_alpha": 0.35}),
    ("curves", "multi_line", ("xs", "ys", "line_color", "line_dash"), {"line_width": 2.5}),
    ("undecided", "quad", ("left", "right"), {"bottom": 0.0, "top": 1.0, **GREY}),
    ("strip", "quad", ("left", "right", "color"), {"bottom": -0.155, "top": -0.105}),  # below the axis of p
    ("boundaries", "vspan", ("x",), {"color": INK, "line_width": 1.5, "line_dash": "dotted"}),
]
MAP: list[tuple[str, str, Sequence[str], dict[str, Any]]] = [
    ("field", "image", IMAGE, {"level": "image"}),
    ("colours", "image_rgba", IMAGE, {"level": "image"}),
    ("undecided", "multi_polygons", ("xs", "ys"), GREY),
    ("lines", "multi_line", ("xs", "ys"), {"color": "white", "line_width": 4.5, "alpha": 0.8}),
    ("lines", "multi_line", ("xs", "ys"), {"color": INK, "line_width": 2}),
    ("star", "scatter", ("x", "y"), STAR),
]
POINTS: list[tuple[str, str, Sequence[str], dict[str, Any]]] = [
    (
        "points",
        "scatter",
        ("x", "y", "marker", "fill_color"),
        {"line_color": "white", "size": 11, "level": "overlay"},
    ),
    ("rings", "scatter", ("x", "y", "size", "line_color"), RING),
    ("place", "scatter", ("x", "y"), {"line_color": "white", "line_width": 7, **CROSS}),
    ("place", "scatter", ("x", "y"), {"line_color": INK, "line_width": 3, **CROSS}),
]


class Panel:
    """A figure of curves or of a map, with named data sources; dragging in it moves points, not the axes.

    Some ``shared`` sources may belong to several panels.
    """

    def __init__(self, layers: Any, height: int, x_range: Any, y_range: Any, **shared: Any) -> None:
        from bokeh.models import ColorBar, ColumnDataSource, LinearColorMapper
        from bokeh.plotting import figure

        self.fig = figure(
            height=height, min_height=height, sizing_mode="stretch_both", tools="", toolbar_location=None, title=" ",
            min_border_right=12, output_backend="canvas", x_range=x_range, y_range=y_range,
        )  # fmt: skip
        self.fig.grid.grid_line_color = "#e6e6e6"
        self.fig.grid.visible = layers[0][0] != "field"
        self.fig.outline_line_color = "#cccccc"
        self.fig.axis.axis_label_text_font_style = "normal"
        self.scale = LinearColorMapper(palette="Cividis256", low=0.0, high=1.0)
        small = {"major_label_text_font_size": "11px", "label_standoff": 5, "padding": 4}
        self.bar = ColorBar(color_mapper=self.scale, width=10, visible=False, **small)
        self.fig.add_layout(self.bar, "right")
        self.sources: dict[str, Any] = {}
        for name, glyph, columns, looks in layers:
            known = shared if name in shared else self.sources
            source = known.setdefault(name, ColumnDataSource({column: [] for column in columns}))
            scale = {"color_mapper": self.scale} if glyph == "image" else {}
            getattr(self.fig, glyph)(
                **{column: column for column in columns}, source=source, **looks, **scale
            )

    def put(self, title: str = "", kept: Sequence[str] = (), **data: Any) -> None:
        """Draw these data under a title; sources that are neither given nor ``kept`` are cleared."""
        self.fig.title.text = title
        for name in self.sources.keys() - set(kept):
            source = self.sources[name]
            source.data = data.get(name, {column: [] for column in source.data})

    def label(self, *axes: tuple[str, Any]) -> None:
        """Set the labels of the axes, and ticks at the levels of categories."""
        from bokeh.models import BasicTicker, FixedTicker

        for axis, (name, levels) in zip((self.fig.xaxis, self.fig.yaxis), axes, strict=False):
            axis.axis_label = name
            axis.major_label_overrides = dict(enumerate(levels))
            ticks = list(range(len(levels)))
            axis.ticker = FixedTicker(ticks=ticks) if levels else BasicTicker(desired_num_ticks=5)

    def enlarge(self, large: bool) -> None:
        """Set the size of the type: large for a presentation."""
        self.fig.title.text_font_size = "24px" if large else "13px"
        self.fig.axis.major_label_text_font_size = "20px" if large else "11px"
        self.fig.axis.axis_label_text_font_size = "24px" if large else "13px"

    def show_curves(
        self, title: str, x: Array, codes: Sequence[int], middle: Array, low: Any, high: Any, **data: Any
    ) -> None:
        """Draw curves of these classes, (n, n_curves), and the bands around them; None for no bands.

        A single latent function of several ordered classes has the colour of the last one.
        """
        curves = middle.reshape(len(x), -1).T
        shown = codes[-len(curves) :]
        colours, dashes = ([each[code] for code in shown] for each in (COLOURS, DASHES))
        xs, ys = [x] * len(curves), list(curves)
        if low is not None:
            around = np.concatenate([low, high[::-1]]).reshape(2 * len(x), -1).T
            data["bands"] = {
                "xs": [np.concatenate([x, x[::-1]])] * len(xs),
                "ys": list(around),
                "color": colours,
            }
        self.put(title, curves={"xs": xs, "ys": ys, "line_color": colours, "line_dash": dashes}, **data)

    def fit(self, *curves: Array) -> None:
        """Set the vertical range to that of these values, with a margin."""
        low, high = min(float(each.min()) for each in curves), max(float(each.max()) for each in curves)
        self.fig.y_range.update(start=low - 0.05 * (high - low), end=high + 0.05 * (high - low))

    def show_map(self, title: str, sides: list[Array], values: Array, scale: Any = None, **data: Any) -> None:
        """Draw numbers by a colour scale with these ends, or class probabilities as mixed colours."""
        self.bar.visible = scale is not None
        if scale is None:
            data["colours"] = image(sides, blend(values))
        else:
            self.scale.update(low=float(scale[0]), high=float(scale[1]))
            data["field"] = image(sides, values.astype(np.float32))
        self.put(title, **data)


def blend(proba: Array) -> NDArray[np.uint32]:
    """Return an image of the mixed colours of the classes."""
    mixed = mixed_colours(proba)
    opaque = np.concatenate([mixed, np.ones((*mixed.shape[:-1], 1))], axis=-1)
    pixels: NDArray[np.uint8] = np.ascontiguousarray((255.0 * opaque).astype(np.uint8))
    return pixels.view(np.uint32)[..., 0]  # Bokeh's format


def image(sides: list[Array], pixels: Any) -> dict[str, Any]:
    """Return the data of an image whose pixels have their centres at the points of a grid."""
    steps = [side[1] - side[0] for side in sides]
    x, y = (side[0] - 0.5 * step for side, step in zip(sides, steps, strict=True))
    width, height = (len(side) * step for side, step in zip(sides, steps, strict=True))
    return {"image": [pixels], "x": [x], "y": [y], "dw": [width], "dh": [height]}


def outlines(sides: list[Array], margin: Array) -> dict[str, Any]:
    """Return the lines where any margin over a grid vanishes."""
    from contourpy import contour_generator

    fields = np.moveaxis(margin, -1, 0)
    lines = [line for z in fields for line in contour_generator(*sides, z).lines(0.0)]
    return {"xs": [line[:, 0] for line in lines], "ys": [line[:, 1] for line in lines]}


def regions(sides: list[Array], inside: Array) -> dict[str, Any]:
    """Return the regions of a grid where a condition holds, as polygons with holes."""
    from contourpy import contour_generator

    found = contour_generator(*sides, inside.astype(float), fill_type="OuterOffset").filled(0.5, 2.0)
    rings = [np.split(points, ends[1:-1]) for points, ends in zip(*found, strict=True)]
    return {name: [[[ring[:, k] for ring in each]] for each in rings] for k, name in enumerate(("xs", "ys"))}


def runs(x: Array, inside: Array) -> dict[str, Any]:
    """Return the left and right ends of the intervals of a grid where a condition holds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(int)))
    return {"left": x[edges[::2]], "right": x[edges[1::2] - 1]}
