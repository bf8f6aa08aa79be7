"""Copies of rows in which columns of the user's table are set to chosen values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from gpclass.core.checks import check_integers, check_option, is_integer
from gpclass.core.protocols import Array, Index
from gpclass.tables.reading import Values, as_table, columns_of
from gpclass.tables.records import Column, finite_numbers
from gpclass.validation import check_weights

UNITS = {"number": "f8", "date": "M8[us]", "duration": "m8[us]", "category": "O"}
DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """G copies of m coded rows, (G, m, p), each with other values of some columns; the weights of the m sum to one."""

    sets: Array
    weight: Array

    def __len__(self) -> int:
        return len(self.sets)

    def __getitem__(self, which: slice) -> Copies:
        return self if which == slice(0, len(self)) else Copies(self.sets[which], self.weight)

    @property
    def stacked(self) -> Array:
        """All copies, one after another."""
        return self.sets.reshape(-1, self.sets.shape[2])


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The columns of a table, how they are coded, and the positions, codes and weights of some of its rows."""

    columns: Sequence[Values]
    records: Sequence[Column]
    index: Index
    rows: Array
    weight: Array

    @classmethod
    def read(cls, estimator: Any, X: Any, sample_weight: Any, most: int) -> Table:
        """Return at most this many random rows of positive weight, coded for a fitted classifier."""
        check_integers(max_rows=most)
        coded, columns = estimator._check_fitted_inputs(X), columns_of(as_table(X))
        if not columns:
            raise ValueError("The rows of X have no columns, expected a table or an array of numbers.")
        weight = check_weights(1.0 if sample_weight is None else sample_weight, None, coded)
        weight = np.ones(len(coded)) if weight is None else weight
        order = np.random.default_rng(estimator._seed).permutation(np.flatnonzero(weight))
        index = np.sort(order[:most])
        return cls(columns, records_of(estimator), index, coded[index], weight[index] / weight[index].sum())

    def find(self, feature: Any) -> int:
        """Return the position of a column given by its name or position."""
        names = [record.name for record in self.records]
        if isinstance(feature, str) and feature in names:
            return names.index(feature)
        fine = is_integer(feature) and -len(names) <= feature < len(names)
        check_option("features", feature, fine, f"names or positions of columns: {', '.join(names[:20])}")
        return int(feature) % len(names)

    def values(self, j: int) -> tuple[Any, Array]:
        """Return the levels of a category and their frequencies, or the sorted numbers (days for dates) of a column."""
        record = self.records[j]
        if record.is_numeric:
            numbers = finite_numbers(self.columns[j], record.kind)
            if np.isnan(numbers).all():
                raise ValueError(
                    f"Column {record.name!r} of X has only missing values, expected some numbers."
                )
            return np.sort(numbers[~np.isnan(numbers)]), np.empty(0)
        shares = self.weight @ (self.rows[:, list(record.positions)] > 0.0)
        return list(record.levels), shares if len(shares) else np.ones(len(record.levels))

    def copies(self, chosen: Sequence[int], values: Sequence[Any]) -> Copies:
        """Return copies of the rows with columns set to all combinations of their values."""
        records = [self.records[j] for j in chosen]
        codes = [np.zeros((len(each), len(r.positions))) for r, each in zip(records, values, strict=True)]
        for record, each, code in zip(records, values, codes, strict=True):
            if record.positions:
                record.code(Values(record.name, in_units(record, each)), code)
        combined = np.array([np.concatenate(each) for each in product(*codes)])
        sets = np.repeat(self.rows[None], len(combined), axis=0)
        sets[:, :, [p for record in records for p in record.positions]] = combined[:, None]
        return Copies(sets, self.weight)


def records_of(estimator: Any) -> Sequence[Column]:
    """Return the columns of the table that a classifier was fitted to; plain numbers have no coding."""
    if estimator.encoder_ is not None:
        return estimator.encoder_.columns_
    names = getattr(estimator, "feature_names_in_", [f"x{i}" for i in range(estimator.n_features_in_)])
    return [Column(str(name), "number", positions=(i,)) for i, name in enumerate(names)]


def in_units(record: Column, values: Any) -> Any:
    """Return the values of a column in the units of the user: dates and durations for days."""
    if record.kind in ("date", "duration"):
        values = np.rint(np.asarray(values) * DAY).astype(np.int64)
    return np.asarray(values, dtype=object if record.kind == "category" else None).astype(UNITS[record.kind])
