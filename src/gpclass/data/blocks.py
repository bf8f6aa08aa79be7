"""Blocks of rows: checked, joined and cut to one size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.protocols import Array, Index
from gpclass.data.rows import Rows
from gpclass.validation import Where, check_finite, check_weight_values

ROWS = 1 << 16  # in a block
MOST_CLASSES = 10_000


def concatenate(blocks: Sequence[Rows]) -> Rows:
    """Return the rows of several blocks as one; missing weights are one if other blocks have weights."""
    if len(blocks) == 1:
        return blocks[0]
    weight = None
    if any(block.weight is not None for block in blocks):
        weight = np.concatenate([np.ones(len(b)) if b.weight is None else b.weight for b in blocks])
    return Rows(np.concatenate([b.X for b in blocks]), np.concatenate([b.y for b in blocks]), weight)


def recut(blocks: Iterable[Rows], rows: int = ROWS) -> Iterator[Rows]:
    """Yield the same rows in blocks of exactly ``rows`` rows; the last block may be shorter.

    The blocks, and with them all totals to the last digit, then depend on the rows and not on how they came.
    """
    waiting: list[Rows] = []
    n = 0
    for block in blocks:
        start = 0
        while n + len(block) - start >= rows:
            stop = start + rows - n
            waiting.append(block.take(slice(start, stop)))
            whole = concatenate(waiting)
            waiting, n, start = [], 0, stop
            yield whole
        if start < len(block):
            waiting.append(block.take(slice(start, None)))
            n += len(block) - start
    if waiting:
        yield concatenate(waiting)


def divide(positions: Index, sizes: Sequence[int]) -> Iterator[tuple[int, Index]]:
    """Yield the number of each part that holds some of the sorted positions, and the positions within that part."""
    starts = np.cumsum([0, *sizes])
    cuts = np.searchsorted(positions, starts)
    for i in np.flatnonzero(np.diff(cuts)).tolist():
        yield i, positions[cuts[i] : cuts[i + 1]] - starts[i]


# --------------------------------------------------------------------------------- checks


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where the rows of a block are: their positions, or that of the first of them, and what they are in."""

    rows: int | Index
    inside: str = ""

    def __call__(self, i: int) -> str:
        """Return the place of row i in words, as in 'row 7 of a.parquet'."""
        row = self.rows + i if isinstance(self.rows, int) else self.rows[i]
        return f"row {row}" + (f" of {self.inside}" if self.inside else "")


def checked(X: Any, y: Any, weight: Any, where: Where, names: Sequence[str] | None = None) -> Rows:
    """Return a block of what was given, or raise an error that names the place of the first wrong value."""
    X, y = as_inputs(X, where), _one_column(np.asarray(y))
    if y.ndim != 1 or len(y) != len(X):
        raise ValueError(
            f"The block at {where(0)} has X of shape {X.shape} and y of shape {y.shape}, "
            "expected one label for each row."
        )
    check_finite(X, names, where)
    check_present(y, where)
    return Rows(X, y, None if weight is None else _as_weight(weight, len(X), where))


def as_inputs(X: Any, where: Where) -> Array:
    """Return X as a contiguous matrix in single or double precision; no copy if it already is one."""
    try:
        X = np.asarray(X)
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float32 if X.dtype == np.float16 else float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X at {where(0)} cannot be read as numbers: {error}.") from None
    if X.ndim != 2:
        raise ValueError(f"X at {where(0)} has shape {X.shape}, expected rows and columns.")
    out: Array = np.ascontiguousarray(X)
    return out


def check_present(y: Any, where: Where) -> None:
    """Raise if a label is missing."""
    if y.dtype.kind == "O":
        try:
            missing = np.asarray((y != y) | (y == None), dtype=bool)  # noqa: E711
        except TypeError:  # comparisons with pandas.NA are neither true nor false
            missing = np.array([type(label).__name__ == "NAType" for label in y])
    elif y.dtype.kind == "f":
        missing = np.isnan(y)
    else:
        return
    if missing.any():
        raise ValueError(f"The label of {where(int(np.argmax(missing)))} is missing: drop such rows first.")


def _as_weight(weight: Any, n: int, where: Where) -> Array:
    try:
        weight = _one_column(np.ascontiguousarray(weight, dtype=float))
    except (TypeError, ValueError):
        raise ValueError(f"The weights at {where(0)} cannot be read as numbers.") from None
    if weight.shape != (n,):
        raise ValueError(
            f"The block at {where(0)} has weights of shape {weight.shape}, expected ({n},): one for each row."
        )
    out: Array = weight
    check_weight_values(out, where)
    return out


def _one_column(values: Any) -> Any:
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def distinct(labels: Iterable[Any], what: str = "y") -> Any:
    """Return the distinct values in arrays of labels, sorted."""
    seen: Any = None
    for y in labels:
        try:
            new = np.unique(y)
            seen = new if seen is None else np.union1d(seen, new)
        except TypeError:
            kinds = ", ".join(sorted({type(label).__name__ for label in y}))
            raise ValueError(f"{what} has labels of the kinds {kinds}, expected one kind.") from None
        if len(seen) > MOST_CLASSES:
            raise ValueError(
                f"{what} has more than {MOST_CLASSES} distinct values, expected the labels of a few classes."
            )
    return np.empty(0) if seen is None else seen
