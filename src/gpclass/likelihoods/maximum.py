"""A quadrature rule for integrals over the largest of several independent variables of any widths."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import roots_legendre

from gpclass.core.protocols import Array, Index
from gpclass.likelihoods.quadrature import blocks

_NODES, _WEIGHTS = roots_legendre(10)  # Gauss-Legendre rule of a panel, on [-1, 1]


def maximum_rule(low: Array, high: Array, width: Array, copies: int) -> Iterator[tuple[Index, Array, Array]]:
    """Yield rows, nodes and weights, shape (rows, nodes), for integrals over the largest of C variables.

    The distribution function of variable c rises from 0 to 1 between low_c and high_c and is smooth on panels of
    width_c, all of shape (n, C). The number of panels does not depend on how different the widths are.
    """
    start, length, counts = _intervals(low, high, width)
    totals = counts.sum(axis=1)
    order = np.argsort(totals, kind="stable")
    for b in blocks(order.size, copies * _NODES.size * int(totals.max(initial=1))):
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
    """Return nodes and weights of all panels of a row side by side, padded with weights of zero."""
    n = len(start)
    rows, columns = np.divmod(np.repeat(np.arange(counts.size), counts.ravel()), counts.shape[1])
    totals = counts.sum(axis=1)
    place = np.arange(rows.size) - np.repeat(np.cumsum(totals) - totals, totals)
    before = np.cumsum(counts, axis=1) - counts
    panel = length[rows, columns] / counts[rows, columns]
    left = start[rows, columns] + panel * (place - before[rows, columns])
    x, weight = np.zeros((2, n, totals.max(), _NODES.size))
    x[:] = start[:, -1, None, None]
    x[rows, place] = left[:, None] + 0.5 * panel[:, None] * (1.0 + _NODES)
    weight[rows, place] = 0.5 * panel[:, None] * _WEIGHTS
    return x.reshape(n, -1), weight.reshape(n, -1)
