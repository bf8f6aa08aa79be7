"""One open page: its state, and what happens when somebody uses its widgets."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpclass.explore import keys, steps
from gpclass.explore import state as actions
from gpclass.explore.files import KINDS, file_of
from gpclass.explore.jobs import Worker
from gpclass.explore.page.canvas import Canvas, marker_heights
from gpclass.explore.page.evidence import LN10
from gpclass.explore.page.layout import CONTROLS, Layout
from gpclass.explore.problems import DRAWN, Start, start, start_names
from gpclass.explore.scene import Scene, scene, sentence
from gpclass.explore.state import NEAR, State, nearest

UNDO = 200  # states that are remembered
IDLE = 0.4  # seconds before the surface follows a change
PAUSE = 0.12  # seconds between the steps of learning
MARK = 0.13  # distance from a marker, as a probability, within which a click on a line selects it


class Session:
    """The page of one visitor; it shares nothing with another one."""

    def __init__(self, deliver: Any, table: Start | None = None, *, worker: Any = Worker) -> None:
        self.table = table
        names = [*([] if table is None else [table.name]), *start_names()]
        self.canvas, self.layout = Canvas(), Layout(list(dict.fromkeys(names)))
        self.painter, self.worker = worker(deliver, patient=True), worker(deliver, patient=False)
        self.begun = table or start(names[0])
        self.state = self.begun.state
        self.past: list[tuple[State, Start]] = []
        self.shown: Scene | None = None
        self.place: Any = None  # the most informative one
        self.dragged: int | None = None
        self.painted = self.seed = 0
        self.busy = self.quiet = False
        self.keyed = False  # whether the cursor of the keyboard is shown
        self._connect()
        self._show()

    def roots(self) -> list[Any]:
        """Return the models that the page embeds."""
        return [self.canvas.root, *self.layout.roots()]

    def close(self) -> None:
        """Cancel everything."""
        self.painter.cancel()
        self.worker.cancel()

    # --------------------------------------------------------------------------------- state

    def act(self, action: Callable[[State], State], *, remember: bool = True) -> None:
        """Replace the state by what an action makes of it, and show it; an error is a sentence on the page."""
        try:
            new = action(self.state)
        except Exception as error:
            self.layout.say(sentence(error), error=True)
            self._show_widgets()
            return
        if new is self.state:
            return
        if remember:
            self.remember()
        old, self.state = self.state, new
        if _landscape(old) != _landscape(new):
            self.layout.landscape.clear()
        self._show()

    def remember(self) -> None:
        """Remember the state for the button Undo."""
        self.past = [*self.past[-UNDO:], (self.state, self.begun)]

    def begin(self, name: str) -> None:
        """Start with another problem, and keep method and likelihood."""
        self.seed += name == DRAWN
        old = self.state
        try:
            if self.table is not None and name == self.table.name:
                begun = self.table
            else:
                begun = start(name, base=old, seed=self.seed)
        except Exception as error:
            self.layout.say(sentence(error), error=True)
            return
        self.remember()
        self.begun = begun
        kept = {name: getattr(old, name) for name in ("likelihood", "method", "integration", "other")}
        self.act(lambda state: replace(begun.state, **kept), remember=False)

    def _show(self) -> None:
        """Show the points at once, and what the model predicts as soon as it is known."""
        self._show_widgets()
        if self.busy and self.worker.cancel():
            self._rest()
        self.painter.submit(map(scene, [self.state]), self.paint)

    def _show_widgets(self) -> None:
        self.quiet = True  # no visitor has used the widgets that are set here
        try:
            self.layout.show(self.state, self.begun.name)
            self.canvas.show_points(self.state, cursor=self.keyed)
        finally:
            self.quiet = False

    def paint(self, found: Scene) -> None:
        """Draw a scene."""
        self.shown, self.place = found, None
        self.canvas.show(found)
        self.painted += 1
        self.canvas.root.tags = [self.painted]  # tells a browser that the picture is new
        self.layout.show_evidence(found)
        self.layout.say(found.error or found.notes, error=bool(found.error))
        self.layout.write("words", self.begun.words, *found.words)
        self.layout["answer"].disabled = True
        self._follow()

    def _follow(self) -> None:
        """Draw the surface of the evidence again, if that is wanted, possible, and nothing else is running."""
        found = self.shown
        if self.busy or not self.layout["follow"].active or found is None or found.occam is None:
            return
        if found.state.points is self.state.points and len(self.state.theta) > 1:
            self.surface(IDLE)

    # -------------------------------------------------------------------------------- events

    def _connect(self) -> None:
        self.canvas.listen(self.on_canvas)
        for name, control in CONTROLS.items():
            self._choose(name, partial(self._change, control.act), control.attribute)
        self._choose("start", self.begin)
        self._choose("keys", lambda value: self.on_key(value.partition(" ")[0]))
        for name in ("across", "upwards"):
            self._choose(name, lambda value: self._show_widgets())
        buttons: dict[str, Callable[[], None]] = {
            "prior": partial(self.begin, DRAWN), "undo": self.undo, "delete": partial(self.act, actions.delete_point),
            "clear": partial(self.act, actions.clear_points), "learn": self.learn, "stop": self.stop,
            "check": self.check, "chains": self.chains, "surface": self.surface, "ask": self.ask, "answer": self.answer,
            **{f"file-{kind}": partial(self.download, kind) for kind in KINDS},
        }  # fmt: skip
        for name, work in buttons.items():
            self.layout[name].on_click(work)
        self.layout.landscape.fig.on_event("tap", lambda event: self.go_to(event.x, event.y))

    def _choose(self, name: str, work: Callable[[Any], None], attribute: str = "value") -> None:
        """Call ``work`` when a visitor changes a widget, not when the page does."""

        def changed(attr: str, old: Any, new: Any) -> None:
            if not self.quiet:
                work(new)

        self.layout[name].on_change(attribute, changed)

    def _change(self, act: Callable[[State, Any], State], value: Any) -> None:
        self.act(lambda state: act(state, value))

    def on_canvas(self, kind: str, place: Any, height: float | None) -> None:
        """Add, select or drag a point; ``height`` is that of the event beside the probabilities of a line."""
        if None in place:
            return
        self.keyed = False
        if kind == "tap":
            self.act(lambda state: actions.click(state, place, self._reach(place, height)))
        elif kind == "panstart":
            i, distance = nearest(self.state.points, place)
            self.dragged = i if distance <= self._reach(place, height) else None
            if self.dragged is not None:
                self.remember()
        elif self.dragged is not None:
            i = self.dragged
            self.act(lambda state: actions.move_point(state, i, place), remember=False)
            self.dragged = None if kind == "panend" else i

    def _reach(self, place: Any, height: float | None) -> float:
        """Return how near an event has to be to mean a point that is there."""
        points = self.state.points
        i, _ = nearest(points, place)
        if i is None or points.n_columns == 2:
            return NEAR
        mark = float(marker_heights(points.codes[i], self.state.n_classes))
        return 0.5 * NEAR if height is None or abs(height - mark) < MARK else -1.0

    def on_key(self, key: str) -> None:
        """Do what a key means."""
        self.keyed = True
        if key.lower() == "z":
            self.undo()
        else:
            self.act(lambda state: keys.press(state, key))

    def go_to(self, x: float | None, y: float | None) -> None:
        """Go to the hyperparameters that were clicked on the surface."""
        if x is None or y is None or len(self.state.theta) < 2:
            return
        theta = np.array(self.state.theta)
        theta[list(self.layout.chosen)] = x * LN10, y * LN10
        self.act(lambda state: actions.set_theta(state, theta))

    # ------------------------------------------------------------------------------- buttons

    def undo(self) -> None:
        """Return to the last state."""
        if self.past:
            (self.state, self.begun), self.past = self.past[-1], self.past[:-1]
            self._show()

    def answer(self) -> None:
        """Add the label that the oracle gives at the most informative place."""
        oracle, place = self.begun.oracle, self.place
        if oracle is not None and place is not None:
            self.act(lambda state: actions.add_point(state, place, min(oracle(place), state.n_classes - 1)))

    def stop(self) -> None:
        """Cancel what is running."""
        if self.worker.cancel():
            self.layout.say("Stopped.")
        self._rest()

    def _rest(self) -> None:
        self.busy, self.layout["stop"].disabled = False, True

    def run(
        self, parts: Iterable[Any], show: Callable[[Any], None], words: str = "", pause: float = 0.0
    ) -> None:
        """Compute something that takes long, and show its parts; the button Stop cancels it.

        If it is announced in words, the surface of the evidence follows it.
        """
        if words:
            self.layout.say(words)
        self.busy, self.layout["stop"].disabled = True, False

        def ended(error: Exception | None) -> None:
            self._rest()
            if error is not None:
                self.layout.say(sentence(error), error=True)
            if words:
                self._follow()

        self.worker.submit(parts, show, ended, pause)

    def learn(self) -> None:
        """Learn the hyperparameters, and show each step of it."""
        self.remember()
        path: list[Any] = []

        def show(part: tuple[Scene, str]) -> None:
            found, words = part
            self.state = found.state
            self._show_widgets()
            self.paint(found)
            path.append(found.state.theta)
            self.layout.landscape.mark("path", np.array(path), self.layout.chosen)
            self.layout.say(words)

        self.run(steps.learn(self.state), show, "Learning the hyperparameters.", PAUSE)

    def surface(self, wait: float = 0.0) -> None:
        """Draw the evidence over two hyperparameters, coarse first."""
        self.run(steps.surface(self.state, self.layout.chosen, wait), self.layout.landscape.show)

    def check(self) -> None:
        """Say how wrong the approximation is, of both methods if two are compared."""
        state, verdicts = self.state, list[str]()
        methods = dict.fromkeys(filter(None, (state.method, state.other)))
        states = [replace(state, method=method) for method in methods]

        def show(verdict: str) -> None:
            verdicts.append(verdict)
            self.layout.write("words", self.begun.words, *verdicts)
            self.layout.say("")

        self.run(map(steps.verdict, states), show, "Comparing with importance sampling.")

    def chains(self) -> None:
        """Draw functions by Markov chains, more and more of them."""
        state = self.state

        def show(running: steps.Running) -> None:
            self.canvas.show_running(state, running)
            self.layout.say(f"MCMC (dashed): {running.n_draws} draws.")

        self.run(steps.run_chains(state), show, "Starting Markov chains.")

    def ask(self) -> None:
        """Find the most informative place."""

        def show(found: tuple[Any, str]) -> None:
            self.place, words = found
            self.state = replace(self.state, cursor=tuple(self.place.tolist()), selected=None)
            self.canvas.show_points(self.state, cursor=True)
            unknown = "Nobody knows the label here: you are the oracle, press Enter."
            self.layout.write("asked", words if self.begun.oracle else f"{words} {unknown}")
            self.layout["answer"].disabled = self.begun.oracle is None
            self.layout.say("")

        question = partial(steps.question, self.state)
        self.run(map(question, [self.layout["score"].value]), show, "Looking for the place.")

    def download(self, kind: str) -> None:
        """Make a file, and have the browser save it."""
        _, name, mime = KINDS[kind]

        def show(content: bytes) -> None:
            text = base64.b64encode(content).decode()
            self.layout["file"].value = ""  # the same file may be wanted twice
            self.layout["file"].value = f"{name}|{mime}|{text}"
            self.layout.say(f"{name} has {len(content):,} bytes.")

        self.run(map(partial(file_of, self.state), [kind]), show, f"Making {name}.")


def _landscape(state: State) -> Any:
    """Return what a surface of the evidence belongs to: the kernel and the view."""
    return state.first, state.operator, state.second, state.points.view.tolist()
