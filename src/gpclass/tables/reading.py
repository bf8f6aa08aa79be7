"""Columns of pandas, polars and Arrow tables and of arrays: their names, their kinds and their values.

No package of tables is imported. Each has columns that NumPy converts, with NaN, NaT or None where a value is missing.
"""

from __future__ import annotations

import datetime
import decimal
import numbers
from functools import cached_property
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.validation import is_missing

# Kinds of NumPy's types. Columns of objects have the kind of their values.
KINDS = {"b": "truth", "M": "date", "m": "duration"}
KINDS |= dict.fromkeys("fiu", "number") | dict.fromkeys("TU", "text")
NUMBERS = (numbers.Real, decimal.Decimal, np.bool_)
TYPES: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("truth", (bool, np.bool_)),
    ("date", (datetime.date, np.datetime64)),
    # before numbers, because numpy.timedelta64 is one of NumPy's integers
    ("duration", (datetime.timedelta, np.timedelta64, datetime.time)),
    ("number", NUMBERS),
    ("text", (str, *NUMBERS)),
)
SHOWN = 5  # names of columns in an error
CATEGORIES = ("categ", "enum", "dictionary")  # beginnings of the names of categorical types


class TakesTables:
    """An estimator that takes tables with categories and missing values."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        return tags


def as_table(X: Any) -> Any:
    """Return lists of rows as an array, of objects if they contain text, and other tables as they are.

    Masked values of an array of numbers are missing. Columns of the same name are refused.
    """
    if isinstance(X, np.ndarray):
        if X.dtype.names:
            raise ValueError(
                "X is a structured array, expected a table or a matrix: give pandas.DataFrame(X)."
            )
        masked = isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "biuf"
        return np.ma.filled(X.astype(float), np.nan) if masked else X
    if type(X).__name__ == "LazyFrame":
        raise ValueError("X is a LazyFrame of polars, which has no rows yet: give X.collect().")
    if type(X).__name__ == "RecordBatch":  # of Arrow: scikit-learn finds the names of a table only
        X = X.schema.empty_table().from_batches([X])
    if is_frame(X):
        if not (names := names_of(X)):
            raise ValueError("X has no columns, expected at least one.")
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"X has several columns called {twice[0]!r}: give them different names.")
        return X
    if type(X) is dict or (isinstance(X, list | tuple) and any(type(row) is dict for row in X)):
        raise ValueError(
            "X contains dictionaries, expected a table or an array: give pandas.DataFrame(X), or pandas.DataFrame([X]) "
            "for one row."
        )
    if len(getattr(X, "shape", (0, 0))) == 1 and hasattr(X, "to_frame"):
        raise ValueError(
            "Expected a 2-dimensional container, but X is one column or row (a Series): give X.to_frame() "
            "for a column, or X.to_frame().T for a row."
        )
    if isinstance(X, str) or not any(hasattr(X, name) for name in ("__getitem__", "__array__", "shape")):
        raise ValueError(
            f"X has the type {type(X).__name__}, expected a table or a matrix: read a file first, for example with "
            "pandas.read_parquet, and give an iterator as list(X)."
        )
    if not isinstance(X, list | tuple):
        return X
    try:
        rows = np.asarray(X)
        return np.array(X, dtype=object) if rows.dtype.kind in "USO" else rows
    except (TypeError, ValueError):  # rows of different lengths; scikit-learn reports the error
        return X


def is_frame(X: Any) -> bool:
    """Return whether X is a table with names of columns."""
    return hasattr(X, "columns") and hasattr(X, "shape")


def names_of(X: Any) -> list[Any]:
    """Return the names of the columns of a table."""
    return list(X.column_names if hasattr(X, "column_names") else X.columns)


def check_names(X: Any, expected: Any) -> None:
    """Raise unless a table has the columns of the training rows in their order; None if these had no names."""
    given = names_of(X) if is_frame(X) and expected is not None else []
    if not given or given == list(expected) or not all(isinstance(name, str) for name in given):
        return
    missing, new = ([repr(n) for n in a if n not in b] for a, b in ((expected, given), (given, expected)))
    differences = [
        f"{verb} {', '.join(n[:SHOWN] + ['...'] * (len(n) > SHOWN))}"
        for verb, n in (("lacks", missing), ("also has", new))
        if n
    ]
    found = " and ".join(differences) or f"has them in another order, from {given[0]!r} to {given[-1]!r}"
    remedy = "add what is missing" if missing else "give X[list(model.feature_names_in_)]"
    raise ValueError(
        f"The feature names should match those that were passed during fit, but X {found}: {remedy}."
    )


class Values:
    """A column of a table: its name, the name of its type, and its values as a NumPy array."""

    def __init__(self, name: str, column: Any) -> None:
        self.name = name
        self.type = str(column.type if hasattr(column, "type") else column.dtype)
        if self.type.startswith("period"):  # of pandas: the first moments
            column = column.dt.to_timestamp()
        elif self.type.startswith("dictionary"):  # of Arrow: NumPy would take missing values for levels
            column = np.array(
                (column.to_pylist if hasattr(column, "to_pylist") else column.tolist)(), dtype=object
            )
        self.array = np.asarray(column)
        if self.array.ndim != 1:  # of structs or vectors, which are refused as objects
            self.array = np.fromiter(self.array, dtype=object)

    @cached_property
    def objects(self) -> list[Any]:
        """The values as Python objects."""
        kind = self.array.dtype.kind
        return list((self.array.astype(f"{kind}8[us]") if kind in "mM" else self.array).tolist())

    @cached_property
    def present(self) -> list[Any]:
        """The values that are not missing."""
        return [value for value in self.objects if not is_missing(value)]

    @cached_property
    def kind(self) -> str:
        """Whether it is a "number", "truth", "category", "text", "date", "duration" or "other".

        Texts and numbers together are text, missing values have no kind, and a time of day is a duration.
        """
        if self.type.lower().startswith(CATEGORIES):
            return "category"
        if kind := KINDS.get(self.array.dtype.kind):
            return kind
        if not (types := set(map(type, self.present))):
            return "number"
        return next((kind for kind, known in TYPES if all(issubclass(t, known) for t in types)), "other")

    def numbers(self, kind: str = "number") -> Array:
        """Return the values as floats, NaN where one is missing; dates and durations are in days, dates in UTC."""
        values: Any = self.array
        if values.dtype.kind not in "biufmM":
            values = [_plain(value) for value in self.objects]
        if kind == "number":
            return np.asarray(values, dtype=float)
        if kind == "date":
            values = np.asarray(values, dtype="datetime64[us]") - np.datetime64(0, "us")
        return np.asarray(values, dtype="timedelta64[us]") / np.timedelta64(1, "D")


def columns_of(X: Any) -> list[Values]:
    """Return the columns of a table or a matrix, called x0, x1, ... if they have no names; none of anything else."""
    names = names_of(X) if is_frame(X) else []
    if hasattr(X, "iloc"):
        columns = [X.iloc[:, i] for i in range(X.shape[1])]
    elif names:
        columns = X.get_columns() if hasattr(X, "get_columns") else X.columns  # polars, Arrow
    else:
        matrix = isinstance(X, np.ndarray) and X.ndim == 2 and X.size > 0 and X.dtype.kind in "biufOUTmM"
        columns = list(X.T) if matrix else []
    if not all(isinstance(name, str) for name in names) or not names:
        names = [f"x{i}" for i in range(len(columns))]
    return [Values(name, column) for name, column in zip(names, columns, strict=True)]


def _plain(value: Any) -> Any:
    """Return a value as NumPy converts it: None if missing, dates in UTC without time zone, durations for times."""
    if is_missing(value):
        return None
    if isinstance(value, datetime.time):
        return datetime.datetime.combine(datetime.date.min, value) - datetime.datetime.min
    if getattr(value, "tzinfo", None) is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value
