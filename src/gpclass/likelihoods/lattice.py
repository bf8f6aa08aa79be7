"""Points for Gaussian averages in several dimensions: a rank-1 lattice, the same at every call.

Measured with 4 to 10 classes it is as accurate as the Sobol points of `scipy.stats.qmc`; it takes any prime
number of points and does not import `scipy.stats`, which is slow.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import ndtri

from gpclass.core.protocols import Array


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
