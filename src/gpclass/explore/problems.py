"""Initial states of the page: built-in problems, a table, or an empty canvas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpclass.datasets import problems
from gpclass.explore.state import PageState, Points, make_points

TABLE = "your table"
EMPTY = {"empty line": 1, "empty plane": 2}  # number of columns of each empty canvas


def start_names() -> list[str]:
    """Return the names of all initial states except tables."""
    return [*problems(), *EMPTY]


def start(name: str) -> PageState:
    """Return a built-in problem, or an empty canvas, as the initial state.

    Examples
    --------
    >>> start("interval").points.X.shape, start("empty plane").points.X.shape
    ((20, 1), (0, 2))
    """
    if name in EMPTY:
        d = EMPTY[name]
        points = make_points(np.empty((0, d)), [], view=[[0.0, 10.0]] * d)
        return PageState(points, origin=name, words=f"An {name}: click to add points of two classes or more.")
    if name not in problems():
        raise ValueError(f"There is no problem {name!r}: choose one of {', '.join(start_names())}.")
    split = problems()[name]()
    points = make_points(split.X, split.y, labels=tuple(map(str, np.unique(split.y_test))))
    return _of_variance_ten(points, name, f"The problem {name} of gpclass.datasets.")


def from_table(X: Any, y: Any, names: tuple[str, ...], words: str) -> PageState:
    """Return a table of one or two columns as the initial state, with a description in ``words``."""
    labels, codes = np.unique(np.asarray(y), return_inverse=True)
    points = make_points(X, codes, labels=tuple(map(str, labels)), names=tuple(names))
    return _of_variance_ten(points, TABLE, words)


def _of_variance_ten(points: Points, origin: str, words: str) -> PageState:
    """Return the state with a kernel variance of ten, at which the methods differ visibly."""
    state = PageState(points, origin=origin, words=words)
    return replace(state, theta=(float(np.log(10.0)), *state.theta[1:]))
