"""The session of one browser tab: its state, and what happens when a widget is used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpclass.explore import state as actions
from gpclass.explore import steps
from gpclass.explore.jobs import Worker
from gpclass.explore.page.canvas import Canvas
from gpclass.explore.page.layout import FIELDS, Layout
from gpclass.explore.scene import Scene, scene, sentence
from gpclass.explore.state import PageState, nearest, start, start_names
from gpclass.explore.steps import Surface
from gpclass.learning.strategies import SAMPLING

CELLS = 100.0  # a move of the pointer counts if it is at least the width of the picture divided by this
KEPT = ("likelihood", "method", "other", "large")  # fields kept when another problem is chosen


class Session:
    """The page of one user; it shares nothing with other pages."""

    def __init__(self, deliver: Any, table: PageState | None = None, *, worker: Any = Worker) -> None:
        self.table, self.state = table, table or start(start_names()[0])
        self.canvas = Canvas()
        self.layout = Layout(self.state.origin)
        self.painter = worker(deliver, patient=True)
        self.worker, self.mapper = worker(deliver), worker(deliver)  # for buttons; for the surface
        self.shown = Scene(self.state)
        self.surface: Surface | None = None  # the one that is drawn, if it is that of the state
        self.place: Any = None  # where the pointer is
        self.pointed: Any = None  # the same in cells, and the picture there
        self.dragged: int | None = None
        self.painted = 0
        self.quiet = False  # True while the page, not the user, changes its widgets
        self._connect()
        self.act(lambda state: state)

    def close(self) -> None:
        """Cancel everything."""
        for worker in (self.painter, self.worker, self.mapper):
            worker.cancel()

    def _connect(self) -> None:
        """Call the methods below when the user clicks, drags or changes a widget."""
        self.canvas.listen(self.on_canvas)
        self.layout.landscape.fig.on_event("tap", lambda event: self.go_to(event.x, event.y))
        for name, attribute in FIELDS.items():
            self.layout[name].on_change(attribute, partial(self._changed, name))
        self.layout["delete"].on_click(partial(self.act, actions.delete_point))
        for name in ("learn", "stop", "check"):
            self.layout[name].on_click(getattr(self, name))

    def _changed(self, name: str, attr: str, old: Any, new: Any) -> None:
        if name == "origin" and not self.quiet:
            self.begin(new)
        elif not self.quiet:
            self.act(lambda state: actions.change(state, name, new))

    # --------------------------------------------------------------------------------- state

    def act(self, action: Callable[[PageState], PageState]) -> None:
        """Replace the state by the result of an action; show its points at once, and its predictions when computed."""
        self.state = action(self.state)
        self._show_widgets()
        self.worker.cancel()
        self.mapper.cancel()
        slow = bool({self.state.method, self.state.other} & set(SAMPLING))
        self.layout["stop"].disabled = not slow
        if slow:
            self.layout.say("Drawing functions from the posterior.")
        self.painter.submit(map(scene, [self.state]), self.paint)

    def begin(self, name: str) -> None:
        """Start with another problem, and keep method and likelihood."""
        self.place = None
        own = self.table if self.table is not None and name == self.table.origin else None
        self.act(lambda old: replace(own or start(name), **{field: getattr(old, field) for field in KEPT}))

    def on_canvas(self, kind: str, place: Any) -> None:
        """Add, select or drag a point."""
        if kind == "mousemove":
            self.point_at(place)
        elif kind == "tap":
            self.place = place
            self.act(lambda state: actions.click(state, place))
        elif kind == "panstart":
            self.dragged = nearest(self.state.points, place)
        elif self.dragged is not None:
            i = self.dragged
            self.act(lambda state: actions.move_point(state, i, place))
            self.dragged = None if kind == "panend" else i

    def point_at(self, place: Any) -> None:
        """Show what the prediction at a place is based on, once for each place and picture; nothing for None."""
        picture, self.place = self.shown.picture, place
        if picture is None or place is None:
            self.pointed = None
            self.layout.explain()
            self.canvas.show_shares(self.state)
            return
        view = picture.state.points.view
        cell = np.round(CELLS * (np.array(place)[: len(view)] - view[:, 0]) / np.ptp(view, axis=1)).tolist()
        if self.dragged is None and self.pointed != (cell, picture):
            self.pointed = cell, picture
            words, rows, shares = steps.reasons(picture, place)
            self.layout.explain(words, place)
            self.canvas.show_shares(picture.state, rows, shares)

    def go_to(self, x: float | None, y: float | None) -> None:
        """Go to the hyperparameters that were clicked on the surface."""
        if x is not None and y is not None and len(self.state.theta) > 1:
            self.act(lambda state: actions.change(actions.change(state, "dial0", x), "dial1", y))

    # ------------------------------------------------------------------------------- picture

    def _show_widgets(self, path: Any = ()) -> None:
        self.quiet = True
        try:
            self.layout.show(self.state, path)
            self.canvas.show_points(self.state)
        finally:
            self.quiet = False

    def paint(self, found: Scene) -> None:
        """Show the pictures, the boundaries and the messages of a computed scene."""
        self.shown, old, new = found, self.state, found.state
        if old.kernel is None and (old.family, old.origin) == (new.family, new.origin):
            self.state = replace(old, kernel=new.kernel)
            self._show_widgets()
        self.canvas.show(found)
        self.layout.show_effects(found.picture)
        self.layout["stop"].disabled = True
        self.painted += 1
        self.canvas.root.tags = [self.painted]  # a new tag marks a new picture, for tests in a browser
        notes = " ".join(dict.fromkeys(note for each in found.pictures for note in each.notes))
        self.layout.say(found.error or notes, error=bool(found.error))
        code = [f"In Python: {picture.clf!r}" for picture in found.pictures]
        self.layout.write("words", found.state.words, *code)
        self.point_at(self.place if new.selected is None else new.points.markers[new.selected])
        self.survey()

    def survey(self) -> None:
        """Draw the evidence over two hyperparameters if it has changed, and compare its maximum with the star."""
        self.mapper.cancel()
        picture, landscape = self.shown.picture, self.layout.landscape
        if (
            picture is None
            or picture.clf.log_marginal_likelihood_value_ is None
            or len(picture.state.theta) < 2
        ):
            self.surface = None
            landscape.put("log evidence")
        elif self.surface is None or not self.surface.covers(picture.state):
            self.surface = None
            landscape.fig.title.text = "log evidence"  # until the surface is computed
            self.mapper.submit(steps.surface(picture.state), self.show_surface)
        self.layout.write("note", *([self.surface.note(picture)] if self.surface and picture else []))

    def show_surface(self, found: Surface) -> None:
        """Show a surface that was computed for the state that is shown."""
        self.surface = found
        self.layout.show_surface(found)
        self.survey()

    # ------------------------------------------------------------------------------- buttons

    def run(self, parts: Iterable[Any], show: Callable[[Any], None], words: str) -> None:
        """Run a long computation and show its parts; the button Stop cancels it, and the surface waits."""
        self.mapper.cancel()
        self.layout.say(words)
        self.layout["stop"].disabled = False

        def ended(error: Exception | None) -> None:
            self.layout["stop"].disabled = True
            if error is not None:
                self.layout.say(sentence(error), error=True)
            self.survey()

        self.worker.submit(parts, show, ended)

    def stop(self) -> None:
        """Cancel the computation that a button started, and pictures that are not drawn yet."""
        self.layout["stop"].disabled = True
        if self.worker.cancel() + self.painter.cancel():
            self.layout.say("Stopped.")

    def learn(self) -> None:
        """Learn the hyperparameters, and show each step of it."""
        path: list[Any] = []

        def show(part: tuple[Scene, str]) -> None:
            found, words = part
            self.state = found.state
            path.append(found.state.theta)
            self._show_widgets(path)
            self.paint(found)
            self.layout.say(words)

        self.run(steps.learn(self.state), show, "Learning the hyperparameters.")

    def check(self) -> None:
        """Show the error of the approximation, for both methods if two are compared."""
        verdicts: list[str] = []

        def show(verdict: str) -> None:
            verdicts.append(verdict)
            self.layout.write("words", self.state.words, *verdicts)
            self.layout.say("")

        self.run(steps.verdicts(self.state), show, "Comparing with importance sampling.")
