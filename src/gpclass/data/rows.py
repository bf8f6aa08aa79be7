"""Rows and what is done with them: the contracts of `Data`, `Job` and `Source`, and rows in memory.

Fitting passes over all rows again and again. A pass is a job that goes to the rows, wherever they are, and
returns a total of what it found in each block. The blocks and their order are always the same, and so is the
total, to the last digit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from gpclass.core.protocols import Array, Index

Encoder = Callable[[Any, "Array | None"], "tuple[Array, Array | None]"]  # as `gpclass.labels.Encode`


class Total(Protocol):
    """What a job returns, and how two of them are added."""

    def add(self, other: Any) -> None:
        """Add the numbers of another total to these."""


T = TypeVar("T", bound=Total)
T_co = TypeVar("T_co", bound=Total, covariant=True)


class Job(Protocol[T_co]):
    """The work of a pass. It can be pickled, to travel to where the rows are."""

    def zero(self) -> T_co:
        """Return the total over no rows."""

    def __call__(self, X: Array, y: Any, weight: Array | None) -> T_co:
        """Return the total over one block of rows."""


class Data(Protocol):
    """Rows with labels as the likelihood takes them, wherever they are."""

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
        """One weight for each row; None where all are one. Label weights, (n, C), include those of the rows."""
        return self.weight if np.ndim(self.y) == 1 else self.y.sum(axis=1)

    def __len__(self) -> int:
        """Return the number of rows."""
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


class Source(ABC):
    """Labelled rows that can be passed over again and again; labels are as the user gave them."""

    n_rows: int
    n_columns: int
    names: list[str] | None  # of the columns

    @abstractmethod
    def classes(self) -> Any:
        """Return the distinct labels, sorted."""

    @abstractmethod
    def total(self, job: Job[T], n_jobs: int | None = None) -> T:
        """Return the total of a job over all rows."""

    @abstractmethod
    def take(self, positions: Index) -> Rows:
        """Return the rows at these positions, which are sorted."""

    def sample(self, n: int, rng: np.random.Generator) -> Rows:
        """Return n random rows, drawn without replacement, in random order; all rows if there are fewer.

        The positions depend on the number of rows alone, so that all sources of the same rows give the same sample.
        """
        positions = rng.choice(self.n_rows, size=min(n, self.n_rows), replace=False)
        return self.take(np.sort(positions)).take(np.argsort(np.argsort(positions)))

    def data(self, encode: Encoder, n_jobs: int | None = None) -> Data:
        """Return these rows with encoded labels.

        ``n_jobs`` is the number of blocks computed at a time on this machine, each with one BLAS thread; -1
        is one per core. None computes one block after the other, with all BLAS threads.
        """
        return _Encoded(self, encode, n_jobs)

    def on_dask(self, client: Any, rows: int | None = None, wait_seconds: float | None = None) -> Source:
        """Return these rows as a source that Dask's workers read."""
        raise ValueError(
            f"A {type(self).__name__} is read in this process: leave client out, or give files or a Dask "
            "collection."
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Encoded:
    """The rows of a source with encoded labels, as `Data`."""

    source: Source
    encode: Encoder
    n_jobs: int | None

    @property
    def n_rows(self) -> int:
        return self.source.n_rows

    def total(self, job: Job[T]) -> T:
        return self.source.total(_EncodedJob(job, self.encode), self.n_jobs)

    def sample(self, n: int, rng: np.random.Generator) -> Rows:
        rows = self.source.sample(n, rng)
        return Rows(rows.X, *self.encode(rows.y, rows.weight))


@dataclass(frozen=True, slots=True, eq=False)
class _EncodedJob(Job[T]):
    """A job that encodes the labels of a block before it works on it."""

    job: Job[T]
    encode: Encoder

    def zero(self) -> T:
        return self.job.zero()

    def __call__(self, X: Array, y: Any, weight: Array | None) -> T:
        return self.job(X, *self.encode(y, weight))
