"""Blocks of rows: checking, joining and cutting them to one size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_array

from gpclass.core.protocols import Array
from gpclass.data.rows import Rows
from gpclass.validation import Where, check_finite, check_weight_values

ROWS = 1 << 16  # in a block
FEWEST = 100_000  # minimum number of rows of a task, if there are enough
MOST_TASKS = 512
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

    The blocks, and with them all totals to the last digit, then depend on the rows only, not on the original blocks.
    """
    waiting: list[Rows] = []
    n = 0  # rows in them
    for block in blocks:
        waiting.append(block)
        n += len(block)
        if n >= rows:
            joined, n = concatenate(waiting), n % rows
            waiting = [joined.take(slice(len(joined) - n, None))] if n else []
            for start in range(0, len(joined) - n, rows):
                yield joined.take(slice(start, start + rows))
    if n:
        yield concatenate(waiting)


def grouped(sizes: Sequence[int], rows: int | None) -> list[list[int]]:
    """Return groups of neighbouring parts with at least ``rows`` rows each, by default those of a task of Dask."""
    least = max(FEWEST, -(-sum(sizes) // MOST_TASKS)) if rows is None else rows
    group = (np.cumsum(sizes) - sizes) // least  # assigned by the position of the first row
    return [np.flatnonzero(group == number).tolist() for number in np.unique(group)]


def place(start: int, inside: str = "") -> Where:
    """Return a function that names the position of a row, as in 'row 7 of a.parquet'; ``start`` is the first row."""
    return lambda i: f"row {start + i}" + (f" of {inside}" if inside else "")


def checked(X: Any, y: Any, weight: Any, where: Where, names: Sequence[str] | None = None) -> Rows:
    """Return the given arrays as a block, or raise an error that names the position of the first wrong value."""
    try:
        kinds = [np.float64, np.float32]
        X = check_array(X, dtype=kinds, order="C", ensure_all_finite=False, ensure_min_samples=0)
        y, weight = _column(y), None if weight is None else _column(weight).astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The block at {where(0)} cannot be read: {error}") from None
    for what, given in (("y", y), ("weights", weight)):
        if given is not None and given.shape != X.shape[:1]:
            raise ValueError(
                f"The block at {where(0)} has X of shape {X.shape} and {what} of shape {given.shape}, "
                "expected one for each row."
            )
    check_finite(X, names, where)
    _check_present(y, where)
    if weight is not None:
        check_weight_values(weight, where)
    return Rows(X, y, weight)


def _column(values: Any) -> Any:
    values = np.asarray(values)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _check_present(y: Array, where: Where) -> None:
    if y.dtype.kind not in "fO":
        return
    # A missing label is None, pandas.NA, or NaN, which differs from itself.
    missing = [label is None or type(label).__name__ == "NAType" or label != label for label in y.tolist()]
    if any(missing):
        raise ValueError(f"The label of {where(missing.index(True))} is missing: drop such rows first.")


def distinct(labels: Iterable[Any]) -> Any:
    """Return the distinct values in arrays of labels, sorted."""
    seen: Any = None
    for y in labels:
        try:
            new = np.unique(y)
            seen = new if seen is None else np.union1d(seen, new)
        except TypeError:
            kinds = ", ".join(sorted({type(label).__name__ for label in y}))
            raise ValueError(f"y has labels of the kinds {kinds}, expected one kind.") from None
        if len(seen) > MOST_CLASSES:
            raise ValueError(
                f"y has more than {MOST_CLASSES} distinct values, expected the labels of a few classes."
            )
    return np.empty(0) if seen is None else seen
