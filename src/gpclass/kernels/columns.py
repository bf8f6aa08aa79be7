"""A kernel that uses only some of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel

from gpclass.core.protocols import Array, Index
from gpclass.kernels.inputs import Around, of_inputs


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
