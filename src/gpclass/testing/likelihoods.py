"""The check of likelihoods, against differences and quadrature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from gpclass.core.protocols import Array
from gpclass.testing.differences import central_difference, close

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
    truths = _slope(lambda x: np.stack(likelihood.derivatives(y, x)), f)
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


def _slope(function: Callable[[Array], Any], f: Array) -> Array:
    """Return the derivative of an elementwise function."""
    return central_difference(lambda step: function(f + step[0]), np.zeros(1), 1e-3)[..., 0]


def _average(function: Callable[[Any, Array], Array], mean: Array, var: Array) -> Array:
    """Average function(index of the data point, f) over N(mean, var) by the trapezoidal rule on a fine grid."""
    z = np.linspace(-12.0, 12.0, 6001)
    w = np.exp(-0.5 * z * z)
    rows = [w @ function(i, m + s * z) for i, (m, s) in enumerate(zip(mean, np.sqrt(var), strict=True))]
    return np.asarray(rows / w.sum())
