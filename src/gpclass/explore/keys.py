"""What the keyboard does on the canvas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpclass.explore import points as edit
from gpclass.explore.state import State, add_point, delete_point, move_point, select_class

STEP, LEAP = 0.01, 0.1  # of the width of the view
ARROWS = {"ArrowLeft": (-1, 0), "ArrowRight": (1, 0), "ArrowDown": (0, -1), "ArrowUp": (0, 1)}
HELP = (
    "Arrow keys move the cursor, or the selected point; with Shift, farther. Enter adds a point, 1 to 5 choose its "
    "class, N and P select the next and the previous point, Delete removes it, Escape deselects, Z undoes."
)


def press(state: State, key: str) -> State:
    """Return the state after a key, which is named as in browsers; "Shift+" before an arrow leaps.

    Examples
    --------
    >>> from gpclass.explore.points import make_points
    >>> state = State(make_points([[0.0], [10.0]], [0, 1]), cursor=(5.0,))
    >>> moved = press(press(state, "ArrowRight"), "Enter")
    >>> moved.points.X.ravel().round(2), press(moved, "Delete").points.X.ravel()
    (array([ 0. , 10. ,  5.12]), array([ 0., 10.]))
    """
    arrow = key.removeprefix("Shift+")
    if arrow in ARROWS:
        return _step(state, arrow, LEAP if arrow != key else STEP)
    if key in ("Enter", " "):
        return add_point(state, state.cursor, state.drawn)
    if key in ("Delete", "Backspace"):
        return delete_point(state)
    if key == "Escape":
        return replace(state, selected=None)
    if key.lower() in ("n", "p"):
        return _select(state, 1 if key.lower() == "n" else -1)
    return select_class(state, int(key) - 1) if key in {"1", "2", "3", "4", "5"} else state


def _step(state: State, arrow: str, size: float) -> State:
    points = state.points
    direction = np.array(ARROWS[arrow][: points.n_columns], dtype=float)
    place = np.array(state.cursor) + size * direction * (points.view[:, 1] - points.view[:, 0])
    if state.selected is not None:
        return move_point(state, state.selected, place)
    return replace(state, cursor=tuple(edit.inside(points, place).tolist()))


def _select(state: State, step: int) -> State:
    n = len(state.points)
    if not n:
        return state
    # From left to right, so that the order does not depend on when a point was added.
    order = np.lexsort(state.points.X.T[::-1]).tolist()
    at = order.index(state.selected) if state.selected in order else -1 if step > 0 else 0
    i = order[(at + step) % n]
    return replace(state, selected=i, cursor=tuple(state.points.X[i].tolist()))
