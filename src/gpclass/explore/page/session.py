"""One open page: its state, its widgets, and what happens when somebody uses them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from gpclass.explore import keys
from gpclass.explore.jobs import CancelledError, Task, Worker
from gpclass.explore.page import canvas as drawing
from gpclass.explore.page import controls, lines, panels, tasks
from gpclass.explore.points import nearest
from gpclass.explore.problems import DRAWN, Start, start, start_names
from gpclass.explore.scene import Scene, scene, sentence
from gpclass.explore.state import (
    NEAR,
    State,
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
        old, self.state = self.state, new
        if old.choice != new.choice or old.points.view is not new.points.view:
            panels.clear_surface(self.panels)
        self._show()

    def _show(self) -> None:
        """Show the points at once, and what the model believes as soon as it is known."""
        self._show_widgets()
        if self.busy and self.worker.cancel():
            self.rest()
        state = self.state
        self.painter.submit(lambda task: task.show(scene(state)), self.paint)

    def _show_widgets(self) -> None:
        self.quiet = True  # widgets that are set here have not been used
        try:
            controls.show_controls(self.controls, self.state, self.begun.name)
            drawing.show_points(self.canvas, self.state, cursor=self.keyed)
            panels.show_here(self.panels, self.state)
        finally:
            self.quiet = False

    def paint(self, found: Scene) -> None:
        """Draw a scene."""
        self.shown, self.place = found, None
        drawing.show_scene(self.canvas, found)
        self.painted += 1
        self.canvas.root.tags = [self.painted]  # so that a browser can tell that the picture is new
        panels.show_evidence(self.panels, found)
        panels.say(self.panels, found.error or " ".join(found.notes), error=bool(found.error))
        self.panels.words.text = self._words(found)
        self.panels.answer.disabled = True
        self.follow()

    def follow(self) -> None:
        """Draw the surface of the evidence again, if that is wanted, possible, and nothing else is going on."""
        found = self.shown
        if (
            self.busy
            or not self.panels.follow.active
            or found is None
            or found.state.points is not self.state.points
        ):
            return
        if found.occam is not None and len(self.state.theta) > 1:
            tasks.draw_surface(self, IDLE)

    def _words(self, found: Scene) -> str:
        words = [self.begun.words]
        if found.difference is not None:
            words.append(found.difference.words)
            both = {title(found.state.method): found.fit, title(found.state.other): found.other_fit}
            known = [
                f"{name} {fit.evidence:.2f}" for name, fit in both.items() if fit and fit.evidence is not None
            ]
            words.append(f"Log evidence: {', '.join(known)}." if known else "")
        return " ".join(f"<p>{panels.plain(each)}</p>" for each in words if each)

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
            c.learn: partial(tasks.learn, self), c.stop: self.stop, c.check: partial(tasks.check, self),
            c.chains: partial(tasks.run_chains, self),
            p.draw: partial(tasks.draw_surface, self), p.ask: partial(tasks.ask, self),
            p.answer: partial(tasks.answer, self),
        }  # fmt: skip
        for button, work in buttons.items():
            button.on_click(work)
        for kind, button in p.files.items():
            button.on_click(partial(tasks.download, self, kind))
        from bokeh.events import Tap

        p.surface_fig.on_event(Tap, lambda event: tasks.go_to(self, event.x, event.y))

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

    def run(
        self,
        work: Callable[[Task], None],
        on_part: Callable[[Any], None],
        words: str = "",
        *,
        last: bool = False,
    ) -> None:
        """Do something that takes long in a thread of its own; the button Stop cancels it.

        Unless it is the last thing to do, the surface of the evidence follows.
        """
        if words:
            panels.say(self.panels, words)
        self.busy, self.controls.stop.disabled = True, False

        def ended(error: BaseException | None) -> None:
            if isinstance(error, CancelledError):
                return
            self.rest()
            if error is not None:
                panels.say(self.panels, sentence(error), error=True)
            if not last:
                self.follow()

        self.worker.submit(work, on_part, ended)

    def rest(self) -> None:
        """Show that nothing is running."""
        self.busy, self.controls.stop.disabled = False, True

    def stop(self) -> None:
        """Cancel what is running."""
        if self.worker.cancel():
            panels.say(self.panels, "Stopped.")
        self.rest()
