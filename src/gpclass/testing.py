"""Conformance checks for whoever adds a kernel, a likelihood, a prior, a method or a posterior.

Each check compares an object with a truth that it does not compute itself (differences, quadrature,
explicit matrices) and raises AssertionError with the place where they part.

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
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from gpclass.core.protocols import (
    Adjoint,
    Array,
    HasDerivatives,
    HasExpected,
    HasLink,
    HasTilted,
    Inference,
    Inputs,
    Likelihood,
    Posterior,
    Prior,
    Sites,
)
from gpclass.kernels import diag, matrix, pullback, pullback_diag, pullback_inputs
from gpclass.likelihoods import Gaussian
from gpclass.priors import DensePrior

__all__ = [
    "central_difference",
    "check_inference",
    "check_kernel",
    "check_likelihood",
    "check_posterior",
    "check_prior",
]


def central_difference(function: Callable[[Array], Any], x: Array, step: float = 1e-4) -> Array:
    """Return d function / d x by central differences of fourth order, derivative index last."""
    x = np.asarray(x, dtype=float)
    parts = []
    for e in np.eye(len(x)) * step:
        near = np.asarray(function(x + e)) - np.asarray(function(x - e))
        far = np.asarray(function(x + 2 * e)) - np.asarray(function(x - 2 * e))
        parts.append((8.0 * near - far) / (12.0 * step))
    return np.stack(parts, axis=-1) if parts else np.zeros(0)


# ------------------------------------------------------------------------------ kernels


def check_kernel(kernel: Any, X: Inputs, Z: Inputs | None = None, *, rtol: float = 1e-6) -> None:
    """Check a kernel's matrix, diagonal, derivatives and scikit-learn manners on inputs X and Z."""
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
    _check_pullbacks(kernel, X, Z, rng, rtol)
    if isinstance(X, np.ndarray) and X.ndim == 2:
        _check_input_gradient(kernel, X, np.asarray(Z), rng, rtol)


def _check_pullbacks(kernel: Any, X: Inputs, Z: Inputs, rng: np.random.Generator, rtol: float) -> None:
    _check_pullback(kernel, X, None, rng.normal(size=(len(X), len(X))), rtol)
    _check_pullback(kernel, X, Z, rng.normal(size=(len(X), len(Z))), rtol)
    g = rng.normal(size=len(X))
    truth = central_difference(lambda t: g @ diag(kernel.clone_with_theta(t), X), kernel.theta)
    _close(pullback_diag(kernel, X, g), truth, rtol, "pullback_diag")


def _check_pullback(kernel: Any, X: Inputs, Z: Inputs | None, G: Array, rtol: float) -> None:
    truth = central_difference(lambda t: np.vdot(G, matrix(kernel.clone_with_theta(t), X, Z)), kernel.theta)
    for K in (None, matrix(kernel, X, Z)):
        got = pullback(kernel, X, Z, G, K=K)
        _close(got, truth, rtol, f"pullback(X, {'None' if Z is None else 'Z'})")


def _check_input_gradient(kernel: Any, X: Array, Z: Array, rng: np.random.Generator, rtol: float) -> None:
    Z = Z + 0.1 * rng.normal(size=Z.shape)  # off the points where a rough kernel has no derivative
    G = rng.normal(size=(len(X), len(Z)))
    truth = central_difference(
        lambda x: np.vdot(G, matrix(kernel, x.reshape(X.shape), Z)), X.ravel(), step=1e-5
    ).reshape(X.shape)
    _close(pullback_inputs(kernel, X, Z, G), truth, rtol, "pullback_inputs")


# -------------------------------------------------------------------------- likelihoods


def check_likelihood(likelihood: Any, y: Array, *, rtol: float = 1e-7) -> None:
    """Check every capability that a likelihood with one latent value has, at moderate f, for labels y."""
    y = np.repeat(np.asarray(y, dtype=float), 7)
    f = np.resize(np.linspace(-4.0, 4.0, 7), len(y))
    var = np.resize([0.01, 0.5, 3.0, 40.0, 1.0], len(y))
    if isinstance(likelihood, HasDerivatives):
        _check_derivatives(likelihood, y, f, rtol)
    if isinstance(likelihood, HasExpected):
        _check_expected(likelihood, y, f, var, rtol)
    if isinstance(likelihood, HasTilted):
        _check_tilted(likelihood, y, f, var, rtol)
    if isinstance(likelihood, Likelihood):
        total = np.exp(likelihood.log_classes(f)).sum(axis=1)
        assert_allclose(total, 1.0, rtol=1e-12, err_msg="log_classes: probabilities do not sum to one")
        truth = _gauss_average(lambda _, x: np.exp(likelihood.log_classes(x)), f, var)
        _close(np.exp(likelihood.log_predict(f, var)), truth, rtol, "log_predict")
    if isinstance(likelihood, HasLink):
        _check_link(likelihood, f, var, rtol)


def _check_derivatives(likelihood: Any, y: Array, f: Array, rtol: float) -> None:
    h = 1e-3
    value, first, second = likelihood.derivatives(y, f)
    assert_allclose(value, likelihood.log_prob(y, f), rtol=1e-12)
    third = likelihood.third(y, f, np.ones_like(f))
    for order, (got, below) in enumerate(((first, 0), (second, 1), (third, 2)), start=1):
        points = [likelihood.derivatives(y, f + k * h)[below] for k in (-3, -2, -1, 1, 2, 3)]
        truth = np.tensordot(np.array([-1, 9, -45, 45, -9, 1]) / (60 * h), np.array(points), axes=1)
        _close(got, truth, rtol, f"derivative {order} of log p(y|f)")
    _close(likelihood.third(y, f, 2.0 * np.ones_like(f)), 2.0 * third, 1e-12, "third is not linear in var")


def _check_expected(likelihood: Any, y: Array, f: Array, var: Array, rtol: float) -> None:
    got = likelihood.expected(y, f, var)
    truth = _gauss_average(lambda i, x: np.stack(likelihood.derivatives(y[i], x), axis=-1), f, var)
    for k, (value, name) in enumerate(((got.value, "E[l]"), (got.slope, "E[l']"), (got.curvature, "E[l'']"))):
        _close(value, truth[:, k], rtol, name)


def _check_tilted(likelihood: Any, y: Array, f: Array, var: Array, rtol: float) -> None:
    tilted = likelihood.tilted(y, f, var)

    def moment(k: int) -> Array:
        return _gauss_average(lambda i, x: np.exp(likelihood.log_prob(y[i], x)) * x**k, f, var)

    mass, mean = moment(0), moment(1) / moment(0)
    _close(np.exp(tilted.log_mass), mass, rtol, "tilted mass")
    _close(f + var * tilted.slope, mean, rtol, "tilted mean")
    _close(var * tilted.shrink, moment(2) / mass - mean**2, 100 * rtol, "tilted variance")
    _close(1.0 - var * tilted.curvature, tilted.shrink, rtol, "curvature and shrink disagree")


def _check_link(likelihood: Any, f: Array, var: Array, rtol: float) -> None:
    p = likelihood.link(np.sort(f))
    assert (np.diff(p) >= 0).all(), "the link does not increase"
    _close(likelihood.link(f), np.exp(likelihood.log_classes(f)[:, 1]), 1e-12, "link is not p(y=+1|f)")
    first, second = likelihood.link_slope(f, var)
    h = 1e-3
    values = np.array([_gauss_average(lambda _, x: likelihood.link(x), f + k * h, var) for k in range(-2, 3)])
    _close(first, np.array([1, -8, 0, 8, -1]) @ values / (12 * h), 1e3 * rtol, "E[link']")
    _close(second, np.array([-1, 16, -30, 16, -1]) @ values / (12 * h * h), 1e3 * rtol, "E[link'']")


def _gauss_average(function: Callable[[Any, Array], Array], mean: Array, var: Array) -> Array:
    """Average function(index of the datum, f) over N(mean, var) by the trapezoidal rule, finely."""
    z = np.linspace(-12.0, 12.0, 6001)
    w = np.exp(-0.5 * z * z)
    w /= w.sum()
    x = mean[:, None] + np.sqrt(var)[:, None] * z
    values = np.asarray(function(np.repeat(np.arange(len(mean)), len(z)), x.ravel()))
    out: Array = np.einsum("ij...,j->i...", values.reshape(*x.shape, *values.shape[1:]), w)
    return out


# ----------------------------------------------------------- priors, methods, posteriors


def check_prior(make: Callable[[Any, Inputs], Prior], kernel: Any, X: Inputs, *, rtol: float = 1e-7) -> None:
    """Check a prior against explicit inverses of K = k(X, X)."""
    rng = np.random.default_rng(0)
    n = len(X)
    K = matrix(kernel, X)
    prior = make(kernel, X)
    assert prior.n == n
    v = rng.normal(size=n)
    _close(prior.multiply(v), K @ v, rtol, "multiply")
    sites = Sites(nu=rng.normal(size=n), tau=rng.uniform(0.0, 2.0, size=n) * (rng.uniform(size=n) > 0.2))
    for _ in range(2):  # the second time with whatever the first left behind
        d, Kd = prior.newton(sites.tau, v, 1e-10)
        _close(d + sites.tau * (K @ d), v, 1e-6, "newton does not solve (I + tau K) d = r")
        _close(Kd, K @ d, 1e-6, "newton does not return K d")
    q = prior.condition(sites)
    cov = K - K @ np.linalg.solve(np.eye(n) + sites.tau[:, None] * K, sites.tau[:, None] * K)
    _close(q.mean, cov @ sites.nu, rtol, "mean")
    _close(q.var(), cov.diagonal(), rtol, "var")
    R = np.linalg.solve(np.eye(n) + sites.tau[:, None] * K, np.diag(sites.tau))
    _close(q.dense_R(), R, rtol, "R")
    _close(q.half_logdet, 0.5 * np.linalg.slogdet(np.eye(n) + sites.tau[:, None] * K)[1], rtol, "half_logdet")
    s = np.sqrt(sites.tau)
    trace = np.trace(np.linalg.inv(np.eye(n) + s[:, None] * K * s))
    _close(q.trace_inv_B(), trace, rtol, "trace_inv_B")
    _check_prior_gradient(make, kernel, X, sites, rtol)


def _check_prior_gradient(
    make: Callable[[Any, Inputs], Prior], kernel: Any, X: Inputs, sites: Sites, rtol: float
) -> None:
    """Check on ½ nuᵀ m - ½ log|B|, whose adjoint is ½(alpha alphaᵀ - R) in closed form."""
    prior = make(kernel, X)
    q = prior.condition(sites)
    got = prior.pullback(Adjoint(alpha=q.alpha, conditioned=q))

    def log_mass(theta: Array) -> float:
        K = matrix(kernel.clone_with_theta(theta), X)
        A = np.eye(len(X)) + sites.tau[:, None] * K
        return float(0.5 * sites.nu @ K @ np.linalg.solve(A, sites.nu) - 0.5 * np.linalg.slogdet(A)[1])

    _close(got, central_difference(log_mass, kernel.theta), max(rtol, 1e-6), "pullback")
    moved = prior.at(kernel.theta + 0.1)
    truth = matrix(kernel.clone_with_theta(kernel.theta + 0.1), X) @ sites.nu
    _close(moved.multiply(sites.nu), truth, rtol, "at")


def check_inference(
    inference: Inference, likelihood: Any, kernel: Any, X: Array, y: Array, *, rtol: float = 1e-6
) -> None:
    """Check a method: gradient, weights as copies, order of rows, warm start, the conjugate anchor."""
    rng = np.random.default_rng(0)

    def run(X: Array, y: Array, kernel: Any = kernel, likelihood: Any = likelihood, **options: Any) -> Any:
        return inference(DensePrior(kernel, X), likelihood, y, **options)

    base = run(X, y)
    assert base.info.converged, f"it did not converge: {base.info}"
    order = rng.permutation(len(X))
    _close(
        run(X[order], y[order]).evidence, base.evidence, rtol, "the evidence depends on the order of the rows"
    )
    _close(run(X, y, init=base.sites).evidence, base.evidence, rtol, "a warm start ends elsewhere")
    counts = rng.integers(1, 3, size=len(X))
    copies = run(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    weighted = run(X, y, weight=counts.astype(float))
    _close(weighted.evidence, copies.evidence, rtol, "weight k is not k copies")
    prior = DensePrior(kernel, X)
    result = inference(prior, likelihood, y)
    if result.adjoint is not None:
        truth = central_difference(
            lambda t: run(X, y, kernel.clone_with_theta(t)).evidence, kernel.theta, 1e-3
        )
        _close(prior.pullback(result.adjoint()), truth, rtol, "the gradient of the evidence")
    _check_conjugate(run, kernel, X)


def _check_conjugate(run: Callable[..., Any], kernel: Any, X: Array) -> None:
    """With a Gaussian likelihood every method is exact regression (R&W eq. 2.30)."""
    targets = np.sin(np.arange(len(X)))
    result = run(X, targets, likelihood=Gaussian(noise=0.3))
    C = matrix(kernel, X) + 0.3 * np.eye(len(X))
    truth = -0.5 * targets @ np.linalg.solve(C, targets) - 0.5 * np.linalg.slogdet(2.0 * np.pi * C)[1]
    _close(result.evidence, truth, 1e-8, "the evidence is not that of regression under a Gaussian likelihood")


def check_posterior(posterior: Posterior, X: Array, *, rtol: float = 1e-7) -> None:
    """Check that a posterior agrees with itself in all its forms, with its draws, and differentiates."""
    mean, var = posterior.latent(X)
    _close(posterior.mean(X), mean, rtol, "mean")
    full_mean, cov = posterior.covariance(X)
    _close(full_mean, mean, rtol, "mean of covariance()")
    _close(cov.diagonal(), var, rtol, "diagonal of covariance()")
    for i in range(len(X)):
        one = posterior.latent(X[i : i + 1])
        _close(
            np.array([one[0][0], one[1][0]]),
            np.array([mean[i], var[i]]),
            1e-9,
            "a row depends on its company",
        )
    draws = posterior.sample(X, 20_000, np.random.default_rng(0))
    assert draws.shape == (len(X), 20_000)
    assert (np.abs(draws.mean(axis=1) - mean) < 6.0 * np.sqrt(var / 20_000) + 1e-9).all(), "mean of draws"
    assert_allclose(
        np.cov(draws), cov, atol=0.06 * max(float(cov.max()), 1e-12), err_msg="covariance of draws"
    )
    truth = central_difference(
        lambda x: [moment.sum() for moment in posterior.latent(x.reshape(X.shape))], X.ravel(), 1e-4
    )
    for got, expected in zip(posterior.input_gradient(X), truth, strict=True):
        _close(got, expected.reshape(X.shape), 1e-5, "input_gradient")


def _close(got: Any, truth: Any, rtol: float, what: str) -> None:
    """Compare relative to the largest number of the truth: differences know no better."""
    scale = max(float(np.max(np.abs(truth), initial=0.0)), 1e-4)
    assert_allclose(got, truth, rtol=0.0, atol=rtol * scale, err_msg=what)
