"""Rows that Dask's workers hold or read: they stay where they are, and only totals come back."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from gpclass.core.protocols import Index
from gpclass.data.blocks import Place, checked, concatenate, distinct, divide, recut
from gpclass.data.local import LocalSource
from gpclass.data.parquet import ParquetSource
from gpclass.data.rows import Job, Rows, Source, T
from gpclass.data.scheduling import WAIT_SECONDS, Cluster, Group, grouped
from gpclass.data.sources import is_dask


class DaskSource(Source):
    """Rows in Dask collections, or in files that Dask's workers read.

    Made by `on_dask` and by the ``on_dask`` of files. Without a client, given or current, Dask's scheduler of this
    process computes. ``kept`` holds the persisted collections: Dask releases partitions that nothing
    refers to, and then cannot replace those of a lost worker.
    """

    def __init__(
        self,
        groups: list[Group],
        n_columns: int,
        names: list[str] | None,
        cluster: Cluster,
        classes: Any = None,
        kept: Any = None,
    ) -> None:
        self.groups, self.cluster, self._classes, self.kept = groups, cluster, classes, kept
        self.n_rows = sum(group.rows for group in groups)
        self.n_columns, self.names = n_columns, names

    def total(self, job: Job[T], n_jobs: int | None = None) -> T:
        """Return the total of a job over all rows; the cluster says how many are worked on at a time."""
        return self.cluster.total(job, self.groups)

    def take(self, positions: Index) -> Rows:
        """Return the rows at sorted positions."""
        parts = list(divide(positions, [group.rows for group in self.groups]))
        tasks = [methodcaller("take", some) for _, some in parts]
        return concatenate(self.cluster.each(tasks, [self.groups[i] for i, _ in parts]))

    def classes(self) -> Any:
        """Return the distinct labels."""
        if self._classes is None:
            tasks = [methodcaller("classes")] * len(self.groups)
            self._classes = distinct(self.cluster.each(tasks, self.groups))
        return self._classes

    def on_dask(self, client: Any, rows: int | None = None, wait_seconds: float | None = None) -> Source:
        """Return these rows for the workers of another client; without ``wait_seconds`` they are as before."""
        other = copy(self)
        other.cluster = Cluster(client, self.cluster.wait_seconds if wait_seconds is None else wait_seconds)
        return other


class Partitions(LocalSource):
    """The rows of partitions of Dask collections: X, y and weights (or None) in turn.

    ``first`` is the number of the first partition.
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


def _describe(source: LocalSource) -> tuple[int, int, Any]:
    """Return the numbers of rows and columns and the distinct labels."""
    blocks = list(source.blocks())
    columns = blocks[0].X.shape[1] if blocks else 0
    return sum(len(block) for block in blocks), columns, distinct(block.y for block in blocks)


def on_dask(
    X: Any,
    y: Any = None,
    weight: Any = None,
    *,
    client: Any = None,
    rows: int | None = None,
    wait_seconds: float = WAIT_SECONDS,
) -> DaskSource:
    """Return the rows of Dask collections as a source.

    Parameters
    ----------
    X : dask array or dask dataframe
        Its partitions are computed in every pass, unless it is persisted (``X.persist()``).
    y, weight : dask array or series, or the name of a column of X, optional
        In the same partitions as X.
    client : distributed.Client, optional
        The current one if not given.
    rows : int, optional
        Least number of rows for a task. The default is a hundred thousand, and more if that would make too
        many tasks.
    wait_seconds : float
        How long a pass waits for a worker when the cluster has none, in seconds; then RuntimeError is raised.
    """
    kept, cluster = (X, y, weight), Cluster(client, wait_seconds)
    if isinstance(weight, str):
        X, weight = _without(X, weight)
    if isinstance(y, str):
        X, y = _without(X, y)
    names = None if _is_array(X) else _numeric_columns(X)
    parts = _partitions(X, y, weight)
    singles = [Group(partial(Partitions, i, names), part, 0) for i, part in enumerate(parts)]
    found = cluster.each([_describe] * len(parts), singles)
    sizes = [size for size, _, _ in found]
    if not sum(sizes):
        raise ValueError("The Dask collection has no rows.")
    columns = max(columns for _, columns, _ in found)
    groups = [
        Group(singles[few[0]].read, [part for i in few for part in parts[i]], sum(sizes[i] for i in few))
        for few in grouped(sizes, rows)
    ]
    classes = distinct(labels for n, _, labels in found if n)
    return DaskSource(groups, columns, names, cluster, classes, kept)


def files_on_dask(
    source: ParquetSource, client: Any, rows: int | None, wait_seconds: float | None
) -> DaskSource:
    """Return the rows of files as a source. Each worker reads its own pieces, under the same path."""
    cluster = Cluster(client, WAIT_SECONDS if wait_seconds is None else wait_seconds)
    some = [source.only(few) for few in grouped([piece.rows for piece in source.pieces], rows)]
    groups = [Group(partial(_itself, part), [], part.n_rows) for part in some]
    return DaskSource(groups, source.n_columns, source.names, cluster)


def _itself(source: LocalSource) -> LocalSource:
    return source


def _without(X: Any, name: str) -> tuple[Any, Any]:
    if name not in getattr(X, "columns", ()):
        raise ValueError(f"X has no column {name!r}: give a Dask array or series, or the name of a column.")
    return X.drop(columns=[name]), X[name]


def _is_array(collection: Any) -> bool:
    from dask.array import Array as DaskArray

    return isinstance(collection, DaskArray)


def _numeric_columns(X: Any) -> list[str]:
    """Return the names of the columns of a frame; raise if one is not numeric."""
    if not hasattr(type(X), "dtypes"):
        raise ValueError(f"X is a {type(X).__name__} of Dask, expected a Dask array or dataframe.")
    for name, dtype in X.dtypes.items():
        if dtype.kind not in "fiub":
            raise ValueError(f"Column {name!r} of X has type {dtype}, expected numbers: encode it first.")
    return [str(name) for name in X.columns]


def _partitions(X: Any, y: Any, weight: Any) -> list[list[Any]]:
    """Return the partitions as [X, y, weight or None], to be computed."""
    for what, given in (("y", y), ("weight", weight)):
        if not is_dask(given) and not (given is None and what == "weight"):
            raise ValueError(
                f"{what} is a {type(given).__name__} and X a Dask collection, expected one as well: for an "
                "array use dask.array.from_array with the chunks of X."
            )
    chunks = None
    if _is_array(X):
        if X.ndim != 2:
            raise ValueError(f"X has shape {X.shape}, expected rows and columns.")
        chunks = X.chunks[0]
    inputs, labels = _delayed(X, None), _delayed(y, chunks)
    weights = [None] * len(inputs) if weight is None else _delayed(weight, chunks)
    counts = {len(inputs), len(labels), len(weights)}
    if len(counts) > 1:
        raise ValueError(f"X, y and weight have {sorted(counts)} partitions, expected the same ones.")
    return [list(part) for part in zip(inputs, labels, weights, strict=True)]


def _delayed(collection: Any, chunks: Any) -> list[Any]:
    """Return the partitions, to be computed; those of an array of known size in the given chunks of rows."""
    if not _is_array(collection):
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
