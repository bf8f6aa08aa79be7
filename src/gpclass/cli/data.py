"""Which columns and rows of a file are to be used, and whether they can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.cli.encoding import Encoding, labels_of, learn_encoding
from gpclass.cli.errors import InputError, named
from gpclass.cli.tables import Table, read_table
from gpclass.core.protocols import Array


@dataclass(frozen=True, slots=True, eq=False)
class DataOptions:
    """What the options of a command say about its data; the defaults are those of the options."""

    data: str
    target: str
    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    impute: bool = False
    separator: str | None = None
    rows: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A table with its labels, and which of its columns are inputs."""

    table: Table
    y: Any
    features: tuple[str, ...]
    options: DataOptions

    def encode(self, rows: Any = None) -> Encoding:
        """Return the encoding that all rows, or some of them, ask for."""
        options = self.options
        return learn_encoding(
            self.table,
            options.target,
            self.features,
            categorical=options.categorical,
            impute=options.impute,
            rows=rows,
        )

    def inputs(self, encoding: Encoding, rows: Any = None) -> Array:
        """Return all rows, or some of them, as the inputs of a model."""
        return encoding.apply(self.table if rows is None else self.table.take(rows))


def read_problem(options: DataOptions) -> Problem:
    """Return the problem that a file and the options state."""
    table = read_table(options.data, options.separator)
    features = _features(table, options)
    y = labels_of(table, options.target)
    if options.rows is not None and options.rows < table.n_rows:
        chosen = _sample(y, options.rows, options.seed)
        table, y = table.take(chosen), y[chosen]
    return Problem(table, y, features, options)


def _features(table: Table, options: DataOptions) -> tuple[str, ...]:
    table[options.target]
    for name in (*options.columns, *options.drop, *options.categorical):
        table[name]
    if options.target in options.columns:
        raise InputError(f"The target {options.target!r} is among --columns: it cannot predict itself.")
    chosen = options.columns or tuple(name for name in table.columns if name != options.target)
    features = tuple(name for name in chosen if name not in options.drop)
    if not features:
        raise InputError(
            f"{table.path} has no column besides the target {options.target!r} that is not dropped."
        )
    unused = [name for name in options.categorical if name not in features]
    if unused:
        raise InputError(
            f"--categorical names {named(unused)}, which is not among the columns that are used."
        )
    return features


def _sample(y: Any, n: int, seed: int) -> Any:
    """Return n rows in their order, each class with about its share."""
    return _parted(y, f"--rows {n}", seed, train_size=n)[0]


def held_out(y: Any, share: float, seed: int) -> tuple[Any, Any]:
    """Return the rows to fit and the rows to score, each class with about its share of both."""
    return _parted(y, f"--test-fraction {share:g}", seed, test_size=share)


def _parted(y: Any, option: str, seed: int, **size: Any) -> tuple[Any, Any]:
    from sklearn.model_selection import train_test_split

    try:
        one, other = train_test_split(np.arange(len(y)), stratify=y, random_state=seed, **size)
    except ValueError:
        counts = np.unique(y, return_counts=True)[1]
        raise InputError(
            f"{option} is not possible with {len(y)} rows of {len(counts)} classes, {counts.min()} of them "
            "in the smallest class, as every class needs a row on both sides."
        ) from None
    return np.sort(one), np.sort(other)


def folds(y: Any, cv: int, seed: int) -> list[tuple[Any, Any]]:
    """Return the rows to fit and to score in each fold of a cross-validation."""
    from sklearn.model_selection import StratifiedKFold

    codes = np.unique(y, return_inverse=True)[1]
    least = int(np.bincount(codes).min())
    if cv > least:
        raise InputError(
            f"Cross-validation with {cv} folds is not possible, as the smallest class has {least} "
            f"row{'s' * (least > 1)}: give fewer by --cv, or --test-fraction."
        )
    return list(StratifiedKFold(cv, shuffle=True, random_state=seed).split(np.zeros(len(y)), codes))
