"""Linear functions, dot products, and the metrics of ``sklearn.metrics.pairwise``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import DotProduct, Kernel, PairwiseKernel

from gpclass.core.linalg import matmul
from gpclass.core.protocols import Array
from gpclass.kernels.base import FormulaKernel
from gpclass.kernels.formulas import Formulas, register, tiles
from gpclass.kernels.metric import PerColumn, per_column, rows_in, squared_norms
from gpclass.kernels.profiles import InnerProduct, Profile
from gpclass.kernels.theta import is_free


def _biased(kernel: Kernel) -> Profile:
    variance = float(kernel.sigma_0) ** 2

    def value(S: Any) -> Any:
        S += variance
        return S

    def by_bias(S: Array) -> Array:
        return np.full_like(S, 2.0 * variance)

    return Profile(value, np.ones_like, others={"sigma_0": by_bias})


class _Linear(Formulas):
    # With u = (x - centre) / length_scale, k = u·v and ∂k/∂log length_scale_d = -2 u_d v_d.

    def _scale(self, kernel: Kernel, X: Array) -> PerColumn:
        return per_column(kernel, "length_scale", X.shape[1])

    def _rows(self, kernel: Kernel, X: Array) -> Array:
        centre = per_column(kernel, "centre", X.shape[1]).values
        return np.asarray((X - centre) / self._scale(kernel, X).values, dtype=float)

    def fill(self, kernel: Kernel, X: Array, Z: Array, out: Array) -> None:
        U, V = (rows_in(self._rows(kernel, rows), out.dtype) for rows in (X, Z))
        np.matmul(U, V.T, out=out)

    def diagonal(self, kernel: Kernel, X: Array) -> Array:
        return squared_norms(self._rows(kernel, X)).astype(X.dtype, copy=False)

    def slopes(self, kernel: Kernel, X: Array, Z: Array) -> Iterator[Array]:
        if is_free(kernel, "length_scale"):
            products = -2.0 * self._rows(kernel, X)[:, None] * self._rows(kernel, Z)
            yield from np.moveaxis(self._scale(kernel, X).collect(products), -1, 0)

    def pull(self, kernel: Kernel, X: Array, Z: Array, G: Array, K: Array | None, scale: float) -> Array:
        if not is_free(kernel, "length_scale"):
            return np.empty(0)
        U, V = self._rows(kernel, X), self._rows(kernel, Z)
        products = np.einsum("id,id->d", U, matmul(G.astype(float), V))
        return -2.0 * scale * self._scale(kernel, X).collect(products)

    def pull_diagonal(self, kernel: Kernel, X: Array, g: Array) -> Array:
        if not is_free(kernel, "length_scale"):
            return np.empty(0)
        return -2.0 * self._scale(kernel, X).collect(g @ self._rows(kernel, X) ** 2)

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        return np.asarray(np.matmul(G, self._rows(kernel, Z), dtype=float) / self._scale(kernel, X).values)


class Linear(FormulaKernel, formulas=_Linear()):
    r"""Covariance of linear functions of the columns, each column centred and in units of its own.

    .. math:: k(x, z) = \sum_d \frac{(x_d - c_d)(z_d - c_d)}{l_d^2}

    belongs to :math:`\sum_d w_d (x_d - c_d) / l_d` with independent standard normal weights. Unlike scikit-learn's
    ``DotProduct`` it does not depend on where the columns have their zero, and a column in small units counts as
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


class _Pairwise(Formulas):
    """The matrix of scikit-learn, with central differences."""

    def diagonal(self, kernel: Kernel, X: Array) -> Array:
        if not isinstance(kernel.metric, str):
            return super().diagonal(kernel, X)
        # kernel.diag evaluates one row at a time.
        blocks = [np.diagonal(kernel(X[rows])) for rows in tiles(len(X), 64)]
        return np.concatenate([np.empty(0), *blocks]).astype(X.dtype)


register(DotProduct, InnerProduct(_biased))
register(PairwiseKernel, _Pairwise())
