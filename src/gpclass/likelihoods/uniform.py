"""Gaussian averages of a link at ordinary arguments: sums over a lattice of equally spaced nodes.

For means up to 10 and variances from 0.04 to 10, where nearly all data points of a fit are, tails need no care: the
averages of `gpclass.likelihoods.links` are plain sums,

    E[g] ≈ h Σ_j g(f_j) exp(-(f_j - z)² / 2 var) / √(2 pi var),      f_j = j h.

A step h of 0.8 of the deviation of the narrowest integrand (g N narrows to var / (1 + var) where g falls like phi),
and at most 0.45, errs by less than 3e-12 (see `gpclass.likelihoods.quadrature`; log Phi has its singularities at a
height of 2.8). Only nodes within 7.6 deviations count: about 50, half as many as in the lattices for all arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpclass.core.protocols import Array
from gpclass.likelihoods.quadrature import blocks

Shift = Callable[[Any, Any], tuple[Any, Any, Any]]
Functions = Callable[[Array], tuple[Array, Array, Array]]

FARTHEST = 10.0  # mean
NARROWEST, WIDEST = 0.04, 10.0  # variance
_STEPS = ((0.16, 0.155), (0.64, 0.29), (np.inf, 0.45))  # variance below which there is this step
JOINED = 0.25  # share of the data points whose step is used for wider Gaussians too
_REACH = 7.6
_END = FARTHEST + _REACH * WIDEST**0.5
_FLOOR = -300.0  # of exponents: products with the tables are to stay normal numbers
_SQRT_PI = float(np.sqrt(np.pi))


class Tables(NamedTuple):
    """The nodes, and functions there times the step, one per column."""

    f: Array
    expected: Array  # -l, l', -l''
    deficit: Array  # 1 - p, p', -p'', p


@cache
def _tables(functions: Functions, step: float) -> Tables:
    last = np.ceil(_END / step)
    f = step * np.arange(-last, last + 1.0)
    value, first, second = functions(f)
    p = np.exp(-value)
    expected = np.stack([value, first, second], axis=1)
    deficit = np.stack([-np.expm1(-value), p * first, p * (second - first * first), p], axis=1)
    return Tables(f, step * expected, step * deficit)


def ordinary(z: Array, var: Array, narrow: float) -> NDArray[np.bool_]:
    """Return which of the arguments are ordinary ones, with variances from ``narrow`` on."""
    out: NDArray[np.bool_] = (np.abs(z) <= FARTHEST) & (var >= narrow) & (var <= WIDEST)
    return out


def averages(functions: Functions, table: str, z: Array, var: Array, shift: Shift | None = None) -> Array:
    """Return the averages of the functions in one of the `Tables` under N(z, var), one row for each.

    ``shift`` gives mean and variance of what is left of N to the right where the functions fall, as in `links.Link`.
    """
    columns = getattr(_tables(functions, _STEPS[0][1]), table).shape[1]
    if not z.size:
        return np.empty((columns, 0))
    least, most = float(var.min()), float(var.max())
    steps = [(bound, step) for bound, step in _STEPS if least < bound]
    bound, step = steps[0]
    # A finer step serves wide Gaussians too: where most are narrow, one sum is cheaper than two.
    if most < bound or np.count_nonzero(var < bound) > JOINED * z.size:
        return _sums(functions, table, step, z, var, shift)
    narrow = var < bound
    out = np.empty((columns, z.size))
    for index, rule in ((np.flatnonzero(narrow), _sums), (np.flatnonzero(~narrow), None)):
        part = z[index], var[index], shift
        out[:, index] = rule(functions, table, step, *part) if rule else averages(functions, table, *part)
    return out


def _sums(functions: Functions, table: str, step: float, z: Array, var: Array, shift: Shift | None) -> Array:
    tables = _tables(functions, step)
    most, middle = float(var.max()), len(tables.f) // 2
    first, last = min(float(z.min()), 0.0), max(float(z.max()), 0.0)
    low = middle + int((first - _REACH * most**0.5) / step)
    if shift is not None:
        near, (_, far, narrowed) = shift(last, float(var.min()))[1], shift(last, most)
        last, most = max(near, far, 0.0), narrowed
    high = middle + int((last + _REACH * most**0.5) / step)
    f, columns = tables.f[low : high + 1], getattr(tables, table)[low : high + 1]
    scale = np.sqrt(0.5 / var)
    out = np.empty((z.size, columns.shape[1]))
    for b in blocks(z.size, f.size):
        E = f - z[b, None]
        E *= scale[b, None]
        np.multiply(E, E, out=E)
        np.negative(E, out=E)
        np.maximum(E, _FLOOR, out=E)
        np.exp(E, out=E)
        np.matmul(E, columns, out=out[b])
    out *= (scale / _SQRT_PI)[:, None]
    return out.T
