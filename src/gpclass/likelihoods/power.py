"""Mass and moments of N(f | z, var) p(f)^power for a link p(f) near Phi(f): what power EP asks for.

With l = log p, w = exp(power · l) N and the averages E_w under it,

    slope = power E_w[l'],    curvature = -power E_w[l''] - power² Var_w[l'],    shrink = Var_w[f] / var.

**Deficit**, z >= 0. The mass is near one, so its complement and derivatives are computed instead,

    I0 = ∫ N (1 - exp(power l)),    I1 = dI0/dz with its sign changed,    I2 = d²I0/dz²,

and log mass = log(1 - I0), slope = I1 / (1 - I0), curvature = slope² + I2 / (1 - I0) keep their relative
accuracy however small they are. Far to the right these integrands live where ``factor`` N does, with
``factor`` the function, exp(-f) or phi(f), that 1 - p falls like: Gauss-Hermite there. Otherwise a lattice.

**Moments**, z < 0. Sums of w, f and f² over a lattice give mass, mean and variance.

The lattice is f = b sinh(u), dense near 0 where l bends and coarse far out where only the Gaussian is
left; l and its derivatives on it are tables. The integrands are analytic for |Im u| < 1/2, where they grow
by at most exp(17) (a Gaussian 9 standard deviations from 0), so a step of 1/16 in u errs by exp(17 - 50).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpclass.core.protocols import Array, Tilted
from gpclass.likelihoods.quadrature import blocks, flatten, orders, quiet

Three = tuple[Array, Array, Array]
Four = tuple[Array, Array, Array, Array]
Unit = Callable[[Array, Array], Four]
Powered = Callable[[Array, Array, Array], Four]
Index = NDArray[np.intp]

MAX_POWER = 2.0
REACH = 9.0  # standard deviations beyond which a Gaussian is nothing
WIDE = 0.5  # variance from which the lattice is used
_WIDEST = 1e9
_FARTHEST = 1e100  # squares of what is beyond might overflow
_DEVIATIONS = (10.0, 1e3, 4e4)  # standard deviations for which there are lattices
_B, _STEP = 4.0, 0.0625
_FLOOR = -700.0
_CLEAR = 0.9  # shrink below which 1 - shrink has lost nothing


class Link(NamedTuple):
    """What the rules need to know of p(f): functions of f unless said otherwise.

    ``functions`` gives -l, l', -l'' and ``over`` the same divided by ``factor``; ``shift`` takes (z, var) to
    the logarithm of the mass, the mean and the variance of factor(f) N(f | z, var); ``far`` takes var to
    the z beyond which that is all that counts; ``bend`` bounds -l''.
    """

    functions: Callable[[Array], Three]
    over: Callable[[Array], Three]
    factor: Callable[[Array], Array]
    shift: Callable[[Array, Array], Three]
    far: Callable[[Array], Array]
    bend: float


def tilted(unit: Unit, powered: Powered, y: Array, mean: Array, var: Array, power: Array | float) -> Tilted:
    """Return mass and moments of N(f | mean, var) p(y f)^power, by ``unit`` where power is 1."""
    if np.ndim(power) == 0 and power == 1.0:
        shape, (y, mean, var) = flatten(y, mean, var)
        with quiet():
            log_mass, slope, curvature, shrink = unit(y * mean, var)
    else:
        shape, (y, mean, var, power) = flatten(y, mean, var, power)
        check_power(power)
        one, z = power == 1.0, y * mean
        out = np.empty((4, z.size))
        with quiet():
            out[:, one] = unit(z[one], var[one])
            out[:, ~one] = _within_range(powered, z[~one], var[~one], power[~one])
        log_mass, slope, curvature, shrink = out
    return Tilted(*(a.reshape(shape) for a in (log_mass, y * slope, curvature, shrink)))


def _within_range(powered: Powered, z: Array, var: Array, power: Array) -> Four:
    """Call ``powered`` with var <= 1e9: p(f) is a step to a wider Gaussian, and only z / √var matters."""
    scale = np.sqrt(np.maximum(var / _WIDEST, 1.0))
    z = np.clip(z / scale, -_FARTHEST, _FARTHEST)
    log_mass, slope, curvature, shrink = powered(z, np.minimum(var, _WIDEST), power)
    return log_mass, slope / scale, curvature / scale / scale, shrink


def check_power(power: Array) -> None:
    """Refuse powers outside of [0, 2]."""
    wrong = ~((power >= 0.0) & (power <= MAX_POWER))
    if wrong.any():
        raise ValueError(f"power is {power[wrong][0]}: give numbers from 0 to {MAX_POWER:g}.")


def integrate(link: Link, z: Array, var: Array, power: Array) -> Four:
    """Return log mass, slope, curvature and shrink; z is not so low that w lives far to the left of 0."""
    wide = (var >= WIDE) & (z <= link.far(var))
    out = np.empty((4, z.size))
    for mask, rule in ((~wide, _right), (wide & (z >= 0.0), _deficit), (wide & (z < 0.0), _moments)):
        index = np.flatnonzero(mask)
        out[:, index] = rule(link, z[index], var[index], power[index])
    return bounded(out, var, power * link.bend)


def bounded(parts: Array | Four, var: Array, bend: Array) -> Four:
    """Return the four with the last bits of curvature and shrink inside what -power l'' <= bend allows."""
    log_mass, slope, curvature, shrink = parts
    least = 1.0 / (1.0 + bend * var)
    return log_mass, slope, np.clip(curvature, 0.0, bend * least), np.clip(shrink, least, 1.0)


def from_moments(log_mass: Array, slope: Array, direct: Array, shrink: Array, var: Array) -> Four:
    """Return the four, curvature and shrink each from the other where the other is the more accurate."""
    clear = shrink < _CLEAR
    curvature = np.where(clear, (1.0 - shrink) / np.where(clear, var, 1.0), direct)
    return log_mass, slope, curvature, np.where(clear, shrink, 1.0 - var * direct)


# ----------------------------------------------------------------------------- z >= 0: deficits


def _from_deficits(I: Array, var: Array) -> Four:
    I0, I1, I2 = I
    slope = I1 / (1.0 - I0)
    curvature = slope * slope + I2 / (1.0 - I0)
    return np.log1p(-I0), slope, curvature, 1.0 - var * curvature


def _right(link: Link, z: Array, var: Array, power: Array) -> Four:
    """Gauss-Hermite under factor(f) N(f | z, var): z beyond ``far`` or var small, z not far below 0."""
    log_scale, centre, narrowed = link.shift(z, var)
    I = np.empty((3, z.size))
    for i, x, w in orders(narrowed):
        f, a = centre[i, None] + np.sqrt(narrowed[i, None]) * x, power[i, None]
        value, first, second = link.over(f)
        factor = link.factor(f)
        exponent = -a * value * factor
        p = a * np.exp(exponent)
        I[0, i] = (a * value * _slope_of_exp(exponent)) @ w
        I[1, i] = (p * first) @ w
        I[2, i] = (p * (second - a * first * (first * factor))) @ w
    I *= np.exp(log_scale)
    return _from_deficits(I, var)


def _slope_of_exp(t: Array) -> Array:
    """Return (exp(t) - 1) / t."""
    out = np.ones_like(t)
    np.divide(np.expm1(t), t, out=out, where=t != 0.0)
    return out


@cache
def _lattice(link: Link, deviation: float) -> Four:
    """Return nodes f out to ±2 REACH · deviation, log p, quadrature weights, and a table of functions of f.

    Its columns, times the weights, are 1, l', -l'', l'², f, f².
    """
    n = np.ceil(np.arcsinh(2.0 * REACH * deviation / _B) / _STEP)
    u = _STEP * np.arange(-n, n + 1.0)
    f = _B * np.sinh(u)
    weights = _B * _STEP * np.cosh(u)
    with quiet():
        value, first, second = link.functions(f)
        columns = np.stack([np.ones_like(f), first, second, first * first, f, f * f], axis=1)
    return f, -value, weights, weights[:, None] * columns


def _batches(link: Link, var: Array) -> Iterator[tuple[Index, Four]]:
    """Yield index and lattice: the data of one block and the lattice they need."""
    below = 0.0
    for deviation in _DEVIATIONS:
        index = np.flatnonzero((var > below) & (var <= deviation * deviation))
        below = deviation * deviation
        if index.size:
            lattice = _lattice(link, deviation)
            for b in blocks(index.size, lattice[0].size):
                yield index[b], lattice


def _deficit(link: Link, z: Array, var: Array, power: Array) -> Four:
    I = np.empty((3, z.size))
    for i, (f, l, weights, table) in _batches(link, var):
        a = power[i]
        N = np.exp(np.maximum(-0.5 * (f - z[i, None]) ** 2 / var[i, None], _FLOOR))
        missing = -np.expm1(a[:, None] * l) * N
        I[0, i] = missing @ weights
        N -= missing
        first, second, square = (N @ table[:, 1:4]).T
        I[1:, i] = a * first, a * second - a * a * square
    I /= np.sqrt(2.0 * np.pi * var)
    return _from_deficits(I, var)


# ------------------------------------------------------------------------------ z < 0: moments


def _moments(link: Link, z: Array, var: Array, power: Array) -> Four:
    sums = np.empty((6, z.size))
    for i, (f, l, _, table) in _batches(link, var):
        # exp(-z²/2var) is taken out: z may be far below 0 and the mass of w near 0.
        exponent = power[i, None] * l + f * ((z[i, None] - 0.5 * f) / var[i, None])
        np.maximum(exponent, _FLOOR, out=exponent)
        sums[:, i] = (np.exp(exponent) @ table).T
    mass = sums[0]
    first, second, square, mean, second_moment = sums[1:] / mass
    log_mass = np.log(mass / np.sqrt(2.0 * np.pi * var)) - 0.5 * z * (z / var)
    direct = power * second - power * power * (square - first * first)
    return from_moments(log_mass, power * first, direct, (second_moment - mean * mean) / var, var)
