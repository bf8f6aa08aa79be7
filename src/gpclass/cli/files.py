"""Files of the user: one-sentence errors about them, and which of them a command may write."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gpclass.cli import output
from gpclass.core import text

ENDINGS = {
    "model": (".gpc",),
    "table": (".csv", ".csv.gz", ".json", ".json.gz", ".parquet"),
    "figure": (".png", ".pdf", ".svg", ".jpg"),
    "page": (".html", ".md"),
}
named = text.named


class InputError(ValueError):
    """An input that cannot be used; the message is one sentence: what was found, what to do."""


def check_known(found: str, others: str, names: Iterable[str], known: Sequence[str]) -> None:
    """Raise unless all names are known: ``found``, the names that are not, the most similar one, and ``others``."""
    if missing := [name for name in names if name not in known]:
        wrong = f"{'s' * (len(missing) > 1)} {named(missing)}{text.similar(missing[0], known)}"
        raise InputError(f"{found}{wrong}: {others} {named(known, 12)}.")


@contextlib.contextmanager
def access(path: str, verb: str) -> Iterator[None]:
    """Turn an operating system error into one sentence about the file; ``verb`` is "read" or "written"."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be {verb}: {error.strerror or error}.") from error


def check_output(path: str, kind: str, inputs: Iterable[str | None]) -> None:
    """Raise unless a file can be written; called before anything is computed.

    A file needs an ending of this kind of output, and an input is never replaced. Pipes and devices may have any name.
    """
    directory = os.path.dirname(path) or "."
    if not os.path.isdir(directory):
        raise InputError(f"{path} cannot be written: there is no directory {directory}.")
    if os.path.isdir(path):
        raise InputError(f"{path} cannot be written: it is a directory, expected the name of a file.")
    if os.path.exists(path) and not os.path.isfile(path):
        return
    for other in filter(None, inputs):
        if os.path.exists(other) and os.path.exists(path) and os.path.samefile(path, other):
            raise InputError(f"{path} is also an input, and would be overwritten: give another output.")
    if not path.lower().endswith(ENDINGS[kind]):
        raise InputError(
            f"{path} is not the name of a {kind} file, expected one that ends in {', '.join(ENDINGS[kind])}."
        )


def write(path: str, content: bytes, what: str) -> None:
    """Write a file completely or not at all, and say so."""
    from gpclass.core import files

    with access(path, "written"), files.replacing(path) as file:
        file.write(content)
    output.remark(f"Wrote {what} to {path}.")


def read_model(path: str) -> tuple[Any, dict[str, Any]]:
    """Return the classifier in a file, and the record that `gpclass fit` saved with it, if any."""
    from gpclass.persistence import load_with_extra

    with access(path, "read"):
        clf, about = load_with_extra(path)
    if getattr(clf, "n_features_in_", None) is None:
        raise InputError(f"{path} contains a model of structured inputs, not of a table: use it in Python.")
    return clf, about or {}
