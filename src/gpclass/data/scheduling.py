"""Tasks on groups of rows that Dask's workers hold or read, and what happens when workers are lost.

A pass is a small graph: one task hands the job (hyperparameters and q, of the order of M² numbers) to the
workers, one task for every few partitions adds up their rows, and a tree adds the totals. The tasks and the
tree depend on the data alone, not on the workers: the totals are the same to the last digit whoever computes
what, and when. Everything a task needs is in the graph, so that the scheduler can run it again, elsewhere,
when a worker dies.
"""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from operator import methodcaller
from typing import Any
from uuid import uuid4

from gpclass.data.local import LocalSource
from gpclass.data.rows import Job, T

FEWEST = 100_000  # rows of a task, if there are so many
MOST_TASKS = 512
BRANCHES = 8  # totals added by one task
RETRIES = 3  # of a task that failed
WAIT_SECONDS = 600.0  # for a worker when there is none
LOOK_SECONDS = 2.0  # between looks at whether there are workers, at most
Task = Callable[[LocalSource], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The rows of one task: the function that makes a source of its partitions, those, and the row count."""

    read: Callable[..., LocalSource]
    parts: list[Any]
    rows: int


def grouped(sizes: Sequence[int], rows: int | None) -> list[list[int]]:
    """Return the numbers of the neighbouring partitions of each task, which depend on their rows alone."""
    least = max(FEWEST, -(-sum(sizes) // MOST_TASKS)) if rows is None else rows
    groups: list[list[int]] = [[]]
    filled = 0
    for i, size in enumerate(sizes):
        if filled >= least:
            groups.append([])
            filled = 0
        groups[-1].append(i)
        filled += size
    return groups


# --------------------------------------------------------------------------------- on the workers


def run(task: Task, read: Callable[..., LocalSource], *parts: Any) -> Any:
    """Return the result of a task on the rows of partitions, with one BLAS thread: the workers share the cores.

    A ValueError is returned as well: the rows are wrong, and Dask would try the task again in vain.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    try:
        with threadpool_limits(1):
            return task(read(*parts))
    except ValueError as error:
        return error


def merge(totals: list[Any]) -> Any:
    """Return the sum of totals, in order, or the first error among them."""
    for total in totals:
        if isinstance(total, ValueError):
            return total
    first = deepcopy(totals[0])  # what a task returned may be needed again
    for total in totals[1:]:
        first.add(total)
    return first


# --------------------------------------------------------------------------------- graphs


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Whose workers compute: those of a client (None: the current one); and how long to wait when it has none."""

    client: Any = None
    wait_seconds: float = WAIT_SECONDS

    def __post_init__(self) -> None:
        if not self.wait_seconds > 0.0:
            raise ValueError(f"wait_seconds is {self.wait_seconds!r}, expected a positive number of seconds.")

    def total(self, job: Job[T], groups: Sequence[Group]) -> T:
        """Return the total of a job over all groups; the shape of the tree depends on their number alone."""
        from distributed.protocol import pickle as portable  # pickles kernels defined in a notebook as well

        dumps: Any = portable.dumps
        task = _delayed("job", pickle.loads, dumps(methodcaller("total", job)))
        totals = [_delayed("sums", run, task, group.read, *group.parts) for group in groups]
        while len(totals) > 1:
            few = [totals[i : i + BRANCHES] for i in range(0, len(totals), BRANCHES)]
            totals = [_delayed("merge", merge, some) for some in few]
        total: T = self._compute(totals)[0]
        return total

    def each(self, tasks: Sequence[Task], groups: Sequence[Group]) -> list[Any]:
        """Return the results of tasks, one for each group."""
        pairs = zip(tasks, groups, strict=True)
        return self._compute([_delayed("rows", run, task, group.read, *group.parts) for task, group in pairs])

    def _compute(self, tasks: list[Any]) -> list[Any]:
        """Return the results of tasks; raise the error of the first that found its rows to be wrong.

        When a worker dies, joins or is restarted, the scheduler runs again what was lost. RuntimeError ends what it
        gives up, and the wait for workers when none comes back in time.
        """
        results = _delayed("results", list, tasks)
        client = _current(self.client)
        found = results.compute() if client is None else self._compute_on(client, results)
        for one in found:
            if isinstance(one, ValueError):
                raise one
        return list(found)

    def _compute_on(self, client: Any, task: Any) -> Any:
        from concurrent.futures import CancelledError

        import dask
        from distributed import KilledWorker
        from distributed.comm.core import CommClosedError

        # The job is in the graph, and Dask need not warn about its size.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            future = client.compute(task, retries=RETRIES)
        try:
            return self._await(future, client)
        except (CancelledError, KilledWorker, CommClosedError) as error:
            raise RuntimeError(
                "A pass over the data failed because workers or the scheduler were lost "
                f"({type(error).__name__}: {error}): check their logs, most likely for lack of memory, and "
                "do not use client.scatter for the data, because scattered data cannot be recomputed."
            ) from error
        finally:
            future.cancel()  # what was interrupted does not go on, and the result is released

    def _await(self, future: Any, client: Any) -> Any:
        """Return the result of a future; raise RuntimeError when there has been no worker for ``wait_seconds``."""
        look, gone = min(LOOK_SECONDS, self.wait_seconds / 4.0), None
        while True:
            try:
                future.exception(timeout=look)  # distributed.wait would ask the current client
                return future.result()
            except TimeoutError:
                if future.status == "error":  # it is that of the task
                    raise
            now = time.monotonic()
            gone = None if _has_workers(client) else now if gone is None else gone
            if gone is not None and now - gone >= self.wait_seconds:
                raise RuntimeError(
                    f"The cluster has had no worker for {now - gone:.0f} s (wait_seconds={self.wait_seconds:g}), "
                    "so this pass over the data is lost: start workers and call fit again, which goes on after the "
                    "last pass that Inducing(checkpoint=...) has on disk, or give on_dask more wait_seconds."
                )


def _delayed(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return a task with a key that was not used before: the graph of another pass is another graph."""
    from dask.delayed import delayed

    return delayed(function, pure=False)(*arguments, dask_key_name=f"gpclass-{name}-{uuid4().hex}")


def _current(client: Any) -> Any:
    """Return the client given, or the current one, or None for Dask's scheduler of this process."""
    if client is not None or "distributed" not in sys.modules:
        return client
    import distributed

    find: Any = distributed.default_client
    try:
        return find()
    except ValueError:
        return None


def _has_workers(client: Any) -> bool:
    try:
        return bool(client.nthreads())
    except OSError:  # the scheduler does not answer
        return False
