"""The scales of the columns of the data, from which named kernels start."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpclass.core.protocols import Array


@dataclass(frozen=True, slots=True, eq=False)
class Scales:
    """Scales of the columns of X, used as starting values for the hyperparameters of a kernel.

    ``deviation`` and ``centre`` are the standard deviation and the mean of each column. ``distance``, the root of
    the summed variances, is the typical distance between rows, and ``norm`` the typical norm of a row.
    """

    deviation: Array  # of a constant column: its magnitude
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
        np.hypot.at(deviation, groups, np.where(self.varies, self.deviation, 0.0))  # squares would overflow
        return replace(self, deviation=np.where(varies, deviation, 1.0), varies=varies)

    @property
    def lengths(self) -> tuple[Any, Any]:
        """One length scale per column, and their bounds.

        Distances of standardised rows grow like the root of the number of columns, hence the start. A length scale a
        hundred times that already means that a column does not matter.
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
    size = np.where(size > 0.0, size, 1.0)  # so that no square overflows
    rows = X / size
    centre = np.average(rows, axis=0, weights=weight)
    deviation = np.sqrt(np.average((rows - centre) ** 2, axis=0, weights=weight))
    varies = deviation > 1e-12  # smaller deviations are rounding errors of a constant
    centre, deviation = centre * size, np.where(varies, deviation, 1.0) * size
    distance = float(np.hypot.reduce(deviation[varies])) if varies.any() else 1.0
    return Scales(deviation, centre, distance, float(np.hypot(distance, np.hypot.reduce(centre))), varies)
