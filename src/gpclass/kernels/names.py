"""Kernels by name, with starting values and bounds of hyperparameters from the scales of the columns."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Matern, RationalQuadratic

from gpclass.core.protocols import Array
from gpclass.kernels.base import FormulaKernel
from gpclass.kernels.covariances import registered
from gpclass.kernels.inputs import Grouped
from gpclass.kernels.linear import Linear
from gpclass.kernels.scales import Scales, column_scales

VARIANCE = (1e-2, 1e4)  # bounds of the signal variance
NAMES: dict[str, tuple[Any, dict[str, Any]]] = {  # in addition to the subclasses of FormulaKernel
    "exp-sine-squared": (
        ExpSineSquared,
        {"length_scale": 1.0, "length_scale_bounds": (1e-2, 1e2)},
    ),  # of a period
    "matern12": (Matern, {"nu": 0.5}),
    "matern32": (Matern, {"nu": 1.5}),
    "matern52": (Matern, {"nu": 2.5}),
    "rational-quadratic": (RationalQuadratic, {}),
    "rbf": (RBF, {}),
    "rbf-shared": (RBF, {}),
}
SHARED = {"rbf-shared", "rational-quadratic"}  # one length scale for all columns
SQUARED = {"center_scale", "weight_variance"}  # in units of squared columns
LARGEST = 1e100  # standard deviation of a column, if it is squared


def takes_vectors(kernel: Any) -> bool:
    """Return whether a kernel, the kernel of a name, or the default kernel (None) takes rows of numbers."""
    return kernel is None or isinstance(kernel, str) or bool(kernel.requires_vector_input)


def kernel_names() -> list[str]:
    """Return the names that `named_kernel` accepts, sorted.

    User-defined subclasses of `FormulaKernel` have names too: ``HalfMoon`` is ``"half-moon"``.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from gpclass.kernels import kernel_names
    >>> {"linear", "matern32", "neural-network", "rational-quadratic", "rbf", "rbf-shared"} <= set(kernel_names())
    True
    """
    return sorted(_classes())


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
    cls, options = _classes()[name]
    scales = column_scales(np.asarray(X, dtype=float), weight)
    if name in SHARED:
        options = options | dict(zip(("length_scale", "length_scale_bounds"), scales.length, strict=True))
    elif groups is not None and "length_scale" in inspect.signature(cls).parameters:
        return Grouped(_build(cls, scales.of_groups(groups), dict(options)), groups)
    return _build(cls, scales, dict(options))


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


def _classes() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return the class of each name, with arguments of its constructor."""
    ours = [cls for cls in registered() if issubclass(cls, FormulaKernel) and _has_defaults(cls)]
    # NeuralNetwork is neural-network.
    dashed: dict[str, Any] = {
        re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower(): (cls, {}) for cls in ours
    }
    return NAMES | dashed


def _has_defaults(cls: Any) -> bool:
    return all(p.default is not p.empty for p in inspect.signature(cls).parameters.values())


def _build(cls: Any, scales: Scales, options: dict[str, Any]) -> Any:
    names = inspect.signature(cls).parameters
    extreme = (scales.deviation < 1.0 / LARGEST) | (scales.deviation > LARGEST)
    if extreme.any() and not SQUARED.isdisjoint(names):
        raise ValueError(
            f"X has columns with standard deviations below {1.0 / LARGEST:.0e} or above {LARGEST:.0e}, whose squares "
            "in this kernel would overflow: rescale them, for example with StandardScaler."
        )
    for name in names:
        if name in STARTS and name not in options and name + "_bounds" in names:
            options[name], options[name + "_bounds"] = STARTS[name](scales)
    if cls is Linear:  # only the factor before the kernel is learned
        options |= {"length_scale_bounds": "fixed", "centre": scales.centre}
    return ConstantKernel(1.0, VARIANCE) * cls(**options)


def _around(start: Any, factor: float) -> tuple[Any, tuple[Any, Any]]:
    return start, (start / factor, start * factor)


def _weights(scales: Scales) -> tuple[Any, Any]:
    length, bounds = scales.lengths  # a weight is an inverse length
    return length**-2.0, bounds[..., ::-1] ** -2.0


def _biases(scales: Scales) -> tuple[Any, Any]:
    # A unit changes its sign at -bias / weight, which should be within the range of the data.
    return _around(1.0 + float(np.sum((scales.centre / scales.lengths[0]) ** 2)), 1e4)


# Start and bounds of a hyperparameter, by its name.
STARTS: dict[str, Callable[[Scales], tuple[Any, Any]]] = {
    "alpha": lambda scales: (1.0, (1e-2, 1e3)),
    "bias_variance": _biases,
    "center_scale": lambda scales: _around(scales.norm, 1e2),
    "length_scale": lambda scales: scales.lengths,
    "periodicity": lambda scales: scales.length,
    "unit_width": lambda scales: scales.length,
    "weight_variance": _weights,
}
