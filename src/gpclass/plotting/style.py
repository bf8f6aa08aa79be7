"""Colours, markers and drawing functions that all displays share."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import entr

from gpclass.core.protocols import Array

# Okabe and Ito's colours, then Paul Tol's, which suit people with colour blindness; markers and lines differ too.
STYLES = (
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "D", ":"),
    ("#E69F00", "v", (0, (5, 1, 1, 1, 1, 1))),
    ("#56B4E9", "P", (0, (8, 3))),
    ("#000000", "X", (0, (1, 1))),
    ("#882255", "*", (0, (3, 1, 1, 1))),
    ("#999933", "<", (0, (6, 1))),
    ("#332288", ">", (0, (2, 2))),
    ("#7F7F7F", "p", (0, (4, 1, 1, 1, 1, 1, 1, 1))),
    ("#661100", "h", (0, (8, 1, 2, 1))),
)
SEQUENTIAL = "cividis"  # its lightness increases evenly, so it can be printed in grey


def style(i: int) -> Any:
    """Return colour, marker and line style of the i-th item drawn."""
    return STYLES[i % len(STYLES)]


def mixed_colours(proba: Array) -> Array:
    """Return the colours of the classes mixed by probability, (..., 3), paler where the class is less certain."""
    n = proba.shape[-1]
    mixed = proba @ [[int(style(c)[0][i : i + 2], 16) / 255.0 for i in (1, 3, 5)] for c in range(n)]
    entropy = entr(proba).sum(axis=-1, keepdims=True) / np.log(n)
    return np.asarray(np.clip(mixed + 0.8 * entropy * (1.0 - mixed), 0.0, 1.0))


def bare(axis: Any) -> None:
    """Hide the top and the right spine of an axis."""
    axis.spines[["top", "right"]].set_visible(False)


def band(
    axis: Any, i: int, x: Any, *curve: Array, label: str, shade: str | None = None, color: Any = None
) -> None:
    """Draw the i-th curve, a mean, and the band between the lower and upper ends that follow it."""
    usual, _, line = style(i)
    middle, low, high = curve
    axis.fill_between(x, low, high, color=color or usual, alpha=0.2, linewidth=0, label=shade)
    axis.plot(x, middle, color=color or usual, linewidth=1.8, linestyle=line, label=label)


def scatter_classes(axis: Any, X: Array, codes: Any, classes: Any, **options: Any) -> None:
    """Draw the rows of two columns with one marker per class; two classes are white and black."""
    for i, label in enumerate(classes):
        colour, marker, _ = style(i)
        fill = ("white", "black")[i] if len(classes) == 2 else colour
        edge = "black" if fill == "white" else "white"
        kinds = {"s": 30, "marker": marker, "color": fill, "edgecolors": edge, "linewidths": 0.8, "zorder": 4}
        axis.scatter(*X[codes == i].T, label=str(label), **{**kinds, **options})


def legend_above(axis: Any, n: int, **options: Any) -> None:
    """Put the legend in lines of n entries above the axes, so that it does not cover the plot."""
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": min(n, 6), "frameon": False}
    axis.legend(handletextpad=0.5, columnspacing=1.2, **place, **options)


def outlined(width: float, colour: str) -> list[Any]:
    """Return path effects that draw a line on a wider one of another colour, so that it is visible everywhere."""
    from matplotlib.patheffects import Normal, Stroke

    return [Stroke(linewidth=width, foreground=colour), Normal()]
