"""The complementary log-log likelihood p(y=+1|f) = 1 - exp(-exp(f)), an asymmetric link."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpclass.core.protocols import Array
from gpclass.likelihoods.base import BinaryLikelihood

_LARGEST = 500.0  # larger f are clipped, so that exp(f) does not overflow


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

    log_concave = True
    level = 2

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log p(y|f)."""
        f = np.minimum(np.asarray(f, dtype=np.float64), _LARGEST)
        with np.errstate(under="ignore", divide="ignore"):
            rate = np.exp(f)
            # log(1 - exp(-rate)) is f - rate/2 for small rates, which may be too small to be represented.
            up = np.where(f < -36.0, f, np.log(-np.expm1(-np.maximum(rate, 1e-300))))
        return np.where(np.asarray(y) > 0.0, up, -rate)
