"""Colours and markers of the page, and what all its figures have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpclass.core.protocols import Array
from gpclass.explore.points import MOST_CLASSES
from gpclass.plotting.style import STYLES

COLOURS = tuple(colour for colour, _, _ in STYLES[:MOST_CLASSES])
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle")
SIGNS = ("●", "■", "▲", "◆", "▼")
DASHES = ("solid", "dashed", "dotdash", "dotted", "dashdot")  # of classes
INK, FAINT, PAPER = "#222222", "#8a8a8a", "#ffffff"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


def rgb(colour: str) -> Array:
    """Return red, green and blue of a colour, between 0 and 1."""
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0


def diverging(low: str, high: str, n: int = 255) -> list[str]:
    """Return a palette from one colour over white to another."""
    ends, white = (rgb(low), rgb(high)), np.ones(3)
    out = []
    for t in np.linspace(-1.0, 1.0, n):
        colour = white + abs(t) ** 0.85 * (ends[int(t > 0)] - white)
        out.append("#" + "".join(f"{round(255 * c):02x}" for c in colour))
    return out


def blend(proba: Array) -> NDArray[np.uint32]:
    """Return an image of the classes' colours mixed by their probabilities, (rows, columns)."""
    n = proba.shape[-1]
    colours = np.array([rgb(colour) for colour in COLOURS[:n]])
    # The fainter, the less certain: what all classes share of the probability is white.
    share = (proba.max(axis=-1, keepdims=True) - 1.0 / n) / (1.0 - 1.0 / n)
    mixed = proba @ colours
    mixed = 1.0 + (0.15 + 0.65 * share) * (mixed - 1.0)
    return rgba(np.concatenate([mixed, np.ones((*mixed.shape[:-1], 1))], axis=-1))


def rgba(values: Array) -> NDArray[np.uint32]:
    """Return colours with their opacity, (..., 4) between 0 and 1, as Bokeh's images want them."""
    image: NDArray[np.uint8] = np.ascontiguousarray(np.clip(255.0 * values, 0, 255).astype(np.uint8))
    return image.view(np.uint32)[..., 0]


def figure(height: int, **options: Any) -> Any:
    """Return an empty figure in the style of the page; dragging in it moves points, not the axes."""
    from bokeh.plotting import figure as make

    given: dict[str, Any] = {
        "height": height, "sizing_mode": "stretch_width", "tools": "", "toolbar_location": None,
        "title": " ", "min_border_right": 12, "background_fill_color": PAPER, "output_backend": "canvas",
    }  # fmt: skip
    fig = make(**(given | options))
    fig.grid.grid_line_color = "#e6e6e6"
    fig.outline_line_color = "#cccccc"
    fig.axis.axis_label_text_font = FONT
    if fig.title is not None:
        fig.title.update(text_font=FONT, text_font_size="14px", text_color=INK)
    fig.axis.axis_label_text_font_style = "normal"
    fig.axis.axis_label_text_font_size = "13px"
    fig.axis.major_label_text_font_size = "12px"
    fig.axis.axis_label_text_color = fig.axis.major_label_text_color = INK
    return fig


def draw_points(fig: Any, source: Any, y: str) -> None:
    """Draw the points, a ring around the selected one, and the cursor of the keyboard."""
    looks = {"marker": "marker", "fill_color": "colour", "line_color": "white", "line_width": 1.2, "size": 11}
    fig.scatter("x", y, source=source, level="overlay", **looks)
    fig.scatter(
        "x", y, source=source, marker="circle", size="ring", fill_color=None,
        line_color=INK, line_width=2.5, level="overlay",
    )  # fmt: skip
