"""The scales of the columns of the data, and whether a kernel can adapt to columns of different scales."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.protocols import Array, Index
from gpclass.kernels.composite import inner_kernels
from gpclass.kernels.covariances import by_differences, formulas_of
from gpclass.kernels.inputs import Columns, positions


@dataclass(frozen=True, slots=True, eq=False)
class Scales:
    """Scales of the columns of X, used as starting values for the hyperparameters of a kernel.

    ``deviation`` and ``centre`` are the standard deviation and the mean of each column. ``distance``, the root of
    the summed variances, is the typical distance between rows, and ``norm`` the typical norm of a row.
    """

    deviation: Array  # the magnitude of the value for a constant column
    centre: Array
    distance: float
    norm: float
    varies: Any  # True for columns that are not constant

    def of_groups(self, groups: Any) -> Scales:
        """Return the scales of groups of columns, whose variances add up."""
        if groups is None:
            return self
        varies = np.bincount(groups, self.varies) > 0
        deviation = np.zeros(len(varies))
        np.hypot.at(deviation, groups, np.where(self.varies, self.deviation, 0.0))  # hypot does not overflow
        return replace(self, deviation=np.where(varies, deviation, 1.0), varies=varies)

    @property
    def lengths(self) -> tuple[Any, Any]:
        """One length scale per column, and their bounds.

        Like distances of standardised rows they grow with the root of the number of columns. A length scale that is a
        hundred times longer makes a column irrelevant.
        """
        scale = self.deviation * np.sqrt(len(self.deviation))
        bounds = np.column_stack([1e-2 * self.deviation, 1e2 * scale])
        return (scale, bounds) if len(scale) > 1 else (scale[0], bounds[0])

    @property
    def length(self) -> tuple[float, tuple[float, float]]:
        """One length scale for all columns, and its bounds."""
        return self.distance, (1e-2 * self.distance / np.sqrt(len(self.deviation)), 1e2 * self.distance)


def column_scales(X: Array, weight: Array | None = None) -> Scales:
    """Return the scales of the columns of X; a row of weight k counts as k rows."""
    weight = None if weight is None or not weight.any() else weight
    size = np.abs(X).max(axis=0)
    size = np.where(size > 0.0, size, 1.0)  # division prevents overflow of squares
    rows = X / size
    centre = np.average(rows, axis=0, weights=weight)
    deviation = np.sqrt(np.average((rows - centre) ** 2, axis=0, weights=weight))
    varies = deviation > 1e-12  # smaller deviations are rounding errors of a constant
    centre, deviation = centre * size, np.where(varies, deviation, 1.0) * size
    distance = float(np.hypot.reduce(deviation[varies])) if varies.any() else 1.0
    return Scales(deviation, centre, distance, float(np.hypot(distance, np.hypot.reduce(centre))), varies)


def disparity(kernel: Kernel, scales: Scales) -> float:
    """Return the largest ratio of deviations among columns that share one scale of the kernel, or 1.

    Constant columns do not count, nor do parts of the kernel that gpclass does not know. A kernel with any
    part that has a scale for each of those columns can adapt, so its ratio is 1.
    """
    shared, own = 1.0, 1.0
    for columns, one in _parts(kernel, np.arange(len(scales.deviation))):
        sizes = scales.deviation[columns][scales.varies[columns]]
        with np.errstate(over="ignore"):
            ratio = float(sizes.max() / sizes.min()) if len(sizes) else 1.0
        shared, own = (max(shared, ratio), own) if one else (shared, max(own, ratio))
    return shared if shared > own else 1.0


def _parts(kernel: Kernel, columns: Index) -> Iterator[tuple[Index, bool]]:
    """Yield the columns that each part of a kernel depends on, and whether the part has one scale for all of them."""
    if isinstance(kernel, Columns):
        yield from _parts(kernel.kernel, columns[positions(kernel.columns, len(columns))])
        return
    inside = inner_kernels(kernel)
    for part in inside:
        yield from _parts(part, columns)
    if not inside and kernel.requires_vector_input and formulas_of(kernel) is not by_differences:
        yield columns, all(np.size(getattr(kernel, h.name)) == 1 for h in kernel.hyperparameters)
