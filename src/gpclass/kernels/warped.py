"""Monotone transforms of the columns, so that skewed columns and outliers do not dominate distances.

A column x becomes offset + slope · g(u) with u = (x - centre) / scale, where centre is its median and scale its
interquartile range, so that the units of the column do not matter, and g is one of

    asinh          g(u) = asinh(2u), which is logarithmic far from the centre;
    Yeo-Johnson    g(u) = ((1 + u)^p - 1) / p for u >= 0 and -((1 - u)^(2 - p) - 1) / (2 - p) for u < 0, with the
                   power p of each column that makes it as close to normal as possible (maximum likelihood).

Offset and slope give the transformed column the mean and the standard deviation of the column, so that
length scales mean the same with and without a transform.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import boxcox1p
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.protocols import Array
from gpclass.kernels.inputs import Around, of_inputs
from gpclass.kernels.names import column_scales

TRANSFORMS = ("asinh", "yeo-johnson")
POWERS = (-19.0, 21.0)  # range of powers, symmetric about 1; at either end the transform is nearly a step
POWER_ERROR = 1e-2  # tolerance of a power: a smaller change is not detectable with a hundred rows
LARGEST = 1e100  # largest transformed value: its square is finite


class Warped(Around, formulas=of_inputs):
    """Apply a kernel to monotone transforms of the columns.

    Parameters
    ----------
    kernel : Kernel
        The inner kernel; its hyperparameters are those of this kernel.
    transform : {"asinh", "yeo-johnson"}
        The transform g.
    centre, scale, offset, slope : array of shape (n_features,)
        A column x becomes offset + slope · g((x - centre) / scale). A column of scale zero is not transformed.
    power : array of shape (n_features,) or None, default=None
        Powers of the Yeo-Johnson transform.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF, Warped, warps
    >>> X = np.array([[0.0], [1.0], [2.0], [1000.0]])
    >>> asinh, power = warps(X)
    >>> asinh(RBF(500.0))(X)[0].round(2)
    array([1.  , 0.97, 0.9 , 0.09])
    """

    def __init__(
        self,
        kernel: Kernel,
        transform: str,
        centre: Any,
        scale: Any,
        offset: Any,
        slope: Any,
        power: Any = None,
    ) -> None:
        self.kernel = kernel
        self.transform = transform
        self.centre = centre
        self.scale = scale
        self.offset = offset
        self.slope = slope
        self.power = power

    def inputs(self, X: Array) -> Array:
        """Return the transformed columns."""
        on = np.flatnonzero(self.scale)
        if np.shape(self.scale) != X.shape[1:]:
            raise ValueError(f"The transform is of {len(self.scale)} columns but X has {X.shape[1]}.")
        given = (self.centre, self.scale, self.offset, self.slope)
        centre, scale, offset, slope = (np.asarray(each)[on] for each in given)
        power = None if self.power is None else np.asarray(self.power)[on]
        out: Array = np.array(X, dtype=float)
        out[:, on] = offset + slope * _g((out[:, on] - centre) / scale, power)
        return out.astype(X.dtype, copy=False)

    def __repr__(self) -> str:
        return f"Warped({self.kernel}, {self.transform!r})"


def _g(u: Array, power: Array | None) -> Array:
    """Return asinh(2u), or the Yeo-Johnson transform of each column."""
    if power is None:
        return np.asarray(np.arcsinh(2.0 * u))
    size = boxcox1p(np.abs(u), np.where(u >= 0.0, power, 2.0 - power))
    return np.asarray(np.sign(u) * np.minimum(size, LARGEST))


Warp = partial[Warped]  # the parameters of a transform; called with a kernel


def warps(X: Array, weight: Array | None = None, numeric: Any = None) -> tuple[Warp, ...]:
    """Return the transforms for the columns of X, in the order of `TRANSFORMS`; none if there is nothing to transform.

    Called with a kernel, each returns the `Warped` kernel.

    Parameters
    ----------
    X : array of shape (n, n_features)
    weight : array of shape (n,), default=None
        Weights of the rows; a row of weight k counts as k rows.
    numeric : array of bool, shape (n_features,), default=None
        Columns that may be transformed; all by default. Columns of one or two values are not, because
        every transform of them is linear.
    """
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    least, most = X.min(axis=0), X.max(axis=0)
    on = ((least < X) & (most > X)).any(axis=0)  # more than two values
    if numeric is not None:
        on &= numeric
    low, centre, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0, weights=weight, method="inverted_cdf")
    with np.errstate(over="ignore"):
        # If half of the values are equal, use twice the mean distance from the median, as for a uniform distribution.
        spread = 2.0 * np.average(np.abs(X - centre), axis=0, weights=weight)
        scale = np.where(high > low, high - low, spread)
        u = (X - centre) / np.where(scale > 0.0, scale, 1.0)
    on &= (scale > 0.0) & (np.abs(u).max(axis=0) < LARGEST)
    if not on.any():
        return ()
    scale, u = np.where(on, scale, 0.0), np.where(on, u, 0.0)
    power = np.array([_best_power(v, weight) if used else 1.0 for v, used in zip(u.T, on, strict=True)])
    plain, found = column_scales(X, weight), []
    for name, powers in zip(TRANSFORMS, (None, power), strict=True):
        moved = column_scales(_g(u, powers), weight)  # mean and standard deviation are to be preserved
        slope = plain.deviation / np.where(moved.varies, moved.deviation, 1.0)
        used, offset = np.where(moved.varies, scale, 0.0), plain.centre - slope * moved.centre
        line = {"centre": centre, "scale": used, "offset": offset, "slope": slope}
        found.append(partial(Warped, transform=name, **line, power=powers))
    return tuple(found)


def _best_power(u: Array, weight: Array) -> float:
    """Return the power for which the transformed values are closest to normal, by maximum likelihood."""
    total, signed = weight.sum(), float(weight @ (np.sign(u) * np.log1p(np.abs(u))))

    def loss(power: float) -> float:
        g = _g(u, np.array(power))
        variance = np.average((g - np.average(g, weights=weight)) ** 2, weights=weight)
        return float(0.5 * total * np.log(max(variance, 1e-300)) - (power - 1.0) * signed)

    return float(minimize_scalar(loss, bounds=POWERS, method="bounded", options={"xatol": POWER_ERROR}).x)
