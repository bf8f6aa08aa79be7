"""Linear functions, dot products, and the metrics of ``sklearn.metrics.pairwise``."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import DotProduct, PairwiseKernel

from gpclass.core.linalg import drop_tiny, matmul, matmul_transposed
from gpclass.core.protocols import Array
from gpclass.kernels.base import Covariances, FormulaKernel, by_differences, free_sizes, register
from gpclass.kernels.stationary import collect, per_column


def _products(U: Array, V: Array | None, dtype: Any) -> Array:
    """Return u_i · v_j, or |u_i|² if V is None."""
    if V is None:
        return np.vecdot(U, U).astype(dtype, copy=False)
    return matmul_transposed(*(drop_tiny(rows.astype(dtype)) for rows in (U, V)))


def _dot_product(kernel: Any, X: Array, Z: Array | None, dtype: Any) -> Covariances:
    variance = float(kernel.sigma_0) ** 2

    def pull(G: Array, K: Array | None) -> Array:
        return np.array([2.0 * variance * G.sum(dtype=float)] if free_sizes(kernel) else [])

    return Covariances(lambda: _products(X, Z, dtype) + variance, pull)


def _linear(kernel: Any, X: Array, Z: Array | None, dtype: Any) -> Covariances:
    scale, centre = (per_column(kernel, name, X.shape[1]) for name in ("length_scale", "centre"))
    U = np.subtract(X, centre, dtype=float) / scale
    V = None if Z is None else np.subtract(Z, centre, dtype=float) / scale

    def pull(G: Array, K: Array | None) -> Array:
        if not free_sizes(kernel):
            return np.empty(0)
        G = np.array(G, dtype=float)
        sums = G[:, None] * U if V is None else matmul(G, V)
        return -2.0 * collect(scale, np.einsum("id,id->d", U, sums))

    return Covariances(lambda: _products(U, V, dtype), pull)


class Linear(FormulaKernel, formulas=_linear):
    r"""Covariance of linear functions of the columns, each centred and divided by its length scale.

    .. math:: k(x, z) = \sum_d \frac{(x_d - c_d)(z_d - c_d)}{l_d^2}

    belongs to :math:`\sum_d w_d (x_d - c_d) / l_d` with independent standard normal weights. Unlike scikit-learn's
    ``DotProduct`` it does not depend on the origin of the columns, and a column in small units counts as
    much as one in large units if the length scales say so.

    Parameters
    ----------
    length_scale : float or array of shape (n_features,), default=1.0
        The change of each column over which a function changes by about one.
    centre : float or array of shape (n_features,), default=0.0
        Where the functions are zero.
    length_scale_bounds : pair of floats >= 0 or "fixed", default=(1e-5, 1e5)
        Bounds for learning, or "fixed".

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import Linear
    >>> Linear(length_scale=2.0, centre=1.0)(np.array([[1.0], [3.0], [5.0]]))
    array([[0., 0., 0.],
           [0., 1., 2.],
           [0., 2., 4.]])
    """

    def __init__(
        self, length_scale: ArrayLike = 1.0, centre: ArrayLike = 0.0, length_scale_bounds: Any = (1e-5, 1e5)
    ) -> None:
        self.length_scale = length_scale
        self.centre = centre
        self.length_scale_bounds = length_scale_bounds


def _pairwise_diag(kernel: Any, X: Array) -> Array:
    """Return k(x_i, x_i) from small matrices, because ``kernel.diag`` is slow: it takes one row at a time."""
    if not isinstance(kernel.metric, str):
        return np.asarray(kernel.diag(X))
    blocks = [np.diagonal(kernel(X[start : start + 64])) for start in range(0, len(X), 64)]
    return np.concatenate([np.empty(0), *blocks])


register(DotProduct, _dot_product)
register(PairwiseKernel, partial(by_differences, diag=_pairwise_diag))
