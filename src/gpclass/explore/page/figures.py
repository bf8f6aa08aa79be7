"""The figures of the page: graphs over one column, and maps over two columns or two hyperparameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpclass.core.protocols import Array
from gpclass.explore.state import MOST_CLASSES, PageState
from gpclass.explore.steps import Surface
from gpclass.plotting.style import STYLES, mixed_colours

COLOURS = tuple(colour for colour, _, _ in STYLES[:MOST_CLASSES])
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle")
DASHES = ("solid", "solid", "dashed", "dotdash", "dotted")  # with two classes only the second one is drawn
INK = "#222222"
STRIP = (-0.155, -0.105)  # vertical range of the decision, below the probabilities
FINER = 3  # pixels of an image for each point of the grid along a side
IMAGE = ("image", "x", "y", "dw", "dh")  # the columns of a source of images
DEPTH = 12.0  # nats below the maximum that the colours of the surface of the evidence span
LN10 = float(np.log(10.0))
# Sliders and axes of hyperparameters are decimal logarithms, and show the value.
SHOWN = "return Number(Math.pow(10, tick).toPrecision(3)).toString()"
CURVE = {"colour": COLOURS[1], "dash": "solid", "width": 2.5, "alpha": 1.0}


class Panel:
    """A figure in the style of the page, with named data sources; dragging in it moves points, not the axes."""

    def __init__(self, sources: dict[str, Any], height: int, **options: Any) -> None:
        from bokeh.models import ColumnDataSource
        from bokeh.plotting import figure

        self.sources = {
            name: ColumnDataSource({column: [] for column in columns}) for name, columns in sources.items()
        }
        given: dict[str, Any] = {
            "height": height, "sizing_mode": "stretch_width", "tools": "", "toolbar_location": None,
            "title": " ", "min_border_right": 12, "min_border_left": 62, "output_backend": "canvas",
        }  # fmt: skip
        self.fig = fig = figure(**(given | options))
        fig.grid.grid_line_color = "#e6e6e6"
        fig.outline_line_color = "#cccccc"
        fig.axis.axis_label_text_font_style = "normal"

    def put(self, **data: Any) -> None:
        """Draw these data; what is not given is erased."""
        for name, source in self.sources.items():
            source.data = data.get(name, {column: [] for column in source.data})

    def label(self, x: str, y: str) -> None:
        """Set the labels of the axes."""
        self.fig.xaxis.axis_label, self.fig.yaxis.axis_label = x, y

    def draw_points(self, points: Any) -> None:
        """Draw the points of a source, and a ring around the selected one."""
        looks = {"marker": "marker", "fill_color": "colour", "line_color": "white", "line_width": 1.2}
        self.fig.scatter("x", "y", source=points, level="overlay", size=11, **looks)
        ring = {"marker": "circle", "fill_color": None, "line_color": INK, "line_width": 2.5}
        self.fig.scatter("x", "y", source=points, level="overlay", size="ring", **ring)


# ------------------------------------------------------------------------------------- graph


class LineChart(Panel):
    """Curves with bands over one column, and rectangles below them for the decision."""

    def __init__(self, height: int, ends: tuple[float, float], x_range: Any) -> None:
        from bokeh.models import Range1d

        sources = {
            "bands": ("xs", "ys", "colour"), "curves": ("xs", "ys", *CURVE),
            "strip": ("left", "right", "colour"), "boundaries": ("x",),
        }  # fmt: skip
        super().__init__(sources, height, x_range=x_range, y_range=Range1d(*ends))
        fig, get = self.fig, self.sources
        fig.patches("xs", "ys", source=get["bands"], fill_color="colour", fill_alpha=0.17, line_color=None)
        looks = {f"line_{name}": name for name in ("dash", "width", "alpha")}
        fig.multi_line("xs", "ys", source=get["curves"], line_color="colour", **looks)
        box = {"left": "left", "right": "right", "bottom": STRIP[0], "top": STRIP[1]}
        fig.quad(**box, source=get["strip"], fill_color="colour", line_color=None)
        fig.vspan("x", source=get["boundaries"], color=INK, line_width=1.5, line_dash="dotted")

    def show(self, x: Array, curves: Any, bands: Any = (), **data: Any) -> None:
        """Draw curves, each with its values and what differs from `CURVE`, and bands (low, high, colour)."""
        styled = [CURVE | curve for curve in curves]
        lines = {name: [curve[name] for curve in styled] for name in ("ys", *CURVE)}
        around = [np.concatenate([low, high[::-1]]) for low, high, _ in bands]
        areas = {
            "xs": [np.concatenate([x, x[::-1]])] * len(around), "ys": around, "colour": [c for *_, c in bands],
        }  # fmt: skip
        self.put(curves={"xs": [x] * len(styled), **lines}, bands=areas, **data)


# --------------------------------------------------------------------------------------- map


class Plane(Panel):
    """A map: numbers through a scale of colours, or colours themselves, with lines and points over them."""

    def __init__(self, height: int, ranges: tuple[Any, Any], **options: Any) -> None:
        from bokeh.models import ColorBar, HoverTool, LinearColorMapper

        line = ("xs", "ys")
        sources = {"field": IMAGE, "colours": IMAGE, "boundary": line, "chains": line}
        super().__init__(sources, height, x_range=ranges[0], y_range=ranges[1], **options)
        self.fig.grid.visible = False
        self.scale = LinearColorMapper(palette="Cividis256", low=0.0, high=1.0)
        columns, level = {name: name for name in IMAGE}, {"level": "image"}
        field = self.fig.image(source=self.sources["field"], color_mapper=self.scale, **level, **columns)
        self.fig.image_rgba(source=self.sources["colours"], **level, **columns)
        dashed = {"color": "#8b0000", "line_width": 2.5, "line_dash": "dashed"}
        for name, look in (("boundary", {"color": INK, "line_width": 2}), ("chains", dashed)):
            white = {"color": "white", "line_width": 4.5, "alpha": 0.8}
            self.fig.multi_line("xs", "ys", source=self.sources[name], **white)
            self.fig.multi_line("xs", "ys", source=self.sources[name], **look)
        small = {"major_label_text_font_size": "11px", "label_standoff": 5, "padding": 4}
        self.bar = ColorBar(color_mapper=self.scale, width=10, **small)
        self.fig.add_layout(self.bar, "right")
        hover = HoverTool(renderers=[field], tooltips=[("", "@image{0.000}")], attachment="horizontal")
        self.fig.add_tools(hover)

    def show(
        self, sides: list[Array], title: str, field: Any = None, colours: Any = (), **lines: Any
    ) -> None:
        """Draw a field (values on a grid, a palette and its two ends), images over it, and lines."""
        self.fig.title.text, self.bar.visible = title, field is not None
        data = {"colours": images(sides, *colours), **lines}
        if field is not None:
            values, palette, low, high = field
            self.scale.update(palette=palette, low=low, high=high)
            data["field"] = images(sides, values.astype(np.float32))
        self.put(**data)


class Landscape(Plane):
    """A map of the log evidence; its lines are the path of learning."""

    def __init__(self) -> None:
        from bokeh.models import ColumnDataSource, CustomJSTickFormatter, Range1d

        super().__init__(320, (Range1d(-1.0, 1.0), Range1d(-1.0, 1.0)), name="landscape")
        self.here = ColumnDataSource({"x": [], "y": []})
        self.fig.axis.formatter = CustomJSTickFormatter(code=SHOWN)
        self.fig.axis.ticker.desired_num_ticks = 5
        self.fig.axis.minor_tick_line_color = None
        star = {"marker": "star", "color": "white", "line_color": INK, "size": 22, "line_width": 2}
        self.fig.scatter("x", "y", source=self.here, **star)

    def mark(self, state: PageState, names: list[str], path: Any = ()) -> None:
        """Draw the current hyperparameters and the path of learning."""
        (i, j), theta = state.axes, state.theta
        self.label(names[i], names[j])
        self.here.data = {"x": [theta[i] / LN10], "y": [theta[j] / LN10]}
        lines = {"xs": [[past[i] / LN10 for past in path]], "ys": [[past[j] / LN10 for past in path]]}
        self.sources["boundary"].data = lines

    def show_surface(self, found: Surface) -> None:
        """Draw the surface relative to its maximum."""
        top, known = float(np.nanmax(found.evidence)), np.isfinite(found.evidence)
        below = np.where(known, found.evidence - top, -1e6)
        low = min(-0.1, max(-DEPTH, float(below[known].min())))
        sides = [found.first / LN10, found.second / LN10]
        path = dict(self.sources["boundary"].data)
        words = f"below the maximum, {top:.2f}"
        self.show(sides, words, (below, "Cividis256", low, 0.0), boundary=path)
        for axis, side in zip((self.fig.x_range, self.fig.y_range), sides, strict=True):
            axis.update(start=float(side[0]), end=float(side[-1]))


# ------------------------------------------------------------------------------------ images


def diverging(low: str, high: str) -> Any:
    """Return a palette from one colour through white to another."""
    from bokeh.palettes import interp_palette

    return interp_palette((low, "#ffffff", high), 255)


def blend(proba: Array) -> NDArray[np.uint32]:
    """Return an image of the mixed colours of the classes."""
    mixed = mixed_colours(proba)
    opaque = np.concatenate([mixed, np.ones((*mixed.shape[:-1], 1))], axis=-1)
    image: NDArray[np.uint8] = np.ascontiguousarray((255.0 * opaque).astype(np.uint8))
    return image.view(np.uint32)[..., 0]  # Bokeh's format


def smooth(field: Array) -> Array:
    """Interpolate a field by cubic splines, on three times as many points along each side."""
    from scipy.ndimage import zoom

    factors = [(FINER * (n - 1) + 1) / n for n in field.shape[:2]]
    fine: Array = zoom(field, [*factors, 1.0][: field.ndim], order=3, mode="nearest")
    return np.clip(fine, field.min(), field.max())


def images(sides: list[Array], *pixels: Any) -> dict[str, Any]:
    """Return the data of images whose pixels have their centres at the points of grids with these ends."""
    ends, rows = np.array([side[[0, -1]] for side in sides]), []
    for image in pixels:
        step = np.ptp(ends, axis=1) / (np.array(image.shape[::-1]) - 1)
        rows.append((image, *(ends[:, 0] - 0.5 * step), *(np.ptp(ends, axis=1) + step)))
    return {name: [row[k] for row in rows] for k, name in enumerate(IMAGE)}


def outlines(sides: list[Array], margin: Array) -> dict[str, Any]:
    """Return the lines where any margin over a grid vanishes."""
    from contourpy import contour_generator

    x, y = sides
    fields = np.moveaxis(margin.reshape(len(y), len(x), -1), -1, 0)
    lines = [line for field in fields for line in contour_generator(x=x, y=y, z=field).lines(0.0)]
    return {"xs": [line[:, 0] for line in lines], "ys": [line[:, 1] for line in lines]}
