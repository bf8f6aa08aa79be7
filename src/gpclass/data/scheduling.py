"""Graphs of tasks on groups of rows, and their results, whatever happens to Dask's workers.

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
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

from gpclass.data.jobs import Outcome, Task, add_rows, merge, run
from gpclass.data.local import LocalSource
from gpclass.data.rows import Job, T

FEWEST = 100_000  # rows of a task, if there are so many
MOST_TASKS = 512
BRANCHES = 8  # totals added by one task
RETRIES = 3  # of a task that failed
ATTEMPTS = 2  # at a pass that was lost
WAIT_SECONDS = 600.0  # for a worker when there is none
LOOK_SECONDS = 2.0  # between looks at whether there are workers, at most
ARRIVE_SECONDS = 300.0  # that the transfer of a total may take before workers are looked for again


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Whose workers compute: those of a client (None: the current one); and how long to wait when it has none."""

    client: Any = None
    wait_seconds: float = WAIT_SECONDS

    def __post_init__(self) -> None:
        if not self.wait_seconds > 0.0:
            raise ValueError(f"wait_seconds is {self.wait_seconds!r}, expected a positive number of seconds.")


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


def total(job: Job[T], groups: Sequence[Group], cluster: Cluster) -> T:
    """Return the total of a job over all groups."""
    from distributed.protocol import pickle as portable  # pickles kernels defined in a notebook as well

    dumps: Any = portable.dumps
    pickled: bytes = dumps(partial(add_rows, job))

    def make() -> Any:
        from dask.delayed import delayed

        task = delayed(pickle.loads, pure=False)(pickled, dask_key_name=_key("gpclass-job"))
        return _tree(
            [
                delayed(partial(run, g.read), pure=False)(task, *g.parts, dask_key_name=_key("gpclass-sums"))
                for g in groups
            ]
        )

    found: T = _value(compute(make, cluster, len(pickled)))
    return found


def each(tasks: Sequence[Task], groups: Sequence[Group], cluster: Cluster) -> list[Any]:
    """Return the results of tasks, one for each group."""

    def make() -> Any:
        from dask.delayed import delayed

        calls = [
            delayed(partial(run, g.read, task), pure=False)(*g.parts, dask_key_name=_key("gpclass-rows"))
            for task, g in zip(tasks, groups, strict=True)
        ]
        return delayed(list, pure=False)(calls)

    return [_value(outcome) for outcome in compute(make, cluster)]


def _key(name: str) -> str:
    """Return a name for a task that was not used before: the graph of another pass is another graph."""
    return f"{name}-{uuid4().hex}"


def _tree(tasks: list[Any]) -> Any:
    """Return the task that has the sum of all; the shape of the tree depends on their number alone."""
    from dask.delayed import delayed

    while len(tasks) > 1:
        some = [tasks[i : i + BRANCHES] for i in range(0, len(tasks), BRANCHES)]
        tasks = [delayed(merge, pure=False)(few, dask_key_name=_key("gpclass-merge")) for few in some]
    return tasks[0]


def _value(outcome: Outcome) -> Any:
    if outcome.error is not None:
        raise ValueError(outcome.error)
    return outcome.value


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


def compute(make: Callable[[], Any], cluster: Cluster, size: int = 0) -> Any:
    """Return the value of the task that ``make`` makes.

    When a worker dies, joins or is restarted, the scheduler runs again what was lost. What it gives up is
    submitted anew: when too many workers in turn died with a task, when data vanished that were scattered
    rather than computed, or when the scheduler was lost and is back. RuntimeError ends what fails again, and the
    wait for workers when none comes back in time. ``size`` is the number of bytes that
    the graph has to carry, about which Dask need not warn.
    """
    client = _current(cluster.client)
    if client is None:
        return make().compute()
    from concurrent.futures import CancelledError

    import dask
    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    limit = dask.config.get("distributed.admin.large-graph-warning-threshold", "10MB")
    limit = dask.utils.parse_bytes(limit) + 2 * size
    for attempt in range(1, ATTEMPTS + 1):
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": limit}):
            future = client.compute(make(), retries=RETRIES)
        try:
            result = _awaited(future, client, cluster.wait_seconds)
            future.release()
            return result
        except (CancelledError, KilledWorker, CommClosedError) as error:
            if attempt == ATTEMPTS:
                raise RuntimeError(
                    f"A pass over the data failed {ATTEMPTS} times because workers or the scheduler were lost "
                    f"({type(error).__name__}: {error}): check their logs, most likely for lack of memory, and "
                    "do not use client.scatter for the data, because scattered data cannot be recomputed."
                ) from error
        except BaseException:
            future.cancel()  # what was interrupted should not go on
            raise
    raise AssertionError("every attempt returns or raises")


def _awaited(future: Any, client: Any, wait_seconds: float) -> Any:
    """Return the result of a future; raise RuntimeError when there has been no worker for ``wait_seconds``."""
    look, gone = min(LOOK_SECONDS, wait_seconds / 4.0), None
    while True:
        try:
            future.exception(
                timeout=look
            )  # distributed.wait would ask the current client, not that of the future
            return future.result(timeout=ARRIVE_SECONDS)
        except TimeoutError:
            if future.status == "error":  # it is that of the task
                raise
        now = time.monotonic()
        gone = None if _has_workers(client) else now if gone is None else gone
        if gone is not None and now - gone >= wait_seconds:
            raise RuntimeError(
                f"The cluster has had no worker for {now - gone:.0f} s (wait_seconds={wait_seconds:g}), so this pass "
                "over the data is lost: start workers and call fit again, which goes on after the last pass that "
                "Inducing(checkpoint=...) has on disk, or give on_dask more wait_seconds."
            )


def _has_workers(client: Any) -> bool:
    try:
        return bool(client.nthreads())
    except OSError:  # the scheduler does not answer
        return False
