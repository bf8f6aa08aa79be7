"""The checks of priors and of methods, against explicit matrices and differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpclass.core.protocols import Adjoint, Array, CoupledSites, Inference, Inputs, Prior, Sites
from gpclass.kernels import matrix
from gpclass.priors import DensePrior
from gpclass.testing.differences import central_difference, close
from gpclass.testing.gaussian import Gaussian


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
    close(_flat(prior.multiply(v)), K @ _flat(v), rtol, "multiply")
    close(_flat(prior.variances()), K.diagonal(), rtol, "variances")
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
    R = W @ (np.eye(n) - cov @ W)
    close(_flat(q.multiply_R(v)), R @ _flat(v), rtol, "multiply_R")
    close(q.half_logdet, 0.5 * np.linalg.slogdet(A)[1], rtol, "half_logdet")
    if coupled:
        blocks = cov.reshape(shape[::-1] * 2)
        close(q.var(), np.einsum("cidi->icd", blocks), rtol, "var")
    else:
        close(_flat(q.var()), cov.diagonal(), rtol, "var")
        close(_flat(q.inverse_diagonal()), 1.0 - _flat(tau) * cov.diagonal(), rtol, "inverse_diagonal")
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


def check_inference(
    inference: Inference, likelihood: Any, kernel: Any, X: Array, y: Array, *, rtol: float = 1e-6
) -> None:
    """Check a method: gradient, weights as copies, order of rows, warm start, the conjugate anchor.

    Parameters
    ----------
    inference : Inference
        The method.
    likelihood, kernel : object
        What it is checked with.
    X, y : ndarray of shape (n, d) and (n,)
        Rows and labels, -1 or +1.
    rtol : float, default=1e-6
        Relative tolerance.
    """
    rng = np.random.default_rng(0)

    def run(X: Array, y: Array, kernel: Any = kernel, likelihood: Any = likelihood, **options: Any) -> Any:
        return inference(DensePrior(kernel, X), likelihood, y, **options)

    base = run(X, y)
    assert base.info.converged, f"it did not converge: {base.info}"
    order = rng.permutation(len(X))
    close(
        run(X[order], y[order]).evidence, base.evidence, rtol, "the evidence depends on the order of the rows"
    )
    close(run(X, y, init=base.sites).evidence, base.evidence, rtol, "a warm start ends elsewhere")
    counts = rng.integers(1, 3, size=len(X))
    copies = run(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    weighted = run(X, y, weight=counts.astype(float))
    close(weighted.evidence, copies.evidence, rtol, "weight k is not k copies")
    prior = DensePrior(kernel, X)
    result = inference(prior, likelihood, y)
    truth = central_difference(lambda t: run(X, y, kernel.clone_with_theta(t)).evidence, kernel.theta, 1e-3)
    close(prior.pullback(result.adjoint()), truth, rtol, "the gradient of the evidence")
    truth = central_difference(
        lambda t: run(X, y, likelihood=likelihood.with_theta(t)).evidence, likelihood.theta, 1e-3
    )
    got = result.likelihood_gradient()
    close(got, truth, rtol, "the gradient with respect to the likelihood's parameters")
    _check_conjugate(run, kernel, X)


def _check_conjugate(run: Callable[..., Any], kernel: Any, X: Array) -> None:
    """With a Gaussian likelihood every method is exact regression (R&W eq. 2.30)."""
    targets = np.sin(np.arange(len(X)))
    result = run(X, targets, likelihood=Gaussian(noise=0.3))
    C = matrix(kernel, X) + 0.3 * np.eye(len(X))
    truth = -0.5 * targets @ np.linalg.solve(C, targets) - 0.5 * np.linalg.slogdet(2.0 * np.pi * C)[1]
    close(result.evidence, truth, 1e-8, "the evidence is not that of regression under a Gaussian likelihood")
