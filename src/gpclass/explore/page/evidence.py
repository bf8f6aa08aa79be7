"""The log evidence over two hyperparameters, where they are now, and the path of learning."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.explore.page.figures import INK, Plane, signed
from gpclass.explore.steps import Surface

DEPTH = 12.0  # nats below the maximum that the colours of the surface span
LN10 = float(np.log(10.0))
# Sliders and axes are decimal logarithms, and show the value.
SHOWN = "return Number(Math.pow(10, tick).toPrecision(3)).toString()"


class Landscape(Plane):
    """A map of the log evidence; its lines are the path of learning."""

    def __init__(self) -> None:
        from bokeh.models import ColumnDataSource, CustomJSTickFormatter, Range1d

        super().__init__(320, (Range1d(-1.0, 1.0), Range1d(-1.0, 1.0)), name="landscape")
        self.here = ColumnDataSource({"x": [], "y": []})
        self.fig.axis.formatter = CustomJSTickFormatter(code=SHOWN)
        self.fig.axis.ticker.desired_num_ticks = 5
        self.fig.axis.minor_tick_line_color = None
        self.fig.title.text_font_size = "13px"
        star = {"marker": "star", "color": "white", "line_color": INK, "size": 22, "line_width": 2}
        self.fig.scatter("x", "y", source=self.here, **star)

    def mark(self, theta: Any, chosen: tuple[int, int]) -> None:
        """Draw where the hyperparameters are now."""
        x, y = (theta[k] / LN10 for k in chosen)
        self.here.data = {"x": [x], "y": [y]}

    def trace(self, path: Any, chosen: tuple[int, int]) -> None:
        """Draw the path of learning."""
        x, y = np.array(path)[:, list(chosen)].T / LN10
        self.sources["boundary"].data = {"xs": [x], "ys": [y]}

    def show_surface(self, found: Surface) -> None:
        """Draw the surface relative to its maximum."""
        top, known = float(np.nanmax(found.evidence)), np.isfinite(found.evidence)
        below = np.where(known, found.evidence - top, -1e6)
        low = min(-0.1, max(-DEPTH, float(below[known].min())))
        sides = [found.first / LN10, found.second / LN10]
        path = dict(self.sources["boundary"].data)
        words = signed(f"below the maximum, {top:.2f}")
        self.show(sides, words, (below, "Cividis256", low, 0.0), boundary=path)
        for axis, side in zip((self.fig.x_range, self.fig.y_range), sides, strict=True):
            axis.update(start=float(side[0]), end=float(side[-1]))
