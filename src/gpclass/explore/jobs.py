"""Work in a thread of its own, so that the page never waits: the latest request counts, and can be cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Show = Callable[[Any], None]
Deliver = Callable[[Callable[[], None]], Any]


class CancelledError(Exception):
    """Somebody cancelled the work."""


@dataclass(eq=False)
class Task:
    """One request: what to do, and who is told of its parts, its end and its failure."""

    work: Callable[[Task], None]
    deliver: Deliver
    on_part: Show
    on_end: Callable[[BaseException | None], None]
    cancelled: threading.Event = field(default_factory=threading.Event)

    def show(self, part: Any) -> None:
        """Hand a part of the result to the page; raise if nobody wants it any more."""
        self.check()
        self.deliver(lambda: None if self.cancelled.is_set() else self.on_part(part))

    def check(self) -> None:
        """Raise if this was cancelled."""
        if self.cancelled.is_set():
            raise CancelledError

    def pause(self, seconds: float) -> None:
        """Wait, so that people can follow."""
        self.cancelled.wait(seconds)
        self.check()

    def run(self) -> None:
        """Do the work; an error goes to the page."""
        error: BaseException | None = None
        try:
            self.check()
            self.work(self)
        except BaseException as caught:  # the thread has to survive whatever happens
            error = caught
        self.deliver(lambda: self.on_end(error))


class Worker:
    """A thread that does the latest task; ``patient`` lets the running one finish, else it is cancelled."""

    def __init__(self, deliver: Deliver, *, patient: bool) -> None:
        self._deliver, self._patient = deliver, patient
        self._changed = threading.Condition()
        self._waiting: Task | None = None
        self._running: Task | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._loop, daemon=True, name="gpclass-explore")
        self._thread.start()

    def submit(self, work: Callable[[Task], None], on_part: Show, on_end: Any = None) -> None:
        """Do this next, in place of what is waiting."""
        with self._changed:
            if not self._patient and self._running is not None:
                self._running.cancelled.set()
            if self._waiting is not None:
                self._waiting.cancelled.set()
            self._waiting = Task(work, self._deliver, on_part, on_end or (lambda error: None))
            self._changed.notify()

    def cancel(self) -> bool:
        """Cancel everything, and return whether there was anything."""
        with self._changed:
            tasks = [task for task in (self._waiting, self._running) if task is not None]
            for task in tasks:
                task.cancelled.set()
            self._waiting = None
        return bool(tasks)

    def close(self) -> None:
        """Cancel everything, and end the thread."""
        self.cancel()
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _loop(self) -> None:
        while True:
            with self._changed:
                self._running = None
                self._changed.wait_for(lambda: self._waiting is not None or self._closed)
                task = self._waiting
                if self._closed or task is None:
                    return
                self._running, self._waiting = task, None
            task.run()
            del task  # an idle thread holds no page
