"""The check of likelihoods, against differences and quadrature."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from gpclass.core.protocols import Array, Likelihood
from gpclass.testing.differences import central_difference, close

BINARY = np.array([-1.0, 1.0])


def check_likelihood(likelihood: Any, y: Array = BINARY, *, rtol: float = 1e-7) -> None:
    """Check a likelihood at moderate latent values.

    Labels ``y`` in one dimension are for likelihoods with one latent value per data point, rows of label weights
    for those with one per class. The link may be asymmetric, and log p(y|f) need not be concave.

    Parameters
    ----------
    likelihood : BinaryLikelihood or ClassLikelihood
    y : ndarray of shape (n,) or (n, n_classes)
        Labels.
    rtol : float, default=1e-7
        Relative tolerance.
    """
    y = np.asarray(y, dtype=float)
    check_parameters(likelihood)
    if y.ndim == 2:
        return _check_classes(likelihood, y, rtol)
    y = np.repeat(y, 7)
    f = np.resize(np.linspace(-4.0, 4.0, 7), len(y))
    var = np.resize([0.01, 0.5, 3.0, 40.0, 1.0], len(y))
    assert likelihood.n_latents(2) == 1, "labels in one dimension are for one latent value"
    check_terms(likelihood, y, f, var, rtol=rtol)
    _check_link(likelihood, f, var, rtol)
    return None


def check_terms(likelihood: Any, y: Array, f: Array, var: Array, *, rtol: float = 1e-7) -> None:
    """Check derivatives, averages and tilted moments of log p(y|f) against differences and quadrature."""
    value, *slopes = likelihood.derivatives(y, f)
    assert_allclose(value, likelihood.log_prob(y, f), rtol=1e-12)
    slopes.append(likelihood.third(y, f, np.ones_like(f)))
    truths = _slope(lambda x: np.stack(likelihood.derivatives(y, x)), f)
    for order, (got, truth) in enumerate(zip(slopes, truths, strict=True), start=1):
        close(got, truth, rtol, f"derivative {order} of log p(y|f)")
    close(likelihood.third(y, f, 2.0 * np.ones_like(f)), 2.0 * slopes[2], 1e-12, "third is not linear in var")

    expected = likelihood.expected(y, f, var)
    truth = _average(lambda i, x: np.stack(likelihood.derivatives(np.full_like(x, y[i]), x), axis=-1), f, var)
    got = np.stack([expected.value, expected.slope, expected.curvature], axis=-1)
    for k, name in enumerate(("E[l]", "E[l']", "E[l'']")):
        close(got[:, k], truth[:, k], rtol, name)

    tilted = likelihood.tilted(y, f, var)

    def moments_at(i: Any, x: Array) -> Array:
        p = np.exp(likelihood.log_prob(np.full_like(x, y[i]), x))
        return np.stack([p, p * x, p * x**2], axis=-1)

    moments = _average(moments_at, f, var)
    mean, square = (moments[:, 1:] / moments[:, :1]).T
    close(np.exp(tilted.log_mass), moments[:, 0], rtol, "tilted mass")
    close(f + var * tilted.slope, mean, rtol, "tilted mean")
    close(var * tilted.shrink, square - mean**2, 100 * rtol, "tilted variance")
    close(1.0 - var * tilted.curvature, tilted.shrink, rtol, "curvature and shrink disagree")


def check_parameters(likelihood: Likelihood) -> None:
    """Check that the free parameters of a likelihood can be read, bounded and replaced."""
    theta, bounds = np.asarray(likelihood.theta), np.asarray(likelihood.bounds)
    assert bounds.shape == (len(theta), 2), (
        f"bounds have shape {bounds.shape}, theta has {len(theta)} numbers"
    )
    assert ((bounds[:, 0] <= theta) & (theta <= bounds[:, 1])).all(), "theta is not between its bounds"
    moved = likelihood.with_theta(theta + 0.01)
    assert_allclose(moved.theta, theta + 0.01, rtol=1e-12, err_msg="with_theta")
    assert_allclose(likelihood.theta, theta, rtol=0, err_msg="with_theta changed the likelihood itself")
    assert repr(pickle.loads(pickle.dumps(likelihood))) == repr(likelihood), (
        "a copy of the likelihood differs"
    )


def _check_link(likelihood: Any, f: Array, var: Array, rtol: float) -> None:
    log_p, link = likelihood.log_classes(f), likelihood.link(f)
    truth = np.stack([likelihood.log_prob(np.full_like(f, label), f) for label in (-1.0, 1.0)], axis=1)
    close(log_p, truth, 1e-12, "log_classes is not log_prob")
    assert_allclose(np.exp(log_p).sum(axis=1), 1.0, rtol=1e-12, err_msg="probabilities do not sum to one")
    close(link, np.exp(log_p[:, 1]), 1e-12, "link is not p(y=+1|f)")
    assert (np.diff(likelihood.link(np.sort(f))) >= 0).all(), "the link does not increase"
    if likelihood.symmetric:
        close(likelihood.link(-f), 1.0 - link, 1e-12, "link(-f) is not 1 - link(f)")
    truth = _average(lambda _, x: np.exp(likelihood.log_classes(x)), f, var)
    close(np.exp(likelihood.log_predict(f, var)), truth, rtol, "log_predict")


def _check_classes(likelihood: Any, Y: Array, rtol: float) -> None:
    """Check a likelihood with one latent value per class, at rows of label weights."""
    n, C = Y.shape
    assert likelihood.n_latents(C) == C, "rows of label weights are for one latent value per class"
    rng = np.random.default_rng(0)
    f = 1.5 * rng.normal(size=(n, C))
    log_p = likelihood.log_classes(f)
    assert_allclose(np.exp(log_p).sum(axis=1), 1.0, atol=1e-9, err_msg="probabilities do not sum to one")
    close(likelihood.log_prob(Y, f), (Y * log_p).sum(axis=1), rtol, "log_prob is not Σ Y log p(class|f)")
    value, slope, _ = likelihood.derivatives(Y, f)
    close(value, likelihood.log_prob(Y, f), rtol, "derivatives: l")
    each = central_difference(lambda x: likelihood.log_prob(Y, x.reshape(n, C)), f.ravel(), 1e-3)
    truth = np.stack([each[i, C * i : C * i + C] for i in range(n)])
    close(slope, truth, max(rtol, 1e-6), "derivatives: l'")
    A = rng.normal(size=(n, C, C))
    cov = A @ A.transpose(0, 2, 1)
    truth = _joint_average(lambda x: np.exp(likelihood.log_classes(x)), f, cov)
    close(np.exp(likelihood.log_predict(f, cov)), truth, 1e-4, "log_predict")


def _slope(function: Callable[[Array], Any], f: Array) -> Array:
    """Return the derivative of an elementwise function."""
    return central_difference(lambda step: function(f + step[0]), np.zeros(1), 1e-3)[..., 0]


def _average(function: Callable[[Any, Array], Array], mean: Array, var: Array) -> Array:
    """Average function(index of the data point, f) over N(mean, var) by the trapezoidal rule on a fine grid."""
    z = np.linspace(-12.0, 12.0, 6001)
    w = np.exp(-0.5 * z * z)
    rows = [w @ function(i, m + s * z) for i, (m, s) in enumerate(zip(mean, np.sqrt(var), strict=True))]
    return np.asarray(rows / w.sum())


def _joint_average(function: Callable[[Array], Array], mean: Array, cov: Array, order: int = 24) -> Array:
    """Average a function of (n, C) over N(mean, cov) by a tensor of Gauss-Hermite rules."""
    x, w = np.polynomial.hermite_e.hermegauss(order)
    C = mean.shape[1]
    Z, weights = (np.stack(np.meshgrid(*[a] * C), axis=-1).reshape(-1, C) for a in (x, w / w.sum()))
    weight, roots = weights.prod(axis=1), np.linalg.cholesky(cov)
    return np.array([weight @ function(m + Z @ L.T) for m, L in zip(mean, roots, strict=True)])
