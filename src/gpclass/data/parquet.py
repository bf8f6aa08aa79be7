"""Rows in Parquet, Feather and Arrow files, which `pyarrow.dataset` reads a block at a time.

A Parquet file is shared out by row groups, a Feather or Arrow file as a whole. The numbers of rows are in the metadata
of the files, so that the pieces can be shared out before any row is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.checks import optional
from gpclass.core.protocols import Index
from gpclass.data.blocks import ROWS, Place, check_present, checked, concatenate, distinct, divide, recut
from gpclass.data.local import LocalSource
from gpclass.data.rows import Rows, Source

PARQUET, ARROW = (".parquet", ".pq"), (".feather", ".arrow", ".ipc")
HIDDEN = (".", "_")  # how names of files and folders begin that hold no rows
NARROW = ("float", "halffloat", "int8", "int16", "uint8", "uint16", "bool")  # exact in single precision


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A fragment of `pyarrow.dataset`, which is a row group or a file, the rows before it in the file, its rows."""

    fragment: Any
    start: int
    rows: int

    @property
    def path(self) -> str:
        """The file that the piece is in."""
        return str(self.fragment.path)


class ParquetSource(LocalSource):
    """Rows of Parquet, Feather or Arrow files, or of folders of them, which may be larger than memory.

    Parameters
    ----------
    path : str, path or list of them
        Files, or folders whose files are read in the order of their names; also addresses that pyarrow
        knows, such as ``s3://bucket/folder``.
    target : str
        The column of labels.
    weight : str, optional
        The column of weights.
    columns : list of str, optional
        The columns of X. The default is all others, except those of pandas' index.
    rows : int
        Number of rows in a block.

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
        self.rows, self.target, self.weight = rows, target, weight
        paths = [path] if isinstance(path, str | os.PathLike) else list(path)
        fragments = [fragment for one in paths for fragment in _fragments(os.fspath(one))]
        self.pieces = [piece for fragment in fragments for piece in _pieces(fragment)]
        if not self.pieces:
            raise ValueError(f"The {len(fragments)} file(s) of {path} have no rows.")
        self.names = _inputs(fragments[0], target, weight, columns)
        self.columns = [target, *self.names, *([] if weight is None else [weight])]
        wide = [_is_wide(fragment, self.columns, target) for fragment in fragments]
        self.dtype = np.float64 if any(wide) else np.float32
        self.n_rows, self.n_columns = sum(piece.rows for piece in self.pieces), len(self.names)
        self._classes: Any = None

    def only(self, which: Iterable[int]) -> ParquetSource:
        """Return the source of some of the pieces."""
        some = copy(self)
        some.pieces = [self.pieces[i] for i in which]
        some.n_rows, some._classes = sum(piece.rows for piece in some.pieces), None
        return some

    def blocks(self) -> Iterator[Rows]:
        """Yield all rows in blocks."""
        return recut((self._checked(batch, where) for where, batch in self._scan(self.columns)), self.rows)

    def take(self, positions: Index) -> Rows:
        """Return the rows at sorted positions, reading only the pieces that hold some of them."""
        parts = divide(positions, [piece.rows for piece in self.pieces])
        return concatenate([LocalSource.take(self.only([i]), some) for i, some in parts])

    def classes(self) -> Any:
        """Return the distinct labels; only their column is read, and only once."""
        if self._classes is None:
            self._classes = distinct(self._labels(), f"Column {self.target!r}")
        return self._classes

    def _labels(self) -> Iterator[Any]:
        for where, batch in self._scan([self.target]):
            y = _labels(batch.column(self.target))
            check_present(y, where)
            yield y

    def _scan(self, columns: list[str]) -> Iterator[tuple[Place, Any]]:
        """Yield record batches of at most ``rows`` rows, with their places."""
        for piece in self.pieces:
            start = piece.start
            with _reading(piece.path):
                for batch in piece.fragment.to_batches(
                    columns=columns, batch_size=self.rows, batch_readahead=1
                ):
                    yield Place(start, piece.path), batch
                    start += batch.num_rows
            if start != piece.start + piece.rows:
                raise ValueError(f"{piece.path} has changed since its rows were counted: fit again.")

    def _checked(self, batch: Any, where: Place) -> Rows:
        X = np.empty((batch.num_rows, self.n_columns), dtype=self.dtype)
        for j, name in enumerate(self.names):
            X[:, j] = _numbers(batch.column(name))
        weight = None if self.weight is None else _numbers(batch.column(self.weight))
        return checked(X, _labels(batch.column(self.target)), weight, where, self.names)

    def on_dask(
        self, client: Any = None, rows: int | None = None, wait_seconds: float | None = None
    ) -> Source:
        """Return these rows as a source that Dask's workers read; see `gpclass.data.distributed.on_dask`."""
        from gpclass.data.distributed import files_on_dask

        return files_on_dask(self, client, rows, wait_seconds)


# --------------------------------------------------------------------------------- files


def _arrow() -> Any:
    return optional("pyarrow", "Reading a Parquet or Arrow file", "tables")


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Turn an error of pyarrow into a sentence: an OSError for a device, where it may pass, else a ValueError."""
    try:
        yield
    except (_arrow().ArrowException, OSError) as error:
        words = str(error).split("\n")[0].split(". ")[0].rstrip(".")
        kind = "Parquet" if path.lower().endswith(PARQUET) else "Feather or Arrow"
        sentence = f"{path} cannot be read as a {kind} file: {words[:150]}."
        raise (OSError if isinstance(error, OSError) else ValueError)(sentence) from None


def _fragments(path: str) -> list[Any]:
    """Return the file, or the files of a folder and of the folders in it, sorted by name."""
    _arrow()
    from pyarrow import dataset, fs

    files, inner = fs.FileSystem.from_uri(path) if "://" in path else (fs.LocalFileSystem(), path)
    info = files.get_file_info(inner)
    if info.type == fs.FileType.NotFound:
        raise FileNotFoundError(f"There is no file or folder {path}.")
    found, endings = [inner], PARQUET + ARROW
    if info.type == fs.FileType.Directory:
        listed = files.get_file_info(fs.FileSelector(inner, recursive=True))
        names = sorted(each.path for each in listed if each.is_file and each.path.lower().endswith(endings))
        found = [n for n in names if not any(p.startswith(HIDDEN) for p in n[len(inner) :].split("/"))]
        if not found:
            raise FileNotFoundError(
                f"The folder {path} has no Parquet or Arrow files, whose names end in {', '.join(endings)}."
            )
    elif not inner.lower().endswith(endings):
        raise ValueError(f"{path} does not end in {', '.join(endings[:-1])} or {endings[-1]}.")
    # Without the buffers of a whole row group, of which a batch is a small part.
    options = dataset.ParquetFragmentScanOptions(pre_buffer=False)
    parquet = dataset.ParquetFileFormat(default_fragment_scan_options=options)
    forms = [parquet if name.lower().endswith(PARQUET) else dataset.IpcFileFormat() for name in found]
    return [form.make_fragment(name, files) for form, name in zip(forms, found, strict=True)]


def _pieces(fragment: Any) -> list[Piece]:
    """Return the pieces of a file that have rows."""
    with _reading(fragment.path):
        if not fragment.path.lower().endswith(PARQUET):
            parts, sizes = [fragment], [fragment.count_rows()]
        else:
            parts = fragment.split_by_row_group()
            sizes = [group.num_rows for part in parts for group in part.row_groups]
    starts = np.cumsum([0, *sizes]).tolist()
    return [Piece(*piece) for piece in zip(parts, starts, sizes, strict=False) if piece[-1]]


# --------------------------------------------------------------------------------- columns


def index_columns(schema: Any) -> set[str]:
    """Return the columns that pandas stored as the index of a frame, which may be the order of the rows."""
    stored = (schema.pandas_metadata or {}).get("index_columns", ())
    unnamed = (name for name in schema.names if name.startswith("__index_level_"))
    return {name for name in stored if isinstance(name, str)}.union(unnamed)


def _inputs(fragment: Any, target: str, weight: str | None, columns: Sequence[str] | None) -> list[str]:
    """Return the columns of X, by the schema of the first file."""
    given, schema = list(columns or ()), fragment.physical_schema
    if {target, weight}.intersection(given):
        raise ValueError(
            "The target and the weights cannot be columns of X as well: leave them out of columns."
        )
    apart = {target, weight} | index_columns(schema)
    names = given or [name for name in schema.names if name not in apart]
    if not names:
        raise ValueError(f"{fragment.path} has no columns but {target!r}, expected some for X.")
    return names


def _is_wide(fragment: Any, columns: list[str], target: str) -> bool:
    """Return whether the columns but the target need double precision; raise if one is missing or not numeric."""
    types, schema = _arrow().types, fragment.physical_schema
    numeric = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)
    wide = False
    for name in columns:
        n = schema.names.count(name)
        if n != 1:
            few = ", ".join(repr(other) for other in schema.names[:12])
            raise ValueError(f"{fragment.path} has {n or 'no'} columns {name!r}, expected one; it has {few}.")
        kind = schema.field(name).type
        if name != target and not any(test(kind) for test in numeric):
            raise ValueError(
                f"Column {name!r} of {fragment.path} has type {kind}, expected numbers: encode it first, or name "
                "the columns to use."
            )
        wide |= name != target and str(kind) not in NARROW
    return wide


def _numbers(column: Any) -> Any:
    """Return numbers as an array, NaN where there are none."""
    pa = _arrow()
    if pa.types.is_decimal(column.type) or pa.types.is_boolean(column.type):
        column = column.cast(pa.float64())
    return column.to_numpy(zero_copy_only=False)


def _labels(column: Any) -> Any:
    """Return labels as an array; of objects, with None in places, if some are missing."""
    pa = _arrow()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        return np.array([*column.to_pylist(), None], dtype=object)[:-1]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        coded = column.dictionary_encode()  # few texts become Python objects, not one per row
        return np.asarray(coded.dictionary.to_pylist(), dtype=str)[coded.indices.to_numpy()]
    return column.to_numpy(zero_copy_only=False)
