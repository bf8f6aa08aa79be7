"""The panels beside the canvas: evidence, active learning, downloads, and messages."""

from __future__ import annotations

import re
from html import escape
from types import SimpleNamespace
from typing import Any

import numpy as np

from gpclass.explore.kernels import build, dials
from gpclass.explore.occam import Surface
from gpclass.explore.page.controls import LN10, SHOWN, WIDE
from gpclass.explore.page.look import COLOURS, INK, figure
from gpclass.explore.page.planes import IMAGE, colour_bar, nothing, placed
from gpclass.explore.scene import Scene
from gpclass.explore.share import KINDS
from gpclass.explore.state import State

DEPTH = 12.0  # nats below the maximum that the colours of the surface span
# The file is in the page already; a link that is clicked at once saves it.
SAVE = """
const [name, mime, content] = cb_obj.value.split("|")
const link = document.createElement("a")
link.href = `data:${mime};base64,${content}`
link.download = name
if (name) link.click()
"""


class Panels(SimpleNamespace):
    """Widgets and sources of the panels, by name."""


def make_panels() -> Panels:
    """Return the widgets of the panels."""
    from bokeh.models import Button, Checkbox, CustomJS, Div, Select, TextInput

    file = TextInput(value="", name="file", visible=False)
    file.js_on_change("value", CustomJS(code=SAVE))
    return Panels(
        status=Div(text="", name="status", sizing_mode="stretch_width"),
        words=Div(text="", name="words", sizing_mode="stretch_width"),
        split=Div(text="", name="split", sizing_mode="stretch_width"),
        first=Select(title="Across", options=["0"], value="0", name="across", **WIDE),
        second=Select(title="Upwards", options=["1"], value="1", name="upwards", **WIDE),
        draw=Button(label="Draw the surface", name="surface", **WIDE),
        follow=Checkbox(label="after each change", active=True, name="follow"),
        score=Select(title="Most informative by", options=["bald", "entropy"], value="bald", name="score", **WIDE),
        ask=Button(label="Find the place", name="ask", **WIDE),
        answer=Button(label="Ask the oracle", name="answer", disabled=True, **WIDE),
        asked=Div(text="", name="asked", sizing_mode="stretch_width"),
        files={kind: Button(label=label, name=f"file-{kind}", **WIDE) for kind, (label, _, _) in KINDS.items()},
        file=file,
        keys=TextInput(value="", name="keys", visible=False),
        **_occam_figure(),
        **_surface_figure(),
    )  # fmt: skip


def _occam_figure() -> dict[str, Any]:
    from bokeh.models import ColumnDataSource, Range1d

    rows = ["log evidence", "complexity", "fit"]
    fig = figure(105, y_range=rows, title=None, x_range=Range1d(-1.0, 0.0), min_border_left=92)
    colours = [COLOURS[0], COLOURS[4], COLOURS[2]]
    source = ColumnDataSource({"y": rows, "left": [0.0] * 3, "right": [0.0] * 3, "colour": colours})
    fig.hbar("y", 0.62, "right", "left", source=source, fill_color="colour", line_color=None)
    fig.ygrid.visible = False
    fig.axis.minor_tick_line_color = None
    return {"occam_fig": fig, "occam": source}


def _surface_figure() -> dict[str, Any]:
    from bokeh.models import ColumnDataSource, CustomJSTickFormatter, LinearColorMapper, Range1d

    # Axes of logarithms to base ten, whose labels are the values.
    fig = figure(320, x_range=Range1d(-1.0, 1.0), y_range=Range1d(-1.0, 1.0), name="landscape")
    fig.axis.formatter = CustomJSTickFormatter(code=SHOWN)
    fig.axis.ticker.desired_num_ticks = 5
    fig.axis.minor_tick_line_color = None
    fig.grid.visible = False
    fig.title.text_font_size = "13px"
    scale = LinearColorMapper(palette="Cividis256", low=-DEPTH, high=0.0)
    surface = ColumnDataSource(nothing())
    fig.image(source=surface, color_mapper=scale, level="image", **IMAGE)
    path, here = ColumnDataSource({"x": [], "y": []}), ColumnDataSource({"x": [], "y": []})
    fig.line("x", "y", source=path, color="white", line_width=3.5, alpha=0.9)
    fig.line("x", "y", source=path, color=INK, line_width=1.5)
    fig.scatter("x", "y", source=path, color="white", line_color=INK, size=6)
    fig.scatter("x", "y", source=here, marker="star", color="white", line_color=INK, size=22, line_width=2)
    colour_bar(fig, scale)
    return {"surface_fig": fig, "surface": surface, "scale": scale, "here": here, "path": path}


def roots(p: Panels) -> list[Any]:
    """Return what the page embeds."""
    from bokeh.layouts import column, row

    def wide(*children: Any) -> Any:
        return row(*children, sizing_mode="stretch_width")

    files = list(p.files.values())
    return [
        p.status, p.words, column(p.keys, p.file, name="hidden"),
        column(
            p.split, p.occam_fig, wide(p.first, p.second), wide(p.draw, p.follow), p.surface_fig,
            name="evidence", sizing_mode="stretch_width",
        ),
        column(wide(p.score), wide(p.ask, p.answer), p.asked, name="active", sizing_mode="stretch_width"),
        column(wide(*files[:3]), wide(*files[3:]), name="files", sizing_mode="stretch_width"),
    ]  # fmt: skip


def plain(words: str) -> str:
    """Return words as they are read: without markup of a table's names, and with minus signs."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", escape(words))


def say(p: Panels, words: str, *, error: bool = False) -> None:
    """Show a sentence in the line of messages; nothing removes the last one."""
    mark = "⚠ " if error else ""
    kind = "error" if error else "note"
    p.status.text = f'<span class="{kind}">{mark}{plain(words)}</span>' if words else ""


def show_evidence(p: Panels, scene: Scene) -> None:
    """Draw the two parts of the log evidence, and where the hyperparameters are on the surface."""
    parts = scene.occam
    evidence, fit = (0.0, 0.0) if parts is None else (parts.evidence, parts.fit)
    p.occam.patch({
        "left": [(slice(3), [0.0, fit, 0.0])],
        "right": [(slice(3), [evidence, evidence, fit])],
    })  # fmt: skip
    p.occam_fig.x_range.start = min(1.05 * evidence, 1.05 * fit, -1e-3)
    words = "This method gives no log evidence that could be split into fit and complexity."
    if parts is not None:
        words = (
            f"log evidence {evidence:.2f} = fit {fit:.2f} − complexity {parts.complexity:.2f}. <small>Fit: how "
            "probable the labels are under the functions that remain. Complexity: how far these are from what the "
            "prior expects.</small>"
        )
    p.split.text = words.replace(" -", " −")
    show_here(p, scene.state)


def chosen(p: Panels, state: State) -> tuple[int, int]:
    """Return the positions of the two hyperparameters of the surface."""
    last = len(state.theta) - 1
    return min(int(p.first.value), last), min(int(p.second.value), last)


def show_here(p: Panels, state: State) -> None:
    """Mark the current hyperparameters on the surface, and offer those of this kernel."""
    names = [dial.name for dial in dials(build(state.choice, state.points.view), state.points.names)]
    options = [(str(k), name) for k, name in enumerate(names)]
    for widget, default in ((p.first, 0), (p.second, 1)):
        if widget.options != options:
            widget.update(options=options, value=str(min(default, len(names) - 1)))
    i, j = chosen(p, state)
    p.surface_fig.xaxis.axis_label, p.surface_fig.yaxis.axis_label = names[i], names[j]
    p.here.data = {"x": [state.theta[i] / LN10], "y": [state.theta[j] / LN10]}


def show_surface(p: Panels, found: Surface) -> None:
    """Draw the surface relative to its maximum."""
    top = float(np.nanmax(found.evidence))
    known = np.isfinite(found.evidence)
    below = np.where(known, found.evidence - top, -1e6).astype(np.float32)
    data = placed(found.first / LN10, found.second / LN10, below)
    p.surface.data = data
    for axis, start, size in ((p.surface_fig.x_range, "x", "dw"), (p.surface_fig.y_range, "y", "dh")):
        axis.update(start=float(data[start][0]), end=float(data[start][0] + data[size][0]))
    p.surface_fig.title.text = f"below the maximum, {top:.2f}".replace("-", "−")
    p.scale.low = min(-0.1, max(-DEPTH, float(below[known].min())))


def clear_surface(p: Panels) -> None:
    """Remove the surface and the path of learning, which belong to other points or to another kernel."""
    p.surface.data = nothing()
    p.surface_fig.title.text = "log evidence"
    p.path.data = {"x": [], "y": []}


def show_path(p: Panels, state: State, theta: Any) -> None:
    """Draw the path of learning on the surface."""
    i, j = chosen(p, state)
    values = np.asarray(theta, dtype=float).reshape(-1, len(state.theta)) / LN10
    p.path.data = {"x": values[:, i], "y": values[:, j]}
