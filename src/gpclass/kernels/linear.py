"""Dot products, and the metrics of ``sklearn.metrics.pairwise``."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import DotProduct, Kernel, PairwiseKernel
from sklearn.metrics.pairwise import additive_chi2_kernel

from gpclass.core.protocols import Array
from gpclass.kernels import fallback
from gpclass.kernels.dispatch import diagonal, fill, is_free, pull, pull_diagonal, pull_inputs
from gpclass.kernels.distances import squared_norms

# ------------------------------------------------------------------------ dot product


@fill.register(DotProduct)
def _(kernel: Kernel, X: Array, Z: Array, out: Array) -> None:
    np.matmul(X.astype(out.dtype, copy=False), Z.astype(out.dtype, copy=False).T, out=out)
    out += out.dtype.type(kernel.sigma_0**2)


@diagonal.register(DotProduct)
def _(kernel: Kernel, X: Array) -> Array:
    return squared_norms(X) + X.dtype.type(kernel.sigma_0**2)


@pull.register(DotProduct)
def _(kernel: Kernel, X: Array, Z: Array, G: Array, K: Array | None, scale: float) -> Array:
    return _bias_gradient(kernel, scale * G.sum(dtype=float))


@pull_diagonal.register(DotProduct)
def _(kernel: Kernel, X: Array, g: Array) -> Array:
    return _bias_gradient(kernel, g.sum(dtype=float))


def _bias_gradient(kernel: Kernel, total: float) -> Array:
    return np.array([2.0 * kernel.sigma_0**2 * total] if is_free(kernel, "sigma_0") else [], dtype=float)


@pull_inputs.register(DotProduct)
def _(kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
    return np.asarray(np.matmul(G, Z, dtype=float))


# ------------------------------------------------------------------- pairwise metrics

_WITHOUT_GAMMA = {"linear", "cosine", "additive_chi2"}
_OF_A_DISTANCE = {"rbf", "laplacian", "chi2"}  # exp(-gamma · distance)
_OF_A_PRODUCT = {"poly", "polynomial", "sigmoid"}


def _options(kernel: Kernel) -> tuple[float, float]:
    """Return degree and coef0, with the defaults of scikit-learn."""
    options: dict[str, Any] = kernel.pairwise_kernels_kwargs or {}
    return options.get("degree", 3), options.get("coef0", 1)


def _distances(metric: str, X: Array, Z: Array) -> Array:
    if metric == "chi2":
        return np.asarray(-additive_chi2_kernel(X, Z))
    return np.asarray(cdist(X, Z, "sqeuclidean" if metric == "rbf" else "cityblock"))


def _of_product(kernel: Kernel, product: Array) -> tuple[Array, Array]:
    """Return k and ∂k/∂log gamma as functions of gamma x·z."""
    degree, coef0 = _options(kernel)
    if kernel.metric == "sigmoid":
        K = np.tanh(product + coef0)
        return K, product * (1.0 - K * K)
    return (product + coef0) ** degree, degree * product * (product + coef0) ** (degree - 1)


def _metric(kernel: Kernel) -> str:
    return kernel.metric if isinstance(kernel.metric, str) else ""


fill.register(PairwiseKernel)(fallback.fill)


@diagonal.register(PairwiseKernel)
def _(kernel: Kernel, X: Array) -> Array:
    metric = _metric(kernel)
    if metric in _OF_A_DISTANCE:
        return np.ones(len(X), dtype=X.dtype)
    if metric == "linear":
        return squared_norms(X)
    if metric in _OF_A_PRODUCT:
        return _of_product(kernel, kernel.gamma * squared_norms(X))[0].astype(X.dtype, copy=False)
    return np.asarray(kernel.diag(X), dtype=X.dtype)


@pull.register(PairwiseKernel)
def _(kernel: Kernel, X: Array, Z: Array, G: Array, K: Array | None, scale: float) -> Array:
    if not is_free(kernel, "gamma"):
        return np.empty(0)
    metric = _metric(kernel)
    if metric in _WITHOUT_GAMMA:
        return np.zeros(1)
    if metric in _OF_A_DISTANCE:
        exponent = -kernel.gamma * _distances(metric, X, Z)
        return np.array([scale * np.sum(G * np.exp(exponent) * exponent)])
    if metric in _OF_A_PRODUCT:
        product = np.asarray(X, dtype=float) @ np.asarray(Z, dtype=float).T
        return np.array([scale * np.sum(G * _of_product(kernel, kernel.gamma * product)[1])])
    return scale * fallback.pull_by_differences(kernel, X, Z, G)


@pull_diagonal.register(PairwiseKernel)
def _(kernel: Kernel, X: Array, g: Array) -> Array:
    if not is_free(kernel, "gamma"):
        return np.empty(0)
    metric = _metric(kernel)
    if metric in _WITHOUT_GAMMA | _OF_A_DISTANCE:
        return np.zeros(1)
    if metric in _OF_A_PRODUCT:
        product = kernel.gamma * squared_norms(np.asarray(X, dtype=float))
        return np.array([g @ _of_product(kernel, product)[1]])
    return fallback.pull_diagonal_by_differences(kernel, X, g)
