"""The widgets of the page: what each one shows of a state, how it changes the state, and its position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from gpclass.explore import state as actions
from gpclass.explore.page.figures import COLOURS, LN10, SHOWN, Landscape
from gpclass.explore.state import ALONE, MOST_CLASSES, OPERATORS, TITLES, PageState, dials, title
from gpclass.kernels import kernel_names
from gpclass.learning.prediction import ROUTES
from gpclass.parameters import INFERENCES, LIKELIHOODS

SIGNS = ("●", "■", "▲", "◆", "▼")
DIALS = [f"dial{k}" for k in range(8)]  # sliders of hyperparameters; no kernel has more
WIDE: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (3, 4, 3, 4)}
BUTTONS = {
    "delete": "Delete point", "undo": "Undo", "clear": "Clear",
    "learn": "Learn", "stop": "Stop", "check": "How wrong is it?", "chains": "Run MCMC",
}  # fmt: skip
GROUPS: dict[str, list[list[str]]] = {  # rows of widgets in each part of the page
    "points": [["start", "classes"], ["hint"], ["drawn"], ["delete", "undo", "clear"]],
    "model": [["first", "operator"], ["second"], *([name] for name in DIALS), ["learn", "stop"]],
    "methods": [["method", "likelihood"], ["integration", "other"], ["check", "chains"]],
    "evidence": [["across", "upwards"], ["landscape"]],
}


@dataclass(frozen=True, slots=True)
class Control:
    """A widget, its properties for a state, and the state after the user has changed it."""

    widget: Any
    show: Callable[[PageState], dict[str, Any]]
    act: Callable[[PageState, Any], PageState]
    attribute: str = "value"


class Layout:
    """All widgets by name, and the map of the evidence."""

    def __init__(self, starts: list[str]) -> None:
        from bokeh.models import Button, Div

        self.landscape, self.controls = Landscape(), _controls()
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

        def line(names: list[str]) -> Any:
            found = [self[name] for name in names]
            return row(*found, sizing_mode="stretch_width") if len(found) > 1 else found[0]

        groups = [
            column(*map(line, rows), name=name, sizing_mode="stretch_width") for name, rows in GROUPS.items()
        ]
        return [self["status"], self["words"], *groups]

    def show(self, state: PageState, path: Any = ()) -> None:
        """Set all widgets to a state; those that do not apply are hidden. ``path`` is that of learning."""
        _set(self["start"], value=state.origin)
        for control in self.controls.values():
            _set(control.widget, **control.show(state))
        self.landscape.mark(state, [name for name, _, _ in dials(state)], path)

    def say(self, words: str, *, error: bool = False) -> None:
        """Show a sentence in the line of messages; an empty one removes the last."""
        kind, mark = ("error", "⚠ ") if error else ("note", "")
        self["status"].text = f'<span class="{kind}">{mark}{escape(words)}</span>' if words else ""

    def write(self, name: str, *sentences: str) -> None:
        """Show sentences as paragraphs."""
        self[name].text = "".join(f"<p>{escape(each)}</p>" for each in sentences if each)


def _set(widget: Any, **values: Any) -> None:
    """Set properties that have changed, ignoring the rounding of slider values."""
    for name, new in values.items():
        old = getattr(widget, name)
        if not np.isclose(old, new, rtol=0.0, atol=1e-9) if isinstance(new, float) else old != new:
            setattr(widget, name, new)


# ---------------------------------------------------------------------------------- controls


def _controls() -> dict[str, Control]:
    from bokeh.models import RadioButtonGroup

    methods = sorted(INFERENCES, key=[*TITLES, *INFERENCES].index)
    likelihoods = sorted(LIKELIHOODS, key=lambda name: (name != "probit", name))
    classes = [str(n) for n in range(2, MOST_CLASSES + 1)]
    return {
        "drawn": Control(
            RadioButtonGroup(labels=["0", "1"], active=1, stylesheets=[_class_colours()], **WIDE),
            lambda s: {"labels": _labels(s), "active": s.drawn},
            lambda s, value: replace(s, drawn=value),
            "active",
        ),
        "classes": Control(
            _select("Classes", classes),
            lambda s: {"value": str(s.n_classes)},
            lambda s, value: actions.set_classes(s, int(value)),
        ),
        "first": _choice("first", "Kernel", kernel_names(), actions.set_kernel),
        "operator": _choice("operator", "Second kernel", OPERATORS, actions.set_kernel),
        "second": Control(
            _select("which is", kernel_names()),
            lambda s: {"value": s.second, "visible": s.operator != ALONE},
            lambda s, value: actions.set_kernel(s, second=value),
        ),
        **{name: _dial(k) for k, name in enumerate(DIALS)},
        "across": Control(
            _select("Across", ["0"]),
            lambda s: {"options": _numbered(dials(s)), "value": str(s.axes[0])},
            lambda s, value: replace(s, axes=(int(value), s.axes[1])),
        ),
        "upwards": Control(
            _select("Upwards", ["0"]),
            lambda s: {"options": _numbered(dials(s)), "value": str(s.axes[1])},
            lambda s, value: replace(s, axes=(s.axes[0], int(value))),
        ),
        "method": _choice("method", "Method", methods),
        "likelihood": _choice("likelihood", "Likelihood", likelihoods),
        "integration": _choice("integration", "Average over f", ROUTES),
        "other": _choice("other", "Compare with", ["", *methods]),
    }


def _choice(name: str, words: str, options: Any, act: Callable[..., PageState] = replace) -> Control:
    """Return a control of one field of the state."""
    widget = _select(words, options)
    return Control(widget, lambda s: {"value": getattr(s, name)}, lambda s, value: act(s, **{name: value}))


def _dial(k: int) -> Control:
    def show(s: PageState) -> dict[str, Any]:
        if k >= len(s.theta):
            return {"visible": False}
        name, low, high = dials(s)[k]
        values = {"start": low / LN10, "end": high / LN10, "value": s.theta[k] / LN10}
        return {"visible": True, "title": name, **values}

    def act(s: PageState, value: float) -> PageState:
        return actions.set_theta(s, [*s.theta[:k], value * LN10, *s.theta[k + 1 :]])

    return Control(_slider(""), show, act)


def _numbered(items: Any) -> list[tuple[str, str]]:
    """Return options of a select: positions, and names of classes or of hyperparameters."""
    return [(str(i), item if isinstance(item, str) else item[0]) for i, item in enumerate(items)]


def _select(words: str, options: Any) -> Any:
    from bokeh.models import Select

    named = [(value, title(value) or "no other method") for value in options]
    return Select(title=words, options=named, value=named[0][0], **WIDE)


def _slider(words: str, **options: Any) -> Any:
    from bokeh.models import CustomJSTickFormatter, Slider

    given = {"start": -1.0, "end": 1.0, "value": 0.0, "step": 0.01, **WIDE, **options}
    return Slider(title=words, format=CustomJSTickFormatter(code=SHOWN), **given)


def _labels(state: PageState) -> list[str]:
    return [f"{sign} {label}" for sign, label in zip(SIGNS, state.points.labels, strict=False)]


def _class_colours() -> str:
    """Return a style sheet that gives each button the colour of its class."""
    rules = [
        f".bk-btn:nth-child({i + 1}) {{ color: {colour}; font-weight: 600; }} "
        f".bk-btn:nth-child({i + 1}).bk-active {{ color: white; background: {colour}; }}"
        for i, colour in enumerate(COLOURS)
    ]
    return " ".join(rules)
