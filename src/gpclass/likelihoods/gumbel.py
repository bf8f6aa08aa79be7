"""E[log Σ_c exp(f_c)] of independent Gaussians f_c, and its derivatives, by one integral over the maximum.

With independent Gumbel noise g_c, log Σ exp(f_c) = E max_c (f_c + g_c) - γ, and the maximum M has

    P(M <= x) = F(x) = Π_c h_c(x),      h_c(x) = E exp(-exp(f_c - x)).

So E log Σ exp(f) = ∫ x F'(x) dx - γ with F' = F Σ_c h_c'/h_c, and, as ∂h_c/∂mean_c = -h_c',

    E[p_c] = ∫ F h_c'/h_c dx,       E[p_c (1 - p_c)] = -∫ F h_c''/h_c dx.

Everything is analytic for |Im x| < pi/2, so the trapezoidal rule of step h = 1/3 errs by about exp(-pi²/h).
To the right the integrands fall like exp(-x), which is slow: there the nodes spread, x = t + exp(t - t0).

h(x) = E G(x - f), G(y) = exp(-exp(-y)), costs most. A narrow Gaussian, var < 0.18, takes Gauss-Hermite. For
a wider one f too runs over a lattice, the same for all data once the largest mean is subtracted, so that h
at all nodes is a matrix product; it is 1 - h that is summed, as 1 - G decays for f far below x. Data are
sorted by how far the lattices must go; where these are long, the product is a convolution by FFT.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from gpclass.core.protocols import Array, Index
from gpclass.likelihoods.quadrature import blocks, hermite

_STEP = 1.0 / 3.0
_NARROW = 0.18  # variance below which Gauss-Hermite is used
_ORDERS = ((0.0, 6), (3e-3, 8), (0.02, 12), (0.08, 22))  # variance from which so many of its nodes are needed
_EDGES = (0.5, 1.0, 1.5, 2.25, 3.5, 5.0, 7.0, 10.0, 14.0)  # deviations up to which the lattices serve
_LONG = 14.0  # deviation from which convolutions are done by FFT
_SQRT_2PI = np.sqrt(2.0 * np.pi)


class Grid(NamedTuple):
    """Nodes x with weights for the maximum, and the lattice f of the latent values."""

    x: Array
    weight: Array
    f: Array
    tables: Array | None  # 1 - G and three derivatives of G at x - f, side by side: shape (len(f), 4 len(x))


def log_sum(mean: Array, var: Array) -> tuple[Array, Array, Array]:
    """Return E[log Σ exp(f)] less the largest mean, E[p_c] and E[p_c (1 - p_c)], errors about 1e-11.

    Parameters
    ----------
    mean, var : array of shape (n, C)

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.likelihoods.gumbel import log_sum
    >>> value, p, _ = log_sum(np.zeros((1, 4)), np.zeros((1, 4)))
    >>> value.round(10), p.round(10)
    (array([1.38629436]), array([[0.25, 0.25, 0.25, 0.25]]))
    """
    value, first, second = np.empty(len(mean)), np.empty_like(mean), np.empty_like(mean)
    for i, g, (h, h1, h2) in _parts(mean, var, 3):
        others = (g.weight * h.prod(axis=1))[:, None, :] / h
        slope = h1 * others
        value[i] = slope.sum(axis=1) @ g.x - np.euler_gamma
        first[i] = slope.sum(axis=2)
        second[i] = -np.einsum("nct,nct->nc", h2, others)
    return value, first, second


def nodes(mean: Array, var: Array) -> Iterator[tuple[Index, Array, Array, Array, Array]]:
    """Yield blocks of rows, F times the weights of a rule, and three derivatives of log h_c at its nodes."""
    for i, g, (h, h1, h2, h3) in _parts(mean, var, 4):
        F = g.weight * h.prod(axis=1)
        r = h1 / h
        kappa = h2 / h - r * r
        yield i, F, r, kappa, h3 / h - r * (3.0 * kappa + r * r)


def _parts(mean: Array, var: Array, count: int) -> Iterator[tuple[Index, Grid, list[Array]]]:
    """Yield rows, their grid, and h and its derivatives at the nodes, each of shape (rows, C, nodes)."""
    m = mean - mean.max(axis=1, keepdims=True)
    # A class lower than this is never the largest; the cut keeps what follows finite.
    m = np.maximum(m, -60.0 - 10.0 * np.sqrt(var.max(axis=1, keepdims=True)))
    s = np.sqrt(var)
    # F vanishes where one of its factors does: 8 deviations below any mean.
    size = np.stack([_size((s - m / 8.0).min(axis=1)), _size(s.max(axis=1))], axis=1)
    for below, above in np.unique(size, axis=0).tolist():
        g = _grid(below, above) if above <= _LONG else _make_grid(below, above)
        index = np.flatnonzero((size == (below, above)).all(axis=1))
        for b in blocks(index.size, m.shape[1] * max(g.f.size, count * g.x.size)):
            i = index[b]
            out = _values(m[i].ravel(), var[i].ravel(), g, count)
            h = [out[:, k].reshape(*m[i].shape, -1) for k in range(count)]
            h[0] = np.maximum(1.0 - h[0], 1e-30)
            yield i, g, h


def _size(s: Array) -> Array:
    """Return the deviation whose lattices serve s: one of _EDGES, or _LONG times a power of √2."""
    edges = np.asarray(_EDGES)
    near = edges[np.minimum(np.searchsorted(edges, s), edges.size - 1)]
    far = _LONG * 2.0 ** (0.5 * np.ceil(2.0 * np.log2(np.maximum(s, _LONG) / _LONG)))
    return np.where(s <= _LONG, near, far)


@lru_cache(maxsize=16)
def _grid(below: float, above: float) -> Grid:
    return _make_grid(below, above)


def _make_grid(below: float, edge: float) -> Grid:
    """Lay nodes so that F is below 1e-15 before the first and 1 - F below 1e-15 after the last."""
    low = -3.7 - 8.0 * below
    if edge > _LONG:
        x = np.arange(low - 26.0, 40.0 + 8.6 * edge, _STEP)  # one lattice for both
        return Grid(x, np.full_like(x, _STEP), x, None)
    high = 38.0 + min(0.5 * edge**2, 8.0 * edge)
    t = low + _STEP * np.arange(1.0 + np.ceil((high - low) / _STEP))
    spread = np.exp(np.minimum(t - (1.0 + 4.0 * edge), 10.0))
    keep = slice(int(np.searchsorted(t + spread, high)) + 1)
    x, weight = (t + spread)[keep], (_STEP * (1.0 + spread))[keep]
    f = np.arange(low - 26.0, 1.0 + 8.5 * edge, _STEP)
    return Grid(x, weight, f, _tables(x - f[:, None]).reshape(f.size, -1))


def _tables(y: Array) -> Array:
    """Return 1 - G and three derivatives of G at y, stacked along the last axis but one."""
    e = np.exp(np.clip(-y, -700.0, 230.0))
    first = e * np.exp(-e)
    return np.stack([-np.expm1(-e), first, first * (e - 1.0), first * (1.0 + e * (e - 3.0))], axis=-2)


def _values(m: Array, v: Array, g: Grid, count: int) -> Array:
    """Return 1 - h and the first derivatives of h at the nodes, shape (n, count, nodes)."""
    out = np.empty((m.size, count, g.x.size))
    wide = np.flatnonzero(v >= _NARROW)
    out[wide] = _wide(m[wide], v[wide], g, count)
    bounds = [*(b for b, _ in _ORDERS), _NARROW]
    for (low, order), high in zip(_ORDERS, bounds[1:], strict=True):
        index = np.flatnonzero((v >= low) & (v < high))
        for b in blocks(index.size, g.x.size * order):
            out[index[b]] = _narrow(m[index[b]], v[index[b]], g.x, order, count)
    return out


def _narrow(m: Array, v: Array, x: Array, order: int, count: int) -> Array:
    z, w = hermite(order)
    e = np.exp(np.minimum(m[:, None] - x, 200.0))[:, :, None] * np.exp(np.sqrt(v)[:, None] * z)[:, None, :]
    G = np.exp(-e)
    out = np.empty((m.size, count, x.size))
    out[:, 0] = 1.0 - G @ w
    G *= e
    out[:, 1] = G @ w
    out[:, 2] = (G * (e - 1.0)) @ w
    if count > 3:
        out[:, 3] = (G * (1.0 + e * (e - 3.0))) @ w
    return out


def _wide(m: Array, v: Array, g: Grid, count: int) -> Array:
    N = np.square(g.f - m[:, None])
    N *= (-0.5 / v)[:, None]
    np.maximum(N, -600.0, out=N)
    np.exp(N, out=N)
    N *= (_STEP / (_SQRT_2PI * np.sqrt(v)))[:, None]
    if g.tables is not None:
        return (N @ g.tables[:, : count * g.x.size]).reshape(m.size, count, g.x.size)
    return _convolve(N, g.x.size)[:, :count]


def _convolve(N: Array, size: int) -> Array:
    """Return the same by FFT."""
    y = _STEP * np.arange(-size + 1.0, size)
    n = next_fast_len(3 * size, real=True)
    hat = rfft(_tables(y), n, axis=-1)
    full = irfft(rfft(N, n, axis=-1)[:, None, :] * hat, n, axis=-1)
    return np.asarray(full[:, :, size - 1 : 2 * size - 1])
