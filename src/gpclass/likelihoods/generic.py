"""Derivatives and Gaussian averages of any log p(y|f), from its values alone.

Nothing is assumed of l(f) = log p(y|f) but that it is smooth, at most zero, and bends on a scale of about
one and not far from f = 0; further out it may change slowly or exponentially.

* Derivatives are central differences on 13 points, of order 12 (the third of order 10).
* Averages are integrals over x = (f - mean) / √var on Gauss-Legendre panels. A search first finds where the
  integrand is not negligible, so the tails keep their accuracy and the work is bounded whatever the mean and variance.
* E[l'] = E[l x] / √var and E[l''] = E[l (x² - 1)] / var (integration by parts) and the moments of tilted
  Gaussians give derivatives without differences; below var = 1e-3, where these would cancel, differences
  are averaged instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import factorial
from typing import NamedTuple

import numpy as np

from gpclass.core.protocols import Array, Index
from gpclass.likelihoods.quadrature import add_rows, bend_points, blocks, hermite, panels, region

LogProb = Callable[[Array, Array], Array]

_NARROW = 1e-3  # variance below which differences are averaged
_HALF, _STEP = 6, 0.04  # points either side, and the distance between them
_LEAST = -1e100  # log probabilities below are cut, so that products of differences stay finite
_FARTHEST, _WIDEST = 1e48, 1e96  # means and variances beyond are cut likewise
_REACH = 46.0  # deviations beyond which a Gaussian is zero in floating point
_PANELS = 12
_CLEAR = 0.1  # |1 - shrink| above which it has lost no digits
_TRIES = 2.0 ** np.arange(-16.0, 1.0, 2.0)
_SQRT_2PI = np.sqrt(2.0 * np.pi)


class Moments(NamedTuple):
    """log mass, slope, curvature and shrink, as in `gpclass.core.protocols.Tilted`."""

    log_mass: Array
    slope: Array
    curvature: Array
    shrink: Array


@cache
def _weights() -> Array:
    """Return the weights of the first three derivatives at 0 of the polynomial through -6, ..., 6.

    The polynomial that is 1 at k and 0 at the other points is A x (1 + x/k) Π_{j≠|k|} (1 - x²/j²).
    """
    k = np.arange(1, _HALF + 1)
    squares = 1.0 / k**2
    ratio = [factorial(_HALF) ** 2 / (factorial(_HALF - j) * factorial(_HALF + j)) for j in k.tolist()]
    A = (-1.0) ** (k + 1) * np.array(ratio) / k
    second, third = 2.0 * A / k, -6.0 * A * (squares.sum() - squares)
    middle = (0.0, -2.0 * second.sum(), 0.0)
    rows = [(-A, A), (second, second), (-third, third)]
    return np.stack(
        [np.concatenate([a[::-1], [m], b]) for (a, b), m in zip(rows, middle, strict=True)], axis=1
    )


def value(log_prob: LogProb, y: Array, f: Array) -> Array:
    """Return log p(y|f), cut where it is not finite."""
    with np.errstate(all="ignore"):
        l = np.asarray(log_prob(y, f), dtype=np.float64)
        return np.where(l > _LEAST, np.minimum(l, 0.0), _LEAST)


def differences(log_prob: LogProb, y: Array, f: Array) -> tuple[Array, Array, Array, Array]:
    """Return l, l', l'' and l''' by central differences; y and f have the same shape."""
    f = np.clip(f, -_FARTHEST, _FARTHEST)
    h = np.maximum(_STEP, 1e-5 * np.abs(f))
    points = f[..., None] + h[..., None] * np.arange(-_HALF, _HALF + 1.0)
    values = value(log_prob, y[..., None], points)
    middle = values[..., _HALF]
    # Less the middle one, so that equal values give zero.
    first, second, third = np.moveaxis((values - middle[..., None]) @ _weights(), -1, 0)
    return middle, first / h, second / h**2, third / h**3


def expected(log_prob: LogProb, y: Array, mean: Array, var: Array) -> Array:
    """Return E[l], E[l'] and E[l''] under N(mean, var), shape (3, n)."""
    mean, var = _within_range(mean, var)
    out = np.empty((3, mean.size))
    narrow = var < _NARROW
    for index, rule in ((np.flatnonzero(narrow), _expected_narrow), (np.flatnonzero(~narrow), _expected)):
        for b in blocks(index.size, 130):
            i = index[b]
            out[:, i] = rule(log_prob, y[i], mean[i], np.sqrt(var[i]))
    return np.clip(out, _LEAST, -_LEAST)


def _within_range(mean: Array, var: Array) -> tuple[Array, Array]:
    return np.clip(mean, -_FARTHEST, _FARTHEST), np.minimum(var, _WIDEST)


def _expected_narrow(log_prob: LogProb, y: Array, mean: Array, s: Array) -> Array:
    x, w = hermite(10)
    f = mean[:, None] + s[:, None] * x
    values = differences(log_prob, np.broadcast_to(y[:, None], f.shape), f)
    return np.stack([a @ w for a in values[:3]])


def _expected(log_prob: LogProb, y: Array, mean: Array, s: Array) -> Array:
    def log_size(i: Index, x: Array) -> Array:
        l = value(log_prob, y[i, None], mean[i, None] + s[i, None] * x)
        return np.log(np.maximum(-l, 1e-300)) - 0.5 * x * x

    low, high = region(log_size, mean.size, np.full(mean.size, _REACH))
    out = np.zeros((3, mean.size))
    for i, x, w in panels(_edges(mean, s, low, high), 4):
        l = value(log_prob, y[i, None], mean[i, None] + s[i, None] * x)
        l = l * (w * np.exp(-0.5 * x * x) / _SQRT_2PI)
        add_rows(out, i, np.stack([l, l * x, l * (x * x - 1.0)]))
    out[1] /= s
    out[2] /= s * s
    return out


def _edges(mean: Array, s: Array, low: Array, high: Array) -> Array:
    """Return the breakpoints of panels from low to high: equal ones, and those near the bend at f = 0."""
    equal = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, _PANELS + 1)
    with np.errstate(over="ignore"):
        farthest = np.maximum(np.abs(mean + s * low), np.abs(mean + s * high)).max(initial=1.0)
        bends = (bend_points(float(farthest)) - mean[:, None]) / np.maximum(s, 1e-150)[:, None]
    edges = np.concatenate([equal, np.clip(bends, low[:, None], high[:, None])], axis=1)
    return np.sort(edges, axis=1)


def tilted(log_prob: LogProb, y: Array, mean: Array, var: Array, power: Array) -> Moments:
    """Return mass and moments of N(f | mean, var) p(y|f)^power."""
    mean, var = _within_range(mean, var)
    out = np.empty((4, mean.size))
    narrow = var < _NARROW
    for small, index in ((True, np.flatnonzero(narrow)), (False, np.flatnonzero(~narrow))):
        for b in blocks(index.size, 130):
            i = index[b]
            out[:, i] = _tilted(log_prob, y[i], mean[i], np.sqrt(var[i]), power[i], small)
    return Moments(*np.clip(out, _LEAST, -_LEAST))


def _tilted(log_prob: LogProb, y: Array, mean: Array, s: Array, power: Array, narrow: bool) -> Array:
    def l_at(i: Index, x: Array) -> Array:
        return value(log_prob, y[i, None], mean[i, None] + s[i, None] * x)

    rows = np.arange(mean.size)
    # Nothing is larger than at x = 0 where x²/2 is larger than -l there.
    limit = np.sqrt(120.0 - 2.0 * power * l_at(rows, np.zeros((mean.size, 1)))[:, 0])
    # A reference near the largest value keeps the digits of x²/2.
    tries = limit[:, None] * np.concatenate([-_TRIES, [0.0], _TRIES])
    reference = l_at(rows, tries).max(axis=1)
    low, high = region(
        lambda i, x: power[i, None] * (l_at(i, x) - reference[i, None]) - 0.5 * x * x, mean.size, limit
    )
    x = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, 2 * _PANELS + 1)
    l = l_at(rows, x)
    best = (power[:, None] * (l - reference[:, None]) - 0.5 * x * x).argmax(axis=1)
    centre, top = x[rows, best], l[rows, best]
    slope = differences(log_prob, y, mean + s * centre)[1] if narrow else None
    sums = np.zeros((3 if slope is None else 6, mean.size))
    for i, nodes, w in panels(_edges(mean, s, low, high), 4 if slope is None else 40):
        d = nodes - centre[i, None]
        f = mean[i, None] + s[i, None] * nodes
        columns = [np.ones_like(d), d, d * d]
        if slope is None:
            l = value(log_prob, y[i, None], f)
        else:
            l, first, second, _ = differences(log_prob, np.broadcast_to(y[i, None], f.shape), f)
            first = first - slope[i, None]
            columns += [first, first * first, second]
        exponent = power[i, None] * (l - top[i, None]) - 0.5 * d * (nodes + centre[i, None])
        add_rows(sums, i, w * np.exp(np.minimum(exponent, 100.0)) * np.stack(columns))
    log_top = power * top - 0.5 * centre * centre
    return _from_sums(sums, log_top, centre, s, power, slope)


def _from_sums(
    sums: Array, log_top: Array, centre: Array, s: Array, power: Array, slope: Array | None
) -> Array:
    """Return the moments from sums of 1, d, d², and if narrow of l' - slope, its square and l''."""
    mass = np.maximum(sums[0], 1e-300)
    shift, square, *slopes = sums[1:] / mass
    shrink = np.maximum(square - shift * shift, 1e-300)
    log_mass = np.minimum(log_top + np.log(mass / _SQRT_2PI), 0.0)
    var = np.maximum(s * s, 1e-300)
    if slope is None:
        return np.stack([log_mass, (centre + shift) / s, (1.0 - shrink) / var, shrink])
    first, squares, second = slopes
    direct = -power * second - power * power * (squares - first * first)
    clear = np.abs(1.0 - shrink) > _CLEAR
    curvature = np.where(clear, (1.0 - shrink) / var, direct)
    return np.stack(
        [log_mass, power * (slope + first), curvature, np.where(clear, shrink, 1.0 - s * s * direct)]
    )
