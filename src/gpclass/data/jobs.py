"""What runs on a Dask worker: tasks on the rows that it holds or can read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from gpclass.core.protocols import Index
from gpclass.data.blocks import Place, checked, distinct, pick, recut
from gpclass.data.local import LocalSource, add_blocks
from gpclass.data.rows import Job, Rows, T


class Partitions(LocalSource):
    """The rows of partitions of Dask collections: X, y and weights (or None) in turn.

    ``first`` is the number of the first partition in the collections.
    """

    def __init__(self, first: int, names: list[str] | None, *parts: Any) -> None:
        self.first, self.names, self.parts = first, names, parts

    def blocks(self) -> Iterator[Rows]:
        """Yield the rows of the partitions."""
        return recut(self._whole())

    def classes(self) -> Any:
        """Return the distinct labels."""
        return distinct(block.y for block in self._whole())

    def _whole(self) -> Iterator[Rows]:
        for i in range(0, len(self.parts), 3):
            X, y, weight = self.parts[i : i + 3]
            yield checked(X, y, weight, Place(0, f"partition {self.first + i // 3}"), self.names)


Task = Callable[[LocalSource], Any]


def add_rows(job: Job[T], source: LocalSource) -> T:
    """Return the total of a job, without a thread that reads ahead: the worker has others."""
    return add_blocks(job, source.blocks())


def pick_rows(positions: Index, source: LocalSource) -> Rows:
    """Return the rows at sorted positions."""
    return pick(source.blocks(), positions)


def describe(source: LocalSource) -> tuple[int, int, Any]:
    """Return the numbers of rows and columns and the distinct labels."""
    blocks = list(source.blocks())
    columns = blocks[0].X.shape[1] if blocks else 0
    return sum(len(block) for block in blocks), columns, distinct(block.y for block in blocks)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a task returned, or what is wrong with its rows: an error that Dask would retry in vain."""

    value: Any
    error: str | None = None


def run(read: Callable[..., LocalSource], task: Task, *parts: Any) -> Outcome:
    """Run a task on the rows of partitions, with one BLAS thread: the workers share the cores."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    try:
        with threadpool_limits(1):
            return Outcome(task(read(*parts)))
    except ValueError as error:
        return Outcome(None, str(error))


def merge(outcomes: list[Outcome]) -> Outcome:
    """Return the sum of the totals of several tasks, in order, or the first error."""
    for outcome in outcomes:
        if outcome.error is not None:
            return outcome
    total = deepcopy(outcomes[0].value)  # what a task returned may be needed again
    for outcome in outcomes[1:]:
        total.add(outcome.value)
    return Outcome(total)
