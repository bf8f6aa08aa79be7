"""Tables in files, read with pandas: CSV, JSON, Excel, Parquet and Feather; and the problems that they describe."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import os
import re
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import click
import numpy as np
import pandas as pd

from gpclass.cli.files import InputError, access, check_known, named

ARROW, JSON = (".parquet", ".feather", ".arrow"), (".json", ".jsonl", ".ndjson")
# Endings of compressed files, before which stands that of the table.
PACKED = (".gz", ".zip", ".bz2", ".xz", ".zst")
UNKNOWN = (".gpc", ".xls", ".xlsb", ".ods", ".sav", ".dta", ".rds", ".rda", ".pkl", ".npy")
SEPARATORS = ",;\t|"  # separators of CSV files, the most likely one first
DATES = {
    "ISO8601": re.compile(r"\d{4}-(0[1-9]|1[0-2])(-\d{2}([T ]\d{2}:\d{2}.*)?)?"),
    "%d.%m.%Y": re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}"),
}
TIME = re.compile(r"\d{1,2}:[0-5]\d(:[0-5]\d(\.\d+)?)?")  # of day, or a duration
TRUTH = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}
PLAIN = (".", "", "")  # the notation that pandas reads: decimal, thousands, strip
FEW = 20  # this many classes are accepted regardless of the number of rows

LONG = "remove lines above the header, or check separators and quotes"
FAULTS = {  # messages of pandas, and what is said instead
    r"Expected (\d+) fields in line (\d+), saw (\d+)": rf"has \3 values in line \2, and \1 in the lines above: {LONG}",
    "Multiple files found": "contains several files: unpack it, and give one of them",
    "No columns to parse": "is empty, expected a header and rows of values",
}

# -------------------------------------------------------------------------------------- tables


def read_table(
    path: str,
    text: Iterable[str] = (),
    *,
    sheet: str | None = None,
    separator: str | None = None,
    encoding: str = "utf-8-sig",
    decimal: str = ".",
    thousands: str = "",
    strip: str = "",
    missing: Sequence[str] = (),
) -> Any:
    """Return the table in a file, whose ending determines the format; ``-`` is standard input: CSV or JSON.

    ``decimal``, ``thousands`` and ``strip``, the characters to remove, are the notation of numbers that are text, and
    ``missing`` are texts for missing values. The columns that are listed in ``text`` are not converted.
    """
    if len(decimal) != 1 or len(thousands) > 1 or decimal == thousands:
        raise InputError(
            f"--decimal {decimal!r} and --thousands {thousands!r} are not two different characters."
        )
    source, kind = _source(path)
    notation = (decimal, thousands, strip)
    with _one_sentence(path):
        if kind in ARROW:
            frame = (pd.read_parquet if kind == ".parquet" else pd.read_feather)(source())
        elif kind in JSON:
            frame = _json(source, encoding, lines=kind != ".json")
        elif kind == ".xlsx":
            frame = _excel(source, path, sheet)
        else:
            frame = _csv(source, path, separator, encoding, str if missing or notation != PLAIN else text)
    if frame.empty:
        raise InputError(f"{path} has a header but no rows: there is nothing to learn from or to predict.")
    frame = frame.reset_index(drop=True).rename(columns=str)
    if missing:
        numbers = pd.to_numeric(pd.Series(missing), errors="coerce").dropna()
        frame = frame.mask(frame.isin([*missing, *numbers]))
    return frame.apply(lambda column: column if column.name in text else _typed(column, notation))


def _source(path: str) -> tuple[Callable[[], Any], str]:
    """Return a function that gives pandas the path, or the content of what can be read only once; and the kind."""
    stem, kind = os.path.splitext(path.lower())
    kind = os.path.splitext(stem)[1] if kind in PACKED else kind
    if kind in UNKNOWN:
        raise InputError(f"{path} has a format that cannot be read: save it as .xlsx or .csv.")
    stdin = contextlib.nullcontext(sys.stdin.buffer) if path == "-" else None
    with access(path, "read"), stdin or open(path, "rb") as file:
        if not stdin and os.path.isfile(path):
            return lambda: path, kind
        content = file.read()
    return lambda: io.BytesIO(content), ".json" if content.lstrip()[:1] in (b"{", b"[") else kind


def _json(source: Any, encoding: str, *, lines: bool) -> Any:
    try:
        return pd.read_json(source(), lines=lines, encoding=encoding, dtype=False)
    except ValueError:
        return pd.read_json(source(), lines=True, encoding=encoding, dtype=False)


def _excel(source: Any, path: str, sheet: str | None) -> Any:
    with pd.ExcelFile(source()) as book:
        sheet = book.sheet_names[0] if sheet is None else sheet
        check_known(f"{path} has no sheet", "its sheets are", [sheet], book.sheet_names)
        frame = pd.read_excel(book, sheet_name=sheet, header=None)
    names = ["" if pd.isna(name) else str(name) for name in (frame.iloc[0] if len(frame) else [])]
    return _named(path, frame.iloc[1:].infer_objects(), names)


def _csv(source: Any, path: str, separator: str | None, encoding: str, text: Any) -> Any:
    """Return the table in a CSV file; ``text`` has the names of columns to read as text, or is str for all of them."""

    def read(**settings: Any) -> Any:
        return pd.read_csv(source(), encoding=encoding, skipinitialspace=True, **settings)

    first: dict[str, Any] = {"header": None, "nrows": 1, "dtype": str, "na_filter": False}
    if separator is None:
        line = read(sep="\x01", quoting=csv.QUOTE_NONE, **first).iloc[0, 0]
        separator = max(SEPARATORS, key=line.count)
    separator = {"tab": "\t", "\\t": "\t"}.get(separator, separator)
    names = [name.strip() for name in read(sep=separator, **first).iloc[0]]
    types = str if text is str else dict.fromkeys(text, str)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # more values than names in all rows
        frame = read(sep=separator, na_values=["?"], dtype=types, index_col=False, low_memory=False)
    return _named(path, frame, names)


def _named(path: str, frame: Any, names: list[str]) -> Any:
    """Return a table with the names of its first row, without a first column that has no name and numbers the rows."""
    if not any(names):
        raise InputError(f"{path} has an empty first row, expected column names: remove empty rows.")
    first = pd.to_numeric(frame.iloc[:, 0], errors="coerce")
    if not names[0] and first.is_unique and (first % 1 == 0).all():
        names, frame = names[1:], frame.iloc[:, 1:]
    if "" in names:
        raise InputError(
            f"{path} has no name for column {names.index('') + 1} in its header: add one, or remove lines above it."
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"{path} has more than one column called {named(twice)}: give them different names.")
    if len(names) > 1 and pd.to_numeric(pd.Series(names), errors="coerce").notna().all():
        raise InputError(f"{path} starts with numbers ({named(names, 3)}), expected a header with names.")
    return frame.set_axis(names, axis=1)


def _typed(column: Any, notation: tuple[str, str, str]) -> Any:
    """Return a column of texts as dates, durations or numbers if every text is one, otherwise without outer spaces."""
    is_category = isinstance(column.dtype, pd.CategoricalDtype)
    if is_category or pd.api.types.infer_dtype(column, skipna=True) != "string":
        return column
    texts = column.str.strip()
    for form, pattern in DATES.items():
        if texts.dropna().str.fullmatch(pattern).all():
            dates = pd.to_datetime(texts, errors="coerce", format=form, utc=True)
            return dates if dates.notna().equals(texts.notna()) else texts  # text is rejected later
    if texts.dropna().isin(TRUTH).all():
        return texts.map(TRUTH)
    if texts.dropna().str.fullmatch(TIME).all():
        return pd.to_timedelta(texts.where(texts.str.count(":") != 1, texts + ":00"))
    return _numbers(texts, *notation)


def _numbers(texts: Any, decimal: str, thousands: str, strip: str) -> Any:
    """Return texts as numbers if every one is a number in this notation, otherwise as they are."""
    plain = texts.str.replace(rf"[{re.escape(strip)}\s]", "", regex=True) if strip else texts
    plain = plain.str.replace("−", "-")
    groups = rf"|[1-9]\d{{0,2}}({re.escape(thousands)}\d{{3}})+" if thousands else ""
    number = rf"(?=\D*\d)[-+]?(0|[1-9]\d*{groups})?({re.escape(decimal)}\d*)?([eE][-+]?\d+)?"
    if not plain.dropna().str.fullmatch(number).all():
        return texts
    return pd.to_numeric(plain.str.replace(thousands, "").str.replace(decimal, "."))


@contextlib.contextmanager
def _one_sentence(path: str) -> Iterator[None]:
    """Turn the errors of reading a table into one sentence each."""
    try:
        yield
    except (InputError, ModuleNotFoundError):
        raise
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        wide = error.start == 0 and byte in codecs.BOM_UTF16
        remedy = f"specify its encoding, such as --encoding {'utf-16' if wide else 'latin-1'}"
        remedy = "expected a table" if b"\0" in error.object and not wide else remedy
        raise InputError(
            f"{path} is not {error.encoding} text, because it contains the byte {byte:#04x}: {remedy}."
        ) from None
    except pd.errors.ParserWarning:
        raise InputError(f"{path} has rows with more values than its first line has names: {LONG}.") from None
    except (ValueError, LookupError, OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        words = " ".join(str(error).split("C error: ")[-1].split()).rstrip(".")[:150]
        known = (match.expand(said) for fault, said in FAULTS.items() if (match := re.search(fault, words)))
        raise InputError(f"{path} {next(known, f'cannot be read as a table: {words}')}.") from None


# ------------------------------------------------------------------------------------ problems


def read_problem(
    path: str, target: str | None, *, rows: int | None, seed: int, **options: Any
) -> tuple[Any, Any]:
    """Return the input columns of a table as a frame, and its labels; ``options`` come from the command line."""
    from sklearn.model_selection import train_test_split

    from gpclass.tables import TableWarning

    columns, drop, categorical = (options.pop(name) for name in ("columns", "drop", "categorical"))
    frame = read_table(path, [str(target)], **options)
    if target is None:
        raise click.UsageError(f"Give --target, the column with the labels, one of {named(frame, 12)}.")
    check_columns(path, frame, [target, *columns, *drop, *categorical])
    if target in columns:
        raise InputError(f"The target {target!r} is among --columns: it cannot predict itself.")
    chosen = dict.fromkeys(columns or frame)
    features = [name for name in chosen if name not in (target, *drop)]
    if not features:
        raise InputError(f"{path} has no column to learn from besides the target {target!r}.")
    if unused := [name for name in categorical if name not in features]:
        raise InputError(f"--categorical names {named(unused)}, which is not among the columns used.")
    known = frame[target].notna()
    X, y = frame.loc[known, features].reset_index(drop=True), _labels(path, frame.loc[known, target])
    if len(y) < len(frame):
        words = f"{path} has no label in {len(frame) - len(y)} of {len(frame)} rows, column {target!r}"
        warnings.warn(f"{words}: these rows are left out.", TableWarning, stacklevel=2)
    if rows is not None and rows < len(y):
        X, _, y, _ = train_test_split(X, y, stratify=y, random_state=seed, train_size=rows)
    return X, y


def check_columns(path: str, frame: Any, names: Iterable[str]) -> None:
    """Raise unless a table has columns of these names."""
    check_known(f"{path} has no column", "its columns are", names, list(frame))


def _labels(path: str, column: Any) -> Any:
    """Return the labels in a column: integers if all are whole numbers, otherwise texts."""
    texts = column.astype(str).str.strip()
    values = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=float)
    whole = bool(np.all((np.abs(values) < 2**53) & (values == np.floor(values))))
    y = values.astype(np.int64) if whole else texts.to_numpy(dtype=str)
    n_classes, fractions = len(np.unique(y)), not whole and not np.isnan(values).any()
    if n_classes < 2:
        found = f"only the class {str(y[0])!r}" if n_classes else "no label"
        raise InputError(f"{path} has {found} in column {column.name!r}, expected two classes or more.")
    if n_classes > max(FEW, len(y) // 5) or (n_classes > 2 and fractions):
        raise InputError(
            f"{path} has {n_classes} different values in {len(y)} rows of the target {column.name!r}, which looks like "
            "a measurement rather than a class: name another column."
        )
    return y
