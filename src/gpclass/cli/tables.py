"""Tables in files: CSV by the standard library, Parquet and Feather by pyarrow, all as columns of texts.

A column stays as texts until it is known what it is for: a label 1 and a category 1 are not the number 1.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpclass.cli.errors import InputError, named
from gpclass.core.protocols import Array

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"})
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
BINARY = {b"PAR1": ".parquet", b"ARROW1": ".feather", b"\x1f\x8b": ".csv.gz"}
MOSTLY = 0.8  # a column that is numbers in this share of its rows is meant to be numbers


@dataclass(frozen=True, eq=False)
class Column:
    """One column: its texts, None where there is none.

    Parameters
    ----------
    name : str
    texts : sequence of str or None
    """

    name: str
    texts: Sequence[str | None]

    @cached_property
    def parsed(self) -> tuple[Array, int | None]:
        """Its numbers, NaN where there are none, and the first row that has a text that is no number."""
        numbers, wrong = np.full(len(self.texts), np.nan), None
        for i, text in enumerate(self.texts):
            if text is not None:
                try:
                    numbers[i] = _number(text)
                except ValueError:
                    wrong = i if wrong is None else wrong
        return numbers, wrong

    @property
    def kind(self) -> str:
        """What the texts look like: number, mixed (numbers but for a few), boolean, text or empty."""
        present = [text for text in self.texts if text is not None]
        if not present:
            return "empty"
        numbers, wrong = self.parsed
        if wrong is None:
            return "number"
        if {text.lower() for text in present} <= {"true", "false"}:
            return "boolean"
        return "mixed" if np.count_nonzero(~np.isnan(numbers)) >= MOSTLY * len(present) else "text"

    def take(self, rows: Any) -> Column:
        """Return some rows of it."""
        return Column(self.name, [self.texts[i] for i in rows])


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns of the same length, by name, and the file they came from."""

    path: str
    columns: dict[str, Column]

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values())).texts)

    def take(self, rows: Any) -> Table:
        """Return some rows."""
        return Table(self.path, {name: column.take(rows) for name, column in self.columns.items()})

    def __getitem__(self, name: str) -> Column:
        if name not in self.columns:
            raise InputError(
                f"{self.path} has no column {name!r}: its columns are {named(self.columns, 12)}."
            )
        return self.columns[name]


def _number(text: str) -> float:
    number = float(text)
    if "_" in text or number != number:  # Python reads over the one, and takes the other for a number
        raise ValueError
    return number


# --------------------------------------------------------------------------------- reading


def read_table(path: str, separator: str | None = None) -> Table:
    """Return the table in a file; the ending of its name says what it is.

    Parameters
    ----------
    path : str
        Ends in ``.parquet`` or ``.feather`` (``.arrow``), else it is CSV, plain or compressed (``.gz``).
    separator : str, optional
        What is between the values of a CSV file; a comma if not given, a tab for ``.tsv``.

    Raises
    ------
    InputError
        One sentence, if there is no table in it.
    """
    plain = path.lower().removesuffix(".gz")
    ending = os.path.splitext(plain)[1]
    if os.path.isdir(path):
        raise InputError(f"{path} is a directory, expected a CSV, Parquet or Feather file.")
    try:
        if ending in (".parquet", ".feather", ".arrow"):
            names, columns = _read_arrow(path, ending)
        else:
            names, columns = _read_csv(path, separator or ("\t" if ending == ".tsv" else ","))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"{path} has more than one column called {named(twice)}: give them names of their own."
        )
    if not columns or not columns[0]:
        raise InputError(f"{path} has a header and no rows: there is nothing to learn from or to predict.")
    return Table(path, {name: Column(name, texts) for name, texts in zip(names, columns, strict=True)})


def _read_csv(path: str, separator: str) -> tuple[list[str], list[list[str | None]]]:
    text = _text(path)
    if not text.strip():
        raise InputError(f"{path} is empty, expected a header and rows of values.")
    rows = _rows(path, text, separator)
    names = [name.strip() for name in next(rows)]
    _check_names(path, names, separator)
    columns: list[list[str | None]] = [[] for _ in names]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            raise InputError(
                f"{path} has {len(row)} values in row {number} and {len(names)} names in its header: "
                "a value with the separator in it needs quotes."
            )
        for column, value in zip(columns, row, strict=True):
            value = value.strip()
            column.append(None if value in MISSING else value)
    return names, columns


def _text(path: str) -> str:
    with open(path, "rb") as file:
        raw = file.read()
    for magic, ending in BINARY.items():
        if raw.startswith(magic) and not path.lower().endswith(".gz"):
            raise InputError(f"{path} is not CSV: it begins like a {ending} file, so give it that ending.")
    if path.lower().endswith(".gz"):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error):
            raise InputError(f"{path} is not a gzip file, or is damaged: compress it again.") from None
    if b"\0" in raw[:100_000] and not raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{path} is not CSV: it has binary data in it.")
    try:
        return raw.decode("utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not CSV in UTF-8: byte {error.start} is {raw[error.start]:#04x}; save it as UTF-8."
        ) from None


def _rows(path: str, text: str, separator: str) -> Iterator[list[str]]:
    """Yield the rows that are not blank."""
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True):
            if row and (len(row) > 1 or row[0].strip()):
                yield row
    except csv.Error as error:
        raise InputError(f"{path} cannot be split into rows ({error}): check its quotes.") from None


def _check_names(path: str, names: list[str], separator: str) -> None:
    other = max((s for s in SEPARATORS if s != separator), key=names[0].count)
    if len(names) == 1 and names[0].count(other):
        shown = "'\\t'" if other == "\t" else repr(other)
        raise InputError(
            f"{path} has the one column {names[0][:60]!r} when it is split at {separator!r}: "
            f"it seems to have a {SEPARATORS[other]} between values, so give --separator {shown}."
        )
    if "" in names:
        raise InputError(f"{path} has no name for column {names.index('') + 1} in its header: give it one.")
    if len(names) > 1 and all(_is_number(name) for name in names):
        raise InputError(f"{path} begins with numbers ({named(names, 3)}), expected a header with names.")


def _is_number(text: str) -> bool:
    try:
        _number(text)
    except ValueError:
        return False
    return True


# ------------------------------------------------------------------------- Parquet and Feather


def _read_arrow(path: str, ending: str) -> tuple[list[str], list[list[str | None]]]:
    try:
        import pyarrow as pa
        from pyarrow import feather, parquet
    except ImportError:
        raise InputError(
            f'{path} needs pyarrow to be read: pip install "gpclass[tables]", or give CSV.'
        ) from None
    with open(path, "rb"):  # a missing file is told like any other
        pass
    try:
        # Not the reader of whole data sets: it would take a directory for a file, and its name for a column.
        table = parquet.ParquetFile(path).read() if ending == ".parquet" else feather.read_table(path)
    except (pa.ArrowException, ValueError, OSError) as error:
        words = str(error).split("\n")[0].split(". ")[0].rstrip(".")
        raise InputError(f"{path} is not a {ending} file, or is damaged: {words[:150]}.") from None
    names = [str(name) for name in table.column_names]
    return names, [[_arrow_text(value) for value in column.to_pylist()] for column in table.columns]


def _arrow_text(value: Any) -> str | None:
    """Return a value as CSV would have it; whole numbers without a point, as they are without gaps too."""
    if value is None or value != value:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return None if (text := str(value).strip()) in MISSING else text
