"""A kernel that uses only some of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import CompoundKernel, Exponentiation, Kernel

from gpclass.core.protocols import Array, Index
from gpclass.kernels.covariances import Covariances, covariances, register


class Columns(Kernel):
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

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with those of the inner kernel as ``kernel__...`` if ``deep``."""
        params = {"kernel": self.kernel, "columns": self.columns}
        if deep:
            params.update(("kernel__" + name, value) for name, value in self.kernel.get_params().items())
        return params

    # As for a power of a kernel, the hyperparameters are those of the inner kernel.
    hyperparameters, theta, bounds = (
        Exponentiation.hyperparameters,
        Exponentiation.theta,
        Exponentiation.bounds,
    )
    is_stationary = Exponentiation.is_stationary

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Columns)
            and bool(self.kernel == other.kernel)
            and np.array_equal(_comparable(self.columns), _comparable(other.columns))
        )

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return the inner kernel of the chosen columns, and its gradient if requested."""
        Y = None if Y is None else _select(self, np.atleast_2d(Y))
        return self.kernel(_select(self, np.atleast_2d(X)), Y, eval_gradient=eval_gradient)

    def diag(self, X: Any) -> Array:
        """Return k(x_i, x_i)."""
        return np.asarray(self.kernel.diag(_select(self, np.atleast_2d(X))))

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
        raise ValueError(f"Columns names {missing[0]!r}, which is not among the columns of X: {names}.")
    return [i for name in wanted for i, known in enumerate(names) if known == name]


def positions(columns: Any, n_columns: int) -> Index:
    """Return the positions of the chosen columns in an array that has ``n_columns`` of them."""
    if isinstance(columns, slice):
        return np.arange(n_columns)[columns]
    if _is_named(columns):
        raise ValueError(
            f"Columns has names ({columns!r}) but X has none: convert them to indices with "
            "gpclass.kernels.bind_columns(kernel, feature_names)."
        )
    index = np.atleast_1d(np.asarray(columns))
    if index.dtype == bool and index.shape != (n_columns,):
        raise ValueError(f"the mask of Columns has {index.size} entries but X has {n_columns} columns.")
    if index.dtype.kind not in "biu" or index.ndim != 1 or not index.size:
        raise ValueError(f"columns is {columns!r}, expected indices, a mask, a slice or names of columns.")
    if index.dtype != bool and (index.min() < -n_columns or index.max() >= n_columns):
        raise ValueError(f"Columns asks for columns {index.tolist()} but X has only {n_columns}.")
    positions: Index = np.arange(n_columns)[index]
    return positions


def _select(kernel: Kernel, X: Array) -> Array:
    return X[:, positions(kernel.columns, X.shape[1])]


def _comparable(columns: Any) -> Any:
    return np.asarray(str(columns) if isinstance(columns, slice) else columns)


def _columns(kernel: Any, X: Array, Z: Array | None, dtype: Any) -> Covariances:
    inner = covariances(kernel.kernel, _select(kernel, X), None if Z is None else _select(kernel, Z), dtype)

    def pull_inputs(G: Array) -> Array:
        result = np.zeros(X.shape)
        # A column that is chosen twice counts twice.
        np.add.at(result.T, positions(kernel.columns, X.shape[1]), inner.pull_inputs(G).T)
        return result

    return Covariances(inner.values, inner.pull, pull_inputs)


register(Columns, _columns)
