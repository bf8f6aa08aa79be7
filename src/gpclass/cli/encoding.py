"""How the columns of a table become the inputs of a model: learned once, stored as plain data."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gpclass.cli.errors import InputError, named
from gpclass.cli.tables import Table, numbers

BOOLEANS = {"0": "false", "1": "true"}  # further spellings
MOSTLY = 0.8  # a column is meant to be numeric if this share of its values is
FEW = 20  # number of categories that a table of any size may have
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """How one column is encoded.

    A number becomes (x - mean) / scale. Two categories become one column of 0 and 1, any other number of them
    a column each. The text ``fill`` replaces missing values; None refuses them.
    """

    name: str
    kind: str  # "number", "boolean" or "category"
    mean: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()
    fill: str | None = None

    @property
    def shown(self) -> tuple[str, ...]:
        """The categories that have a column of their own."""
        return self.categories[1:] if len(self.categories) == 2 else self.categories

    @property
    def outputs(self) -> list[str]:
        """Names of the columns of the model."""
        return [f"{self.name}={category}" for category in self.shown] or [self.name]

    def encode(self, column: Any, path: str) -> Any:
        """Return the columns of the model; raise if a value is missing or invalid, and name the row."""
        gaps = column.isna()
        if gaps.any():
            if self.fill is None:
                more = "" if gaps.sum() == 1 else f" ({gaps.sum()} rows lack it)"
                raise InputError(
                    f"{path} has no value in row {_row(gaps)}, column {self.name!r}{more}: drop the row or "
                    "the column, or fit with --impute."
                )
            column = column.fillna(self.fill)
        if self.kind == "number":
            return (checked_numbers(column, path).to_numpy() - self.mean) / self.scale
        known, shown = self.categories, self.shown
        if self.kind == "boolean":
            known, shown, column = ("false", "true"), ("true",), column.str.lower().replace(BOOLEANS)
        unknown = ~column.isin(known)
        if unknown.any():
            row = _row(unknown)
            raise InputError(
                f"{path} has {column[row - 1]!r} in row {row}, column {self.name!r}, expected one of "
                f"{named(known, 12)}, which are the values in the training data."
            )
        return np.column_stack([column == category for category in shown])

    def is_valid(self) -> bool:
        """Return whether the rule, which a file gave, is possible."""
        finite = all(
            isinstance(value, int | float) and np.isfinite(value) for value in (self.mean, self.scale)
        )
        texts = all(isinstance(text, str) for text in (self.name, *self.categories, self.fill or ""))
        kind = self.kind in ("number", "boolean") or (self.kind == "category" and len(self.categories) > 0)
        return finite and self.scale > 0 and texts and kind


def _row(marked: Any) -> int:
    """Return the number of the first marked row, counted from 1."""
    return int(marked.idxmax()) + 1


def checked_numbers(column: Any, path: str) -> Any:
    """Return the numbers of a column, NaN where a value is missing; raise if a text is not a number."""
    values, name = numbers(column), column.name
    not_number, infinite = values.isna() & column.notna(), np.isinf(values)
    for wrong, expected in ((not_number, "a number"), (infinite, "a finite number")):
        if wrong.any():
            row = _row(wrong)
            raise InputError(
                f"{path} has {column[row - 1]!r} in row {row}, column {name!r}, expected {expected}: correct "
                f"it, or fit with --categorical {name} or --drop {name}."
            )
    return values


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """How a table becomes the inputs of a model: one rule per column, in the order of the model."""

    target: str
    rules: tuple[Rule, ...]

    @property
    def outputs(self) -> list[str]:
        """Names of the columns of the model."""
        return [name for rule in self.rules for name in rule.outputs]

    def apply(self, table: Table) -> Any:
        """Return the inputs of the model; the columns of the table are taken by name."""
        missing = [rule.name for rule in self.rules if rule.name not in table.frame]
        if missing:
            noun = "column" if len(missing) == 1 else "columns"
            raise InputError(
                f"{table.path} lacks the {noun} {named(missing)} that the model was fitted to: its columns "
                f"are {named(table.frame, 12)}."
            )
        columns = [rule.encode(table[rule.name], table.path) for rule in self.rules]
        return np.column_stack(columns).astype(float)

    def to_json(self) -> dict[str, Any]:
        """Return the encoding as plain data."""
        return {"target": self.target, "columns": [asdict(rule) for rule in self.rules]}

    @classmethod
    def from_json(cls, document: Any) -> Encoding:
        """Return what `to_json` described; raise InputError for anything else."""
        try:
            columns = [column | {"categories": tuple(column["categories"])} for column in document["columns"]]
            out = cls(str(document["target"]), tuple(Rule(**column) for column in columns))
        except (KeyError, TypeError, ValueError):
            out = cls("", ())
        if not out.rules or not all(rule.is_valid() for rule in out.rules):
            raise InputError("The model file has an invalid description of its columns: fit the model again.")
        return out


def learn_rule(table: Table, name: str, *, categorical: bool, impute: bool, rows: Any = None) -> Rule:
    """Return the rule that suits a column.

    Mean, scale and the value that ``impute`` fills in (median or most frequent value) are those of ``rows``,
    and categories those of all rows. A ``categorical`` column has categories even if it is numeric.
    """
    column, path = table[name], table.path
    present = column.dropna()
    if present.empty:
        raise InputError(f"{path} has no value at all in column {name!r}: give --drop {name}.")
    part = present if rows is None else column.iloc[rows].dropna()
    part = present if part.empty else part
    share = numbers(present).notna().mean()
    if not categorical and share < 1.0 and set(present.str.lower()) <= {"true", "false"}:
        return Rule(name, "boolean", fill=str(part.mode()[0]) if impute else None)
    if not categorical and share >= MOSTLY:
        checked_numbers(column, path)
        return _learn_number(part, impute)
    known = sorted(set(present))
    if not categorical and len(known) > max(FEW, len(column) // 5):
        example = present.iloc[0]
        comma = " (numbers need a decimal point)" if DECIMAL_COMMA.fullmatch(example) else ""
        raise InputError(
            f"{path} has {len(known)} different texts in column {name!r}, such as {example[:40]!r}{comma}: leave "
            f"it out with --drop {name}, or treat it as categories with --categorical {name}."
        )
    # Of equally frequent values the mode is the first in the alphabet.
    return Rule(name, "category", categories=tuple(known), fill=str(part.mode()[0]) if impute else None)


def _learn_number(column: Any, impute: bool) -> Rule:
    values = numbers(column).to_numpy()
    size = float(np.abs(values).max()) or 1.0  # divided out, as the square of 1e200 overflows
    mean, deviation = size * float(np.mean(values / size)), size * float(np.std(values / size))
    scale = deviation if deviation > 1e-12 * size else 1.0  # the column is constant up to rounding
    fill = repr(float(np.median(values))) if impute else None
    return Rule(str(column.name), "number", mean=mean, scale=scale, fill=fill)
