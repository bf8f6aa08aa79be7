"""Labels that are wrong with a certain rate: p(y|f) = rate + (1 - 2 rate) p_inner(y|f)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from gpclass.core.protocols import Array
from gpclass.core.registry import parts
from gpclass.likelihoods.base import BinaryLikelihood
from gpclass.likelihoods.probit import Probit


@dataclass(frozen=True, slots=True)
class LabelNoise(BinaryLikelihood):
    """The labels of another ``likelihood``, flipped with a ``rate`` that is learned or "fixed".

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
    def inner(self) -> BinaryLikelihood:
        """Return the likelihood of the labels before the flips."""
        given = self.likelihood
        return parts("likelihood")[given]() if isinstance(given, str) else given

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log p(y|f)."""
        right = np.log1p(-2.0 * self.rate) + self.inner.log_prob(y, f)
        return np.asarray(np.logaddexp(np.log(self.rate), right))

    @property
    def probit_scale(self) -> float:
        """Return that of the likelihood without flips, which do not change averages otherwise."""
        return self.inner.probit_scale

    @property
    def theta(self) -> Array:
        """Return the logarithm of the rate, unless it is fixed."""
        return np.log([self.rate][: len(self.bounds)])

    @property
    def bounds(self) -> Array:
        """Return the bounds of theta."""
        return np.zeros((0, 2)) if isinstance(self.rate_bounds, str) else np.log([self.rate_bounds])

    def with_theta(self, theta: Array) -> LabelNoise:
        """Return the likelihood with another rate."""
        return replace(self, rate=float(np.exp(theta[0]))) if len(theta) else self
