"""Sources of rows: files, or anything that yields blocks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from gpclass.data.parquet import ParquetSource
from gpclass.data.rows import ROWS, Rows, Source

__all__ = ["BlockSource", "ParquetSource", "Rows", "Source", "as_source"]


def as_source(X: Any, y: Any = None, weight: Any = None, client: Any = None) -> Source | None:
    """Return the source that X describes, or None if X is array-like.

    Parameters
    ----------
    X : source, path, callable, Dask collection or array-like
        A path is that of a Parquet or Arrow file, or of a folder of them; a callable yields blocks.
    y, weight : the labels and the weights
        Names of columns if X is a path; Dask collections, or names of columns, if X is a Dask collection.
    client : distributed.Client, optional
        The client whose workers read the files or hold the collection.

    Returns
    -------
    Source or None

    Examples
    --------
    >>> from gpclass.data.sources import as_source
    >>> as_source([[1.0, 2.0]], ["a"]) is None
    True
    >>> as_source(lambda: [([[1.0, 2.0]], ["a"]), ([[3.0, 4.0]], ["b"])]).n_rows
    2
    """
    if is_dask(X):
        from gpclass.data.distributed import on_dask

        return on_dask(X, y, weight, client=client)
    if isinstance(X, str | os.PathLike):
        if not isinstance(y, str):
            raise ValueError(
                f"X is the path {os.fspath(X)!r}: give the name of the column of labels as y, found "
                f"{'None' if y is None else 'a ' + type(y).__name__}."
            )
        source: Source = ParquetSource(X, target=y, weight=weight)
    elif isinstance(X, Source) or callable(X):
        source = X if isinstance(X, Source) else BlockSource(X)
        if y is not None or weight is not None:
            raise ValueError(
                f"X is a {type(X).__name__}, which has labels and weights of its own: leave out y and "
                "sample_weight."
            )
    elif client is None:
        return None
    else:
        raise ValueError(
            f"client is for Dask collections and files, and X is a {type(X).__name__}: leave client out."
        )
    if client is None:
        return source
    from gpclass.data.distributed import files_on_dask

    return files_on_dask(source, client)


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask collection; Dask is not imported to find out.

    Examples
    --------
    >>> from gpclass.data.sources import is_dask
    >>> is_dask([[1.0, 2.0]])
    False
    """
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(X))


class BlockSource(Source):
    """Rows from anything that yields blocks (X, y) or (X, y, weight) and can be iterated repeatedly.

    Blocks may be slices of an array that is mapped from disk. A few thousand rows or more in each are fastest.

    Parameters
    ----------
    factory : callable or iterable
        A function without arguments that returns an iterable of blocks, or an object that can be iterated
        over more than once, such as a list. A generator is exhausted after one pass: give the function that
        makes it.
    rows : int
        Largest number of rows in a block; larger ones are divided.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.data.sources import BlockSource
    >>> def blocks():
    ...     for seed in range(3):
    ...         X = np.random.default_rng(seed).normal(size=(100, 2))
    ...         yield X, X[:, 0] > 0.0
    >>> source = BlockSource(blocks)
    >>> source.n_rows, source.n_columns, source.classes().tolist()
    (300, 2, [False, True])
    """

    def __init__(self, factory: Callable[[], Iterable[Any]] | Iterable[Any], *, rows: int = ROWS) -> None:
        if isinstance(factory, Iterator):
            raise ValueError(
                f"The blocks come from a {type(factory).__name__}, which can be read only once: give "
                "the function that makes it, or a list."
            )
        self.factory, self.rows = factory, rows
        self.n_rows = self.n_columns = 0
        for block in self._given():
            self.n_rows, self.n_columns = self.n_rows + len(block), np.shape(block.X)[-1]
        if not self.n_rows:
            raise ValueError("The blocks have no rows, expected some.")

    def blocks(self) -> Iterator[Rows]:
        """Yield all rows in blocks."""
        n = 0
        for block in self._given():
            for start in range(0, len(block), self.rows):
                some = slice(start, start + self.rows)
                weight = None if block.weight is None else block.weight[some]
                yield Rows(block.X[some], block.y[some], weight, block.start + start)
            n += len(block)
        if n != self.n_rows:
            raise ValueError(
                f"The first pass over the blocks gave {self.n_rows} rows and this one {n}: they must be the "
                "same every time, so give a function that makes a new generator in each call, or a list."
            )

    def _given(self) -> Iterator[Rows]:
        """Yield the blocks as they are given."""
        n, columns = 0, self.n_columns
        for given in self.factory() if callable(self.factory) else self.factory:
            if not isinstance(given, tuple | list) or len(given) not in (2, 3):
                raise ValueError(
                    f"The block at row {n} is a {type(given).__name__}, expected (X, y) or (X, y, weight)."
                )
            X, y, weight = given if len(given) == 3 else (*given, None)
            block = Rows(X, y, weight, n)
            columns = columns or np.shape(block.X)[-1]
            if np.shape(block.X)[-1] != columns:
                raise ValueError(
                    f"The block at row {n} has {np.shape(block.X)[-1]} columns, and the first block has {columns}."
                )
            yield block
            n += len(block)
