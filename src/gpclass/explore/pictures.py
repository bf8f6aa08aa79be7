"""What a fit believes, as numbers to draw: curves over one column, or maps over two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, ndtri

from gpclass.core.protocols import Array
from gpclass.explore.decide import crossings, decisions, margins, outlines
from gpclass.explore.fit import Fit
from gpclass.explore.state import State

LEVEL = 0.95
BAND = float(ndtri(0.5 + 0.5 * LEVEL))
LINE, PLANE, PLANE_OF_CLASSES = 201, 48, 36  # points along a side of the grid


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Latent functions and probabilities over one column, each with a credible band of 95 %.

    With two classes there is one curve, that of the second class with points; with more there is one for each.
    ``low`` and ``high`` may be None for probabilities, where the band would take long.
    """

    x: Array
    mean: Array  # (n, n_curves)
    std: Array
    proba: Array
    low: Array | None
    high: Array | None
    shown: tuple[int, ...]  # classes of the curves
    decision: NDArray[np.intp]
    boundaries: list[float]


@dataclass(frozen=True, slots=True, eq=False)
class Maps:
    """Probabilities and uncertainty over a grid of two columns; rows are values of the second one."""

    x: Array
    y: Array
    proba: Array  # (rows, columns, n_classes)
    uncertainty: Array
    measure: str  # what the uncertainty is
    shown: tuple[int, ...]
    decision: NDArray[np.intp]
    boundary: tuple[list[Any], list[Any]]


Picture = Curves | Maps


def grid(state: State) -> tuple[list[Array], Array]:
    """Return the sides of the grid over the view, and its points as rows."""
    two = len(state.points.present()) <= 2
    size = LINE if state.points.n_columns == 1 else PLANE if two else PLANE_OF_CLASSES
    sides = [np.linspace(low, high, size) for low, high in state.points.view]
    return sides, np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, len(sides))


def picture(state: State, fitted: Fit) -> Picture:
    """Return what a fit believes over the view of a state.

    Examples
    --------
    >>> from gpclass.explore.fit import fit
    >>> from gpclass.explore.points import make_points
    >>> state = State(make_points([[0.0], [10.0]], [0, 1]))
    >>> curves = picture(state, fit(state))
    >>> curves.proba.shape, [round(x, 6) for x in curves.boundaries]
    ((201, 1), [5.0])
    """
    return curves(state, fitted) if state.points.n_columns == 1 else maps(state, fitted)


def curves(state: State, fitted: Fit) -> Curves:
    """Return latent functions and probabilities over a line."""
    (x,), rows = grid(state)
    proba = fitted.proba(rows)
    shown = tuple(fitted.present[1:] if has_link(fitted) else fitted.present)
    mean, std = _latent(fitted, rows)
    low, high = _bands(fitted, rows)
    margin = margins(state, proba)
    return Curves(
        x, mean, std, proba[:, list(shown)], low, high, shown, decisions(state, proba), crossings(x, margin)
    )


def maps(state: State, fitted: Fit) -> Maps:
    """Return probabilities and uncertainty over a plane."""
    (x, y), rows = grid(state)
    shape = (len(y), len(x))
    proba = fitted.proba(rows)
    field, measure = _uncertainty(fitted, rows, proba)
    boundary, shown = outlines(x, y, margins(state, proba)), tuple(fitted.present)
    proba = proba.reshape(*shape, -1)
    return Maps(x, y, proba, field.reshape(shape), measure, shown, decisions(state, proba), boundary)


def _latent(fitted: Fit, rows: Array) -> tuple[Array, Array]:
    """Return means and standard deviations of the latent functions, one column per curve."""
    if not has_link(fitted):
        mean, std = fitted.clf.predict_latent(rows, return_std=True)
        return mean, std
    mean, var = fitted.clf.latent_mean_and_variance(rows)
    return mean[:, None], np.sqrt(var)[:, None]


def has_link(fitted: Fit) -> bool:
    """Return whether there are two classes, so that intervals of the probability are exact."""
    return len(fitted.present) == 2


def _bands(fitted: Fit, rows: Array) -> tuple[Array | None, Array | None]:
    if not (has_link(fitted) and fitted.clf.base_estimator_.models[0].is_of_labels):
        return None, None
    low, high = fitted.clf.predict_interval(rows, LEVEL)
    return low[:, None], high[:, None]


def _uncertainty(fitted: Fit, rows: Array, proba: Array) -> tuple[Array, str]:
    # Intervals of a mixture over draws take seconds on a plane.
    if has_link(fitted) and fitted.clf.base_estimator_.models[0].draws is not None:
        return _latent(fitted, rows)[1][:, 0], "standard deviation of f"
    low, high = _bands(fitted, rows)
    if low is not None and high is not None:
        return (high - low)[:, 0], f"width of the {LEVEL:.0%} interval of p"
    return entr(proba).sum(axis=1), "entropy of the class, in nats"
