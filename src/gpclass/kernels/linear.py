"""Linear functions, dot products, and the metrics of ``sklearn.metrics.pairwise``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr
from sklearn.gaussian_process.kernels import DotProduct, Kernel, PairwiseKernel

from gpclass.core.linalg import matmul
from gpclass.core.protocols import Array, Inputs
from gpclass.kernels.base import FormulaKernel
from gpclass.kernels.distances import by_column, rows_in, squared_norms
from gpclass.kernels.formulas import Expression, Formulas, by_differences, is_free, register
from gpclass.kernels.parameters import are_numbers, is_metric, is_metric_options, is_not_negative
from gpclass.kernels.profiles import InnerProduct, Profile


def _biased(kernel: Kernel) -> Profile:
    variance = float(kernel.sigma_0) ** 2

    def value(S: Expression) -> Expression:
        S += variance
        return S

    return Profile(value, 1.0, others={"sigma_0": 2.0 * variance})


def _identity(kernel: Kernel) -> Profile:
    return Profile(lambda S: S, 1.0, others={"gamma": 0.0})


def _options(kernel: Kernel) -> tuple[float, float]:
    """Return degree and coef0, with the defaults of scikit-learn."""
    options = kernel.pairwise_kernels_kwargs or {}
    return options.get("degree", 3), options.get("coef0", 1)


def _polynomial(kernel: Kernel) -> Profile:
    degree, coef0 = _options(kernel)
    return Profile(
        lambda S: (S + coef0) ** degree,
        lambda S: degree * (S + coef0) ** (degree - 1),
        factor=float(kernel.gamma),
    )


def _sigmoid(kernel: Kernel) -> Profile:
    _, coef0 = _options(kernel)
    return Profile(
        lambda S: np.tanh(S + coef0), lambda S: 1.0 - np.tanh(S + coef0) ** 2, factor=float(kernel.gamma)
    )


class _Scaled(Formulas):
    # With u = (x - centre) / length_scale, k = u·v and ∂k/∂log length_scale_d = -2 u_d v_d.

    def _rows(self, kernel: Kernel, X: Array) -> Array:
        scale = by_column(kernel, "length_scale", X.shape[1])
        return np.asarray((X - by_column(kernel, "centre", X.shape[1])) / scale, dtype=float)

    def _by_theta(self, kernel: Kernel, by_column: Array) -> Array:
        if not is_free(kernel, "length_scale"):
            return by_column[..., :0]
        one = np.size(kernel.length_scale) == 1
        return by_column.sum(axis=-1, keepdims=True) if one else by_column

    def fill(self, kernel: Kernel, X: Array, Z: Array, out: Array) -> None:
        U, V = (rows_in(self._rows(kernel, rows), out.dtype) for rows in (X, Z))
        np.matmul(U, V.T, out=out)

    def diagonal(self, kernel: Kernel, X: Array) -> Array:
        return squared_norms(self._rows(kernel, X)).astype(X.dtype, copy=False)

    def pull(self, kernel: Kernel, X: Array, Z: Array, G: Array, K: Array | None, scale: float) -> Array:
        if not kernel.n_dims:
            return np.empty(0)
        U, V = self._rows(kernel, X), self._rows(kernel, Z)
        return self._by_theta(kernel, -2.0 * scale * np.einsum("id,id->d", U, matmul(G.astype(float), V)))

    def pull_diagonal(self, kernel: Kernel, X: Array, g: Array) -> Array:
        U = self._rows(kernel, X)
        return self._by_theta(kernel, -2.0 * (g @ (U * U)))

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        scale = by_column(kernel, "length_scale", X.shape[1])
        return np.asarray(np.matmul(G, self._rows(kernel, Z), dtype=float) / scale)

    def gradient(self, kernel: Kernel, X: Array) -> Array:
        U = self._rows(kernel, X)
        return self._by_theta(kernel, -2.0 * U[:, None] * U)

    def express(self, kernel: Kernel, X: Expression, n_columns: int, P: Array | None) -> Expression:
        scale = np.broadcast_to(by_column(kernel, "length_scale", n_columns), n_columns)
        centre = np.broadcast_to(by_column(kernel, "centre", n_columns), n_columns)
        U = (X - centre) * (1.0 / scale)
        return (U * U).sum() if P is None else U @ ((P - centre) / scale).T


class Linear(FormulaKernel, formulas=_Scaled(), checks={"centre": are_numbers}):
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


class _Differences(Formulas):
    """Any metric, which may be a function: scikit-learn's matrix and central differences."""

    def pull(self, kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
        return scale * by_differences(kernel, G, lambda k: k(X, Z))

    def pull_diagonal(self, kernel: Kernel, X: Inputs, g: Array) -> Array:
        return by_differences(kernel, g, lambda k: k.diag(X))


class _WithoutGamma(Formulas):
    """A metric on which gamma has no effect."""

    def pull(self, kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
        return np.zeros(kernel.n_dims)

    def pull_diagonal(self, kernel: Kernel, X: Inputs, g: Array) -> Array:
        return np.zeros(kernel.n_dims)


class _OfDistance(_WithoutGamma):
    """k = exp(-gamma · distance), so that ∂k/∂log gamma = k log k; the diagonal is one."""

    def diagonal(self, kernel: Kernel, X: Inputs) -> Array:
        return np.ones(len(X), dtype=X.dtype)

    def pull(self, kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
        if not kernel.n_dims:
            return np.empty(0)
        K = kernel(np.asarray(X, dtype=float), np.asarray(Z, dtype=float))
        return np.array([-scale * np.sum(G * entr(K))])


_METRICS: dict[str, Formulas] = {
    "linear": InnerProduct(_identity),
    "sigmoid": InnerProduct(_sigmoid, scale="gamma"),
    **dict.fromkeys(("poly", "polynomial"), InnerProduct(_polynomial, scale="gamma")),
    **dict.fromkeys(("rbf", "laplacian", "chi2"), _OfDistance()),
    **dict.fromkeys(("cosine", "additive_chi2"), _WithoutGamma()),
}
_DIFFERENCES = _Differences()


class _Pairwise(Formulas):
    def chosen(self, kernel: Kernel) -> Formulas:
        return _METRICS.get(kernel.metric, _DIFFERENCES)  # a function is a key as well


register(DotProduct, InnerProduct(_biased), {"sigma_0": is_not_negative})
register(
    PairwiseKernel,
    _Pairwise(),
    {"gamma": is_not_negative, "metric": is_metric, "pairwise_kernels_kwargs": is_metric_options},
)
