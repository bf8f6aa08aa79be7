"""The figures of the evidence: its two parts, and its surface over two hyperparameters."""

from __future__ import annotations

import numpy as np

from gpclass.core.protocols import Array
from gpclass.explore.page.figures import COLOURS, IMAGE, INK, Panel, colour_bar, figure, images, signed
from gpclass.explore.scene import Occam
from gpclass.explore.steps import Surface

DEPTH = 12.0  # nats below the maximum that the colours of the surface span
LN10 = float(np.log(10.0))
# Sliders and axes are decimal logarithms, and show the value.
SHOWN = "return Number(Math.pow(10, tick).toPrecision(3)).toString()"


class Bars(Panel):
    """The log evidence as the difference of fit and complexity."""

    def __init__(self) -> None:
        from bokeh.models import Range1d

        super().__init__(bars=("y", "left", "right", "colour"))
        self.rows = ["log evidence", "complexity", "fit"]
        self.fig = fig = figure(
            105, y_range=self.rows, title=None, x_range=Range1d(-1.0, 0.0), min_border_left=92
        )
        look = {"fill_color": "colour", "line_color": None}
        fig.hbar("y", 0.62, "right", "left", source=self.sources["bars"], **look)
        fig.ygrid.visible = False
        fig.axis.minor_tick_line_color = None

    def show(self, parts: Occam | None) -> None:
        """Draw the parts; None erases them."""
        evidence, fit = (0.0, 0.0) if parts is None else (parts.evidence, parts.fit)
        self.fig.x_range.start = min(1.05 * evidence, 1.05 * fit, -1e-3)
        ends = {"left": [0.0, fit, 0.0], "right": [evidence, evidence, fit]}
        self.put(bars={"y": self.rows, "colour": [COLOURS[k] for k in (0, 4, 2)], **ends})


class Landscape(Panel):
    """The log evidence over two hyperparameters, where they are now, and the path of learning."""

    def __init__(self) -> None:
        from bokeh.models import CustomJSTickFormatter, LinearColorMapper, Range1d

        super().__init__(surface=IMAGE, path=("x", "y"), here=("x", "y"))
        get = self.sources
        self.fig = fig = figure(320, x_range=Range1d(-1.0, 1.0), y_range=Range1d(-1.0, 1.0), name="landscape")
        fig.axis.formatter = CustomJSTickFormatter(code=SHOWN)
        fig.axis.ticker.desired_num_ticks = 5
        fig.axis.minor_tick_line_color = None
        fig.grid.visible = False
        fig.title.text_font_size = "13px"
        self.scale = LinearColorMapper(palette="Cividis256", low=-DEPTH, high=0.0)
        columns = {name: name for name in IMAGE}
        fig.image(source=get["surface"], color_mapper=self.scale, level="image", **columns)
        fig.line("x", "y", source=get["path"], color="white", line_width=3.5, alpha=0.9)
        fig.line("x", "y", source=get["path"], color=INK, line_width=1.5)
        fig.scatter("x", "y", source=get["path"], color="white", line_color=INK, size=6)
        star = {"marker": "star", "color": "white", "line_color": INK, "size": 22, "line_width": 2}
        fig.scatter("x", "y", source=get["here"], **star)
        colour_bar(fig, self.scale)

    def clear(self) -> None:
        """Erase what belongs to other points or to another kernel."""
        self.put()
        self.fig.title.text = "log evidence"

    def show(self, found: Surface) -> None:
        """Draw the surface relative to its maximum."""
        top, known = float(np.nanmax(found.evidence)), np.isfinite(found.evidence)
        below = np.where(known, found.evidence - top, -1e6).astype(np.float32)
        data = images([found.first / LN10, found.second / LN10], below)
        self.sources["surface"].data = data
        for axis, start, size in ((self.fig.x_range, "x", "dw"), (self.fig.y_range, "y", "dh")):
            axis.update(start=float(data[start][0]), end=float(data[start][0] + data[size][0]))
        self.fig.title.text = signed(f"below the maximum, {top:.2f}")
        self.scale.low = min(-0.1, max(-DEPTH, float(below[known].min())))

    def mark(self, name: str, theta: Array, chosen: tuple[int, int]) -> None:
        """Draw the current hyperparameters ("here"), or the "path" of learning, (n, n_hyperparameters)."""
        x, y = theta[:, list(chosen)].T / LN10
        self.sources[name].data = {"x": x, "y": y}
