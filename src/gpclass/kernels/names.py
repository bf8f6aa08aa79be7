"""Kernels by name, with starting values and bounds of hyperparameters from the scales of the columns of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Matern, RationalQuadratic

from gpclass.core.protocols import Array
from gpclass.kernels.inputs import Grouped
from gpclass.kernels.linear import Linear
from gpclass.kernels.networks import GaussianUnits, NeuralNetwork

VARIANCE = (1e-2, 1e4)  # bounds of the signal variance
LARGEST = 1e100  # largest standard deviation of a column whose square must be finite


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


# ------------------------------------------------------------------------------- kernels


def _gaussian_units(scales: Scales) -> Any:
    _check_squares(scales)
    width, bounds = scales.length
    return GaussianUnits(width, scales.norm, bounds, (1e-2 * scales.norm, 1e2 * scales.norm))


def _neural_network(scales: Scales) -> Any:
    _check_squares(scales)
    length, bounds = scales.lengths  # a weight is an inverse length
    # A unit changes its sign at -bias / weight, which should be within the range of the data.
    bias = 1.0 + float(np.sum((scales.centre / length) ** 2))
    return NeuralNetwork(bias, length**-2.0, (1e-4 * bias, 1e4 * bias), bounds[..., ::-1] ** -2.0)


def _check_squares(scales: Scales) -> None:
    if ((scales.deviation < 1.0 / LARGEST) | (scales.deviation > LARGEST)).any():
        raise ValueError(
            f"X has columns with standard deviations below {1.0 / LARGEST:.0e} or above {LARGEST:.0e}, whose squares "
            "would overflow in this kernel: rescale them, for example with StandardScaler."
        )


# Kernels for columns with given scales. The length scales of the linear kernel are fixed; its variance is learned.
NAMES: dict[str, Callable[[Scales], Any]] = {
    "exp-sine-squared": lambda s: ExpSineSquared(1.0, s.length[0], (1e-2, 1e2), s.length[1]),
    "gaussian-units": _gaussian_units,
    "linear": lambda s: Linear(s.lengths[0], s.centre, "fixed"),
    "matern12": lambda s: Matern(*s.lengths, nu=0.5),
    "matern32": lambda s: Matern(*s.lengths, nu=1.5),
    "matern52": lambda s: Matern(*s.lengths, nu=2.5),
    "neural-network": _neural_network,
    "rational-quadratic": lambda s: RationalQuadratic(s.length[0], 1.0, s.length[1], (1e-2, 1e3)),
    "rbf": lambda s: RBF(*s.lengths),
    "rbf-shared": lambda s: RBF(*s.length),
}
BY_GROUP = {"linear", "matern12", "matern32", "matern52", "rbf"}  # kernels with one length scale per column


def takes_vectors(kernel: Any) -> bool:
    """Return whether a kernel, the kernel of a name, or the default kernel (None) takes rows of numbers."""
    return kernel is None or isinstance(kernel, str) or bool(kernel.requires_vector_input)


def kernel_names() -> list[str]:
    """Return the names that `named_kernel` accepts, sorted."""
    return sorted(NAMES)


def named_kernel(name: str, X: Array, weight: Array | None = None, groups: Any = None) -> Any:
    """Return the kernel with a given name for data with these columns: a learned variance times the kernel.

    Length scales start at the standard deviation of each column times the root of the number of columns, and are
    bounded accordingly, so columns need not be standardised. There is one per column if the kernel supports
    it; ``"rbf-shared"`` has one for all columns.

    Parameters
    ----------
    name : str
        One of `kernel_names`.
    X : array of shape (n, n_features)
    weight : array of shape (n,), default=None
        Weights of the rows.
    groups : array of int, shape (n_features,), default=None
        Columns of one group share a length scale.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import named_kernel
    >>> named_kernel("matern32", np.array([[0.0, 100.0], [2.0, 500.0]]))
    1**2 * Matern(length_scale=[1.41, 283], nu=1.5)
    """
    scales = column_scales(np.asarray(X, dtype=float), weight)
    groups = groups if name in BY_GROUP else None
    kernel = ConstantKernel(1.0, VARIANCE) * NAMES[name](scales.of_groups(groups))
    return kernel if groups is None else Grouped(kernel, groups)


def default_kernel(X: Array, weight: Array | None = None, groups: Any = None) -> Any:
    """Return all parts of the kernel that the classifier chooses from: smooth, bias and linear.

    Columns of X that belong to one ``group`` share a length scale.

    Examples
    --------
    >>> import numpy as np
    >>> default_kernel(np.array([[0.0, 100.0], [2.0, 500.0]]))
    2**2 * RBF(length_scale=[1.41, 283]) + 1**2 + 2**2 * Linear(length_scale=[1.41, 283], centre=[1, 300])
    """
    scales = column_scales(np.asarray(X, dtype=float), weight)
    # The hyperpriors keep the values moderate; the bounds only keep them within double precision.
    signal, bias, slope = (ConstantKernel(value, (1e-6, 1e6)) for value in (4.0, 1.0, 4.0))
    length, bounds = scales.of_groups(groups).lengths
    smooth = RBF(length, np.asarray(bounds) * [1e-3, 1e3])
    kernel = signal * smooth + bias + slope * Linear(length, scales.centre, "fixed")
    return kernel if groups is None else Grouped(kernel, groups)
