"""Rows in memory, the contract of a pass over rows, and sources: rows that can be read repeatedly, in the same blocks.

Fitting passes over all rows many times. In a pass a job is called with every block of rows, where the block is
stored, and the totals that it returns are added in the order of the blocks. Jobs and totals can be pickled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
from sklearn.utils import check_array

from gpclass.core.protocols import Array, Index
from gpclass.validation import check_finite, check_weight_values, is_missing

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


# ------------------------------------------------------------------------------------ sources


ROWS = 1 << 16  # number of rows in a block
FEWEST = 100_000  # minimum number of rows in a task
MOST_TASKS = 512
MOST_CLASSES = 10_000
Labels = Callable[
    [Any, "Array | None"], "tuple[Array, Array | None]"
]  # signature of `gpclass.validation.Encode`
Read = Callable[[Rows], Rows]


class Source(ABC):
    """Labelled rows; inputs and labels are as the user gave them.

    Subclass it to read rows from elsewhere: set ``n_rows``, ``n_columns`` and, if the columns have names,
    ``names``, and define `blocks`.
    """

    n_rows: int
    n_columns: int
    names: list[str] | None = None  # names of the columns

    @abstractmethod
    def blocks(self) -> Iterator[Rows]:
        """Yield all rows, in the same blocks and the same order every time; X may be any table."""

    def total(self, job: Job[T], n_jobs: int | None = None) -> T:
        """Return the total of a job over all blocks, added in their order.

        ``n_jobs`` is the number of blocks computed at a time, each with one BLAS thread; -1 is one per core. None
        and 1 compute one block after the other, with all BLAS threads.
        """
        from joblib import Parallel, delayed
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        parallel = Parallel(n_jobs, prefer="threads", return_as="generator")
        with threadpool_limits(None if n_jobs in (None, 1) else 1):
            totals = parallel(delayed(job)(block) for block in self.blocks())
            total: Any = next(totals)
            for one in totals:
                total.add(one)
        return total

    def take(self, positions: Index, read: Read) -> Rows:
        """Return the rows at sorted positions, in one pass that keeps only them."""
        found, start = [], 0
        for block in self.blocks():
            first, last = np.searchsorted(positions, [start, start + len(block)])
            if last > first:
                found.append(read(block).take(positions[first:last] - start))
            start += len(block)
        return concatenate(found)

    def reader(self, encoder: Any = None, labels: Labels | None = None) -> Read:
        """Return the function that turns blocks into checked matrices; columns that are not numbers need an encoder."""
        return partial(read_block, names=self.names, encoder=encoder, labels=labels)

    def classes(self) -> Any:
        """Return the distinct labels, sorted; all rows are checked."""
        return self.total(partial(_found_labels, self.reader())).values

    def data(self, labels: Labels, n_jobs: int | None = None, encoder: Any = None) -> Data:
        """Return these rows with encoded labels and inputs; ``n_jobs`` has the same meaning as in `total`."""
        return SourceData(self, self.reader(encoder, labels), n_jobs)


@dataclass(frozen=True, slots=True, eq=False)
class SourceData:
    """The rows of a source as a function reads them; this is `Data`."""

    source: Source
    read: Read
    n_jobs: int | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows

    def total(self, job: Job[T]) -> T:
        """Return the total over all rows."""
        return self.source.total(partial(_run, job, self.read), self.n_jobs)

    def sample(self, n: int, rng: np.random.Generator) -> Rows:
        """Return n random rows in random order; the choice does not depend on the kind of source."""
        positions = rng.choice(self.n_rows, size=min(n, self.n_rows), replace=False)
        return self.source.take(np.sort(positions), self.read).take(np.argsort(np.argsort(positions)))


def _run(job: Job[T], read: Read, block: Rows) -> T:
    return job(read(block))


def read_block(block: Rows, names: Sequence[str] | None, encoder: Any, labels: Labels | None) -> Rows:
    """Return a block as a matrix of numbers, or raise an error that names the position of the first wrong value."""
    X = block.X
    if encoder is not None:
        X, names = encoder.code(X), None
    elif hasattr(X, "column_names"):  # Arrow
        X = np.asarray(X, dtype=float)
    with reading(block):
        kinds = [np.float64, np.float32]
        X = check_array(X, dtype=kinds, order="C", ensure_all_finite=False, ensure_min_samples=0)
    y, weight = read_labels(block)
    check_finite(X, names, block.where)
    return Rows(X, *(y, weight) if labels is None else labels(y, weight))


@contextmanager
def reading(block: Rows) -> Iterator[None]:
    """Name the block in errors."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ValueError(f"The block at {block.where(0)} cannot be read: {error}") from None


def read_labels(block: Rows) -> tuple[Array, Array | None]:
    """Return the labels and weights of a block as arrays; raise if one is missing or not possible."""
    with reading(block):
        y, weight = _column(block.y), None if block.weight is None else _column(block.weight).astype(float)
    for what, given in (("y", y), ("weights", weight)):
        if given is not None and given.shape != (len(block),):
            raise ValueError(
                f"The block at {block.where(0)} has X of shape {np.shape(block.X)} and {what} of shape {given.shape}, "
                "expected one for each row."
            )
    if y.dtype.kind in "fO":
        missing = [is_missing(label) for label in y.tolist()]
        if any(missing):
            raise ValueError(
                f"The label of {block.where(missing.index(True))} is missing: drop such rows first."
            )
    if weight is not None:
        check_weight_values(weight, block.where)
    return y, weight


def _column(values: Any) -> Any:
    values = np.asarray(values)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


@dataclass(slots=True, eq=False)
class FoundLabels:
    """The distinct labels of some rows, sorted."""

    values: Any

    @classmethod
    def of(cls, y: Any) -> FoundLabels:
        """Return the distinct labels among these."""
        try:
            found = np.unique(y)
        except TypeError:
            kinds = ", ".join(sorted({type(label).__name__ for label in y}))
            raise ValueError(f"y has labels of the types {kinds}, expected a single type.") from None
        if len(found) > MOST_CLASSES:
            raise ValueError(
                f"y has more than {MOST_CLASSES} distinct values, expected the labels of a few classes."
            )
        return cls(found)

    def add(self, other: FoundLabels) -> None:
        """Add the labels of other rows."""
        self.values = self.of(np.concatenate([self.values, other.values])).values


def _found_labels(read: Read, block: Rows) -> FoundLabels:
    return FoundLabels.of(read(block).y)


def grouped(sizes: Sequence[int], rows: int | None) -> list[list[int]]:
    """Return groups of adjacent parts with at least ``rows`` rows each, by default the size of a Dask task."""
    least = max(FEWEST, -(-sum(sizes) // MOST_TASKS)) if rows is None else rows
    group = (np.cumsum(sizes) - sizes) // least  # by the position of the first row of each part
    return [np.flatnonzero(group == number).tolist() for number in np.unique(group)]
