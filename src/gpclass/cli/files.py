"""Files of the user: one-sentence errors about them, and which of them a command may overwrite."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any

ARROW = (".parquet", ".feather", ".arrow")
ENDINGS = {
    "model": (".gpc",),
    "table": (".csv", ".tsv", ".json", ".parquet"),
    "figure": (".png", ".pdf", ".svg", ".jpg"),
}


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


def ending(path: str) -> str:
    """Return the ending of a path in lower case, ignoring endings of compressed files such as .gz."""
    stem, last = os.path.splitext(path.lower())
    return os.path.splitext(stem)[1] if last in (".gz", ".zip", ".bz2", ".xz", ".zst") else last


def check_output(path: str, kind: str, inputs: Iterable[str | None], *, force: bool) -> None:
    """Raise unless a file can be written; called before anything is computed.

    An input is never replaced. An existing file is replaced if it has an ending of this kind of output, otherwise with
    --force only.
    """
    directory = os.path.dirname(path) or "."
    if not os.path.isdir(directory):
        raise InputError(f"{path} cannot be written: there is no directory {directory}.")
    if os.path.isdir(path):
        raise InputError(f"{path} cannot be written: it is a directory, expected the name of a file.")
    expected = ", ".join(ENDINGS[kind])
    if kind == "figure" and ending(path) not in ENDINGS[kind]:
        raise InputError(f"{path} ends in {ending(path)!r}, expected a figure in {expected}.")
    if not os.path.isfile(path):  # a new file, a pipe or a device
        return
    for other in filter(None, inputs):
        if os.path.exists(other) and os.path.samefile(path, other):
            raise InputError(f"{path} is an input of this command, and would be lost: give another output.")
    if ending(path) not in ENDINGS[kind] and os.path.getsize(path) and not force:
        raise InputError(
            f"{path} exists, and a {kind} is expected to end in {expected}: give another output, or --force to "
            "replace it."
        )


def read_model(path: str) -> tuple[Any, dict[str, Any]]:
    """Return the classifier in a file, and the record that `gpclass fit` saved with it, if any."""
    from gpclass.persistence import load_with_extra

    with access(path, "read"):
        clf, about = load_with_extra(path)
    if getattr(clf, "n_features_in_", None) is None:
        raise InputError(f"{path} contains a model of structured inputs, not of a table: use it in Python.")
    return clf, about or {}
