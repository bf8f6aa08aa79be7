"""Passes over rows that Dask's workers hold or read: a job goes to the rows, sums come back.

Rows stay where they are. A pass is a small graph: one task hands the job (hyperparameters and q, of the order
of M² numbers) to the workers, a task for every few partitions adds up their rows, and a tree adds the sums.
The tasks and the tree depend on the data alone, not on the workers: the sums are the same to the last digit
whoever computes what, and when. Everything a task needs is in the graph, so that the scheduler can run it
again, elsewhere, when a worker dies.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np

from gpclass.core.protocols import Array
from gpclass.data.blocks import ROWS, Block, concatenate, distinct, draw, in_order
from gpclass.data.jobs import (
    Failure,
    FileReader,
    Job,
    PartReader,
    PickJob,
    Reader,
    SumJob,
    describe,
    find_labels,
    merge,
    run,
)
from gpclass.data.local import Encode
from gpclass.data.parquet import ParquetSource
from gpclass.data.prediction import lazy_predict
from gpclass.sparse.sums import Step, Sums

__all__ = ["DaskData", "DaskSource", "is_dask", "lazy_predict", "on_dask"]

FEWEST = 100_000  # rows of a task, if there are so many
MOST_TASKS = 512
BRANCHES = 8  # sums added by one task
RETRIES = 3  # of a task that failed
ATTEMPTS = 2  # at a pass that was lost


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask collection; Dask is not imported to find out.

    Examples
    --------
    >>> from gpclass.data.distributed import is_dask
    >>> is_dask([[1.0, 2.0]])
    False
    """
    if "dask" not in sys.modules:
        return False
    from dask.base import is_dask_collection

    return bool(is_dask_collection(X))


# --------------------------------------------------------------------------------- graphs and their results


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The rows of one task: who reads them, the partitions it is handed, and how many rows there are."""

    reader: Reader
    parts: list[Any]
    rows: int


def _tasks(jobs: Sequence[Job] | bytes, groups: Sequence[Group], name: str) -> list[Any]:
    """Return a task for each group, with a job for each or a pickled one for all."""
    from dask.delayed import delayed

    if isinstance(jobs, bytes):
        one = delayed(pickle.loads, pure=False)(jobs, dask_key_name=_key("gpclass-job"))
        return [
            delayed(partial(run, g.reader), pure=False)(one, *g.parts, dask_key_name=_key(name))
            for g in groups
        ]
    works = [partial(run, g.reader, job) for job, g in zip(jobs, groups, strict=True)]
    return [
        delayed(work, pure=False)(*g.parts, dask_key_name=_key(name))
        for work, g in zip(works, groups, strict=True)
    ]


def _key(name: str) -> str:
    """Return a name for a task, not used before: the graph of another pass is another graph."""
    return f"{name}-{uuid4().hex}"


def _tree(tasks: list[Any]) -> Any:
    """Return the task that has the sum of all, of a shape that depends on their number alone."""
    from dask.delayed import delayed

    while len(tasks) > 1:
        some = [tasks[i : i + BRANCHES] for i in range(0, len(tasks), BRANCHES)]
        tasks = [delayed(merge, pure=False)(few, dask_key_name=_key("gpclass-merge")) for few in some]
    return tasks[0]


def _current(client: Any) -> Any:
    """Return the client given, or the one there is, or None for Dask's scheduler of this process."""
    if client is not None or "distributed" not in sys.modules:
        return client
    import distributed

    find: Any = distributed.default_client
    try:
        return find()
    except ValueError:
        return None


def compute(make: Callable[[], Any], client: Any, size: int = 0) -> Any:
    """Return the value of the task that ``make`` makes.

    A worker that dies, joins or is restarted is the scheduler's affair: it runs again what was lost. What it
    gives up is submitted anew: when too many workers in turn died with a task, when data vanished that were
    scattered rather than computed, or when the scheduler was lost and is back. ``size`` is that of what
    the graph has to carry, of which Dask need not warn.
    """
    client = _current(client)
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
            result = future.result()
            future.release()
            return result
        except (CancelledError, KilledWorker, CommClosedError) as error:
            if attempt == ATTEMPTS:
                raise RuntimeError(
                    f"A pass over the data was lost {ATTEMPTS} times, with its workers or the scheduler "
                    f"({type(error).__name__}: {error}): look in their logs, most likely for memory, and do "
                    "not use client.scatter for the data, which nobody can make again."
                ) from error
        except BaseException:
            future.cancel()  # what was interrupted should not go on
            raise
    raise AssertionError("every attempt returns or raises")


def _told(result: Any) -> Any:
    if isinstance(result, Failure):
        raise ValueError(result.message)
    return result


# --------------------------------------------------------------------------------- data


class DaskSource:
    """Rows in Dask collections, or in files that its workers read.

    Made by `on_dask`. ``client`` is None for the current one, or if there is none for Dask's own scheduler.
    """

    def __init__(
        self, groups: list[Group], n_columns: int, names: list[str] | None, client: Any, classes: Any = None
    ) -> None:
        self.groups, self.n_columns, self.names, self.client = groups, n_columns, names, client
        self.starts = np.cumsum([0, *(group.rows for group in groups)])
        self._classes = classes

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.starts[-1])

    def total(self, job: Job) -> Any:
        """Return the sum of what a job returns on all rows."""
        from distributed.protocol import pickle as portable  # for a notebook's own kernels as well

        dumps: Any = portable.dumps
        pickled: bytes = dumps(job)
        make = lambda: _tree(_tasks(pickled, self.groups, "gpclass-sums"))  # noqa: E731
        return _told(compute(make, self.client, len(pickled)))

    def each(self, jobs: Sequence[Job], groups: Sequence[Group] | None = None) -> list[Any]:
        """Return what jobs return, one a group."""
        return _each(jobs, self.groups if groups is None else groups, self.client)

    def sample(self, n: int, rng: np.random.Generator) -> Block:
        """Return n random rows."""
        positions = draw(self.n_rows, n, rng)
        ordered = np.sort(positions)
        cuts = np.searchsorted(ordered, self.starts)
        some = [i for i in range(len(self.groups)) if cuts[i + 1] > cuts[i]]
        jobs = [PickJob(ordered[cuts[i] : cuts[i + 1]] - self.starts[i]) for i in some]
        found = self.each(jobs, [self.groups[i] for i in some])
        return in_order(concatenate(found), positions)

    def classes(self) -> Any:
        """Return the distinct labels."""
        if self._classes is None:
            self._classes = distinct(self.each([find_labels] * len(self.groups)))
        return self._classes


def _each(jobs: Sequence[Job], groups: Sequence[Group], client: Any) -> list[Any]:
    from dask.delayed import delayed

    name = getattr(jobs[0], "__name__", type(jobs[0]).__name__)
    make = lambda: delayed(list, pure=False)(_tasks(jobs, groups, f"gpclass-{name}"))  # noqa: E731
    return [_told(result) for result in compute(make, client)]


@dataclass(frozen=True, slots=True, eq=False)
class DaskData:
    """The rows of a `DaskSource` as an engine takes them."""

    source: DaskSource
    encode: Encode

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows

    def total(self, step: Step) -> Sums:
        """Return the sums over all rows."""
        sums: Sums = self.source.total(SumJob(step, self.encode))
        return sums

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Array, Array, Array | None]:
        """Return random rows: inputs, and labels and weights as the likelihood takes them."""
        block = self.source.sample(n, rng)
        return block.X, *self.encode(block.y, block.weight)


def on_dask(
    X: Any, y: Any = None, weight: Any = None, *, client: Any = None, rows: int | None = None
) -> DaskSource:
    """Return rows for Dask's workers to pass over.

    Parameters
    ----------
    X : dask array, dask dataframe or ParquetSource
        Of files, every worker reads its own row groups: all must see the files under the same name. The
        partitions of a collection are computed in every pass, unless it is persisted (``X.persist()``).
    y, weight : dask array or series, or the name of a column of X, optional
        In the same partitions as X.
    client : distributed.Client, optional
        The current one if not given.
    rows : int, optional
        Rows for a task at least; a hundred thousand, and more if that would make too many tasks.
    """
    if isinstance(X, ParquetSource):
        return _on_files(X, client, rows)
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    if isinstance(weight, str):
        X, weight = _without(X, weight)
    if isinstance(y, str):
        X, y = _without(X, y)
    if names is not None:
        names = [str(name) for name in X.columns]
        _check_numeric(X)
    parts = _partitions(X, y, weight)
    readers = [PartReader(i, names, ROWS) for i in range(len(parts))]
    singles = [Group(reader, part, 0) for reader, part in zip(readers, parts, strict=True)]
    found = _each([describe] * len(parts), singles, client)
    sizes = [size for size, _, _ in found]
    if not sum(sizes):
        raise ValueError("The Dask collection has no rows.")
    columns = max(columns for _, columns, _ in found)
    groups = [
        Group(readers[few[0]], [part for i in few for part in parts[i]], sum(sizes[i] for i in few))
        for few in _grouped(sizes, rows)
    ]
    return DaskSource(groups, columns, names, client, distinct(labels for n, _, labels in found if n))


def _on_files(source: ParquetSource, client: Any, rows: int | None) -> DaskSource:
    pieces = source.pieces
    grouped = [[pieces[i] for i in few] for few in _grouped([piece.rows for piece in pieces], rows)]
    groups = [
        Group(FileReader(few, source.columns, source.rows), [], sum(piece.rows for piece in few))
        for few in grouped
    ]
    return DaskSource(groups, source.n_columns, source.names, client)


def _grouped(sizes: Sequence[int], rows: int | None) -> list[list[int]]:
    """Return the numbers of neighbouring partitions that make a task: by their rows, whoever will do them."""
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


def _without(X: Any, name: str) -> tuple[Any, Any]:
    if name not in getattr(X, "columns", ()):
        raise ValueError(f"X has no column {name!r}: give a Dask array or series, or the name of a column.")
    return X.drop(columns=[name]), X[name]


def _check_numeric(X: Any) -> None:
    for name, dtype in X.dtypes.items():
        if dtype.kind not in "fiub":
            raise ValueError(f"Column {name!r} of X has type {dtype}, expected numbers: encode it first.")


def _partitions(X: Any, y: Any, weight: Any) -> list[list[Any]]:
    """Return the partitions as [X, y, weight or None] to be computed."""
    for what, given in (("y", y), ("weight", weight)):
        if given is None and what == "weight":
            continue
        if not is_dask(given):
            raise ValueError(
                f"{what} is a {type(given).__name__} and X a Dask collection, expected one as well: for an "
                "array use dask.array.from_array with the chunks of X."
            )
    chunks = None
    if hasattr(X, "chunks"):
        if X.ndim != 2:
            raise ValueError(f"X has shape {X.shape}, expected rows and columns.")
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        chunks = X.chunks[0]
    lists = [_delayed(X, None), _delayed(y, chunks), None if weight is None else _delayed(weight, chunks)]
    counts = {len(parts) for parts in lists if parts is not None}
    if len(counts) > 1:
        raise ValueError(f"X, y and weight have {sorted(counts)} partitions, expected the same ones.")
    return [
        [x, label, None if lists[2] is None else lists[2][i]]
        for i, (x, label) in enumerate(zip(lists[0] or [], lists[1] or [], strict=True))
    ]


def _delayed(collection: Any, chunks: Any) -> list[Any]:
    """Return the partitions to be computed; an array of known size in the chunks of rows given."""
    if not hasattr(collection, "chunks"):
        return list(collection.to_delayed())
    known = chunks is not None and not np.isnan([*chunks, *collection.chunks[0]]).any()
    if known and sum(chunks) != sum(collection.chunks[0]):
        raise ValueError(
            f"X has {sum(chunks)} rows, and y or the weights {sum(collection.chunks[0])}: expected as many."
        )
    if known and collection.chunks[0] != chunks:
        collection = collection.rechunk({0: chunks})
    if collection.ndim == 2 and collection.numblocks[1] > 1:
        collection = collection.rechunk({1: -1})
    return list(np.ravel(collection.to_delayed()))
