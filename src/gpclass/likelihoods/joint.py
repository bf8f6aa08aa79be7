"""Class probabilities averaged over N(mean, cov) of the latent values, correlations and all.

A shift of all classes together changes no probability, so covariances are projected on differences between
classes by P = I - 11ᵀ/C. There are four steps for each row:

1. A class that beats the one of largest mean with probability below 1e-9 is left out: that changes the other
   probabilities by less.
2. Two or three classes left: one- and two-dimensional rules, accurate to 1e-8 or better.
3. More: let D be the diagonal for which P D P is nearest P cov P. With it the maximum has the distribution
   function F(x) = Π_c h_c(x), and the probabilities follow from an integral over x. In posterior covariances
   of Gaussian processes that are independent a priori the rest, O = P (cov - D) P, is a few per cent, and has no
   diagonal. As ∂E/∂cov_ab = ∂²E/∂mean_a ∂mean_b, log F is a series in O; with r, kappa, tau the first
   derivatives of log h and g = O r its terms up to O² are

       log F = Σ log h_a + ½ rᵀO r + ½ Σ_a kappa_a g_a² + ¼ kappaᵀ(O∘O) kappa + ...

   and E[p_c] = -∫ ∂F/∂mean_c dx. Where O² adds too much for O³ to be small, the mean over quasi-random points of
   N(mean, cov) is more accurate.
4. A class whose probability is too small for this gets its logarithm from points shifted to where it wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, ndtri

from gpclass.core.protocols import Array, Index

_ROWS = 512  # at a time: copies of their covariances are to stay small
_DROP = np.log(1e-9)
_SMALL = 3e-4  # the probability below which points that are not shifted give too few digits
_TRUST = 5e-5  # the estimated error of the series above which points are more accurate


# Blocks of rows: their index, F times weights at nodes, and r, kappa, tau, shape (rows, C, nodes).
Nodes = Iterator[tuple[Index, Array, Array, Array, Array]]


class Pieces(NamedTuple):
    """What a likelihood gives, for any number of classes unless said otherwise."""

    pair: Callable[[Array, Array], Array]  # mean and variance of a difference: log P(it is positive)
    triple: Callable[[Array, Array], Array]  # three classes: log probabilities
    nodes: Callable[[Array, Array], Nodes]  # mean and variances of independent classes
    points: Callable[[Array, Array], Array]  # mean and covariance: probabilities, from points
    tail: Callable[[Array, Array], Array]  # log probability of the first class, when it is small


def log_average(pieces: Pieces, mean: Array, cov: Array) -> Array:
    """Return the log probabilities of the classes, shape (n, C)."""
    if len(mean) > _ROWS:
        cuts = range(_ROWS, len(mean), _ROWS)
        parts = zip(np.split(mean, cuts), np.split(cov, cuts), strict=True)
        return np.concatenate([log_average(pieces, *part) for part in parts])
    n, n_classes = mean.shape
    mean = mean - mean.max(axis=1, keepdims=True)
    best = mean.argmax(axis=1)
    rows = np.arange(n)
    v = np.diagonal(cov, axis1=1, axis2=2)
    variance = np.maximum(v + v[rows, best, None] - cov[rows, best] - cov[rows, :, best], 0.0)
    out = pieces.pair(mean.ravel(), variance.ravel()).reshape(mean.shape)
    if n_classes == 2:
        # The other's complement, exactly.
        out[rows, best] = np.log1p(-np.exp(out[rows, 1 - best]))
        return out
    out[rows, best] = 0.0
    kept = out > _DROP
    count = kept.sum(axis=1)
    order = np.argsort(~kept, axis=1, kind="stable")
    for k in np.unique(count).tolist():
        i = np.flatnonzero(count == k)
        _fill(pieces, mean, cov, i, order[i], k, out)
    return np.asarray(log_softmax(out, axis=1))


def _fill(pieces: Pieces, mean: Array, cov: Array, i: Index, order: Index, k: int, out: Array) -> None:
    """Fill the rows i of ``out``, where the first k of ``order`` are the classes kept."""
    log_p, floor = _few(pieces, *_take(mean, cov, i, order[:, :k]), k)
    np.put_along_axis(out_rows := out[i], order[:, :k], log_p, axis=1)
    out[i] = out_rows
    for j in range(order.shape[1] if k > 1 else 0):
        small = np.ones(i.size, bool) if j >= k else log_p[:, j] < floor
        if not small.any():
            continue
        columns = np.delete(order[small, :k], j, axis=1) if j < k else order[small, :k]
        columns = np.concatenate([order[small, j : j + 1], columns], axis=1)
        found = pieces.tail(*_take(mean, cov, i[small], columns))
        out[i[small], order[small, j]] = np.minimum(found, out[i[small], order[small, j]] if j >= k else 0.0)


def _take(mean: Array, cov: Array, rows: Index, classes: Index) -> tuple[Array, Array]:
    """Return mean and covariance of some classes of some rows."""
    r = rows[:, None]
    return mean[r, classes], cov[r[:, :, None], classes[:, :, None], classes[:, None, :]]


def _few(pieces: Pieces, mean: Array, cov: Array, k: int) -> tuple[Array, Array]:
    """Return log probabilities, and the value below which they are not to be trusted, one per row."""
    if k > 3:
        return _many(pieces, mean, cov)
    log_p: Array = np.zeros((len(mean), 1))
    if k == 2:
        var = np.maximum(cov[:, 0, 0] + cov[:, 1, 1] - cov[:, 0, 1] - cov[:, 1, 0], 0.0)
        d = mean[:, 1] - mean[:, 0]
        log_p = np.stack([pieces.pair(-d, var), pieces.pair(d, var)], axis=1)
    elif k == 3:
        log_p = pieces.triple(mean, cov)
    return log_p, np.full(len(mean), -np.inf)


def _many(pieces: Pieces, mean: Array, cov: Array) -> tuple[Array, Array]:
    D, O = _diagonal_and_rest(cov)
    p, error = _series(pieces.nodes(mean, D), O)
    far = np.flatnonzero(error > _TRUST)
    if far.size:
        p[far] = pieces.points(mean[far], cov[far])
    floor = np.where(error > _TRUST, _SMALL, 1e-9 + 30.0 * error)
    return np.log(np.maximum(p, 1e-12)), np.log(floor)


def _series(nodes: Nodes, O: Array) -> tuple[Array, Array]:
    """Return the probabilities to order 2 in O, and an estimate of what order 3 would add."""
    p = np.empty((3, *O.shape[:2]))
    for i, F, r, kappa, tau in nodes:
        far = (F < 1e-12)[:, None, :]
        r, kappa, tau = (np.where(far, 0.0, a) for a in (r, kappa, tau))
        g, Qk = O[i] @ r, (O[i] * O[i]) @ kappa
        one = 0.5 * (r * g).sum(axis=1)
        two = 0.5 * (kappa * (g * g + 0.5 * Qk)).sum(axis=1)
        first = kappa * g
        second = 0.5 * tau * (g * g + Qk) + kappa * (O[i] @ first)
        p[0, i] = np.einsum("nct,nt->nc", r, F)
        p[1, i] = np.einsum("nct,nt->nc", r, F * one) + np.einsum("nct,nt->nc", first, F)
        p[2, i] = np.einsum("nct,nt->nc", r, F * (two + 0.5 * one * one))
        p[2, i] += np.einsum("nct,nt->nc", first, F * one) + np.einsum("nct,nt->nc", second, F)
    size = np.abs(p).max(axis=2)
    error = size[2] * np.minimum(1.0, size[2] / np.maximum(size[1], 1e-300))
    # What the floor of D leaves on the diagonal of O is not in the series; p'' is below 1/10.
    error += 0.05 * np.abs(np.diagonal(O, axis1=1, axis2=2)).max(axis=1)
    return p.sum(axis=0), error


def _diagonal_and_rest(cov: Array) -> tuple[Array, Array]:
    """Return D and O = P (cov - D) P."""
    n_classes = cov.shape[-1]
    P = np.eye(n_classes) - 1.0 / n_classes
    S = P @ cov @ P
    # |P (cov - D) P|² is least where (P∘P) D = diag(S); a floor keeps D positive.
    s = np.diagonal(S, axis1=1, axis2=2)
    total = s.sum(axis=1, keepdims=True)
    D = (s - total / (n_classes * (n_classes - 1.0))) / (1.0 - 2.0 / n_classes)
    D = np.maximum(D, 1e-3 * total / n_classes)
    return D, S - (P * D[:, None, :]) @ P


# ------------------------------------------------------------------------- lattice points
#
# A rank-1 lattice, the same at every call. With 4 to 10 classes it is as accurate as the Sobol points of
# `scipy.stats.qmc`; it takes any prime number of points and does not import `scipy.stats`, which is slow.


@cache
def generator(n: int, dim: int) -> tuple[int, ...]:
    """Return the generating vector of a lattice of n (prime) points, built component by component.

    Each component minimises the worst-case error in the Korobov space of smoothness 1 with weights 1/j².
    """
    k = np.arange(n)
    kernel = 2.0 * np.pi**2 * ((k / n) ** 2 - k / n + 1.0 / 6.0)
    candidates = np.arange(1, (n + 1) // 2)
    table = kernel[(candidates[:, None] * k) % n]
    product = np.ones(n)
    out: list[int] = []
    for j in range(dim):
        z = 1 if j == 0 else int(candidates[np.argmin(table @ product)])
        product *= 1.0 + kernel[(z * k) % n] / (j + 1.0) ** 2
        out.append(z)
    return tuple(out)


@cache
def uniform_points(n: int, dim: int) -> Array:
    """Return points of the unit cube, shape (dim, n): a shifted lattice folded by the baker's map."""
    z = np.array(generator(n, dim), dtype=np.int64)
    # The shift, by multiples of the golden ratio, keeps all coordinates inside (0, 1).
    shift = np.modf((np.arange(dim) + 1.0) * 0.6180339887498949)[0]
    x = np.modf((z[:, None] * np.arange(n)) % n / n + shift[:, None])[0]
    return np.asarray(1.0 - np.abs(2.0 * x - 1.0))


@cache
def normal_points(n: int, dim: int) -> Array:
    """Return points whose averages are those of N(0, I), shape (dim, 2 n): n of them and their negatives."""
    z = ndtri(np.clip(uniform_points(n, dim), 1e-12, 1.0 - 1e-12))
    return np.concatenate([z, -z], axis=1)
