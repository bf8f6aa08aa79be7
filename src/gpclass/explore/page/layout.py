"""The widgets of the page: what each shows of a state, what it does to the state, and where it stands."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from gpclass.explore import state as actions
from gpclass.explore.files import KINDS
from gpclass.explore.page.evidence import LN10, SHOWN, Bars, Landscape
from gpclass.explore.page.figures import COLOURS, signed
from gpclass.explore.scene import Scene
from gpclass.explore.state import ALONE, MOST_CLASSES, OPERATORS, TITLES, State, dials, title
from gpclass.explore.steps import SCORES
from gpclass.kernels import kernel_names
from gpclass.learning.prediction import ROUTES
from gpclass.parameters import INFERENCES, LIKELIHOODS

SIGNS = ("●", "■", "▲", "◆", "▼")
DIALS = [f"dial{k}" for k in range(8)]  # sliders of hyperparameters; no kernel has more
FILES = [f"file-{kind}" for kind in KINDS]
WIDE: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (3, 4, 3, 4)}
BUTTONS = {
    "prior": "Draw labels from the prior", "delete": "Delete point", "undo": "Undo", "clear": "Clear",
    "learn": "Learn", "stop": "Stop", "check": "How wrong is it?", "chains": "Run MCMC",
    "surface": "Draw the surface", "ask": "Find the place", "answer": "Ask the oracle",
}  # fmt: skip
GROUPS: dict[str, list[list[str]]] = {  # rows of widgets in each part of the page
    "points": [["start", "classes"], ["hint"], ["drawn"], ["delete", "undo", "clear"], ["prior"]],
    "model": [["first", "operator"], ["second"], *([name] for name in DIALS), ["learn", "stop"]],
    "methods": [["method", "likelihood"], ["integration", "other"], ["check", "chains"]],
    "decisions": [["costly", "cost"], ["rejects", "reject"]],
    "evidence": [["split"], ["bars"], ["across", "upwards"], ["surface", "follow"], ["landscape"]],
    "active": [["score"], ["ask", "answer"], ["asked"]],
    "files": [FILES[:3], FILES[3:]],
    "hidden": [["keys"], ["file"]],
}
# The file is in the page already; a link that is clicked at once saves it.
SAVE = """
const [name, mime, content] = cb_obj.value.split("|")
const link = document.createElement("a")
link.href = `data:${mime};base64,${content}`
link.download = name
if (name) link.click()
"""


@dataclass(frozen=True, slots=True)
class Control:
    """What a widget shows of a state, as its properties, and the state after a visitor has changed it."""

    show: Callable[[State], dict[str, Any]]
    act: Callable[[State, Any], State]
    attribute: str = "value"


def _field(name: str, act: Callable[..., State] = replace) -> Control:
    return Control(lambda s: {"value": getattr(s, name)}, lambda s, value: act(s, **{name: value}))


def _of_theta(k: int) -> Control:
    def show(s: State) -> dict[str, Any]:
        found = dials(s)
        if k >= len(found):
            return {"visible": False}
        name, low, high = found[k]
        values = {"start": low / LN10, "end": high / LN10, "value": s.theta[k] / LN10}
        return {"visible": True, "title": name, **values}

    def act(s: State, value: float) -> State:
        return actions.set_theta(s, [*s.theta[:k], value * LN10, *s.theta[k + 1 :]])

    return Control(show, act)


def _reject(s: State) -> dict[str, Any]:
    return {"visible": False} if s.reject is None else {"visible": True, "value": float(np.log10(s.reject))}


def _labels(s: State) -> dict[str, Any]:
    return {"labels": [f"{SIGNS[i]} {label}" for i, label in enumerate(s.points.labels)], "active": s.drawn}


def _costly(s: State) -> dict[str, Any]:
    return {"options": [(str(i), label) for i, label in enumerate(s.points.labels)], "value": str(s.costly)}


CONTROLS = {
    "drawn": Control(_labels, lambda s, value: replace(s, drawn=value), "active"),
    "classes": Control(
        lambda s: {"value": str(s.n_classes)}, lambda s, value: actions.set_classes(s, int(value))
    ),
    **{name: _field(name, actions.set_kernel) for name in ("first", "operator", "second")},
    **{name: _of_theta(k) for k, name in enumerate(DIALS)},
    **{name: _field(name) for name in ("method", "likelihood", "integration", "other")},
    "costly": Control(_costly, lambda s, value: replace(s, costly=int(value))),
    "cost": Control(
        lambda s: {"value": float(np.log10(s.cost))}, lambda s, value: replace(s, cost=10.0**value)
    ),
    "rejects": Control(
        lambda s: {"active": s.reject is not None},
        lambda s, on: replace(s, reject=0.2 if on else None),
        "active",
    ),
    "reject": Control(_reject, lambda s, value: replace(s, reject=10.0**value)),
}


class Layout:
    """All widgets by name, and the two figures of the evidence."""

    def __init__(self, starts: list[str]) -> None:
        self.bars, self.landscape = Bars(), Landscape()
        self.widgets = _widgets(starts) | {"bars": self.bars.fig, "landscape": self.landscape.fig}

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

    def show(self, state: State, start: str) -> None:
        """Set all widgets to a state; those that do not apply are hidden."""
        _set(self["start"], value=start)
        for name, control in CONTROLS.items():
            _set(self[name], **control.show(state))
        self["second"].visible = state.operator != ALONE
        names = [dial.name for dial in dials(state)]
        options = [(str(k), name) for k, name in enumerate(names)]
        for k, name in enumerate(("across", "upwards")):
            if self[name].options != options:
                self[name].update(options=options, value=str(min(k, len(names) - 1)))
        i, j = self.chosen
        self.landscape.fig.xaxis.axis_label, self.landscape.fig.yaxis.axis_label = names[i], names[j]
        self.landscape.mark("here", np.array([state.theta]), self.chosen)

    @property
    def chosen(self) -> tuple[int, int]:
        """The positions of the two hyperparameters of the surface."""
        return int(self["across"].value), int(self["upwards"].value)

    def show_evidence(self, scene: Scene) -> None:
        """Draw the two parts of the log evidence."""
        parts = scene.occam
        self.bars.show(parts)
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


def _widgets(starts: list[str]) -> dict[str, Any]:
    from bokeh.models import Button, Checkbox, CustomJS, Div, RadioButtonGroup, TextInput

    methods = sorted(INFERENCES, key=[*TITLES, *INFERENCES].index)
    likelihoods = sorted(LIKELIHOODS, key=lambda name: (name != "probit", name))
    made = [
        _select("start", "Start with", starts),
        _select("classes", "Classes", [str(n) for n in range(2, MOST_CLASSES + 1)]),
        RadioButtonGroup(name="drawn", labels=["0", "1"], active=1, stylesheets=[_class_colours()], **WIDE),
        _select("first", "Kernel", kernel_names()),
        _select("operator", "Second kernel", OPERATORS),
        _select("second", "which is", kernel_names()),
        *(_slider(name, "") for name in DIALS),
        _select("method", "Method", methods),
        _select("likelihood", "Likelihood", likelihoods),
        _select("integration", "Average over f", ROUTES),
        _select("other", "Compare with", ["", *methods]),
        _select("costly", "Errors on class", ["0", "1"]),
        _slider("cost", "cost, times the others", start=-1.5, end=1.5),
        Checkbox(name="rejects", label="may be left undecided", active=False),
        _slider("reject", "at a cost of", start=-2.0, end=0.0, value=-0.7, step=0.02),
        _select("across", "Across", ["0"]),
        _select("upwards", "Upwards", ["1"]),
        Checkbox(name="follow", label="after each change", active=True),
        _select("score", "Most informative by", list(SCORES)),
        Div(name="hint", text="A click adds a point of class"),
        *(Div(name=name, sizing_mode="stretch_width") for name in ("status", "words", "split", "asked")),
        *(TextInput(name=name, visible=False) for name in ("keys", "file")),
        *(Button(name=name, label=label, **WIDE) for name, label in BUTTONS.items()),
        *(Button(name=f"file-{kind}", label=label, **WIDE) for kind, (label, _, _) in KINDS.items()),
    ]
    widgets = {widget.name: widget for widget in made}
    widgets["learn"].button_type = "primary"
    widgets["stop"].disabled = widgets["answer"].disabled = True
    widgets["file"].js_on_change("value", CustomJS(code=SAVE))
    return widgets


def _select(name: str, words: str, options: Any) -> Any:
    from bokeh.models import Select

    named = [(value, title(value) or "no other method") for value in options]
    return Select(name=name, title=words, options=named, value=named[0][0], **WIDE)


def _slider(name: str, words: str, **options: Any) -> Any:
    from bokeh.models import CustomJSTickFormatter, Slider

    given = {"start": -1.0, "end": 1.0, "value": 0.0, "step": 0.01, **WIDE, **options}
    return Slider(name=name, title=words, format=CustomJSTickFormatter(code=SHOWN), **given)


def _class_colours() -> str:
    """Return a style sheet that gives each button the colour of its class."""
    rules = [
        f".bk-btn:nth-child({i + 1}) {{ color: {colour}; font-weight: 600; }} "
        f".bk-btn:nth-child({i + 1}).bk-active {{ color: white; background: {colour}; }}"
        for i, colour in enumerate(COLOURS)
    ]
    return " ".join(rules)
