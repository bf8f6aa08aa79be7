"""One open page: its state, its widgets, and what happens when somebody uses them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpclass.explore import ask, differ, keys, learn, occam
from gpclass.explore.fit import fit
from gpclass.explore.jobs import CancelledError, Task, Worker
from gpclass.explore.page import canvas as drawing
from gpclass.explore.page import controls, lines, panels
from gpclass.explore.points import nearest
from gpclass.explore.problems import DRAWN, Start, start, start_names
from gpclass.explore.scene import Scene, scene, sentence
from gpclass.explore.share import KINDS, file_of
from gpclass.explore.state import (
    NEAR,
    State,
    add_point,
    clear_points,
    click,
    delete_point,
    move_point,
    select_class,
    set_classes,
    set_kernel,
    set_model,
    set_theta,
    title,
)

UNDO = 200  # states that are remembered
IDLE = 0.4  # seconds before the surface follows a change
PAUSE = 0.12  # seconds between the steps of learning
MARK = 0.13  # distance from a marker, as a probability, within which a click on a line means it


class Session:
    """The page of one visitor; nothing in it is shared with another one."""

    def __init__(self, deliver: Any, table: Start | None = None, *, worker: Any = Worker) -> None:
        self.table = table
        names = list(dict.fromkeys([*([] if table is None else [table.name]), *start_names()]))
        self.canvas, self.controls = drawing.make_canvas(), controls.make_controls(names)
        self.panels = panels.make_panels()
        self.painter, self.worker = worker(deliver, patient=True), worker(deliver, patient=False)
        self.begun = table or start(names[0])
        self.state = self.begun.state
        self.past: list[tuple[State, Start]] = []
        self.shown: Scene | None = None
        self.place: Any = None  # the most informative one
        self.dragged: int | None = None
        self.painted = 0
        self.seed, self.busy, self.quiet = 0, False, False
        self.keyed = False  # whether the cursor of the keyboard is shown
        self._connect()
        self._show()

    def roots(self) -> list[Any]:
        """Return the models that the page embeds."""
        return [self.canvas.root, *controls.layout(self.controls), *panels.roots(self.panels)]

    def close(self) -> None:
        """End the threads."""
        self.painter.close()
        self.worker.close()

    # ------------------------------------------------------------------------------ actions

    def act(self, action: Callable[[State], State], *, remember: bool = True) -> None:
        """Replace the state by what an action makes of it, and show it; an error is a sentence on the page."""
        try:
            new = action(self.state)
        except Exception as error:
            panels.say(self.panels, sentence(error), error=True)
            self._show_widgets()
            return
        if new is self.state:
            return
        if remember:
            self.remember()
        self.state = new
        self._show()

    def _show(self) -> None:
        """Show the points at once, and what the model believes as soon as it is known."""
        self._show_widgets()
        if self.busy and self.worker.cancel():
            self._rest()
        state = self.state
        self.painter.submit(lambda task: task.show(scene(state)), self._paint)

    def _show_widgets(self) -> None:
        self.quiet = True  # widgets that are set here have not been used
        try:
            controls.show_controls(self.controls, self.state, self.begun.name)
            drawing.show_points(self.canvas, self.state, cursor=self.keyed)
            panels.show_here(self.panels, self.state)
        finally:
            self.quiet = False

    def _paint(self, found: Scene) -> None:
        self.shown, self.place = found, None
        drawing.show_scene(self.canvas, found)
        self.painted += 1
        self.canvas.root.tags = [self.painted]  # so that a browser can tell that the picture is new
        panels.show_evidence(self.panels, found)
        panels.say(self.panels, found.error or " ".join(found.notes), error=bool(found.error))
        self.panels.words.text = self._words(found)
        self.panels.answer.disabled = True
        if (
            self.panels.follow.active
            and found.state is self.state
            and found.fit is not None
            and not self.busy
        ):
            self.draw_surface(IDLE)

    def _words(self, found: Scene) -> str:
        words = [self.begun.words]
        if found.difference is not None:
            words.append(found.difference.words)
        return " ".join(f"<p>{panels.escape(each)}</p>" for each in words)

    # ------------------------------------------------------------------------------- events

    def _connect(self) -> None:
        c, p = self.controls, self.panels
        drawing.listen(self.canvas, self.on_canvas)
        self._choose(c.start, "value", lambda value: self.begin(value))
        self._choose(c.drawn, "active", lambda value: self.act(lambda s: select_class(s, value)))
        self._choose(c.classes, "value", lambda value: self.act(lambda s: set_classes(s, int(value))))
        for name in ("first", "operator", "second"):
            self._choose(getattr(c, name), "value", partial(self._kernel, name))
        for name in ("method", "likelihood", "integration", "other"):
            self._choose(getattr(c, name), "value", partial(self._model, name))
        for k, dial in enumerate(c.dials):
            self._choose(dial, "value", partial(self._dial, k))
        self._choose(c.costly, "value", lambda value: self._model("costly", int(value)))
        self._choose(
            c.cost, "value", lambda value: self._model("cost", 1.0 if abs(value) < 1e-9 else 10.0**value)
        )
        self._choose(
            c.rejects, "active", lambda on: self._model("reject", 10.0**c.reject.value if on else None)
        )
        self._choose(c.reject, "value", lambda value: self._model("reject", 10.0**value))
        self._choose(p.keys, "value", lambda value: self.on_key(value.rpartition(" ")[0] or value))
        for widget in (p.first, p.second):
            self._choose(widget, "value", lambda value: panels.show_here(p, self.state))
        buttons = {
            c.prior: lambda: self.begin(DRAWN), c.delete: lambda: self.act(delete_point), c.undo: self.undo,
            c.clear: lambda: self.act(clear_points),
            c.learn: self.learn, c.stop: self.stop, c.check: self.check, c.chains: self.run_chains,
            p.draw: lambda: self.draw_surface(), p.ask: self.ask, p.answer: self.answer,
        }  # fmt: skip
        for button, work in buttons.items():
            button.on_click(work)
        for kind, button in p.files.items():
            button.on_click(partial(self.download, kind))
        from bokeh.events import Tap

        p.surface_fig.on_event(Tap, lambda event: self.go_to(event.x, event.y))

    def _choose(self, widget: Any, name: str, work: Callable[[Any], None]) -> None:
        """Call ``work`` when a visitor changes a widget, not when the page does."""

        def changed(attr: str, old: Any, new: Any) -> None:
            if not self.quiet:
                work(new)

        widget.on_change(name, changed)

    def _kernel(self, name: str, value: str) -> None:
        self.act(lambda state: set_kernel(state, **{name: value}))

    def _model(self, name: str, value: Any) -> None:
        value = "" if value == controls.NONE else value
        self.act(lambda state: set_model(state, **{name: value}))

    def _dial(self, k: int, value: float) -> None:
        theta = list(self.state.theta)
        if k < len(theta):
            theta[k] = value * controls.LN10
            self.act(lambda state: set_theta(state, theta))

    def on_canvas(self, kind: str, place: Any, height: float | None) -> None:
        """Add, select or drag a point; ``height`` is that of the click beside the probabilities of a line."""
        if None in place:
            return
        self.keyed = False
        if kind == "tap":
            self.act(lambda state: click(state, place, self._reach(place, height)))
        elif kind == "panstart":
            i, distance = nearest(self.state.points, place)
            self.dragged = i if distance <= self._reach(place, height) else None
            if self.dragged is not None:
                self.remember()
        elif self.dragged is not None:
            i = self.dragged
            self.act(lambda state: move_point(state, i, place), remember=False)
            self.dragged = None if kind == "panend" else i

    def _reach(self, place: Any, height: float | None) -> float:
        """Return how near a click has to be to mean a point that is there."""
        i, _ = nearest(self.state.points, place)
        if i is None or self.state.points.n_columns == 2:
            return NEAR
        mark = float(lines.marker_heights(self.state.points.codes[i], self.state.n_classes))
        return 0.5 * NEAR if height is None or abs(height - mark) < MARK else -1.0

    def on_key(self, key: str) -> None:
        """Do what a key means."""
        self.keyed = True
        if key.lower() == "z":
            self.undo()
        else:
            self.act(lambda state: keys.press(state, key))

    def begin(self, name: str) -> None:
        """Start with another problem, and keep method and likelihood."""
        self.seed += name == DRAWN
        old = self.state
        try:
            begun = self.table if self.table is not None and name == self.table.name else None
            begun = begun or start(name, base=old, seed=self.seed)
        except Exception as error:
            panels.say(self.panels, sentence(error), error=True)
            return
        self.remember()
        self.begun = begun
        kept = {name: getattr(old, name) for name in ("likelihood", "method", "integration", "other")}
        self.act(lambda state: replace(begun.state, **kept), remember=False)

    def remember(self) -> None:
        """Remember the state for the button Undo."""
        self.past = [*self.past[-UNDO:], (self.state, self.begun)]

    def undo(self) -> None:
        """Return to the last state."""
        if self.past:
            (self.state, self.begun), self.past = self.past[-1], self.past[:-1]
            self._show()

    # ---------------------------------------------------------------------------- long work

    def _run(self, work: Callable[[Task], None], on_part: Callable[[Any], None], words: str = "") -> None:
        """Do something that takes long in a thread of its own; the button Stop cancels it."""
        if words:
            panels.say(self.panels, words)
        self.busy, self.controls.stop.disabled = True, False

        def ended(error: BaseException | None) -> None:
            if isinstance(error, CancelledError):
                return
            self._rest()
            if error is not None:
                panels.say(self.panels, sentence(error), error=True)

        self.worker.submit(work, on_part, ended)

    def _rest(self) -> None:
        self.busy, self.controls.stop.disabled = False, True

    def stop(self) -> None:
        """Cancel what is running."""
        if self.worker.cancel():
            panels.say(self.panels, "Stopped.")
        self._rest()

    def learn(self) -> None:
        """Learn the hyperparameters, and show each step of it."""
        state, steps = self.state, [np.array(self.state.theta)]
        self.remember()

        def work(task: Task) -> None:
            def report(theta: Any, evidence: float) -> None:
                task.show((theta, evidence, scene(set_theta(state, theta))))
                task.pause(PAUSE)

            path = learn.learn(state, report)
            task.show(
                f"Learned in {len(path.theta)} steps: log evidence {path.evidence[-1]:.3f}. {path.message}"
            )

        def show(part: Any) -> None:
            if isinstance(part, str):
                panels.say(self.panels, part)
                return
            theta, evidence, found = part
            steps.append(theta)
            self.state = found.state
            self.quiet = True
            controls.show_dials(self.controls, self.state)
            self.quiet = False
            self._paint(found)
            panels.show_path(self.panels, self.state, np.array(steps[1:]))
            panels.say(self.panels, f"Learning: log evidence {evidence:.3f}.")

        self._run(work, show, "Learning the hyperparameters.")

    def draw_surface(self, wait: float = 0.0) -> None:
        """Draw the evidence over two hyperparameters, coarse first, if nothing happens before."""
        state, pair = self.state, panels.chosen(self.panels, self.state)

        def work(task: Task) -> None:
            task.pause(wait)
            for found in occam.surface(state, fit(state), pair):
                task.check()
                if found is not None:
                    task.show(found)

        self._run(work, lambda found: panels.show_surface(self.panels, found))

    def go_to(self, x: Any, y: Any) -> None:
        """Go to the hyperparameters that were clicked on the surface."""
        if None in (x, y) or len(self.state.theta) < 2:
            return
        i, j = panels.chosen(self.panels, self.state)
        theta = np.array(self.state.theta)
        theta[[i, j]] = x * controls.LN10, y * controls.LN10
        self.act(lambda state: set_theta(state, theta))

    def check(self) -> None:
        """Say how wrong the approximation is, of both methods if two are compared."""
        state = self.state

        def work(task: Task) -> None:
            for method in dict.fromkeys(name for name in (state.method, state.other) if name):
                task.show(differ.verdict(fit(state, method), method))

        found: list[str] = []

        def show(verdict: differ.Verdict) -> None:
            found.append(_verdict_words(verdict))
            words = "".join(f"<p>{panels.escape(each)}</p>" for each in found)
            self.panels.words.text = f"<p>{panels.escape(self.begun.words)}</p>{words}"
            panels.say(self.panels, "")

        self._run(work, show, "Comparing with importance sampling.")

    def run_chains(self) -> None:
        """Draw functions by Markov chains, more and more of them."""
        state = self.state

        def work(task: Task) -> None:
            for running in differ.run_chains(state):
                task.show(running)

        def show(running: differ.Running) -> None:
            drawing.show_running(self.canvas, state, running)
            panels.say(self.panels, f"MCMC (dashed): {running.n_draws} draws.")

        self._run(work, show, "Starting Markov chains.")

    def ask(self) -> None:
        """Find the most informative place."""
        state, score = self.state, self.panels.score.value

        def show(found: ask.Question) -> None:
            self.place = found.place
            cursor = tuple(found.place.tolist())
            self.state = replace(self.state, cursor=cursor, selected=None)
            drawing.show_points(self.canvas, self.state, cursor=True)
            known = (
                "" if self.begun.oracle else " Nobody knows the label here: you are the oracle, press Enter."
            )
            self.panels.asked.text = f"<p>{panels.escape(found.words + known)}</p>"
            self.panels.answer.disabled = self.begun.oracle is None

        self._run(lambda task: task.show(ask.question(state, fit(state), score)), show)

    def answer(self) -> None:
        """Add the label that the oracle gives."""
        oracle, place = self.begun.oracle, self.place
        if oracle is not None and place is not None:
            self.act(lambda state: add_point(state, place, min(oracle(place), state.n_classes - 1)))

    def download(self, kind: str) -> None:
        """Make a file, and have the browser save it."""
        state, (name, mime) = self.state, KINDS[kind]

        def show(content: bytes) -> None:
            text = base64.b64encode(content).decode()
            self.panels.file.value = ""  # the same file may be wanted twice
            self.panels.file.value = f"{name}|{mime}|{text}"
            panels.say(self.panels, f"{name} has {len(content):,} bytes.")

        self._run(lambda task: task.show(file_of(state, kind)), show, f"Making {name}.")


def _verdict_words(verdict: differ.Verdict) -> str:
    if verdict.corrected is None or verdict.error is None:
        return f"{title(verdict.method)}: {verdict.words}"
    known = "" if verdict.evidence is None else f"log evidence {verdict.evidence:.2f}, "
    return f"{title(verdict.method)}: {known}corrected {verdict.corrected:.2f} ± {verdict.error:.2f}. {verdict.words}"
