"""Where learning starts: the kernel as given, or a point that the data suggest, whichever has more evidence.

The evidence is flat where the variance is tiny, or where the length scales are far below or far above the distances
between the rows, and no gradient leads out of there. A look at a few points on some of the rows finds a better start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.objective import Objective
from gpclass.core.protocols import Array, Index
from gpclass.kernels.scales import column_scales
from gpclass.priors import NotPositiveError

ROWS = 200  # that a look needs
LENGTHS = (0.3, 1.0, 3.0)  # multiples of the typical distance
VARIANCES = (0.5, 30.0)  # tried after the first
FIRST_VARIANCE = 4.0
HUGE = 1e8  # prior variance of a start that is not looked at


@dataclass(slots=True, eq=False)
class Look:
    """The evidence at some points; the best of them counts, also if looking is interrupted."""

    objective: Objective
    bounds: Array
    best: tuple[float, Array] | None = None
    warm: Any = None

    def at(self, theta: Array) -> None:
        """Look at one point; one where inference fails is passed over."""
        theta = np.clip(theta, *self.bounds.T)
        try:
            end = self.objective.evaluate(theta, self.warm, gradient=False)
        except NotPositiveError:
            return
        if not end.info.converged:
            return
        self.warm = end.warm
        if self.best is None or end.evidence > self.best[0]:
            self.best = end.evidence, theta

    def around(self, kernel: Kernel, X: Any, theta: Array) -> None:
        """Look at ``theta`` and at some points that the rows X suggest.

        ``theta`` may have parameters of the likelihood after those of the kernel; they stay.
        """
        variances, lengths = _places(kernel, "constant_value"), _places(kernel, "length_scale")
        rows = isinstance(X, np.ndarray)
        size = _mean_variance(kernel, X, theta) if rows and len(variances) else 1.0
        if not size > HUGE:
            self.at(theta)
        if not rows or not len(variances) + len(lengths):
            return
        typical = _typical_lengths(kernel, X, theta)
        typical[variances] = np.log(FIRST_VARIANCE)
        if size > HUGE:  # labels say nothing about such latent values: a kernel of raw inputs is scaled down
            typical[variances] += theta[variances] - np.log(size)
        for factor in LENGTHS if len(lengths) else (1.0,):
            candidate = typical.copy()
            candidate[lengths] += np.log(factor)
            self.at(candidate)
        best = typical if self.best is None else self.best[1]
        for variance in VARIANCES if len(variances) else ():
            candidate = best.copy()
            candidate[variances] = typical[variances] + np.log(variance / FIRST_VARIANCE)
            self.at(candidate)


def _places(kernel: Kernel, name: str) -> Index:
    """Return the positions in theta of all hyperparameters whose name ends so."""
    names = [
        h.name.rsplit("__", 1)[-1] for h in kernel.hyperparameters if not h.fixed for _ in range(h.n_elements)
    ]
    return np.flatnonzero(np.array(names) == name)


def _mean_variance(kernel: Kernel, X: Array, theta: Array) -> float:
    """Return the mean prior variance of the rows at theta."""
    return float(np.mean(kernel.clone_with_theta(theta[: kernel.n_dims]).diag(X)))


def _typical_lengths(kernel: Kernel, X: Array, theta: Array) -> Array:
    """Return theta with length scales of the order of the distances between rows.

    One length scale is the median distance; one per column is the column's deviation times the root of their number.
    """
    out, position = theta.copy(), 0
    for h in kernel.hyperparameters:
        if h.fixed:
            continue
        own = slice(position, position + h.n_elements)
        position += h.n_elements
        if h.name.rsplit("__", 1)[-1] != "length_scale":
            continue
        if h.n_elements == X.shape[1] > 1:
            out[own] = np.log(column_scales(X).deviation * np.sqrt(X.shape[1]))
        elif h.n_elements == 1:
            out[own] = np.log(_median_distance(X))
    return out


def _median_distance(X: Array) -> float:
    """Return the median distance of different rows, or one if there are none."""
    from scipy.spatial.distance import pdist

    size = float(np.abs(X).max()) or 1.0
    distances = pdist(X / size)
    distances = distances[distances > 0.0]
    return float(np.median(distances)) * size if len(distances) else 1.0
