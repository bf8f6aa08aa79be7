"""Rows in blocks: what every source of data yields, whatever it is kept in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gpclass.core.protocols import Array, Index

ROWS = 1 << 16  # of a block
HEAVIEST = 1e12  # a weight beyond this leaves no digits to the others
MOST_CLASSES = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some rows: inputs (n, d) contiguous in single or double precision, labels as given, weights or None."""

    X: Array
    y: Any
    weight: Array | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.X)

    def rows(self, which: Any) -> Block:
        """Return some of the rows; a view where ``which`` is a slice."""
        return Block(self.X[which], self.y[which], None if self.weight is None else self.weight[which])


class Source(Protocol):
    """Labelled rows that can be passed over again and again."""

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""

    @property
    def n_columns(self) -> int:
        """Return the number of columns of X."""

    @property
    def names(self) -> list[str] | None:
        """Return the names of the columns of X, if they have any."""

    def blocks(self) -> Iterator[Block]:
        """Yield all rows, in the same blocks and the same order every time."""

    def sample(self, n: int, rng: np.random.Generator) -> Block:
        """Return n different rows, each as likely as any other, in random order; all if there are fewer."""

    def classes(self) -> Any:
        """Return the distinct labels, sorted."""


# --------------------------------------------------------------------------------- blocks of blocks


def concatenate(blocks: list[Block]) -> Block:
    """Return the rows of several blocks as one; rows without a weight count as one if others have one."""
    if len(blocks) == 1:
        return blocks[0]
    weight = None
    if any(block.weight is not None for block in blocks):
        weight = np.concatenate([np.ones(len(b)) if b.weight is None else b.weight for b in blocks])
    return Block(np.concatenate([b.X for b in blocks]), np.concatenate([b.y for b in blocks]), weight)


def recut(blocks: Iterable[Block], rows: int = ROWS) -> Iterator[Block]:
    """Yield the same rows in blocks of exactly ``rows`` each, but for the last.

    The blocks, and with them all sums to the last digit, then depend on the rows and not on how they came.
    """
    waiting: list[Block] = []
    n = 0
    for block in blocks:
        start = 0
        while n + len(block) - start >= rows:
            stop = start + rows - n
            waiting.append(block.rows(slice(start, stop)))
            whole = concatenate(waiting)
            waiting, n, start = [], 0, stop
            yield whole
        if start < len(block):
            waiting.append(block.rows(slice(start, None)))
            n += len(block) - start
    if waiting:
        yield concatenate(waiting)


def draw(n_rows: int, n: int, rng: np.random.Generator) -> Index:
    """Return the positions of the rows of a sample: the same for every source of so many rows."""
    return rng.choice(n_rows, size=min(n, n_rows), replace=False)


def pick(blocks: Iterable[Block], positions: Index, start: int = 0) -> Block | None:
    """Return the rows at sorted positions, of which the first block's first is ``start``; None if none is."""
    found, place = [], 0
    for block in blocks:
        stop = int(np.searchsorted(positions, start + len(block)))
        if stop > place:
            found.append(block.rows(positions[place:stop] - start))
        start, place = start + len(block), stop
        if place == len(positions):
            break
    return concatenate(found) if found else None


def sample_of(blocks: Iterable[Block], n_rows: int, n: int, rng: np.random.Generator) -> Block:
    """Return a sample in one pass, holding no more than it and a block."""
    positions = draw(n_rows, n, rng)
    block = pick(blocks, np.sort(positions))
    assert block is not None
    return in_order(block, positions)


def in_order(block: Block, positions: Index) -> Block:
    """Return the rows, given by rising position, in the order of ``positions``."""
    return block.rows(np.argsort(np.argsort(positions)))


# --------------------------------------------------------------------------------- labels


def distinct(labels: Iterable[Any], what: str = "y") -> Any:
    """Return the distinct values of arrays of labels, sorted."""
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


# --------------------------------------------------------------------------------- checks


def checked(
    X: Any,
    y: Any,
    weight: Any,
    where: Callable[[int], str],
    names: list[str] | None = None,
) -> Block:
    """Return a block of what was given, or raise with the place of the first wrong value.

    ``where`` says where row i of the block is, as in 'row 7 of a.parquet'.
    """
    X, y = as_inputs(X, where), np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or len(y) != len(X):
        raise ValueError(
            f"The block at {where(0)} has X of shape {X.shape} and y of shape {y.shape}, "
            "expected one label for each row."
        )
    _check_finite(X, where, names)
    _check_labels(y, where)
    return Block(X, y, None if weight is None else _checked_weight(weight, len(X), where))


def as_inputs(X: Any, where: Callable[[int], str]) -> Array:
    """Return X as a contiguous matrix in single or double precision; what already is one as it is."""
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


def _check_finite(X: Array, where: Callable[[int], str], names: list[str] | None) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        total = X.sum()  # finite when all is well, and needs no array of flags
    if np.isfinite(total) or np.isfinite(X).all():
        return
    row, column = np.argwhere(~np.isfinite(X))[0]
    what = "NaN" if np.isnan(X[row, column]) else "infinity (inf)"
    name = column if names is None else repr(names[column])
    raise ValueError(
        f"X contains {what} in {where(int(row))}, column {name}: drop or impute such rows before."
    )


def _check_labels(y: Any, where: Callable[[int], str]) -> None:
    if y.dtype.kind == "O":
        try:
            missing = np.asarray((y != y) | (y == None), dtype=bool)  # noqa: E711
        except TypeError:  # of pandas.NA nothing is true
            missing = np.array([type(label).__name__ == "NAType" for label in y])
    elif y.dtype.kind == "f":
        missing = np.isnan(y)
    else:
        return
    if missing.any():
        raise ValueError(f"The label of {where(int(np.argmax(missing)))} is missing: drop such rows before.")


def _checked_weight(weight: Any, n: int, where: Callable[[int], str]) -> Array:
    try:
        weight = np.ascontiguousarray(weight, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"The weights at {where(0)} cannot be read as numbers.") from None
    if weight.ndim == 2 and weight.shape[1] == 1:
        weight = weight[:, 0]
    if weight.shape != (n,):
        raise ValueError(
            f"The block at {where(0)} has weights of shape {weight.shape}, expected ({n},): one for each row."
        )
    fine = (weight >= 0.0) & (weight < HEAVIEST)
    if not fine.all():
        row = int(np.argmin(fine))
        raise ValueError(
            f"The weight of {where(row)} is {weight[row]}, expected a number from 0 to {HEAVIEST:.0e}."
        )
    out: Array = weight
    return out
