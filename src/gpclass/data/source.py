"""A source: labelled rows that can be read repeatedly, in the same blocks every time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.protocols import Array, Index
from gpclass.data.blocks import concatenate, distinct
from gpclass.data.rows import Data, Job, Rows, T

Encoder = Callable[[Any, "Array | None"], "tuple[Array, Array | None]"]  # as `gpclass.labels.Encode`


class Source(ABC):
    """Labelled rows; labels are as the user gave them.

    Subclass it to read rows from elsewhere: set ``n_rows``, ``n_columns`` and, if the columns have names,
    ``names``, and define `blocks`.
    """

    n_rows: int
    n_columns: int  # of X, as coded
    names: list[str] | None = None  # of the columns
    encoder: Any = None  # codes the columns of tables, as `gpclass.tables.Encoder`; None if they are numbers
    is_numeric: bool = True  # by the types of the columns, which may have gaps

    @abstractmethod
    def blocks(self) -> Iterator[Rows]:
        """Yield all rows, in the same blocks and the same order every time.

        Returns
        -------
        iterator of Rows
        """

    def classes(self) -> Any:
        """Return the distinct labels, sorted."""
        return distinct(block.y for block in self.blocks())

    def tables(self) -> Iterator[Any]:
        """Yield the inputs of all rows in blocks as they are, not coded."""
        return (block.X for block in self.blocks())

    def head(self) -> Any:
        """Return the first block of inputs as it is."""
        return next(self.tables())

    def each(self, function: Callable[[Source], Any]) -> list[Any]:
        """Return the results of a function for the parts of the source, which may be on other machines."""
        return [function(self)]

    def coded(self, encoder: Any) -> Any:
        """Return the same rows, whose inputs an encoder turns into numbers."""
        out = copy(self)
        out.encoder, out.n_columns = encoder, len(encoder.groups_)
        return out

    def total(self, job: Job[T], n_jobs: int | None = None) -> T:
        """Return the total of a job over all rows, added block by block in their order.

        ``n_jobs`` is the number of blocks computed at a time, each with one BLAS thread; -1 is one per core. None
        and 1 compute one block after the other, with all BLAS threads.
        """
        from joblib import Parallel, delayed
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        total = job.zero()
        parallel = Parallel(n_jobs, prefer="threads", return_as="generator")
        with threadpool_limits(None if n_jobs in (None, 1) else 1):
            for one in parallel(delayed(Rows.total)(block, job) for block in self.blocks()):
                total.add(one)
        return total

    def take(self, positions: Index) -> Rows:
        """Return the rows at sorted positions, in one pass that holds only them and one block."""
        found, start = [], 0
        for block in self.blocks():
            first, last = np.searchsorted(positions, [start, start + len(block)])
            found.append(block.take(positions[first:last] - start))
            start += len(block)
        return concatenate(found)

    def sample(self, n: int, rng: np.random.Generator) -> Rows:
        """Return n random rows, drawn without replacement, in random order; all rows if there are fewer.

        The positions depend on the number of rows alone, so that all sources of the same rows give the same sample.
        """
        positions = rng.choice(self.n_rows, size=min(n, self.n_rows), replace=False)
        return self.take(np.sort(positions)).take(np.argsort(np.argsort(positions)))

    def data(self, encode: Encoder, n_jobs: int | None = None) -> Data:
        """Return these rows with encoded labels; ``n_jobs`` is that of `total`."""
        return _Encoded(self, encode, n_jobs)

    def split(self, rows: int | None = None) -> list[Any]:
        """Return sources of at least ``rows`` neighbouring rows each, which Dask's workers can read."""
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
