"""Tables in CSV, Parquet and Feather files, all read as data frames of texts.

A column stays text until its use is known: a label 1 and a category 1 are not the number 1.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpclass.cli.files import InputError, access, ending, named
from gpclass.core import files, memory
from gpclass.data import parquet

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "?")
ARROW = (".parquet", ".feather", ".arrow")
ROWS = 2_000  # number of rows read at a time


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
    kind = ending(path)
    default = "\t" if kind == ".tsv" else ","
    mark = {"tab": "\t", "\\t": "\t"}.get(separator or default, separator or default)
    parts = _arrow(path, kind) if kind in ARROW else _csv(path, mark)
    with access(path, "read"), open(path, "rb"):
        frame = pd.concat(_within_memory(path, parts), ignore_index=True)
    if frame.empty:
        raise InputError(f"{path} has a header but no rows: there is nothing to learn from or to predict.")
    frame = frame.apply(lambda column: column.str.strip())
    return Table(path, frame.where(frame.notna() & ~frame.isin(MISSING), None))


def _within_memory(path: str, parts: Iterator[Any]) -> Iterator[Any]:
    """Yield the parts of a table; raise if there is not enough memory for it."""
    need = 0
    for part in parts:
        need += int(part.memory_usage(deep=True).sum())
        have = memory.available_memory()
        if have is not None and need > have:
            raise InputError(
                f"{path} needs more than {need / 1e9:.2g} GB of memory as a table, and {have / 1e9:.2g} GB is "
                "available: give a file with fewer rows or columns."
            )
        yield part


def _check_names(path: str, names: list[str]) -> None:
    import pandas as pd

    if "" in names:
        raise InputError(f"{path} has no name for column {names.index('') + 1} in its header: add one.")
    if twice := sorted(name for name, n in Counter(names).items() if n > 1):
        raise InputError(f"{path} has more than one column called {named(twice)}: give them different names.")
    if len(names) > 1 and numbers(pd.Series(names, dtype=object)).notna().all():
        raise InputError(f"{path} starts with numbers ({named(names, 3)}), expected a header with names.")


def _check_separator(path: str, names: list[str]) -> None:
    other = max(",;\t|", key=names[0].count)
    if len(names) == 1 and other in names[0]:
        raise InputError(
            f"{path} has only the column {names[0][:60]!r}: its values seem to be separated by {other!r}, so give "
            f"--separator {other!r}."
        )


def _csv(path: str, separator: str) -> Iterator[Any]:
    """Yield the rows of a CSV file as frames of texts."""
    import pandas as pd

    names: list[str] = []
    try:
        options: dict[str, Any] = {
            "header": None,
            "dtype": object,
            "na_filter": False,
            "encoding": "utf-8-sig",
        }
        with pd.read_csv(path, sep=separator, chunksize=ROWS, **options) as parts:
            for part in parts:
                if not names:
                    names = [str(name).strip() for name in part.iloc[0]]
                    _check_names(path, names)
                    _check_separator(path, names)
                yield part.set_axis(names, axis=1).drop(index=0, errors="ignore")
    except pd.errors.EmptyDataError:
        raise InputError(f"{path} is empty, expected a header and rows of values.") from None
    except pd.errors.ParserError as error:
        words = str(error).split("C error: ")[-1].strip().rstrip(".")
        raise InputError(f"{path} cannot be split into rows ({words}): check its quotes.") from None
    except UnicodeDecodeError as error:
        wrong = error.object[error.start]
        raise InputError(
            f"{path} is not CSV in UTF-8: it has the byte {wrong:#04x}; save it as UTF-8."
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{path} is not a gzip file, or is damaged: compress it again.") from None


def _arrow(path: str, kind: str) -> Iterator[Any]:
    """Yield the rows of a Parquet or Feather file as frames of texts; whole numbers have no decimal point."""
    import pyarrow as pa
    from pyarrow import dataset

    try:
        data = dataset.dataset(path, format="parquet" if kind == ".parquet" else "feather")
        names = [name for name in data.schema.names if name not in parquet.index_columns(data.schema)]
        _check_names(path, names)
        texts = pa.schema([(name, pa.string()) for name in names])
        yield texts.empty_table().to_pandas().astype(object)
        for batch in data.to_batches(columns=names, batch_size=ROWS, batch_readahead=1, use_threads=False):
            yield pa.Table.from_batches([batch]).cast(texts).to_pandas().astype(object)
    except (pa.ArrowException, OSError) as error:
        words = str(error).split("\n")[0].split("?: ")[-1].split(". ")[0].rstrip(".")
        raise InputError(f"{path} is not a {kind} file, or is damaged: {words[:150]}.") from None


def to_text(frame: Any, *, as_json: bool) -> str:
    """Return a frame as CSV with six digits, or as JSON with all of them."""
    if as_json:
        return str(frame.to_json(orient="records", indent=1, double_precision=15, force_ascii=False)) + "\n"
    return str(frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def write_frame(frame: Any, path: str) -> None:
    """Write a frame in the format that the ending of the path names."""
    kind = ending(path)
    with access(path, "written"), files.replacing(path) as file:
        if kind in ARROW:
            (frame.to_parquet if kind == ".parquet" else frame.to_feather)(file)
            return
        raw = to_text(frame, as_json=kind == ".json").encode("utf-8")
        file.write(gzip.compress(raw) if path.lower().endswith(".gz") else raw)
