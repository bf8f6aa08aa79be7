"""Columns of pandas, polars and Arrow tables and of arrays: their names, their types and their values.

No package of tables is imported. Each has columns that NumPy converts to numbers and dates, with NaN or NaT where a
value is missing.
"""

from __future__ import annotations

import datetime
import decimal
import numbers
from typing import Any

import numpy as np

from gpclass.core.protocols import Array

# Kinds of NumPy's types. Columns of objects have the kind of their values.
KINDS = {"b": "truth", "M": "date", "m": "duration"}
KINDS |= dict.fromkeys("fiu", "number") | dict.fromkeys("TU", "text")
CATEGORIES = ("categ", "enum", "dictionary")  # beginnings of the names of categorical types
DATES, DURATIONS = (datetime.date, np.datetime64), (datetime.timedelta, np.timedelta64, datetime.time)
NUMBERS = (numbers.Real, decimal.Decimal, np.bool_)
DAY = np.timedelta64(1, "D")


def is_frame(X: Any) -> bool:
    """Return whether X is a table with names of columns."""
    return hasattr(X, "columns") and hasattr(X, "shape")


def as_table(X: Any) -> Any:
    """Return lists of rows as an array, of objects if they contain text, and other tables as they are.

    Masked values of an array of numbers are missing. Columns of the same name are refused.
    """
    if type(X).__name__ == "LazyFrame":
        raise ValueError("X is a LazyFrame of polars, which has no rows yet: give X.collect().")
    if is_frame(X):
        names = list(X.column_names if hasattr(X, "column_names") else X.columns)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"X has several columns called {twice!r}: give them different names.")
        return X
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
    except (TypeError, ValueError):  # rows of different lengths; scikit-learn reports the error
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


def type_of(column: Any) -> str:
    """Return the name of the type of a column."""
    return str(column.type if hasattr(column, "type") else column.dtype)


def kind_of(column: Any) -> str:
    """Return "number", "truth", "category", "text", "date", "duration" or "other".

    Texts and numbers together are text, missing values have no kind, and a time of day is a duration.
    """
    if type_of(column).lower().startswith(CATEGORIES):
        return "category"
    if kind := KINDS.get(_array(column).dtype.kind):
        return kind
    types = {type(value) for value in values_of(column) if not is_missing(value)}
    for kind, known in (
        ("truth", (bool, np.bool_)),
        ("date", DATES),
        ("duration", DURATIONS),  # before numbers, because numpy.timedelta64 is one of NumPy's integers
        ("number", NUMBERS),
        ("text", (str, *NUMBERS)),
    ):
        if types and all(issubclass(each, known) for each in types):
            return kind
    return "other" if types else "number"


def _array(column: Any) -> Any:
    """Return a column as NumPy converts it; periods of pandas are their first moments."""
    return np.asarray(column.dt.to_timestamp() if type_of(column).startswith("period") else column)


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
    values: Any = _array(column)
    if values.dtype.kind not in "biufmM":
        values = [_plain(value) for value in values_of(column)]
    if kind == "number":
        return np.asarray(values, dtype=float)
    if kind == "date":
        values = np.asarray(values, dtype="datetime64[us]") - np.datetime64(0, "us")
    return np.asarray(np.asarray(values, dtype="timedelta64[us]") / DAY, dtype=float)


def _plain(value: Any) -> Any:
    """Return a value as NumPy converts it: None if missing, dates in UTC without time zone, durations for times."""
    if is_missing(value):
        return None
    if isinstance(value, datetime.time):
        return datetime.datetime.combine(datetime.date.min, value) - datetime.datetime.min
    if getattr(value, "tzinfo", None) is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value


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
