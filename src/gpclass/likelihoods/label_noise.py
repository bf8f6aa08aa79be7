"""Labels that are flipped with a certain rate: p(y|f) = rate + (1 - 2 rate) p_inner(y|f)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from gpclass.core.protocols import Array, Tilted
from gpclass.core.registry import parts
from gpclass.likelihoods.base import BinaryLikelihood
from gpclass.likelihoods.probit import Probit


@dataclass(frozen=True, slots=True)
class LabelNoise(BinaryLikelihood):
    """The labels of another likelihood, flipped with a rate that is learned within bounds or "fixed".

    >>> LabelNoise("logit", rate=0.1).link(np.array([-20.0, 0.0, 20.0])).round(3)
    array([0.1, 0.5, 0.9])
    """

    name = "label_noise"
    likelihood: BinaryLikelihood | str = field(default_factory=Probit)
    rate: float = 0.05
    rate_bounds: tuple[float, float] | str = (1e-3, 0.4)

    def __post_init__(self) -> None:
        if isinstance(self.likelihood, str) and self.likelihood not in parts("likelihood"):
            raise ValueError(
                f"The likelihood {self.likelihood!r} is not one of {', '.join(parts('likelihood'))}."
            )
        if not 0.0 < self.rate < 0.5:
            raise ValueError(f"The rate of label noise is {self.rate!r}: give a number between 0 and 0.5.")

    @property
    def _inner(self) -> BinaryLikelihood:
        given = self.likelihood
        found: BinaryLikelihood = parts("likelihood")[given]() if isinstance(given, str) else given
        return found

    def _mixed(self, log_inner: Array) -> Array:
        out: Array = np.logaddexp(np.log(self.rate), np.log1p(-2.0 * self.rate) + log_inner)
        return out

    def log_prob(self, y: Array, f: Array) -> Array:  # noqa: D102
        return self._mixed(self._inner.log_prob(y, f))

    def tilted(self, y: Array, mean: Array, var: Array, power: Array | float = 1.0) -> Tilted:  # noqa: D102
        if np.any(np.asarray(power) != 1.0):
            return BinaryLikelihood.tilted(self, y, mean, var, power)
        t = self._inner.tilted(y, mean, var)
        Z = self._mixed(t.log_mass)
        share = -np.expm1(np.log(self.rate) - Z)  # of the mass that is not noise
        curvature = share * (t.curvature - (1.0 - share) * t.slope**2)
        return Tilted(Z, share * t.slope, curvature, 1.0 - var * curvature)

    @property
    def theta(self) -> Array:  # noqa: D102
        return np.log([self.rate][: len(self.bounds)])

    @property
    def bounds(self) -> Array:  # noqa: D102
        return np.zeros((0, 2)) if isinstance(self.rate_bounds, str) else np.log([self.rate_bounds])

    def with_theta(self, theta: Array) -> LabelNoise:  # noqa: D102
        return replace(self, rate=float(np.exp(theta[0]))) if len(theta) else self
