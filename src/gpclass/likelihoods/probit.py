"""The probit likelihood p(y|f) = Phi(y f), y = -1 or +1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from gpclass.core.protocols import Array, Tilted
from gpclass.likelihoods.base import BinaryLikelihood
from gpclass.likelihoods.normal import tail
from gpclass.likelihoods.quadrature import flatten, quiet


@dataclass(frozen=True, slots=True)
class Probit(BinaryLikelihood):
    """Probit likelihood, p(y|f) = Phi(y f), where Phi is the standard normal distribution function.

    All averages are closed forms of z = y mean / √(1 + var) except those of ``expected`` and those of
    ``tilted`` with a power other than 1, which quadrature gives to an accuracy of 1e-9 for ``|mean|`` <= 1e3 and
    var <= 1e8.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.likelihoods import Probit
    >>> likelihood = Probit()
    >>> np.exp(likelihood.log_predict(np.array([0.0]), np.array([4.0]))).round(12)
    array([[0.5, 0.5]])
    """

    symmetric = True
    log_concave = True
    level = 1
    counterpart = "multiprobit"

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log p(y|f)."""
        out: Array = log_ndtr(np.asarray(y, dtype=np.float64) * f)
        return out

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return l, l' and l'' of l(f) = log p(y|f)."""
        shape, (y, f) = flatten(y, f)
        z = y * f
        t = tail(z)
        with quiet():
            value, slope, curvature = log_ndtr(z), y * t.rho, -t.rho * t.kappa
        return value.reshape(shape), slope.reshape(shape), curvature.reshape(shape)

    def third(self, y: Array, f: Array, var: Array) -> Array:
        """Return var · l'''(f)."""
        shape, (y, f, var) = flatten(y, f, var)
        t = tail(y * f)
        with quiet():
            return (var * (y * (t.rho * t.skew))).reshape(shape)

    def tilted(self, y: Array, mean: Array, var: Array, power: Array | float = 1.0) -> Tilted:
        """Return mass and moments of N(f | mean, var) p(y|f)^power, power from 0 to 2 (R&W, section 3.9)."""
        if np.any(np.asarray(power) != 1.0):
            return BinaryLikelihood.tilted(self, y, mean, var, power)
        shape, (y, mean, var) = flatten(y, mean, var)
        with quiet():
            q = 1.0 / np.sqrt(1.0 + var)
            z = y * mean * q
            t = tail(z)
            # shrink = 1 - var · curvature, with omega = 1 - rho kappa: a sum of positive terms, never above 1.
            shrink = (1.0 + var * t.omega) / (1.0 + var)
            parts = log_ndtr(z), y * q * t.rho, q * q * t.rho * t.kappa, shrink
        return Tilted(*(a.reshape(shape) for a in parts))
