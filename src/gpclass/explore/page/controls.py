"""The widgets of the points and of the model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from gpclass.explore.kernels import ALONE, OPERATORS, build, dials
from gpclass.explore.page.look import COLOURS, SIGNS
from gpclass.explore.points import MOST_CLASSES
from gpclass.explore.state import State, title
from gpclass.kernels import kernel_names
from gpclass.learning.prediction import ROUTES
from gpclass.parameters import INFERENCES, LIKELIHOODS

MOST_DIALS = 8
LN10 = float(np.log(10.0))
# A slider moves along the logarithm, and shows the value.
SHOWN = "return Number(Math.pow(10, tick).toPrecision(3)).toString()"
ORDER = ("laplace", "ep", "vi", "mcmc", "dirichlet", "rejection")
NONE = "no other method"


class Controls(SimpleNamespace):
    """All widgets by the name of what they set; ``dials`` are the hyperparameters."""


def make_controls(starts: list[str]) -> Controls:
    """Return the widgets."""
    from bokeh.models import Button, Checkbox, CustomJSTickFormatter, RadioButtonGroup, Select, Slider

    def select(words: str, options: Any, name: str) -> Any:
        named = [(value, title(value)) for value in options]
        return Select(title=words, options=named, value=named[0][0], name=name, **WIDE)

    def button(label: str, name: str, **options: Any) -> Any:
        return Button(label=label, name=name, **(WIDE | options))

    def slider(words: str, name: str, **options: Any) -> Any:
        shown = CustomJSTickFormatter(code=SHOWN)
        given = {"start": -1.0, "end": 1.0, "value": 0.0, "step": 0.01, "format": shown}
        return Slider(title=words, name=name, **(WIDE | given | options))

    methods = sorted(
        INFERENCES, key=lambda name: (name not in ORDER, ORDER.index(name) if name in ORDER else 0)
    )
    return Controls(
        start=select("Start with", starts, "start"),
        prior=button("Draw labels from the prior", "prior"),
        drawn=RadioButtonGroup(labels=["0", "1"], active=1, name="drawn", stylesheets=[coloured()], **WIDE),
        classes=select("Classes", [str(n) for n in range(2, MOST_CLASSES + 1)], "classes"),
        delete=button("Delete point", "delete"),
        undo=button("Undo", "undo"),
        clear=button("Clear", "clear"),
        first=select("Kernel", kernel_names(), "first"),
        operator=select("Second kernel", OPERATORS, "operator"),
        second=select("which is", kernel_names(), "second"),
        dials=[slider("", f"dial{k}") for k in range(MOST_DIALS)],
        learn=button("Learn", "learn", button_type="primary"),
        stop=button("Stop", "stop", disabled=True),
        method=select("Method", methods, "method"),
        likelihood=select("Likelihood", sorted(LIKELIHOODS, key=lambda n: (n != "probit", n)), "likelihood"),
        integration=select("Average over f", ROUTES, "integration"),
        other=select("Compare with", [NONE, *methods], "other"),
        check=button("How wrong is it?", "check"),
        chains=button("Run MCMC", "chains"),
        costly=select("Errors on class", ["0", "1"], "costly"),
        cost=slider("cost, times the others", "cost", start=-1.5, end=1.5),
        rejects=Checkbox(label="may be left undecided", active=False, name="rejects"),
        reject=slider("at a cost of", "reject", start=-2.0, end=0.0, value=-0.7, step=0.02),
    )


def coloured() -> str:
    """Return a style sheet that gives each button the colour of its class."""
    rules = [
        f".bk-btn:nth-child({i + 1}) {{ color: {colour}; font-weight: 600; }} "
        f".bk-btn:nth-child({i + 1}).bk-active {{ color: white; background: {colour}; }}"
        for i, colour in enumerate(COLOURS)
    ]
    return " ".join(rules)


WIDE: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (3, 4, 3, 4)}


def layout(c: Controls) -> list[Any]:
    """Return the groups of widgets: points, model, methods, decisions."""
    from bokeh.layouts import column, row
    from bokeh.models import Div

    def group(name: str, *children: Any) -> Any:
        return column(*children, name=name, sizing_mode="stretch_width")

    def side(*children: Any) -> Any:
        return row(*children, sizing_mode="stretch_width")

    return [
        group(
            "points",
            side(c.start, c.classes),
            Div(text="A click adds a point of class"),
            c.drawn,
            side(c.delete, c.undo, c.clear),
            c.prior,
        ),
        group("model", side(c.first, c.operator), c.second, *c.dials, side(c.learn, c.stop)),
        group("methods", side(c.method, c.likelihood), side(c.integration, c.other), side(c.check, c.chains)),
        group("decisions", side(c.costly, c.cost), side(c.rejects, c.reject)),
    ]


def show_controls(c: Controls, state: State, begun: str) -> None:
    """Set all widgets to the state; those that do not apply are hidden."""
    if begun in dict(c.start.options):
        _set(c.start, value=begun)
    labels = [f"{SIGNS[i]} {label}" for i, label in enumerate(state.points.labels)]
    _set(c.drawn, labels=labels, active=state.drawn)
    _set(c.classes, value=str(state.n_classes))
    _set(c.first, value=state.choice.first)
    _set(c.operator, value=state.choice.operator)
    _set(c.second, value=state.choice.second, visible=state.choice.operator != ALONE)
    for name in ("method", "likelihood", "integration"):
        _set(getattr(c, name), value=getattr(state, name))
    _set(c.other, value=state.other or NONE)
    _set(c.costly, options=[(str(i), label) for i, label in enumerate(state.points.labels)])
    _set(c.costly, value=str(state.costly))
    _set(c.cost, value=float(np.log10(state.cost)))
    _set(c.rejects, active=state.reject is not None)
    _set(c.reject, visible=state.reject is not None)
    if state.reject is not None:
        _set(c.reject, value=float(np.log10(state.reject)))
    show_dials(c, state)


def show_dials(c: Controls, state: State) -> None:
    """Set the sliders to the hyperparameters of the state."""
    found = dials(build(state.choice, state.points.view), state.points.names)
    for k, widget in enumerate(c.dials):
        if k >= len(found):
            _set(widget, visible=False)
            continue
        dial, value = found[k], state.theta[k] / LN10
        _set(widget, visible=True, title=dial.name, start=dial.low / LN10, end=dial.high / LN10, value=value)


def _set(widget: Any, **values: Any) -> None:
    """Set what has changed; a value that a widget rounds to its step has not."""
    changed = {name: value for name, value in values.items() if _differs(getattr(widget, name), value)}
    if changed:
        widget.update(**changed)


def _differs(old: Any, new: Any) -> bool:
    if isinstance(new, float):
        return not abs(float(old) - new) < 1e-9
    return bool(old != new)
