"""What runs where the rows are: a job, and a reader that makes blocks of what a worker holds or can read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Protocol

from gpclass.core.protocols import Index
from gpclass.data.blocks import Block, checked, distinct, pick, recut
from gpclass.data.local import Encode, add_blocks
from gpclass.data.parquet import Columns, Piece, read_labels, read_pieces
from gpclass.sparse.sums import Step, Sums


class Reader(Protocol):
    """Makes blocks of what a task was given; it travels to the worker."""

    def blocks(self, parts: Sequence[Any]) -> Iterator[Block]:
        """Yield the rows."""

    def labels(self, parts: Sequence[Any]) -> Iterator[Any]:
        """Yield the labels alone."""


@dataclass(frozen=True, slots=True, eq=False)
class FileReader:
    """Reads pieces of files, on the worker."""

    pieces: list[Piece]
    columns: Columns
    rows: int

    def blocks(self, parts: Sequence[Any]) -> Iterator[Block]:
        """Yield the rows of the pieces."""
        return read_pieces(self.pieces, self.columns, self.rows)

    def labels(self, parts: Sequence[Any]) -> Iterator[Any]:
        """Yield their labels; only their column is read."""
        return read_labels(self.pieces, self.columns, self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class PartReader:
    """Takes partitions of collections, X, y and weights (or None) in turn, from the number ``first`` on."""

    first: int
    names: list[str] | None
    rows: int

    def blocks(self, parts: Sequence[Any]) -> Iterator[Block]:
        """Yield the rows of the partitions."""
        return recut(self._whole(parts), self.rows)

    def labels(self, parts: Sequence[Any]) -> Iterator[Any]:
        """Yield their labels."""
        return (block.y for block in self._whole(parts))

    def _whole(self, parts: Sequence[Any]) -> Iterator[Block]:
        for i in range(0, len(parts), 3):
            X, y, weight = parts[i : i + 3]
            yield checked(X, y, weight, _PartRow(self.first + i // 3), self.names)


@dataclass(frozen=True, slots=True, eq=False)
class _PartRow:
    partition: int

    def __call__(self, i: int) -> str:
        return f"row {i} of partition {self.partition}"


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """Data that are wrong: told by the one who asked, since reading them again would not help."""

    message: str


Job = Callable[[Reader, Sequence[Any]], Any]


def run(reader: Reader, job: Job, *parts: Any) -> Any:
    """Do a job on some rows, with one thread of BLAS: the workers share the cores among them."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    try:
        with threadpool_limits(1):
            return job(reader, parts)
    except ValueError as error:
        return Failure(str(error))


def merge(sums: list[Any]) -> Any:
    """Return what several tasks added up, in order, or the first that failed."""
    for one in sums:
        if isinstance(one, Failure):
            return one
    total = deepcopy(sums[0])  # what a task returned may be needed again
    for one in sums[1:]:
        total.add(one)
    return total


@dataclass(frozen=True, slots=True, eq=False)
class SumJob:
    """The sums of a pass."""

    step: Step
    encode: Encode

    def __call__(self, reader: Reader, parts: Sequence[Any]) -> Sums:
        """Return them."""
        return add_blocks(self.step, self.encode, reader.blocks(parts))


@dataclass(frozen=True, slots=True, eq=False)
class PickJob:
    """Some rows, by sorted positions in those of the task."""

    positions: Index

    def __call__(self, reader: Reader, parts: Sequence[Any]) -> Block | None:
        """Return them."""
        return pick(reader.blocks(parts), self.positions)


def describe(reader: Reader, parts: Sequence[Any]) -> tuple[int, int, Any]:
    """Return the numbers of rows and columns and the distinct labels."""
    blocks = list(reader.blocks(parts))
    columns = blocks[0].X.shape[1] if blocks else 0
    return sum(len(block) for block in blocks), columns, distinct(block.y for block in blocks)


def find_labels(reader: Reader, parts: Sequence[Any]) -> Any:
    """Return the distinct labels."""
    return distinct(reader.labels(parts))
