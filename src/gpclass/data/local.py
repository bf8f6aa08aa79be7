"""Passes over rows that this process reads."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from gpclass.core.protocols import Index
from gpclass.data.blocks import concatenate
from gpclass.data.rows import Job, Rows, Source, T

Item = TypeVar("Item")
Result = TypeVar("Result")


class LocalSource(Source):
    """A source whose blocks are read in this process. Derive from it to read rows from elsewhere."""

    @abstractmethod
    def blocks(self) -> Iterator[Rows]:
        """Yield all rows, in the same blocks and the same order every time.

        Returns
        -------
        iterator of Rows
        """

    def total(self, job: Job[T], n_jobs: int | None = None) -> T:
        """Return the total of a job over all rows, added block by block in their order."""
        total = job.zero()
        if n_jobs is None or n_jobs == 1:
            for block in self.blocks():
                total.add(block.total(job))
            return total
        from joblib import effective_n_jobs
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        with threadpool_limits(1):
            for one in in_turn(lambda block: block.total(job), self.blocks(), effective_n_jobs(n_jobs)):
                total.add(one)
        return total

    def take(self, positions: Index) -> Rows:
        """Return the rows at sorted positions, in one pass that holds only them and one block."""
        found, start = [], 0
        for block in self.blocks():
            first, last = np.searchsorted(positions, [start, start + len(block)])
            found.append(block.take(positions[first:last] - start))
            start += len(block)
            if last == len(positions):
                break
        return concatenate(found)


def in_turn(work: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """Yield the results of ``work`` in the order of the items, of which ``jobs`` are worked on at a time."""
    running: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for item in items:
                running.append(pool.submit(work, item))
                if len(running) > jobs:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()
