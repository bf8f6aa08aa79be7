"""The normal density over its distribution function, and the truncated moments that derivatives of log Phi need.

With rho = phi/Phi, kappa = z + rho and omega = 1 - rho kappa (kappa is the mean and omega the variance
of u > 0 under N(z, 1)),

    (log Phi)' = rho,   (log Phi)'' = -rho kappa,   (log Phi)''' = rho (kappa² - omega).
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy.special import erfcx

from gpclass.core.protocols import Array
from gpclass.likelihoods.quadrature import quiet

_FAR = 30.0  # beyond -30 the differences have lost ten digits, and five terms of a series in 1 / z² are exact to 2e-10
_HUGE = 1e150  # largest z: rho is 0 there, and so must rho kappa² be, without overflow
# Asymptotic series of -kappa z, omega z² and (kappa² - omega) z⁴ in 1 / z², from the Mills ratio.
_KAPPA = (1.0, -2.0, 10.0, -74.0, 706.0)
_OMEGA = (1.0, -6.0, 50.0, -518.0, 6354.0)
_SKEW = (2.0, -26.0, 330.0, -4546.0, 69154.0)


def tail(z: Array) -> tuple[Array, Array, Array, Array]:
    """Return rho = phi/Phi, kappa = z + rho, omega = 1 - rho kappa and kappa² - omega."""
    with quiet():
        near = np.clip(z, -_FAR, _HUGE)
        rho = hazard(near)
        kappa = near + rho
        omega = 1.0 - rho * kappa
        out = rho, kappa, omega, kappa * kappa - omega
        far = z < -_FAR
        if far.any():
            x = -z[far]
            t = 1.0 / x
            u = t * t
            kappa = t * polyval(u, _KAPPA)
            series = x + kappa, kappa, u * polyval(u, _OMEGA), u * u * polyval(u, _SKEW)
            for whole, part in zip(out, series, strict=True):
                whole[far] = part
    return out


def hazard(z: Array) -> Array:
    """Return phi(z) / Phi(z)."""
    return np.asarray(np.sqrt(2.0 / np.pi) / erfcx(-np.sqrt(0.5) * z))


def density(z: Array) -> Array:
    """Return phi(z)."""
    with quiet():
        return np.asarray(np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi))
