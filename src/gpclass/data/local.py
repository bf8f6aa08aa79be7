"""Passes over rows on this machine: one block is computed while the next one is read."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from typing import TypeVar

import numpy as np

from gpclass.data.blocks import draw, in_order, pick
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
        with closing(ahead(self.blocks())) as blocks:
            if n_jobs is None or n_jobs == 1:
                return add_blocks(job, blocks)
            from joblib import effective_n_jobs
            from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

            total = job.zero()
            with threadpool_limits(1):
                for one in in_turn(lambda block: block.total(job), blocks, effective_n_jobs(n_jobs)):
                    total.add(one)
            return total

    def sample(self, n: int, rng: np.random.Generator) -> Rows:
        """Return n random rows, found in one pass."""
        positions = draw(self.n_rows, n, rng)
        return in_order(pick(self.blocks(), np.sort(positions)), positions)


def add_blocks(job: Job[T], blocks: Iterable[Rows]) -> T:
    """Return the total of a job over the blocks, in their order."""
    total = job.zero()
    for block in blocks:
        total.add(block.total(job))
    return total


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


def ahead(items: Iterator[Item]) -> Generator[Item]:
    """Yield the items of an iterator, of which a thread fetches the next while one is in use.

    The thread ends when the generator is closed. What the iterator raises is raised here.
    """
    fetch: Callable[[], list[Item]] = lambda: list(islice(items, 1))  # noqa: E731
    with ThreadPoolExecutor(1, thread_name_prefix="gpclass-read-ahead") as pool:
        future = pool.submit(fetch)
        while found := future.result():
            future = pool.submit(fetch)
            yield found[0]
