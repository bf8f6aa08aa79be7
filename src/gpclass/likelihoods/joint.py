"""Class probabilities averaged over N(mean, cov) of the latent values, for likelihoods with one value per class.

The class whose latent value plus independent noise is largest is observed: Gumbel noise makes this softmax, normal
noise the multinomial probit. A shift of all classes together changes no probability, so covariances are projected on
differences between classes by P = I - 11ᵀ/C. For each row:

1. A class that beats the one of largest mean with probability below 1e-9 is left out and gets that probability, an
   upper bound of its own.
2. If two classes remain, one of them has the complement of the other.
3. Otherwise let D be the diagonal for which P D P is nearest to P cov P. For independent values of these variances, the
   largest has the distribution function F(x) = Π_c h_c(x). The rest, O = P (cov - D) P, is zero for three classes,
   and a few per cent in posteriors of Gaussian processes that are independent a priori; it has no diagonal. As
   ∂E/∂cov_ab = ∂²E/∂mean_a ∂mean_b, log F is a series in O; with r, kappa, tau the first derivatives of log h and
   g = O r its terms up to O² are

       log F = Σ log h_a + ½ rᵀO r + ½ Σ_a kappa_a g_a² + ¼ kappaᵀ(O∘O) kappa + ...

   and E[p_c] = -∫ ∂F/∂mean_c dx.
4. Where the terms in O² are so large that those in O³ matter, lattice points of N(mean, cov) are more accurate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, ndtri

from gpclass.core.protocols import Array, Index

_ROWS = 512  # rows at a time, so that copies of their covariances stay small
_DROP = np.log(1e-9)  # log probability below which a class is left out
_TRUST = 5e-5  # the estimated error of the series above which points are more accurate


# Blocks of rows: their index, F times weights at nodes, and r, kappa, tau, shape (rows, C, nodes).
Nodes = Iterator[tuple[Index, Array, Array, Array, Array]]


class Pieces(NamedTuple):
    """The integrals that a likelihood provides."""

    pair: Callable[[Array, Array], Array]  # mean and variance of a difference: log P(it is positive)
    nodes: Callable[[Array, Array], Nodes]  # mean and variances of independent classes
    points: Callable[[Array, Array], Array]  # mean and covariance: probabilities, from lattice points
    three: Callable[[Array, Array], Array] | None = None  # probabilities of three classes in closed form


def log_average(pieces: Pieces, mean: Array, cov: Array) -> Array:
    """Return the log probabilities of the classes, shape (n, C)."""
    out = np.empty(mean.shape)
    for start in range(0, len(mean), _ROWS):
        b = slice(start, start + _ROWS)
        out[b] = _some_rows(pieces, mean[b] - mean[b].max(axis=1, keepdims=True), cov[b])
    return out


def _some_rows(pieces: Pieces, mean: Array, cov: Array) -> Array:
    rows, best = np.arange(len(mean)), mean.argmax(axis=1)
    v = np.diagonal(cov, axis1=1, axis2=2)
    variance = np.maximum(v + v[rows, best, None] - cov[rows, best] - cov[rows, :, best], 0.0)
    bound = pieces.pair(mean, variance)
    bound[rows, best] = -np.inf
    kept = bound > _DROP
    others = np.minimum(np.exp(bound).sum(axis=1), 0.5)  # larger sums are rounding errors, or are not used
    out = bound.copy()
    out[rows, best] = np.log1p(-others)
    kept[rows, best], bound[rows, best] = True, 0.0
    count, order = kept.sum(axis=1), np.argsort(~kept, axis=1, kind="stable")
    for k in np.unique(count[count > 2]).tolist():
        i = np.flatnonzero(count == k)
        r, c = i[:, None], order[i, :k]
        p, error = _three_or_more(pieces, mean[r, c], cov[r[:, :, None], c[:, :, None], c[:, None, :]])
        out[r, c] = np.minimum(np.log(np.maximum(p, error[:, None])), bound[r, c])
    return np.asarray(log_softmax(out, axis=1))


def _three_or_more(pieces: Pieces, mean: Array, cov: Array) -> tuple[Array, Array]:
    """Return probabilities and their estimated errors, one per row."""
    if mean.shape[1] == 3 and pieces.three is not None:
        return pieces.three(mean, cov), np.full(len(mean), 1e-12)
    D, O = _diagonal_and_rest(cov)
    p, error = _series(pieces.nodes(mean, D), O)
    far = np.flatnonzero(error > _TRUST)
    if far.size:
        P = np.eye(mean.shape[1]) - 1.0 / mean.shape[1]
        p[far] = pieces.points(mean[far], P @ cov[far] @ P)
    return p, np.clip(error, 1e-30, _TRUST)


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
    # A negative variance in D is set to zero; the series ignores the remainder on the diagonal of O.
    error += 0.05 * np.abs(np.diagonal(O, axis1=1, axis2=2)).max(axis=1)  # p'' is below 1/10
    return p.sum(axis=0), error


def _diagonal_and_rest(cov: Array) -> tuple[Array, Array]:
    """Return D and O = P (cov - D) P."""
    n_classes = cov.shape[-1]
    P = np.eye(n_classes) - 1.0 / n_classes
    S = P @ cov @ P
    # |P (cov - D) P|² is smallest for (P∘P) D = diag(S).
    s = np.diagonal(S, axis1=1, axis2=2)
    total = s.sum(axis=1, keepdims=True)
    D = np.maximum((s - total / (n_classes * (n_classes - 1.0))) / (1.0 - 2.0 / n_classes), 0.0)
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
    """Return points that represent N(0, I), shape (dim, 2 n): n of them and their negatives."""
    z = ndtri(np.clip(uniform_points(n, dim), 1e-12, 1.0 - 1e-12))
    return np.concatenate([z, -z], axis=1)
