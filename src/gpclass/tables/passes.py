"""The encoder of rows that are read in passes: one pass finds levels, gaps and a sample of the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpclass.data.rows import Rows
from gpclass.data.source import Source
from gpclass.tables.encoder import Encoder, category, number
from gpclass.tables.kinds import check_levels, chosen_columns, kind_at_fit, names_columns
from gpclass.tables.reading import columns_of, order_of
from gpclass.tables.records import finite_numbers, levels_of
from gpclass.validation import MissingValueError

SAMPLED = 100_000  # number of values sampled per column, for its median and standard deviation


@dataclass(slots=True, eq=False)
class Found:
    """The set of levels of each categorical column; for others some numbers, with NaN if any is missing."""

    columns: list[Any]

    def add(self, other: Found) -> None:
        """Add the results of other rows."""
        for i, values in enumerate(other.columns):
            self.columns[i] = (
                self.columns[i] | values if isinstance(values, set) else self.columns[i] + values
            )


def encode_source(source: Source, categorical_features: Any) -> tuple[Any, Encoder | None]:
    """Return the distinct labels of a source, and the encoder of its columns; None if they are numbers without gaps."""
    if source.is_numeric and not names_columns(categorical_features):
        try:
            return source.classes(), None
        except MissingValueError:
            pass
    encoder = fit_in_passes(source, categorical_features)
    return source.classes(encoder), encoder


def fit_in_passes(source: Source, categorical_features: Any) -> Encoder:
    """Return the encoder of a source. The first block decides the kinds of the columns."""
    head = next(source.blocks()).X
    names, columns = columns_of(head)
    chosen = chosen_columns(categorical_features, head, names)
    categories = categorical_features is not None
    kinds = [
        kind_at_fit(name, column, chosen=i in chosen, categories=categories)
        for i, (name, column) in enumerate(zip(names, columns, strict=True))
    ]
    step = -(-source.n_rows // SAMPLED)
    found = source.total(partial(survey, names=names, kinds=kinds, step=step)).columns
    for name, kind, values in zip(names, kinds, found, strict=True):
        if kind == "category":
            check_levels(name, len(values))
    records = [
        category(name, values, order_of(column)) if kind == "category" else number(name, kind, values)
        for name, kind, column, values in zip(names, kinds, columns, found, strict=True)
    ]
    if not any(record.positions for record in records):
        raise ValueError("All columns of X are constant: there is nothing to learn from.")
    named = None if source.names is None else np.asarray(names, dtype=object)
    return Encoder.restored(tuple(records), categorical_features, named)


def survey(block: Rows, names: Sequence[str], kinds: Sequence[str], step: int) -> Found:
    """Return the levels or a sample of the numbers of each column of a block."""
    found: list[Any] = []
    for name, kind, column in zip(names, kinds, columns_of(block.X)[1], strict=True):
        if kind == "category":
            found.append(set(levels_of(name, column)[1].values()))
            check_levels(name, len(found[-1]))
            continue
        values = finite_numbers(name, column, kind)
        gaps, present = np.isnan(values).any(), values[~np.isnan(values)]
        extremes = [present.min(), present.max()] if len(present) else []
        found.append([*present[::step].tolist(), *extremes, *[np.nan] * int(gaps)])
    return Found(found)
