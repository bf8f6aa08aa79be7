"""Checks of priors, methods, posteriors and samplers, against explicit matrices, differences and exact draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gaussian import Gaussian
from numpy.testing import assert_allclose

from gpclass.core.protocols import Adjoint, Array, CoupledSites, Inference, Inputs, Sites
from gpclass.kernels import matrix
from gpclass.mcmc.chains import Sampler
from gpclass.posteriors.process import Process
from gpclass.posteriors.target import make_target
from gpclass.priors import DensePrior
from gpclass.priors.base import Prior
from gpclass.testing import central_difference, close


def check_prior(
    make: Callable[[Any, Inputs], Prior],
    kernel: Any,
    X: Inputs,
    *,
    covariance: Callable[[Any], Array] | None = None,
    coupled: bool = False,
    tau: Array | None = None,
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
    tau : array, optional
        The precisions of the sites to check with; by default they are random, and some of them zero.
    rtol : float
    """
    covariance = (lambda other: matrix(other, X)) if covariance is None else covariance
    rng = np.random.default_rng(0)
    prior, K = make(kernel, X), covariance(kernel)
    shape = prior.shape
    n = int(np.prod(shape))
    assert len(K) == n, f"the prior has the shape {shape}, its covariance {K.shape}"
    v = rng.normal(size=shape)
    close(_flat(prior.multiply(v)), K @ _flat(v), rtol, "multiply")
    close(_flat(prior.variances()), K.diagonal(), rtol, "variances")
    if tau is None:
        tau = rng.uniform(0.0, 2.0, size=shape) * (rng.uniform(size=shape) > 0.2)
    sites: Any = CoupledSites(v, tau + 0.1) if coupled else Sites(v, tau)
    W = np.stack([_flat(sites.times(_shaped(e, shape))) for e in np.eye(n)], axis=1)
    A = np.eye(n) + W @ K
    for _ in range(2):  # the second time with whatever the first left behind
        alpha, mean = prior.solve(sites, 1e-10)
        close(A @ _flat(alpha), _flat(sites.nu), 2e-3 if coupled or len(shape) > 1 else 1e-6, "solve")
        close(_flat(mean), K @ _flat(alpha), 1e-6, "solve does not return K alpha")
    q = prior.condition(sites)
    cov = K @ np.linalg.inv(A)
    close(_flat(q.mean), cov @ _flat(sites.nu), rtol, "mean")
    close(A @ _flat(q.reduce(v)), _flat(v), rtol, "reduce")
    close(q.half_logdet, 0.5 * np.linalg.slogdet(A)[1], rtol, "half_logdet")
    if coupled:
        blocks = cov.reshape(shape[::-1] * 2)
        close(q.var, np.einsum("cidi->icd", blocks), rtol, "var")
    else:
        close(_flat(q.var), cov.diagonal(), rtol, "var")
        close(_flat(q.inverse_diagonal), 1.0 - _flat(tau) * cov.diagonal(), rtol, "inverse_diagonal")
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

    close(got, central_difference(log_mass, kernel.theta), max(rtol, 1e-6), "pullback")
    moved = prior.at(kernel.theta + 0.1)
    truth = covariance(kernel.clone_with_theta(kernel.theta + 0.1)) @ nu
    close(_flat(moved.multiply(sites.nu)), truth, rtol, "at")


def check_posterior(posterior: Process, X: Array, *, rtol: float = 1e-7) -> None:
    """Check that the predictions of a posterior are consistent with each other and with its draws.

    The gradient with respect to the inputs is checked for one latent function only.

    Parameters
    ----------
    posterior : Process
    X : ndarray of shape (n, d)
        Inputs.
    rtol : float, default=1e-7
        Relative tolerance.
    """
    mean, var = posterior.latent(X)
    shape, n = mean.shape, mean.size
    close(posterior.mean(X), mean, rtol, "mean")
    full_mean, cov = posterior.covariance(X)
    close(full_mean, mean, rtol, "mean of covariance()")
    own = np.einsum("ii->i", cov) if len(shape) == 1 else np.einsum("icid->icd", cov)
    close(own, var, rtol, "diagonal of covariance()")
    assert_allclose(sum(float(w.sum()) for w in posterior.weights), 1.0, rtol=1e-9, err_msg="weights")
    for i in range(len(X)):
        one = posterior.latent(X[i : i + 1])
        close(one[0][0], mean[i], 1e-9, "a row's mean depends on the other rows")
        close(one[1][0], var[i], 1e-9, "a row's variance depends on the other rows")
    draws = posterior.sample(X, 20_000, np.random.default_rng(0))
    assert draws.shape == (*shape, 20_000)
    flat, full = draws.reshape(n, -1), cov.reshape(n, n)
    error = 6.0 * np.sqrt(full.diagonal() / 20_000) + 1e-9
    assert (np.abs(flat.mean(axis=1) - mean.ravel()) < error).all(), "mean of draws"
    assert_allclose(
        np.cov(flat), full, atol=0.06 * max(float(full.max()), 1e-12), err_msg="covariance of draws"
    )


def check_sampler(
    sampler: Sampler,
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

    Parameters
    ----------
    sampler : Sampler
    likelihood : BinaryLikelihood
    K : ndarray of shape (n, n)
        Kernel matrix.
    y : ndarray of shape (n,)
        Labels, -1 or +1.
    n_chains, n_steps : int
        Number of chains and of steps of each.
    errors : float, default=6.0
        Number of standard errors that a mean may be off.
    """
    rng = np.random.default_rng(0)
    target = make_target(likelihood, K, y).with_jitter(1e-8)
    f = rng.multivariate_normal(np.zeros(len(K)), K, size=20_000, method="eigh")
    log_w = likelihood.log_prob(y, f).sum(axis=1)
    weight = np.exp(log_w - log_w.max())
    weight /= weight.sum()
    exact = weight @ f
    state = sampler.init(target, f[rng.choice(len(f), size=n_chains, p=weight)])
    sums = np.zeros((n_chains, len(K)))
    for _ in range(n_steps):
        state, accept = sampler.step(rng, state)
        assert len(accept) == n_chains, f"accept has shape {accept.shape}"
        assert ((accept >= 0.0) & (accept <= 1.0)).all(), "a share of proposals is not in [0, 1]"
        sums += state.f
    means = sums / n_steps
    error = means.std(axis=0, ddof=1) / np.sqrt(n_chains) + np.sqrt((weight**2) @ (f - exact) ** 2)
    away = np.abs(means.mean(axis=0) - exact) / error
    assert (away < errors).all(), f"the chains leave the posterior: {away.max():.1f} standard errors"


def check_inference(
    inference: Inference, likelihood: Any, kernel: Any, X: Array, y: Array, *, rtol: float = 1e-6
) -> None:
    """Check the gradient of a method, weights as copies, order of rows, warm starts, and that regression is exact.

    Parameters
    ----------
    inference : Inference
        The method.
    likelihood, kernel : object
        The likelihood and the kernel of the test problem.
    X, y : ndarray of shape (n, d) and (n,)
        Rows and labels, -1 or +1.
    rtol : float, default=1e-6
        Relative tolerance.
    """

    def evidence(
        X: Array, y: Array, kernel: Any = kernel, likelihood: Any = likelihood, **options: Any
    ) -> float:
        return inference(DensePrior(kernel, X), likelihood, y, **options).evidence

    rng, prior = np.random.default_rng(0), DensePrior(kernel, X)
    base = inference(prior, likelihood, y)
    assert base.info.converged, f"it did not converge: {base.info}"
    order, counts = rng.permutation(len(X)), rng.integers(1, 3, size=len(X))
    close(evidence(X[order], y[order]), base.evidence, rtol, "the evidence depends on the order of the rows")
    close(evidence(X, y, init=base.sites), base.evidence, rtol, "a warm start ends elsewhere")
    copies = evidence(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    close(evidence(X, y, weight=counts.astype(float)), copies, rtol, "weight k is not k copies")
    truth = central_difference(lambda t: evidence(X, y, kernel.clone_with_theta(t)), kernel.theta, 1e-3)
    close(prior.pullback(base.adjoint()), truth, rtol, "the gradient of the evidence")
    truth = central_difference(
        lambda t: evidence(X, y, likelihood=likelihood.with_theta(t)), likelihood.theta, 1e-3
    )
    close(base.likelihood_gradient(), truth, rtol, "the gradient with respect to the likelihood's parameters")
    # With a Gaussian likelihood every method is exact regression (R&W eq. 2.30).
    targets, C = np.sin(np.arange(len(X))), matrix(kernel, X) + 0.3 * np.eye(len(X))
    truth = -0.5 * targets @ np.linalg.solve(C, targets) - 0.5 * np.linalg.slogdet(2.0 * np.pi * C)[1]
    close(
        evidence(X, targets, likelihood=Gaussian(0.3)), truth, 1e-8, "the evidence is not that of regression"
    )
