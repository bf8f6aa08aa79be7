"""Rows in memory, and the contracts of a pass over rows: `Job`, `Total` and `Data`.

Fitting passes over all rows many times. A pass is a job that runs where the rows are stored, and returns
a total over the blocks. The blocks and their order do not change, so that the total is the same to the last digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from gpclass.core.protocols import Array


class Total(Protocol):
    """The result of a job, which can be added to another one."""

    def add(self, other: Any) -> None:
        """Add the numbers of another total to these."""


T = TypeVar("T", bound=Total)
T_co = TypeVar("T_co", bound=Total, covariant=True)


class Job(Protocol[T_co]):
    """The work of a pass. It can be pickled, so that it can be sent to the rows."""

    def zero(self) -> T_co:
        """Return the total over no rows."""

    def __call__(self, X: Array, y: Any, weight: Array | None) -> T_co:
        """Return the total over one block of rows."""


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

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.data.rows import Rows
    >>> rows = Rows(np.arange(6.0).reshape(3, 2), np.array([1.0, -1.0, 1.0]))
    >>> rows.n_rows, rows.take([2, 0]).X.tolist()
    (3, [[4.0, 5.0], [0.0, 1.0]])
    """

    X: Array
    y: Any
    weight: Array | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def row_weight(self) -> Array | None:
        """One weight for each row; None if all are one. Label weights, (n, C), include those of the rows."""
        return self.weight if np.ndim(self.y) == 1 else self.y.sum(axis=1)

    def __len__(self) -> int:
        return len(self.X)

    def total(self, job: Job[T]) -> T:
        """Return the total over all rows."""
        return job(self.X, self.y, self.weight)

    def sample(self, n: int, rng: np.random.Generator) -> Rows:
        """Return n random rows; the rows as they are if there are no more than n."""
        return self if n >= len(self.X) else self.take(rng.permutation(len(self.X))[:n])

    def take(self, which: Any) -> Rows:
        """Return the rows at these positions, or of this slice, which is a view."""
        return Rows(self.X[which], self.y[which], None if self.weight is None else self.weight[which])
