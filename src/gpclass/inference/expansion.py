"""E[l] near means and variances where it is known: Taylor's series in both.

A derivative with respect to a variance is half the second one with respect to the mean (integrate by parts), so
with D_k the k-th derivative of E[l] with respect to the mean,

    D_k(m + d, v + 2h) = Σ_a Σ_b d^a / a! · h^b / b! · D_{k+a+2b}(m, v).

With D up to the sixth and steps of 0.1 the curvature D_2 is good to 1e-7. That is a guide to the next sites: they are
judged by exact averages at the marginals that they lead to.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpclass.core.protocols import Array, Expected, Index
from gpclass.inference.newton import Curve

ORDER = 6
INVERSE_FACTORIALS = 1.0 / np.cumprod([1.0, *range(1, ORDER + 1)])[:, None, None]
# Beyond this step in the mean, or this relative one in the variance, the series is not used.
STEP, WIDER = 0.5, 0.5
MOST_MISSING = 0.5  # share of data points without derivatives beyond which the series saves nothing

# Exact values, slopes and curvatures of some data points, at means and variances of all.
Exact = Callable[[Index, Array, Array], tuple[Array, Array, Array]]


class Expansion:
    """The series around one mean and variance for each data point, weights included."""

    __slots__ = ("_D", "_exact", "_mean", "_missing", "_variance")

    def __init__(self, mean: Array, variance: Array, D: Array, missing: Index, exact: Exact) -> None:
        self._mean, self._variance, self._D, self._missing, self._exact = mean, variance, D, missing, exact

    def curve(self, variance: Array) -> Curve | None:
        """Return the curves at other variances; None if they are too far away."""
        h = 0.5 * (variance - self._variance)
        if (np.abs(h) > 0.5 * WIDER * self._variance).any():
            return None
        D = np.zeros((ORDER + 3, len(h)))  # the last two rows are derivatives that are not known
        D[: ORDER + 1] = self._D
        factor = h
        for b in (1, 2, 3):
            D[: ORDER + 1 - 2 * b] += factor * self._D[2 * b :]
            factor = factor * h / (b + 1)
        # Coefficients of d^a for D_0, D_1 and D_2, side by side.
        C = np.stack([D[: ORDER + 1], D[1 : ORDER + 2], D[2:]], axis=1)
        C *= INVERSE_FACTORIALS
        return lambda mean: self._at(C, mean, variance)

    def _at(self, C: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        d = mean - self._mean
        if max(d.max(initial=0.0), -d.min(initial=0.0)) > STEP:
            return self._exact(np.arange(len(d)), mean, variance)
        out = C[ORDER] * d
        for a in range(ORDER - 1, 0, -1):  # Horner's scheme
            out += C[a]
            out *= d
        out += C[0]
        value, slope, curvature = out
        if self._missing.size:
            i = self._missing
            value[i], slope[i], curvature[i] = self._exact(i, mean, variance)
        return value, slope, curvature


def expand(e: Expected, weight: Array | None, mean: Array, variance: Array, exact: Exact) -> Expansion | None:
    """Return the series around these means and variances, if the likelihood knows enough derivatives."""
    if e.higher is None:
        return None
    higher, missing = e.higher()
    if len(missing) > MOST_MISSING * len(mean):
        return None
    D = np.concatenate([np.stack([e.value, e.slope, e.curvature]), higher])
    return Expansion(mean, variance, D if weight is None else weight * D, missing, exact)
