"""Gaussian averages of the softmax: the pieces of `gpclass.likelihoods.joint`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_softmax

from gpclass.core.protocols import Array, Index
from gpclass.likelihoods import gumbel, joint, logistic
from gpclass.likelihoods.joint import normal_points
from gpclass.likelihoods.quadrature import add_rows, bend_points, blocks, panels

_POINTS, _TAIL_POINTS = 2039, 61
_REACH = 6.3  # deviations either side of the mode
_MOST = 200  # half the number of nodes from which panels are used instead


def log_average(mean: Array, cov: Array) -> Array:
    """Return log E[softmax(f)], f ~ N(mean, cov), shape (n, C)."""
    return joint.log_average(_PIECES, mean, cov)


def _points(mean: Array, A: Array) -> Array:
    Z = normal_points(_POINTS, A.shape[-1])
    out = np.empty_like(mean)
    for b in blocks(len(mean), Z.size):
        f = A[b] @ Z
        f += mean[b, :, None]
        f -= f.max(axis=1, keepdims=True)
        np.exp(f, out=f)
        out[b] = (f @ (1.0 / f.sum(axis=1))[:, :, None])[:, :, 0]
    out /= Z.shape[1]
    return out


# ---------------------------------------------------------------------------- three classes


def _triple(mean: Array, cov: Array) -> Array:
    """Return the log probabilities of three classes, each by one integral over the difference of the others.

    With d = f_c - f_a and t = f_b - f_a, p_c = sigma(d - softplus(t)), and d given t is Gaussian: its average
    is that of the logistic function. The remaining sum over t is log-concave. The class of largest mean
    gets one minus the others, unless that is too small.
    """
    out = np.empty_like(mean)
    rows = np.arange(len(mean))
    best = mean.argmax(axis=1)
    for c in (1, 2):
        out[rows, (best + c) % 3] = _one(mean, cov, (best + c) % 3)
    rest = -np.expm1(np.logaddexp(out[rows, (best + 1) % 3], out[rows, (best + 2) % 3]))
    out[rows, best] = np.log(np.maximum(rest, 1e-300))
    little = np.flatnonzero(rest < 1e-4)
    if little.size:
        out[little, best[little]] = _one(mean[little], cov[little], best[little])
    return np.asarray(log_softmax(out, axis=1))


def _one(mean: Array, cov: Array, c: Index) -> Array:
    """Return log E[p_c] of one of three classes in each row."""
    r, a, b = np.arange(len(mean)), (c + 1) % 3, (c + 2) % 3
    ca, cb = cov[r, c, a], cov[r, c, b]
    va, vb, ab = cov[r, a, a], cov[r, b, b], cov[r, a, b]
    variance = cov[r, c, c] + va - 2.0 * ca
    return _outer(
        mean[r, c] - mean[r, a], mean[r, b] - mean[r, a], variance, va + vb - 2.0 * ab, cb - ca - ab + va
    )


class _Line(NamedTuple):
    """What the summand over the standardised t is made of, one per row."""

    d: Array
    t: Array
    slope: Array  # of the mean of d in the standardised t
    st: Array
    rest: Array  # variance of d given t

    def take(self, i: Index) -> _Line:
        return _Line(*(a[i] for a in self))

    def log_summand(self, z: Array) -> Array:
        """Return log E[sigma(d - softplus(t))] given t, plus the exponent of its density."""
        d, t, slope, st, rest = (a[:, None] for a in self)
        arg = d + slope * z - np.logaddexp(0.0, t + st * z)
        L = logistic.log_average(arg.ravel(), np.broadcast_to(rest, z.shape).ravel()).reshape(z.shape)
        return np.asarray(L - 0.5 * z * z)


def _outer(d: Array, t: Array, vd: Array, vt: Array, cross: Array) -> Array:
    st = np.sqrt(np.maximum(vt, 0.0))
    slope = np.zeros_like(d)
    np.divide(cross, st, out=slope, where=st > 1e-150)
    line = _Line(d, t, slope, st, np.maximum(vd - slope * slope, 0.0))
    # The strip in which the summand is analytic is pi over the slopes of its argument to the left and right.
    steep = np.maximum(np.maximum(np.abs(slope), np.abs(slope - st)), st)
    # Steps of 0.9 and 1.05/steep err by exp(-2 pi²/0.9²) ≈ 3e-11 and exp(-2 pi²/1.05) ≈ 7e-9.
    count = np.ceil(1.25 ** np.ceil(np.log(_REACH * np.maximum(1.0 / 0.9, steep / 1.05)) / np.log(1.25)))
    centre = _centre(*line)
    out = np.empty_like(d)
    for k in np.unique(count[count <= _MOST]).tolist():
        index = np.flatnonzero(count == k)
        x = np.arange(-k, k + 1.0) * (_REACH / k)
        for b in blocks(index.size, 8 * x.size):
            i = index[b]
            L = line.take(i).log_summand(centre[i, None] + x)
            top = L.max(axis=1)
            out[i] = top + np.log(np.exp(L - top[:, None]).sum(axis=1) * (x[1] - x[0]) / np.sqrt(2.0 * np.pi))
    many = np.flatnonzero(count > _MOST)
    if many.size:
        out[many] = _by_panels(line.take(many), centre[many])
    return np.minimum(out, 0.0)


def _by_panels(line: _Line, centre: Array) -> Array:
    """Sum over panels that are narrow where the summand bends: at t = 0, and where either class wins."""
    low, high = centre - _REACH, centre + _REACH
    d, t, slope, st, rest = line
    unit = np.maximum(1.0, np.sqrt(rest))
    edges = [centre[:, None] + np.linspace(-_REACH, _REACH, 9)]
    for value, gradient, width in ((t, st, 1.0), (d, slope, unit), (d - t, slope - st, unit)):
        steep = np.where(np.abs(gradient) < 1e-100, 1e-100, gradient)
        farthest = float(np.max(_REACH * np.abs(gradient), initial=1.0))
        edges.append(
            (-value / steep)[:, None] + np.multiply.outer(width / np.abs(steep), bend_points(farthest))
        )
    points = np.sort(np.clip(np.concatenate(edges, axis=1), low[:, None], high[:, None]), axis=1)
    top = line.log_summand(centre[:, None])[:, 0]
    sums = np.zeros((1, d.size))
    for i, z, w in panels(points, 8):
        L = line.take(i).log_summand(z)
        add_rows(sums, i, (w * np.exp(np.minimum(L - top[i, None], 600.0)))[None])
    return np.asarray(top + np.log(np.maximum(sums[0], 1e-300) / np.sqrt(2.0 * np.pi)))


def _centre(d: Array, t: Array, slope: Array, st: Array, rest: Array) -> Array:
    """Return the mode of the summand, by Newton's method kept within a bracket."""
    z = np.zeros_like(d)
    # Where the probability is not small, the mode is near that of the Gaussian.
    far = np.flatnonzero(logistic.log_average(d - np.logaddexp(0.0, t), rest) < -3.0)
    if far.size:
        z[far] = _climb(d[far], t[far], slope[far], st[far], rest[far])
    return z


def _climb(d: Array, t: Array, slope: Array, st: Array, rest: Array) -> Array:
    z = np.zeros_like(d)
    low, high = np.full_like(d, -np.inf), np.full_like(d, np.inf)
    for _ in range(12):
        u = t + st * z
        p = expit(u)
        _, g, c, _ = logistic.tilted(d + slope * z - np.logaddexp(0.0, u), rest)
        lean = slope - st * p
        gradient = g * lean - z
        low, high = np.where(gradient > 0.0, z, low), np.where(gradient > 0.0, high, z)
        z = z + gradient / (1.0 + c * lean * lean + g * st * st * p * (1.0 - p))
        outside = (z <= low) | (z >= high)
        finite = np.isfinite(low) & np.isfinite(high)
        middle = 0.5 * (np.where(finite, low, z) + np.where(finite, high, z))
        z = np.where(outside & finite, middle, z)
    return z


# ---------------------------------------------------------------------------------- tails


def _tail(mean: Array, cov: Array) -> Array:
    """Return log E[p_0] from points shifted to where p_0 N(f | mean, cov) is about largest.

    With alpha = share (e_0 - e_j), j the class of largest mean,
    E[p_0] = E[p_0(f) exp(-alphaᵀ(f - mean) + ½ alphaᵀ cov alpha)] under N(mean + cov alpha, cov).
    """
    n, k = mean.shape
    rows = np.arange(n)
    j = 1 + mean[:, 1:].argmax(axis=1)
    d = mean[:, 0] - mean[rows, j]
    shift = cov[:, 0] - cov[rows, j]  # cov (e_0 - e_j)
    s2 = np.maximum(shift[:, 0] - shift[rows, j], 0.0)
    share = _share(d, s2)
    values, V = np.linalg.eigh(cov)
    A = (V * np.sqrt(np.maximum(values, 0.0))[:, None, :])[:, :, ::-1]
    Z = normal_points(_TAIL_POINTS, k)
    out = np.empty(n)
    centre = mean + share[:, None] * shift
    for b in blocks(n, Z.size):
        r = np.arange(len(mean[b]))
        f = A[b] @ Z + centre[b, :, None]
        L = f[:, 0] - np.logaddexp.reduce(f, axis=1)
        L -= share[b, None] * (f[:, 0] - f[r, j[b]] - d[b, None] - 0.5 * (share * s2)[b, None])
        top = L.max(axis=1)
        out[b] = top + np.log(np.exp(L - top[:, None]).mean(axis=1))
    return np.minimum(out, 0.0)


def _share(d: Array, s2: Array) -> Array:
    """Return t = sigma(-(d + t s2)): the mode of sigma(d + t s2) exp(-t² s2 / 2), by bisection."""
    low, high = np.zeros_like(d), np.ones_like(d)
    for _ in range(30):
        t = 0.5 * (low + high)
        up = expit(-(d + t * s2)) > t
        low, high = np.where(up, t, low), np.where(up, high, t)
    return 0.5 * (low + high)


_PIECES = joint.Pieces(logistic.log_average, _triple, gumbel.nodes, _points, _tail)
