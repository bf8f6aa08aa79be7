"""Where rows come from: arrays in memory or mapped from disk, files, or anything that yields blocks.

A source gives its rows in blocks, the same ones every time: fitting passes over them again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.data.blocks import ROWS, Block, Source, as_inputs, checked, distinct, draw, recut, sample_of
from gpclass.data.parquet import ParquetSource

__all__ = ["ArraySource", "Block", "BlockSource", "ParquetSource", "Source"]


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """Where row i of a block is."""

    start: int

    def __call__(self, i: int) -> str:
        return f"row {self.start + i}"


class ArraySource:
    """Rows of arrays, or of arrays mapped from disk (`numpy.memmap`), of which blocks are views.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of n labels
    weight : array of n weights, optional
    names : list of str, optional
        Of the columns.
    rows : int
        Rows of a block.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.data.sources import ArraySource
    >>> source = ArraySource(np.arange(10.0).reshape(5, 2), ["a", "b", "a", "a", "b"], rows=2)
    >>> [len(block) for block in source.blocks()], source.classes().tolist()
    ([2, 2, 1], ['a', 'b'])
    >>> len(source.sample(3, np.random.default_rng(0)))
    3
    """

    def __init__(
        self, X: Any, y: Any, weight: Any = None, *, names: list[str] | None = None, rows: int = ROWS
    ) -> None:
        self.X: Array = X if isinstance(X, np.ndarray) else np.asarray(X)
        self.y: Any = np.asarray(y)
        self.weight = None if weight is None else np.asarray(weight)
        self.names, self.rows = names, rows
        for what, length in (("y", len(self.y)), ("weight", None if weight is None else len(weight))):
            if length is not None and length != len(self.X):
                raise ValueError(f"{what} has {length} rows and X has {len(self.X)}, expected as many.")
        if self.X.ndim != 2 or not len(self.X):
            raise ValueError(f"X has shape {self.X.shape}, expected rows and columns.")
        self._classes: Any = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def n_columns(self) -> int:
        """Number of columns of X."""
        return int(self.X.shape[1])

    def blocks(self) -> Iterator[Block]:
        """Yield all rows in blocks."""
        for start in range(0, len(self.X), self.rows):
            yield self._block(slice(start, start + self.rows), _Row(start))

    def _block(self, rows: Any, where: Callable[[int], str]) -> Block:
        weight = None if self.weight is None else self.weight[rows]
        return checked(self.X[rows], self.y[rows], weight, where, self.names)

    def sample(self, n: int, rng: np.random.Generator) -> Block:
        """Return n random rows, reading no others."""
        positions = draw(self.n_rows, n, rng)
        return self._block(positions, lambda i: f"row {positions[i]}")

    def classes(self) -> Any:
        """Return the distinct labels."""
        if self._classes is None:
            self._classes = distinct(self.y[i : i + self.rows] for i in range(0, len(self.y), self.rows))
        return self._classes


@dataclass(frozen=True, slots=True, eq=False)
class _Described:
    n_rows: int
    n_columns: int
    classes: Any


class BlockSource:
    """Rows from anything that yields blocks (X, y) or (X, y, weight), and can be asked for them again.

    Parameters
    ----------
    factory : callable or iterable
        A function without arguments that returns an iterable of blocks, or an object that can be iterated
        over more than once, as a list. A generator is spent after one pass: give the function that makes it.
    names : list of str, optional
        Of the columns.
    rows : int
        Rows of the blocks made of those given.

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

    def __init__(
        self,
        factory: Callable[[], Iterable[Any]] | Iterable[Any],
        *,
        names: list[str] | None = None,
        rows: int = ROWS,
    ) -> None:
        if isinstance(factory, Iterator):
            raise ValueError(
                f"The blocks come from a {type(factory).__name__}, which can be passed over once only: give "
                "the function that makes it, or a list."
            )
        self.factory, self.names, self.rows = factory, names, rows
        self._described: _Described | None = None

    @property
    def described(self) -> _Described:
        """Numbers of rows and columns, and classes: a pass when first asked for."""
        if self._described is None:
            shape = [0, 0]

            def labels() -> Iterator[Any]:
                for block in self._given(None):
                    shape[0] += len(block)
                    shape[1] = block.X.shape[1]
                    yield block.y

            classes = distinct(labels())
            if not shape[0]:
                raise ValueError("The blocks have no rows, expected some.")
            self._described = _Described(shape[0], shape[1], classes)
        return self._described

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.described.n_rows

    @property
    def n_columns(self) -> int:
        """Number of columns of X."""
        return self.described.n_columns

    def blocks(self) -> Iterator[Block]:
        """Yield all rows in blocks."""
        return recut(self._given(self.described), self.rows)

    def sample(self, n: int, rng: np.random.Generator) -> Block:
        """Return n random rows."""
        return sample_of(self.blocks(), self.n_rows, n, rng)

    def classes(self) -> Any:
        """Return the distinct labels."""
        return self.described.classes

    def _given(self, described: _Described | None) -> Iterator[Block]:
        """Yield the blocks as they are given, checked, and as many rows as in the first pass."""
        n, columns = 0, None if described is None else described.n_columns
        for given in self.factory() if callable(self.factory) else self.factory:
            block = self._checked(given, _Row(n))
            if columns is not None and block.X.shape[1] != columns:
                raise ValueError(
                    f"The block at row {n} has {block.X.shape[1]} columns, and the first {columns}."
                )
            columns, n = block.X.shape[1], n + len(block)
            yield block
        if described is not None and n != described.n_rows:
            raise ValueError(
                f"The first pass over the blocks gave {described.n_rows} rows and this one {n}: they must be "
                "the same every time, so give a function that makes the generator anew, or a list."
            )

    def _checked(self, given: Any, where: _Row) -> Block:
        if isinstance(given, Block):
            given = (given.X, given.y, given.weight)
        if not isinstance(given, tuple | list) or len(given) not in (2, 3):
            raise ValueError(
                f"The block at {where(0)} is a {type(given).__name__}, expected (X, y) or (X, y, weight)."
            )
        X, y, weight = given if len(given) == 3 else (*given, None)
        X = as_inputs(X, where)
        if self.names is not None and len(self.names) != X.shape[1]:
            raise ValueError(
                f"The block at {where(0)} has {X.shape[1]} columns and there are {len(self.names)} names."
            )
        return checked(X, y, weight, where, self.names)
