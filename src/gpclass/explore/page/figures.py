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
HATCH = {"hatch_pattern": "/", "hatch_color": "#555555", "hatch_alpha": 0.45, "hatch_weight": 0.8}
UNDECIDED = {"fill_color": "#777777", "fill_alpha": 0.12, "line_color": None, "hatch_scale": 9.0, **HATCH}
IMAGE = ("image", "x", "y", "dw", "dh")  # column names of a data source for images


class Panel:
    """A figure in the style of the page, with named data sources; dragging in it moves points, not the axes."""

    def __init__(self, sources: dict[str, Any], height: int, x_range: Any, y_range: Any) -> None:
        from bokeh.models import ColumnDataSource
        from bokeh.plotting import figure

        sources = sources | {"place": ("x", "y")}
        self.sources = {name: ColumnDataSource({key: [] for key in keys}) for name, keys in sources.items()}
        self.fig = figure(
            height=height, min_height=height, sizing_mode="stretch_both", tools="", toolbar_location=None, title=" ",
            min_border_right=12, output_backend="canvas", x_range=x_range, y_range=y_range,
        )  # fmt: skip
        self.fig.grid.grid_line_color = "#e6e6e6"
        self.fig.outline_line_color = "#cccccc"
        self.fig.axis.axis_label_text_font_style = "normal"

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

    def draw_points(self, points: Any, shares: Any) -> None:
        """Draw the points of a source, a ring around the selected one, other rings, and the most informative place."""
        looks = {"marker": "marker", "fill_color": "colour", "line_color": "white", "line_width": 1.2}
        self.fig.scatter("x", "y", source=points, level="overlay", size=11, **looks)
        for source, size, colour in ((points, "ring", INK), (shares, "size", "colour")):
            ring = {"marker": "circle", "fill_color": None, "line_color": colour, "line_width": 2.5}
            self.fig.scatter("x", "y", source=source, level="overlay", size=size, **ring)
        for colour, width in (("white", 7), (INK, 3)):
            cross = {"marker": "cross", "size": 20, "line_color": colour, "line_width": width}
            self.fig.scatter("x", "y", source=self.sources["place"], level="overlay", **cross)


class LineChart(Panel):
    """Curves with bands over one column, and rectangles below them for the decision."""

    def __init__(self, height: int, x_range: Any, ends: tuple[float, float]) -> None:
        from bokeh.models import Range1d

        sources = {
            "bands": ("xs", "ys", "colour"), "curves": ("xs", "ys", "colour", "dash"), "draws": ("xs", "ys"),
            "strip": ("left", "right", "colour"), "boundaries": ("x",), "undecided": ("left", "right"),
        }  # fmt: skip
        super().__init__(sources, height, x_range, Range1d(*ends))
        fig, get = self.fig, self.sources
        fig.patches("xs", "ys", source=get["bands"], fill_color="colour", fill_alpha=0.17, line_color=None)
        fig.multi_line("xs", "ys", source=get["draws"], line_color="#555555", line_alpha=0.35)
        curve = {"line_color": "colour", "line_dash": "dash", "line_width": 2.5}
        fig.multi_line("xs", "ys", source=get["curves"], **curve)
        fig.quad(left="left", right="right", bottom=0.0, top=1.0, source=get["undecided"], **UNDECIDED)
        box = {"left": "left", "right": "right", "bottom": -0.155, "top": -0.105}  # below the axis of p
        fig.quad(**box, source=get["strip"], fill_color="colour", line_color=None)
        fig.vspan("x", source=get["boundaries"], color=INK, line_width=1.5, line_dash="dotted")

    def show(
        self, title: str, x: Array, codes: Sequence[int], middle: Array, low: Any, high: Any, **data: Any
    ) -> None:
        """Draw curves of these classes, (n, n_curves), and the bands around them; None for no bands.

        A single latent function of several ordered classes has the colour of the last one.
        """
        curves = middle.reshape(len(x), -1).T
        codes = codes[-len(curves) :]
        colours = [COLOURS[code] for code in codes]
        lines = {"xs": [x] * len(curves), "ys": list(curves), "colour": colours}
        lines["dash"] = [DASHES[code] for code in codes]
        if low is not None:
            around = np.concatenate([low, high[::-1]]).reshape(2 * len(x), -1).T
            areas = {
                "xs": [np.concatenate([x, x[::-1]])] * len(curves),
                "ys": list(around),
                "colour": colours,
            }
            data["bands"] = areas
        self.put(title, curves=lines, **data)

    def fit(self, *curves: Array) -> None:
        """Set the vertical range to that of these values, with a margin."""
        low, high = min(float(each.min()) for each in curves), max(float(each.max()) for each in curves)
        self.fig.y_range.update(start=low - 0.05 * (high - low), end=high + 0.05 * (high - low))


class Map(Panel):
    """A map of numbers (by a colour scale) or of colours, with lines and a star on top."""

    def __init__(self, height: int, x_range: Any, y_range: Any) -> None:
        from bokeh.models import ColorBar, LinearColorMapper

        lines = ("xs", "ys")
        sources = {"field": IMAGE, "colours": IMAGE, "lines": lines, "star": ("x", "y"), "undecided": lines}
        super().__init__(sources, height, x_range, y_range)
        fig, get = self.fig, self.sources
        fig.grid.visible = False
        self.scale = LinearColorMapper(palette="Cividis256", low=0.0, high=1.0)
        columns: dict[str, Any] = {**{name: name for name in IMAGE}, "level": "image"}
        fig.image(source=get["field"], color_mapper=self.scale, **columns)
        fig.image_rgba(source=get["colours"], **columns)
        fig.multi_polygons("xs", "ys", source=get["undecided"], **UNDECIDED)
        fig.multi_line("xs", "ys", source=get["lines"], color="white", line_width=4.5, alpha=0.8)
        fig.multi_line("xs", "ys", source=get["lines"], color=INK, line_width=2)
        star = {"marker": "star", "color": "white", "line_color": INK, "size": 22, "line_width": 2}
        fig.scatter("x", "y", source=get["star"], **star)
        small = {"major_label_text_font_size": "11px", "label_standoff": 5, "padding": 4}
        self.bar = ColorBar(color_mapper=self.scale, width=10, **small)
        fig.add_layout(self.bar, "right")

    def show(self, title: str, sides: list[Array], values: Array, scale: Any = None, **data: Any) -> None:
        """Draw numbers by a colour scale (a palette and its two ends), or class probabilities as mixed colours."""
        self.bar.visible = scale is not None
        if scale is None:
            self.put(title, colours=image(sides, blend(values)), **data)
            return
        self.scale.update(palette=scale[0], low=scale[1], high=scale[2])
        self.put(title, field=image(sides, values.astype(np.float32)), **data)


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
