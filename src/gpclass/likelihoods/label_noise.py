"""Labels that are flipped with a given probability: p(y|f) = rate + (1 - 2 rate) p_inner(y|f)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpclass.core.checks import check_numbers, check_option
from gpclass.core.protocols import Array
from gpclass.core.registry import parts
from gpclass.likelihoods.base import BinaryLikelihood


@dataclass(frozen=True, slots=True)
class LabelNoise(BinaryLikelihood):
    """Labels of another likelihood with some errors.

    Parameters
    ----------
    likelihood : str or BinaryLikelihood, default="probit"
        The likelihood of the true labels.
    rate : float
        Probability that a label is flipped.
    rate_bounds : pair of floats or "fixed"
        Bounds between which the rate is learned, or "fixed" to keep it.
    """

    name = "label_noise"
    level = 2
    likelihood: Any = "probit"  # a name or an object
    rate: float = 0.05
    rate_bounds: tuple[float, float] | str = (1e-3, 0.4)

    def __post_init__(self) -> None:
        known, given = parts("likelihood"), self.likelihood
        if isinstance(given, str) and given in known:
            object.__setattr__(self, "likelihood", known[given]())
        binary = isinstance(self.likelihood, BinaryLikelihood)
        check_option("likelihood", self.likelihood, binary, "a likelihood of two classes")
        check_numbers("(0, 0.5)", rate=self.rate)

    def log_prob(self, y: Array, f: Array) -> Array:  # noqa: D102
        inner = self.likelihood.log_prob(y, f)
        return np.asarray(np.logaddexp(np.log(self.rate), np.log1p(-2.0 * self.rate) + inner))

    @property
    def probit_scale(self) -> float:  # noqa: D102
        return float(self.likelihood.probit_scale)

    @property
    def theta(self) -> Array:  # noqa: D102
        return np.log([self.rate][: len(self.bounds)])

    @property
    def bounds(self) -> Array:  # noqa: D102
        return np.zeros((0, 2)) if isinstance(self.rate_bounds, str) else np.log([self.rate_bounds])

    def with_theta(self, theta: Array) -> LabelNoise:  # noqa: D102
        return replace(self, rate=float(np.exp(theta[0]))) if len(theta) else self
