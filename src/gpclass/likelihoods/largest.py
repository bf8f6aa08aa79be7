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
from scipy.special import log_softmax, ndtr, ndtri, roots_legendre

from gpclass.core.protocols import Array, Index
from gpclass.likelihoods.quadrature import blocks

_ROWS = 512  # rows processed at a time, which bounds the memory for copies of covariances
_DROP = np.log(1e-9)  # log probability below which a class is left out
_TRUST = 2e-4  # estimated error of the series above which lattice points are used instead
_POINTS = 1021  # number of lattice points, a prime
_NODES, _WEIGHTS = roots_legendre(10)  # Gauss-Legendre rule of a panel, on [-1, 1]


# Blocks of rows: their index, nodes x, weights, and h with three derivatives, shape (rows, C, nodes) each.
Rule = tuple[Index, Array, Array, list[Array]]


class Noise(NamedTuple):
    """The distribution of the noise of each class, as the integrals that the class probabilities need."""

    pair: Callable[[Array, Array], Array]  # log P(x > 0) from mean and variance of x
    rules: Callable[[Array, Array], Iterator[Rule]]  # from means and variances of independent classes
    given: Callable[[Array, Array], Array]  # mean probabilities, from values (rows, C, points) and normals
    three: Callable[[Array, Array], Array] | None = None  # probabilities of three classes in closed form


def log_average(noise: Noise, mean: Array, cov: Array) -> Array:
    """Return the log probabilities of the classes, shape (n, C)."""
    out = np.empty(mean.shape)
    for start in range(0, len(mean), _ROWS):
        b = slice(start, start + _ROWS)
        out[b] = _some_rows(noise, mean[b] - mean[b].max(axis=1, keepdims=True), cov[b])
    return out


def _some_rows(noise: Noise, mean: Array, cov: Array) -> Array:
    rows, best = np.arange(len(mean)), mean.argmax(axis=1)
    v = np.diagonal(cov, axis1=1, axis2=2)
    variance = np.maximum(v + v[rows, best, None] - cov[rows, best] - cov[rows, :, best], 0.0)
    bound = noise.pair(mean, variance)
    bound[rows, best] = -np.inf
    kept = bound > _DROP
    others = np.minimum(np.exp(bound).sum(axis=1), 0.5)  # larger sums are rounding, or unused
    out = bound.copy()
    out[rows, best] = np.log1p(-others)
    kept[rows, best], bound[rows, best] = True, 0.0
    count, order = kept.sum(axis=1), np.argsort(~kept, axis=1, kind="stable")
    for k in np.unique(count[count > 2]).tolist():
        i = np.flatnonzero(count == k)
        r, c = i[:, None], order[i, :k]
        p, error = _three_or_more(noise, mean[r, c], cov[r[:, :, None], c[:, :, None], c[:, None, :]])
        out[r, c] = np.minimum(np.log(np.maximum(p, error[:, None])), bound[r, c])
    return np.asarray(log_softmax(out, axis=1))


def _three_or_more(noise: Noise, mean: Array, cov: Array) -> tuple[Array, Array]:
    """Return probabilities and their estimated errors, one per row."""
    if mean.shape[1] == 3 and noise.three is not None:
        return noise.three(mean, cov), np.full(len(mean), 1e-12)
    S, D, O = _diagonal_and_rest(cov)
    p, error = _series(noise.rules(mean, D), O)
    far = np.flatnonzero(error > _TRUST)
    if far.size:
        p[far] = _by_points(noise, mean[far], S[far])
    return p, np.clip(error, 1e-30, _TRUST)


def _series(rules: Iterator[Rule], O: Array) -> tuple[Array, Array]:
    """Return the probabilities to order 2 in O, and an estimate of the terms of order 3."""
    p = np.empty((3, *O.shape[:2]))
    for i, _, weight, (h, h1, h2, h3) in rules:
        F, inverse = weight * h.prod(axis=1), 1.0 / h
        r = h1 * inverse
        kappa = h2 * inverse - r * r
        tau = h3 * inverse - r * (3.0 * kappa + r * r)
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


def _diagonal_and_rest(cov: Array) -> tuple[Array, Array, Array]:
    """Return S = P cov P, D and O = S - P D P."""
    n_classes = cov.shape[-1]
    P = np.eye(n_classes) - 1.0 / n_classes
    S = P @ cov @ P
    # |P (cov - D) P|² is smallest for (P∘P) D = diag(S).
    s = np.diagonal(S, axis1=1, axis2=2)
    total = s.sum(axis=1, keepdims=True)
    D = np.maximum((s - total / (n_classes * (n_classes - 1.0))) / (1.0 - 2.0 / n_classes), 0.0)
    return S, D, S - (P * D[:, None, :]) @ P


# --------------------------------------------------------------------------- independent classes


def panels(low: Array, high: Array, width: Array, copies: int) -> Iterator[tuple[Index, Array, Array]]:
    """Yield rows, nodes and weights, shape (rows, nodes), for integrals over the largest of C variables.

    The distribution function of variable c rises from 0 to 1 between low_c and high_c and is smooth on panels of
    width_c, all of shape (n, C). The number of panels does not depend on how different the widths are.
    """
    # The product of the functions is zero below the largest low end and one above the largest high end.
    edges = np.sort(np.concatenate([low, high], axis=1), axis=1)
    edges = np.clip(edges, low.max(axis=1, keepdims=True), high.max(axis=1, keepdims=True))
    start, length = edges[:, :-1], np.diff(edges, axis=1)
    middle = (start + 0.5 * length)[:, :, None]
    rises = (low[:, None, :] <= middle) & (middle <= high[:, None, :])
    counts = np.ceil(length / np.where(rises, width[:, None, :], np.inf).min(axis=2)).astype(np.intp)
    ends = counts.cumsum(axis=1)
    order = np.argsort(ends[:, -1], kind="stable")
    for b in blocks(order.size, copies * _NODES.size * int(ends.max(initial=1))):
        i = order[b]
        panel = np.arange(ends[i, -1].max())
        interval = (panel >= ends[i, :-1, None]).sum(axis=1)
        numbers = start, length, counts, ends
        first, size, count, end = (np.take_along_axis(a[i], interval, axis=1) for a in numbers)
        # Rows with fewer panels are padded.
        half = np.where(panel < end, 0.5 * size / np.maximum(count, 1), 0.0)
        left = first + 2.0 * half * (panel - end + count)
        x = left[:, :, None] + half[:, :, None] * (1.0 + _NODES)
        yield i, x.reshape(len(i), -1), (half[:, :, None] * _WEIGHTS).reshape(len(i), -1)


def normal_cdf(x: Array, s: Array, count: int) -> list[Array]:
    """Return Phi(x / s) and its first derivatives in x, ``count`` in all."""
    z = x / s
    N = np.exp(-0.5 * z * z) / (np.sqrt(2.0 * np.pi) * s)
    if count == 2:
        return [ndtr(z), N]
    u = z / s
    return [ndtr(z), N, -u * N, (u * u - 1.0 / s**2) * N]


# --------------------------------------------------------------------------------- lattice points


def _by_points(noise: Noise, mean: Array, cov: Array) -> Array:
    """Return the mean probabilities over lattice points of N(mean, cov)."""
    values, V = np.linalg.eigh(cov)
    # The longest axes come first, because lattice points are most uniform in their first coordinates.
    A = (V * np.sqrt(np.maximum(values, 0.0))[:, None, :])[:, :, ::-1]
    Z = normal_points(_POINTS, cov.shape[-1])
    out = np.empty_like(mean)
    for b in blocks(len(mean), Z.size):
        # The shortest axis has length zero, so its coordinate can be used for the noise.
        out[b] = noise.given(A[b, :, :-1] @ Z[:-1] + mean[b, :, None], Z[-1])
    return out


@cache
def normal_points(n: int, dim: int) -> Array:
    """Return points that represent N(0, I), shape (dim, 2 n): n (a prime) of a lattice, and their negatives.

    The lattice has rank 1, a shift by multiples of the golden ratio, and is folded by the baker's map. Its generating
    vector is built component by component: each minimises the worst-case error in the Korobov space of smoothness 1
    with weights 1/j². With 4 to 10 classes it is as accurate as the Sobol points of `scipy.stats.qmc`, and
    `scipy.stats` is slow to import.
    """
    k = np.arange(n)
    kernel = 2.0 * np.pi**2 * ((k / n) ** 2 - k / n + 1.0 / 6.0)
    candidates = np.arange(1, (n + 1) // 2)
    table = kernel[(candidates[:, None] * k) % n]
    product, x = np.ones(n), np.empty((dim, n))
    for j in range(dim):
        z = 1 if j == 0 else int(candidates[np.argmin(table @ product)])
        product *= 1.0 + kernel[(z * k) % n] / (j + 1.0) ** 2
        x[j] = np.modf((z * k) % n / n + np.modf((j + 1.0) * 0.6180339887498949)[0])[0]
    points = ndtri(np.clip(1.0 - np.abs(2.0 * x - 1.0), 1e-12, 1.0 - 1e-12))
    return np.concatenate([points, -points], axis=1)
