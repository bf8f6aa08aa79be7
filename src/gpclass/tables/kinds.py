"""The kind of each column of a table, and errors for columns that cannot be used as they are."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gpclass.core.checks import check_option, is_integer
from gpclass.core.protocols import Array
from gpclass.core.text import named
from gpclass.tables.reading import Values

MOST_LEVELS = 255  # maximum number of levels of a category, as in HistGradientBoosting
FEW_LEVELS = 20  # up to this many different texts are categories, regardless of their form
DISTINCT = 0.9  # a column with a larger fraction of different texts is an identifier
STRAY = (
    0.2  # if at most this fraction of the texts are not numbers, they are mistakes; dates and times likewise
)
ROWS_OF_IDS = 50  # fewer different integers may be measurements
DENSE_IDS = 4  # identifiers are integers in a range of at most this many times their number
MARKED = 0.01  # a value in fewer rows is an outlier, and does not mark missing values
MEASURED = 10  # columns of fewer other values are codes, in which any value may be meant

PLAIN = re.compile(r"\s*[-+]?(0|[1-9]\d*|(?=\.\d))(\.\d*)?([eE][-+]?\d+)?\s*")
NUMBER = re.compile(
    r"\s*[-+−]?[$€£]?\s?(0|[1-9]\d*|[1-9]\d{0,2}([.,'\s]\d{3})+)([.,]\d+)?([eE][-+]?\d+)?\s?[%$€£]?\s*"
)
WITH_UNIT = re.compile(r"\s*([$€£]?)\s?[-+]?\d[\d.,'\s]*?\s?([^\W\d]{0,4}|[%°$€£])\s*")  # such as 1,200 kg
MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
DATE = re.compile(
    r"\s*(\d{4}([-/])\d{1,2}\2\d{1,2}([T ].*)?|\d{1,2}([./-])\d{1,2}\4(\d{4}|\d{2})"
    rf"|[12]\d{{3}}[-/](0?[1-9]|1[0-2])|(\d{{1,2}}[- ])?{MONTH}[- ](\d{{1,2}}, ?)?[12]\d{{3}})\s*",  # 2021-03, Mar 2021
    re.IGNORECASE,
)
TIME = re.compile(r"\s*(\d+ days?,? )?\d{1,2}:[0-5]\d(:[0-5]\d([.,]\d+)?)?( ?[ap]m)?\s*", re.IGNORECASE)
CODE = re.compile(r"\s*0\d+\s*")  # digits with a leading zero, such as a postcode
NAMED = "or name the column in categorical_features"
REMEDIES = {
    "numbers": "read them as numbers, for example with pandas.read_csv(..., decimal=','), or remove signs and units "
    f"and use pandas.to_numeric, {NAMED}",
    "texts": "replace them by numbers or missing values, for example with pandas.to_numeric(..., errors='coerce'), "
    f"{NAMED}",
    "conversion": "convert it first",
    "dates": "convert them with pandas.to_datetime (utc=True for time zones, dayfirst=True for 31.1.2026), "
    f"{NAMED}",
    "times": f"convert them with pandas.to_timedelta, which takes hours, minutes and seconds (01:30:00), {NAMED}",
    "identifier": f"drop the column, {NAMED}",
    "levels": f"merge rare levels until at most {MOST_LEVELS} are left, or drop the column",
    "other": "convert or drop the column",
    "text": "drop the column, or use categorical_features='from_dtype'",
}


class TableWarning(UserWarning):
    """Warning about a column that may be read wrongly, or about levels that did not occur in the training rows."""


class ColumnError(ValueError):
    """Error about a column that cannot be used without conversion.

    Parameters
    ----------
    name : str
        Name of the column.
    found : str
        What is wrong with it, as a clause without a subject.
    problem : str
        What to do about it: a key of `REMEDIES`.
    """

    def __init__(self, name: str, found: str, problem: str) -> None:
        self.name, self.found, self.problem = name, found, problem
        super().__init__(name, found, problem)

    def __str__(self) -> str:
        return f"Column {self.name!r} of X {self.found}: {REMEDIES[self.problem]}."


class ColumnTypeError(ColumnError, TypeError):
    """A column of values that are neither numbers, text, booleans nor dates."""


def is_explicit(categorical_features: Any) -> bool:
    """Return whether the user selects categorical columns explicitly, even an empty list of them."""
    return categorical_features is not None and not np.array_equal(categorical_features, "from_dtype")


def chosen_columns(categorical_features: Any, names: Sequence[str]) -> set[int]:
    """Return the positions of the columns that the user selects as categories."""
    given, n = categorical_features, len(names)
    if not is_explicit(given):
        return set()
    chosen = np.atleast_1d(np.asarray(given))
    if chosen.dtype == bool and np.shape(given) == (n,):
        return set(np.flatnonzero(chosen).tolist())
    fine = chosen.ndim == 1 and all(isinstance(c, str) or is_integer(c) for c in chosen.tolist())
    expected = f"'from_dtype', names or indices of columns, a mask of {n} booleans, or None"
    check_option("categorical_features", given, fine, expected)
    places: dict[Any, int] = {i - k: i for i in range(n) for k in (0, n)}
    places |= {name: i for i, name in enumerate(names)}
    fine = all(each in places for each in chosen.tolist())
    check_option("categorical_features", given, fine, f"columns of X, which has {named(names, 12)}")
    return {places[each] for each in chosen.tolist()}


def kinds_of(columns: Sequence[Values], categorical_features: Any) -> list[str]:
    """Return "number", "date", "duration" or "category" for each column; raise if a column cannot be used."""
    chosen = chosen_columns(categorical_features, [column.name for column in columns])
    categories = categorical_features is not None
    return ["category" if i in chosen else _kind(column, categories) for i, column in enumerate(columns)]


def _kind(column: Values, categories: bool) -> str:
    """Return the kind of a column that was not chosen as a category; ``categories`` says whether text may be one."""
    kind = column.kind
    if kind == "other":
        types = sorted({type(value).__name__ for value in column.present})
        raise ColumnTypeError(
            column.name,
            f"contains values of the type{'s' * (len(types) > 1)} {', '.join(types)}, but the argument must be a "
            "string, a number, a boolean or a date, with the same type in all rows",
            "other",
        )
    if kind == "text" or (not categories and kind in ("truth", "category")):
        kind = _kind_of_text(column.name, column.present)
        if kind == "category" and not categories:
            raise ColumnError(column.name, f"has text (its type is {column.type})", "text")
    return "category" if kind == "truth" else kind


def odd_text(values: Iterable[Any]) -> str:
    """Return the beginning of a text that is not a plain number."""
    return next((text[:40] for text in map(str, values) if not PLAIN.fullmatch(text)), "")


def _kind_of_text(name: str, values: list[Any]) -> str:
    """Return whether texts are numbers or categories; raise for numbers in another notation, dates and identifiers."""
    texts = sorted({str(value) for value in values})
    if all(map(PLAIN.fullmatch, texts)) or {type(value) for value in values} <= {bool}:
        return "number"
    many = len(texts) > FEW_LEVELS
    varied = many or len(texts) > 0.5 * len(values)
    units = {match and (match[1], match[2]) for match in map(WITH_UNIT.fullmatch, texts)}
    with_unit = many and len(units) == 1 and units.isdisjoint({None, ("", "")})
    for what, pattern in (("numbers", WITH_UNIT if with_unit else NUMBER), ("dates", DATE), ("times", TIME)):
        others = [text for text in texts if not pattern.fullmatch(text)]
        if not others:
            raise ColumnError(name, f"has {what} as text, such as {odd_text(texts)!r}", what)
        if varied and len(others) <= STRAY * len(texts) and not any(map(CODE.fullmatch, texts)):
            raise ColumnError(name, f"has texts among its {what}, such as {others[0][:40]!r}", "texts")
    if many and len(texts) >= DISTINCT * len(values):
        found = f"has {len(texts)} different texts in {len(values)} rows, such as {texts[0][:40]!r}"
        raise ColumnError(name, f"{found}, and is likely to be an identifier", "identifier")
    return "category"


def check_levels(name: str, n_levels: int) -> None:
    """Raise if a category has too many levels."""
    if n_levels > MOST_LEVELS:
        raise ColumnError(name, f"has {n_levels} levels, and at most {MOST_LEVELS} are possible", "levels")


def warn_of_doubts(columns: Mapping[str, Array]) -> None:
    """Warn about columns of numbers that are likely to be identifiers, or to have a value that marks missing ones."""
    doubts = [
        f"Column {name!r} of X numbers the rows and is likely to be an identifier, which does not help to predict "
        "other rows: drop it."
        for name, values in columns.items()
        if _counts_rows(values)
    ]
    if marks := [
        f"{mark:g} in column {name!r}" for name, values in columns.items() for mark in _marks(values)
    ]:
        doubts.append(
            f"X has frequent values far from all others, which may represent missing values: {', '.join(marks)}; if "
            "they do, replace them by NaN."
        )
    for doubt in doubts:
        warnings.warn(doubt, TableWarning, stacklevel=5)


def _counts_rows(values: Array) -> bool:
    n = len(values)
    if n < ROWS_OF_IDS or values.max() - values.min() >= DENSE_IDS * n or (values != np.floor(values)).any():
        return False
    return len(np.unique(values)) == n


def _marks(values: Array) -> list[float]:
    """Return frequent values that are farther from the others than any two of these, such as -999 in 20, ..., 80."""
    values, found = values[~np.isnan(values)], []
    for end in (values.min(), values.max()) if len(values) else ():
        others = values[values != end]
        count = len(values) - len(others)
        if 1 < count >= MARKED * len(values) and len(others) and np.abs(others - end).min() > np.ptp(others):
            found += [float(end)] if len(np.unique(others)) >= MEASURED else []
    return found
