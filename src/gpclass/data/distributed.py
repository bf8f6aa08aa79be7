"""Rows on Dask workers: they stay on the workers, and only totals are returned; and predictions for them.

A pass is a small graph: one task hands the job (hyperparameters and q, of the order of M² numbers) to the workers,
one task for every few partitions adds up their rows, and a tree adds the totals. The graph depends on the data alone,
not on the workers, and so do the totals, to the last digit. All that a task needs is in the graph, so that Dask's
scheduler can run it again, elsewhere, when a worker dies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpclass.core.protocols import Index
from gpclass.data.rows import Job, Read, Rows, Source, T, concatenate, grouped
from gpclass.data.sources import is_dask

BRANCHES = 8  # number of totals that one task adds
RETRIES = 3  # attempts to repeat a failed task, for instance when a file cannot be read


class DaskSource(Source):
    """Rows in several delayed sources, one per task; made by `on_dask` and `files_on_dask`.

    The default client is the current one, or Dask's scheduler in this process.
    """

    kept: Any = None  # persisted collections, whose partitions Dask would release if nothing referred to them

    def __init__(
        self, parts: list[Any], sizes: list[int], n_columns: int, names: list[str] | None, client: Any
    ) -> None:
        self.parts, self.client = parts, client
        self.starts = np.cumsum([0, *sizes])
        self.n_rows, self.n_columns, self.names = int(self.starts[-1]), n_columns, names

    def blocks(self) -> Iterator[Rows]:
        """Yield all rows; they are transferred to this process one task at a time."""
        from dask.delayed import delayed

        for part in self.parts:
            yield from compute([delayed(list)(part.blocks())], self.client)[0]

    def total(self, job: Job[T], n_jobs: int | None = None) -> T:
        """Return the sum of the results of a job over all rows; the workers of the cluster replace ``n_jobs``."""
        from dask.delayed import delayed

        sent = delayed(job, traverse=False)  # a task of its own, so that it is sent once to each worker
        totals = [delayed(add_rows, pure=False)(part, sent) for part in self.parts]
        while len(totals) > 1:
            few = [totals[i : i + BRANCHES] for i in range(0, len(totals), BRANCHES)]
            totals = [delayed(add_totals, pure=False)(some) for some in few]
        return compute(totals, self.client)[0]

    def take(self, positions: Index, read: Read) -> Rows:
        """Return the rows at sorted positions."""
        from dask.delayed import delayed

        few = np.split(positions, np.searchsorted(positions, self.starts[1:-1]))
        parts, sent = zip(self.parts, few, self.starts, strict=False), delayed(read, traverse=False)
        tasks = [part.take(some - start, sent) for part, some, start in parts if len(some)]
        return concatenate(compute(tasks, self.client))


def compute(tasks: list[Any], client: Any) -> Sequence[Any]:
    """Return the results of tasks; when a worker dies, joins or is restarted, Dask repeats lost tasks."""
    dask: Any = import_module("dask")
    with suppress(ImportError):  # imported inside config.set it would leave Dask without its defaults
        import_module("distributed")
    # The job is in the graph, and Dask need not warn about its size.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        return dask.compute(*tasks, scheduler=client, retries=RETRIES)


def add_rows(source: Source, job: Job[T]) -> T:
    """Return the total over the rows of a task, with one BLAS thread: the workers share the cores."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        return source.total(job)


def add_totals(totals: list[Any]) -> Any:
    """Return the sum of totals, in order."""
    first = deepcopy(totals[0])  # copied, because the result of a task may be needed again
    for total in totals[1:]:
        first.add(total)
    return first


def files_on_dask(source: Any, client: Any = None, rows: int | None = None) -> DaskSource:
    """Return the rows of files as a source. Each worker reads its own parts, under the same path."""
    from dask.delayed import delayed

    if not hasattr(source, "split"):
        raise ValueError(
            f"A {type(source).__name__} is read in this process: omit client, or give files or a Dask "
            "collection."
        )
    some = source.split(rows)
    parts = [delayed(part, pure=False, traverse=False) for part in some]
    return DaskSource(parts, [part.n_rows for part in some], source.n_columns, source.names, client)


# --------------------------------------------------------------------------------- collections


class Partitions(Source):
    """The rows of partitions of Dask collections, numbered from ``first``: X, y and weights (or None) of each."""

    def __init__(self, first: int, parts: list[list[Any]]) -> None:
        self.first, self.parts = first, parts

    def blocks(self) -> Iterator[Rows]:
        """Yield the rows of the partitions that are not empty."""
        for i, part in enumerate(self.parts, self.first):
            X, y, weight = part
            if len(X):
                yield Rows(X, y, weight, 0, f"partition {i}")


def on_dask(
    X: Any, y: Any = None, weight: Any = None, *, client: Any = None, rows: int | None = None
) -> DaskSource:
    """Return the rows of Dask collections as a source; y and weights may be names of columns of X.

    Partitions are computed in every pass, unless they are persisted (``X.persist()``). A task has at least ``rows``
    rows, by default a hundred thousand, and more if that would give too many tasks.
    """
    from dask.delayed import delayed

    kept = X, y, weight
    if isinstance(weight, str):
        X, weight = _without(X, weight)
    if isinstance(y, str):
        X, y = _without(X, y)
    if getattr(X, "ndim", None) != 2:
        raise ValueError(
            f"X is a {type(X).__name__} of Dask, expected a Dask array or dataframe of two axes."
        )
    names = None if _is_array(X) else [str(name) for name in X.columns]
    parts = [list(part) for part in zip(*_partitions(X, y, weight), strict=True)]
    sizes = compute([delayed(len)(part[0]) for part in parts], client)
    if not sum(sizes):
        raise ValueError("The Dask collection has no rows.")
    groups = [few for few in grouped(sizes, rows) if sum(sizes[i] for i in few)]
    some = [delayed(Partitions, pure=False)(few[0], [parts[i] for i in few]) for few in groups]
    totals = [sum(sizes[i] for i in few) for few in groups]
    source = DaskSource(some, totals, int(X.shape[1]), names, client)
    source.kept = kept
    return source


def _without(X: Any, name: str) -> tuple[Any, Any]:
    if name not in getattr(X, "columns", ()):
        raise ValueError(f"X has no column {name!r}: give a Dask array or series, or the name of a column.")
    return X.drop(columns=[name]), X[name]


def _is_array(collection: Any) -> bool:
    return hasattr(type(collection), "rechunk")


def _partitions(X: Any, y: Any, weight: Any) -> list[list[Any]]:
    """Return the partitions of X, of y and of the weights, to be computed."""
    found: list[list[Any]] = []
    for what, given in (("X", X), ("y", y), ("weight", weight)):
        if weight is None and what == "weight":
            found.append([None] * len(found[0]))
            continue
        if not is_dask(given):
            raise ValueError(
                f"{what} is a {type(given).__name__} but X is a Dask collection, expected one as well: for an array "
                "use dask.array.from_array with the chunks of X."
            )
        if _is_array(given) and _is_array(X) and given.shape[0] == X.shape[0]:
            given = given.rechunk({0: X.chunks[0], **({1: -1} if given.ndim == 2 else {})})
        found.append(list(np.ravel(given.to_delayed())))
    if len({len(each) for each in found}) > 1:
        counts = ", ".join(str(len(each)) for each in found)
        raise ValueError(f"X, y and weight have {counts} partitions, expected the same ones.")
    return found


# ------------------------------------------------------------------------------------ predictions


def predict_lazily(model: Any, method: str, X: Any) -> Any:
    """Return what a method of the model ("predict", "predict_proba", ...) predicts for a Dask collection, lazily."""
    check_is_fitted(model)
    work = partial(_predicted, model, method)
    if hasattr(X, "columns"):
        return X.map_partitions(work, meta=work(X._meta[:0]))
    X = X.rechunk({1: -1})
    labels = {"drop_axis": 1} if method == "predict" else {"chunks": (X.chunks[0], (len(model.classes_),))}
    return X.map_blocks(work, meta=work(np.empty((0, X.shape[1]))), **labels)


def _predicted(model: Any, method: str, X: Any) -> Any:
    """Return the predictions for a partition, with its index if it has one; it may be empty."""
    from threadpoolctl import threadpool_limits

    labels = method == "predict"
    values = model.classes_[:0] if labels else np.empty((0, len(model.classes_)))
    if len(X):
        with threadpool_limits(1):
            values = getattr(model, method)(X)
    if not hasattr(X, "columns"):
        return values
    import pandas as pd

    return pd.Series(values, X.index) if labels else pd.DataFrame(values, X.index, list(model.classes_))
