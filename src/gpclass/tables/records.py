"""How one column of a table is coded as columns of a matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gpclass.core.protocols import Array
from gpclass.core.registry import stored
from gpclass.tables.kinds import ColumnError, odd_text
from gpclass.tables.reading import Values
from gpclass.validation import Where, is_missing

HALF = math.sqrt(0.5)  # gives codes of different levels the distance one
# Kinds of columns that can be read as the kind of the training rows; a file may store numbers or dates as text.
READABLE = {
    "number": ("number", "truth", "text", "category"),
    "date": ("date", "text", "category"),
    "duration": ("duration",),
}


@stored
@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table, and where its code is.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : {"number", "date", "duration", "category"}
        Dates are days since 1970 in UTC, and durations are days.
    levels : tuple
        Levels of a category, sorted; the last one is None if missing values are a level.
    fill : float or None
        Median of a number, which replaces missing values.
    scale : float or None
        Standard deviation of a number, which marks missing values in a column of its own; None if there were none.
    positions : tuple of int
        Positions of the coded columns; empty if the column is constant, so that it is left out.

    Examples
    --------
    >>> from gpclass.tables import Column
    >>> Column("age", "number", fill=30.0, scale=2.0, positions=(0, 1)).coded_names
    ['age', 'age=missing']
    """

    name: str
    kind: Literal["number", "date", "duration", "category"]
    levels: tuple[Any, ...] = ()
    fill: float | None = None
    scale: float | None = None
    positions: tuple[int, ...] = ()

    @property
    def is_numeric(self) -> bool:
        """Whether the first coded column is a number."""
        return self.kind in ("number", "date", "duration")

    @property
    def width(self) -> int:
        """Number of coded columns, 0 if the column is constant."""
        if not self.positions:
            return 0
        return 1 + (self.scale is not None) if self.is_numeric else len(self.levels)

    @property
    def coded_names(self) -> list[str]:
        """Names of the coded columns."""
        marks = ["missing" if level is None else level for level in self.levels]
        names = [self.name] * self.is_numeric + [f"{self.name}={mark}" for mark in marks or ["missing"]]
        return names[: self.width]

    def code(self, column: Values, out: Array) -> int:
        """Write the code of a column into an array of zeros, and return the number of values that are new."""
        if self.is_numeric:
            numbers = finite_numbers(column, self.kind)
            gaps = np.isnan(numbers)
            out[:, 0] = numbers
            out[gaps, 0] = self.fill
            if self.scale is None:
                return int(gaps.sum())
            out[:, 1] = self.scale * gaps
            return 0
        place = {level: i for i, level in enumerate(self.levels)}
        codes = {value: _place(level, place) for value, level in levels_of(column).items()}
        found = np.array([codes[value] for value in column.objects], dtype=np.intp)
        known = np.flatnonzero(found >= 0)
        out[known, found[known]] = HALF
        return len(found) - len(known)

    def check_stored(self) -> None:
        """Raise ValueError if values from a file contradict each other or have wrong types."""
        numbers = [number for number in (self.fill, self.scale) if number is not None]
        texts = isinstance(self.name, str) and all(
            isinstance(v, str | int | float | None) for v in self.levels
        )
        counted = len(self.positions) == self.width
        filled = self.fill is not None or not (self.is_numeric and self.positions)
        if not (texts and counted and filled and all(map(math.isfinite, numbers))):
            raise ValueError(f"the coding of column {self.name!r:.80} is damaged: save the model again.")


def _place(level: Any, known: Mapping[Any, int]) -> int:
    """Return the position of a level, -1 if it is not known.

    A file in which all values of a column happen to be numbers or booleans has another type than one in which some
    are text, so the same level may be 2, 2.0 or "2", and True, "True" or "true".
    """
    if level is None or level in known:
        return known.get(level, -1)
    word = str(level).lower()
    others: list[Any] = [str(level), word, {"true": True, "false": False}.get(word, word)]
    with suppress(ValueError):
        others += [float(level), f"{float(level):.17g}"]
    return next((known[other] for other in others if other in known), -1)


def finite_numbers(column: Values, kind: str, where: Where = "row {}".format) -> Array:
    """Return the numbers of a column, NaN where they are missing; raise for infinity and for anything else."""
    if column.kind not in READABLE[kind] and column.present:
        what = f"has the type {column.type} ({column.kind}), and the training rows had {kind}s"
        raise ColumnError(column.name, what, "conversion")
    try:
        values = column.numbers(kind)
    except (TypeError, ValueError):
        what = f"has texts where the training rows have {kind}s, such as {odd_text(column.present)!r}"
        raise ColumnError(column.name, what, "conversion") from None
    infinite = np.isinf(values)
    if infinite.any():
        place = f"{where(int(np.argmax(infinite)))}, column {column.name!r}"
        raise ValueError(f"Input X contains infinity (inf) in {place}: replace it by a number, or by NaN.")
    return values


def levels_of(column: Values) -> dict[Any, Any]:
    """Return the level of each distinct value of a column: text, a number, or None if it is missing."""
    try:
        return {value: _level(value) for value in set(column.objects)}
    except TypeError:
        raise ValueError(
            f"Column {column.name!r} of X has lists or other values that cannot be levels of a category: drop or "
            "convert it."
        ) from None


def _level(value: Any) -> Any:
    if is_missing(value):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, str | int | float) else str(value)
