"""The encoding of a table as numbers: learned when a model is fitted, and stored in its file as plain data.

This is the only module that knows how a column becomes inputs of a model. A `TableEncoder` is used like a transformer
of scikit-learn, with names of columns in its errors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gpclass.cli.files import InputError, named
from gpclass.cli.tables import Table, numbers

BOOLEANS = {"0": "false", "1": "true"}  # further spellings
MOSTLY = 0.8  # a column counts as numeric if this fraction of its values is
FEW = 20  # number of categories that is accepted for any number of rows
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """How one column is encoded.

    A number becomes (x - mean) / scale. Two categories become one column of 0 and 1; otherwise each
    category becomes a column. The text ``fill`` replaces missing values; if it is None they are an error.
    """

    name: str
    kind: str  # "number", "boolean" or "category"
    mean: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()
    fill: str | None = None

    def __post_init__(self) -> None:
        texts = (self.name, *self.categories, self.fill or "")
        known = self.kind in ("number", "boolean") or (self.kind == "category" and self.categories)
        finite = bool(np.isfinite([self.mean, self.scale]).all())
        if not (known and finite and self.scale > 0 and all(isinstance(text, str) for text in texts)):
            raise ValueError("This encoding is not possible.")

    @property
    def shown(self) -> tuple[str, ...]:
        """The categories that have a column of their own."""
        return self.categories[1:] if len(self.categories) == 2 else self.categories

    @property
    def outputs(self) -> list[str]:
        """Names of the inputs of the model."""
        return [f"{self.name}={category}" for category in self.shown] or [self.name]

    def __str__(self) -> str:
        if self.kind == "number":
            return f"(x - {self.mean:.6g}) / {self.scale:.6g}"
        if self.kind == "boolean":
            return "0 false, 1 true"
        words = ", ".join(self.categories)
        return f"{words}: 0, 1" if len(self.categories) == 2 else f"a column each: {words}"

    def encode(self, values: Any, path: str) -> Any:
        """Return the inputs of the model; raise if a value is missing or invalid, and name the row."""
        gaps = values.isna()
        if self.fill is None and gaps.any():
            more = "" if gaps.sum() == 1 else f" ({gaps.sum()} rows lack it)"
            raise InputError(
                f"{path} has no value in row {int(gaps.idxmax()) + 1}, column {self.name!r}{more}: drop the row or "
                "the column, or fit with --impute."
            )
        values = values.where(~gaps, self.fill)
        if self.kind == "number":
            return (_checked_numbers(values, path).to_numpy() - self.mean) / self.scale
        known, shown = self.categories, self.shown
        if self.kind == "boolean":
            known, shown, values = ("false", "true"), ("true",), values.str.lower().replace(BOOLEANS)
        expected = f"one of {named(known, 12)}, which are the values in the training data"
        _refuse(~values.isin(known), values, path, expected)
        return np.column_stack([values == category for category in shown])


class TableEncoder:
    """Encodes the columns of a table, which are selected by name.

    Parameters
    ----------
    categorical : sequence of str
        Columns to treat as categories even if they are numeric.
    impute : bool
        Whether missing values are replaced: by the median, or by the most frequent value.
    """

    columns_: tuple[Column, ...]

    def __init__(self, categorical: Sequence[str] = (), impute: bool = False) -> None:
        self.categorical, self.impute = categorical, impute

    def fit(self, table: Table, rows: Any = None) -> TableEncoder:
        """Learn means, scales and fill values from ``rows``, and categories from all rows."""
        self.columns_ = tuple(self._learn(table, name, rows) for name in table.frame)
        return self

    def transform(self, table: Table) -> Any:
        """Return the inputs of the model."""
        missing = [column.name for column in self.columns_ if column.name not in table.frame]
        if missing:
            noun = "column" if len(missing) == 1 else "columns"
            raise InputError(
                f"{table.path} lacks the {noun} {named(missing)} that the model was fitted to: its columns "
                f"are {named(table.frame, 12)}."
            )
        inputs = [column.encode(table[column.name], table.path) for column in self.columns_]
        return np.column_stack(inputs).astype(float)

    def get_feature_names_out(self) -> list[str]:
        """Return the names of the inputs of the model."""
        return [name for column in self.columns_ for name in column.outputs]

    def in_units(self, X: Any) -> Any:
        """Return inputs of the model without their standardisation, as they are in the table."""
        units = [(column.mean, column.scale) for column in self.columns_ for _ in column.outputs]
        means, scales = np.transpose(units)
        return X * scales + means

    def to_json(self) -> list[dict[str, Any]]:
        """Return the encoding as plain data."""
        return [asdict(column) for column in self.columns_]

    @classmethod
    def from_json(cls, document: Any) -> TableEncoder:
        """Return the encoder from the result of `to_json`; raise InputError for anything else."""
        encoder = cls()
        try:
            columns = [column | {"categories": tuple(column["categories"])} for column in document]
            encoder.columns_ = tuple(Column(**column) for column in columns)
        except (KeyError, TypeError, ValueError):
            encoder.columns_ = ()
        if not encoder.columns_:
            raise InputError("The model file has an invalid description of its columns: fit the model again.")
        return encoder

    def _learn(self, table: Table, name: str, rows: Any) -> Column:
        column, path, categorical = table[name], table.path, name in self.categorical
        present = column.dropna()
        if present.empty:
            raise InputError(f"{path} has no value at all in column {name!r}: give --drop {name}.")
        part = present if rows is None else column.iloc[rows].dropna()
        part = present if part.empty else part
        # If values are equally frequent, the mode is the first in alphabetical order.
        fill = str(part.mode()[0]) if self.impute else None
        share = numbers(present).notna().mean()
        if not categorical and share < 1.0 and set(present.str.lower()) <= {"true", "false"}:
            return Column(name, "boolean", fill=fill)
        if not categorical and share >= MOSTLY:
            _checked_numbers(column, path)
            return _standardised(name, numbers(part).to_numpy(), self.impute)
        known = tuple(sorted(set(present)))
        if not categorical and len(known) > max(FEW, len(column) // 5):
            example = present.iloc[0]
            comma = " (numbers need a decimal point)" if DECIMAL_COMMA.fullmatch(example) else ""
            raise InputError(
                f"{path} has {len(known)} different texts in column {name!r}, such as {example[:40]!r}{comma}: leave "
                f"it out with --drop {name}, or treat it as categories with --categorical {name}."
            )
        return Column(name, "category", categories=known, fill=fill)


def _standardised(name: str, values: Any, impute: bool) -> Column:
    size = float(np.abs(values).max()) or 1.0  # divided out, because the square of 1e200 overflows
    mean, deviation = size * float(np.mean(values / size)), size * float(np.std(values / size))
    scale = deviation if deviation > 1e-12 * size else 1.0  # the column is constant up to rounding
    return Column(name, "number", mean, scale, fill=repr(float(np.median(values))) if impute else None)


def _checked_numbers(column: Any, path: str) -> Any:
    """Return the numbers of a column, NaN where a value is missing; raise if a text is not a finite number."""
    values = numbers(column)
    wrong = (values.isna() & column.notna()) | np.isinf(values)
    instead = f"fit with --categorical {column.name} or --drop {column.name}"
    _refuse(wrong, column, path, f"a finite number: correct it, or {instead}")
    return values


def _refuse(wrong: Any, column: Any, path: str, expected: str) -> None:
    """Raise if a value is wrong, and name the first one; rows are counted from 1."""
    if wrong.any():
        row = int(wrong.idxmax())
        raise InputError(
            f"{path} has {column[row]!r} in row {row + 1}, column {column.name!r}, expected {expected}."
        )
