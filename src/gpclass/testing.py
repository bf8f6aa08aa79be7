"""Conformance checks for whoever adds a kernel, a likelihood, a prior, a method, a posterior or a sampler.

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
    Binary,
    CoupledSites,
    Inference,
    Inputs,
    Likelihood,
    Posterior,
    Prior,
    Sites,
)
from gpclass.kernels import diag, matrix, pullback, pullback_diag, pullback_inputs
from gpclass.likelihoods import Gaussian
from gpclass.mcmc.sampler import Sampler
from gpclass.posteriors.target import make_target
from gpclass.priors import DensePrior

__all__ = [
    "central_difference",
    "check_inference",
    "check_kernel",
    "check_likelihood",
    "check_posterior",
    "check_prior",
    "check_sampler",
]


BINARY = np.array([-1.0, 1.0])


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


def check_likelihood(likelihood: Any, y: Array = BINARY, *, rtol: float = 1e-7) -> None:
    """Check a likelihood at moderate latent values.

    Labels ``y`` in one dimension are for likelihoods with one latent value per data point, rows of label weights
    for those with one per class. The link may be asymmetric, and log p(y|f) need not be concave.
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
    _check_derivatives(likelihood, y, f, rtol)
    _check_expected(likelihood, y, f, var, rtol)
    _check_tilted(likelihood, y, f, var, rtol)


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


def _check_link(likelihood: Binary, f: Array, var: Array, rtol: float) -> None:
    total = np.exp(likelihood.log_classes(f)).sum(axis=1)
    assert_allclose(total, 1.0, rtol=1e-12, err_msg="log_classes: probabilities do not sum to one")
    for column, label in enumerate((-1.0, 1.0)):
        truth = likelihood.log_prob(np.full_like(f, label), f)
        _close(likelihood.log_classes(f)[:, column], truth, 1e-12, "log_classes is not log_prob")
    truth = _gauss_average(lambda _, x: np.exp(likelihood.log_classes(x)), f, var)
    _close(np.exp(likelihood.log_predict(f, var)), truth, rtol, "log_predict")
    _close(likelihood.link(f), np.exp(likelihood.log_classes(f)[:, 1]), 1e-12, "link is not p(y=+1|f)")
    assert (np.diff(likelihood.link(np.sort(f))) >= 0).all(), "the link does not increase"
    if likelihood.symmetric:
        _close(likelihood.link(-f), 1.0 - likelihood.link(f), 1e-12, "link(-f) is not 1 - link(f)")
    first, second = likelihood.link_slope(f, var)
    h = 1e-3
    values = np.array([_gauss_average(lambda _, x: likelihood.link(x), f + k * h, var) for k in range(-2, 3)])
    _close(first, np.array([1, -8, 0, 8, -1]) @ values / (12 * h), 1e3 * rtol, "E[link']")
    _close(second, np.array([-1, 16, -30, 16, -1]) @ values / (12 * h * h), 1e3 * rtol, "E[link'']")


def _check_classes(likelihood: Likelihood, Y: Array, rtol: float) -> None:
    """Check a likelihood with one latent value per class, at rows of label weights."""
    n, C = Y.shape
    assert likelihood.n_latents(C) == C, "rows of label weights are for one latent value per class"
    rng = np.random.default_rng(0)
    f = 1.5 * rng.normal(size=(n, C))
    log_p = likelihood.log_classes(f)
    assert_allclose(np.exp(log_p).sum(axis=1), 1.0, atol=1e-9, err_msg="probabilities do not sum to one")
    _close(likelihood.log_prob(Y, f), (Y * log_p).sum(axis=1), rtol, "log_prob is not Σ Y log p(class|f)")
    value, slope, _ = likelihood.derivatives(Y, f)
    _close(value, likelihood.log_prob(Y, f), rtol, "derivatives: l")
    each = central_difference(lambda x: likelihood.log_prob(Y, x.reshape(n, C)), f.ravel(), 1e-3)
    truth = np.stack([each[i, C * i : C * i + C] for i in range(n)])
    _close(slope, truth, max(rtol, 1e-6), "derivatives: l'")
    A = rng.normal(size=(n, C, C))
    cov = A @ A.transpose(0, 2, 1)
    truth = _normal_average(lambda x: np.exp(likelihood.log_classes(x)), f, cov)
    _close(np.exp(likelihood.log_predict(f, cov)), truth, 1e-4, "log_predict")


def _normal_average(function: Callable[[Array], Array], mean: Array, cov: Array, order: int = 24) -> Array:
    """Average a function of (n, C) over N(mean, cov) by a tensor of Gauss-Hermite rules."""
    x, w = np.polynomial.hermite_e.hermegauss(order)
    C = mean.shape[1]
    Z = np.stack(np.meshgrid(*[x] * C, indexing="ij"), axis=-1).reshape(-1, C)
    weight = np.prod(np.stack(np.meshgrid(*[w / w.sum()] * C, indexing="ij"), axis=-1).reshape(-1, C), axis=1)
    roots = np.linalg.cholesky(cov)
    rows = [weight @ function(m + Z @ L.T) for m, L in zip(mean, roots, strict=True)]
    return np.array(rows)


def _gauss_average(function: Callable[[Any, Array], Array], mean: Array, var: Array) -> Array:
    """Average function(index of the data point, f) over N(mean, var) by the trapezoidal rule, finely."""
    z = np.linspace(-12.0, 12.0, 6001)
    w = np.exp(-0.5 * z * z)
    w /= w.sum()
    x = mean[:, None] + np.sqrt(var)[:, None] * z
    values = np.asarray(function(np.repeat(np.arange(len(mean)), len(z)), x.ravel()))
    out: Array = np.einsum("ij...,j->i...", values.reshape(*x.shape, *values.shape[1:]), w)
    return out


# ----------------------------------------------------------- priors, methods, posteriors


def check_prior(
    make: Callable[[Any, Inputs], Prior],
    kernel: Any,
    X: Inputs,
    *,
    covariance: Callable[[Any], Array] | None = None,
    coupled: bool = False,
    rtol: float = 1e-7,
) -> None:
    """Check a prior against explicit inverses of its covariance.

    Parameters
    ----------
    make : callable
        Makes the prior of a kernel and inputs.
    kernel, X
    covariance : callable, optional
        Returns the covariance of the latent values for a kernel; those of several functions come function after
        function. By default it is k(X, X).
    coupled : bool
        Whether the sites to check with couple the latent values of a data point.
    rtol : float
    """
    covariance = (lambda other: matrix(other, X)) if covariance is None else covariance
    rng = np.random.default_rng(0)
    prior, K = make(kernel, X), covariance(kernel)
    shape = prior.shape
    n = int(np.prod(shape))
    assert len(K) == n, f"the prior has the shape {shape}, its covariance {K.shape}"
    v = rng.normal(size=shape)
    _close(_flat(prior.multiply(v)), K @ _flat(v), rtol, "multiply")
    tau = rng.uniform(0.0, 2.0, size=shape) * (rng.uniform(size=shape) > 0.2)
    sites: Any = CoupledSites(v, tau + 0.1) if coupled else Sites(v, tau)
    W = np.stack([_flat(sites.times(_shaped(e, shape))) for e in np.eye(n)], axis=1)
    A = np.eye(n) + W @ K
    for _ in range(2):  # the second time with whatever the first left behind
        alpha, mean = prior.solve(sites, 1e-10)
        _close(A @ _flat(alpha), _flat(sites.nu), 2e-3 if coupled or len(shape) > 1 else 1e-6, "solve")
        _close(_flat(mean), K @ _flat(alpha), 1e-6, "solve does not return K alpha")
    q = prior.condition(sites)
    cov = K @ np.linalg.inv(A)
    _close(_flat(q.mean), cov @ _flat(sites.nu), rtol, "mean")
    R = W @ (np.eye(n) - cov @ W)
    _close(_flat(q.multiply_R(v)), R @ _flat(v), rtol, "multiply_R")
    _close(q.half_logdet, 0.5 * np.linalg.slogdet(A)[1], rtol, "half_logdet")
    if coupled:
        blocks = cov.reshape(shape[::-1] * 2)
        _close(q.var(), np.einsum("cidi->icd", blocks), rtol, "var")
    else:
        _close(_flat(q.var()), cov.diagonal(), rtol, "var")
        _close(_flat(q.inverse_diagonal()), 1.0 - _flat(tau) * cov.diagonal(), rtol, "inverse_diagonal")
    _check_prior_gradient(make, kernel, X, sites, covariance, W, rtol)


def _flat(v: Array) -> Array:
    """Return values of shape (n,) or (n, C) as one vector, function after function."""
    return v.T.ravel()


def _shaped(v: Array, shape: tuple[int, ...]) -> Array:
    return v.reshape(shape[::-1]).T


def _check_prior_gradient(
    make: Callable[[Any, Inputs], Prior],
    kernel: Any,
    X: Inputs,
    sites: Any,
    covariance: Callable[[Any], Array],
    W: Array,
    rtol: float,
) -> None:
    """Check on ½ nuᵀ m - ½ log|B|, whose adjoint is ½(alpha alphaᵀ - R) in closed form."""
    prior = make(kernel, X)
    q = prior.condition(sites)
    got = prior.pullback(Adjoint(alpha=q.alpha, conditioned=q))
    nu = _flat(sites.nu)

    def log_mass(theta: Array) -> float:
        K = covariance(kernel.clone_with_theta(theta))
        A = np.eye(len(K)) + W @ K
        return float(0.5 * nu @ K @ np.linalg.solve(A, nu) - 0.5 * np.linalg.slogdet(A)[1])

    _close(got, central_difference(log_mass, kernel.theta), max(rtol, 1e-6), "pullback")
    moved = prior.at(kernel.theta + 0.1)
    truth = covariance(kernel.clone_with_theta(kernel.theta + 0.1)) @ nu
    _close(_flat(moved.multiply(sites.nu)), truth, rtol, "at")


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
    truth = central_difference(lambda t: run(X, y, kernel.clone_with_theta(t)).evidence, kernel.theta, 1e-3)
    _close(prior.pullback(result.adjoint()), truth, rtol, "the gradient of the evidence")
    truth = central_difference(
        lambda t: run(X, y, likelihood=likelihood.with_theta(t)).evidence, likelihood.theta, 1e-3
    )
    got = result.likelihood_gradient()
    _close(got, truth, rtol, "the gradient with respect to the likelihood's parameters")
    _check_conjugate(run, kernel, X)


def _check_conjugate(run: Callable[..., Any], kernel: Any, X: Array) -> None:
    """With a Gaussian likelihood every method is exact regression (R&W eq. 2.30)."""
    targets = np.sin(np.arange(len(X)))
    result = run(X, targets, likelihood=Gaussian(noise=0.3))
    C = matrix(kernel, X) + 0.3 * np.eye(len(X))
    truth = -0.5 * targets @ np.linalg.solve(C, targets) - 0.5 * np.linalg.slogdet(2.0 * np.pi * C)[1]
    _close(result.evidence, truth, 1e-8, "the evidence is not that of regression under a Gaussian likelihood")


def check_posterior(posterior: Posterior, X: Array, *, rtol: float = 1e-7) -> None:
    """Check that a posterior agrees with itself in all its forms, with its draws, and differentiates.

    The gradient with respect to the inputs is checked for one latent function only.
    """
    mean, var = posterior.latent(X)
    shape, n = mean.shape, mean.size
    _close(posterior.mean(X), mean, rtol, "mean")
    full_mean, cov = posterior.covariance(X)
    _close(full_mean, mean, rtol, "mean of covariance()")
    own = np.einsum("ii->i", cov) if len(shape) == 1 else np.einsum("icid->icd", cov)
    _close(own, var, rtol, "diagonal of covariance()")
    assert_allclose(sum(float(w.sum()) for w in posterior.weights), 1.0, rtol=1e-9, err_msg="weights")
    for i in range(len(X)):
        one = posterior.latent(X[i : i + 1])
        _close(one[0][0], mean[i], 1e-9, "a row's mean depends on the other rows")
        _close(one[1][0], var[i], 1e-9, "a row's variance depends on the other rows")
    draws = posterior.sample(X, 20_000, np.random.default_rng(0))
    assert draws.shape == (*shape, 20_000)
    flat, full = draws.reshape(n, -1), cov.reshape(n, n)
    error = 6.0 * np.sqrt(full.diagonal() / 20_000) + 1e-9
    assert (np.abs(flat.mean(axis=1) - mean.ravel()) < error).all(), "mean of draws"
    assert_allclose(
        np.cov(flat), full, atol=0.06 * max(float(full.max()), 1e-12), err_msg="covariance of draws"
    )
    if len(shape) == 1:
        _check_posterior_gradient(posterior, X)


def _check_posterior_gradient(posterior: Posterior, X: Array) -> None:
    """Check Σ w (first d mean/dx + ½ second d var/dx) with random factors for every part and draw."""
    rng = np.random.default_rng(1)
    adjoints = [
        (rng.normal(size=(len(X), len(w))), rng.normal(size=(len(X), len(w)))) for w in posterior.weights
    ]

    def total(x: Array) -> float:
        (_, parts), *_ = posterior.blocks(x.reshape(X.shape))
        return sum(
            float(((first * part.mean + 0.5 * second * part.cov[:, None]) @ part.weight).sum())
            for part, (first, second) in zip(parts, adjoints, strict=True)
        )

    truth = central_difference(total, X.ravel(), 1e-4).reshape(X.shape)
    _close(posterior.input_gradient(X, adjoints), truth, 1e-5, "input_gradient")


def check_sampler(
    sampler: Sampler[Any],
    likelihood: Any,
    K: Array,
    y: Array,
    *,
    n_chains: int = 64,
    n_steps: int = 60,
    errors: float = 6.0,
) -> None:
    """Check that a sampler leaves the posterior as it is: its chains start from exact draws and stay distributed so.

    The exact draws come from the prior, weighted by the likelihood, so the data must be few.
    """
    rng = np.random.default_rng(0)
    target = make_target(likelihood, K, y, jitter=max(sampler.jitter, 1e-10) * float(np.mean(K.diagonal())))
    f = rng.multivariate_normal(np.zeros(len(K)), K, size=20_000, method="eigh")
    log_w = likelihood.log_prob(y, f).sum(axis=1)
    weight = np.exp(log_w - log_w.max())
    weight /= weight.sum()
    exact = weight @ f
    state = sampler.init(target, f[rng.choice(len(f), size=n_chains, p=weight)])
    sums = np.zeros((n_chains, len(K)))
    for _ in range(n_steps):
        state, info = sampler.step(rng, state)
        assert info.accept.shape == (n_chains,), f"accept has shape {info.accept.shape}"
        assert ((info.accept >= 0.0) & (info.accept <= 1.0)).all(), "a share of proposals is not in [0, 1]"
        sums += state.f
    means = sums / n_steps
    error = means.std(axis=0, ddof=1) / np.sqrt(n_chains) + np.sqrt((weight**2) @ (f - exact) ** 2)
    away = np.abs(means.mean(axis=0) - exact) / error
    assert (away < errors).all(), f"the chains leave the posterior: {away.max():.1f} standard errors"


def _close(got: Any, truth: Any, rtol: float, what: str) -> None:
    """Compare relative to the largest number of the truth: differences know no better."""
    scale = max(float(np.max(np.abs(truth), initial=0.0)), 1e-4)
    assert_allclose(got, truth, rtol=0.0, atol=rtol * scale, err_msg=what)
