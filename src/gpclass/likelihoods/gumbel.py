"""E[log Σ_c exp(f_c)] of independent Gaussians f_c, and its derivatives, by one integral over the maximum.

With independent Gumbel noise g_c, log Σ exp(f_c) = E max_c (f_c + g_c) - γ, and the maximum M has

    P(M <= x) = F(x) = Π_c h_c(x),      h_c(x) = E exp(-exp(f_c - x)).

So E log Σ exp(f) = ∫ x F'(x) dx - γ with F' = F Σ_c r_c, r_c = h_c'/h_c, and, as ∂h_c/∂mean_c = -h_c',

    E[p_c] = ∫ F r_c dx,       E[p_c (1 - p_c)] = ∫ F r_c Σ_{k≠c} r_k dx     (all terms are positive).

**Standard deviations up to 14.** Everything is analytic for |Im x| < pi/2, so the trapezoidal rule of step
h = 1/3 errs by about exp(-pi²/h). To the right the integrands fall like exp(-x), which is slow: there the
nodes move apart, x = t + exp(t - t0). h(x) = E G(x - f), G(y) = exp(-exp(-y)), costs most. A narrow
Gaussian takes Gauss-Hermite quadrature. For a wider one f too runs over a lattice, the same for all rows
once the largest mean is subtracted, so that h at all nodes is a matrix product; it is
1 - h that is summed, as 1 - G decays for f far below x. Rows are grouped by how far the lattices must go.

**Wider ones.** The nodes of x are Gauss-Legendre panels that follow the narrowest class that bends there, a
number that does not depend on the variances. Each class is averaged over its noise instead,
h(x) = E Phi((x - mean - g) / s), by Gauss quadrature for the Gumbel distribution if it is wide.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.special import ndtr

from gpclass.core.protocols import Array, Index
from gpclass.likelihoods.maximum import maximum_rule
from gpclass.likelihoods.normal import density
from gpclass.likelihoods.quadrature import blocks, hermite

_STEP = 1.0 / 3.0
_NARROW = 0.18  # variance below which Gauss-Hermite is used, as exp(-2 pi² var / step²) is 1e-14 there
_ORDERS = ((0.0, 8), (0.02, 12), (0.08, 22))  # variance from which this many of its nodes are needed
_EDGES = np.array([0.5, 1.0, 1.5, 2.25, 3.5, 5.0, 7.0, 10.0, 14.0])  # deviations that have lattices
_REACH = 8.0  # deviations beyond which a Gaussian is negligible
_LOW, _HIGH = 3.7, 38.0  # beyond -_LOW and _HIGH the Gumbel distribution is negligible
_PANEL = 1.6  # width of a panel, in deviations of value plus noise
_NOISE_VARIANCE = np.pi**2 / 6.0
# Variance from which the noise has this many nodes; 0: those of the trapezoidal rule.
_NOISE_ORDERS = ((_NARROW, 0), (64.0, 20), (400.0, 10))
_SQRT_2PI = np.sqrt(2.0 * np.pi)


class Grid(NamedTuple):
    """Nodes x with weights for the maximum, and the lattice f of the latent values."""

    x: Array
    weight: Array
    f: Array
    tables: Array  # 1 - G and three derivatives of G at x - f, side by side: shape (len(f), 4 len(x))


# Some rows, nodes x with weights, shape (nodes,) or (rows, nodes), and h with its derivatives, (rows, C, nodes) each.
Part = tuple[Index, Array, Array, list[Array]]


def log_sum(mean: Array, var: Array) -> tuple[Array, Array, Array]:
    """Return E[log Σ exp(f)] less the largest mean, E[p_c] and E[p_c (1 - p_c)], errors below 1e-9."""
    value, first, second = np.empty(len(mean)), np.empty_like(mean), np.empty_like(mean)
    for i, x, weight, (h, h1) in _parts(mean, var, 2):
        r = h1 / h
        total = r.sum(axis=1)
        F = weight * h.prod(axis=1)
        value[i] = (total * F * x).sum(axis=1) - np.euler_gamma
        first[i] = np.einsum("nct,nt->nc", r, F)
        second[i] = np.einsum("nct,nct,nt->nc", r, total[:, None, :] - r, F)
    return value, first, second


def nodes(mean: Array, var: Array) -> Iterator[tuple[Index, Array, Array, Array, Array]]:
    """Yield blocks of rows, F times the weights of a rule, and three derivatives of log h_c at its nodes."""
    for i, _, weight, (h, h1, h2, h3) in _parts(mean, var, 4):
        r = h1 / h
        kappa = h2 / h - r * r
        yield i, weight * h.prod(axis=1), r, kappa, h3 / h - r * (3.0 * kappa + r * r)


def _parts(mean: Array, var: Array, count: int) -> Iterator[Part]:
    """Yield blocks of rows with h and its first derivatives, ``count`` in all, at the nodes of their rule."""
    s = np.sqrt(var)
    largest = s.max(axis=1)
    m = mean - mean.max(axis=1, keepdims=True)
    # A class lower than this is never the largest; the cut keeps what follows finite.
    m = np.maximum(m, -60.0 - 10.0 * largest[:, None])
    wide = np.flatnonzero(largest > _EDGES[-1])
    if wide.size:
        yield from _panel_parts(wide, m[wide], var[wide], count)
    # F vanishes where one of its factors does: _REACH deviations below any mean.
    needed = np.minimum([(s - m / _REACH).min(axis=1), largest], _EDGES[-1])
    size = _EDGES[np.searchsorted(_EDGES, needed)]
    size[:, wide] = 0.0
    for below, above in np.unique(size[:, size[1] > 0.0], axis=1).T.tolist():
        g = _grid(below, above)
        index = np.flatnonzero((size[0] == below) & (size[1] == above))
        for b in blocks(index.size, m.shape[1] * max(g.f.size, count * g.x.size)):
            i = index[b]
            out = _values(m[i].ravel(), var[i].ravel(), g, count)
            yield i, g.x, g.weight, _split(out, m[i].shape)


def _split(out: Array, shape: tuple[int, ...]) -> list[Array]:
    """Return h, bounded below, and its derivatives from 1 - h and its derivatives side by side."""
    h = [out[:, k].reshape(*shape, -1) for k in range(out.shape[1])]
    h[0] = np.maximum(1.0 - h[0], 1e-30)
    return h


# ------------------------------------------------------------- deviations up to 14: lattices


@lru_cache(maxsize=16)
def _grid(below: float, edge: float) -> Grid:
    """Lay nodes so that F is negligible before the first and 1 - F after the last."""
    low = -_LOW - _REACH * below
    high = _HIGH + min(0.5 * edge**2, _REACH * edge)
    t = low + _STEP * np.arange(1.0 + np.ceil((high - low) / _STEP))
    apart = np.exp(np.minimum(t - (1.0 + 4.0 * edge), 10.0))
    keep = slice(int(np.searchsorted(t + apart, high)) + 1)
    x, weight = (t + apart)[keep], (_STEP * (1.0 + apart))[keep]
    f = np.arange(low - _HIGH, 1.0 + _REACH * edge, _STEP)
    return Grid(x, weight, f, _tables(x - f[:, None]).reshape(f.size, -1))


def _tables(y: Array) -> Array:
    """Return 1 - G and three derivatives of G at y, stacked along the last axis but one."""
    e = np.exp(np.clip(-y, -700.0, 230.0))
    first = e * np.exp(-e)
    return np.stack([-np.expm1(-e), first, first * (e - 1.0), first * (1.0 + e * (e - 3.0))], axis=-2)


def _values(m: Array, v: Array, g: Grid, count: int) -> Array:
    """Return 1 - h and the first derivatives of h at the nodes, shape (n, count, nodes)."""
    out = np.empty((m.size, count, g.x.size))
    index = np.flatnonzero(v >= _NARROW)
    if index.size:
        out[index] = _by_lattice(m[index], v[index], g, count)
    _fill_narrow(out, m, v, np.broadcast_to(g.x, (m.size, g.x.size)))
    return out


def _ranges(orders: tuple[tuple[float, int], ...], v: Array, last: float) -> Iterator[tuple[Index, int]]:
    """Yield the rows of each range of variances, and the order of the rule they need."""
    ends = [*(bound for bound, _ in orders[1:]), last]
    for (low, order), high in zip(orders, ends, strict=True):
        yield np.flatnonzero((v >= low) & (v < high)), order


def _fill_narrow(out: Array, m: Array, v: Array, x: Array) -> None:
    """Fill the rows of small variance by Gauss-Hermite in f."""
    for index, order in _ranges(_ORDERS, v, _NARROW):
        for b in blocks(index.size, x.shape[1] * order):
            i = index[b]
            out[i] = _narrow(m[i], v[i], x[i], order, out.shape[1])


def _narrow(m: Array, v: Array, x: Array, order: int, count: int) -> Array:
    z, w = hermite(order)
    e = np.exp(np.minimum(m[:, None] - x, 200.0))[:, :, None] * np.exp(np.sqrt(v)[:, None] * z)[:, None, :]
    G = np.exp(-e)
    out = np.empty((m.size, count, x.shape[1]))
    out[:, 0] = 1.0 - G @ w
    G *= e
    out[:, 1] = G @ w
    if count > 2:
        out[:, 2] = (G * (e - 1.0)) @ w
        out[:, 3] = (G * (1.0 + e * (e - 3.0))) @ w
    return out


def _by_lattice(m: Array, v: Array, g: Grid, count: int) -> Array:
    reach = _REACH * float(v.max()) ** 0.5
    part = slice(*np.searchsorted(g.f, [m.min() - reach, m.max() + reach]))
    f, tables = g.f[part], g.tables[part, : count * g.x.size]
    N = f - m[:, None]
    np.square(N, out=N)
    N *= (-0.5 / v)[:, None]
    np.maximum(N, -600.0, out=N)
    np.exp(N, out=N)
    N *= (_STEP / (_SQRT_2PI * np.sqrt(v)))[:, None]
    return (N @ tables).reshape(m.size, count, g.x.size)


# ----------------------------------------------------------------- larger deviations: panels


def _panel_parts(index: Index, m: Array, v: Array, count: int) -> Iterator[Part]:
    s = np.sqrt(v)
    n_classes = m.shape[1]
    low, high = m - _REACH * s - _LOW, m + _HIGH + np.minimum(0.5 * v, _REACH * s)
    for i, x, weight in maximum_rule(low, high, _PANEL * np.sqrt(v + _NOISE_VARIANCE), n_classes * count):
        out = np.empty((i.size * n_classes, count, x.shape[1]))
        mi, vi, xi = m[i].ravel(), v[i].ravel(), np.repeat(x, n_classes, axis=0)
        _fill_narrow(out, mi, vi, xi)
        _fill_wide(out, mi, vi, xi)
        yield index[i], x, weight, _split(out, m[i].shape)


def _fill_wide(out: Array, m: Array, v: Array, x: Array) -> None:
    """Fill the rows of larger variance by averages over the noise."""
    for index, order in _ranges(_NOISE_ORDERS, v, np.inf):
        g, w = _noise_rule(order) if order else _noise_lattice()
        for b in blocks(index.size, x.shape[1] * g.size):
            i = index[b]
            s = np.sqrt(v[i])[:, None]
            z = ((x[i] - m[i, None]) / s)[:, :, None] - (g / s)[:, None, :]
            out[i, 0] = ndtr(-z) @ w
            N = density(z)
            out[i, 1] = N @ w / s
            if out.shape[1] > 2:
                out[i, 2] = (-z * N) @ w / s**2
                out[i, 3] = ((z * z - 1.0) * N) @ w / s**3


@cache
def _noise_lattice() -> tuple[Array, Array]:
    """Return the trapezoidal rule for averages over Gumbel noise, its density analytic for |Im g| < pi/2."""
    g = np.arange(-_LOW, _HIGH, _STEP)
    w = np.exp(-g - np.exp(-g))
    return g, w / w.sum()


@cache
def _noise_rule(n: int) -> tuple[Array, Array]:
    """Return Gauss quadrature of n nodes for the Gumbel distribution, by Lanczos' method.

    A function of g / s errs by about √(2n)! / s^2n: below 1e-10 in the ranges of _NOISE_ORDERS.
    """
    g = np.arange(-5.0, 80.0, 0.125)
    q = np.exp(-0.5 * (g + np.exp(-g)))
    q /= np.linalg.norm(q)
    Q = [q]
    diagonal, beside = np.empty(n), np.empty(n)
    for k in range(n):
        u = g * Q[-1]
        diagonal[k] = u @ Q[-1]
        for _ in range(2):  # the second time removes what rounding left
            u = u - sum((u @ p) * p for p in Q)
        beside[k] = np.linalg.norm(u)
        Q.append(u / beside[k])
    x, V = eigh_tridiagonal(diagonal, beside[:-1])
    return x, V[0] ** 2
