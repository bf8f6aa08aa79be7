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
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from gpclass.cli.files import InputError, access, named

ARROW = (".parquet", ".feather", ".arrow")
# Endings of compressed files, before which stands that of the table.
PACKED = (".gz", ".zip", ".bz2", ".xz", ".zst")
UNKNOWN = (".xls", ".xlsb", ".ods", ".sav", ".dta", ".rds", ".rda", ".pkl", ".npy")  # unsupported formats
SEPARATORS = ",;\t|"  # separators of CSV files, the most likely one first
DATES = {
    "ISO8601": re.compile(r"\d{4}-(0[1-9]|1[0-2])(-\d{2}([T ]\d{2}:\d{2}.*)?)?"),
    "%d.%m.%Y": re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}"),
}
TIME = re.compile(r"\d{1,2}:[0-5]\d(:[0-5]\d(\.\d+)?)?")  # of day, or a duration
FEW = 20  # this many classes are accepted regardless of the number of rows

# -------------------------------------------------------------------------------------- tables


def read_table(path: str, text: Iterable[str] = (), *, sheet: str | None = None, **csv_options: Any) -> Any:
    """Return the table in a file, whose ending determines the format; ``-`` is CSV from standard input.

    The columns of a CSV file that are listed in ``text`` are not converted.
    """
    stem, kind = os.path.splitext(path.lower())
    kind = os.path.splitext(stem)[1] if kind in PACKED else kind
    if kind in UNKNOWN:
        raise InputError(f"{path} is a table of a kind that is not read: save it as .xlsx or .csv.")
    with access(path, "read"):
        if path != "-":
            open(path, "rb").close()
    with _one_sentence(path):
        if kind in ARROW:
            frame = (pd.read_parquet if kind == ".parquet" else pd.read_feather)(path)
        elif kind in (".json", ".jsonl", ".ndjson"):
            frame = pd.read_json(path, lines=kind != ".json", dtype=False)
        elif kind == ".xlsx":
            header = pd.read_excel(path, sheet or 0, header=None, nrows=1)
            _check_names(path, [] if header.empty else header.iloc[0].tolist())
            frame = pd.read_excel(path, sheet or 0)
        else:
            frame = _csv(path, text, **csv_options)
    if frame.empty:
        raise InputError(f"{path} has a header but no rows: there is nothing to learn from or to predict.")
    frame = frame.reset_index(drop=True).rename(columns=str)
    return frame.apply(lambda column: column if column.name in text else _typed(column))


def _csv(
    path: str, text: Iterable[str], separator: str | None = None, encoding: str = "utf-8-sig", **marks: Any
) -> Any:
    source: Any = io.BytesIO(sys.stdin.buffer.read()) if path == "-" else path

    def read(**settings: Any) -> Any:
        if path == "-":
            source.seek(0)
        return pd.read_csv(source, encoding=encoding, skipinitialspace=True, **settings)

    first: dict[str, Any] = {"header": None, "nrows": 1, "dtype": str, "na_filter": False}
    if separator is None:
        line = read(sep="\x01", quoting=csv.QUOTE_NONE, **first).iloc[0, 0]
        separator = max(SEPARATORS, key=line.count)
    separator = {"tab": "\t", "\\t": "\t"}.get(separator, separator)
    names = [name.strip() for name in read(sep=separator, **first).iloc[0]]
    _check_names(path, names)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # more values than names in all rows
        types = dict.fromkeys(text, str)
        frame = read(sep=separator, na_values=["?"], dtype=types, index_col=False, low_memory=False, **marks)
    return frame.set_axis(names, axis=1)


def _check_names(path: str, names: list[Any]) -> None:
    texts = ["" if pd.isna(name) else str(name) for name in names]
    if not texts:
        raise InputError(f"{path} has an empty first row, expected names of columns: remove rows above them.")
    if "" in texts:
        raise InputError(
            f"{path} has no name for column {texts.index('') + 1} in its header: add one, or remove lines above it."
        )
    if twice := sorted({name for name in texts if texts.count(name) > 1}):
        raise InputError(f"{path} has more than one column called {named(twice)}: give them different names.")
    if len(texts) > 1 and pd.to_numeric(pd.Series(texts), errors="coerce").notna().all():
        raise InputError(f"{path} starts with numbers ({named(texts, 3)}), expected a header with names.")


def _typed(column: Any) -> Any:
    """Return a column of texts without surrounding spaces, as dates or durations if every text is one."""
    is_category = isinstance(column.dtype, pd.CategoricalDtype)
    if is_category or pd.api.types.infer_dtype(column, skipna=True) != "string":
        return column
    texts = column.str.strip()
    for form, pattern in DATES.items():
        if texts.dropna().str.fullmatch(pattern).all():
            dates = pd.to_datetime(texts, errors="coerce", format=form, utc=True)
            return dates if dates.notna().equals(texts.notna()) else texts  # text is rejected later
    if texts.dropna().str.fullmatch(TIME).all():
        return pd.to_timedelta(texts.where(texts.str.count(":") != 1, texts + ":00"))
    return texts


@contextlib.contextmanager
def _one_sentence(path: str) -> Iterator[None]:
    """Turn the errors of reading a table into one sentence each."""
    try:
        yield
    except (InputError, ModuleNotFoundError):
        raise
    except pd.errors.EmptyDataError:
        raise InputError(f"{path} is empty, expected a header and rows of values.") from None
    except pd.errors.ParserWarning:
        raise InputError(
            f"{path} has rows with more values than its first line has names: remove lines above the header, or check "
            "its separators and quotes."
        ) from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        likely = "utf-16" if error.start == 0 and byte in codecs.BOM_UTF16 else "latin-1"
        raise InputError(
            f"{path} is not text in {error.encoding}, as it has the byte {byte:#04x}: give its encoding, such as "
            f"--encoding {likely}."
        ) from None
    except (ValueError, LookupError, OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        words = " ".join(str(error).split("C error: ")[-1].split()).rstrip(".")[:150]
        raise InputError(f"{path} cannot be read as a table: {words}.") from None


# ------------------------------------------------------------------------------------ problems


def read_problem(path: str, target: str, *, rows: int | None, seed: int, **options: Any) -> tuple[Any, Any]:
    """Return the input columns of a table as a frame, and its labels; ``options`` come from the command line."""
    from sklearn.model_selection import train_test_split

    columns, drop, categorical = (options.pop(name) for name in ("columns", "drop", "categorical"))
    frame = read_table(path, [target], **options)
    check_columns(path, frame, [target, *columns, *drop, *categorical])
    if target in columns:
        raise InputError(f"The target {target!r} is among --columns: it cannot predict itself.")
    chosen = dict.fromkeys(columns or frame)
    features = [name for name in chosen if name not in (target, *drop)]
    if not features:
        raise InputError(f"{path} has no column to learn from besides the target {target!r}.")
    if unused := [name for name in categorical if name not in features]:
        raise InputError(f"--categorical names {named(unused)}, which is not among the columns used.")
    X, y = frame[features], _labels(path, frame[target])
    if rows is not None and rows < len(y):
        X, _, y, _ = train_test_split(X, y, stratify=y, random_state=seed, train_size=rows)
    return X, y


def check_columns(path: str, frame: Any, names: Iterable[str]) -> None:
    """Raise unless a table has columns of these names."""
    if missing := [name for name in names if name not in frame]:
        noun = "column" if len(missing) == 1 else "columns"
        raise InputError(f"{path} has no {noun} {named(missing)}: its columns are {named(frame, 12)}.")


def _labels(path: str, column: Any) -> Any:
    """Return the labels in a column: integers if all are whole numbers, otherwise texts."""
    if column.isna().any():
        row = int(column.isna().argmax()) + 1
        raise InputError(f"{path} has no label in row {row}, column {column.name!r}: drop such rows.")
    texts = column.astype(str).str.strip()
    values = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=float)
    whole = bool(np.all((np.abs(values) < 2**53) & (values == np.floor(values))))
    y = values.astype(np.int64) if whole else texts.to_numpy(dtype=str)
    n_classes, fractions = len(np.unique(y)), not whole and not np.isnan(values).any()
    if n_classes == 1:
        raise InputError(f"{path} has only the class {str(y[0])!r} in column {column.name!r}, expected more.")
    if n_classes > max(FEW, len(y) // 5) or (n_classes > 2 and fractions):
        raise InputError(
            f"{path} has {n_classes} different values in {len(y)} rows of the target {column.name!r}, which looks like "
            "a measurement rather than a class: name another column."
        )
    return y
