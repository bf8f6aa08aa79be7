"""Decisions of least expected cost over a grid, and where they change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpclass.core.protocols import Array
from gpclass.decision import bayes_decision
from gpclass.explore.state import State
from gpclass.plotting.contour import decision_margins


def decisions(state: State, proba: Array) -> NDArray[np.intp]:
    """Return the class of least expected cost for each row of probabilities; -1 where it is left undecided."""
    flat = proba.reshape(-1, proba.shape[-1])
    return bayes_decision(flat, state.cost_matrix, reject=state.reject).reshape(proba.shape[:-1])


def margins(state: State, proba: Array) -> Array:
    """Return by how much each decision is better than the best other one, (..., n_decisions).

    The boundaries are where margins vanish. The last decision is to leave the case undecided, if there is that option.

    Examples
    --------
    >>> from gpclass.explore.points import make_points
    >>> state = State(make_points([[0.0], [10.0]], [0, 1]), cost=3.0)
    >>> margins(state, np.array([[0.75, 0.25], [0.5, 0.5]])).round(2)
    array([[ 0.,  0.],
           [-1.,  1.]])
    """
    return decision_margins(proba, state.cost_matrix, state.reject)


def crossings(x: Array, margin: Array) -> list[float]:
    """Return where any margin along a line changes its sign, by linear interpolation, in order."""
    i, k = np.nonzero(np.diff(np.sign(margin), axis=0))
    a, b = margin[i, k], margin[i + 1, k]
    places = np.sort(x[i] + (x[i + 1] - x[i]) * a / (a - b))
    new = np.diff(places, prepend=-np.inf) > 1e-9 * (x[-1] - x[0])  # two decisions meet, and both change
    return [float(place) for place in places[new]]


def outlines(x: Array, y: Array, margin: Array) -> tuple[list[Any], list[Any]]:
    """Return the lines where any margin over a grid of rows vanishes: lists of x and of y coordinates."""
    from contourpy import contour_generator

    fields = [values.reshape(len(y), len(x)) for values in margin.T]
    lines = [line for field in fields for line in contour_generator(x=x, y=y, z=field).lines(0.0)]
    return [line[:, 0] for line in lines], [line[:, 1] for line in lines]
