"""The softmax likelihood p(y = c | f) = exp(f_c) / Σ_k exp(f_k), C latent values per data point.

Averages over independent Gaussians f_c follow from the largest of them. With independent Gumbel noise g_c,
log Σ exp(f_c) = E max_c (f_c + g_c) - γ, and the maximum M has

    P(M <= x) = F(x) = Π_c h_c(x),      h_c(x) = E exp(-exp(f_c - x)).

So E log Σ exp(f) = ∫ x F'(x) dx - γ with F' = F Σ_c r_c, r_c = h_c'/h_c, and, as ∂h_c/∂mean_c = -h_c',

    E[p_c] = ∫ F r_c dx,       E[p_c (1 - p_c)] = ∫ F r_c Σ_{k≠c} r_k dx     (all terms are positive).

**Standard deviations up to 14.** Everything is analytic for |Im x| < pi/2, so the trapezoidal rule of step h = 1/3
errs by about exp(-pi²/h). To the right, where the integrands fall like exp(-x) only, the nodes move apart. A narrow
Gaussian uses Gauss-Hermite quadrature. For a wider one f also runs over a lattice, the same for all rows once the
largest mean is subtracted: h at all nodes is a matrix product. Rows are grouped by the extent of their lattices.

**Wider ones.** The nodes of x are panels adapted to the narrowest class that varies there (`largest.panels`), a number
that does not depend on the variances. Each class is averaged over its noise, h(x) = E Phi((x - mean - g) / s).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import log_softmax

from gpclass.core.protocols import Array, Expected
from gpclass.likelihoods import largest
from gpclass.likelihoods.base import ClassLikelihood
from gpclass.likelihoods.largest import Rule, normal_cdf, panels
from gpclass.likelihoods.logit import Logit
from gpclass.likelihoods.quadrature import blocks, hermite, quiet

_STEP = 1.0 / 3.0
_NARROW = 0.13  # variance below which Gauss-Hermite is used, as exp(-2 pi² var / step²) is 1e-10 there
_ORDER = 16  # number of Gauss-Hermite nodes, whose error is below 1e-10 there
_EDGES = np.array([0.5, 1.0, 1.5, 2.25, 3.5, 5.0, 7.0, 10.0, 14.0])  # largest deviation per lattice
_REACH = 8.0  # number of standard deviations beyond which a Gaussian is negligible
_LOW, _HIGH = 3.7, 38.0  # beyond -_LOW and _HIGH the Gumbel distribution is negligible
_TINY = 1e-100  # smaller entries of a table are set to zero: products with denormal numbers are slow
_PANEL = 1.6  # width of a panel, in standard deviations of value plus noise
_NOISE_VARIANCE = np.pi**2 / 6.0
_NOISE = np.arange(-_LOW, 28.0, _STEP)  # nodes of the trapezoidal rule for averages over the noise
_DENSITY = np.exp(-_NOISE - np.exp(-_NOISE))
_DENSITY /= _DENSITY.sum()


@dataclass(frozen=True, slots=True)
class Softmax(ClassLikelihood):
    """Softmax likelihood for several classes, p(y = c | f) = exp(f_c) / Σ_k exp(f_k).

    Labels are rows y of weights (see `ClassLikelihood`); w = Σ_c Y_c is the weight of a row.

    ``log_predict`` errs by less than 1e-9 with two classes, 1e-8 if the classes are independent, or three whose
    correlations are not strong, and 1e-5 if they correlate as posteriors of independent Gaussian processes do; strong
    correlations between many classes leave errors of 1e-3 at unit variances and 1e-2 at 100. Probabilities
    below 1e-9 are upper bounds.
    """

    probit_scale = Logit().probit_scale  # √(8/pi)

    def log_classes(self, f: Array) -> Array:
        """Return log p(class|f), shape (..., n, C)."""
        with quiet():
            return np.asarray(log_softmax(np.asarray(f, dtype=np.float64), axis=-1))

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return l, its gradient and the vector a that holds its second derivatives.

        The negative Hessian of l is w (diag(p) - p pᵀ) = diag(a) - a aᵀ / Σ_c a_c with a = w p.
        """
        y = np.asarray(y, dtype=np.float64)
        log_p = self.log_classes(f)
        with quiet():
            a = y.sum(axis=-1, keepdims=True) * np.exp(log_p)
            return (y * log_p).sum(axis=-1), y - a, a

    def third(self, y: Array, f: Array, cov: Array) -> Array:
        """Return Σ_ab cov_ab ∂³l / ∂f_a ∂f_b ∂f_c, shape (..., n, C).

        The third derivatives of log Σ exp(f) are the third central moments of a one-hot draw e from p, so
        the sum is -w p_c (q_c - Σ_k p_k q_k) with q_c = (e_c - p)ᵀ cov (e_c - p).
        """
        p = np.exp(self.log_classes(f))
        Cp = np.einsum("...ab,...b->...a", cov, p)
        q = np.diagonal(cov, axis1=-2, axis2=-1) - 2.0 * Cp + (Cp * p).sum(axis=-1, keepdims=True)
        w = np.asarray(y, dtype=np.float64).sum(axis=-1, keepdims=True)
        return np.asarray(-w * p * (q - (p * q).sum(axis=-1, keepdims=True)))

    def log_predict(self, mean: Array, cov: Array) -> Array:
        """Return log of p(class|f) averaged over N(f | mean, cov), shape (n, C)."""
        with quiet():
            return largest.log_average(_GUMBEL, np.asarray(mean, np.float64), np.asarray(cov, np.float64))

    def expected(self, y: Array, mean: Array, var: Array) -> Expected:
        """Return E[l], its gradient and the diagonal of its second derivatives in the mean.

        f_c ~ N(mean_c, var_c) are independent; the gradient is y - w E[p] and the diagonal -w E[p (1 - p)].
        """
        y = np.asarray(y, dtype=np.float64)
        mean, var = (np.asarray(a, dtype=np.float64) for a in (mean, var))
        with quiet():
            value, first, second = log_sum(mean, var)
        w = y.sum(axis=-1, keepdims=True)
        top = mean.max(axis=-1, keepdims=True)
        return Expected((y * (mean - top)).sum(axis=-1) - w[..., 0] * value, y - w * first, -w * second)


# ------------------------------------------------------------ averages over all classes


def log_sum(mean: Array, var: Array) -> tuple[Array, Array, Array]:
    """Return E[log Σ exp(f)] less the largest mean, E[p_c] and E[p_c (1 - p_c)], errors below 1e-9."""
    value, first, second = np.empty(len(mean)), np.empty_like(mean), np.empty_like(mean)
    for i, x, weight, (h, h1) in rules(mean, var, 2):
        r = h1 / h
        total = r.sum(axis=1)
        F = weight * h.prod(axis=1)
        value[i] = (total * F * x).sum(axis=1) - np.euler_gamma
        first[i] = np.einsum("nct,nt->nc", r, F)
        second[i] = np.einsum("nct,nct,nt->nc", r, total[:, None, :] - r, F)
    return value, first, second


def rules(mean: Array, var: Array, count: int = 4) -> Iterator[Rule]:
    """Yield blocks of rows with nodes x, less the largest mean, and h with its derivatives, ``count`` in all."""
    s, n_classes = np.sqrt(var), mean.shape[1]
    largest = s.max(axis=1)
    m = mean - mean.max(axis=1, keepdims=True)
    # A class with a lower mean is never the largest; the cut keeps later results finite.
    m = np.maximum(m, -60.0 - 10.0 * largest[:, None])
    wide = np.flatnonzero(largest > _EDGES[-1])
    low, high = m - _REACH * s - _LOW, m + _HIGH + np.minimum(0.5 * var, _REACH * s)
    width = _PANEL * np.sqrt(var + _NOISE_VARIANCE)
    for part, x, weight in panels(low[wide], high[wide], width[wide], n_classes * count):
        i = wide[part]
        yield i, x, weight, _values(m[i], var[i], np.repeat(x, n_classes, axis=0), None, count)
    # F vanishes where one of its factors does; adjacent rows need about the same nodes.
    size, start = np.searchsorted(_EDGES, largest), low.max(axis=1)
    for k, edge in enumerate(_EDGES.tolist()):
        index = np.flatnonzero(size == k)
        index = index[np.argsort(start[index])]
        x, weight, f, tables = _grid(edge) if index.size else (np.empty(0),) * 4
        for b in blocks(index.size, n_classes * max(x.size, f.size, 1)):
            i = index[b]
            keep = slice(int(np.searchsorted(x, start[i[0]])), None)
            at = np.broadcast_to(x[keep], (i.size * n_classes, x[keep].size))
            lattice = f, tables[:count, :, keep]
            yield i, x[keep], weight[keep], _values(m[i], var[i], at, lattice, count)


@cache
def _grid(edge: float) -> tuple[Array, Array, Array, Array]:
    """Return nodes x and weights for the maximum, a lattice f, and 1 - G and three derivatives of G at x - f.

    F is negligible before the first node and 1 - F after the last.
    """
    low = -_LOW - _REACH * edge
    high = _HIGH + min(0.5 * edge**2, _REACH * edge)
    t = np.arange(low, high + _STEP, _STEP)
    apart = np.exp(np.minimum(t - 1.0 - 4.0 * edge, 10.0))
    keep = slice(int(np.searchsorted(t + apart, high)) + 1)
    x, weight = (t + apart)[keep], (_STEP * (1.0 + apart))[keep]
    f = np.arange(low - _HIGH, 1.0 + _REACH * edge, _STEP)
    G, *derivatives = _gumbel(np.exp(np.clip(f[:, None] - x, -700.0, 230.0)), 4)
    tables = np.stack([1.0 - G, *derivatives])
    return x, weight, f, np.where(np.abs(tables) < _TINY, 0.0, tables)


def _gumbel(e: Array, count: int) -> list[Array]:
    """Return G = exp(-e), e = exp(f - x), and its first derivatives in x, ``count`` in all."""
    G = np.exp(-e)
    first = e * G
    return [G, first, first * (e - 1.0), first * (1.0 + e * (e - 3.0))] if count > 2 else [G, first]


# ------------------------------------------------------------------- averages over one class


def _values(m: Array, v: Array, x: Array, lattice: tuple[Array, Array] | None, count: int) -> list[Array]:
    """Return h, bounded below, and its first derivatives at nodes x of shape (rows · C, nodes)."""
    shape, m, v = m.shape, m.ravel(), v.ravel()
    out = np.empty((count, *x.shape))
    narrow, others = np.flatnonzero(v < _NARROW), np.flatnonzero(v >= _NARROW)
    for b in blocks(narrow.size, x.shape[1] * _ORDER):
        i = narrow[b]
        z, w = hermite(_ORDER)
        e = np.exp(np.minimum(m[i, None] - x[i], 200.0))[:, :, None]
        out[:, i] = [a @ w for a in _gumbel(e * np.exp(np.sqrt(v[i])[:, None, None] * z), count)]
    if lattice is not None and others.size:
        out[:, others] = _by_lattice(m[others], v[others], *lattice)
    for b in blocks(others.size, x.shape[1] * _NOISE.size) if lattice is None else ():
        i = others[b]
        z = (x[i] - m[i, None])[:, :, None] - _NOISE
        out[:, i] = [values @ _DENSITY for values in normal_cdf(z, np.sqrt(v[i])[:, None, None], count)]
    np.maximum(out[0], 1e-30, out=out[0])
    return [a.reshape(*shape, -1) for a in out]


def _by_lattice(m: Array, v: Array, f: Array, tables: Array) -> Array:
    reach = _REACH * float(v.max()) ** 0.5
    part = slice(*np.searchsorted(f, [m.min() - reach, m.max() + reach]))
    N = f[part] - m[:, None]
    np.square(N, out=N)
    N *= (-0.5 / v)[:, None]
    np.exp(np.maximum(N, -60.0, out=N), out=N)
    N *= (_STEP / np.sqrt(2.0 * np.pi * v))[:, None]
    out: Array = N @ tables[:, part]
    out[0] = 1.0 - out[0]
    return out


# ------------------------------------------------------------ correlated classes


def _pair(mean: Array, var: Array) -> Array:
    """Return log E[sigma(f)] under N(mean, var)."""
    return Logit().tilted(np.ones(()), mean, var).log_mass


def _given(f: Array, _: Array) -> Array:
    """Return the mean probabilities over latent values of shape (rows, C, points)."""
    f -= f.max(axis=1, keepdims=True)
    np.exp(f, out=f)
    return np.asarray((f @ (1.0 / f.sum(axis=1))[:, :, None])[:, :, 0] / f.shape[2])


_GUMBEL = largest.Noise(_pair, rules, _given)
