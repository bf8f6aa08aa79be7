"""The checks of posteriors and samplers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from gpclass.core.protocols import Array, Posterior
from gpclass.mcmc.sampler import Sampler
from gpclass.posteriors.target import make_target
from gpclass.testing.differences import central_difference, close


def check_posterior(posterior: Posterior, X: Array, *, rtol: float = 1e-7) -> None:
    """Check that the predictions of a posterior are consistent with each other and with its draws.

    The gradient with respect to the inputs is checked for one latent function only.

    Parameters
    ----------
    posterior : Posterior
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
    close(posterior.input_gradient(X, adjoints), truth, 1e-5, "input_gradient")


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
