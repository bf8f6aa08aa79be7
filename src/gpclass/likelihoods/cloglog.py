"""The complementary log-log likelihood p(y=+1|f) = 1 - exp(-exp(f)), an asymmetric link."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpclass.core.protocols import Array
from gpclass.likelihoods.base import BinaryLikelihood
from gpclass.likelihoods.quadrature import quiet

_LARGEST = 230.0  # larger f are clipped, so that squares of exp(f) do not overflow
_SERIES = 1e-2  # below this rate 1 - u - r is computed by a series, because the difference would lose digits


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
        f, u = _rate(f)
        with np.errstate(under="ignore", divide="ignore"):
            # log(1 - exp(-u)) is -exp(-u) for large u, and f - u/2 for small ones, which may underflow.
            up = np.where(u > 1.0, np.log1p(-np.exp(-u)), np.log(-np.expm1(-np.maximum(u, 1e-300))))
        return np.where(np.asarray(y) > 0.0, np.where(f < -36.0, f, up), -u)

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return l, l' and l'' of l(f) = log p(y|f).

        With u = exp(f) and r = u / (exp(u) - 1), l' = r and l'' = r (1 - u - r) for y = +1; both are -u for y = -1.
        """
        up, u = np.asarray(y) > 0.0, _rate(f)[1]
        r, rest = _ratio(u)
        return self.log_prob(y, f), np.where(up, r, -u), np.where(up, r * rest, -u)


def _rate(f: Array) -> tuple[Array, Array]:
    """Return f, clipped, and u = exp(f)."""
    f = np.minimum(np.asarray(f, dtype=np.float64), _LARGEST)
    with quiet():
        return f, np.exp(f)


def _ratio(u: Array) -> tuple[Array, Array]:
    """Return r = u / (exp(u) - 1) and 1 - u - r."""
    with quiet():
        r = np.where(u > 1e-300, u / np.expm1(np.maximum(u, 1e-300)), 1.0)
    small = np.minimum(u, _SERIES)
    return r, np.where(u < _SERIES, -small * (0.5 + small / 12.0 - small**3 / 720.0), 1.0 - u - r)
