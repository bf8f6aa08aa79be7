"""Work in threads, so that the page never waits: only the latest request counts, and it can be cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from typing import Any

Deliver = Callable[[Callable[[], None]], Any]  # calls a function on the thread of the page


class Worker:
    """Computes the parts of a result in a thread, and hands each to the page.

    A ``patient`` worker finishes what is running, and then does the latest request; any other drops what is running.
    All methods are called on the thread of the page.
    """

    def __init__(self, deliver: Deliver, *, patient: bool) -> None:
        self._deliver, self._patient = deliver, patient
        self._turn: Any = threading.Lock() if patient else nullcontext()
        self._latest: threading.Event | None = None  # set when the latest request is cancelled

    def submit(
        self, parts: Iterable[Any], on_part: Any, on_end: Any = lambda error: None, pause: float = 0.0
    ) -> None:
        """Call ``on_part`` with each part except None, and ``on_end`` with an error or None, if not cancelled before.

        ``pause`` is the time between parts, in seconds.
        """
        if not self._patient:
            self.cancel()
        cancelled = self._latest = threading.Event()

        def show(part: Any) -> None:
            if not cancelled.is_set():
                on_part(part)

        def end(error: Exception | None) -> None:
            if cancelled is self._latest:
                self._latest = None
                on_end(error)

        def work() -> None:
            error = None
            with self._turn:
                if cancelled is not self._latest:
                    return
                try:
                    for part in parts:
                        if part is not None:
                            self._deliver(partial(show, part))
                        if cancelled.wait(pause):
                            return
                except Exception as caught:
                    error = caught
            self._deliver(partial(end, error))

        threading.Thread(target=work, daemon=True, name="gpclass-explore").start()

    def cancel(self) -> bool:
        """Cancel the latest request, and return whether there was one."""
        cancelled, self._latest = self._latest, None
        if cancelled is not None:
            cancelled.set()
        return cancelled is not None
