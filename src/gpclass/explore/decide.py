"""Decisions of least expected cost over a grid, and where they change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpclass.core.protocols import Array
from gpclass.decision import bayes_decision
from gpclass.explore.state import State


def decisions(state: State, proba: Array) -> NDArray[np.intp]:
    """Return the class of least expected cost for each row of probabilities; -1 where it is left undecided."""
    flat = proba.reshape(-1, proba.shape[-1])
    return bayes_decision(flat, state.cost_matrix, reject=state.reject).reshape(proba.shape[:-1])


def margins(state: State, proba: Array) -> Array:
    """Return by how much each decision is better than the best other one, (..., n_decisions).

    The decision is the one whose margin is positive, so the boundaries are where margins vanish. The last decision
    is to leave the case undecided, if there is that option.

    Examples
    --------
    >>> from gpclass.explore.points import make_points
    >>> state = State(make_points([[0.0], [10.0]], [0, 1]), cost=3.0)
    >>> margins(state, np.array([[0.75, 0.25], [0.5, 0.5]])).round(2)
    array([[ 0.,  0.],
           [-1.,  1.]])
    """
    C = 1.0 - np.eye(state.n_classes) if state.cost_matrix is None else state.cost_matrix
    expected = proba @ C
    if state.reject is not None:
        expected = np.concatenate([expected, np.full((*expected.shape[:-1], 1), state.reject)], axis=-1)
    order = np.sort(expected, axis=-1)
    best, second = order[..., :1], order[..., 1:2]
    out: Array = np.where(expected == best, second, best) - expected
    return out


def crossings(x: Array, margin: Array) -> list[float]:
    """Return where any margin along a line changes its sign, by linear interpolation, in order."""
    found: list[float] = []
    for values in margin.T:
        at = np.flatnonzero(np.diff(np.sign(values)) != 0)
        for i in at:
            a, b = values[i], values[i + 1]
            found.append(float(x[i] + (x[i + 1] - x[i]) * a / (a - b)))
    tiny = 1e-9 * (x[-1] - x[0])
    out: list[float] = []
    for place in sorted(found):
        if not out or place - out[-1] > tiny:  # two decisions meet there, and both change
            out.append(place)
    return out


def outlines(x: Array, y: Array, field: Array, levels: list[float]) -> tuple[list[Any], list[Any]]:
    """Return the level lines of a field over a grid, (len(y), len(x)): lists of x and of y coordinates."""
    from contourpy import contour_generator

    generator = contour_generator(x=x, y=y, z=field)
    lines = [line for level in levels for line in generator.lines(level)]
    return [line[:, 0] for line in lines], [line[:, 1] for line in lines]
