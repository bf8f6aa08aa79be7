"""Tables in files: CSV, Parquet and Feather, all read as data frames of texts.

A column stays text until its use is known: a label 1 and a category 1 are not the number 1.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpclass.cli.errors import InputError, access, named
from gpclass.cli.outputs import SEPARATORS
from gpclass.core import files, memory

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "?")
BINARY = {b"PAR1": ".parquet", b"ARROW1": ".feather", b"\x1f\x8b": ".csv.gz"}
UTF16 = (b"\xff\xfe", b"\xfe\xff")
ARROW = (".parquet", ".feather", ".arrow")
CHUNK, ROWS = 1 << 20, 10_000  # bytes and rows that are read at a time
PER_BYTE, PER_VALUE = 8, 60  # bytes of memory that a table takes at its peak (measured)


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
    if os.path.isdir(path):
        raise InputError(f"{path} is a directory, expected a CSV, Parquet or Feather file.")
    ending = os.path.splitext(path.lower().removesuffix(".gz"))[1]
    mark = separator or ("\t" if ending == ".tsv" else ",")
    frame = _arrow(path, ending) if ending in ARROW else _csv(path, mark)
    if not frame.columns.is_unique:
        twice = sorted(set(frame.columns[frame.columns.duplicated()]))
        raise InputError(f"{path} has more than one column called {named(twice)}: give them different names.")
    if frame.empty:
        raise InputError(f"{path} has a header but no rows: there is nothing to learn from or to predict.")
    frame = frame.apply(lambda column: column.str.strip())
    return Table(path, frame.where(frame.notna() & ~frame.isin(MISSING), None))


def _read(path: str, separator: str) -> bytes:
    """Return the content of a CSV file, decompressed."""
    opened = gzip.open if path.lower().endswith(".gz") else open
    mark = separator.encode()
    with access(path, "read"), opened(path, "rb") as file:
        chunks = iter(partial(file.read, CHUNK), b"")
        parts = ((chunk, len(chunk), chunk.count(mark) + chunk.count(b"\n")) for chunk in chunks)
        try:
            return b"".join(_within_memory(path, parts))
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise InputError(f"{path} is not a gzip file, or is damaged: compress it again.") from None


def _within_memory(path: str, parts: Iterable[tuple[Any, int, int]]) -> Iterator[Any]:
    """Yield the parts of a table, given with their bytes and numbers of values; raise if memory does not suffice."""
    need = 0
    for part, n_bytes, n_values in parts:
        need += PER_BYTE * n_bytes + PER_VALUE * n_values
        have = memory.available_memory()
        if have is not None and need > have:
            raise InputError(
                f"{path} needs more than {need / 1e9:.2g} GB of memory as a table, and {have / 1e9:.2g} GB is "
                "available: give a file with fewer rows or columns."
            )
        yield part


def _csv(path: str, separator: str) -> Any:
    import pandas as pd

    text = _decode(path, _read(path, separator))
    if not text.strip():
        raise InputError(f"{path} is empty, expected a header and rows of values.")
    try:
        # Not pandas.read_csv, which fills in short rows silently.
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error as error:
        raise InputError(f"{path} cannot be split into rows ({error}): check its quotes.") from None
    header, *body = [row for row in rows if len(row) > 1 or (row and row[0].strip())]
    names = [name.strip() for name in header]
    _check_names(path, names, separator)
    for number, row in enumerate(body, start=1):
        if len(row) != len(names):
            raise InputError(
                f"{path} has {len(row)} values in row {number} and {len(names)} names in its header: "
                "a value that contains the separator needs quotes."
            )
    return pd.DataFrame(body, columns=names, dtype=object)


def _decode(path: str, raw: bytes) -> str:
    for magic, ending in BINARY.items():
        if raw.startswith(magic):
            raise InputError(f"{path} is not CSV: it starts like a {ending} file, so give it that ending.")
    wide = raw.startswith(UTF16)
    if b"\0" in raw[:100_000] and not wide:
        raise InputError(f"{path} is not CSV: it contains binary data.")
    try:
        return raw.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not CSV in UTF-8: byte {error.start} is {raw[error.start]:#04x}; save it as UTF-8."
        ) from None


def _check_names(path: str, names: list[str], separator: str) -> None:
    import pandas as pd

    other = max((s for s in SEPARATORS if s != separator), key=names[0].count)
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


def _arrow(path: str, ending: str) -> Any:
    import pandas as pd
    import pyarrow as pa

    from gpclass.data import parquet

    with access(path, "read"):
        file = pa.OSFile(path)
    try:
        with file:
            schema, batches = _batches(file, ending)
            parts = ((batch, batch.nbytes, batch.num_rows * len(schema)) for batch in batches)
            table = pa.Table.from_batches(_within_memory(path, parts), schema)
    except InputError:
        raise
    except (pa.ArrowException, ValueError, OSError) as error:
        words = str(error).split("\n")[0].split(". ")[0].rstrip(".")
        raise InputError(f"{path} is not a {ending} file, or is damaged: {words[:150]}.") from None
    table = table.drop_columns([name for name in parquet.index_columns(schema) if name in table.column_names])
    columns = [[_text(value) for value in column.to_pylist()] for column in table.columns]
    frame = pd.DataFrame(dict(enumerate(columns)), dtype=object)
    return frame.set_axis([str(name) for name in table.column_names], axis=1)


def _batches(file: Any, ending: str) -> tuple[Any, Iterable[Any]]:
    """Return the schema of a Parquet or Feather file and its rows, some at a time."""
    from pyarrow import ipc, parquet

    if ending == ".parquet":
        opened = parquet.ParquetFile(file)
        return opened.schema_arrow, opened.iter_batches(batch_size=ROWS)
    reader = ipc.open_file(file)
    return reader.schema, map(reader.get_batch, range(reader.num_record_batches))


def _text(value: Any) -> str | None:
    """Return a value as CSV has it; whole numbers have no decimal point, also in columns with gaps."""
    if value is None or value != value:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


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
