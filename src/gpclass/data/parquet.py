"""Rows in Parquet, Feather and Arrow files, read a little at a time by pyarrow.

A file is a list of pieces, the row groups of Parquet or the record batches of Arrow, whose numbers of rows
are in its metadata: the pieces can be shared out before any row is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from gpclass.core.checks import optional
from gpclass.data.blocks import ROWS, Place, check_present, checked, distinct, draw, in_order, pick, recut
from gpclass.data.local import LocalSource
from gpclass.data.rows import Rows, Source

PARQUET, ARROW = (".parquet", ".pq"), (".feather", ".arrow", ".ipc")
NARROW = ("float", "halffloat", "int8", "int16", "uint8", "uint16", "bool")  # exact in single precision


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """One row group or record batch: its file, its number there, the rows before it in the file, its rows."""

    path: str
    number: int
    start: int
    rows: int


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
        files = [file for one in paths for file in _files(os.fspath(one))]
        found = [_describe(file) for file in files]
        self.names = _inputs(files[0], found[0][1], target, weight, columns)
        wide = [self._is_wide(file, schema) for file, (_, schema) in zip(files, found, strict=True)]
        self.dtype = np.float64 if any(wide) else np.float32
        self.pieces = [piece for pieces, _ in found for piece in pieces if piece.rows]
        if not self.pieces:
            raise ValueError(f"The {len(files)} file(s) of {path} have no rows.")
        self.n_rows, self.n_columns = sum(piece.rows for piece in self.pieces), len(self.names)
        self._classes: Any = None

    def _is_wide(self, path: str, schema: Any) -> bool:
        """Return whether the columns of X need double precision; raise if one is missing or not numeric."""
        types = _arrow().types
        numeric = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)
        for name in self._read_columns():
            n = schema.names.count(name)
            if n != 1:
                few = ", ".join(repr(other) for other in schema.names[:12])
                raise ValueError(f"{path} has {n or 'no'} columns {name!r}, expected one; it has {few}.")
            kind = schema.field(name).type
            if name != self.target and not any(test(kind) for test in numeric):
                raise ValueError(
                    f"Column {name!r} of {path} has type {kind}, expected numbers: encode it first, or name "
                    "the columns to use."
                )
        return any(str(schema.field(name).type) not in NARROW for name in self.names)

    def _read_columns(self) -> list[str]:
        return [self.target, *self.names, *([] if self.weight is None else [self.weight])]

    def only(self, which: Iterable[int]) -> ParquetSource:
        """Return the source of some of the pieces."""
        some = copy(self)
        some.pieces = [self.pieces[i] for i in which]
        some.n_rows, some._classes = sum(piece.rows for piece in some.pieces), None
        return some

    def blocks(self) -> Iterator[Rows]:
        """Yield all rows in blocks."""
        return recut(self._read(), self.rows)

    def _read(self) -> Iterator[Rows]:
        for where, batch in _batches(self.pieces, self._read_columns(), self.rows):
            X = np.empty((batch.num_rows, self.n_columns), dtype=self.dtype)
            for j, name in enumerate(self.names):
                X[:, j] = _numbers(batch.column(name))
            weight = None if self.weight is None else _numbers(batch.column(self.weight))
            yield checked(X, _labels(batch.column(self.target)), weight, where, self.names)

    def sample(self, n: int, rng: np.random.Generator) -> Rows:
        """Return n random rows, reading only the pieces that hold some of them."""
        positions = draw(self.n_rows, n, rng)
        ordered = np.sort(positions)
        sizes = np.array([piece.rows for piece in self.pieces])
        starts = np.cumsum(sizes) - sizes
        used, which = np.unique(np.searchsorted(starts, ordered, side="right") - 1, return_inverse=True)
        skipped = starts[used] - (np.cumsum(sizes[used]) - sizes[used])  # rows not read before each piece
        return in_order(pick(self.only(used).blocks(), ordered - skipped[which]), positions)

    def classes(self) -> Any:
        """Return the distinct labels; only their column is read, and only once."""
        if self._classes is None:
            self._classes = distinct(self._labels(), f"Column {self.target!r}")
        return self._classes

    def _labels(self) -> Iterator[Any]:
        for where, batch in _batches(self.pieces, [self.target], self.rows):
            y = _labels(batch.column(self.target))
            check_present(y, where)
            yield y

    def on_dask(
        self, client: Any = None, rows: int | None = None, wait_seconds: float | None = None
    ) -> Source:
        """Return these rows as a source that Dask's workers read; see `gpclass.data.distributed.on_dask`."""
        from gpclass.data.distributed import files_on_dask
        from gpclass.data.scheduling import Cluster

        return files_on_dask(
            self, Cluster(client) if wait_seconds is None else Cluster(client, wait_seconds), rows
        )


# --------------------------------------------------------------------------------- reading pieces


def _batches(pieces: Sequence[Piece], names: list[str], rows: int) -> Iterator[tuple[Place, Any]]:
    """Yield record batches of at most ``rows`` rows, with their places."""
    pa = _arrow()
    for path, some in groupby(pieces, lambda piece: piece.path):
        try:
            file = _open(path)
            for piece in some:
                start = piece.start
                for batch in file.read(piece.number, names, rows):
                    yield Place(start, path), batch
                    start += batch.num_rows
                if start != piece.start + piece.rows:
                    raise ValueError(f"{path} has changed since its rows were counted: fit again.")
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, error) from None


def _numbers(column: Any) -> Any:
    """Return numbers as an array, NaN where there are none."""
    pa = _arrow()
    if pa.types.is_decimal(column.type) or pa.types.is_boolean(column.type):
        column = column.cast(pa.float64() if pa.types.is_decimal(column.type) else pa.int8())
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


# --------------------------------------------------------------------------------- files and their metadata


def _arrow() -> Any:
    return optional("pyarrow", "Reading a Parquet or Arrow file", "tables")


class _ParquetFile:
    """A Parquet file, read by pyarrow.dataset one row group at a time."""

    def __init__(self, files: Any, inner: str) -> None:
        from pyarrow import dataset

        # Without the buffers of a whole row group, of which a batch is a small part.
        options = dataset.ParquetFragmentScanOptions(pre_buffer=False)
        form = dataset.ParquetFileFormat(default_fragment_scan_options=options)
        self.fragment = form.make_fragment(inner, files)
        self.schema = self.fragment.physical_schema

    def sizes(self) -> list[int]:
        return [group.num_rows for group in self.fragment.row_groups]

    def read(self, number: int, names: list[str], rows: int) -> Iterator[Any]:
        group = self.fragment.subset(row_group_ids=[number])
        yield from group.to_batches(columns=names, batch_size=rows, batch_readahead=1)


class _ArrowFile:
    """A Feather or Arrow file. pyarrow.dataset cannot read one of its record batches without the others."""

    def __init__(self, files: Any, inner: str) -> None:
        self.handle = files.open_input_file(inner)
        self.reader = _arrow().ipc.open_file(self.handle)
        self.schema = self.reader.schema

    def sizes(self) -> list[int]:
        ipc = _arrow().ipc
        one = ipc.IpcReadOptions(included_fields=[0])
        reader = ipc.open_file(self.handle, options=one) if len(self.schema) else self.reader
        return [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]

    def read(self, number: int, names: list[str], rows: int) -> Iterator[Any]:
        batch = self.reader.get_batch(number).select(names)
        yield from (batch.slice(i, rows) for i in range(0, batch.num_rows, rows))


def _open(path: str) -> _ParquetFile | _ArrowFile:
    kind = _ParquetFile if path.lower().endswith(PARQUET) else _ArrowFile
    return kind(*_filesystem(path))


def _describe(path: str) -> tuple[list[Piece], Any]:
    """Return the pieces of a file and its schema, from its metadata."""
    pa = _arrow()
    try:
        file = _open(path)
        sizes = file.sizes()
    except (pa.ArrowException, ValueError, OSError) as error:
        raise _unreadable(path, error) from None
    starts = np.cumsum([0, *sizes])
    return [Piece(path, i, int(starts[i]), rows) for i, rows in enumerate(sizes)], file.schema


def _unreadable(path: str, error: Exception) -> Exception:
    """Return what to raise: an OSError for a device, where it may pass, a ValueError for the contents."""
    words = str(error).split("\n")[0].split(". ")[0].rstrip(".")
    kind = "Parquet" if path.lower().endswith(PARQUET) else "Feather or Arrow"
    sentence = f"{path} cannot be read as a {kind} file: {words[:150]}."
    return OSError(sentence) if isinstance(error, OSError) else ValueError(sentence)


def _filesystem(path: str) -> tuple[Any, str]:
    from pyarrow import fs

    return fs.FileSystem.from_uri(path) if "://" in path else (fs.LocalFileSystem(), path)


def _files(path: str) -> list[str]:
    """Return the file, or the files of a folder and of the folders in it, sorted by name."""
    _arrow()
    from pyarrow import fs

    endings = PARQUET + ARROW
    files, inner = _filesystem(path)
    info = files.get_file_info(inner)
    if info.type == fs.FileType.NotFound:
        raise FileNotFoundError(f"There is no file or folder {path}.")
    if info.type != fs.FileType.Directory:
        if not path.lower().endswith(endings):
            raise ValueError(f"{path} does not end in {', '.join(endings[:-1])} or {endings[-1]}.")
        return [path]
    found = files.get_file_info(fs.FileSelector(inner, recursive=True))
    names = [entry.path for entry in found if entry.is_file and entry.path.lower().endswith(endings)]
    hidden = (".", "_")
    kept = [n for n in names if not any(part.startswith(hidden) for part in n[len(inner) :].split("/"))]
    if not kept:
        raise FileNotFoundError(
            f"The folder {path} has no Parquet or Arrow files, whose names end in {', '.join(endings)}."
        )
    scheme = path.split("://")[0] + "://" if "://" in path else ""
    return sorted(scheme + name for name in kept)


# --------------------------------------------------------------------------------- columns


def index_columns(schema: Any) -> set[str]:
    """Return the columns that pandas stored as the index of a frame, which is no input: it may be the order of rows."""
    stored = {
        name for name in (schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)
    }
    return stored | {name for name in schema.names if name.startswith("__index_level_")}


def _inputs(
    path: str, schema: Any, target: str, weight: str | None, columns: Sequence[str] | None
) -> list[str]:
    """Return the columns of X, by the schema of the first file."""
    given = [] if columns is None else list(columns)
    apart = {target, weight}
    if apart.intersection(given):
        raise ValueError(
            "The target and the weights cannot be columns of X as well: leave them out of columns."
        )
    apart |= index_columns(schema)
    names = given or [name for name in schema.names if name not in apart]
    if not names:
        raise ValueError(f"{path} has no columns but {target!r}, expected some for X.")
    return names
