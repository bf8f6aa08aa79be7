"""Starting points of learning: the kernel as given, and points that span the scales of the data.

The evidence is flat where the variance is tiny, or where the length scales are far below or far above those on which
the labels change, and gradients vanish there. Between the distance of nearest neighbours and the largest
distance of two rows its peak may be anywhere, and it is narrow. So the evidence is evaluated on a
geometric grid of the common length scale, and learning starts from the highest peaks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.optimisers import TOL_NATS
from gpclass.core.protocols import Array, Index
from gpclass.kernels.inputs import measured_inputs
from gpclass.kernels.names import column_scales
from gpclass.learning.problem import Problem, SiteObjective
from gpclass.priors import NotPositiveError

RATIO = 2.0  # ratio of adjacent length scales of the grid: a peak of the evidence spans a factor of four
MAX_LOOKS = 16  # maximum number of length scales in the grid, which cover a range of up to 2^15
STARTS = 2  # number of peaks from which learning starts
VARIANCE = 4.0  # variance of latent values on the grid: probabilities from 0.02 to 0.98
LARGER = (25.0, 625.0)  # factors of the variance at the highest peak: noise-free labels favour a large one
HUGE_VARIANCE = 1e8  # from this variance on, labels are not informative about the latent values

Look = tuple[float, Array]  # objective, theta


def starts(problem: Problem, looks: list[Look]) -> list[Array]:
    """Return the thetas that learning should start from, the best first; evaluated points are appended to ``looks``.

    Theta may have parameters of the likelihood after those of the kernel; they are not changed.
    """
    kernel, X, theta = problem.kernel, problem.X, problem.theta
    variances, lengths = _places(kernel, "constant_value"), _places(kernel, "length_scale")
    rows = isinstance(X, np.ndarray) and X.dtype.kind == "f"  # not words
    size = float(np.mean(kernel.diag(X))) if rows and len(variances) else 1.0
    look_at = _looker(problem, looks)
    given = [] if size > HUGE_VARIANCE else [look_at(theta)]
    if not rows or not len(variances) + len(lengths):
        return [theta]
    typical = theta.copy()
    # Labels are not informative about huge latent values, so a kernel of raw inputs is scaled down.
    typical[variances] = np.log(VARIANCE) + (theta[variances] - np.log(size) if size > HUGE_VARIANCE else 0.0)
    low, high = _range_of_lengths(kernel, X, typical)
    n = int(np.clip(np.ceil(float((high - low).max()) / np.log(RATIO)) + 1, 1, MAX_LOOKS))
    peaks = _peaks([look_at(high + share * (low - high)) for share in np.linspace(0.0, 1.0, n)])
    first = (peaks or [(-np.inf, typical)])[0]
    larger = []
    for factor in LARGER if len(variances) else ():
        for ratio in (1.0, RATIO) if len(lengths) else (1.0,):
            moved = first[1].copy()
            moved[variances] += np.log(factor)
            moved[lengths] += np.log(ratio)
            larger.append(look_at(moved))
    best = max([first, *larger], key=lambda look: look[0])
    if given and given[0][0] >= best[0] - TOL_NATS:
        best = given[0]
    others = [best, *(peaks if best in given else peaks[1:])]
    return [theta for _, theta in others[:STARTS]]


def _looker(problem: Problem, looks: list[Look]) -> Callable[[Array], Look]:
    """Return a function that evaluates the objective at a point, with a warm start; -inf if inference fails."""
    objective, support, warm = SiteObjective(problem), problem.bounds.T, [None]

    def look(theta: Array) -> Look:
        theta = np.clip(theta, *support)
        try:
            end = objective.evaluate(theta, warm[0], gradient=False)
        except NotPositiveError:
            return -np.inf, theta
        if not end.info.converged:
            return -np.inf, theta
        warm[0] = end.warm
        looks.append((end.evidence + problem.hyperprior(theta)[0], theta))
        return looks[-1]

    return look


def _peaks(grid: list[Look]) -> list[Look]:
    """Return the local maxima of a grid, the highest first."""
    values = np.array([-np.inf, *(value for value, _ in grid), -np.inf])
    inner = values[1:-1]
    peaks = np.flatnonzero((inner >= values[:-2]) & (inner >= values[2:]) & np.isfinite(inner))
    return [grid[i] for i in peaks[np.argsort(-inner[peaks], kind="stable")]]


def _places(kernel: Kernel, name: str) -> Index:
    """Return the positions in theta of all hyperparameters whose name has this ending."""
    names = [
        h.name.rsplit("__", 1)[-1] for h in kernel.hyperparameters if not h.fixed for _ in range(h.n_elements)
    ]
    return np.flatnonzero(np.array(names) == name)


def _range_of_lengths(kernel: Kernel, X: Array, theta: Array) -> tuple[Array, Array]:
    """Return theta at the shortest and at the longest length scales that the rows can resolve.

    Length scales of single columns are relative to the standard deviations of the columns.
    """
    low, high, position = theta.copy(), theta.copy(), 0
    X, groups = measured_inputs(kernel, X)
    scales = column_scales(X).of_groups(groups)
    for h in kernel.hyperparameters:
        if h.fixed:
            continue
        own = slice(position, position + h.n_elements)
        position += h.n_elements
        if h.name.rsplit("__", 1)[-1] == "length_scale" and h.n_elements in (1, len(scales.deviation)):
            unit = scales.deviation if h.n_elements > 1 else np.full(1, float(np.abs(X).max()) or 1.0)
            ends = _distances(X / (unit if h.n_elements == 1 or groups is None else unit[groups]))
            low[own], high[own] = np.log(unit) + ends[0], np.log(unit) + ends[1]
    return low, high


def _distances(X: Any) -> tuple[float, float]:
    """Return the logarithms of the median distance of nearest neighbours and of the largest distance of two rows."""
    distances = squareform(pdist(X))
    distances[distances == 0.0] = np.inf
    nearest = distances.min(axis=0)
    nearest = nearest[np.isfinite(nearest)]
    if not len(nearest):
        return 0.0, 0.0
    return float(np.log(np.median(nearest))), float(np.log(distances[np.isfinite(distances)].max()))
