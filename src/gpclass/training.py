"""The rows of one fit, in memory or in a source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.protocols import Array, Index
from gpclass.core.registry import stored
from gpclass.data.rows import Data
from gpclass.data.source import Source
from gpclass.labels import Encode
from gpclass.tables import Encoder
from gpclass.tables.passes import encode_source
from gpclass.validation import some_of_each, take


@stored
@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """The rows given to ``fit``: which have a positive weight, into which row each was merged, its class."""

    kept: Index
    home: Index | None  # None if a soft label was split into several rows
    truth: Any  # classes by position, (n,), or class probabilities, (n, C)


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """The rows of one fit and their classes."""

    classes: Any
    n_rows: int
    X: Any  # inputs in memory; empty for the rows of a source
    codes: Any  # classes by position, (n,), or label weights, (n, C); empty for the rows of a source
    weight: Array | None = None
    data: Data | None = None  # rows that are read in passes
    rows: TrainingRows | None = None  # needed for leave-one-out predictions
    vectors: bool = True
    coding: Any = None  # the encoder if X is a coded table

    def some(self, n: int) -> Training:
        """Return n random rows in memory, with some of each class if possible; itself if it has at most n rows."""
        if n >= self.n_rows:
            return self
        classes = self.codes if self.codes.ndim == 1 else self.codes.argmax(axis=1)
        kept = some_of_each(classes, n, np.random.default_rng(0))
        weight = None if self.weight is None else self.weight[kept]
        X = take(self.X, kept)
        return Training(
            self.classes, n, X, self.codes[kept], weight, vectors=self.vectors, coding=self.coding
        )


def from_source(
    source: Source,
    class_weight: Any,
    categorical_features: Any,
    encode: Callable[[Any], Encode],
    n_jobs: int | None,
) -> tuple[Training, Encoder | None]:
    """Return the rows of a source, which are read in passes and not kept in memory, and the encoder of its columns."""
    if class_weight is not None:
        raise ValueError(
            "class_weight is for rows in memory: give the weights of the rows as sample_weight, or as a "
            "column of the files."
        )
    labels, encoder = encode_source(source, categorical_features)
    classes = np.asarray(labels)
    if len(classes) < 2:
        raise ValueError(f"The labels have one class only, {classes[0]!r}: two or more are needed.")
    data = source.data(encode(classes), n_jobs, encoder)
    return Training(classes, source.n_rows, np.empty(0), np.empty(0), data=data, coding=encoder), encoder
