"""The figures of the canvas: curves over one column, and maps over two."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpclass.core.protocols import Array
from gpclass.explore.scene import Picture, Scene
from gpclass.explore.state import MOST_CLASSES
from gpclass.plotting.style import STYLES

COLOURS = tuple(colour for colour, _, _ in STYLES[:MOST_CLASSES])
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle")
DASHES = ("solid", "solid", "dashed", "dotdash", "dotted")  # the second class is alone where there are two
INK, FAINT = "#222222", "#8a8a8a"
GREY = (0.6, 0.6, 0.6, 0.65)  # where a case is left undecided
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
STRIP = (-0.155, -0.105)  # where the decision is drawn, below the probabilities
FINER = 3  # pixels of an image for each point of the grid along a side
IMAGE = ("image", "x", "y", "dw", "dh")  # the columns of a source of images


def figure(height: int, **options: Any) -> Any:
    """Return an empty figure in the style of the page; dragging in it moves points, not the axes."""
    from bokeh.plotting import figure as make

    given: dict[str, Any] = {
        "height": height, "sizing_mode": "stretch_width", "tools": "", "toolbar_location": None,
        "title": " ", "min_border_right": 12, "background_fill_color": "#ffffff", "output_backend": "canvas",
    }  # fmt: skip
    fig = make(**(given | options))
    fig.grid.grid_line_color = "#e6e6e6"
    fig.outline_line_color = "#cccccc"
    fig.axis.axis_label_text_font = FONT
    fig.axis.axis_label_text_font_style = "normal"
    fig.axis.axis_label_text_font_size = "13px"
    fig.axis.major_label_text_font_size = "12px"
    fig.axis.axis_label_text_color = fig.axis.major_label_text_color = INK
    if fig.title is not None:
        fig.title.update(text_font=FONT, text_font_size="14px", text_color=INK)
    return fig


class Panel:
    """The named data sources of what one or two figures draw."""

    def __init__(self, **columns: Any) -> None:
        from bokeh.models import ColumnDataSource

        self.sources = {
            name: ColumnDataSource({column: [] for column in each}) for name, each in columns.items()
        }

    def put(self, **data: Any) -> None:
        """Draw these data; what is not given is erased."""
        for name, source in self.sources.items():
            source.data = data.get(name, {column: [] for column in source.data})


def draw_points(fig: Any, points: Any) -> None:
    """Draw the points of a source, and a ring around the selected one."""
    looks = {"marker": "marker", "fill_color": "colour", "line_color": "white", "line_width": 1.2, "size": 11}
    fig.scatter("x", "y", source=points, level="overlay", **looks)
    ring = {"marker": "circle", "size": "ring", "fill_color": None, "line_color": INK, "line_width": 2.5}
    fig.scatter("x", "y", source=points, level="overlay", **ring)


def signed(words: str) -> str:
    """Return words with minus signs in place of hyphens before numbers."""
    return words.replace(" -", " −")


# -------------------------------------------------------------------------------------- line


class Line(Panel):
    """The latent function above the probability, over one column."""

    def __init__(self, points: Any, cursor: Any, x_range: Any) -> None:
        from bokeh.layouts import column
        from bokeh.models import Range1d

        curve = ("x", "mean", "below", "above", "p", "low", "high")
        super().__init__(
            draws=("xs", "ys"), chains=("x", "p"), strip=("left", "right", "colour", "pattern"),
            boundaries=("x",), **{f"class{k}": curve for k in range(MOST_CLASSES)},
        )  # fmt: skip
        self.latent = top = figure(230, x_range=x_range, y_range=Range1d(-1.0, 1.0))
        self.proba = bottom = figure(290, x_range=x_range, y_range=Range1d(-0.19, 1.09))
        top.yaxis.axis_label = "latent function f"
        top.min_border_left = bottom.min_border_left = 62
        bottom.yaxis.ticker = [0.0, 0.25, 0.5, 0.75, 1.0]
        get = self.sources
        top.multi_line("xs", "ys", source=get["draws"], color="#555555", alpha=0.35, line_width=1)
        for k in range(MOST_CLASSES):
            look = {
                "source": get[f"class{k}"],
                "color": COLOURS[k],
                "line_width": 2.5,
                "line_dash": DASHES[k],
            }
            band = {"source": get[f"class{k}"], "fill_color": COLOURS[k], "fill_alpha": 0.17}
            for fig, middle, low, high in ((top, "mean", "below", "above"), (bottom, "p", "low", "high")):
                fig.varea("x", low, high, **band)
                fig.line("x", middle, **look)
        bottom.line("x", "p", source=get["chains"], color=INK, line_width=2, line_dash="dashed")
        bottom.quad(
            left="left", right="right", bottom=STRIP[0], top=STRIP[1], source=get["strip"], fill_color="colour",
            line_color=None, hatch_pattern="pattern", hatch_color=INK, hatch_alpha=0.5,
        )  # fmt: skip
        bottom.vspan("x", source=get["boundaries"], color=INK, line_width=1.5, line_dash="dotted")
        draw_points(bottom, points)
        for fig in (top, bottom):
            fig.vspan("x", source=cursor, color=FAINT, line_dash="dashed", line_width=1, level="underlay")
        self.root = column(top, bottom, sizing_mode="stretch_width")

    def show(self, scene: Scene | None) -> None:
        """Draw the curves of a scene; what cannot be drawn is erased."""
        self.latent.title.text = "" if scene is None else signed(scene.title)
        if scene is None or scene.picture is None:
            self.put()
            return
        picture, points = scene.picture, scene.state.points
        curves = {f"class{code}": _curve(picture, i, code) for i, code in enumerate(picture.curves)}
        places = picture.boundaries()
        self.put(**curves, strip=_strip(picture, places), boundaries={"x": places})
        one = f" of class {points.labels[picture.curves[0]]}" if len(picture.curves) == 1 else ""
        self.proba.yaxis.axis_label, self.proba.xaxis.axis_label = f"probability{one}", points.names[0]


def _curve(picture: Picture, i: int, code: int) -> dict[str, Any]:
    p = picture.proba[:, code]
    low, high = picture.interval or (p, p)
    mean, below, above = (each[:, i] for each in picture.latent or ())
    values = {"x": picture.sides[0], "mean": mean, "below": below, "above": above}
    return {**values, "p": p, "low": low, "high": high}


def _strip(picture: Picture, places: list[float]) -> dict[str, Any]:
    """Return the decision between each two of its boundaries, as coloured rectangles."""
    x = picture.sides[0]
    edges = np.array([x[0], *places, x[-1]])
    middles = 0.5 * (edges[:-1] + edges[1:])
    codes = picture.decision[np.abs(x - middles[:, None]).argmin(axis=1)]
    return {
        "left": edges[:-1], "right": edges[1:], "pattern": ["/" if code < 0 else " " for code in codes],
        "colour": ["#dddddd" if code < 0 else COLOURS[code] for code in codes],
    }  # fmt: skip


# ------------------------------------------------------------------------------------- plane


class Plane(Panel):
    """A map over two columns: numbers through a scale of colours, or colours themselves."""

    def __init__(self, points: Any, cursor: Any, ranges: tuple[Any, Any]) -> None:
        from bokeh.models import HoverTool, LinearColorMapper

        super().__init__(field=IMAGE, colours=IMAGE, boundary=("xs", "ys"), chains=("xs", "ys"))
        self.fig = fig = figure(420, x_range=ranges[0], y_range=ranges[1], min_border_left=50)
        fig.grid.visible = False
        self.scale = LinearColorMapper(palette=diverging(COLOURS[0], COLOURS[1]), low=0.0, high=1.0)
        columns = {name: name for name in IMAGE}
        field = fig.image(source=self.sources["field"], color_mapper=self.scale, level="image", **columns)
        fig.image_rgba(source=self.sources["colours"], level="image", **columns)
        dashed = {"color": "#8b0000", "line_width": 2.5, "line_dash": "dashed"}
        for name, look in (("boundary", {"color": INK, "line_width": 2}), ("chains", dashed)):
            fig.multi_line("xs", "ys", source=self.sources[name], color="white", line_width=4.5, alpha=0.8)
            fig.multi_line("xs", "ys", source=self.sources[name], **look)
        draw_points(fig, points)
        fig.scatter(
            "x", "y", source=cursor, marker="cross", size=16, color=FAINT, line_width=2, level="overlay"
        )
        self.bar = colour_bar(fig, self.scale)
        fig.add_tools(HoverTool(renderers=[field], tooltips=[("", "@image{0.000}")], attachment="horizontal"))

    def clear(self) -> None:
        """Erase everything."""
        self.put()
        self.fig.title.text, self.bar.visible = " ", False

    def show_proba(self, picture: Picture, title: str) -> None:
        """Draw the probability of the second class, or the mixed colours of several, and the undecided region."""
        undecided = (picture.decision < 0)[..., None]
        colours = [rgba(np.where(undecided, GREY, 0.0))] if undecided.any() else []
        if picture.second is None:
            self.show(picture, title, colours=[blend(smooth(picture.proba)), *colours])
        else:
            palette = diverging(*(COLOURS[code] for code in picture.present))
            self.show(picture, title, (picture.second, palette, 0.0, 1.0), colours)

    def show(self, picture: Picture, title: str, field: Any = None, colours: Any = ()) -> None:
        """Draw a field (values on the grid of a picture, a palette and its two ends), and images over it."""
        self.fig.title.text, self.bar.visible = title, field is not None
        data = {
            "colours": images(picture.sides, *colours),
            "boundary": outlines(picture.sides, picture.margin),
        }
        if field is not None:
            values, palette, low, high = field
            self.scale.update(palette=palette, low=low, high=high)
            data["field"] = images(picture.sides, smooth(values).astype(np.float32))
        self.put(**data)


def colour_bar(fig: Any, scale: Any) -> Any:
    """Draw the colours of a scale beside a figure."""
    from bokeh.models import ColorBar

    small = {"major_label_text_font_size": "11px", "label_standoff": 5, "padding": 4}
    bar = ColorBar(color_mapper=scale, width=10, **small)
    fig.add_layout(bar, "right")
    return bar


def diverging(low: str, high: str) -> Any:
    """Return a palette from one colour through white to another."""
    from bokeh.palettes import interp_palette

    return interp_palette((low, "#ffffff", high), 255)


def blend(proba: Array) -> NDArray[np.uint32]:
    """Return an image of the colours of the classes, mixed by probability and paler where it is less certain."""
    n = proba.shape[-1]
    colours = np.array([[int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5)] for colour in COLOURS[:n]])
    certainty = (proba.max(axis=-1, keepdims=True) - 1.0 / n) / (1.0 - 1.0 / n)
    mixed = 1.0 + (0.15 + 0.65 * certainty) * (proba @ colours - 1.0)
    return rgba(np.concatenate([mixed, np.ones((*mixed.shape[:-1], 1))], axis=-1))


def rgba(values: Array) -> NDArray[np.uint32]:
    """Return colours with their opacity, (..., 4) between 0 and 1, in the format of Bokeh's images."""
    image: NDArray[np.uint8] = np.ascontiguousarray(np.clip(255.0 * values, 0, 255).astype(np.uint8))
    return image.view(np.uint32)[..., 0]


def smooth(field: Array) -> Array:
    """Interpolate a field by cubic splines, on three times as many points along each side."""
    from scipy.ndimage import zoom

    factors = [(FINER * (n - 1) + 1) / n for n in field.shape[:2]]
    fine: Array = zoom(field, [*factors, 1.0][: field.ndim], order=3, mode="nearest")
    return np.clip(fine, field.min(), field.max())


def images(sides: list[Array], *pixels: Any) -> dict[str, Any]:
    """Return the data of images whose pixels have their centres at the points of grids with these ends."""
    data: dict[str, Any] = {name: [] for name in IMAGE}
    for image in pixels:
        lengths = [side[-1] - side[0] for side in sides]
        steps = [length / (n - 1) for length, n in zip(lengths, image.shape[::-1], strict=True)]
        corner = [side[0] - 0.5 * step for side, step in zip(sides, steps, strict=True)]
        size = [length + step for length, step in zip(lengths, steps, strict=True)]
        for name, value in zip(IMAGE, (image, *corner, *size), strict=True):
            data[name].append(value)
    return data


def outlines(sides: list[Array], margin: Array) -> dict[str, Any]:
    """Return the lines where any margin over a grid vanishes."""
    from contourpy import contour_generator

    x, y = sides
    fields = np.moveaxis(margin.reshape(len(y), len(x), -1), -1, 0)
    lines = [line for field in fields for line in contour_generator(x=x, y=y, z=field).lines(0.0)]
    return {"xs": [line[:, 0] for line in lines], "ys": [line[:, 1] for line in lines]}
