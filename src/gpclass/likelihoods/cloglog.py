"""The complementary log-log likelihood p(y=+1|f) = 1 - exp(-exp(f)), an asymmetric link."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpclass.core.protocols import Array, Expected
from gpclass.likelihoods import generic
from gpclass.likelihoods.base import BinaryLikelihood
from gpclass.likelihoods.quadrature import flatten, quiet

_LARGEST = 500.0  # exp of more, and its square, would overflow
_LARGEST_AVERAGE = 230.0  # exp of which is as large as averages may be


@dataclass(frozen=True, slots=True)
class CLogLog(BinaryLikelihood):
    """Complementary log-log likelihood, p(y=+1|f) = 1 - exp(-exp(f)).

    This is the probability of at least one event of a Poisson process with rate exp(f). It suits the presence or
    absence of something that is counted, and survival data in intervals of time. The link is not symmetric: the
    probability approaches 0 slowly, like exp(f), and 1 quickly.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.likelihoods import CLogLog
    >>> CLogLog().link(np.array([-3.0, 0.0, 1.0])).round(4)
    array([0.0486, 0.6321, 0.934 ])
    """

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log p(y|f)."""
        f = np.minimum(np.asarray(f, dtype=np.float64), _LARGEST)
        with np.errstate(under="ignore", divide="ignore"):
            rate = np.exp(f)
            # log(1 - exp(-rate)) is f - rate/2 for small rates, which may be too small to be represented.
            up = np.where(f < -36.0, f, np.log(-np.expm1(-np.maximum(rate, 1e-300))))
        return np.where(np.asarray(y) > 0.0, up, -rate)

    def expected(self, y: Array, mean: Array, var: Array) -> Expected:
        """Return E[l], E[l'], E[l''] under N(f | mean, var): for y=-1 all three are -E[exp(f)]."""
        shape, (y, mean, var) = flatten(y, mean, var)
        parts = np.empty((3, y.size))
        up = y > 0.0
        with quiet():
            parts[:, up] = generic.expected(self.log_prob, y[up], mean[up], var[up])
            parts[:, ~up] = -np.exp(np.minimum(mean[~up] + 0.5 * var[~up], _LARGEST_AVERAGE))
        return Expected(*(a.reshape(shape) for a in parts))
