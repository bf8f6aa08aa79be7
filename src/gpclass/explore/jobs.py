"""Computations in threads, so that the page never waits: only the latest request runs, and it can be cancelled."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from gpclass.core.progress import watcher

Deliver = Callable[[Callable[[], None]], Any]  # calls a function on the thread of the page

# One thread computes at a time, because warning filters and the interpreter's lock are global.
_computing = threading.Lock()
_END = object()


class Stopped(BaseException):
    """Ends a computation whose result nobody waits for; it passes handlers of `Exception`."""


class Worker:
    """Computes a result in a thread, and passes each of its parts to the page; a part that is None is skipped.

    A new request cancels the previous one, but a ``patient`` worker still shows the part in progress, unless it is a
    fit that reports its progress: that fit stops. All methods are called on the thread of the page.
    """

    def __init__(self, deliver: Deliver, *, patient: bool = False) -> None:
        self._deliver, self._patient = deliver, patient
        self._latest: object = None

    def submit(self, parts: Iterable[Any], on_part: Any, on_end: Any = lambda error: None) -> None:
        """Call ``on_part`` with each part, then ``on_end`` with an error or None, unless the request is cancelled."""
        request = self._latest = object()

        def show(part: Any) -> None:
            if self._patient or request is self._latest:
                on_part(part)

        def end(error: Exception | None) -> None:
            if request is self._latest:
                self._latest = None
                on_end(error)

        def check(progress: object = None) -> None:
            if request is not self._latest:
                raise Stopped

        def work() -> None:
            error, part, left = None, None, iter(parts)
            watcher.set(check)
            try:
                while part is not _END:
                    if part is not None:
                        self._deliver(partial(show, part))
                    with _computing, warnings.catch_warnings(action="ignore"):
                        check()
                        part = next(left, _END)
            except Stopped:
                return
            except Exception as caught:
                error = caught
            self._deliver(partial(end, error))

        threading.Thread(target=work, daemon=True, name="gpclass-explore").start()

    def cancel(self) -> bool:
        """Cancel the latest request, and return whether there was one."""
        running, self._latest = self._latest is not None, None
        return running
