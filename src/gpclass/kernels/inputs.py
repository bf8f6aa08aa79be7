"""Kernels with one kernel inside: at transformed inputs, or with length scales shared by groups of columns.

Each has the hyperparameters of the kernel inside it.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Exponentiation, Kernel, Product, Sum

from gpclass.core.protocols import Array, Index
from gpclass.kernels.base import FormulaKernel
from gpclass.kernels.covariances import Covariances, covariances
from gpclass.kernels.theta import count_free, free_names, hyperparameter_names


class Around(FormulaKernel):
    """A kernel with one kernel inside it, ``kernel``, and the hyperparameters of that."""

    kernel: Kernel

    # As for a power of a kernel, the hyperparameters are those of the inner kernel.
    hyperparameters, theta, bounds = (
        Exponentiation.hyperparameters,
        Exponentiation.theta,
        Exponentiation.bounds,
    )
    is_stationary = Exponentiation.is_stationary

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with those of the inner kernel as ``kernel__...`` if ``deep``."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            params.update(("kernel__" + name, value) for name, value in self.kernel.get_params().items())
        return params

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(_same(mine[name], theirs[name]) for name in mine)


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, Kernel | slice):
        return bool(first == second)
    return np.array_equal(first, second)


def of_inputs(kernel: Any, X: Array, Z: Array | None, dtype: Any) -> Covariances:
    """Return the covariances of the inner kernel at the transformed inputs."""
    return covariances(kernel.kernel, kernel.inputs(X), None if Z is None else kernel.inputs(Z), dtype)


def unwrapped(kernel: Any, X: Any) -> tuple[Any, Any]:
    """Return the kernel inside all transforms of its inputs, and the transformed inputs."""
    while hasattr(kernel, "inputs"):
        kernel, X = kernel.kernel, kernel.inputs(X)
    return kernel, X


def measured_inputs(kernel: Kernel, X: Array) -> tuple[Array, Index | None]:
    """Return the inputs that the length scales of a kernel measure, and the groups of columns that share one."""
    kernel, X = unwrapped(kernel, X)
    return X, np.asarray(kernel.groups) if hasattr(kernel, "groups") else None


def _grouped(kernel: Any, X: Array, Z: Array | None, dtype: Any) -> Covariances:
    wide, places = kernel.widened()
    inner, n_dims = covariances(wide, X, Z, dtype), count_free(kernel)

    def pull(G: Array, K: Array | None) -> Array:
        return np.bincount(places, inner.pull(G, K), minlength=n_dims).astype(float)

    return Covariances(inner.values, pull)


class Grouped(Around, formulas=_grouped):
    """Share each length scale among the columns of a group, such as the columns that encode one category.

    Parameters
    ----------
    kernel : Kernel
        The inner kernel, sums and products included. Its hyperparameters with one value per column, such as
        ``length_scale``, have one value per group here.
    groups : array of int, shape (n_features,)
        The group of each column of X, counted from zero.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF, Grouped
    >>> kernel = Grouped(RBF([1.0, 2.0]), [0, 0, 1])
    >>> kernel(np.eye(3)).round(3)
    array([[1.   , 0.368, 0.535],
           [0.368, 1.   , 0.535],
           [0.535, 0.535, 1.   ]])
    """

    def __init__(self, kernel: Kernel, groups: Any) -> None:
        self.kernel = kernel
        self.groups = groups

    def widened(self) -> tuple[Kernel, Index]:
        """Return the inner kernel with one value per column, and the position in theta of each of its own."""
        return _widened(self.kernel, np.asarray(self.groups, dtype=int))

    def __repr__(self) -> str:
        return f"Grouped({self.kernel}, {np.asarray(self.groups).tolist()})"


def _widened(kernel: Any, groups: Index) -> tuple[Any, Index]:
    if type(kernel) in (Sum, Product):
        (first, places), (second, others) = _widened(kernel.k1, groups), _widened(kernel.k2, groups)
        return type(kernel)(first, second), np.concatenate([places, count_free(kernel.k1) + others])
    n_groups, wide, start = int(groups.max()) + 1, copy.copy(kernel), 0
    free = free_names(kernel)
    found: list[Index] = [np.empty(0, dtype=np.intp)]
    for name in hyperparameter_names(kernel.__class__):
        value = np.asarray(getattr(kernel, name))
        place = groups if value.size == n_groups > 1 else np.arange(value.size)
        if place is groups:
            setattr(wide, name, value[groups])
        if name in free:
            found.append(start + place)
            start += value.size
    return wide, np.concatenate(found)
