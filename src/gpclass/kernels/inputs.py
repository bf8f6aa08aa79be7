"""Kernels of transformed inputs, and kernels whose length scales are shared by groups of columns.

Each has the hyperparameters of the kernel inside it.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Exponentiation, Kernel, Product, Sum

from gpclass.core.protocols import Array, Index
from gpclass.kernels.covariances import Covariances, covariances, register
from gpclass.kernels.theta import count_free, free_names, hyperparameter_names


class Around(Kernel):
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
        same = (np.array_equal(_comparable(mine[name]), _comparable(theirs[name])) for name in mine)
        return all(same)


class OfInputs(Around):
    """k(x, z) = inner(t(x), t(z)) for some transform t of the inputs, which a subclass defines."""

    @abstractmethod
    def inputs(self, X: Array) -> Array:
        """Return t(x) for each row."""

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return the covariances, and their gradient with respect to theta if requested."""
        Y = None if Y is None else self.inputs(np.atleast_2d(Y))
        return self.kernel(self.inputs(np.atleast_2d(X)), Y, eval_gradient=eval_gradient)

    def diag(self, X: Any) -> Array:
        """Return k(x_i, x_i)."""
        return np.asarray(self.kernel.diag(self.inputs(np.atleast_2d(X))))


def of_inputs(kernel: Any, X: Array, Z: Array | None, dtype: Any) -> Covariances:
    """Return the covariances of the inner kernel at the transformed inputs."""
    return covariances(kernel.kernel, kernel.inputs(X), None if Z is None else kernel.inputs(Z), dtype)


class Grouped(Around):
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

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return the covariances, and their gradient with respect to theta if requested."""
        wide, places = self.widened()
        if not eval_gradient:
            return wide(X, Y)
        K, slopes = wide(X, Y, eval_gradient=True)
        out = np.zeros((count_free(self.kernel), *K.shape))
        np.add.at(out, places, np.moveaxis(slopes, -1, 0))
        return K, np.moveaxis(out, 0, -1)

    def diag(self, X: Any) -> Array:
        """Return k(x_i, x_i)."""
        return np.asarray(self.widened()[0].diag(X))

    def __repr__(self) -> str:
        return f"Grouped({self.kernel}, {np.asarray(self.groups).tolist()})"


def measured_inputs(kernel: Kernel, X: Array) -> tuple[Array, Index | None]:
    """Return the inputs that the length scales of a kernel measure, and the groups of columns that share one."""
    if isinstance(kernel, OfInputs):
        return measured_inputs(kernel.kernel, kernel.inputs(X))
    return X, np.asarray(kernel.groups) if isinstance(kernel, Grouped) else None


def _widened(kernel: Any, groups: Index) -> tuple[Any, Index]:
    if type(kernel) in (Sum, Product):
        (first, places), (second, others) = _widened(kernel.k1, groups), _widened(kernel.k2, groups)
        return type(kernel)(first, second), np.concatenate([places, count_free(kernel.k1) + others])
    n_groups, wide = int(groups.max()) + 1, copy.copy(kernel)
    shared = [name for name in hyperparameter_names(kernel) if np.size(getattr(kernel, name)) == n_groups > 1]
    for name in shared:
        setattr(wide, name, np.asarray(getattr(kernel, name))[groups])
    found: list[Index] = [np.empty(0, dtype=np.intp)]
    start = 0
    for name in free_names(kernel):
        size = np.size(getattr(kernel, name))
        found.append(start + (groups if name in shared else np.arange(size)))
        start += size
    return wide, np.concatenate(found)


def _grouped(kernel: Any, X: Array, Z: Array | None, dtype: Any) -> Covariances:
    wide, places = kernel.widened()
    inner, n_dims = covariances(wide, X, Z, dtype), count_free(kernel)

    def pull(G: Array, K: Array | None) -> Array:
        return np.bincount(places, inner.pull(G, K), minlength=n_dims).astype(float)

    return Covariances(inner.values, pull)


def _comparable(value: Any) -> Any:
    if isinstance(value, Kernel):  # an array of one object, because kernels may look like sequences
        one = np.empty((), dtype=object)
        one[()] = value
        return one
    return np.asarray(str(value) if isinstance(value, slice) else value)


register(Grouped, _grouped)
