"""Sources of rows: files, which `pyarrow.dataset` finds and reads a block at a time, or anything that yields blocks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from gpclass.core.checks import optional
from gpclass.data.rows import ROWS, Rows, Source, grouped

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
                f"X is a {type(X).__name__}, which already contains labels and weights: omit y and "
                "sample_weight."
            )
    elif client is None:
        return None
    else:
        raise ValueError(
            f"client is only for Dask collections and files, but X is a {type(X).__name__}: leave client out."
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
                "the function that creates it, or a list."
            )
        self.factory, self.rows = factory, rows
        self.n_rows = self.n_columns = 0
        for block in self._given():
            self.n_rows, self.n_columns = self.n_rows + len(block), np.shape(block.X)[-1]
        if not self.n_rows:
            raise ValueError("The blocks have no rows, expected at least one.")

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
                "same every time, so give a function that returns a new generator in each call, or a list."
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


# ------------------------------------------------------------------------------------ files


class Piece(NamedTuple):
    """A part of a file; ``start`` is the number of rows that precede it."""

    fragment: Any
    start: int
    rows: int


class ParquetSource(Source):
    """Rows of Parquet, Feather or Arrow files, or of folders of them, which may be larger than memory.

    Parameters
    ----------
    path : str, path or list of them
        Files, or folders of files of one kind, which are read in the order of their names. Names that begin with
        a dot or an underscore are left out. An address that pyarrow knows, such as ``s3://bucket/folder``, is
        allowed.
    target : str
        The column of labels.
    weight : str, optional
        The column of weights.
    columns : list of str, optional
        The columns of X. The default is all others, except those of pandas' index.
    rows : int
        Largest number of rows in a block.

    Examples
    --------
    >>> import tempfile, os
    >>> import pyarrow as pa, pyarrow.parquet
    >>> from gpclass.data.sources import ParquetSource
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = pa.table({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 1.0], "kind": ["x", "y", "x"]})
    ...     pa.parquet.write_table(table, os.path.join(folder, "part-0.parquet"))
    ...     source = ParquetSource(folder, target="kind")
    ...     source.n_rows, source.names, source.classes().tolist()
    (3, ['a', 'b'], ['x', 'y'])
    """

    names: list[str]

    def __init__(
        self,
        path: Any,
        *,
        target: str,
        weight: str | None = None,
        columns: Sequence[str] | None = None,
        rows: int = ROWS,
    ) -> None:
        paths = [path] if isinstance(path, str | os.PathLike) else list(path)
        fragments = [fragment for one in paths for fragment in _fragments(os.fspath(one))]
        self.pieces = [piece for fragment in fragments for piece in _pieces(fragment)]
        if not self.pieces:
            raise ValueError(f"The {len(fragments)} file(s) of {path} have no rows.")
        schema = fragments[0].physical_schema
        apart = {target, weight} | index_columns(schema)
        self.names = list(columns or [name for name in schema.names if name not in apart])
        self.target, self.weight, self.rows = target, weight, rows
        self.n_rows, self.n_columns = sum(piece.rows for piece in self.pieces), len(self.names)
        self._check(fragments[0].path, schema)

    def _check(self, path: str, schema: Any) -> None:
        """Raise unless a file has the columns and numeric weights."""
        types = _arrow().types
        numeric = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)
        if not self.names or {self.target, self.weight}.intersection(self.names):
            raise ValueError(
                f"The columns of X are {self.names}, expected at least one besides the target and the weights."
            )
        for name in (self.target, *self.names, *([] if self.weight is None else [self.weight])):
            n = schema.names.count(name)
            if n != 1:
                few = ", ".join(map(repr, schema.names[:12]))
                found = f"{n} columns" if n else "no column"
                raise ValueError(f"{path} has {found} {name!r}: its columns are {few}.")
            kind = schema.field(name).type
            if name == self.weight and not any(test(kind) for test in numeric):
                raise ValueError(f"Column {name!r} of {path} has type {kind}, expected numbers.")

    def split(self, rows: int | None = None) -> list[ParquetSource]:
        """Return sources that share the pieces among them; a Parquet file is divided into its row groups."""
        found = []
        for group in grouped([piece.rows for piece in self.pieces], rows):
            some = copy(self)
            some.pieces = [self.pieces[i] for i in group]
            some.n_rows = sum(piece.rows for piece in some.pieces)
            found.append(some)
        return found

    def blocks(self) -> Iterator[Rows]:
        """Yield all rows in blocks, with Arrow's tables as X."""
        columns = [*self.names, self.target, *([] if self.weight is None else [self.weight])]
        options = {"columns": columns, "batch_size": self.rows, "batch_readahead": 1}
        for piece in self.pieces:
            path, start = piece.fragment.path, piece.start
            with _reading(path):
                for batch in piece.fragment.to_batches(**options):
                    X = _arrow().Table.from_batches([batch.select(self.names)])
                    y = np.asarray(batch.column(self.target).to_pylist())
                    w = None if self.weight is None else np.asarray(batch.column(self.weight), dtype=float)
                    yield Rows(X, y, w, start, path)
                    start += batch.num_rows
            if start != piece.start + piece.rows:
                raise ValueError(f"{path} has changed since its rows were counted: fit again.")


def index_columns(schema: Any) -> set[str]:
    """Return the columns that pandas stored as the index of a frame, which may be the order of the rows."""
    stored = (schema.pandas_metadata or {}).get("index_columns", ())
    unnamed = (name for name in schema.names if name.startswith("__index_level_"))
    return {name for name in stored if isinstance(name, str)}.union(unnamed)


def _arrow() -> Any:
    return optional("pyarrow", "Reading a Parquet or Arrow file", "tables")


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Turn an error of pyarrow into a sentence: an OSError if it may be temporary, else a ValueError."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file or folder {path}.") from None
    except (_arrow().ArrowException, OSError) as error:
        words = str(error).split("\n")[0].split("?: ")[-1].split(". ")[0].rstrip(".")
        kind = OSError if isinstance(error, OSError) else ValueError
        raise kind(f"{path} cannot be read as Parquet, Feather or Arrow: {words}; give a table.") from None


def _fragments(path: str) -> list[Any]:
    """Return the file, or the files of a folder and of the folders in it, sorted by name."""
    pa = _arrow()
    from pyarrow import dataset

    # Avoids buffers for a whole row group, which is much larger than a batch.
    options = dataset.ParquetFragmentScanOptions(pre_buffer=False)
    parquet = dataset.ParquetFileFormat(default_fragment_scan_options=options)
    with _reading(path):
        try:
            found = dataset.dataset(path, format=parquet)
        except pa.ArrowInvalid:
            if path.lower().endswith((".parquet", ".pq")):
                raise
            found = dataset.dataset(path, format="ipc")
    return list(found.get_fragments())


def _pieces(fragment: Any) -> list[Piece]:
    """Return the row groups of a Parquet file, or a Feather or Arrow file as a whole, if they have rows."""
    with _reading(fragment.path):
        if hasattr(fragment, "split_by_row_group"):
            parts = fragment.split_by_row_group()
            sizes = [part.row_groups[0].num_rows for part in parts]
        else:
            parts, sizes = [fragment], [fragment.count_rows()]
    starts = np.cumsum([0, *sizes]).tolist()
    return [Piece(*piece) for piece in zip(parts, starts, sizes, strict=False) if piece[-1]]
