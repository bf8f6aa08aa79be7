"""Gaussian averages of the logistic function sigma(f) = 1/(1 + exp(-f)), accurate in every tail.

With Z(m) = E[sigma(f)^power] under N(f | m, var), the identity sigma(f) = exp(f) sigma(-f) gives

    Z(z) = exp(power (z + power var/2)) Z(mu),    mu = -z - power var      ("reflection").

It is used for z < -power var/2, so that mu > -power var/2 always: then sigma(f)^power N(f | mu, var) has its
mass near 0 or to the right of it, never far to the left, where the rules of `gpclass.likelihoods.links` apply.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from gpclass.core.protocols import Array
from gpclass.likelihoods import links
from gpclass.likelihoods.links import REACH, Four, Link, Three
from gpclass.likelihoods.quadrature import orders


def tilted(z: Array, var: Array, power: Array | None = None) -> Four:
    """Return log mass, slope, curvature and shrink of N(f | z, var) sigma(f)^power, power 1 if none is given."""
    z, var, scale = links.within_range(z, var)
    a = 1.0 if power is None else power
    low = z + 0.5 * a * var
    reflect = low < 0.0
    mu = np.where(reflect, -z - a * var, z)
    log_mass, slope, curvature, shrink = links.integrate(LINK, mu, var, power)
    log_mass = log_mass + np.where(reflect, a * low, 0.0)
    return log_mass, np.where(reflect, a - slope, slope) / scale, curvature / scale / scale, shrink


def log_average(z: Array, var: Array) -> Array:
    """Return log E[sigma] under N(z, var)."""
    return tilted(z, var)[0]


def _functions(f: Array) -> Three:
    """Return -l, l' and -l'' of l = log sigma."""
    down = expit(-f)
    return np.log1p(np.exp(-np.abs(f))) - np.minimum(f, 0.0), down, down * expit(f)


def _over_exponential(f: Array) -> Three:
    """Return -l, l' and -l'' times exp(f), for f not far below 0."""
    E = np.maximum(np.exp(-f), 1e-300)
    r = 1.0 / (1.0 + E)
    return np.log1p(E) / E, r, r * r


def _unit(mean: Array, var: Array) -> Array:
    """Return E of 1 - sigma, sigma' and -sigma'' times exp(f), by Gauss-Hermite."""
    s, e = np.sqrt(var), np.exp(-mean)
    out = np.empty((3, mean.size))
    for i, x, w in orders(var):
        half = x.size // 2
        # Nodes x and -x share the exponential; it is cut where E is negligible because the mean is large.
        up = np.exp(np.minimum(s[i, None] * x[half:], 600.0))
        out[:, i] = sum(_unit_sums(e[i, None] * E, w[half:]) for E in (up, 1.0 / up))
    return out


def _unit_sums(E: Array, w: Array) -> Array:
    r = 1.0 / (1.0 + E)
    square = r * r
    return np.stack([r @ w, square @ w, (square * (2.0 * r - 1.0)) @ w])


LINK = Link(
    functions=_functions,
    over=_over_exponential,
    unit=_unit,
    factor=lambda f: np.exp(-f),
    shift=lambda z, var: (0.5 * var - z, z - var, var),
    far=lambda var: var + REACH * np.sqrt(var),
    bend=0.25,
    narrow=0.16,
)
