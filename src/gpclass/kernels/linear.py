"""Dot products, and the metrics of ``sklearn.metrics.pairwise``."""

from __future__ import annotations

import numpy as np
from scipy.special import entr
from sklearn.gaussian_process.kernels import DotProduct, Kernel, PairwiseKernel

from gpclass.core.protocols import Array, Inputs
from gpclass.kernels.formulas import Expression, Formulas, by_differences, register
from gpclass.kernels.parameters import is_metric, is_metric_options, is_not_negative
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
