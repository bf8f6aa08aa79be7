"""The Gaussian likelihood, for which all averages have closed forms and inference is exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpclass.core.protocols import Array, Expected, Tilted
from gpclass.likelihoods.base import BinaryLikelihood


@dataclass(frozen=True, slots=True)
class Gaussian(BinaryLikelihood):
    """p(y|f) = N(y | f, noise), y real: with it every method must give the results of regression."""

    kind = "test"  # it is not registered
    noise: float = 1.0

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
        r, var = np.broadcast_arrays(y - mean, var)
        value = -0.5 * ((r * r + var) / self.noise + np.log(2.0 * np.pi * self.noise))
        return Expected(value, r / self.noise, np.full(r.shape, -1.0 / self.noise))

    def tilted(self, y: Array, mean: Array, var: Array, power: Array | float = 1.0) -> Tilted:
        """Return mass and moments of N(f | mean, var) N(y | f, noise)^power."""
        r, var, power = np.broadcast_arrays(y - mean, var, power)
        # N(y | f, noise)^power is N(y | f, noise / power) up to a constant.
        total = self.noise + power * var
        log_ratio = np.log(total / self.noise) + power * np.log(2.0 * np.pi * self.noise)
        slope = r * (power / total)
        return Tilted(-0.5 * (r * slope + log_ratio), slope, power / total, self.noise / total)
