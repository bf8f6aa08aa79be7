"""Rows in memory, and the contract of a pass over rows.

Fitting passes over all rows many times. In a pass a job is called with every block of rows, where the block is
stored, and the totals that it returns are added in the order of the blocks. Jobs and totals can be pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, TypeVar

import numpy as np

from gpclass.core.protocols import Array

T = TypeVar("T")  # a total has a method ``add``, which adds the total of other rows
Job = Callable[["Rows"], T]


class Additive:
    """Base class of totals that are added field by field: numbers, arrays and lists."""

    __slots__ = ()

    def add(self, other: Any) -> None:
        """Add the numbers of other rows to these."""
        for field in fields(self):  # type: ignore[arg-type]
            mine = getattr(self, field.name)
            mine += getattr(other, field.name)
            setattr(self, field.name, mine)


class Data(Protocol):
    """Rows of any source, with labels in the form that the likelihood takes."""

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""

    def total(self, job: Job[T]) -> T:
        """Return the total over all rows."""

    def sample(self, n: int, rng: np.random.Generator) -> Rows:
        """Return n random rows, drawn without replacement, in random order; all rows if there are fewer."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows in memory: inputs (n, d), labels and weights (None: all are one). This is `Data`.

    Blocks that a source reads may have a table as X. For messages, ``start`` is the number of the first row, in the
    file or partition that ``inside`` names.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.data.rows import Rows
    >>> rows = Rows(np.arange(6.0).reshape(3, 2), np.array([1.0, -1.0, 1.0]))
    >>> rows.n_rows, rows.take([2, 0]).X.tolist()
    (3, [[4.0, 5.0], [0.0, 1.0]])
    """

    X: Any
    y: Any
    weight: Array | None = None
    start: int = 0
    inside: str = ""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def row_weight(self) -> Array | None:
        """One weight for each row; None if all are one. Label weights, (n, C), are summed over the classes."""
        return self.weight if np.ndim(self.y) == 1 else self.y.sum(axis=1)

    def __len__(self) -> int:
        return len(self.X)

    def total(self, job: Job[T]) -> T:
        """Return the total over all rows."""
        return job(self)

    def sample(self, n: int, rng: np.random.Generator) -> Rows:
        """Return n random rows; the rows as they are if there are no more than n."""
        return self if n >= len(self.X) else self.take(rng.permutation(len(self.X))[:n])

    def take(self, which: Any) -> Rows:
        """Return the rows at these positions, or of this slice, which is a view."""
        return Rows(self.X[which], self.y[which], None if self.weight is None else self.weight[which])

    def where(self, i: int) -> str:
        """Return the place of a row, as in 'row 7 of a.parquet'."""
        return f"row {self.start + i}" + (f" of {self.inside}" if self.inside else "")


def concatenate(blocks: Sequence[Rows]) -> Rows:
    """Return the rows of several blocks as one."""
    if len(blocks) == 1:
        return blocks[0]
    weight = None
    if any(block.weight is not None for block in blocks):
        weight = np.concatenate([np.ones(len(b)) if b.weight is None else b.weight for b in blocks])
    return Rows(np.concatenate([b.X for b in blocks]), np.concatenate([b.y for b in blocks]), weight)
