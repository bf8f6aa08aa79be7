"""The widgets of the page: what they show of a state, and where they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from gpclass.explore.page.figures import COLOURS, CURVES, MAP, Panel
from gpclass.explore.scene import Picture, refusal
from gpclass.explore.state import DEFAULT, DIALS, LN10, MOST_CLASSES, PageState, change, dials, start_names
from gpclass.explore.steps import Surface
from gpclass.kernels import kernel_names
from gpclass.parameters import INFERENCES, LIKELIHOODS

# Sliders and axes use decimal logarithms of the hyperparameters, and display the values themselves.
SHOWN = "return Number(Math.pow(10, tick).toPrecision(3)).toString()"
DEPTH = 12.0  # range of the colours of the evidence surface, in nats below the maximum
SIGNS = ("●", "■", "▲", "◆", "▼")
WORDS = {"": "none", DEFAULT: "chosen by the evidence"}  # of values whose names in Python do not say enough
HINT = "Move over the picture, or select a point, to see which points a prediction is based on."
CHOICES: dict[str, tuple[str, Sequence[Any]]] = {  # fields of the state: title and options of their selects
    "origin": ("Start with", start_names()),
    "n_classes": ("Classes", range(2, MOST_CLASSES + 1)),
    "family": ("Kernel", [DEFAULT, *kernel_names()]),
    "method": ("Method", sorted(INFERENCES)),
    "likelihood": ("Likelihood", sorted(LIKELIHOODS)),
    "other": ("Compare with", ["", *sorted(INFERENCES)]),
}
# Names that `change` takes, and the attributes of their widgets.
FIELDS = dict.fromkeys([*CHOICES, *DIALS], "value") | {"drawn": "active", "large": "active"}
GREYED = ("method", "likelihood", "other")  # selects with options that are not always possible, in their tags
TEXTS = ("status", "words", "refused", "note", "why")
BUTTONS = {"delete": "Delete point", "learn": "Learn", "stop": "Stop", "check": "How wrong is it?"}


class Layout:
    """The widgets of the page by name, the plot of the evidence over two hyperparameters, and those of effects."""

    def __init__(self, origin: str) -> None:
        from bokeh import models

        wide: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (3, 4, 3, 4)}
        shown = models.CustomJSTickFormatter(code=SHOWN)
        dial = {"start": -1.0, "end": 1.0, "value": 0.0, "step": 0.01, "format": shown, **wide}
        self.landscape = Panel(MAP, 280, models.Range1d(-1.0, 1.0), models.Range1d(-1.0, 1.0))
        self.landscape.fig.axis.formatter = shown
        self.effects = [
            Panel(CURVES, 130, models.Range1d(0.0, 1.0), models.Range1d(-1.0, 1.0)) for _ in range(2)
        ]
        for chart in self.effects:
            chart.fig.yaxis.ticker.desired_num_ticks = 3
        button = ".bk-btn:nth-child({0}) {{ color: {1}; font-weight: 600; }} "
        button += ".bk-btn:nth-child({0}).bk-active {{ color: white; background: {1}; }}"
        css = " ".join(button.format(i, colour) for i, colour in enumerate(COLOURS, 1))
        self.widgets = {
            "landscape": self.landscape.fig,
            "drawn": models.RadioButtonGroup(labels=["0", "1"], active=1, stylesheets=[css], **wide),
            "large": models.Toggle(label="Present", width=90),
            **{name: models.Div(sizing_mode="stretch_width") for name in TEXTS},
            **{f"effect{k}": chart.fig for k, chart in enumerate(self.effects)},
            **{name: models.Button(label=label, **wide) for name, label in BUTTONS.items()},
            **{name: models.Select(title=title, **wide) for name, (title, _) in CHOICES.items()},
            **{name: models.Slider(**dial) for name in DIALS},
        }
        for name, widget in self.widgets.items():
            widget.name = name
        for name, (_, values) in CHOICES.items():
            options = dict.fromkeys([origin, *values] if name == "origin" else map(str, values))
            self[name].options = [(value, WORDS.get(value, value)) for value in options]
        self["learn"].button_type = "primary"
        # Functions of page.html.
        self.grey = models.CustomJS(args={"selects": [self[name] for name in GREYED]}, code="grey(selects)")
        for name in GREYED:
            self[name].js_on_change("tags", self.grey)
        self["large"].js_on_change("active", models.CustomJS(code="present(this.active)"))

    def __getitem__(self, name: str) -> Any:
        return self.widgets[name]

    def show(self, state: PageState, path: Iterable[Any] = ()) -> None:
        """Show a state in the widgets, and hide those that do not apply; ``path`` has the thetas of learning."""
        signs = [f"{sign} {label}" for sign, label in zip(SIGNS, state.points.labels, strict=False)]
        self["drawn"].update(labels=signs, active=state.drawn)
        self["large"].update(active=state.large)
        for name in CHOICES:
            self[name].update(value=str(getattr(state, name)))
        named = dials(state)
        for name, (title, *ends), theta in zip(DIALS, named, state.theta, strict=False):
            # Rounded, so that the value that a slider has sent is not sent back.
            low, high, value = np.round(np.array([*ends, theta]) / LN10, 9).tolist()
            self[name].update(title=title, start=low, end=high, value=value)
        for k, name in enumerate(DIALS):
            self[name].visible = k < len(named)
        self._grey_out(state)
        if len(named) > 1:
            self.landscape.label(*((title, ()) for title, _, _ in named[:2]))
            x, y = np.array([theta[:2] for theta in (*path, state.theta)]).T / LN10
            self.landscape.sources["star"].data = {"x": x[-1:], "y": y[-1:]}
            self.landscape.sources["lines"].data = {"xs": [x], "ys": [y]}

    def _grey_out(self, state: PageState) -> None:
        """Disable the options that are not possible, and write why."""
        reasons: dict[str, list[str]] = {}
        for name in ("method", "likelihood"):
            why = {value: refusal(change(state, name, value)) for value in CHOICES[name][1]}
            for value in filter(why.__getitem__, why):
                reasons.setdefault(why[value], []).append(value)
            self[name].update(tags=[*filter(why.__getitem__, why)])
        self["other"].update(tags=self["method"].tags)
        self.write("refused", *(f"Not possible: {', '.join(each)}. {why}" for why, each in reasons.items()))

    def show_surface(self, surface: Surface) -> None:
        """Draw a surface of the evidence relative to its maximum, below the star and the path."""
        below = surface.evidence - np.nanmax(surface.evidence)
        scale = min(-0.1, max(-DEPTH, np.nanmin(below))), 0.0
        sides = [side / LN10 for side in surface.sides]
        self.landscape.show_map("log evidence below its maximum", sides, below, scale, kept=("lines", "star"))
        for axis, side in zip((self.landscape.fig.x_range, self.landscape.fig.y_range), sides, strict=True):
            axis.update(start=float(side[0]), end=float(side[-1]))

    def explain(self, words: Sequence[str] = (HINT,), place: Any = (None, None)) -> None:
        """Write what a prediction is based on, and mark its place in the effects."""
        self.write("why", *words)
        for chart, x in zip(self.effects, place, strict=True):
            chart.sources["boundaries"].data = {"x": [] if x is None else [x]}

    def show_effects(self, picture: Picture | None) -> None:
        """Draw the effect of each column on the latent functions, with its band."""
        found, codes = ([], []) if picture is None else (picture.effects, picture.curves)
        for chart, (name, effect) in zip(self.effects, found, strict=False):
            band = effect.mean, effect.low, effect.high
            chart.show_curves(f"effect of {name} on f", effect.grid, codes, *band, kept=("boundaries",))
            chart.fit(effect.low, effect.high)
            chart.fig.x_range.update(start=float(effect.grid[0]), end=float(effect.grid[-1]))
        for k, chart in enumerate(self.effects):
            chart.fig.visible = k < len(found)

    def say(self, words: str, *, error: bool = False) -> None:
        """Show a sentence in the line of messages; an empty one removes the last."""
        kind, mark = ("error", "⚠ ") if error else ("note", "")
        self["status"].text = f'<span class="{kind}">{mark}{escape(words)}</span>' if words else ""

    def write(self, name: str, *sentences: str) -> None:
        """Show sentences as paragraphs in a text, which is hidden if there are none."""
        text = "".join(f"<p>{escape(each)}</p>" for each in sentences if each)
        self[name].update(text=text, visible=bool(text))
