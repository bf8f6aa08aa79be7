"""Gaussian noise: every average in closed form, the conjugate case in which inference is exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpclass.core.checks import check_numbers
from gpclass.core.protocols import Array, Expected, Tilted
from gpclass.core.registry import stored
from gpclass.likelihoods.base import ElementwiseSites, Parameters
from gpclass.likelihoods.links import check_power
from gpclass.likelihoods.quadrature import flatten, quiet


@stored
@dataclass(frozen=True, slots=True)
class Gaussian(Parameters, ElementwiseSites):
    """p(y|f) = N(y | f, noise), y real. Not a class likelihood: it exists so that methods can be checked.

    Parameters
    ----------
    noise : float
        Variance of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.likelihoods import Gaussian
    >>> value, slope, curvature = Gaussian(noise=0.5).derivatives(np.array([1.0]), np.array([0.0]))
    >>> float(slope[0]), float(curvature[0])
    (2.0, -2.0)
    """

    noise: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a noise variance that is not positive."""
        check_numbers("(0, inf)", noise=self.noise)

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log N(y | f, noise)."""
        return self.derivatives(y, f)[0]

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return l, l' and l'' of l(f) = log N(y | f, noise)."""
        expected = self.expected(y, f, np.zeros(()))
        return expected.value, expected.slope, expected.curvature

    def third(self, y: Array, f: Array, var: Array) -> Array:
        """Return var · l'''(f) = 0."""
        return np.zeros(np.broadcast_shapes(np.shape(y), np.shape(f), np.shape(var)))

    def expected(self, y: Array, mean: Array, var: Array) -> Expected:
        """Return E[l], E[l'], E[l''] under N(f | mean, var)."""
        shape, (y, mean, var) = flatten(y, mean, var)
        with quiet():
            r = y - mean
            value = _log_normal(r, np.full_like(r, self.noise)) - 0.5 * var / self.noise
            parts = (value, r / self.noise, np.full_like(r, -1.0 / self.noise))
        return Expected(*(a.reshape(shape) for a in parts))

    def tilted(self, y: Array, mean: Array, var: Array, power: Array | float = 1.0) -> Tilted:
        """Return mass and moments of N(f | mean, var) N(y | f, noise)^power, power from 0 to 2."""
        shape, (y, mean, var, power) = flatten(y, mean, var, power)
        check_power(power)
        with quiet():
            r = y - mean
            # N(y | f, noise)^power is N(y | f, noise / power) but for a constant.
            total = self.noise + power * var
            log_ratio = np.log(total / self.noise) + power * np.log(2.0 * np.pi * self.noise)
            slope = r * (power / total)
            parts = (-0.5 * (r * slope + log_ratio), slope, power / total, self.noise / total)
        return Tilted(*(a.reshape(shape) for a in parts))


def _log_normal(r: Array, var: Array) -> Array:
    out: Array = -0.5 * (r * (r / var) + np.log(var) + np.log(2.0 * np.pi))
    return out
