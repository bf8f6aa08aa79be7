"""Warnings as sentences for the page, also from several threads at once."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_local = threading.local()
_open: list[Any] = []  # one entry for each thread inside; the first holds what was there before


@contextmanager
def collected() -> Iterator[list[str]]:
    """Give a list to which the warnings of this thread are added, each once.

    `warnings.catch_warnings` changes the whole process. So the first thread that enters installs one function that
    tells the threads apart, and the last one that leaves removes it.

    Examples
    --------
    >>> with collected() as notes:
    ...     warnings.warn("This is doubtful.")
    >>> notes
    ['This is doubtful.']
    """
    outer = getattr(_local, "notes", None)
    notes: list[str] = []
    _local.notes = notes
    with _lock:
        _open.append(_install() if not _open else None)
    try:
        yield notes
    finally:
        _local.notes = outer
        with _lock:
            last = _open.pop()
            if last is not None:
                last.__exit__(None, None, None)


def _install() -> Any:
    context = warnings.catch_warnings()
    context.__enter__()
    warnings.simplefilter("always")
    warnings.showwarning = _show
    return context


def _show(message: Any, category: type[Warning], *args: Any, **extra: Any) -> None:
    notes: list[str] | None = getattr(_local, "notes", None)
    words = " ".join(str(message).split())
    if notes is not None and words not in notes:
        notes.append(words)
