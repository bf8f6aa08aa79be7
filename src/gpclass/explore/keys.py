"""What the keyboard does on the canvas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpclass.explore.state import State, add_point, delete_point, inside, move_point, select_point

STEP, LEAP = 0.01, 0.1  # of the width of the view
ARROWS = {"ArrowLeft": (-1, 0), "ArrowRight": (1, 0), "ArrowDown": (0, -1), "ArrowUp": (0, 1)}
HELP = (
    "Arrow keys move the cursor, or the selected point; with Shift, farther. Enter adds a point, 1 to 5 choose its "
    "class, N and P select the next and the previous point, Delete removes it, Escape deselects, Z undoes."
)


def press(state: State, key: str) -> State:
    """Return the state after a key, which is named as in browsers; "Shift+" before an arrow leaps."""
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
    if key.isdecimal() and 1 <= int(key) <= state.n_classes:
        return replace(state, drawn=int(key) - 1)
    return state


def _step(state: State, arrow: str, size: float) -> State:
    points = state.points
    direction = np.array(ARROWS[arrow][: points.n_columns], dtype=float)
    place = np.array(state.cursor) + size * direction * (points.view[:, 1] - points.view[:, 0])
    if state.selected is not None:
        return move_point(state, state.selected, place)
    return replace(state, cursor=tuple(inside(points, place).tolist()))


def _select(state: State, step: int) -> State:
    if not len(state.points):
        return state
    # From left to right, so that the order does not depend on when a point was added.
    order = np.lexsort(state.points.X.T[::-1]).tolist()
    at = order.index(state.selected) if state.selected in order else -1 if step > 0 else 0
    return select_point(state, order[(at + step) % len(order)])
