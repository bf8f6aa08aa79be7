"""The rows of one fit, wherever they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.protocols import Array, Index
from gpclass.core.registry import stored
from gpclass.data.rows import Data
from gpclass.validation import some_of_each, take


@stored
@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """Where the rows given to ``fit`` went: which have a positive weight, where each was merged, its class."""

    kept: Index
    home: Index | None  # None where a row with a soft label is in several places
    truth: Any  # classes by position, (n,), or class probabilities, (n, C)


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """The rows of one fit and their classes."""

    classes: Any
    n_rows: int
    X: Any  # inputs in memory; empty for the rows of a source
    codes: Any  # classes by position, (n,), or label weights, (n, C); empty for the rows of a source
    weight: Array | None = None
    data: Data | None = None  # rows that are passed over
    rows: TrainingRows | None = None  # what leave-one-out predictions need
    vectors: bool = True

    def some(self, n: int) -> Training:
        """Return n random rows in memory, with some of each class as far as n allows; itself if there are no more."""
        if n >= self.n_rows:
            return self
        classes = self.codes if self.codes.ndim == 1 else self.codes.argmax(axis=1)
        kept = some_of_each(classes, n, np.random.default_rng(0))
        weight = None if self.weight is None else self.weight[kept]
        X = take(self.X, kept)
        return Training(self.classes, n, X, self.codes[kept], weight, vectors=self.vectors)
