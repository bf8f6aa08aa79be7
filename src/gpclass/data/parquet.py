"""Rows in Parquet, Feather and Arrow files, read a little at a time by pyarrow.

A file is a list of pieces, the row groups of Parquet or the record batches of Arrow, whose numbers of rows
are in its metadata: who has the list can hand out pieces without having read a row.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpclass.data.blocks import ROWS, Block, checked, distinct, recut, sample_of

PARQUET, ARROW = (".parquet", ".pq"), (".feather", ".arrow", ".ipc")
NARROW = ("float", "halffloat", "int8", "int16", "uint8", "uint16", "bool")  # exact in single precision


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """One row group or record batch: its file, its number there, the rows before it in the file, its rows."""

    path: str
    number: int
    start: int
    rows: int


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Which columns are X, y and the weights, and the precision of X."""

    names: list[str]
    target: str
    weight: str | None
    dtype: Any

    @property
    def all(self) -> list[str]:
        """Names of all the columns to read."""
        return [*self.names, self.target, *([] if self.weight is None else [self.weight])]


class ParquetSource:
    """Rows of Parquet, Feather or Arrow files, or of folders of them, larger than memory if need be.

    Parameters
    ----------
    path : str, path or list of them
        Files, or folders whose files are read in the order of their names; also addresses that pyarrow
        knows, as ``s3://bucket/folder``.
    target : str
        The column of labels.
    weight : str, optional
        The column of weights.
    columns : list of str, optional
        The columns of X; all others but those of pandas' index if not given.
    rows : int
        Rows of a block.

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

    def __init__(
        self,
        path: Any,
        *,
        target: str,
        weight: str | None = None,
        columns: Sequence[str] | None = None,
        rows: int = ROWS,
    ) -> None:
        self.rows = rows
        paths = [path] if isinstance(path, str | os.PathLike) else list(path)
        files = [file for one in paths for file in _files(os.fspath(one))]
        self.columns = _choose(files[0], target, weight, columns)
        self.pieces: list[Piece] = []
        wide = False
        for file in files:
            pieces, schema = _describe(file)
            wide |= _is_wide(file, schema, self.columns)
            self.pieces += [piece for piece in pieces if piece.rows]
        self.columns = Columns(self.columns.names, target, weight, np.float64 if wide else np.float32)
        if not self.pieces:
            raise ValueError(f"The {len(files)} file(s) of {path} have no rows.")
        self._classes: Any = None

    @property
    def n_rows(self) -> int:
        """Number of rows, from the files' metadata."""
        return sum(piece.rows for piece in self.pieces)

    @property
    def n_columns(self) -> int:
        """Number of columns of X."""
        return len(self.columns.names)

    @property
    def names(self) -> list[str] | None:
        """Names of the columns of X."""
        return list(self.columns.names)

    def blocks(self) -> Iterator[Block]:
        """Yield all rows in blocks."""
        return read_pieces(self.pieces, self.columns, self.rows)

    def sample(self, n: int, rng: np.random.Generator) -> Block:
        """Return n random rows."""
        return sample_of(self.blocks(), self.n_rows, n, rng)

    def classes(self) -> Any:
        """Return the distinct labels; only their column is read, and only once."""
        if self._classes is None:
            self._classes = distinct(
                read_labels(self.pieces, self.columns), f"Column {self.columns.target!r}"
            )
        return self._classes


# --------------------------------------------------------------------------------- reading pieces


def read_pieces(pieces: Sequence[Piece], columns: Columns, rows: int = ROWS) -> Iterator[Block]:
    """Yield the rows of the pieces, in blocks."""
    return recut(_raw_blocks(pieces, columns, rows), rows)


def _raw_blocks(pieces: Sequence[Piece], columns: Columns, rows: int) -> Iterator[Block]:
    for piece, start, batch in _batches(pieces, columns.all, rows):
        X = np.empty((batch.num_rows, len(columns.names)), dtype=columns.dtype)
        for j, name in enumerate(columns.names):
            X[:, j] = _numbers(batch.column(name))
        weight = None if columns.weight is None else _numbers(batch.column(columns.weight))
        where = _Place(piece.path, start)
        yield checked(X, _labels(batch.column(columns.target)), weight, where, columns.names)


def read_labels(pieces: Sequence[Piece], columns: Columns, rows: int = ROWS) -> Iterator[Any]:
    """Yield arrays of the labels alone."""
    for piece, start, batch in _batches(pieces, [columns.target], rows):
        y = _labels(batch.column(columns.target))
        nothing = np.empty((len(y), 0))
        yield checked(nothing, y, None, _Place(piece.path, start)).y


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """Where row i of a batch is."""

    path: str
    start: int

    def __call__(self, i: int) -> str:
        return f"row {self.start + i} of {self.path}"


def _batches(pieces: Sequence[Piece], names: list[str], rows: int) -> Iterator[tuple[Piece, int, Any]]:
    """Yield record batches of at most so many rows, with the position of the first in its file."""
    opened: _Opened | None = None
    try:
        for piece in pieces:
            if opened is None or opened.path != piece.path:
                if opened is not None:
                    opened.close()
                opened = _Opened(piece.path)
            start = piece.start
            for batch in opened.read(piece, names, rows):
                yield piece, start, batch
                start += batch.num_rows
            if start != piece.start + piece.rows:
                raise ValueError(f"{piece.path} has changed since its rows were counted: begin again.")
    finally:
        if opened is not None:
            opened.close()


@dataclass(slots=True, eq=False)
class _Opened:
    """A file open for reading; all its errors name it."""

    path: str
    reader: Any = field(init=False)
    handle: Any = field(init=False)

    def __post_init__(self) -> None:
        """Open it."""
        pa = _arrow()
        from pyarrow import parquet

        self.handle = None
        try:
            files, inner = _filesystem(self.path)
            self.handle = files.open_input_file(inner)
            if self.path.lower().endswith(PARQUET):
                self.reader = parquet.ParquetFile(self.handle, pre_buffer=False)
            else:
                self.reader = pa.ipc.open_file(self.handle)
        except (pa.ArrowException, ValueError, OSError) as error:
            self.close()
            raise _unreadable(self.path, error) from None

    def read(self, piece: Piece, names: list[str], rows: int) -> Iterator[Any]:
        """Yield the rows of a piece."""
        pa = _arrow()
        try:
            if self.path.lower().endswith(PARQUET):
                yield from self.reader.iter_batches(rows, row_groups=[piece.number], columns=names)
            else:
                batch = self.reader.get_batch(piece.number).select(names)
                yield from (batch.slice(i, rows) for i in range(0, batch.num_rows, rows))
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self.path, error) from None

    def close(self) -> None:
        """Close it."""
        if self.handle is not None:
            self.handle.close()


def _numbers(column: Any) -> Any:
    """Return numbers as an array, NaN where there are none."""
    pa = _arrow()
    if pa.types.is_decimal(column.type) or pa.types.is_boolean(column.type):
        column = column.cast(pa.float64() if pa.types.is_decimal(column.type) else pa.int8())
    return column.to_numpy(zero_copy_only=False)


def _labels(column: Any) -> Any:
    """Return labels as an array; of objects, with None where there is none, if one is missing."""
    pa = _arrow()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        return np.array([*column.to_pylist(), None], dtype=object)[:-1]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        coded = column.dictionary_encode()
        return np.asarray(coded.dictionary.to_pylist(), dtype=str)[coded.indices.to_numpy()]
    return column.to_numpy(zero_copy_only=False)


# --------------------------------------------------------------------------------- files and their metadata


def _arrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        raise ImportError(
            'Parquet and Arrow files need pyarrow to be read: pip install "gpclass[tables]".'
        ) from None
    return pa


def _unreadable(path: str, error: Exception) -> Exception:
    """Return what to raise: of a device an OSError, which may pass, of the contents a ValueError."""
    words = str(error).split("\n")[0].split(". ")[0].rstrip(".")
    kind = "Parquet" if path.lower().endswith(PARQUET) else "Feather or Arrow"
    sentence = f"{path} cannot be read as a {kind} file: {words[:150]}."
    return OSError(sentence) if isinstance(error, OSError) else ValueError(sentence)


def _filesystem(path: str) -> tuple[Any, str]:
    from pyarrow import fs

    return fs.FileSystem.from_uri(path) if "://" in path else (fs.LocalFileSystem(), path)


def _files(path: str) -> list[str]:
    """Return the file, or the files of a folder and those within it, by name."""
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
    found = [
        entry.path for entry in files.get_file_info(fs.FileSelector(inner, recursive=True)) if entry.is_file
    ]
    kept = [file for file in found if file.lower().endswith(endings) and not _is_hidden(file[len(inner) :])]
    if not kept:
        raise FileNotFoundError(
            f"The folder {path} has no Parquet or Arrow files, whose names end in {', '.join(endings)}."
        )
    scheme = path.split("://")[0] + "://" if "://" in path else ""
    return sorted(scheme + file for file in kept)


def _is_hidden(inner: str) -> bool:
    return any(part.startswith((".", "_")) for part in inner.split("/"))


def _describe(path: str) -> tuple[list[Piece], Any]:
    """Return the pieces of a file and its schema, from its metadata."""
    pa = _arrow()
    opened = _Opened(path)
    try:
        if path.lower().endswith(PARQUET):
            metadata = opened.reader.metadata
            sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
            schema = opened.reader.schema_arrow
        else:
            schema = opened.reader.schema
            one = pa.ipc.IpcReadOptions(included_fields=[0])
            reader = pa.ipc.open_file(opened.handle, options=one) if len(schema) else opened.reader
            sizes = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
    except (pa.ArrowException, ValueError, OSError) as error:
        raise _unreadable(path, error) from None
    finally:
        opened.close()
    starts = np.cumsum([0, *sizes])
    return [Piece(path, i, int(starts[i]), rows) for i, rows in enumerate(sizes)], schema


def _choose(path: str, target: str, weight: str | None, columns: Sequence[str] | None) -> Columns:
    """Return the columns to read, by the first file."""
    _, schema = _describe(path)
    given = [] if columns is None else list(columns)
    if target in given or (weight is not None and weight in given):
        raise ValueError(
            "The target and the weights cannot be columns of X as well: leave them out of columns."
        )
    apart = {target, weight}
    names = given or [
        name for name in schema.names if name not in apart and not name.startswith("__index_level_")
    ]
    if not names:
        raise ValueError(f"{path} has no columns but {target!r}, expected some for X.")
    return Columns(names, target, weight, np.float64)


def _is_wide(path: str, schema: Any, columns: Columns) -> bool:
    """Return whether the columns of X need double precision; raise if one is missing or is no number."""
    types = _arrow().types
    for name in columns.all:
        n = schema.names.count(name)
        if n != 1:
            few = ", ".join(repr(other) for other in schema.names[:12])
            raise ValueError(f"{path} has {n or 'no'} columns {name!r}, expected one; it has {few}.")
    wide = False
    for name in columns.all:
        kind = schema.field(name).type
        if name == columns.target:
            continue
        if not any(
            test(kind) for test in (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)
        ):
            raise ValueError(
                f"Column {name!r} of {path} has type {kind}, expected numbers: encode it first, or name the "
                "columns to use."
            )
        wide |= name != columns.weight and str(kind) not in NARROW
    return wide
