"""Gaussian averages of a link p(f) that is near a step: l = log p, its derivatives, and powers of p.

`expected` gives E[-l], E[l'], E[-l''] under N(f | z, var). `tilted` gives the mass and the moments of
w = p(f)^power N(f | z, var), for power EP; with the averages E_w under it,

    slope = power E_w[l'],    curvature = -power E_w[l''] - power² Var_w[l'],    shrink = Var_w[f] / var.

There are two rules, Gauss-Hermite and a lattice (see `gpclass.likelihoods.quadrature`), and three forms.

**Deficit**, z >= 0. The mass is near one, so its complement and derivatives are computed instead,

    I0 = ∫ N (1 - p^power),    I1 = dI0/dz with its sign changed,    I2 = d²I0/dz²,

and log mass = log(1 - I0), slope = I1 / (1 - I0), curvature = slope² + I2 / (1 - I0) keep their relative
accuracy however small they are.

**Right.** For large z, and for narrow Gaussians, these integrands are concentrated where ``factor`` N is, with
``factor`` the function, exp(-f) or phi(f), that 1 - p falls like: Gauss-Hermite there.

**Moments**, z < 0. Sums of w, f and f² over the lattice give mass, mean and variance.

The lattice is f = b sinh(u), dense near 0 where l bends and coarse far out where only the Gaussian varies;
l and its derivatives on it are tables. The integrands are analytic for |Im u| < 1/2, where they grow
by at most exp(17) (a Gaussian 9 standard deviations from 0), so a step of 1/16 in u errs by exp(17 - 50).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from gpclass.core.protocols import Array, Index, Tilted
from gpclass.likelihoods import uniform
from gpclass.likelihoods.quadrature import blocks, flatten, lattice_sums, orders, quiet

Three = tuple[Array, Array, Array]
Four = tuple[Array, Array, Array, Array]

MAX_POWER = 2.0
REACH = 9.0  # standard deviations beyond which a Gaussian is negligible
WIDE = 0.5  # variance from which the lattice is used
_WIDEST = 1e9
_FARTHEST = 1e100  # squares of what is beyond might overflow
_DEVIATIONS = (2.0, 10.0, 80.0, 1e3, 4e4)  # standard deviations for which there are lattices
_B, _STEP = 4.0, 0.0625
_FLOOR = -700.0
_CLEAR = 0.9  # shrink below which 1 - shrink has lost no digits


class Link(NamedTuple):
    """What the rules need to know of p(f): functions of f unless said otherwise.

    ``functions`` gives -l, l', -l'' and ``over`` the same divided by ``factor``; ``unit`` gives the averages of
    1 - p, p' and -p'' divided by ``factor`` under a Gaussian; ``shift`` takes (z, var) to the logarithm of the mass,
    the mean and the variance of factor(f) N(f | z, var); ``far`` takes var to the z beyond which that is all that
    counts; ``bend`` bounds -l''; from the variance ``narrow`` on a lattice
    is faster than Gauss-Hermite for powers of p.
    """

    functions: Callable[[Array], Three]
    over: Callable[[Array], Three]
    unit: Callable[[Array, Array], Array]
    factor: Callable[[Array], Array]
    shift: Callable[[Array, Array], Three]
    far: Callable[[Array], Array]
    bend: float
    narrow: float


class Lattice(NamedTuple):
    """Nodes, log p, log(-log p) and weights there, and tables of functions times weights, one per column."""

    f: Array
    l: Array
    log_value: Array
    weights: Array
    expected: Array  # -l, l', -l'', divided by -l
    deficit: Array  # 1 - p, p', -p'', divided by -l
    moments: Array  # 1, l', -l'', l'², f, f²


@cache
def _lattice(link: Link, deviation: float) -> Lattice:
    """Return the lattice out to ±2 REACH · deviation."""
    n = np.ceil(np.arcsinh(2.0 * REACH * deviation / _B) / _STEP)
    u = _STEP * np.arange(-n, n + 1.0)
    f = _B * np.sinh(u)
    w = _B * _STEP * np.cosh(u)
    with quiet():
        value, first, second = link.functions(f)
        p, safe = np.exp(np.maximum(-value, _FLOOR)), np.maximum(value, 1e-300)
        deficit = np.stack([-np.expm1(-value), p * first, p * (second - first * first)], axis=1)
        moments = np.stack([np.ones_like(f), first, second, first * first, f, f * f], axis=1)
        relative = (w / safe)[:, None]
        expected = relative * np.stack([value, first, second], axis=1)
        log_value = np.where(value > 1e-300, np.log(safe), -1e30)
        return Lattice(f, -value, log_value, w, expected, relative * deficit, w[:, None] * moments)


def _lattices(link: Link, var: Array) -> Iterator[tuple[Index, Lattice]]:
    """Yield data and the lattice that they need."""
    below = 0.0
    for deviation in _DEVIATIONS:
        index = np.flatnonzero((var > below) & (var <= deviation * deviation))
        below = deviation * deviation
        if index.size:
            yield index, _lattice(link, deviation)


# ----------------------------------------------------------------------------- averages of l


class Averages(NamedTuple):
    """E[-l], E[l'] and E[-l''] under N(z / scale, var / scale²); the scale is 1 for var <= 1e9."""

    value: Array
    slope: Array
    curvature: Array
    scale: Array | float


def expected(link: Link, z: Array, var: Array) -> Averages:
    """Return E[-l], E[l'] and E[-l''] under N(z, var): sums of positive terms."""
    near = uniform.ordinary(z, var, uniform.NARROWEST)
    if near.all():
        value, slope, curvature = uniform.averages(link.functions, "expected", z, var, link.shift)
        return Averages(value, slope, curvature, 1.0)
    inside, far = np.flatnonzero(near), np.flatnonzero(~near)
    out = np.empty((3, z.size))
    if inside.size:
        out[:, inside] = uniform.averages(link.functions, "expected", z[inside], var[inside], link.shift)
    z_far, var_far, scale = within_range(z[far], var[far])
    out[:, far] = _far(link, z_far, var_far)
    scales = np.ones(z.size)
    scales[far] = scale
    return Averages(out[0], out[1], out[2], scales)


def _far(link: Link, z: Array, var: Array) -> Array:
    """Return the averages at any arguments with var <= 1e9, shape (3, n)."""
    wide = (var >= WIDE) & (z >= -REACH * np.sqrt(var)) & (z <= link.far(var))
    out = np.empty((3, z.size))
    for mask, rule in (
        (wide, _wide),
        (~wide & (z <= 0.0), _left),
        (~wide & (z > 0.0), _over_factor),
    ):
        index = np.flatnonzero(mask)
        if index.size:
            out[:, index] = rule(link, z[index], var[index])
    return out


def _wide(link: Link, z: Array, var: Array) -> Array:
    return _lattice_averages(link, "expected", z, var)


def _lattice_averages(link: Link, table: str, z: Array, var: Array) -> Array:
    """Return the averages of the three functions in a table of `Lattice`, relatively accurate for z > 0."""
    out = np.empty((3, z.size))
    exponent = -0.5 * z * (z / var)
    # The largest term is taken out: with exp(-f) or phi(f) for large f, log(-l) N is largest at ``centre`` or at 0.
    log_scale, centre, _ = link.shift(z, var)
    peak = np.where(z > 0.0, np.where(centre > 0.0, log_scale, exponent), 0.0)
    for i, lattice in _lattices(link, var):
        columns: Array = getattr(lattice, table)
        extra = lattice.log_value, np.ones(i.size)
        out[:, i] = lattice_sums(lattice.f, columns, z[i], var[i], (exponent - peak)[i], extra).T
    out *= np.exp(peak)
    return out


def _left(link: Link, z: Array, var: Array) -> Array:
    return hermite_average(link.functions, z, var)


def _over_factor(link: Link, z: Array, var: Array) -> Array:
    log_scale, centre, narrowed = link.shift(z, var)
    return np.exp(log_scale) * hermite_average(link.over, centre, narrowed)


def hermite_average(g: Callable[[Array], Three], mean: Array, var: Array) -> Array:
    """Return the averages of the three functions in g under N(f | mean, var), shape (3, n)."""
    out = np.empty((3, mean.size))
    s = np.sqrt(var)
    for i, x, w in orders(var):
        for whole, values in zip(out, g(mean[i, None] + s[i, None] * x), strict=True):
            whole[i] = values @ w
    return out


# ------------------------------------------------------------------------- powers of p


def tilted(
    unit: Callable[[Array, Array], Four],
    powered: Callable[[Array, Array, Array], Four],
    y: Array,
    mean: Array,
    var: Array,
    power: Array | float,
) -> Tilted:
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
            out[:, ~one] = powered(z[~one], var[~one], power[~one])
        log_mass, slope, curvature, shrink = out
    return Tilted(*(a.reshape(shape) for a in (log_mass, y * slope, curvature, shrink)))


def check_power(power: Array) -> None:
    """Refuse powers outside of [0, 2]."""
    wrong = ~((power >= 0.0) & (power <= MAX_POWER))
    if wrong.any():
        raise ValueError(f"power is {power[wrong][0]}: give numbers from 0 to {MAX_POWER:g}.")


def within_range(z: Array, var: Array) -> Three:
    """Return z and var <= 1e9, and a scale: for wider Gaussians p is a step, and only z / √var matters."""
    scale = np.sqrt(np.maximum(var / _WIDEST, 1.0))
    return np.clip(z / scale, -_FARTHEST, _FARTHEST), np.minimum(var, _WIDEST), scale


def integrate(link: Link, z: Array, var: Array, power: Array | None = None) -> Four:
    """Return log mass, slope, curvature and shrink; z is not so low that w is far to the left of 0.

    Without a power it is 1, which takes fewer operations.
    """
    bend = np.asarray(link.bend if power is None else power * link.bend)
    near = uniform.ordinary(z, var, link.narrow) if power is None else np.zeros(z.shape, dtype=bool)
    if near.all():
        return bounded(_near(link, z, var, None), var, bend)
    wide = ~near & (var >= WIDE) & (z <= link.far(var))
    out = np.empty((4, z.size))
    for mask, rule in (
        (near, _near),
        (~wide & ~near, _right),
        (wide & (z >= 0.0), _deficit),
        (wide & (z < 0.0), _moments),
    ):
        index = np.flatnonzero(mask)
        if index.size:
            out[:, index] = rule(link, z[index], var[index], None if power is None else power[index])
    return bounded(out, var, bend)


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


def _near(link: Link, z: Array, var: Array, power: Array | None) -> Four:
    I0, I1, I2, mass = uniform.averages(link.functions, "deficit", z, var)
    slope = I1 / mass
    curvature = slope * slope + I2 / mass
    return np.where(I0 < 0.5, np.log1p(-I0), np.log(mass)), slope, curvature, 1.0 - var * curvature


def _from_deficits(I: Array, var: Array) -> Four:
    I0, I1, I2 = I
    slope = I1 / (1.0 - I0)
    curvature = slope * slope + I2 / (1.0 - I0)
    return np.log1p(-I0), slope, curvature, 1.0 - var * curvature


def _right(link: Link, z: Array, var: Array, power: Array | None) -> Four:
    """Gauss-Hermite under factor(f) N(f | z, var): z beyond ``far`` or var small, z not far below 0."""
    log_scale, centre, narrowed = link.shift(z, var)
    if power is None:
        I = link.unit(centre, narrowed)
    else:
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


def _deficit(link: Link, z: Array, var: Array, power: Array | None) -> Four:
    if power is None:
        return _from_deficits(_lattice_averages(link, "deficit", z, var), var)
    I = np.empty((3, z.size))
    for index, lattice in _lattices(link, var):
        f, l = lattice.f, lattice.l
        for b in blocks(index.size, f.size):
            i = index[b]
            a = power[i]
            N = np.exp(np.maximum(-0.5 * (f - z[i, None]) ** 2 / var[i, None], _FLOOR))
            missing = -np.expm1(a[:, None] * l) * N
            I[0, i] = missing @ lattice.weights
            N -= missing
            first, second, square = (N @ lattice.moments[:, 1:4]).T
            I[1:, i] = a * first, a * second - a * a * square
    I /= np.sqrt(2.0 * np.pi * var)
    return _from_deficits(I, var)


def _moments(link: Link, z: Array, var: Array, power: Array | None) -> Four:
    sums = np.empty((6, z.size))
    power = np.ones_like(z) if power is None else power
    for i, lattice in _lattices(link, var):
        # exp(-z²/2var) is taken out: z may be far below 0 and the mass of w near 0.
        extra = lattice.l, power[i]
        sums[:, i] = lattice_sums(lattice.f, lattice.moments, z[i], var[i], np.zeros(i.size), extra).T
    mass = sums[0]
    first, second, square, mean, second_moment = sums[1:] / mass
    log_mass = np.log(mass) - 0.5 * z * (z / var)
    direct = power * second - power * power * (square - first * first)
    return from_moments(log_mass, power * first, direct, (second_moment - mean * mean) / var, var)
