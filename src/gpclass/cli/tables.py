"""Tables in files: CSV, Parquet and Feather, all read as data frames of texts.

A column stays text until its use is known: a label 1 and a category 1 are not the number 1.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from gpclass.cli.errors import InputError, access, named
from gpclass.cli.outputs import SEPARATORS
from gpclass.core import files, memory

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "?")
BINARY = {b"PAR1": ".parquet", b"ARROW1": ".feather", b"\x1f\x8b": ".csv.gz"}
ARROW = (".parquet", ".feather", ".arrow")
VALUES = 30_000  # that are read at a time
VALUE_BYTES = 80  # memory that a value of a table takes beside its letters, at the peak (57 to 74 measured)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A data frame of texts, None where a value is missing, and the file it came from."""

    path: str
    frame: Any

    def __getitem__(self, name: str) -> Any:
        """Return the column of that name."""
        if name not in self.frame:
            raise InputError(f"{self.path} has no column {name!r}: its columns are {named(self.frame, 12)}.")
        return self.frame[name]

    def __len__(self) -> int:
        return len(self.frame)

    def take(self, rows: Any) -> Table:
        """Return some rows; they keep their numbers, which error messages show."""
        return Table(self.path, self.frame.iloc[rows])


def numbers(column: Any) -> Any:
    """Return a column of texts as floats, NaN where a text is missing or not a number."""
    import pandas as pd

    return pd.to_numeric(column, errors="coerce").astype(float)


def read_table(path: str, separator: str | None = None) -> Table:
    """Return the table in a file: Parquet or Feather by its ending, otherwise CSV, plain or compressed.

    The default separator of a CSV file is a comma, and a tab in a ``.tsv`` file.
    """
    import pandas as pd

    if os.path.isdir(path):
        raise InputError(f"{path} is a directory, expected a CSV, Parquet or Feather file.")
    ending = os.path.splitext(path.lower().removesuffix(".gz"))[1]
    mark = separator or ("\t" if ending == ".tsv" else ",")
    with access(path, "read"):
        names, *parts = _within_memory(path, _arrow(path, ending) if ending in ARROW else _csv(path, mark))
    if not parts:
        raise InputError(f"{path} has a header but no rows: there is nothing to learn from or to predict.")
    frame = pd.DataFrame(np.concatenate(parts), columns=names, dtype=object)
    frame = frame.apply(lambda column: column.str.strip())
    return Table(path, frame.where(frame.notna() & ~frame.isin(MISSING), None))


def _check_unique(path: str, names: list[str]) -> None:
    if twice := sorted(name for name, n in Counter(names).items() if n > 1):
        raise InputError(f"{path} has more than one column called {named(twice)}: give them different names.")


def _within_memory(path: str, parts: Iterator[Any]) -> Iterator[Any]:
    """Yield arrays of texts, of which the first are the names; raise if there is not enough memory for the table."""
    need = 0
    for part in parts:
        need += VALUE_BYTES * part.size + sum(len(text) for text in part.ravel() if text is not None)
        have = memory.available_memory()
        if have is not None and need > have:
            raise InputError(
                f"{path} needs more than {need / 1e9:.2g} GB of memory as a table, and {have / 1e9:.2g} GB is "
                "available: give a file with fewer rows or columns."
            )
        yield part


# --------------------------------------------------------------------------------- CSV


def _csv(path: str, separator: str) -> Iterator[Any]:
    """Yield the names and then the rows of a CSV file as arrays of texts."""
    opened: Any = gzip.open if path.lower().endswith(".gz") else open
    try:
        with opened(path, "rb") as raw:
            _check_text(path, raw.peek(1))
            text = io.TextIOWrapper(raw, "utf-8-sig", newline="")
            # Not pandas, which fills in short rows silently, nor pyarrow, which closes open quotes at the end.
            rows = csv.reader(text, delimiter=separator, strict=True)
            lines = (row for row in rows if len(row) > 1 or (row and row[0].strip()))
            names = [name.strip() for name in next(lines, [])]
            _check_header(path, names, separator)
            _check_unique(path, names)
            yield np.array(names, dtype=object)
            start = 1
            while body := list(islice(lines, 1 + VALUES // len(names))):
                _check_lengths(path, body, len(names), start)
                yield np.array(body, dtype=object)
                start += len(body)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{path} is not a gzip file, or is damaged: compress it again.") from None
    except csv.Error as error:
        raise InputError(f"{path} cannot be split into rows ({error}): check its quotes.") from None
    except UnicodeDecodeError as error:
        wrong = error.object[error.start]
        raise InputError(
            f"{path} is not CSV in UTF-8: it has the byte {wrong:#04x}; save it as UTF-8."
        ) from None


def _check_text(path: str, start: bytes) -> None:
    for magic, ending in BINARY.items():
        if start.startswith(magic):
            raise InputError(f"{path} is not CSV: it starts like a {ending} file, so give it that ending.")
    if b"\0" in start:
        raise InputError(f"{path} is not CSV in UTF-8: it contains binary data, or is in UTF-16.")


def _check_header(path: str, names: list[str], separator: str) -> None:
    import pandas as pd

    if not names:
        raise InputError(f"{path} is empty, expected a header and rows of values.")
    other = max((mark for mark in SEPARATORS if mark != separator), key=names[0].count)
    if len(names) == 1 and names[0].count(other):
        shown = "'\\t'" if other == "\t" else repr(other)
        raise InputError(
            f"{path} has the one column {names[0][:60]!r} when it is split at {separator!r}: its values seem "
            f"to be separated by a {SEPARATORS[other]}, so give --separator {shown}."
        )
    if "" in names:
        raise InputError(f"{path} has no name for column {names.index('') + 1} in its header: add one.")
    if len(names) > 1 and numbers(pd.Series(names, dtype=object)).notna().all():
        raise InputError(f"{path} starts with numbers ({named(names, 3)}), expected a header with names.")


def _check_lengths(path: str, rows: list[list[str]], n: int, start: int) -> None:
    for number, row in enumerate(rows, start):
        if len(row) != n:
            raise InputError(
                f"{path} has {len(row)} values in row {number} and {n} names in its header: "
                "a value that contains the separator needs quotes."
            )


# --------------------------------------------------------------------------------- Parquet and Feather


def _arrow(path: str, ending: str) -> Iterator[Any]:
    """Yield the names and then the rows of a Parquet or Feather file as arrays of texts."""
    import pyarrow as pa
    from pyarrow import dataset, fs

    from gpclass.data import parquet

    with open(path, "rb"):  # raises if it cannot be read
        pass
    form = dataset.ParquetFileFormat() if ending == ".parquet" else dataset.IpcFileFormat()
    try:
        fragment = form.make_fragment(path, fs.LocalFileSystem())
        schema = fragment.physical_schema
        names = [name for name in schema.names if name not in parquet.index_columns(schema)]
        _check_unique(path, names)
        yield np.array(names, dtype=object)
        rows = 1 + VALUES // max(len(names), 1)
        for batch in fragment.to_batches(
            columns=names, batch_size=rows, batch_readahead=1, use_threads=False
        ):
            if batch.num_rows:
                yield np.column_stack([_texts(column) for column in batch.columns])
    except (pa.ArrowException, OSError) as error:
        words = str(error).split("\n")[0].split(". ")[0].rstrip(".")
        raise InputError(f"{path} is not a {ending} file, or is damaged: {words[:150]}.") from None


def _texts(column: Any) -> Any:
    """Return the values of a column as CSV has them; whole numbers have no decimal point."""
    import pyarrow as pa

    try:
        return column.cast(pa.string()).to_numpy(zero_copy_only=False)
    except pa.ArrowNotImplementedError:  # lists and records
        return [None if value is None else str(value) for value in column.to_pylist()]


# --------------------------------------------------------------------------------- writing


def to_text(frame: Any, *, as_json: bool) -> str:
    """Return a frame as CSV with six digits, or as JSON with all of them."""
    if as_json:
        return str(frame.to_json(orient="records", indent=1, double_precision=15, force_ascii=False)) + "\n"
    return str(frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def write_frame(frame: Any, path: str) -> None:
    """Write a frame in the format that the ending of the path names."""
    lower = path.lower()
    with access(path, "written"), files.replacing(path) as file:
        if lower.endswith(ARROW):
            (frame.to_parquet if lower.endswith(".parquet") else frame.to_feather)(file)
            return
        raw = to_text(frame, as_json=lower.removesuffix(".gz").endswith(".json")).encode("utf-8")
        file.write(gzip.compress(raw) if lower.endswith(".gz") else raw)
