"""Kernels that wrap another kernel: on some columns, or with length scales shared by groups of columns.

Their hyperparameters are those of the inner kernel.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import CompoundKernel, Exponentiation, Kernel

from gpclass.core.protocols import Array, Index
from gpclass.kernels.base import Covariances, FormulaKernel, covariances, free_sizes, names_of


class Around(FormulaKernel):
    """Base class of kernels that wrap another one, ``kernel``, and have its hyperparameters."""

    kernel: Kernel

    # As for a power of a kernel, the hyperparameters are those of the inner kernel.
    hyperparameters, theta = Exponentiation.hyperparameters, Exponentiation.theta
    bounds, is_stationary = Exponentiation.bounds, Exponentiation.is_stationary

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with those of the inner kernel as ``kernel__...`` if ``deep``."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            params.update(("kernel__" + name, value) for name, value in self.kernel.get_params().items())
        return params


def of_inputs(kernel: Any, X: Array, Z: Array | None, dtype: Any) -> Covariances:
    """Return the covariances of the inner kernel at the transformed inputs."""
    return covariances(kernel.kernel, kernel.inputs(X), None if Z is None else kernel.inputs(Z), dtype)


def unwrapped(kernel: Any, X: Any) -> tuple[Any, Any]:
    """Return the innermost kernel without transforms of its inputs, and the transformed inputs."""
    while hasattr(kernel, "inputs"):
        kernel, X = kernel.kernel, kernel.inputs(X)
    return kernel, X


def measured_inputs(kernel: Kernel, X: Array) -> tuple[Array, Index | None]:
    """Return the inputs to which the length scales of a kernel apply, and the groups of columns that share a scale."""
    kernel, X = unwrapped(kernel, X)
    return X, np.asarray(kernel.groups) if hasattr(kernel, "groups") else None


def _grouped(kernel: Any, X: Array, Z: Array | None, dtype: Any) -> Covariances:
    wide, places = kernel.widened()
    inner, n_dims = covariances(wide, X, Z, dtype), sum(free_sizes(kernel).values())

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
        """Return the inner kernel with one value per column, and the position in theta of each of its elements."""
        return _widened(self.kernel, np.asarray(self.groups, dtype=int))

    def __repr__(self) -> str:
        return f"Grouped({self.kernel}, {np.max(self.groups) + 1} groups of {len(self.groups)} columns)"


def _widened(kernel: Any, groups: Index) -> tuple[Any, Index]:
    wide, sizes, start = copy.copy(kernel), free_sizes(kernel), 0
    found: list[Index] = [np.empty(0, dtype=np.intp)]
    for name in names_of(kernel.__class__) or ():
        value = getattr(kernel, name)
        if isinstance(value, Kernel):
            value, places = _widened(value, groups)
        elif np.size(value) == groups.max() + 1 > 1:
            value, places = np.asarray(value)[groups], groups
        else:
            places = np.arange(np.size(value))
        setattr(wide, name, value)
        if name in sizes:
            found.append(start + places)
            start += sizes[name]
    return wide, np.concatenate(found)


# ------------------------------------------------------------------------------------------- columns


class Columns(Around, formulas=of_inputs):
    """Apply a kernel to chosen columns of X.

    Parameters
    ----------
    kernel : Kernel
        The inner kernel; its hyperparameters are those of this kernel.
    columns : int, str, slice, or sequence of int, of bool or of str
        The columns: one index or name, several, a slice, or a mask with one entry per column. Names
        must be converted to indices by ``bind_columns`` before the kernel is called.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF, Columns, Matern
    >>> kernel = Columns(RBF(2.0), [0, 2]) * Columns(Matern(), 1)
    >>> kernel(np.eye(3)).round(3)
    array([[1.   , 0.427, 0.779],
           [0.427, 1.   , 0.427],
           [0.779, 0.427, 1.   ]])
    """

    def __init__(self, kernel: Kernel, columns: Any) -> None:
        self.kernel = kernel
        self.columns = columns

    def inputs(self, X: Array) -> Array:
        """Return the chosen columns."""
        return X[:, positions(self.columns, X.shape[1])]

    def __repr__(self) -> str:
        columns = self.columns.tolist() if isinstance(self.columns, np.ndarray) else self.columns
        return f"Columns({self.kernel}, {columns!r})"


def bind_columns(kernel: Kernel, feature_names: Sequence[str]) -> Kernel:
    """Return a clone of ``kernel`` in which every ``Columns`` that names columns has their indices.

    Parameters
    ----------
    kernel : Kernel
        Any kernel, with ``Columns`` anywhere in it. Inside a ``Columns``, names refer to its columns.
    feature_names : sequence of str
        Names of the columns of X, in order. A name that occurs more than once stands for all columns of that name.

    Examples
    --------
    >>> from gpclass.kernels import RBF, Columns, bind_columns
    >>> bind_columns(2.0 * Columns(RBF(), ["height", "age"]), ["age", "weight", "height"])
    1.41**2 * Columns(RBF(length_scale=1), [2, 0])
    """
    if isinstance(kernel, Columns):
        names = list(feature_names)
        columns = _by_name(kernel.columns, names) if _is_named(kernel.columns) else kernel.columns
        inner = bind_columns(kernel.kernel, [names[i] for i in positions(columns, len(names))])
        return clone(kernel).set_params(kernel=inner, columns=columns)
    if isinstance(kernel, CompoundKernel):
        return type(kernel)([bind_columns(part, feature_names) for part in kernel.kernels])
    params = kernel.get_params(deep=False).items()
    inside = {name: bind_columns(part, feature_names) for name, part in params if isinstance(part, Kernel)}
    return clone(kernel).set_params(**inside)


def _is_named(columns: Any) -> bool:
    return not isinstance(columns, slice) and any(isinstance(c, str) for c in np.ravel(np.asarray(columns)))


def _by_name(columns: Any, names: list[str]) -> list[int]:
    wanted = [columns] if isinstance(columns, str) else list(columns)
    missing = [name for name in wanted if name not in names]
    if missing:
        known = ", ".join(map(repr, dict.fromkeys(names)))
        raise ValueError(f"Columns names {missing[0]!r}, which is not among the columns of X: {known}.")
    return [i for name in wanted for i, known in enumerate(names) if known == name]


def positions(columns: Any, n_columns: int) -> Index:
    """Return the positions of the chosen columns in an array that has ``n_columns`` of them."""
    if _is_named(columns):
        raise ValueError(
            f"Columns has names ({columns!r}) but X has none: convert them to indices with "
            "gpclass.kernels.bind_columns(kernel, feature_names)."
        )
    try:
        chosen = columns if isinstance(columns, slice) else np.asarray(columns)
        return np.atleast_1d(np.arange(n_columns)[chosen])
    except IndexError as error:
        raise ValueError(
            f"Columns({columns!r}) is not possible for X with {n_columns} columns: {error}."
        ) from error
