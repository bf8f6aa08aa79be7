"""The widgets of the page: what each shows of a state, what it does to the state, and where it stands."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from gpclass.explore import state as actions
from gpclass.explore.page.evidence import LN10, SHOWN, Landscape
from gpclass.explore.page.figures import COLOURS, signed
from gpclass.explore.scene import Scene
from gpclass.explore.state import ALONE, MOST_CLASSES, OPERATORS, TITLES, State, dials, title
from gpclass.explore.steps import SCORES
from gpclass.kernels import kernel_names
from gpclass.learning.prediction import ROUTES
from gpclass.parameters import INFERENCES, LIKELIHOODS

SIGNS = ("●", "■", "▲", "◆", "▼")
DIALS = [f"dial{k}" for k in range(8)]  # sliders of hyperparameters; no kernel has more
WIDE: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (3, 4, 3, 4)}
BUTTONS = {
    "prior": "Draw labels from the prior", "delete": "Delete point", "undo": "Undo", "clear": "Clear",
    "learn": "Learn", "stop": "Stop", "check": "How wrong is it?", "chains": "Run MCMC",
    "ask": "Find the place", "answer": "Ask the oracle",
}  # fmt: skip
GROUPS: dict[str, list[list[str]]] = {  # rows of widgets in each part of the page
    "points": [["start", "classes"], ["hint"], ["drawn"], ["delete", "undo", "clear"], ["prior"]],
    "model": [["first", "operator"], ["second"], *([name] for name in DIALS), ["learn", "stop"]],
    "methods": [["method", "likelihood"], ["integration", "other"], ["check", "chains"]],
    "decisions": [["costly", "cost"], ["reject"]],
    "evidence": [["split"], ["across", "upwards"], ["landscape"]],
    "active": [["score"], ["ask", "answer"], ["asked"]],
}


@dataclass(frozen=True, slots=True)
class Control:
    """A widget, what it shows of a state, as its properties, and the state after a visitor has changed it."""

    widget: Any
    show: Callable[[State], dict[str, Any]]
    act: Callable[[State, Any], State]
    attribute: str = "value"


class Layout:
    """All widgets by name, and the map of the evidence."""

    def __init__(self, starts: list[str]) -> None:
        from bokeh.models import Button, Div

        self.landscape, self.controls = Landscape(), _controls()
        self.widgets = {
            "landscape": self.landscape.fig,
            "start": _select("Start with", starts),
            "across": _select("Across", ["0"]),
            "upwards": _select("Upwards", ["1"]),
            "score": _select("Most informative by", list(SCORES)),
            "hint": Div(text="A click adds a point of class"),
            **{name: Div(sizing_mode="stretch_width") for name in ("status", "words", "split", "asked")},
            **{name: Button(label=label, **WIDE) for name, label in BUTTONS.items()},
            **{name: control.widget for name, control in self.controls.items()},
        }
        for name, widget in self.widgets.items():
            widget.name = name
        self["learn"].button_type = "primary"
        self["stop"].disabled = self["answer"].disabled = True

    def __getitem__(self, name: str) -> Any:
        return self.widgets[name]

    def roots(self) -> list[Any]:
        """Return what the page embeds."""
        from bokeh.layouts import column, row

        def line(names: list[str]) -> Any:
            found = [self[name] for name in names]
            return row(*found, sizing_mode="stretch_width") if len(found) > 1 else found[0]

        groups = [
            column(*map(line, rows), name=name, sizing_mode="stretch_width") for name, rows in GROUPS.items()
        ]
        return [self["status"], self["words"], *groups]

    def show(self, state: State) -> None:
        """Set all widgets to a state; those that do not apply are hidden."""
        _set(self["start"], value=state.origin.name)
        for control in self.controls.values():
            _set(control.widget, **control.show(state))
        names = [dial.name for dial in dials(state)]
        options = [(str(k), name) for k, name in enumerate(names)]
        for k, name in enumerate(("across", "upwards")):
            if self[name].options != options:
                self[name].update(options=options, value=str(min(k, len(names) - 1)))
        i, j = self.chosen
        self.landscape.label(names[i], names[j])
        self.landscape.mark(state.theta, self.chosen)

    @property
    def chosen(self) -> tuple[int, int]:
        """The positions of the two hyperparameters of the surface."""
        return int(self["across"].value), int(self["upwards"].value)

    def show_evidence(self, scene: Scene) -> None:
        """Write the two parts of the log evidence."""
        parts = None if scene.picture is None else scene.picture.occam
        words = "This method gives no log evidence that could be split into fit and complexity."
        if parts is not None:
            words = (
                f"log evidence {parts.evidence:.2f} = fit {parts.fit:.2f} − complexity {parts.complexity:.2f}. "
                "<small>Fit: how probable the labels are under the functions that remain. Complexity: how far these "
                "are from what the prior expects.</small>"
            )
        self["split"].text = signed(words)

    def say(self, words: str, *, error: bool = False) -> None:
        """Show a sentence in the line of messages; an empty one removes the last."""
        kind, mark = ("error", "⚠ ") if error else ("note", "")
        self["status"].text = f'<span class="{kind}">{mark}{plain(words)}</span>' if words else ""

    def write(self, name: str, *sentences: str) -> None:
        """Show sentences as paragraphs."""
        self[name].text = "".join(f"<p>{plain(each)}</p>" for each in sentences if each)


def plain(words: str) -> str:
    """Return words with the markup of a table's names escaped, and with minus signs."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", escape(words))


def _set(widget: Any, **values: Any) -> None:
    """Set what has changed, apart from rounding of the value of a slider."""
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
        "method": _choice("method", "Method", methods),
        "likelihood": _choice("likelihood", "Likelihood", likelihoods),
        "integration": _choice("integration", "Average over f", ROUTES),
        "other": _choice("other", "Compare with", ["", *methods]),
        "costly": Control(
            _select("Errors on class", ["0", "1"]),
            lambda s: {"options": [(str(i), label) for i, label in enumerate(s.points.labels)], "value": str(s.costly)},
            lambda s, value: replace(s, costly=int(value)),
        ),
        "cost": Control(
            _slider("cost, times the others", start=-1.5, end=1.5),
            lambda s: {"value": float(np.log10(s.cost))},
            lambda s, value: replace(s, cost=10.0**value),
        ),
        "reject": Control(
            _slider("A case left undecided costs (1: none is)", start=-2.0, end=0.0, step=0.02),
            lambda s: {"value": 0.0 if s.reject is None else float(np.log10(s.reject))},
            lambda s, value: replace(s, reject=10.0**value if value < 0.0 else None),
        ),
    }  # fmt: skip


def _choice(name: str, words: str, options: Any, act: Callable[..., State] = replace) -> Control:
    """Return a control of one field of the state."""
    widget = _select(words, options)
    return Control(widget, lambda s: {"value": getattr(s, name)}, lambda s, value: act(s, **{name: value}))


def _dial(k: int) -> Control:
    def show(s: State) -> dict[str, Any]:
        if k >= len(s.theta):
            return {"visible": False}
        name, low, high = dials(s)[k]
        values = {"start": low / LN10, "end": high / LN10, "value": s.theta[k] / LN10}
        return {"visible": True, "title": name, **values}

    def act(s: State, value: float) -> State:
        return actions.set_theta(s, [*s.theta[:k], value * LN10, *s.theta[k + 1 :]])

    return Control(_slider(""), show, act)


def _select(words: str, options: Any) -> Any:
    from bokeh.models import Select

    named = [(value, title(value) or "no other method") for value in options]
    return Select(title=words, options=named, value=named[0][0], **WIDE)


def _slider(words: str, **options: Any) -> Any:
    from bokeh.models import CustomJSTickFormatter, Slider

    given = {"start": -1.0, "end": 1.0, "value": 0.0, "step": 0.01, **WIDE, **options}
    return Slider(title=words, format=CustomJSTickFormatter(code=SHOWN), **given)


def _labels(state: State) -> list[str]:
    return [f"{sign} {label}" for sign, label in zip(SIGNS, state.points.labels, strict=False)]


def _class_colours() -> str:
    """Return a style sheet that gives each button the colour of its class."""
    rules = [
        f".bk-btn:nth-child({i + 1}) {{ color: {colour}; font-weight: 600; }} "
        f".bk-btn:nth-child({i + 1}).bk-active {{ color: white; background: {colour}; }}"
        for i, colour in enumerate(COLOURS)
    ]
    return " ".join(rules)
