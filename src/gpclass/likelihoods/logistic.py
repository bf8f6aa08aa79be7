"""Gaussian averages of the logistic function sigma(f) = 1/(1 + exp(-f)), accurate in every tail.

Write Z(m) = E[sigma(f)] under N(f | m, var). Three identities leave one half-line to compute:

    sigma(-f) = 1 - sigma(f)             Z(-m) = 1 - Z(m)                          so m = t <= 0,
    sigma(f) = exp(f) sigma(-f)          Z(t) = exp(t + var/2) Z(mu), mu = -t-var  ("reflection"),
    softplus' = sigma,                   softplus(f) - softplus(-f) = f.

The reflection is used for t < -var/2, so that mu > -var/2 always; then sigma(f) N(f | mu, var) lives at
|f| < 40 and to its right, never far to the left, and everything is known relative to itself.

* var < 1/2: Gauss-Hermite at t, with the factor exp(t) taken out.
* var >= 1/2: a lattice. sigma does not decay, so Phi(c f), an entire function whose average is closed, is
  taken away: D = sigma - Phi(c f) falls like exp(-|f|). With mu = -a var, a <= 1/2, and the factor
  exp(-mu²/2var) taken out, what is summed falls like exp(-(1-a)|f|) to the left, exp(-(1+a) f) to the right.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, expit, ndtr

from gpclass.core.protocols import Array
from gpclass.likelihoods.normal import density, tail
from gpclass.likelihoods.power import REACH, Four, Link, integrate
from gpclass.likelihoods.quadrature import Mask, by_regime, lattice_sums, orders

_C = np.sqrt(np.pi / 8.0)  # Phi(c f) has the slope of sigma at 0; any c near 1/2 would do
_WIDE = 0.5  # variance from which the lattice is used
_TINY = -700.0  # exp of less is taken for 0
_LATTICES = ((-20.0, 20.0, 0.4), (-44.0, 40.0, 0.5), (-84.0, 40.0, 0.5))  # from, to, step: see _lattice


class Average(NamedTuple):
    """exp(log_scale) times value, first and second are E[sigma], E[sigma'], E[sigma'']."""

    log_scale: Array
    value: Array
    first: Array
    second: Array


def average(t: Array, var: Array) -> Average:
    """Return the averages of sigma and its two derivatives under N(t, var), for t <= 0.

    Each keeps its relative accuracy however small it is; E[sigma''], which vanishes at t = 0,
    keeps it relative to E[sigma'].
    """
    wide = var >= _WIDE
    return Average(*by_regime(4, [(wide, _average_wide), (~wide, _average_narrow)], t, var))


def log_average(t: Array, var: Array) -> Array:
    """Return log E[sigma] under N(t, var), for t <= 0."""
    a = average(t, var)
    return a.log_scale + np.log(a.value)


def average_softplus(t: Array, var: Array) -> tuple[Array, Array, Array]:
    """Return the averages of softplus, sigma and sigma' under N(t, var), for t <= 0."""
    wide = var >= _WIDE
    value, first, second = by_regime(3, [(wide, _softplus_wide), (~wide, _softplus_narrow)], t, var)
    return value, first, second


def tilted(z: Array, var: Array) -> tuple[Array, Array, Array, Array]:
    """Return log Z, its slope, minus its curvature, and shrink = 1 - var · curvature, at mean z."""
    # log Z(z) = z + var/2 + log Z(mu): left of -var/2 all follows from mu > -var/2.
    reflect = z < -0.5 * var
    mu = np.where(reflect, -z - var, z)
    right = (mu >= 0.0) | (var < _WIDE)
    parts = [(right, _tilted_derivatives), (~right, _tilted_moments)]
    log_mass, slope, curvature, shrink = by_regime(4, parts, mu, var)
    log_mass += np.where(reflect, z + 0.5 * var, 0.0)
    return log_mass, np.where(reflect, 1.0 - slope, slope), curvature, shrink


def _tilted_derivatives(mu: Array, var: Array) -> Array:
    """Slope and curvature from Z, Z', Z'': nothing cancels for mu >= 0, nor for mu > -var/2 > -1/4."""
    positive = mu >= 0.0
    a = average(-np.abs(mu), var)
    scale = np.exp(a.log_scale)
    small = scale * a.value
    Z = np.where(positive, 1.0 - small, a.value)
    log_mass = np.where(positive, np.log1p(-small), a.log_scale + np.log(a.value))
    slope = np.where(positive, scale, 1.0) * a.first / Z
    curvature = slope * slope + np.where(positive, scale, -1.0) * a.second / Z
    return np.stack([log_mass, slope, curvature, 1.0 - var * curvature])


def tilted_power(z: Array, var: Array, power: Array) -> Four:
    """Return the same of N(f | z, var) sigma(f)^power."""
    # The reflection, with the power: log Z(z) = power (z + power var/2) + log Z(mu).
    low = z + 0.5 * power * var
    reflect = low < 0.0
    mu = np.where(reflect, -z - power * var, z)
    log_mass, slope, curvature, shrink = integrate(_LINK, mu, var, power)
    log_mass += np.where(reflect, power * low, 0.0)
    return log_mass, np.where(reflect, power - slope, slope), curvature, shrink


def _functions(f: Array) -> tuple[Array, Array, Array]:
    """Return -l, l' and -l'' of l = log sigma."""
    down = expit(-f)
    return np.log1p(np.exp(-np.abs(f))) - np.minimum(f, 0.0), down, down * expit(f)


def _over_exponential(f: Array) -> tuple[Array, Array, Array]:
    """Return -l, l' and -l'' times exp(f), for f not far below 0."""
    E = np.exp(-f)
    ratio = np.ones_like(f)
    np.divide(np.log1p(E), E, out=ratio, where=E > 1e-20)
    r = 1.0 / (1.0 + E)
    return ratio, r, r * r


_LINK = Link(
    functions=_functions,
    over=_over_exponential,
    factor=lambda f: np.exp(-f),
    shift=lambda z, var: (0.5 * var - z, z - var, var),
    far=lambda var: var + REACH * np.sqrt(var),
    bend=0.25,
)


# ------------------------------------------------------------------------ narrow Gaussians


def _average_narrow(t: Array, var: Array) -> Array:
    """Gauss-Hermite on sigma(f) exp(-t) = E/(1 + exp(t) E), E = exp(s x); x and -x share E."""
    s, e = np.sqrt(var), np.exp(np.maximum(t, _TINY))
    out = np.empty((4, t.size))
    out[0] = t
    for i, x, w in orders(var):
        half = x.size // 2
        up = np.exp(s[i, None] * x[half:])
        out[1:, i] = _sigma_sums(up, e[i, None], w[half:]) + _sigma_sums(1.0 / up, e[i, None], w[half:])
    return out


def _sigma_sums(E: Array, e: Array, w: Array) -> Array:
    """Return Σ w sigma, sigma', sigma'' exp(-t) at exp(f) = e E."""
    # They are E r, E r² and E r² (2r - 1).
    r = 1.0 / (1.0 + e * E)
    g = E * r
    value = g @ w
    g *= r
    first = g @ w
    g *= 2.0 * r - 1.0
    return np.stack([value, first, g @ w])


def _softplus_narrow(t: Array, var: Array) -> Array:
    s, e = np.sqrt(var), np.exp(np.maximum(t, _TINY))
    out = np.zeros((3, t.size))
    for i, x, w in orders(var):
        half = x.size // 2
        up = np.exp(s[i, None] * x[half:])
        for E in (up, 1.0 / up):
            E *= e[i, None]
            out[:, i] += _softplus_sums(E, w[half:])
    out[:, t < _TINY] = 0.0
    return out


def _softplus_sums(E: Array, w: Array) -> Array:
    """Return Σ w softplus, sigma, sigma' at exp(f) = E."""
    r = 1.0 / (1.0 + E)
    value = np.log1p(E) @ w
    E *= r
    first = E @ w
    E *= r
    return np.stack([value, first, E @ w])


# -------------------------------------------------------------------------- wide Gaussians


@cache
def _nodes(lattice: int) -> Array:
    low, high, step = _LATTICES[lattice]
    return np.linspace(low, high, round((high - low) / step) + 1)


@cache
def _table(columns: str, lattice: int) -> Array:
    """Return, a column a letter, the functions summed over the lattice, times its step."""
    f = _nodes(lattice)
    sigma, Phi = expit(f), ndtr(_C * f)
    D = np.where(f < 0.0, sigma - Phi, ndtr(-_C * f) - expit(-f))
    first = sigma * expit(-f)
    x = np.abs(f)
    functions = {
        "0": D,
        "1": first,
        "2": -first * np.tanh(0.5 * f),
        "f": f * D,
        "F": f * f * D,
        # softplus less f Phi(c f) + phi(c f)/c, the integral of Phi(c f): an even function, taken at -|f|
        "s": np.log1p(np.exp(-x)) + x * ndtr(-_C * x) - density(_C * x) / _C,
        # exp(f) softplus(-f), the reflected softplus, less Phi(c f)
        "g": np.exp(f) * (np.log1p(np.exp(-x)) + np.maximum(-f, 0.0)) - Phi,
    }
    return _LATTICES[lattice][2] * np.stack([functions[c] for c in columns], axis=1)


def _lattice(columns: str, mu: Array, var: Array) -> Array:
    """Return sums over the lattice at mu > -var/2, exp(-min(mu, 0)²/2var) taken out; shape (columns, n).

    Each data point gets the shortest lattice outside of which its summand is below exp(-40).
    """
    near = (var <= 4.0) & (mu <= 7.0)
    # To the left the summand falls like exp(-(1 - a) F - F²/2var) at f = -F.
    left = 1.0 + np.minimum(mu / var, 0.0)
    middle = ~near & (44.0 * left + 0.5 * 44.0**2 / var > 40.0)
    mu = np.minimum(mu, 60.0 + 40.0 * np.sqrt(var))  # beyond, the sums are zero: keep the numbers small
    offset = -0.5 * np.maximum(mu, 0.0) ** 2 / var
    out = np.empty((len(columns), mu.size))
    for lattice, mask in enumerate((near, middle, ~near & ~middle)):
        i = np.flatnonzero(mask)
        if i.size:
            out[:, i] = lattice_sums(_nodes(lattice), _table(columns, lattice), mu[i], var[i], offset[i]).T
    return out


def _closed(mu: Array, var: Array) -> tuple[Array, Array]:
    """Return c' mu and E[Phi(c f)] = Phi(c' mu), with exp(-min(mu, 0)²/2var) taken out."""
    ratio = 1.0 + _C * _C * var
    z = mu * (_C / np.sqrt(ratio))
    below = np.minimum(mu, 0.0)
    left = 0.5 * np.exp(0.5 * (below / var) * (below / ratio)) * erfcx(-np.sqrt(0.5) * np.minimum(z, 0.0))
    return z, np.where(mu < 0.0, left, ndtr(z))


def _reflected(t: Array, var: Array) -> tuple[Mask, Array, Array]:
    """Return where to reflect, the mean mu > -var/2, and the logarithm of the factor taken out."""
    deep = t < -0.5 * var
    mu = np.where(deep, -t - var, t)
    below = np.minimum(mu, 0.0)
    return deep, mu, np.where(deep, t + 0.5 * var, 0.0) - 0.5 * below * (below / var)


def _average_wide(t: Array, var: Array) -> Array:
    deep, mu, log_scale = _reflected(t, var)
    d0, d1, d2 = _lattice("012", mu, var)
    d0 += _closed(mu, var)[1]
    # Z(t) = exp(t + var/2) Z(mu) differentiated once and twice.
    first = np.where(deep, d0 - d1, d1)
    second = np.where(deep, d0 - 2.0 * d1 + d2, d2)
    return np.stack([log_scale, d0, first, second])


def _softplus_wide(t: Array, var: Array) -> Array:
    deep, mu, log_scale = _reflected(t, var)
    out = np.empty((3, t.size))
    if deep.any():
        g, d0, d1 = _lattice("g01", mu[deep], var[deep])
        closed = _closed(mu[deep], var[deep])[1]
        out[:, deep] = np.stack([g + closed, d0 + closed, d0 + closed - d1])
    shallow = ~deep
    if shallow.any():
        s, d0, d1 = _lattice("s01", mu[shallow], var[shallow])
        z, closed = _closed(mu[shallow], var[shallow])
        # E of the integral of Phi(c f) is the integral of Phi(c' mu): Phi(z) kappa(z) / c'.
        slope = _C / np.sqrt(1.0 + _C * _C * var[shallow])
        out[:, shallow] = np.stack([s + closed * tail(z).kappa / slope, d0 + closed, d1])
    out *= np.exp(log_scale)
    return out


def _tilted_moments(mu: Array, var: Array) -> Array:
    """Mean and variance of sigma(f) N(f | mu, var), -var/2 < mu < 0, as a mixture of Phi(c f) N and D N.

    Moments, not derivatives of log Z, because the variance may be a small part of var.
    """
    z, closed = _closed(mu, var)
    d0, d1, d2 = _lattice("0fF", mu, var)
    t = tail(z)
    ratio = 1.0 + _C * _C * var
    # Of Phi(c f) N: mean mu + var c' rho and variance var (1 - var c'² rho kappa), c'² = c²/ratio,
    # rewritten with mu = z/c' so that nothing cancels.
    mean = (t.kappa - t.rho / ratio) * np.sqrt(ratio) / _C
    variance = var * (1.0 + _C * _C * var * t.omega) / ratio
    mass = closed + d0
    centre = (closed * mean + d1) / mass
    total = closed * (variance + (mean - centre) ** 2) + d2 - 2.0 * centre * d1 + centre**2 * d0
    shrink = total / (mass * var)
    log_mass = np.log(mass) - 0.5 * mu * (mu / var)
    return np.stack([log_mass, (centre - mu) / var, (1.0 - shrink) / var, shrink])
