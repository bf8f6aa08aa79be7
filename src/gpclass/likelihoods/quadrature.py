"""Three rules for averages under N(f | mean, var), elementwise in the data, in bounded memory.

**Gauss-Hermite**, for narrow Gaussians: nodes mean + s x_k with s = √var. For g analytic in the
strip |Im f| < d the error of n nodes falls like exp(-2 √n d / s) once n > (d / s)², and is about
n! (s/d)^(2n) before. With d >= 2.8 (sigma: pi; log Phi: 2.816) 32 nodes give 1e-15 at var = 1/2, 10 nodes
below var = 0.04 and 6 below 1e-4.

**Lattice**, for wide ones: the trapezoidal rule on nodes f_j fixed once for all data,

    E[g] ≈ Σ_j w_j g(f_j) exp(-(f_j - mean)² / 2 var) / √(2 pi var).

The g(f_j) are tables, so a data point costs one exponential per node and the sums over nodes are a matrix
product. With f_j = j h the error is aliasing (Poisson summation): exp(-2 pi d / h) times
exp(d² / 2 var) from the singularities of g at height d, exp(-2 pi² var / h²) from the Gaussian. With
d = pi both are below 1e-16 for h = 0.4 and var >= 1/2, and for h = 0.5 and var >= 4. The lattice
is finite, so g must decay: split off a closed-form part first, or let the nodes move apart, f = b sinh(u)
with u = j h / b, which reaches |f| = 10^5 in few steps; what then counts is the step h √(1 + f²/b²)
against the width of the integrand at f (at most 0.8 of it for 1e-13) and the height of the
singularities in the u plane.

The exponent is a quadratic in f_j, hence a product of an (n, 3) and a (3, nodes) matrix. It is cut
at -600: callers take out a factor that makes their sums of order one, so terms that small do not matter,
and subnormal numbers cost a hundred times the time.

**Panels** of Gauss-Legendre nodes, whose breakpoints follow the integrand of each row, where one lattice for all
rows would be too long. Breakpoints are dense near a bend and their distances double further out, so the work
grows like the logarithm of the width. `region` finds where an integrand is not negligible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from scipy.special import roots_hermitenorm, roots_legendre

from gpclass.core.protocols import Array, Index

_ELEMENTS = 1 << 16  # numbers in a (data, nodes) block: half a megabyte stays in cache
_FLOOR = -600.0
_SQRT_2PI = np.sqrt(2.0 * np.pi)
_ORDERS = ((1e-4, 6), (0.04, 10), (0.15, 18), (np.inf, 32))  # variance below which this many nodes suffice
ORDER = 10  # nodes of a panel
_DEPTH = 45.0  # exp of minus this is negligible
_START, _GRID = 12.0, 48  # first half-width and number of cells of the search
_MAX_STEPS = 400
_NEAR = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0])


def blocks(n: int, width: int) -> Iterator[slice]:
    """Yield slices of range(n) so that each times ``width`` is a cache-sized array."""
    step = max(1, _ELEMENTS // width)
    for start in range(0, n, step):
        yield slice(start, min(n, start + step))


@cache
def hermite(n: int) -> tuple[Array, Array]:
    """Return nodes x and weights w with Σ w g(x) ≈ E[g] under N(0, 1)."""
    x, w = roots_hermitenorm(n)
    return x, w / w.sum()


def orders(var: Array) -> Iterator[tuple[Index, Array, Array]]:
    """Yield index, nodes and weights: the data of one block and the Gauss-Hermite rule they need."""
    below = 0.0
    for bound, n_nodes in _ORDERS:
        index = np.flatnonzero((var >= below) & (var < bound))
        below = bound
        for b in blocks(index.size, n_nodes):
            yield index[b], *hermite(n_nodes)


def lattice_sums(
    nodes: Array,
    table: Array,
    mean: Array,
    var: Array,
    offset: Array,
    extra: tuple[Array, Array] | None = None,
) -> Array:
    """Return Σ_j table_jk exp(-f_j²/2var + f_j mean/var + offset) / √(2 pi var), shape (n, columns).

    ``table`` has function values at the nodes times the weights of the rule, shape (nodes, columns);
    ``offset`` = -mean²/2var gives the Gaussian average, and a larger one takes out a factor; ``extra`` is one
    more function of the nodes in the exponent, and its coefficients.
    """
    rows = [nodes * nodes, nodes, np.ones_like(nodes)]
    columns = [-0.5 / var, mean / var, offset]
    if extra is not None:
        rows.append(extra[0])
        columns.append(extra[1])
    powers, coefficients = np.stack(rows), np.stack(columns, axis=1)
    out = np.empty((mean.size, table.shape[1]))
    for b in blocks(mean.size, nodes.size):
        E = coefficients[b] @ powers
        np.maximum(E, _FLOOR, out=E)
        np.exp(E, out=E)
        np.matmul(E, table, out=out[b])
    out /= _SQRT_2PI * np.sqrt(var)[:, None]
    return out


def quiet() -> np.errstate:
    """Return the context in which overflow to infinity and underflow to zero are intended."""
    return np.errstate(over="ignore", under="ignore")


def flatten(*args: Array | float) -> tuple[tuple[int, ...], list[Array]]:
    """Return the broadcast shape and the arguments as float64 vectors of that many entries."""
    first = args[0]
    if isinstance(first, np.ndarray) and first.ndim == 1 and all(_is_like(a, first) for a in args):
        return first.shape, list(args)  # type: ignore[arg-type]  # the usual case
    arrays = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in args))
    return arrays[0].shape, [np.ascontiguousarray(a).ravel() for a in arrays]


def _is_like(a: Array | float, first: Array) -> bool:
    """Return whether an argument is a vector of float64 numbers of the same length side by side."""
    return (
        isinstance(a, np.ndarray)
        and a.dtype == np.float64
        and a.shape == first.shape
        and a.flags.c_contiguous
    )


# ------------------------------------------------------------------------------ panels


@cache
def legendre(order: int = ORDER) -> tuple[Array, Array]:
    """Return the Gauss-Legendre nodes and weights on [0, 1]."""
    x, w = roots_legendre(order)
    return 0.5 * (1.0 + x), 0.5 * w


def bend_points(farthest: float) -> Array:
    """Return breakpoints for a function that bends near 0: one unit apart there, then doubling, to ±farthest."""
    doublings = 2.0 ** np.arange(4.0, max(4.0, np.ceil(np.log2(max(farthest, 16.0)))) + 0.5)
    positive = np.concatenate([_NEAR, doublings])
    positive = positive[positive <= max(farthest, 1.0)]
    return np.concatenate([-positive[::-1], [0.0], positive])


def panels(edges: Array, copies: int = 1) -> Iterator[tuple[Index, Array, Array]]:
    """Yield the rows of some panels, and their nodes and weights, shape (panels, ORDER).

    ``edges`` are the breakpoints of each row in increasing order, shape (n, k); panels without width are omitted.
    ``copies`` is how many numbers the caller holds per node, so that blocks stay small.
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

    The distribution function of variable c rises from 0 to 1 between low_c and high_c and is smooth on panels of
    width_c, all of shape (n, C). The number of panels does not depend on how different the widths are.
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
    """Return intervals, within ±limit, outside of which an integrand is negligible.

    ``log_size`` takes rows and places, shape (rows, k), and returns the logarithm of the integrand's size there.
    If it is unimodal nothing is overlooked.
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
