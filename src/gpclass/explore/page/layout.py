"""The widgets of the page: what each one shows of a state, how it changes the state, and its position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.explore import state as actions
from gpclass.explore.page.figures import COLOURS, LineChart, Map
from gpclass.explore.scene import Picture, refusal, signed
from gpclass.explore.state import DEFAULT, MOST_CLASSES, PageState, dials
from gpclass.explore.steps import VISIBLE_NATS
from gpclass.kernels import kernel_names
from gpclass.learning.prediction import ROUTES
from gpclass.parameters import INFERENCES, LIKELIHOODS

LN10 = float(np.log(10.0))
# Sliders and axes use decimal logarithms of the hyperparameters, and display the values themselves.
SHOWN = "return Number(Math.pow(10, tick).toPrecision(3)).toString()"
DEPTH = 12.0  # range of the colours of the evidence surface, in nats below the maximum
SIGNS = ("●", "■", "▲", "◆", "▼")
DIALS = [f"dial{k}" for k in range(7)]  # sliders of hyperparameters; no kernel here has more than seven
WORDS = {  # of values whose names in Python do not say enough
    "": "none",
    DEFAULT: "chosen by the evidence",
    "exact": "averaged",
    "map": "ignored",
    "mackay": "by MacKay",
    "monte_carlo": "by draws",
}
HINT = "Move over the picture, or select a point, to see which points a prediction is based on."
# Options that are not possible are in the tags of a widget.
GREY = """for (const s of selects) for (const o of Bokeh.index.find_one(s)?.input_el.options ?? [])
  o.disabled = s.tags.includes(o.value)"""
GREYED = ("method", "likelihood", "other")  # selects with options that are not always possible
PRESENT = "document.body.classList.toggle('present', this.active)"
WIDE: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (3, 4, 3, 4)}
TEXTS = ("status", "words", "refused", "note", "why")
BUTTONS = {"delete": "Delete point", "learn": "Learn", "stop": "Stop", "check": "How wrong is it?"}
GROUPS: dict[str, list[list[str]]] = {  # rows of widgets in each part of the page
    "points": [["start", "classes"], ["hint"], ["drawn"], ["delete"]],
    "model": [["family"], *([name] for name in DIALS), ["learn", "stop"]],
    "methods": [["method", "likelihood"], ["integration", "other"], ["refused"], ["check"]],
    "evidence": [["landscape"], ["note"]],
    "reasons": [["why"], ["effect0"], ["effect1"]],
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
        from bokeh.models import Button, CustomJS, CustomJSTickFormatter, Div, Range1d

        self.landscape, self.controls = Map(280, Range1d(-1.0, 1.0), Range1d(-1.0, 1.0)), _controls()
        self.effects = [LineChart(130, Range1d(0.0, 1.0), (-1.0, 1.0)) for _ in range(2)]
        for chart in self.effects:
            chart.fig.yaxis.ticker.desired_num_ticks = 3
        self.top: tuple[float, str] | None = None  # the highest evidence of the surface, and where it is
        self.landscape.fig.axis.formatter = CustomJSTickFormatter(code=SHOWN)
        self.widgets = {
            "landscape": self.landscape.fig,
            "start": _select("Start with", starts),
            "hint": Div(text="A click adds a point of class"),
            **{name: Div(sizing_mode="stretch_width") for name in TEXTS},
            **{f"effect{k}": chart.fig for k, chart in enumerate(self.effects)},
            **{name: Button(label=label, **WIDE) for name, label in BUTTONS.items()},
            **{name: control.widget for name, control in self.controls.items()},
        }
        for name, widget in self.widgets.items():
            widget.name = name
        self["learn"].button_type = "primary"
        self["stop"].disabled = True
        self.grey = CustomJS(args={"selects": [self[name] for name in GREYED]}, code=GREY)
        for name in GREYED:
            self[name].js_on_change("tags", self.grey)
        self["large"].js_on_change("active", CustomJS(code=PRESENT))

    def __getitem__(self, name: str) -> Any:
        return self.widgets[name]

    def roots(self) -> list[Any]:
        """Return the models that the page embeds."""
        from bokeh.layouts import column, row

        parts = [self["status"], self["words"], self["large"]]
        for name, lines in GROUPS.items():
            rows = [row(*map(self.__getitem__, line), sizing_mode="stretch_width") for line in lines]
            parts.append(column(*rows, name=name, sizing_mode="stretch_width"))
        return parts

    def show(self, state: PageState, path: Any = ()) -> None:
        """Show a state in the widgets, and hide those that do not apply; ``path`` has the thetas of learning."""
        _set(self["start"], value=state.origin)
        for control in self.controls.values():
            _set(control.widget, **control.show(state))
        self._grey_out(state)
        if len(state.theta) > 1:
            self.landscape.label(*((name, ()) for name, _, _ in dials(state)[:2]))
            x, y = np.array([theta[:2] for theta in (*path, state.theta)]).T / LN10
            self.landscape.sources["star"].data = {"x": x[-1:], "y": y[-1:]}
            self.landscape.sources["lines"].data = {"xs": [x], "ys": [y]}

    def _grey_out(self, state: PageState) -> None:
        """Disable the options that are not possible, and write why."""
        reasons: dict[str, list[str]] = {}
        for name, options in (("method", INFERENCES), ("likelihood", LIKELIHOODS)):
            why = {value: refusal(self.controls[name].act(state, value)) for value in options}
            for value in filter(why.__getitem__, why):
                reasons.setdefault(why[value], []).append(value)
            _set(self[name], tags=[*filter(why.__getitem__, why)])
        _set(self["other"], tags=self["method"].tags)
        text = "".join(f"<p><b>{', '.join(values)}</b>: {escape(why)}</p>" for why, values in reasons.items())
        _set(self["refused"], text=f"<small>Not possible here: {text}</small>", visible=bool(text))

    def covers(self, state: PageState) -> bool:
        """Return whether the star of a state is on the surface that is shown."""
        axes = self.landscape.fig.x_range, self.landscape.fig.y_range
        ends = zip(axes, state.theta, strict=False)
        return all(axis.start - 1e-9 <= theta / LN10 <= axis.end + 1e-9 for axis, theta in ends)

    def show_surface(self, found: tuple[Array, Array, Array]) -> None:
        """Draw a surface of the evidence, from `surface`, relative to its maximum."""
        *logs, evidence = found
        top, known = float(np.nanmax(evidence)), np.isfinite(evidence)
        below = np.where(known, evidence - top, -1e6)
        scale = ("Cividis256", min(-0.1, max(-DEPTH, float(below[known].min()))), 0.0)
        sides = [each / LN10 for each in logs]
        kept = {name: dict(self.landscape.sources[name].data) for name in ("lines", "star")}
        self.landscape.show("log evidence below its maximum", sides, below, scale, **kept)
        for axis, side in zip((self.landscape.fig.x_range, self.landscape.fig.y_range), sides, strict=True):
            axis.update(start=float(side[0]), end=float(side[-1]))
        i, j = np.unravel_index(int(np.nanargmax(evidence)), evidence.shape)
        names = (axis.axis_label for axis in (self.landscape.fig.xaxis, self.landscape.fig.yaxis))
        best = zip(names, (logs[0][j], logs[1][i]), strict=True)
        self.top = top, ", ".join(f"{name} {np.exp(value):.3g}" for name, value in best)

    def show_note(self, picture: Picture | None) -> None:
        """Write how the evidence at the star compares with the highest one of the surface."""
        words = ""
        if picture is not None and self.top is not None:
            top, here = self.top[0], float(picture.clf.log_marginal_likelihood_value_)
            words = f"Highest value shown: {signed(top)}. At the star: {signed(here)}."
            if top > here + VISIBLE_NATS:
                words += f" It is higher at {self.top[1]}: click there, and then press Learn."
        _set(self["note"], text=words)

    def explain(self, words: Sequence[str] = (HINT,), place: Any = (None, None)) -> None:
        """Write what a prediction is based on, and mark its place in the effects."""
        self["why"].text = "".join(f"<p>{escape(each)}</p>" for each in words)
        for chart, x in zip(self.effects, place, strict=True):
            chart.sources["boundaries"].data = {"x": [] if x is None else [x]}

    def show_effects(self, picture: Picture | None) -> None:
        """Draw the effect of each column on the latent functions, with its band."""
        found = [] if picture is None else picture.effects
        for chart, (name, effect) in zip(self.effects, found, strict=False):
            functions = effect.mean, effect.low, effect.high
            codes = [1] if effect.mean.ndim == 1 else picture.curves  # type: ignore[union-attr]
            place = dict(chart.sources["boundaries"].data)
            chart.show_functions(f"effect of {name} on f", effect.grid, functions, codes, boundaries=place)
            chart.fig.x_range.update(start=float(effect.grid[0]), end=float(effect.grid[-1]))
        for k, chart in enumerate(self.effects):
            chart.fig.visible = k < len(found)

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
    from bokeh.models import Toggle

    return {
        "drawn": _classes(),
        "large": Control(
            Toggle(label="Present", width=90),
            lambda s: {"active": s.large},
            lambda s, value: replace(s, large=value),
            "active",
        ),
        "classes": Control(
            _select("Classes", [str(n) for n in range(2, MOST_CLASSES + 1)]),
            lambda s: {"value": str(s.n_classes)},
            lambda s, value: actions.set_classes(s, int(value)),
        ),
        "family": Control(
            _select("Kernel", [DEFAULT, *kernel_names()]),
            lambda s: {"value": s.family},
            lambda s, value: replace(s, family=value, theta=(), chosen=None),
        ),
        **{name: _dial(k) for k, name in enumerate(DIALS)},
        "method": _choice("method", "Method", sorted(INFERENCES)),
        "likelihood": _choice("likelihood", "Likelihood", sorted(LIKELIHOODS)),
        "integration": _choice("integration", "Uncertainty of f", ROUTES),
        "other": _choice("other", "Compare with", ["", *sorted(INFERENCES)]),
    }


def _select(words: str, options: Any) -> Any:
    from bokeh.models import Select

    named = [(value, WORDS.get(value, value)) for value in options]
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
