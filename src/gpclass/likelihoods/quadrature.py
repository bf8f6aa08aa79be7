"""Two rules for averages under N(f | mean, var), elementwise in the data, in bounded memory.

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
at -600: callers take out a factor that makes their sums of order one, so nothing that small counts,
and subnormal numbers cost a hundred times the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_hermitenorm

from gpclass.core.protocols import Array

_ELEMENTS = 1 << 16  # numbers in a (data, nodes) block: half a megabyte stays in cache
_FLOOR = -600.0
_SQRT_2PI = np.sqrt(2.0 * np.pi)
_ORDERS = ((1e-4, 6), (0.04, 10), (np.inf, 32))  # variance below which so many nodes do


def blocks(n: int, width: int) -> Iterator[slice]:
    """Yield slices of range(n) so that each times ``width`` is a cache-sized array."""
    step = max(1, _ELEMENTS // width)
    for start in range(0, n, step):
        yield slice(start, min(n, start + step))


@cache
def hermite(n: int) -> tuple[Array, Array]:
    """Return nodes x and weights w with Σ w g(x) ≈ E[g] under N(0, 1).

    Examples
    --------
    >>> from gpclass.likelihoods.quadrature import hermite
    >>> x, w = hermite(8)
    >>> bool(abs(w @ x**4 - 3.0) < 1e-13)
    True
    """
    x, w = roots_hermitenorm(n)
    return x, w / w.sum()


def orders(var: Array) -> Iterator[tuple[NDArray[np.intp], Array, Array]]:
    """Yield index, nodes and weights: the data of one block and the Gauss-Hermite rule they need."""
    below = 0.0
    for bound, n_nodes in _ORDERS:
        index = np.flatnonzero((var >= below) & (var < bound))
        below = bound
        for b in blocks(index.size, n_nodes):
            yield index[b], *hermite(n_nodes)


def hermite_average(g: Callable[[Array], tuple[Array, Array, Array]], mean: Array, var: Array) -> Array:
    """Return E[g_1], E[g_2], E[g_3] under N(mean, var) by Gauss-Hermite, shape (3, n).

    Parameters
    ----------
    g : callable
        Takes an array of f and returns three arrays of its shape, analytic for |Im f| < 2.8
        where N(mean, var) has its mass, and var at most about 1; or polynomial-like on the scale √var.
    mean, var : array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.likelihoods.quadrature import hermite_average
    >>> powers = hermite_average(lambda f: (f, f**2, f**3), np.array([1.0]), np.array([3.0]))
    >>> powers[:, 0].round(10)
    array([ 1.,  4., 10.])
    """
    out = np.empty((3, mean.size))
    s = np.sqrt(var)
    for i, x, w in orders(var):
        for whole, values in zip(out, g(mean[i, None] + s[i, None] * x), strict=True):
            whole[i] = values @ w
    return out


def lattice_sums(nodes: Array, table: Array, mean: Array, var: Array, offset: Array) -> Array:
    """Return Σ_j table_jk exp(-f_j²/2var + f_j mean/var + offset) / √(2 pi var), shape (n, columns).

    Parameters
    ----------
    nodes : array of shape (nodes,)
    table : array of shape (nodes, columns)
        Function values at the nodes times the weights of the rule.
    mean, var, offset : array of shape (n,)
        ``offset`` = -mean²/2var gives the Gaussian average; a larger one takes out a factor.
    """
    powers = np.stack([nodes * nodes, nodes, np.ones_like(nodes)])
    coefficients = np.stack([-0.5 / var, mean / var, offset], axis=1)
    out = np.empty((mean.size, table.shape[1]))
    for b in blocks(mean.size, nodes.size):
        E = coefficients[b] @ powers
        np.maximum(E, _FLOOR, out=E)
        np.exp(E, out=E)
        np.matmul(E, table, out=out[b])
    out /= _SQRT_2PI * np.sqrt(var)[:, None]
    return out


Mask = NDArray[np.bool_]
Rule = Callable[[Array, Array], Array]


def by_regime(columns: int, parts: Sequence[tuple[Mask, Rule]], mean: Array, var: Array) -> Array:
    """Return the (columns, n) array filled, where each mask holds, by its rule for the data there."""
    out = np.empty((columns, mean.size))
    for mask, rule in parts:
        index = np.flatnonzero(mask)
        if index.size:
            out[:, index] = rule(mean[index], var[index])
    return out


def quiet() -> np.errstate:
    """Return the context in which overflow to infinity and underflow to zero are what is meant."""
    return np.errstate(over="ignore", under="ignore")


def flatten(*args: Array | float) -> tuple[tuple[int, ...], list[Array]]:
    """Return the broadcast shape and the arguments as float64 vectors of that many entries."""
    arrays = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in args))
    return arrays[0].shape, [np.ascontiguousarray(a).ravel() for a in arrays]
