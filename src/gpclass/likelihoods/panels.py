"""Gauss-Legendre panels whose breakpoints follow the integrand, and the search for where an integrand lives.

Panels serve where one grid for all rows would be too long: wide Gaussians times functions that bend on a
scale of one. Breakpoints are dense near the bend and their distances double further out, so the work
grows like the logarithm of the width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from scipy.special import roots_legendre

from gpclass.core.protocols import Array, Index
from gpclass.likelihoods.quadrature import blocks

ORDER = 10  # nodes of a panel
_DEPTH = 45.0  # exp of minus this is nothing
_START, _GRID = 12.0, 48  # first half-width and number of cells of the search
_MAX_STEPS = 400
_NEAR = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0])


@cache
def legendre(order: int = ORDER) -> tuple[Array, Array]:
    """Return the Gauss-Legendre nodes and weights on [0, 1]."""
    x, w = roots_legendre(order)
    return 0.5 * (1.0 + x), 0.5 * w


def bend_points(farthest: float) -> Array:
    """Return breakpoints for a function that bends near 0: one unit apart there, then doubling, to ±farthest.

    Examples
    --------
    >>> from gpclass.likelihoods.panels import bend_points
    >>> bend_points(20.0)[-4:]
    array([ 8., 10., 12., 16.])
    """
    doublings = 2.0 ** np.arange(4.0, max(4.0, np.ceil(np.log2(max(farthest, 16.0)))) + 0.5)
    positive = np.concatenate([_NEAR, doublings])
    positive = positive[positive <= max(farthest, 1.0)]
    return np.concatenate([-positive[::-1], [0.0], positive])


def panels(edges: Array, copies: int = 1) -> Iterator[tuple[Index, Array, Array]]:
    """Yield the rows of some panels, and their nodes and weights, shape (panels, ORDER).

    Parameters
    ----------
    edges : array of shape (n, k)
        Breakpoints of each row in increasing order; panels without width are left out.
    copies : int
        Numbers that the caller holds per node, so that blocks stay small.
    """
    width = np.diff(edges, axis=1)
    rows, columns = np.nonzero(width > 0.0)
    z, w = legendre()
    for b in blocks(rows.size, ORDER * copies):
        i, j = rows[b], columns[b]
        yield i, edges[i, j, None] + width[i, j, None] * z, width[i, j, None] * w


def add_rows(out: Array, rows: Index, values: Array) -> None:
    """Add values, shape (columns, panels, ...), to out, shape (columns, n), panels of a row side by side."""
    sums = values.reshape(*values.shape[:2], -1).sum(axis=2)
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    if first.size:
        out[:, rows[first]] += np.add.reduceat(sums, first, axis=1)


def maximum_rule(low: Array, high: Array, width: Array, copies: int) -> Iterator[tuple[Index, Array, Array]]:
    """Yield rows, nodes and weights, shape (rows, nodes), for integrals over the largest of C variables.

    Parameters
    ----------
    low, high, width : array of shape (n, C)
        The distribution function of variable c rises from 0 to 1 between low_c and high_c and is smooth on
        panels of width_c. Their number does not depend on how different the widths are.
    copies : int
        Numbers that the caller holds per node.
    """
    start, length, counts = _intervals(low, high, width)
    totals = counts.sum(axis=1)
    order = np.argsort(totals, kind="stable")
    for b in blocks(order.size, copies * ORDER * int(totals.max(initial=1))):
        i = order[b]
        yield i, *_interval_nodes(start[i], length[i], counts[i])


def _intervals(low: Array, high: Array, width: Array) -> tuple[Array, Array, Index]:
    """Return intervals that cover the maximum, and the number of panels in each, shape (n, 2 C - 1)."""
    # The product of the functions vanishes before the last low end, and is one after the last high end.
    edges = np.sort(np.concatenate([low, high], axis=1), axis=1)
    edges = np.clip(edges, low.max(axis=1, keepdims=True), high.max(axis=1, keepdims=True))
    start, length = edges[:, :-1], np.diff(edges, axis=1)
    middle = (start + 0.5 * length)[:, :, None]
    rises = (low[:, None, :] <= middle) & (middle <= high[:, None, :])
    narrowest = np.where(rises, width[:, None, :], np.inf).min(axis=2)
    return start, length, np.ceil(length / narrowest).astype(np.intp)


def _interval_nodes(start: Array, length: Array, counts: Index) -> tuple[Array, Array]:
    """Return nodes and weights of all panels of a row side by side, filled up with weights of zero."""
    n, z, w = len(start), *legendre()
    rows, columns = np.divmod(np.repeat(np.arange(counts.size), counts.ravel()), counts.shape[1])
    totals = counts.sum(axis=1)
    place = np.arange(rows.size) - np.repeat(np.cumsum(totals) - totals, totals)
    before = np.cumsum(counts, axis=1) - counts
    panel = length[rows, columns] / counts[rows, columns]
    left = start[rows, columns] + panel * (place - before[rows, columns])
    x, weight = np.zeros((2, n, totals.max(), ORDER))
    x[:] = start[:, -1, None, None]
    x[rows, place] = left[:, None] + panel[:, None] * z
    weight[rows, place] = panel[:, None] * w
    return x.reshape(n, -1), weight.reshape(n, -1)


def region(log_size: Callable[[Index, Array], Array], n: int, limit: Array) -> tuple[Array, Array]:
    """Return intervals outside of which an integrand is nothing.

    Parameters
    ----------
    log_size : callable
        Takes rows and places, shape (rows, k), and returns the logarithm of the integrand's size there.
        If it is unimodal nothing is overlooked.
    n : int
        Number of rows.
    limit : array of shape (n,)
        The search does not go beyond ±limit.
    """
    high = np.minimum(_START, limit)
    low = -high
    t = np.linspace(0.0, 1.0, _GRID + 1)
    active = np.arange(n)
    for _ in range(_MAX_STEPS):
        if not active.size:
            break
        a, b = low[active], high[active]
        x = a[:, None] + (b - a)[:, None] * t
        L = log_size(active, x)
        keep = L.max(axis=1, keepdims=True) - L < _DEPTH
        first, last = keep.argmax(axis=1), _GRID - keep[:, ::-1].argmax(axis=1)
        r = np.arange(active.size)
        grow_low = keep[:, 0] & (a > -limit[active])
        grow_high = keep[:, -1] & (b < limit[active])
        new_low, new_high = x[r, np.maximum(first - 1, 0)], x[r, np.minimum(last + 1, _GRID)]
        new_low = np.where(grow_low, np.maximum(a - 16.0 * (b - a), -limit[active]), new_low)
        new_high = np.where(grow_high, np.minimum(b + 16.0 * (b - a), limit[active]), new_high)
        low[active], high[active] = new_low, new_high
        active = active[grow_low | grow_high | (new_high - new_low < 0.75 * (b - a))]
    return low, high
