"""Kernels by name, with hyperparameters that start at, and are bounded by, the scales of the columns of the data."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Kernel,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
)

from gpclass.core.protocols import Array
from gpclass.kernels.base import FormulaKernel
from gpclass.kernels.covariances import registered
from gpclass.kernels.linear import Linear
from gpclass.kernels.networks import GaussianUnits, NeuralNetwork
from gpclass.kernels.profiles import Stationary
from gpclass.kernels.scales import Scales, column_scales

VARIANCE = (1e-2, 1e4)  # bounds of the signal variance

Build = Callable[[Scales], Any]


def takes_vectors(kernel: Any) -> bool:
    """Return whether a kernel, the kernel of a name, or the default kernel (None) takes rows of numbers."""
    return kernel is None or isinstance(kernel, str) or bool(kernel.requires_vector_input)


def kernel_names() -> list[str]:
    """Return the names that `named_kernel` accepts, sorted.

    They are those of all registered kernels that need no arguments, so a kernel of your own has one as well.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from gpclass.kernels import kernel_names
    >>> {"linear", "matern32", "neural-network", "rational-quadratic", "rbf", "rbf-shared"} <= set(kernel_names())
    True
    """
    return sorted(_builders())


def named_kernel(name: str, X: Array, weight: Array | None = None) -> Any:
    """Return the kernel with a given name for data with these columns: a learned variance times the kernel.

    Length scales start at the standard deviation of each column times the root of the number of columns, and are
    bounded accordingly, so columns need not be standardised. There is one for each column, where the kernel can have
    several; ``"rbf-shared"`` has one for all columns.

    Parameters
    ----------
    name : str
        One of `kernel_names`.
    X : array of shape (n, n_features)
    weight : array of shape (n,), default=None
        Weights of the rows.

    Returns
    -------
    kernel

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import named_kernel
    >>> named_kernel("matern32", np.array([[0.0, 100.0], [2.0, 500.0]]))
    1**2 * Matern(length_scale=[1.41, 283], nu=1.5)
    """
    return _builders()[name](column_scales(np.asarray(X, dtype=float), weight))


def default_kernel(X: Array, weight: Array | None = None) -> Any:
    """Return all parts of the kernel that the classifier chooses from: smooth, bias and linear.

    Examples
    --------
    >>> import numpy as np
    >>> default_kernel(np.array([[0.0, 100.0], [2.0, 500.0]]))
    2**2 * RBF(length_scale=[1.41, 283]) + 1**2 + 2**2 * Linear(length_scale=[1.41, 283], centre=[1, 300])
    """
    scales = column_scales(np.asarray(X, dtype=float), weight)
    # The hyperpriors keep the values moderate; the bounds only keep them within double precision.
    signal, bias, slope = (ConstantKernel(value, (1e-6, 1e6)) for value in (4.0, 1.0, 4.0))
    length, bounds = scales.lengths
    smooth = RBF(length, np.asarray(bounds) * [1e-3, 1e3])
    return signal * smooth + bias + slope * Linear(**_linear(scales))


def _builders() -> dict[str, Build]:
    found: dict[str, Build] = {}
    for cls in registered():
        if _stands_alone(cls):
            # NeuralNetwork is neural-network.
            dashed = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__.removesuffix("Kernel")).lower()
            found[dashed] = partial(_build, cls)
    for name, nu in (("matern12", 0.5), ("matern32", 1.5), ("matern52", 2.5)):
        found[name] = partial(_build, Matern, nu=nu)
    return found | {"rbf": partial(_build, RBF), "rbf-shared": partial(_build, RBF, shared=True)}


def _stands_alone(cls: Any) -> bool:
    """Return whether a kernel needs no arguments and depends on the inputs, unlike noise and constants."""
    needed = [p for p in inspect.signature(cls).parameters.values() if p.default is p.empty]
    return not needed and not inspect.isabstract(cls) and bool(cls().requires_vector_input)


def _build(cls: Any, scales: Scales, *, shared: bool = False, **options: Any) -> Any:
    unit = 1.0  # of the variance
    if cls in (DotProduct, PairwiseKernel):  # x·z is in squared units of the columns
        unit = scales.distance**-2.0
    if cls in SETTINGS:
        options |= SETTINGS[cls](scales)
    if "length_scale" in inspect.signature(cls).parameters and cls not in (ExpSineSquared, Linear):
        start, bounds = scales.lengths if not shared and _takes_several(cls) else scales.length
        options |= {"length_scale": start, "length_scale_bounds": bounds}
    variance = ConstantKernel(unit, (unit * VARIANCE[0], unit * VARIANCE[1]))
    return variance * cls(**options)


def _takes_several(cls: Any) -> bool:
    """Return whether a kernel can have one length scale for each column."""
    ours = issubclass(cls, FormulaKernel) and isinstance(registered()[cls], Stationary)
    return ours or "anisotropic" in dir(cls)


# ---------------------------------------------- kernels with other hyperparameters than length scales


def _linear(scales: Scales) -> dict[str, Any]:
    # The scales are those of standardised columns; the variance before the kernel is what is learned.
    return {"length_scale": scales.lengths[0], "length_scale_bounds": "fixed", "centre": scales.centre}


def _dot_product(scales: Scales) -> dict[str, Any]:
    return {"sigma_0": scales.norm, "sigma_0_bounds": (1e-2 * scales.norm, 1e2 * scales.norm)}


def _periodic(scales: Scales) -> dict[str, Any]:
    # The length scale is relative to the period.
    period, bounds = scales.length
    return {"periodicity": period, "periodicity_bounds": bounds, "length_scale_bounds": (1e-2, 1e2)}


def _neural(scales: Scales) -> dict[str, Any]:
    # A weight is an inverse length. A unit changes its sign at -bias / weight, which has to be within the data.
    length, bounds = scales.lengths
    bias = 1.0 + float(np.sum((scales.centre / length) ** 2))
    return {
        "weight_variance": length**-2.0,
        "weight_variance_bounds": bounds[..., ::-1] ** -2.0,
        "bias_variance": bias,
        "bias_variance_bounds": (1e-4 * bias, 1e4 * bias),
    }


def _units(scales: Scales) -> dict[str, Any]:
    width, bounds = scales.length
    return {
        "unit_width": width,
        "unit_width_bounds": bounds,
        "center_scale": scales.norm,
        "center_scale_bounds": (1e-2 * scales.norm, 1e2 * scales.norm),
    }


SETTINGS: dict[type[Kernel], Callable[[Scales], dict[str, Any]]] = {
    DotProduct: _dot_product,
    ExpSineSquared: _periodic,
    GaussianUnits: _units,
    Linear: _linear,
    NeuralNetwork: _neural,
    PairwiseKernel: lambda scales: {"gamma_bounds": "fixed"},  # without effect on the linear metric
    RationalQuadratic: lambda scales: {"alpha_bounds": (1e-2, 1e3)},
}
