"""The widgets of the page: what each one shows of a state, how it changes the state, and its position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.explore import state as actions
from gpclass.explore.page.figures import COLOURS, Map
from gpclass.explore.state import MOST_CLASSES, PageState, dials
from gpclass.kernels import kernel_names
from gpclass.learning.prediction import ROUTES
from gpclass.parameters import INFERENCES, LIKELIHOODS

LN10 = float(np.log(10.0))
# Sliders and axes use decimal logarithms of the hyperparameters, and display the values themselves.
SHOWN = "return Number(Math.pow(10, tick).toPrecision(3)).toString()"
DEPTH = 12.0  # range of the colours of the evidence surface, in nats below the maximum
SIGNS = ("●", "■", "▲", "◆", "▼")
DIALS = [f"dial{k}" for k in range(4)]  # sliders of hyperparameters; no kernel on the page has more than four
WIDE: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (3, 4, 3, 4)}
BUTTONS = {"delete": "Delete point", "learn": "Learn", "stop": "Stop", "check": "How wrong is it?"}
GROUPS: dict[str, list[list[str]]] = {  # rows of widgets in each part of the page
    "points": [["start", "classes"], ["hint"], ["drawn"], ["delete"]],
    "model": [["family"], *([name] for name in DIALS), ["learn", "stop"]],
    "methods": [["method", "likelihood"], ["integration", "other"], ["check"]],
    "evidence": [["landscape"]],
}


@dataclass(frozen=True, slots=True)
class Control:
    """A widget, its properties for a state, and the state after the user has changed it."""

    widget: Any
    show: Callable[[PageState], dict[str, Any]]
    act: Callable[[PageState, Any], PageState]
    attribute: str = "value"


class Layout:
    """The widgets of the page by name, and the plot of the evidence over two hyperparameters."""

    def __init__(self, starts: list[str]) -> None:
        from bokeh.models import Button, CustomJSTickFormatter, Div, Range1d

        self.landscape, self.controls = Map(320, Range1d(-1.0, 1.0), Range1d(-1.0, 1.0)), _controls()
        self.landscape.fig.axis.formatter = CustomJSTickFormatter(code=SHOWN)
        self.landscape.fig.axis.ticker.desired_num_ticks = 5
        self.widgets = {
            "landscape": self.landscape.fig,
            "start": _select("Start with", starts),
            "hint": Div(text="A click adds a point of class"),
            **{name: Div(sizing_mode="stretch_width") for name in ("status", "words")},
            **{name: Button(label=label, **WIDE) for name, label in BUTTONS.items()},
            **{name: control.widget for name, control in self.controls.items()},
        }
        for name, widget in self.widgets.items():
            widget.name = name
        self["learn"].button_type = "primary"
        self["stop"].disabled = True

    def __getitem__(self, name: str) -> Any:
        return self.widgets[name]

    def roots(self) -> list[Any]:
        """Return the models that the page embeds."""
        from bokeh.layouts import column, row

        parts = [self["status"], self["words"]]
        for name, lines in GROUPS.items():
            rows = [row(*map(self.__getitem__, line), sizing_mode="stretch_width") for line in lines]
            parts.append(column(*rows, name=name, sizing_mode="stretch_width"))
        return parts

    def show(self, state: PageState, path: Any = ()) -> None:
        """Show a state in the widgets, and hide those that do not apply; ``path`` has the thetas of learning."""
        _set(self["start"], value=state.origin)
        for control in self.controls.values():
            _set(control.widget, **control.show(state))
        if len(state.theta) > 1:
            self.landscape.label(*[name for name, _, _ in dials(state)][:2])
            x, y = np.array([theta[:2] for theta in (*path, state.theta)]).T / LN10
            self.landscape.sources["star"].data = {"x": x[-1:], "y": y[-1:]}
            self.landscape.sources["lines"].data = {"xs": [x], "ys": [y]}

    def show_surface(self, found: tuple[Array, Array, Array]) -> None:
        """Draw a surface of the evidence, from `surface`, relative to its maximum."""
        *logs, evidence = found
        top, known = float(np.nanmax(evidence)), np.isfinite(evidence)
        below = np.where(known, evidence - top, -1e6)
        scale = ("Cividis256", min(-0.1, max(-DEPTH, float(below[known].min()))), 0.0)
        sides = [each / LN10 for each in logs]
        kept = {name: dict(self.landscape.sources[name].data) for name in ("lines", "star")}
        self.landscape.show(f"below the maximum, {top:.2f}", sides, below, scale, **kept)
        for axis, side in zip((self.landscape.fig.x_range, self.landscape.fig.y_range), sides, strict=True):
            axis.update(start=float(side[0]), end=float(side[-1]))

    def say(self, words: str, *, error: bool = False) -> None:
        """Show a sentence in the line of messages; an empty one removes the last."""
        kind, mark = ("error", "⚠ ") if error else ("note", "")
        self["status"].text = f'<span class="{kind}">{mark}{escape(words)}</span>' if words else ""

    def write(self, *sentences: str) -> None:
        """Show sentences as paragraphs below the pictures."""
        self["words"].text = "".join(f"<p>{escape(each)}</p>" for each in sentences if each)


def _set(widget: Any, **values: Any) -> None:
    """Set properties that have changed, ignoring the rounding of slider values."""
    for name, new in values.items():
        old = getattr(widget, name)
        if not np.isclose(old, new, rtol=0.0, atol=1e-9) if isinstance(new, float) else old != new:
            setattr(widget, name, new)


# ---------------------------------------------------------------------------------- controls


def _controls() -> dict[str, Control]:
    return {
        "drawn": _classes(),
        "classes": Control(
            _select("Classes", [str(n) for n in range(2, MOST_CLASSES + 1)]),
            lambda s: {"value": str(s.n_classes)},
            lambda s, value: actions.set_classes(s, int(value)),
        ),
        "family": Control(
            _select("Kernel", kernel_names()),
            lambda s: {"value": s.family},
            lambda s, value: replace(s, family=value, theta=()),
        ),
        **{name: _dial(k) for k, name in enumerate(DIALS)},
        "method": _choice("method", "Method", sorted(INFERENCES)),
        "likelihood": _choice("likelihood", "Likelihood", sorted(LIKELIHOODS)),
        "integration": _choice("integration", "Average over f", ROUTES),
        "other": _choice("other", "Compare with", ["", *sorted(INFERENCES)]),
    }


def _select(words: str, options: Any) -> Any:
    from bokeh.models import Select

    named = [(value, value or "no other method") for value in options]
    return Select(title=words, options=named, value=named[0][0], **WIDE)


def _choice(name: str, words: str, options: Any) -> Control:
    """Return a control that sets one field of the state."""
    return Control(
        _select(words, options),
        lambda s: {"value": getattr(s, name)},
        lambda s, value: replace(s, **{name: value}),
    )


def _dial(k: int) -> Control:
    """Return a slider of a hyperparameter."""
    from bokeh.models import CustomJSTickFormatter, Slider

    def show(s: PageState) -> dict[str, Any]:
        if k >= len(s.theta):
            return {"visible": False}
        name, low, high = dials(s)[k]
        values = {"start": low / LN10, "end": high / LN10, "value": s.theta[k] / LN10}
        return {"visible": True, "title": name, **values}

    def act(s: PageState, value: float) -> PageState:
        return actions.set_theta(s, [*s.theta[:k], value * LN10, *s.theta[k + 1 :]])

    shown = CustomJSTickFormatter(code=SHOWN)
    return Control(Slider(start=-1.0, end=1.0, value=0.0, step=0.01, format=shown, **WIDE), show, act)


def _classes() -> Control:
    """Return the buttons of the class of new points, each in the colour of its class."""
    from bokeh.models import RadioButtonGroup

    colours = [
        f".bk-btn:nth-child({i}) {{ color: {colour}; font-weight: 600; }} "
        f".bk-btn:nth-child({i}).bk-active {{ color: white; background: {colour}; }}"
        for i, colour in enumerate(COLOURS, 1)
    ]

    def show(s: PageState) -> dict[str, Any]:
        named = zip(SIGNS, s.points.labels, strict=False)
        return {"labels": [f"{sign} {label}" for sign, label in named], "active": s.drawn}

    widget = RadioButtonGroup(labels=["0", "1"], active=1, stylesheets=[" ".join(colours)], **WIDE)
    return Control(widget, show, lambda s, value: replace(s, drawn=value), "active")
