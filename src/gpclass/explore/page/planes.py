"""The canvas of two columns: a map with the points on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.explore.page.look import COLOURS, FAINT, INK, blend, diverging, draw_points, figure, rgba
from gpclass.explore.pictures import Maps

FINER = 3
GREY = (0.6, 0.6, 0.6, 0.65)  # where it is left undecided
IMAGE = {name: name for name in ("image", "x", "y", "dw", "dh")}  # the columns of a source of images


@dataclass(frozen=True, eq=False)
class PlanePanel:
    """A map, and the sources and scales of what it draws."""

    fig: Any
    field: Any  # numbers, through the colours of a scale
    mixed: Any  # colours of several classes
    veil: Any
    boundary: Any
    truth: Any  # the boundary by sampling
    scale: Any
    bar: Any


def plane_panel(points: Any, cursor: Any, ranges: tuple[Any, Any]) -> PlanePanel:
    """Return one map."""
    from bokeh.models import ColumnDataSource, HoverTool, LinearColorMapper

    fig = figure(420, x_range=ranges[0], y_range=ranges[1], min_border_left=50)
    fig.grid.visible = False
    scale = LinearColorMapper(palette=diverging(COLOURS[0], COLOURS[1]), low=0.0, high=1.0)
    field, mixed, veil = (ColumnDataSource(nothing()) for _ in range(3))
    drawn = fig.image(source=field, color_mapper=scale, level="image", **IMAGE)
    for source in (mixed, veil):
        fig.image_rgba(source=source, level="image", **IMAGE)
    boundary, truth = (ColumnDataSource({"xs": [], "ys": []}) for _ in range(2))
    looks = ({"color": INK, "line_width": 2}, {"color": "#8b0000", "line_width": 2.5, "line_dash": "dashed"})
    for source, look in zip((boundary, truth), looks, strict=True):
        fig.multi_line("xs", "ys", source=source, color="white", line_width=4.5, alpha=0.8)
        fig.multi_line("xs", "ys", source=source, **look)
    draw_points(fig, points, "y")
    fig.scatter("x", "y", source=cursor, marker="cross", size=16, color=FAINT, line_width=2, level="overlay")
    bar = colour_bar(fig, scale)
    fig.add_tools(HoverTool(renderers=[drawn], tooltips=[("", "@image{0.000}")], attachment="horizontal"))
    return PlanePanel(fig, field, mixed, veil, boundary, truth, scale, bar)


def colour_bar(fig: Any, scale: Any) -> Any:
    """Draw the colours of a scale beside a figure."""
    from bokeh.models import ColorBar

    small = {"major_label_text_font_size": "11px", "label_standoff": 5, "padding": 4}
    bar = ColorBar(color_mapper=scale, width=10, **small)
    fig.add_layout(bar, "right")
    return bar


def smooth(field: Array) -> Array:
    """Return a field between its points as well, by cubic splines, on three times as many of them a side."""
    from scipy.ndimage import zoom

    rows, columns = field.shape[:2]
    factors = [(FINER * (rows - 1) + 1) / rows, (FINER * (columns - 1) + 1) / columns, 1.0][: field.ndim]
    fine: Array = zoom(field, factors, order=3, mode="nearest")
    return np.clip(fine, field.min(), field.max())


def placed(x: Array, y: Array, image: Any) -> dict[str, Any]:
    """Return the data of an image whose pixels have their centres at the points of the grid."""
    rows, columns = image.shape
    dx, dy = (x[-1] - x[0]) / (columns - 1), (y[-1] - y[0]) / (rows - 1)
    return {
        "image": [image], "x": [x[0] - 0.5 * dx], "y": [y[0] - 0.5 * dy],
        "dw": [x[-1] - x[0] + dx], "dh": [y[-1] - y[0] + dy],
    }  # fmt: skip


def nothing() -> dict[str, Any]:
    """Return the data of no image."""
    return {name: [] for name in IMAGE}


def clear_plane(panel: PlanePanel) -> None:
    """Remove what was drawn."""
    panel.fig.title.text = " "
    panel.field.data = panel.mixed.data = panel.veil.data = nothing()
    panel.boundary.data = {"xs": [], "ys": []}
    panel.bar.visible = False


def show_proba(panel: PlanePanel, maps: Maps, title: str) -> None:
    """Draw the probability of the second class, or the mixed colours of three and more."""
    panel.fig.title.text = title
    two = len(maps.shown) == 2
    panel.bar.visible = two
    if two:
        low, high = maps.shown
        palette = diverging(COLOURS[low], COLOURS[high])
        if panel.scale.palette != palette:
            panel.scale.palette = palette
        panel.field.data = placed(maps.x, maps.y, smooth(maps.proba[..., high]).astype(np.float32))
        panel.mixed.data = nothing()
    else:
        panel.field.data = nothing()
        panel.mixed.data = placed(maps.x, maps.y, blend(smooth(maps.proba)))
    panel.boundary.data = {"xs": maps.boundary[0], "ys": maps.boundary[1]}
    left = maps.decision < 0
    veil = np.where(left[..., None], np.array(GREY), 0.0)
    panel.veil.data = placed(maps.x, maps.y, rgba(veil)) if left.any() else nothing()


def show_field(panel: PlanePanel, maps: Maps, values: Array, title: str, palette: Any, ends: Any) -> None:
    """Draw any numbers over the grid."""
    panel.fig.title.text = title
    panel.scale.update(palette=palette, low=ends[0], high=ends[1])
    panel.bar.visible = True
    panel.field.data = placed(maps.x, maps.y, smooth(values).astype(np.float32))
    panel.boundary.data = {"xs": maps.boundary[0], "ys": maps.boundary[1]}
