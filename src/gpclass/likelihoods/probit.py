"""The probit likelihood p(y|f) = Phi(y f), y = -1 or +1.

With rho = phi/Phi, kappa = z + rho and omega = 1 - rho kappa (kappa is the mean and omega the variance
of u > 0 under N(z, 1)),

    (log Phi)' = rho,   (log Phi)'' = -rho kappa,   (log Phi)''' = rho (kappa² - omega).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy.special import erfcx, log_ndtr

from gpclass.core.protocols import Array, Tilted
from gpclass.likelihoods.base import BinaryLikelihood
from gpclass.likelihoods.quadrature import flatten, quiet

_FAR = 30.0  # beyond -30 the differences have lost ten digits, and five terms of a series in 1 / z² are exact to 2e-10
_HUGE = 1e150  # largest z: rho is 0 there, and so must rho kappa² be, without overflow
# Asymptotic series of -kappa z, omega z² and (kappa² - omega) z⁴ in 1 / z², from the Mills ratio.
_KAPPA = (1.0, -2.0, 10.0, -74.0, 706.0)
_OMEGA = (1.0, -6.0, 50.0, -518.0, 6354.0)
_SKEW = (2.0, -26.0, 330.0, -4546.0, 69154.0)


@dataclass(frozen=True, slots=True)
class Probit(BinaryLikelihood):
    """Probit likelihood, p(y|f) = Phi(y f), where Phi is the standard normal distribution function.

    All averages are closed forms of z = y mean / √(1 + var) except those of ``expected`` and those of
    ``tilted`` with a power other than 1, which are quadratures, accurate to 1e-9 for ``|mean|`` <= 1e3 and var <= 1e8.
    """

    symmetric = True
    log_concave = True
    level = 1
    counterpart = "multiprobit"

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log p(y|f)."""
        return np.asarray(log_ndtr(np.asarray(y, dtype=np.float64) * f))

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return l, l' and l'' of l(f) = log p(y|f)."""
        shape, (y, f) = flatten(y, f)
        z = y * f
        rho, kappa, _, _ = tail(z)
        with quiet():
            return log_ndtr(z).reshape(shape), (y * rho).reshape(shape), (-rho * kappa).reshape(shape)

    def third(self, y: Array, f: Array, var: Array) -> Array:
        """Return var · l'''(f)."""
        shape, (y, f, var) = flatten(y, f, var)
        rho, _, _, skew = tail(y * f)
        with quiet():
            return (var * (y * (rho * skew))).reshape(shape)

    def tilted(self, y: Array, mean: Array, var: Array, power: Array | float = 1.0) -> Tilted:
        """Return mass and moments of N(f | mean, var) p(y|f)^power, power from 0 to 2 (R&W, section 3.9)."""
        if np.any(np.asarray(power) != 1.0):
            return BinaryLikelihood.tilted(self, y, mean, var, power)
        shape, (y, mean, var) = flatten(y, mean, var)
        with quiet():
            q = 1.0 / np.sqrt(1.0 + var)
            z = y * mean * q
            rho, kappa, omega, _ = tail(z)
            # shrink = 1 - var · curvature, with omega = 1 - rho kappa: a sum of positive terms, never above 1.
            parts = log_ndtr(z), y * q * rho, q * q * rho * kappa, (1.0 + var * omega) / (1.0 + var)
        return Tilted(*(a.reshape(shape) for a in parts))


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
