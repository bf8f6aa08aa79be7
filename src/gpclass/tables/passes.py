"""The encoder of rows that are read in passes: one pass finds levels, gaps and a sample of the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from gpclass.data.source import Source
from gpclass.tables.encoder import Encoder, category, number
from gpclass.tables.kinds import check_levels, chosen_columns, kind_at_fit, names_columns
from gpclass.tables.reading import columns_of, order_of
from gpclass.tables.records import finite_numbers, levels_of
from gpclass.validation import MissingValueError

SAMPLED = 100_000  # numbers of a column for its median and standard deviation


@dataclass(slots=True, eq=False)
class Found:
    """What a pass found in one column: its levels, or some of its numbers with NaN if any is missing."""

    levels: set[Any] = field(default_factory=set)
    numbers: list[Any] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Add what was found in other rows."""
        self.levels |= other.levels
        self.numbers += other.numbers


def encode_source(source: Source, categorical_features: Any) -> tuple[Any, Encoder | None]:
    """Return the distinct labels of a source, and the encoder of its columns; None if they are numbers without gaps."""
    if source.is_numeric and not names_columns(categorical_features):
        try:
            return source.classes(), None
        except MissingValueError:
            pass
    encoder = fit_in_passes(source, categorical_features)
    return source.coded(encoder).classes(), encoder


def fit_in_passes(source: Source, categorical_features: Any) -> Encoder:
    """Return the encoder of a source. The first block decides the kinds of the columns."""
    head = source.head()
    names, columns = columns_of(head)
    chosen = chosen_columns(categorical_features, head, names)
    categories = categorical_features is not None
    kinds = [
        kind_at_fit(name, column, chosen=i in chosen, categories=categories)
        for i, (name, column) in enumerate(zip(names, columns, strict=True))
    ]
    step = -(-source.n_rows // SAMPLED)
    found, *others = source.each(partial(survey, names=names, kinds=kinds, step=step))
    for other in others:
        for one, more in zip(found, other, strict=True):
            one.add(more)
    records = [
        category(name, one.levels, order_of(column))
        if kind == "category"
        else number(name, kind, one.numbers)
        for name, kind, column, one in zip(names, kinds, columns, found, strict=True)
    ]
    if not any(record.positions for record in records):
        raise ValueError("All columns of X are constant: there is nothing to learn from.")
    named = None if source.names is None else np.asarray(names, dtype=object)
    return Encoder.restored(tuple(records), categorical_features, named)


def survey(source: Source, names: Sequence[str], kinds: Sequence[str], step: int) -> list[Found]:
    """Return what is found in each column of a source in one pass."""
    found = [Found() for _ in names]
    for table in source.tables():
        for one, name, kind, column in zip(found, names, kinds, columns_of(table)[1], strict=True):
            if kind == "category":
                one.levels.update(levels_of(name, column)[1].values())
                check_levels(name, len(one.levels))
                continue
            values = finite_numbers(name, column, kind)
            gaps, present = np.isnan(values).any(), values[~np.isnan(values)]
            extremes = [present.min(), present.max()] if len(present) else []
            one.numbers += [*present[::step].tolist(), *extremes, *[np.nan] * int(gaps)]
    return found
