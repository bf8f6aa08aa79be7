"""Columns of pandas, polars and Arrow tables and of arrays: their names, their types and their values.

No package of tables is imported. Each has columns that NumPy converts to numbers and dates, with NaN or NaT where a
value is missing.
"""

from __future__ import annotations

import datetime
import decimal
import numbers
import re
from typing import Any

import numpy as np

from gpclass.core.protocols import Array

# Beginnings of the names of types in NumPy, pandas, polars and Arrow.
TYPES = re.compile(
    "(?P<number>u?int(?!erval)|float|double|half|decimal|sparse)|(?P<truth>bool)|(?P<category>categ|enum|dictionary)"
    "|(?P<text>str|large_str|utf8|[<>=|]?u)|(?P<date>date|timestamp|period)|(?P<duration>time|duration)",
    re.IGNORECASE,
)
DATES, DURATIONS = (datetime.date, np.datetime64), (datetime.timedelta, np.timedelta64, datetime.time)
DAY = np.timedelta64(1, "D")


def is_frame(X: Any) -> bool:
    """Return whether X is a table with names of columns."""
    return hasattr(X, "columns") and hasattr(X, "shape")


def as_table(X: Any) -> Any:
    """Return lists of rows as an array, of objects if they contain text, and other tables as they are.

    Masked values of an array of numbers are missing.
    """
    if type(X).__name__ == "LazyFrame":
        raise ValueError("X is a LazyFrame of polars, which has no rows yet: give X.collect().")
    if type(X) is dict or (isinstance(X, list | tuple) and any(type(row) is dict for row in X)):
        raise ValueError(
            "X has dictionaries, expected a table or an array: give pandas.DataFrame(X), or pandas.DataFrame([X]) for "
            "one row."
        )
    if len(getattr(X, "shape", (0, 0))) == 1 and hasattr(X, "to_frame"):
        raise ValueError(
            "Expected a 2-dimensional container, but X is one column or row (a Series): give X.to_frame() "
            "for a column, or X.to_frame().T for a row."
        )
    if isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "biuf":
        return np.ma.filled(X.astype(float), np.nan)
    if not isinstance(X, list | tuple):
        return X
    try:
        rows = np.asarray(X)
        return np.array(X, dtype=object) if rows.dtype.kind in "USO" else rows
    except (TypeError, ValueError):  # rows of different lengths: reported by scikit-learn
        return X


def columns_of(X: Any) -> tuple[list[str], list[Any]]:
    """Return the names of the columns of a table or a matrix, x0, x1, ... if it has none, and the columns."""
    if hasattr(X, "iloc"):
        columns, names = [X.iloc[:, i] for i in range(X.shape[1])], list(X.columns)
    elif hasattr(X, "get_columns"):  # polars
        columns, names = X.get_columns(), X.columns
    elif is_frame(X):
        columns, names = X.columns, X.column_names
    else:
        columns, names = list(X.T), []
    if not all(isinstance(name, str) for name in names) or not names:
        names = [f"x{i}" for i in range(len(columns))]
    return names, columns


def check_names(X: Any) -> None:
    """Raise if columns of a frame have the same name."""
    names = list(X.column_names if hasattr(X, "column_names") else X.columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has several columns called {twice!r}: give them different names.")


def type_of(column: Any) -> str:
    """Return the name of the type of a column."""
    return str(column.type if hasattr(column, "type") else column.dtype)


def kind_of(column: Any) -> str:
    """Return "number", "truth", "category", "text", "date", "duration" or "other".

    The type of a column decides, and the values of objects. A time of day is a duration.
    """
    found = TYPES.match(type_of(column))
    return found.lastgroup or "" if found else kind_of_values(values_of(column))


def kind_of_values(values: list[Any]) -> str:
    """Return the kind of Python objects; texts and numbers together are text, and missing values have no kind."""
    types = {type(value) for value in values if not is_missing(value)}

    def all_are(*known: Any) -> bool:
        return all(issubclass(each, known) for each in types)

    for kind, known in (
        ("truth", (bool, np.bool_)),
        ("date", DATES),
        ("duration", DURATIONS),  # before numbers, because numpy.timedelta64 is one of NumPy's integers
        ("number", (numbers.Real, decimal.Decimal, np.bool_)),
        ("text", (str, numbers.Real, decimal.Decimal, np.bool_)),
    ):
        if types and all_are(*known):
            return kind
    return "other" if types else "number"


def values_of(column: Any) -> list[Any]:
    """Return the values of a column as Python objects."""
    for name in ("tolist", "to_list", "to_pylist"):
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA."""
    if isinstance(value, str):
        return False
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, numbers.Number | np.generic) and bool(value != value)


def numbers_of(column: Any, kind: str) -> Array:
    """Return a column as floats, NaN where a value is missing; dates and durations are in days, dates in UTC."""
    found = TYPES.match(type_of(column))
    known = found is not None and found.lastgroup not in ("text", "category")
    if kind == "number":
        return np.asarray(column if known else _plain(column), dtype=float)
    unit = "datetime64[us]" if kind == "date" else "timedelta64[us]"
    try:
        values = np.asarray(column if known else _plain(column), dtype=unit)
    except (TypeError, ValueError):  # dates and times of days in Arrow's columns of pandas
        values = np.asarray(_plain(column), dtype=unit)
    days = (values - np.datetime64(0, "us") if kind == "date" else values) / DAY
    return np.asarray(days, dtype=float)


def _plain(column: Any) -> list[Any]:
    """Return values as NumPy converts them: None if missing, dates in UTC without time zone, durations for times."""

    def plain(value: Any) -> Any:
        if is_missing(value):
            return None
        if isinstance(value, datetime.time):
            return datetime.datetime.combine(datetime.date.min, value) - datetime.datetime.min
        if getattr(value, "tzinfo", None) is not None:
            return value.astimezone(datetime.UTC).replace(tzinfo=None)
        return value

    return [plain(value) for value in values_of(column)]


def order_of(column: Any) -> list[Any] | None:
    """Return the levels of an ordered categorical column in their order; None for any other column."""
    if hasattr(column, "cat") and getattr(column.dtype, "ordered", False):  # pandas
        return list(column.cat.categories)
    if type_of(column).startswith("Enum"):  # polars
        return list(column.dtype.categories)
    if getattr(getattr(column, "type", None), "ordered", False):  # Arrow
        chunk = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        return list(getattr(chunk, "chunk", lambda i: chunk)(0).dictionary.to_pylist())
    return None
