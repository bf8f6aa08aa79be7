"""From the columns of a table to the columns of a model, remembered so that predictions do the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gpclass.cli.errors import InputError, named
from gpclass.cli.tables import Column, Table
from gpclass.core.protocols import Array

BOOLEANS = {"false": 0.0, "true": 1.0, "0": 0.0, "1": 1.0}
FEW = 20  # categories that any number of rows may have
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """How one column is encoded.

    Parameters
    ----------
    name : str
    kind : {"number", "boolean", "category"}
    mean, scale : float
        Of a number: it becomes (x - mean) / scale.
    categories : tuple of str
        Of a category: two are one column of 0 and 1, more are a column each.
    fill : str or None
        What stands for a missing value; None refuses it.
    """

    name: str
    kind: str
    mean: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()
    fill: str | None = None

    @property
    def outputs(self) -> list[str]:
        """Names of the columns it becomes."""
        if self.kind != "category":
            return [self.name]
        shown = self.categories[1:] if len(self.categories) == 2 else self.categories
        return [f"{self.name}={category}" for category in shown]

    def apply(self, column: Column, path: str) -> Array:
        """Return the columns of a model, or say which row cannot be one."""
        column = self._filled(column, path)
        if self.kind == "number":
            return ((_numbers(column, path) - self.mean) / self.scale)[:, None]
        known = BOOLEANS if self.kind == "boolean" else {c: float(i) for i, c in enumerate(self.categories)}
        texts = [
            text.lower() if self.kind == "boolean" else text for text in column.texts if text is not None
        ]
        for row, text in enumerate(texts, start=1):
            if text not in known:
                raise InputError(
                    f"{path} has {text!r} in row {row}, column {self.name!r}, expected one of "
                    f"{named(self.categories or ('true', 'false'), 12)}, which the model knows."
                )
        codes = np.array([known[text] for text in texts])
        if len(self.outputs) == 1:
            return codes[:, None]
        return np.asarray(codes[:, None] == np.arange(len(self.categories)), dtype=float)

    def _filled(self, column: Column, path: str) -> Column:
        if None not in column.texts:
            return column
        if self.fill is None:
            row = column.texts.index(None) + 1
            count = sum(text is None for text in column.texts)
            more = "" if count == 1 else f" ({count} rows lack it)"
            raise InputError(
                f"{path} has no value in row {row}, column {self.name!r}{more}: drop the row or the column, "
                "or fit with --impute."
            )
        return Column(column.name, [self.fill if text is None else text for text in column.texts])


def _numbers(column: Column, path: str) -> Array:
    """Return the numbers of a column, NaN where a value is missing, or say which text is none."""
    numbers, wrong = column.parsed
    if wrong is not None:
        raise InputError(
            f"{path} has {column.texts[wrong]!r} in row {wrong + 1}, column {column.name!r}, expected a "
            f"number: correct it, or fit with --categorical {column.name} or --drop {column.name}."
        )
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        row = int(infinite[0])
        raise InputError(
            f"{path} has {column.texts[row]!r} in row {row + 1}, column {column.name!r}, expected a "
            "finite number."
        )
    return numbers


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """How a table becomes the inputs of a model: one rule a column, in the order of the model.

    Parameters
    ----------
    target : str
        The column with the labels.
    rules : tuple of Rule
    """

    target: str
    rules: tuple[Rule, ...]

    @property
    def outputs(self) -> list[str]:
        """Names of the columns of the model."""
        return [name for rule in self.rules for name in rule.outputs]

    def apply(self, table: Table) -> Array:
        """Return the inputs of a model, the columns of the table taken by name."""
        missing = [rule.name for rule in self.rules if rule.name not in table.columns]
        if missing:
            noun = "column" if len(missing) == 1 else "columns"
            raise InputError(
                f"{table.path} lacks the {noun} {named(missing)} that the model was fitted to: its columns "
                f"are {named(table.columns, 12)}."
            )
        return np.hstack([rule.apply(table[rule.name], table.path) for rule in self.rules])

    def extra(self, table: Table) -> list[str]:
        """Return the columns of a table that are of no use to the model."""
        known = {self.target, *(rule.name for rule in self.rules)}
        return [name for name in table.columns if name not in known]

    def to_json(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        return {"target": self.target, "columns": [asdict(rule) for rule in self.rules]}

    @classmethod
    def from_json(cls, document: Any) -> Encoding:
        """Return what `to_json` gave; raise InputError if it is something else."""
        try:
            rules = tuple(
                Rule(**{**column, "categories": tuple(column["categories"])})
                for column in document["columns"]
            )
            out = cls(str(document["target"]), rules)
            fine = rules and all(_is_whole(rule) for rule in rules)
        except (KeyError, TypeError, ValueError):
            fine = False
        if not fine:
            raise InputError(
                "The model file describes its columns in a way that cannot be: fit the model again."
            )
        return out


def _is_whole(rule: Rule) -> bool:
    numbers = all(isinstance(value, int | float) and np.isfinite(value) for value in (rule.mean, rule.scale))
    texts = all(isinstance(text, str) for text in (rule.name, *rule.categories))
    fill = rule.fill is None or isinstance(rule.fill, str)
    kind = rule.kind in ("number", "boolean") or (rule.kind == "category" and len(rule.categories) > 0)
    return numbers and rule.scale > 0 and texts and fill and kind


# -------------------------------------------------------------------------------- learning


def learn_encoding(
    table: Table,
    target: str,
    features: Sequence[str],
    *,
    categorical: Sequence[str] = (),
    impute: bool = False,
    rows: Any = None,
) -> Encoding:
    """Return the encoding that a table asks for.

    Parameters
    ----------
    table : Table
    target : str
    features : sequence of str
        The columns to use.
    categorical : sequence of str
        Those of them that are categories though they look like numbers.
    impute : bool
        Whether missing values are filled in: numbers by the median, others by the most frequent value.
    rows : sequence of int, optional
        The rows that means, scales and fillings are of; what categories there are is of all.
    """
    rules = [_learn(table[name], table.path, name in categorical, impute, rows) for name in features]
    return Encoding(target, tuple(rules))


def _learn(column: Column, path: str, categorical: bool, impute: bool, rows: Any) -> Rule:
    kind, name = column.kind, column.name
    if kind == "empty":
        raise InputError(f"{path} has no value at all in column {name!r}: give --drop {name}.")
    part = column if rows is None else column.take(rows)
    if part.kind == "empty":
        part = column
    if kind in ("number", "mixed") and not categorical:
        _numbers(column, path)
        return _learn_number(part, impute)
    counts = Counter(text for text in part.texts if text is not None)
    fill = min(counts, key=lambda text: (-counts[text], text)) if impute else None
    if kind == "boolean" and not categorical:
        return Rule(name, "boolean", fill=fill)
    known = {text for text in column.texts if text is not None}
    if not categorical and len(known) > max(FEW, len(column.texts) // 5):
        _too_many(column, path, len(known))
    return Rule(name, "category", categories=tuple(sorted(known)), fill=fill)


def _learn_number(column: Column, impute: bool) -> Rule:
    numbers = column.parsed[0]
    present = numbers[~np.isnan(numbers)]
    # Scaled first: a square of 1e200 is no number.
    size = float(np.abs(present).max()) or 1.0
    mean, spread = size * float(np.mean(present / size)), size * float(np.std(present / size))
    scale = spread if spread > 1e-12 * size else 1.0  # less is the rounding of a constant
    fill = repr(float(np.median(present))) if impute else None
    return Rule(column.name, "number", mean=mean, scale=scale, fill=fill)


def _too_many(column: Column, path: str, n: int) -> None:
    example = next(text for text in column.texts if text is not None)
    comma = " (numbers need a decimal point)" if DECIMAL_COMMA.fullmatch(example) else ""
    raise InputError(
        f"{path} has {n} different texts in column {column.name!r}, such as "
        f"{example[:40]!r}{comma}: leave it out with --drop {column.name}, or insist with "
        f"--categorical {column.name}."
    )


# ---------------------------------------------------------------------------------- labels


def labels_of(table: Table, target: str) -> Any:
    """Return the labels in a column: integers if all are whole numbers, else texts."""
    column = table[target]
    if None in column.texts:
        row = column.texts.index(None) + 1
        raise InputError(f"{table.path} has no label in row {row}, column {target!r}: drop such rows.")
    numbers, wrong = column.parsed
    whole = wrong is None and bool((np.abs(numbers) < 2**53).all() and (numbers == np.floor(numbers)).all())
    y = numbers.astype(np.int64) if whole else np.array(column.texts, dtype=str)
    classes = np.unique(y)
    if len(classes) == 1:
        raise InputError(
            f"{table.path} has the one class {str(classes[0])!r} in column {target!r}, expected two or more."
        )
    if len(classes) > max(FEW, len(y) // 5) or (len(classes) > 2 and wrong is None and not whole):
        raise InputError(
            f"{table.path} has {len(classes)} different values in {len(y)} rows of the target "
            f"{target!r}, which looks like a measurement and no class: name another column."
        )
    return y
