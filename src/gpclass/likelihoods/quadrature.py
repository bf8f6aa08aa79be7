"""A quadrature rule for averages of l(f) = log p(y|f) and of p(y|f) under N(f | mean, var), with one latent value.

The nodes f = 8 sinh(k h), k an integer, are nearly equidistant where likelihoods vary and increasingly far apart
beyond, so that a few hundred of them cover any variance. l, l' and l'' are tabulated there once for each likelihood,
label and step. A data point then costs one exponential per node in its range; sums over nodes are matrix products.

With E_w for averages under w = p(y|f)^power N(f | mean, var), the moments of a tilted Gaussian are

    slope = power E_w[l'],    curvature = -power E_w[l''] - power² Var_w[l'],    shrink = Var_w[f] / var,

and as shrink = 1 - var · curvature, each is computed from the other where that is more accurate.

The error of the trapezoidal rule is about exp(-2 pi² r²), where r is the width of the integrand over the node distance
(Poisson summation), plus exp(-2 pi d / distance) if l is analytic up to a height d above the real axis: 2.8 for
log Phi, pi for log sigma. The step is halved until r is at least 4/3. A Gaussian that is too narrow for the smallest
step uses Gauss-Hermite quadrature around the mode of its integrand.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.polynomial import polyfromroots
from scipy.special import roots_hermitenorm

from gpclass.core.protocols import Array, Index

_ELEMENTS = 1 << 16  # numbers in a block of rows x nodes: half a megabyte, which fits into the cache
_ROWS = 512  # maximum number of rows in a block; they share their nodes
_B = 8.0  # nodes are nearly equidistant up to this |f|
_FINEST = 6  # finest level; the distance of nodes near 0 is 2**-level
_RATIO = 0.75  # largest distance of nodes, in widths of the integrand, for errors of exp(-35)
_REACH = 7.2  # number of standard deviations beyond which a Gaussian is negligible
_DEPTH = 27.0  # exp(-_DEPTH) is negligible
_FAR = 1e4  # the finer levels have nodes up to this |f|
_FARTHEST, _WIDEST = 1e18, 1e34  # larger means and variances are clipped
_LEAST = -1e100  # smaller log probabilities are clipped
_ORDER = 10  # nodes of Gauss-Hermite rules
_NEWTON_STEPS = 200
_MODE_TOL = 1e-12  # relative step at which the mode has converged
_ROUNDED = 1e-6  # relative step that rounding may cause
_HALF, _STEP = 6, 0.04  # finite differences: points on each side, and their distance
_CLEAR = 0.9  # below this, 1 - shrink loses no digits
_SQRT_HALF, _SQRT_2PI = np.sqrt(0.5), np.sqrt(2.0 * np.pi)


# ------------------------------------------------------------------------------- helpers


def quiet() -> np.errstate:
    """Return the context in which overflow to infinity and underflow to zero are intended."""
    return np.errstate(over="ignore", under="ignore")


def blocks(n: int, width: int) -> Iterator[slice]:
    """Yield slices of range(n), so that arrays of ``width`` columns fit into the cache."""
    step = max(1, _ELEMENTS // width)
    for start in range(0, n, step):
        yield slice(start, min(n, start + step))


@cache
def hermite(n: int) -> tuple[Array, Array]:
    """Return nodes x and weights w with Σ w g(x) ≈ E[g] under N(0, 1)."""
    x, w = roots_hermitenorm(n)
    return x, w / w.sum()


def flatten(*args: Array | float) -> tuple[tuple[int, ...], list[Array]]:
    """Return the broadcast shape and the arguments as flat float64 vectors of that size."""
    arrays = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in args))
    return arrays[0].shape, [np.ascontiguousarray(a).ravel() for a in arrays]


# --------------------------------------------------------------------------- derivatives


@cache
def _weights() -> Array:
    """Return the weights of the first three derivatives at 0 of the polynomial through -6, ..., 6."""
    points = np.arange(-_HALF, _HALF + 1.0)
    others = [np.delete(points, k) for k in range(points.size)]
    rows = [polyfromroots(z)[1:4] / np.prod(p - z) for p, z in zip(points, others, strict=True)]
    return np.stack(rows) * [1.0, 2.0, 6.0]


def differences(likelihood: Any, y: Array, f: Array) -> tuple[Array, Array, Array, Array]:
    """Return l, l', l'' and l''' by central differences of order 12; y and f broadcast."""
    y, f = np.broadcast_arrays(np.asarray(y, dtype=np.float64), np.asarray(f, dtype=np.float64))
    f = np.clip(f, -_FARTHEST, _FARTHEST)
    h = np.maximum(_STEP, 1e-3 * np.abs(f))
    points = f[..., None] + h[..., None] * np.arange(-_HALF, _HALF + 1.0)
    values = _values(likelihood, y[..., None], points)
    middle = values[..., _HALF]
    # The central value is subtracted, so that equal values give exactly zero.
    first, second, third = np.moveaxis((values - middle[..., None]) @ _weights(), -1, 0)
    return middle, first / h, second / h**2, third / h**3


def _values(likelihood: Any, y: Any, f: Array) -> Array:
    """Return log p(y|f), clipped where it is not finite."""
    with np.errstate(all="ignore"):
        l = np.asarray(likelihood.log_prob(np.asarray(y), f), dtype=np.float64)
        return np.where(l > _LEAST, np.minimum(l, 0.0), _LEAST)


# --------------------------------------------------------------------------------- nodes


class Table(NamedTuple):
    """Nodes f, l = log p(y|f) there, and functions times the weights of the trapezoidal rule, one per column."""

    f: Array
    l: Array
    expected: Array  # l, l', l''
    moments: Array  # 1, l', l'', l'², f, f²


@lru_cache(maxsize=32)
def _table(likelihood: Any, y: float, level: int) -> Table:
    h = 2.0**-level / _B
    # The coarsest step is used for the widest Gaussians and covers their whole range.
    last = np.ceil(np.arcsinh((_FARTHEST if level == likelihood.level else 2.0 * _FAR) / _B) / h)
    u = h * np.arange(-last, last + 1.0)
    f, weight = _B * np.sinh(u), _B * h * np.cosh(u)
    l, first, second = (np.clip(a, _LEAST, -_LEAST) for a in likelihood.derivatives(np.asarray(y), f))
    moments = np.stack([np.ones_like(f), first, second, first * first, f, f * f], axis=1)
    expected = np.stack([l, first, second], axis=1)
    return Table(f, l, weight[:, None] * expected, weight[:, None] * moments)


def _levels(likelihood: Any, centre: Array, width: Array) -> Index:
    """Return the level whose nodes resolve an integrand of this centre and width, above _FINEST if none does."""
    distance = np.sqrt(1.0 + np.square(centre / _B))  # distance of nodes at level 0
    halvings = np.frexp(distance / (_RATIO * np.maximum(width, 1e-200)))[1]
    level = np.clip(halvings, likelihood.level, _FINEST + 1)
    far = (np.abs(centre) > _FAR) & (level > likelihood.level)
    return np.where(far, _FINEST + 1, level)


def _nodes(likelihood: Any, y: float, z: Array, reach: Array, level: Index) -> Iterator[tuple[Index, Table]]:
    """Yield the rows of each level in blocks, with the part of the table in their range."""
    for k in np.unique(level[level <= _FINEST]).tolist():
        table = _table(likelihood, y, k)
        rows = np.flatnonzero(level == k)
        # Adjacent rows have about the same nodes; on the coarsest level they differ mainly in their range.
        rows = rows[np.argsort((reach if k == likelihood.level else z)[rows])]
        for start in range(0, rows.size, _ROWS):
            i = rows[start : start + _ROWS]
            ends = (z[i] - reach[i]).min(), (z[i] + reach[i]).max()
            part = slice(*np.searchsorted(table.f, ends))
            yield i, Table(*(a[part] for a in table))


# ------------------------------------------------------------------------------ averages


def expected(likelihood: Any, y: float, mean: Array, var: Array) -> Array:
    """Return E[l], E[l'] and E[l''] under N(mean, var), shape (3, n)."""
    z, var = np.clip(mean, -_FARTHEST, _FARTHEST), np.minimum(var, _WIDEST)
    s = np.sqrt(var)
    level = _levels(likelihood, z, s)
    out = np.empty((3, z.size))
    # The range is wider by the variance: times exp(±f), N(mean, var) has its maximum at mean ± var.
    for i, table in _nodes(likelihood, y, z, _REACH * s + var, level):
        out[:, i] = _sums(_exponents(table.f, z[i], s[i]), table.expected).T / (_SQRT_2PI * s[i])
    i = np.flatnonzero(level > _FINEST)
    if i.size:
        x, w = hermite(_ORDER)
        out[:, i] = [a @ w for a in likelihood.derivatives(np.asarray(y), z[i, None] + s[i, None] * x)]
    return np.clip(out, _LEAST, -_LEAST)


def _exponents(f: Array, z: Array, s: Array) -> Array:
    """Return -(f - z)² / 2 s², shape (rows, nodes)."""
    E: Array = f - z[:, None]
    E *= (_SQRT_HALF / s)[:, None]
    return np.multiply(E, -E, out=E)


def _sums(E: Array, functions: Array) -> Array:
    """Return exp(E) @ functions, without subnormal numbers, which are a hundred times slower; E is overwritten."""
    return np.asarray(np.exp(np.maximum(E, -600.0, out=E), out=E) @ functions)


def tilted(likelihood: Any, y: float, mean: Array, var: Array, power: Array) -> Array:
    """Return log mass, slope, curvature and shrink of N(f | mean, var) p(y|f)^power, shape (4, n)."""
    z, var = np.clip(mean, -_FARTHEST, _FARTHEST), np.minimum(var, _WIDEST)
    s = np.sqrt(var)
    # A tilted Gaussian is narrower than a plain one.
    level = _levels(likelihood, z, 0.75 * s)
    near, fine = z.copy(), np.flatnonzero(level > _FINEST)
    if fine.size:
        near[fine], width = _near_mode(likelihood, y, z[fine], var[fine], power[fine])
        level[fine] = _levels(likelihood, near[fine], 0.75 * width)
    # As log p is at most 0, the integrand beyond this distance is negligible relative to that at the mean.
    base = power * _values(likelihood, y, z)
    reach = s * np.sqrt(2.0 * (_DEPTH - base))
    out, pending = np.empty((4, z.size)), level.copy()
    while (pending <= _FINEST).any():
        for i, table in _nodes(likelihood, y, z, reach, pending):
            out[:, i] = _moments(table, z[i], s[i], power[i], base[i], near[i])
        # The integrand may be shifted and too narrow for this level; then the next level is used.
        i = np.flatnonzero(pending <= _FINEST)
        coarse = _levels(likelihood, z[i] + var[i] * out[1, i], s[i] * np.sqrt(out[3, i])) > level[i]
        level[i] += coarse
        pending[:] = _FINEST + 1
        pending[i[coarse]] = level[i[coarse]]
    i = np.flatnonzero(level > _FINEST)
    if i.size:
        out[:, i] = _around_mode(likelihood, y, z[i], var[i], power[i], near[i])
    out[0] = np.minimum(out[0], 0.0)
    return np.clip(out, _LEAST, -_LEAST)


def _moments(table: Table, z: Array, s: Array, power: Array, base: Array, near: Array) -> Array:
    """Return the four numbers from averages under the tilted Gaussian; ``base`` is power · l at the mean.

    Exponents are relative to that of the Gaussian at ``near``, which is large if the mode is many deviations away.
    """
    E, shift = _exponents(table.f, near, s), (near - z) / s
    if shift.any():
        E -= (table.f - near[:, None]) * (shift / s)[:, None]
    E += table.l if (power == 1.0).all() else power[:, None] * table.l
    if base.min() < -500.0:  # prevents underflow of the sums
        base = E.max(axis=1)
        E -= base[:, None]
    else:
        base = np.zeros_like(z)
    mass, *sums = _sums(E, table.moments).T
    first, second, square, mean, second_moment = sums / mass
    direct = -power * second - power * power * (square - first * first)
    var = s * s
    shrink = np.maximum((second_moment - mean * mean) / var, 1e-300)
    clear = shrink < _CLEAR
    curvature = np.where(clear, (1.0 - shrink) / var, direct)
    log_mass = base - 0.5 * shift**2 + np.log(mass / (_SQRT_2PI * s))
    return np.stack([log_mass, power * first, curvature, np.where(clear, shrink, 1.0 - var * direct)])


def _near_mode(likelihood: Any, y: float, z: Array, var: Array, power: Array) -> tuple[Array, Array]:
    """Return points near the modes of tilted Gaussians, and their widths there.

    Where l moves the mode by more than the scale on which it varies, Newton's method may need many steps from the mean,
    and starts from the best node of the coarsest step.
    """
    f = z.copy()
    first = likelihood.derivatives(np.asarray(y), z)[1]
    moved = np.flatnonzero(power * var * np.abs(first) > 1.0)
    table = _table(likelihood, y, likelihood.level)
    for b in blocks(moved.size, table.f.size):
        i = moved[b]
        f[i] = table.f[(_exponents(table.f, z[i], np.sqrt(var[i])) + power[i, None] * table.l).argmax(axis=1)]
    second = likelihood.derivatives(np.asarray(y), f)[2]
    return f, np.sqrt(var / (1.0 + power * var * np.maximum(-second, 0.0)))


def _around_mode(likelihood: Any, y: float, z: Array, var: Array, power: Array, near: Array) -> Array:
    """Return the same moments by Gauss-Hermite quadrature, with the width of the integrand at its mode."""
    label, f, size = np.asarray(y), near, np.inf
    for _ in range(_NEWTON_STEPS):
        l, first, second = likelihood.derivatives(label, f)
        ratio = 1.0 / (1.0 + power * var * np.maximum(-second, 0.0))
        step = ratio * (power * var * first - (f - z))
        f = f + step
        last, size = size, float((np.abs(step) / (1.0 + np.abs(f))).max(initial=0.0))
        # Small steps that no longer shrink are rounding errors of the numerical derivatives.
        if size <= _MODE_TOL or 0.5 * last < size < _ROUNDED:
            break
    l, first, second = (np.asarray(a)[:, None] for a in likelihood.derivatives(label, f))
    x, w = hermite(_ORDER)
    a, d = power[:, None], np.sqrt(var * ratio)[:, None] * x
    at = likelihood.derivatives(label, f[:, None] + d)
    # At the mode (f - z) / var equals power l', which is more accurate.
    W = w * np.exp(np.minimum(a * (at[0] - l - first * d) + 0.5 * (1.0 - ratio[:, None]) * x * x, 100.0))
    mass = np.maximum(W.sum(axis=1), 1e-300)
    W /= mass[:, None]
    shift, slope, second = ((W * part).sum(axis=1) for part in (x, *at[1:]))
    shrink = ratio * (W * (x - shift[:, None]) ** 2).sum(axis=1)
    direct = -power * second - power * power * (W * (at[1] - slope[:, None]) ** 2).sum(axis=1)
    log_mass = power * l[:, 0] - 0.5 * var * (power * first[:, 0]) ** 2 + np.log(mass * np.sqrt(ratio))
    curvature = np.where(shrink < _CLEAR, (1.0 - shrink) / np.maximum(var, 1e-300), direct)
    return np.stack([log_mass, power * slope, curvature, np.maximum(shrink, 1e-300)])
