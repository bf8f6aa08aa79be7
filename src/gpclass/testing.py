"""Conformance checks for new kernels and likelihoods.

Each check compares an object with independent results (differences, quadrature) and raises AssertionError with the
name of the quantity that differs.

Examples
--------
>>> import numpy as np
>>> from gpclass.kernels import RBF
>>> from gpclass.testing import check_kernel
>>> check_kernel(2.0 * RBF([0.5, 3.0]), np.random.default_rng(0).normal(size=(6, 2)))
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from gpclass.core.protocols import Array, Inputs
from gpclass.kernels import diag, matrix, pullback, pullback_diag

__all__ = ["central_difference", "check_kernel", "check_likelihood"]


def central_difference(function: Callable[[Array], Any], x: Array, step: float = 1e-4) -> Array:
    """Return d function / d x by central differences of fourth order, derivative index last.

    Parameters
    ----------
    function : callable
    x : ndarray
    """
    x = np.asarray(x, dtype=float)
    parts = []
    for e in np.eye(len(x)) * step:
        near = np.asarray(function(x + e)) - np.asarray(function(x - e))
        far = np.asarray(function(x + 2 * e)) - np.asarray(function(x - 2 * e))
        parts.append((8.0 * near - far) / (12.0 * step))
    return np.stack(parts, axis=-1) if parts else np.zeros(0)


def close(got: Any, truth: Any, rtol: float, what: str) -> None:
    """Assert equality with a tolerance relative to the largest true value, the accuracy of differences."""
    scale = max(float(np.max(np.abs(truth), initial=0.0)), 1e-4)
    assert_allclose(got, truth, rtol=0.0, atol=rtol * scale, err_msg=what)


# ---------------------------------------------------------------------------- kernels


def check_kernel(kernel: Any, X: Inputs, Z: Inputs | None = None, *, rtol: float = 1e-6) -> None:
    """Check matrix, diagonal and derivatives of a kernel, and that it behaves as a kernel of scikit-learn.

    Parameters
    ----------
    kernel : kernel
    X, Z : ndarray of shape (n, d) and (m, d), or sequences of objects
        Inputs; Z is X in the reverse order if it is not given.
    rtol : float, default=1e-6
        Relative tolerance of derivatives.
    """
    Z = X[::-1] if Z is None else Z
    rng = np.random.default_rng(0)
    K = matrix(kernel, X)
    assert_allclose(K, kernel(X), rtol=1e-9, atol=1e-12, err_msg="matrix(X) is not kernel(X)")
    assert_allclose(K, K.T, rtol=0, atol=1e-14 * np.abs(K).max(), err_msg="matrix(X) is not symmetric")
    assert_array_equal(K.diagonal(), diag(kernel, X), err_msg="diag(X) is not the diagonal of matrix(X)")
    assert_allclose(matrix(kernel, X, Z), kernel(X, Z), rtol=1e-9, atol=1e-12, err_msg="matrix(X, Z)")
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] > -1e-10 * eigenvalues[-1], f"matrix(X) has the eigenvalue {eigenvalues[0]}"
    for other in (clone(kernel), pickle.loads(pickle.dumps(kernel)), kernel.clone_with_theta(kernel.theta)):
        assert_allclose(matrix(other, X), K, rtol=1e-12, err_msg="a copy of the kernel differs")
    for other, name in ((None, "pullback(X, None)"), (Z, "pullback(X, Z)")):
        G = rng.normal(size=(len(X), len(X if other is None else other)))
        truth = _slope(kernel, partial(_product, G, X, other))
        for known in (None, matrix(kernel, X, other)):
            close(pullback(kernel, X, other, G, K=known), truth, rtol, name)
    g = rng.normal(size=len(X))
    close(pullback_diag(kernel, X, g), _slope(kernel, lambda k: g @ diag(k, X)), rtol, "pullback_diag")


def _product(G: Array, X: Inputs, Z: Inputs | None, kernel: Any) -> Any:
    return np.vdot(G, matrix(kernel, X, Z))


def _slope(kernel: Any, function: Callable[[Any], Any]) -> Array:
    """Return the derivative of a function of the kernel with respect to theta."""
    return central_difference(lambda t: function(kernel.clone_with_theta(t)), kernel.theta)


# ------------------------------------------------------------------------ likelihoods

BINARY = np.array([-1.0, 1.0])


def check_likelihood(likelihood: Any, y: Array = BINARY, *, rtol: float = 1e-7) -> None:
    """Check a likelihood at moderate latent values.

    Parameters
    ----------
    likelihood : BinaryLikelihood or ClassLikelihood
        The link may be asymmetric, and log p(y|f) need not be concave.
    y : ndarray of shape (n,) or (n, n_classes)
        Labels; rows of label weights for likelihoods with one latent value per class.
    rtol : float, default=1e-7
        Relative tolerance.
    """
    y, theta = np.asarray(y, dtype=float), np.asarray(likelihood.theta)
    low, high = np.reshape(likelihood.bounds, (len(theta), 2)).T
    assert ((low <= theta) & (theta <= high)).all(), "theta is not between its bounds"
    assert_allclose(likelihood.with_theta(theta + 0.01).theta, theta + 0.01, err_msg="with_theta")
    if y.ndim == 2:
        _check_classes(likelihood, y, rtol)
    else:
        y = np.repeat(y, 7)
        f = np.resize(np.linspace(-4.0, 4.0, 7), len(y))
        var = np.resize([0.01, 0.5, 3.0, 40.0, 1.0], len(y))
        assert likelihood.n_latents(2) == 1, "labels in one dimension are for one latent value"
        check_terms(likelihood, y, f, var, rtol=rtol)
        _check_link(likelihood, f, var, rtol)


def check_terms(likelihood: Any, y: Array, f: Array, var: Array, *, rtol: float = 1e-7) -> None:
    """Check derivatives, averages and tilted moments of log p(y|f) against differences and quadrature."""
    value, *slopes = likelihood.derivatives(y, f)
    assert_allclose(value, likelihood.log_prob(y, f), rtol=1e-12)
    slopes.append(likelihood.third(y, f, np.ones_like(f)))
    truths = _elementwise_slope(lambda x: np.stack(likelihood.derivatives(y, x)), f)
    for order, (got, truth) in enumerate(zip(slopes, truths, strict=True), start=1):
        close(got, truth, rtol, f"derivative {order} of log p(y|f)")

    expected = likelihood.expected(y, f, var)
    truth = _average(lambda i, x: np.stack(likelihood.derivatives(np.full_like(x, y[i]), x), axis=-1), f, var)
    for k, name in enumerate(("value", "slope", "curvature")):
        close(getattr(expected, name), truth[:, k], rtol, f"{name} of expected")

    def moments_at(i: Any, x: Array) -> Array:
        p = np.exp(likelihood.log_prob(np.full_like(x, y[i]), x))
        return np.stack([p, p * x, p * x**2], axis=-1)

    tilted, moments = likelihood.tilted(y, f, var), _average(moments_at, f, var)
    mean, square = (moments[:, 1:] / moments[:, :1]).T
    close(np.exp(tilted.log_mass), moments[:, 0], rtol, "tilted mass")
    close(f + var * tilted.slope, mean, rtol, "tilted mean")
    close(var * tilted.shrink, square - mean**2, 100 * rtol, "tilted variance")
    close(1.0 - var * tilted.curvature, tilted.shrink, rtol, "curvature and shrink disagree")


def _check_link(likelihood: Any, f: Array, var: Array, rtol: float) -> None:
    log_p, link = likelihood.log_classes(f), likelihood.link(f)
    assert_allclose(np.exp(log_p).sum(axis=1), 1.0, rtol=1e-12, err_msg="probabilities do not sum to one")
    close(link, np.exp(log_p[:, 1]), 1e-12, "link is not p(y=+1|f)")
    if likelihood.symmetric:
        close(likelihood.link(-f), 1.0 - link, 1e-12, "link(-f) is not 1 - link(f)")
    truth = _average(lambda _, x: np.exp(likelihood.log_classes(x)), f, var)
    close(np.exp(likelihood.log_predict(f, var)), truth, rtol, "log_predict")


def _check_classes(likelihood: Any, Y: Array, rtol: float) -> None:
    """Check a likelihood with one latent value per class, at rows of label weights."""
    n, C = Y.shape
    assert likelihood.n_latents(C) == C, "rows of label weights are for one latent value per class"
    f = 1.5 * np.random.default_rng(0).normal(size=(n, C))
    log_p = likelihood.log_classes(f)
    assert_allclose(np.exp(log_p).sum(axis=1), 1.0, atol=1e-9, err_msg="probabilities do not sum to one")
    value, slope, _ = likelihood.derivatives(Y, f)
    close(value, (Y * log_p).sum(axis=1), rtol, "log p(y|f) is not Σ Y log p(class|f)")
    steps = central_difference(lambda step: likelihood.log_prob(Y, f + step), np.zeros(C), 1e-3)
    close(slope, steps, max(rtol, 1e-6), "derivatives: l'")
    z, w = np.polynomial.hermite_e.hermegauss(24)
    root = np.linspace(-1.0, 1.5, C)  # a covariance of rank one
    average = np.tensordot(w / w.sum(), [np.exp(likelihood.log_classes(f + root * x)) for x in z], axes=1)
    cov = np.broadcast_to(np.outer(root, root), (n, C, C))
    close(np.exp(likelihood.log_predict(f, cov)), average, 2e-3, "log_predict")


def _elementwise_slope(function: Callable[[Array], Any], f: Array) -> Array:
    """Return the derivative of an elementwise function."""
    return central_difference(lambda step: function(f + step[0]), np.zeros(1), 1e-3)[..., 0]


def _average(function: Callable[[Any, Array], Array], mean: Array, var: Array) -> Array:
    """Average function(index of the data point, f) over N(mean, var) by the trapezoidal rule on a fine grid."""
    z = np.linspace(-12.0, 12.0, 6001)
    w = np.exp(-0.5 * z * z)
    rows = [w @ function(i, m + s * z) for i, (m, s) in enumerate(zip(mean, np.sqrt(var), strict=True))]
    return np.asarray(rows / w.sum())
