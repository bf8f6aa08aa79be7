"""The error that the command line reports, and helpers to word it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator


class InputError(ValueError):
    """An input that cannot be used; the message is one sentence: what was found, what to do."""


def named(names: Iterable[object], most: int = 6) -> str:
    """Return names in quotes, separated by commas; only the first few of many.

    >>> named("abcdefgh", most=2)
    "'a', 'b' and 6 more"
    """
    shown = [repr(str(name)) for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


@contextlib.contextmanager
def access(path: str, verb: str) -> Iterator[None]:
    """Turn an operating system error into one sentence about the file; ``verb`` is "read" or "written"."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be {verb}: {error.strerror or error}.") from error
