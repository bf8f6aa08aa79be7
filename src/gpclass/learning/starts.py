"""Where learning starts: the kernel as given, or a point that the data suggest, whichever has more evidence.

The evidence is flat where the variance is tiny, or where the length scales are far below or far above the distances
between the rows, and no gradient leads out of there. A look at a few points on some of the rows finds a better start.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.objective import Objective
from gpclass.core.protocols import Array
from gpclass.kernels.names import column_scales
from gpclass.priors import NotPositiveError

ROWS = 200  # that a look needs
LENGTHS = (0.3, 1.0, 3.0)  # multiples of the typical distance
VARIANCES = (0.5, 30.0)  # tried after the first
FIRST_VARIANCE = 4.0


def best_start(objective: Objective, kernel: Kernel, X: Any, theta: Array, bounds: Array) -> Array:
    """Return the point with the most evidence among ``theta`` and some that the rows X suggest.

    ``theta`` may have parameters of the likelihood after those of the kernel; they stay.
    """
    places = _places(kernel)
    seen: list[tuple[float, Array]] = []

    def look(candidate: Array) -> None:
        candidate = np.clip(candidate, *bounds.T)
        if any(np.allclose(candidate, other) for _, other in seen):
            return
        try:
            end = objective.evaluate(candidate, gradient=False)
        except NotPositiveError:
            return
        if end.info.converged and np.isfinite(end.evidence):
            seen.append((end.evidence, candidate))

    look(theta)
    variances, lengths = places["variance"], places["length"]
    if not isinstance(X, np.ndarray) or not len(variances) + len(lengths):
        return theta
    typical = theta.copy()
    typical[lengths] = _typical_lengths(kernel, X, theta)[lengths]
    typical[variances] = np.log(FIRST_VARIANCE)
    for factor in LENGTHS if len(lengths) else (1.0,):
        candidate = typical.copy()
        candidate[lengths] += np.log(factor)
        look(candidate)
    if len(variances) and seen:
        _, best = max(seen, key=lambda pair: pair[0])
        for variance in VARIANCES:
            candidate = best.copy()
            candidate[variances] = np.log(variance)
            look(candidate)
    return max(seen, key=lambda pair: pair[0])[1] if seen else theta


def _places(kernel: Kernel) -> dict[str, Any]:
    """Return the positions in theta of variances and of length scales."""
    names = [
        h.name.rsplit("__", 1)[-1] for h in kernel.hyperparameters if not h.fixed for _ in range(h.n_elements)
    ]
    return {
        "variance": np.array([i for i, name in enumerate(names) if name == "constant_value"], dtype=int),
        "length": np.array([i for i, name in enumerate(names) if name == "length_scale"], dtype=int),
    }


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
