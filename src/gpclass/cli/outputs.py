"""Which files a command may write: never one of its inputs, and none of another kind without --force."""

from __future__ import annotations

import contextlib
import csv
import os
import zlib
from collections.abc import Mapping
from itertools import islice

from gpclass.cli.errors import InputError, access

INPUTS = ("model", "data", "cost")  # options and arguments that can name files
KINDS = {"model": "a model file", "table": "a table", "figure": "a figure", "report": "an HTML page"}
UNKNOWN = "a file of another kind"
STARTS = {
    b"\x89PNG": "figure",
    b"%PDF": "figure",
    b"\xff\xd8\xff": "figure",
    b"<!DOCTYPE html": "report",
    b"PAR1": "table",
    b"ARROW1": "table",
    b"[": "table",
}
READ = 1 << 20  # bytes of an existing file that are looked at
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


def check_outputs(given: Mapping[str, object], **outputs: str | None) -> None:
    """Raise unless files can be written, by their kinds; called before anything is computed."""
    taken = {str(given[name]): "an input" for name in INPUTS if given.get(name)}
    for kind, path in outputs.items():
        if path is None:
            continue
        directory = os.path.dirname(path) or "."
        if not os.path.isdir(directory):
            raise InputError(f"{path} cannot be written: there is no directory {directory}.")
        if os.path.isdir(path):
            raise InputError(f"{path} cannot be written: it is a directory, expected the name of a file.")
        for other, role in taken.items():
            if _is_same(path, other):
                raise InputError(
                    f"{path} is {role} of this command too, and would be lost: give another output."
                )
        if not given["force"] and os.path.isfile(path) and os.path.getsize(path) > 0:
            with access(path, "read"), open(path, "rb") as file:
                found = kind_of(file.read(READ))
            if found != kind:
                raise InputError(
                    f"{path} is {KINDS.get(found or '', UNKNOWN)}, and would be replaced by {KINDS[kind]}: "
                    "give another output, or --force to replace it."
                )
        taken[path] = "an output"


def _is_same(path: str, other: str) -> bool:
    """Return whether two names are of one file, also through links; pipes and devices can be shared."""
    if os.path.exists(path) and os.path.exists(other):
        return os.path.isfile(path) and os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)


def kind_of(start: bytes) -> str | None:
    """Return the kind of a file by its first bytes, or None if it is none that commands write."""
    if start.startswith(b"\x1f\x8b"):
        with contextlib.suppress(zlib.error):
            start = zlib.decompressobj(31).decompress(start, READ)
    for magic, kind in STARTS.items():
        if start.startswith(magic):
            return kind
    if start[8:9] == b"{" and b'"gpclass"' in start:
        return "model"
    if start.startswith(b"<?xml") and b"<svg" in start:
        return "figure"
    lines = start.decode("utf-8", "replace").splitlines()
    return "table" if b"\0" not in start and any(_is_csv(lines, mark) for mark in SEPARATORS) else None


def _is_csv(lines: list[str], separator: str) -> bool:
    try:
        rows = list(islice(csv.reader(lines, delimiter=separator), 2))
    except csv.Error:  # a line that is too long
        return False
    return len(rows) == 2 and len(rows[0]) == len(rows[1]) > 1
