"""Dot products, and the metrics of ``sklearn.metrics.pairwise``."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import DotProduct, Kernel, PairwiseKernel
from sklearn.metrics.pairwise import additive_chi2_kernel

from gpclass.core.protocols import Array, Inputs
from gpclass.kernels.formulas import (
    Expression,
    Formulas,
    is_free,
    pull_by_differences,
    pull_diagonal_by_differences,
    register,
)
from gpclass.kernels.parameters import is_metric, is_metric_options, is_not_negative
from gpclass.kernels.profiles import InnerProduct, Profile


def _biased(kernel: Kernel) -> Profile:
    variance = float(kernel.sigma_0) ** 2

    def value(S: Expression) -> Expression:
        S += variance
        return S

    return Profile(value, 1.0, others={"sigma_0": 2.0 * variance})


# ------------------------------------------------------------------- pairwise metrics


def _options(kernel: Kernel) -> tuple[float, float]:
    """Return degree and coef0, with the defaults of scikit-learn."""
    options = kernel.pairwise_kernels_kwargs or {}
    return options.get("degree", 3), options.get("coef0", 1)


def _identity(kernel: Kernel) -> Profile:
    return Profile(lambda S: S, 1.0, others={"gamma": 0.0})


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


class _ByItself(Formulas):
    """Another metric, which may be a function: scikit-learn's matrix and central differences."""

    def pull(self, kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
        if kernel.metric in ("cosine", "additive_chi2"):  # gamma has no effect
            return np.zeros(kernel.n_dims)
        return scale * pull_by_differences(kernel, X, Z, G)

    def pull_diagonal(self, kernel: Kernel, X: Inputs, g: Array) -> Array:
        if kernel.metric in ("cosine", "additive_chi2"):
            return np.zeros(kernel.n_dims)
        return pull_diagonal_by_differences(kernel, X, g)


class _OfDistance(Formulas):
    """exp(-gamma · distance)."""

    def diagonal(self, kernel: Kernel, X: Inputs) -> Array:
        return np.ones(len(X), dtype=X.dtype)

    def pull(self, kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
        if not is_free(kernel, "gamma"):
            return np.empty(0)
        if kernel.metric == "chi2":
            exponent = kernel.gamma * additive_chi2_kernel(X, Z)
        else:
            metric = "sqeuclidean" if kernel.metric == "rbf" else "cityblock"
            exponent = -kernel.gamma * cdist(X, Z, metric)
        return np.array([scale * np.sum(G * np.exp(exponent) * exponent)])

    def pull_diagonal(self, kernel: Kernel, X: Inputs, g: Array) -> Array:
        return np.zeros(kernel.n_dims)


_POLYNOMIAL, _OF_DISTANCE, _BY_ITSELF = InnerProduct(_polynomial, scale="gamma"), _OfDistance(), _ByItself()
_METRICS: dict[str, Formulas] = {
    "linear": InnerProduct(_identity),
    "poly": _POLYNOMIAL,
    "polynomial": _POLYNOMIAL,
    "sigmoid": InnerProduct(_sigmoid, scale="gamma"),
    "rbf": _OF_DISTANCE,
    "laplacian": _OF_DISTANCE,
    "chi2": _OF_DISTANCE,
}


class _Pairwise(Formulas):
    def chosen(self, kernel: Kernel) -> Formulas:
        metric = kernel.metric
        return _METRICS.get(metric, _BY_ITSELF) if isinstance(metric, str) else _BY_ITSELF


register(DotProduct, InnerProduct(_biased), {"sigma_0": is_not_negative})
register(
    PairwiseKernel,
    _Pairwise(),
    {"gamma": is_not_negative, "metric": is_metric, "pairwise_kernels_kwargs": is_metric_options},
)
