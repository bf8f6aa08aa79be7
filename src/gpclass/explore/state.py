"""The state of the page, as a value: points, model and selection. Each action returns another state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpclass.core.protocols import Array
from gpclass.datasets import problems
from gpclass.kernels import move, named_kernel
from gpclass.plotting.base import hyperparameter_names

MOST_CLASSES = 5
TABLE = "your table"
EMPTY = {"empty line": 1, "empty plane": 2}  # number of columns of each empty canvas
SIDE = 12  # rows across the view, which determine the scales of kernels
NEAR = 0.025  # distance from a marker, in widths of the figure, within which a click selects it
HEIGHT = 5.0  # height of a figure of probabilities, in the same unit
DEFAULT = "default"  # name of the kernel that the classifier chooses by the evidence
PARTS = ("", " of the bias", " of the linear part")  # of that kernel, each with a variance
DIALS = [f"dial{k}" for k in range(7)]  # names of hyperparameters; no kernel here has more than seven
LN10 = float(np.log(10.0))


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Inputs of one or two columns, their classes, and the part of the input space that is shown."""

    X: Array  # (n, n_columns)
    codes: NDArray[np.intp]  # positions in ``labels``
    view: Array  # (n_columns, 2): the lowest and the highest value shown of each column
    labels: tuple[str, ...] = ("0", "1")  # names of two to five classes, with or without points
    names: tuple[str, ...] = ("x",)  # names of the columns
    levels: tuple[tuple[str, ...], ...] = ((), ())  # of each column; a category has positions of levels in X

    @property
    def n_columns(self) -> int:
        """One or two."""
        return int(self.X.shape[1])

    @property
    def present(self) -> list[int]:
        """Positions of the classes that have points."""
        return [int(code) for code in np.unique(self.codes)]

    @property
    def markers(self) -> Array:
        """Where the points are drawn, (n, 2): on a line at 0 and 1, or in rows for three classes or more.

        Points of one level are drawn beside each other, at multiples of the golden ratio.
        """
        aside = 0.7 * (0.618034 * np.arange(len(self)) % 1.0 - 0.5)
        places = self.X + aside[:, None] * (self.widths > 1)
        heights = self.codes if len(self.labels) == 2 else 1.0 - 0.055 * self.codes
        return np.column_stack([places, heights])[:, :2]

    @property
    def widths(self) -> NDArray[np.intp]:
        """Number of coded columns of each column."""
        return np.array([max(1, len(levels)) for levels in self.levels[: self.n_columns]])

    def inside(self, x: ArrayLike) -> Array:
        """Return the nearest places in the view, at levels of categories; further coordinates are ignored."""
        place, (low, high) = np.asarray(x, dtype=float)[..., : self.n_columns], self.view.T
        levels = np.rint(np.clip(place, low + 0.5, high - 0.5))
        return np.asarray(np.where(self.widths > 1, levels, np.clip(place, low, high)))

    def code(self, X: Array) -> Array:
        """Return rows as kernels take them: a level is √½ in a column of its own, as in `gpclass.tables.Encoder`."""
        columns = zip(self.inside(X).T, self.widths, strict=True)
        return np.hstack([np.eye(k)[x.astype(int)] / np.sqrt(2) if k > 1 else x[:, None] for x, k in columns])

    def __len__(self) -> int:
        return len(self.X)


def make_points(X: ArrayLike, codes: ArrayLike, *, view: Any = None, **names: Any) -> Points:
    """Return points with a view that shows all of them with a margin."""
    rows, classes = np.array(X, dtype=float), np.array(codes, dtype=np.intp)
    if view is None:
        low, high = rows.min(axis=0), rows.max(axis=0)
        margin = 0.1 * np.where(high > low, high - low, 1.0)
        view = np.column_stack([low - margin, high + margin])
        ends = zip(names.get("levels", ((), ())), view, strict=False)
        view = [(-0.5, len(levels) - 0.5) if levels else each for levels, each in ends]
    columns = ("x",) if rows.shape[1] == 1 else ("x₁", "x₂")
    return Points(rows, classes, np.array(view, dtype=float), **{"names": columns, **names})


@dataclass(frozen=True, slots=True, eq=False)
class PageState:
    """Everything that the page shows follows from this record.

    Examples
    --------
    >>> state = PageState(make_points([[0.0], [10.0]], [0, 1]))
    >>> click(state, [5.0, 0.5]).points.X.ravel(), click(state, [10.1, 0.98]).selected
    (array([ 0., 10.,  5.]), 1)
    """

    points: Points
    family: str = "rbf"  # the name of a kernel, or `DEFAULT`
    kernel: Any = None  # that kernel at its hyperparameters; None if the classifier has not chosen it yet
    likelihood: str = "probit"  # as of `GaussianProcessClassifier`
    method: str = "vi"  # its ``inference``
    other: str = ""  # the method to compare with; empty for none
    drawn: int = 1  # class of points that are added
    selected: int | None = None  # the point that was clicked last
    large: bool = False  # one picture only, with large type
    origin: str = ""  # name and description of the initial state
    words: str = ""

    def __post_init__(self) -> None:
        if self.kernel is None and self.family != DEFAULT:
            object.__setattr__(self, "kernel", initial_kernel(self.family, self.points))

    @property
    def n_classes(self) -> int:
        """Number of classes, with or without points."""
        return len(self.points.labels)

    @property
    def theta(self) -> list[float]:
        """Natural logarithms of the hyperparameters, if there is a kernel."""
        return [] if self.kernel is None else list(map(float, self.kernel.theta))


def initial_kernel(family: str, points: Points) -> Any:
    """Return a named kernel with initial scales and bounds derived from the middle half of the visible range.

    They do not depend on the points, so that a point can be moved while everything else is fixed.
    """
    low, high = points.view.T
    rows = np.linspace(0.75 * low + 0.25 * high, 0.25 * low + 0.75 * high, SIDE)
    rows = np.where(points.widths > 1, np.arange(SIDE)[:, None] % points.widths, rows)
    groups = np.repeat(np.arange(points.n_columns), points.widths) if any(points.levels) else None
    return named_kernel(family, points.code(rows), groups=groups)


# ------------------------------------------------------------------------------------ starts


def start_names() -> list[str]:
    """Return the names of all initial states except tables."""
    return [*problems(), *EMPTY]


def start(name: str) -> PageState:
    """Return a built-in problem, or an empty canvas, as the initial state."""
    if name in EMPTY:
        d = EMPTY[name]
        points = make_points(np.empty((0, d)), [], view=[[0.0, 10.0]] * d)
        return PageState(points, origin=name, words=f"An {name}: click to add points of two classes or more.")
    if name not in problems():
        raise ValueError(f"There is no problem {name!r}: choose one of {', '.join(start_names())}.")
    split = problems()[name]()
    points = make_points(split.X, split.y, labels=tuple(map(str, np.unique(split.y_test))))
    return PageState(points, DEFAULT, origin=name, words=f"The problem {name} of gpclass.datasets.")


def from_table(X: Any, y: Any, names: tuple[str, ...], words: str, levels: Any = ((), ())) -> PageState:
    """Return a table of one or two columns as the initial state, with a description in ``words``.

    A category has its ``levels`` there, and positions of levels in X.
    """
    labels, codes = np.unique(np.asarray(y), return_inverse=True)
    points = make_points(X, codes, labels=tuple(map(str, labels)), names=tuple(names), levels=levels)
    return PageState(points, DEFAULT, origin=TABLE, words=words)


# ------------------------------------------------------------------------------------ points


def nearest(points: Points, place: Any) -> int | None:
    """Return the point whose marker is at a place of the figure (x, y), or None."""
    low, high = points.view.T
    size = [*(high - low), HEIGHT][:2]
    distances = np.linalg.norm((points.markers - place) / size, axis=1)
    return int(distances.argmin()) if (distances <= NEAR).any() else None


def click(state: PageState, place: ArrayLike) -> PageState:
    """Return the state with the point at a position of the figure selected, or with a new point of the class chosen."""
    points, i = state.points, nearest(state.points, place)
    if i is not None:
        return replace(state, selected=i)
    X, codes = np.concatenate([points.X, points.inside(place)[None]]), np.append(points.codes, state.drawn)
    return _with_points(state, X, codes, selected=len(points))


def move_point(state: PageState, i: int, x: ArrayLike) -> PageState:
    """Return the state with a point moved within the view and selected."""
    X = state.points.X.copy()
    X[i] = state.points.inside(x)
    return _with_points(state, X, state.points.codes, selected=i)


def delete_point(state: PageState) -> PageState:
    """Return the state without the selected point, if there is one."""
    kept = np.arange(len(state.points)) != state.selected
    return _with_points(state, state.points.X[kept], state.points.codes[kept])


def _with_points(state: PageState, X: Array, codes: Any, selected: int | None = None) -> PageState:
    return replace(state, points=replace(state.points, X=X, codes=codes), selected=selected)


# ------------------------------------------------------------------------------------- model


def change(state: PageState, name: str, value: Any) -> PageState:
    """Return the state with another value of a field; points of classes that no longer exist are deleted.

    The name may also be one of `DIALS`, for the decimal logarithm of a hyperparameter.
    """
    if name in DIALS:
        theta = np.array(state.theta)
        theta[DIALS.index(name)] = value * LN10
        return set_theta(state, theta)
    if name == "n_classes":
        labels = (*state.points.labels, *map(str, range(state.n_classes, int(value))))[: int(value)]
        kept = state.points.codes < len(labels)
        state = _with_points(state, state.points.X[kept], state.points.codes[kept])
        points, drawn = replace(state.points, labels=labels), min(state.drawn, len(labels) - 1)
        return replace(state, points=points, drawn=drawn)
    kernel = None if name == "family" else state.kernel
    return replace(state, **{"kernel": kernel, name: value})


def dials(state: PageState) -> list[tuple[str, float, float]]:
    """Return the name of each hyperparameter and the range of its natural logarithm, in the order of theta."""
    if state.kernel is None:
        return []
    ends = [name.split("__")[-1].replace("_", " ") for name in hyperparameter_names(state.kernel)]
    variances = [f"variance{PARTS[ends[:k].count(end)]}" for k, end in enumerate(ends)]
    names = [end.replace("constant value", name) for end, name in zip(ends, variances, strict=True)]
    for i, column in enumerate(state.points.names):
        names = [name.replace(f"[{i}]", f" of {column}") for name in names]
    return [(name, *ends) for name, ends in zip(names, state.kernel.bounds.tolist(), strict=True)]


def set_theta(state: PageState, theta: ArrayLike) -> PageState:
    """Return the state with these hyperparameters, clipped to their bounds."""
    return replace(state, kernel=move(state.kernel, np.clip(theta, *state.kernel.bounds.T)))
