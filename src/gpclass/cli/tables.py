"""Tables in files, read and written with pandas: CSV, JSON, Excel, Parquet and Feather."""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import os
import re
import sys
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from gpclass.cli.files import ARROW, InputError, access, ending, named
from gpclass.core import files, memory

UNKNOWN = (".xls", ".xlsb", ".ods", ".sav", ".dta", ".rds", ".rda")  # tables, but no text
SEPARATORS = ",;\t|"  # of CSV, the most likely one first
DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")
GERMAN = re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}")
SPAN = re.compile(r"-?\d+ days?( [-+]?\d{2}:\d{2}:\d{2}(\.\d+)?)?")  # a duration, as pandas writes it
ZONE = re.compile(r".*\d{2}:\d{2}.*(Z|[-+]\d{2}:?\d{2})")


def read_table(path: str, given: Mapping[str, Any] | None = None, text: Iterable[str] = ()) -> Any:
    """Return the table in a file, by its ending; ``-`` is CSV from standard input.

    ``given`` may have the options ``separator``, ``decimal``, ``thousands``, ``encoding`` and ``sheet``. The columns
    ``text`` of a CSV file stay as they are in the file.
    """
    import pandas as pd

    options, kind = given or {}, ending(path)
    if kind in UNKNOWN:
        raise InputError(f"{path} is a table of a kind that is not read: save it as .xlsx or .csv.")
    if os.path.isdir(path):
        raise InputError(f"{path} is a directory, expected the file of a table.")
    with access(path, "read"), _one_sentence(path):
        source: Any = io.BytesIO(sys.stdin.buffer.read()) if path == "-" else path
        if path != "-":
            _check_size(path)
        if kind in ARROW:
            frame = (pd.read_parquet if kind == ".parquet" else pd.read_feather)(source)
        elif kind in (".json", ".jsonl", ".ndjson"):
            frame = pd.read_json(source, lines=kind != ".json", dtype=False)
        elif kind == ".xlsx":
            sheet = {"sheet_name": _sheet(path, options.get("sheet"))}
            first = pd.read_excel(source, header=None, nrows=1, **sheet)
            if first.empty:
                raise InputError(
                    f"{path} has an empty first row, expected the names of the columns: remove rows above them."
                )
            _check_names(path, first.iloc[0].tolist())
            frame = pd.read_excel(source, **sheet)
        else:
            frame = _csv(path, source, options, text)
    if frame.empty:
        raise InputError(f"{path} has a header but no rows: there is nothing to learn from or to predict.")
    frame = frame.reset_index(drop=True).rename(columns=str)
    return frame.apply(lambda column: column if column.name in text else _typed(column, path))


def _sheet(path: str, given: str | None) -> Any:
    """Return the name of a sheet of an Excel file, or 0 for the first; raise if there is none of this name."""
    import pandas as pd

    if given is None:
        return 0
    with pd.ExcelFile(path) as book:
        sheets = book.sheet_names
    if given not in sheets:
        raise InputError(f"{path} has no sheet {given!r}: its sheets are {named(sheets, 12)}.")
    return given


def _csv(path: str, source: Any, given: Mapping[str, Any], text: Iterable[str]) -> Any:
    import pandas as pd

    encoding = given.get("encoding") or "utf-8-sig"
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise InputError(
            f"There is no encoding {encoding!r}: give one that Python knows, such as --encoding latin-1."
        ) from None

    def read(**settings: Any) -> Any:
        if path == "-":
            source.seek(0)
        return pd.read_csv(source, encoding=encoding, skipinitialspace=True, **settings)

    first: dict[str, Any] = {"header": None, "nrows": 1, "dtype": str, "na_filter": False}
    line = read(sep="\x01", quoting=csv.QUOTE_NONE, **first).iloc[0, 0]
    separator = given.get("separator") or max(SEPARATORS, key=line.count)
    separator = {"tab": "\t", "\\t": "\t"}.get(separator, separator)
    for option, mark in {**given, "separator": separator}.items():
        if option in ("separator", "decimal", "thousands") and mark and len(mark) > 1:
            raise InputError(f"--{option} is {mark!r}, expected one character.")
    names = [name.strip() for name in read(sep=separator, **first).iloc[0]]
    _check_names(path, names)
    settings = {
        "sep": separator,
        "decimal": given.get("decimal") or ".",
        "thousands": given.get("thousands"),
        "low_memory": False,
        "na_values": ["?"],
    }
    with warnings.catch_warnings():
        warnings.simplefilter(
            "error", pd.errors.ParserWarning
        )  # rows with more values than the header has names
        return read(dtype=dict.fromkeys(text, str), index_col=False, **settings).set_axis(names, axis=1)


def _typed(column: Any, path: str) -> Any:
    """Return texts without spaces around them, as dates or durations if all are; raise if a number is infinite."""
    import pandas as pd

    if pd.api.types.is_float_dtype(column) and np.isinf(column).any():
        row = int(np.isinf(column).argmax())
        raise InputError(
            f"{path} has {column[row]} in row {row + 1}, column {column.name!r}, expected a finite number."
        )
    if pd.api.types.infer_dtype(column, skipna=True) != "string" or isinstance(
        column.dtype, pd.CategoricalDtype
    ):
        return column
    texts = column.str.strip()
    present = texts.dropna()
    if len(present) and present.str.fullmatch(GERMAN).all():
        return _dates(texts, path, format="%d.%m.%Y")
    if len(present) and present.str.fullmatch(SPAN).all():
        return pd.to_timedelta(texts)
    if not present.str.fullmatch(DATE).all():
        return texts
    with_zone = bool(present.str.fullmatch(ZONE).any())
    return _dates(texts, path, format="ISO8601", utc=with_zone)


def _dates(texts: Any, path: str, **options: Any) -> Any:
    """Return texts as dates; raise if one of them, such as 2026-02-30, is none."""
    import pandas as pd

    dates = pd.to_datetime(texts, errors="coerce", **options)
    wrong = dates.isna() & texts.notna()
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            f"{path} has {texts[row]!r} in row {row + 1}, column {texts.name!r}, which is not a date as in the other "
            "rows: correct it, or leave it empty."
        )
    return dates


def _check_size(path: str) -> None:
    with open(path, "rb") as file:  # reports a file that cannot be read
        size, have = os.fstat(file.fileno()).st_size, memory.available_memory()
    if have is not None and size > have:
        raise InputError(
            f"{path} has {size / 1e9:.2g} GB, and {have / 1e9:.2g} GB of memory is available: "
            "give a file with fewer rows or columns."
        )


def _check_names(path: str, names: list[Any]) -> None:
    import pandas as pd

    texts = ["" if pd.isna(name) else str(name) for name in names]
    if "" in texts:
        raise InputError(f"{path} has no name for column {texts.index('') + 1} in its header: add one.")
    if twice := sorted({name for name in texts if texts.count(name) > 1}):
        raise InputError(f"{path} has more than one column called {named(twice)}: give them different names.")
    if len(texts) > 1 and pd.to_numeric(pd.Series(texts), errors="coerce").notna().all():
        raise InputError(f"{path} starts with numbers ({named(texts, 3)}), expected a header with names.")


@contextlib.contextmanager
def _one_sentence(path: str) -> Iterator[None]:
    """Turn the errors of reading a table into one sentence each."""
    import pandas as pd

    try:
        yield
    except (InputError, ModuleNotFoundError, FileNotFoundError, PermissionError):
        raise
    except pd.errors.EmptyDataError:
        raise InputError(f"{path} is empty, expected a header and rows of values.") from None
    except pd.errors.ParserWarning:
        raise InputError(
            f"{path} has rows with more values than its first line has names: remove lines above the header, or check "
            "its separators and quotes."
        ) from None
    except pd.errors.ParserError as error:
        words = str(error).split("C error: ")[-1].strip().rstrip(".")
        raise InputError(f"{path} cannot be split into rows ({words}): check its quotes.") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        likely = "utf-16" if error.start == 0 and byte in codecs.BOM_UTF16 else "latin-1"
        raise InputError(
            f"{path} is not text in {error.encoding}, as it has the byte {byte:#04x}: give its encoding, such as "
            f"--encoding {likely}."
        ) from None
    except (ValueError, LookupError, OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        words = " ".join(str(error).split()).rstrip(".")[:150]
        raise InputError(
            f"{path} is not a table of the kind that its ending says, or is damaged: {words}."
        ) from None


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
