"""The normal tail without cancellation: what log Phi, its derivatives and truncated moments are made of.

With rho = phi/Phi, kappa = z + rho and omega = 1 - rho kappa (kappa is the mean and omega the variance
of u > 0 under N(z, 1)),

    (log Phi)' = rho,   (log Phi)'' = -rho kappa,   (log Phi)''' = rho (kappa² - omega).

For z = -x << 0 these differences cancel. Laplace's continued fraction of the Mills ratio,

    Phi/phi = 1/(x + 1/c_1),    c_k = x + (k + 1)/c_{k+1},

gives each of them without any:

    rho = x + 1/c_1,    kappa = 1/c_1,
    omega = (2 c_1 - c_2) / (c_1² c_2),             2 c_1 - c_2 = x + 4/c_2 - 3/c_3,
    kappa² - omega = 2 (c_2 - c_1) / (c_1² c_2),    c_2 - c_1 = (x + 9/c_3 - 8/c_4) / (c_2 c_3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import erfcx

from gpclass.core.protocols import Array
from gpclass.likelihoods.quadrature import quiet

_SQRT_HALF = np.sqrt(0.5)
_SQRT_2_OVER_PI = np.sqrt(2.0 / np.pi)
_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)
_SWITCH = -5.0  # direct differences lose three to five digits here
_HUGE = 1e150  # rho is 0 long before; its product with kappa² must stay 0
_LEVELS = 20  # of the continued fraction: 1e-13 at x = 5 with the approximation of what follows


class Tail(NamedTuple):
    """rho, kappa, omega and kappa² - omega at each z."""

    rho: Array
    kappa: Array
    omega: Array
    skew: Array


def tail(z: Array) -> Tail:
    """Return rho = phi/Phi, kappa = z + rho, omega = 1 - rho kappa and kappa² - omega."""
    with quiet():
        near = np.clip(z, _SWITCH, _HUGE)
        rho = _SQRT_2_OVER_PI / erfcx(-_SQRT_HALF * near)
        kappa = near + rho
        omega = 1.0 - rho * kappa
        out = Tail(rho, kappa, omega, kappa * kappa - omega)
        far = z < _SWITCH
        if far.any():
            for whole, part in zip(out, _far_tail(-z[far]), strict=True):
                whole[far] = part
    return out


def _far_tail(x: Array) -> Tail:
    c = [x, x, x, x]
    # c_k changes slowly with k, so it is nearly the root of c = x + (k + 1) / c.
    top = 0.5 * (x + np.sqrt(x * x + (4.0 * _LEVELS + 6.0)))
    for k in range(_LEVELS, 0, -1):
        top = x + (k + 1.0) / top
        if k <= 4:
            c[k - 1] = top
    c1, c2, c3, c4 = c
    # One division at a time: the products may overflow.
    omega = (x + 4.0 / c2 - 3.0 / c3) / c1 / c1 / c2
    skew = (x + 9.0 / c3 - 8.0 / c4) / c1 * 2.0 / c1 / c2 / c2 / c3
    return Tail(x + 1.0 / c1, 1.0 / c1, omega, skew)


def density(z: Array) -> Array:
    """Return phi(z)."""
    with quiet():
        out: Array = np.exp(-0.5 * z * z - _LOG_SQRT_2PI)
    return out
