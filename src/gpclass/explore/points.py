"""The labelled points on the canvas: a record, and what one can do with them."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpclass.core.protocols import Array

MOST_CLASSES = 5
MOST_POINTS = 500  # more would make the picture follow slowly


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Inputs of one or two columns, their classes by position, and the part of the space that is shown.

    Parameters
    ----------
    X : array of shape (n, 1) or (n, 2)
    codes : array of shape (n,) of int
        Positions in ``labels``.
    view : array of shape (1, 2) or (2, 2)
        The lowest and the highest value shown of each column.
    labels : tuple of str
        Names of two to five classes; a class need not have points.
    names : tuple of str
        Names of the columns.
    """

    X: Array
    codes: NDArray[np.intp]
    view: Array
    labels: tuple[str, ...] = ("0", "1")
    names: tuple[str, ...] = ("x",)

    @property
    def n_columns(self) -> int:
        """One or two."""
        return int(self.X.shape[1])

    def __len__(self) -> int:
        return len(self.X)

    def present(self) -> list[int]:
        """Return the positions of the classes that have points."""
        return [int(code) for code in np.unique(self.codes)]


def make_points(X: ArrayLike, codes: ArrayLike, *, view: Any = None, **names: tuple[str, ...]) -> Points:
    """Return points with a view that shows all of them with a margin.

    Examples
    --------
    >>> make_points([[0.0], [10.0]], [0, 1]).view
    array([[-1., 11.]])
    """
    rows, classes = np.array(X, dtype=float), np.array(codes, dtype=np.intp)
    if view is None:
        low, high = rows.min(axis=0), rows.max(axis=0)
        margin = 0.1 * np.where(high > low, high - low, 1.0)
        view = np.column_stack([low - margin, high + margin])
    columns = ("x",) if rows.shape[1] == 1 else ("x₁", "x₂")
    return Points(rows, classes, np.array(view, dtype=float), **{"names": columns, **names})


def add(points: Points, x: ArrayLike, code: int) -> Points:
    """Return the points with one more, which has to be a class that there is.

    Examples
    --------
    >>> points = add(make_points([[0.0], [10.0]], [0, 1]), [4.0], 1)
    >>> points.X.ravel(), points.codes
    (array([ 0., 10.,  4.]), array([0, 1, 1]))
    """
    if len(points) >= MOST_POINTS:
        raise ValueError(
            f"There are {len(points)} points already, the most that this page takes: delete some."
        )
    if not 0 <= code < len(points.labels):
        raise ValueError(f"There is no class number {code + 1}: there are {len(points.labels)} classes.")
    X = np.concatenate([points.X, inside(points, x)[None]])
    return replace(points, X=X, codes=np.append(points.codes, code))


def move(points: Points, i: int, x: ArrayLike) -> Points:
    """Return the points with one of them elsewhere, but within the view."""
    X = points.X.copy()
    X[i] = inside(points, x)
    return replace(points, X=X)


def delete(points: Points, i: int) -> Points:
    """Return the points without one of them."""
    return replace(points, X=np.delete(points.X, i, axis=0), codes=np.delete(points.codes, i))


def clear(points: Points) -> Points:
    """Return a canvas without points."""
    return replace(points, X=points.X[:0], codes=points.codes[:0])


def inside(points: Points, x: ArrayLike) -> Array:
    """Return the place in the view that is nearest to x, of which further coordinates are ignored."""
    place = np.asarray(x, dtype=float)[: points.n_columns]
    return np.clip(np.where(np.isfinite(place), place, points.view.mean(axis=1)), *points.view.T)


def nearest(points: Points, x: ArrayLike) -> tuple[int | None, float]:
    """Return the point that is nearest to x, and its distance in widths of the view; None without points."""
    if not len(points):
        return None, np.inf
    widths = points.view[:, 1] - points.view[:, 0]
    apart = (points.X - np.asarray(x, dtype=float)[: points.n_columns]) / widths
    distances = np.sqrt((apart**2).sum(axis=1))
    i = int(distances.argmin())
    return i, float(distances[i])


def with_classes(points: Points, n_classes: int) -> Points:
    """Return the points with another number of classes; points of classes that are gone go, too."""
    if not 2 <= n_classes <= MOST_CLASSES:
        raise ValueError(f"{n_classes} classes are not possible here, expected two to {MOST_CLASSES}.")
    known = points.labels[:n_classes]
    labels = known + tuple(str(i) for i in range(len(known), n_classes))
    kept = points.codes < n_classes
    return replace(points, X=points.X[kept], codes=points.codes[kept], labels=labels)


def to_csv(points: Points) -> str:
    """Return the points as a table with a header, in full precision.

    Examples
    --------
    >>> print(to_csv(make_points([[0.0], [10.0]], [0, 1])))
    x,class
    0.0,0
    10.0,1
    <BLANKLINE>
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*points.names, "class"])
    for x, code in zip(points.X.tolist(), points.codes, strict=True):
        writer.writerow([*(repr(value) for value in x), points.labels[code]])
    return file.getvalue()
