"""Laplace's approximation against exact integrals, published numbers, scikit-learn and differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from problems import exact_logit_evidence, exact_probit_evidence, hard, two_moons_like
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessClassifier as Peer

from gpclass.core.protocols import Sites
from gpclass.inference import Laplace
from gpclass.kernels import RBF, Matern, WhiteKernel, matrix
from gpclass.likelihoods import Logit, Probit
from gpclass.priors import DensePrior
from gpclass.testing import central_difference

LIKELIHOODS = [Logit(), Probit()]


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_the_mode_is_the_mode(likelihood):
    """Against a general-purpose optimiser in whitened coordinates, which shares nothing with ours."""
    X, y = two_moons_like(25)
    K = matrix(3.0 * RBF(1.2), X)
    L = np.linalg.cholesky(K + 1e-12 * np.eye(25))

    def negative(z):
        return -likelihood.log_prob(y, L @ z).sum() + 0.5 * z @ z

    end = minimize(negative, np.zeros(25), method="BFGS", options={"gtol": 1e-9, "maxiter": 2000})
    result = Laplace()(DensePrior(3.0 * RBF(1.2), X), likelihood, y)
    f = L @ end.x
    assert_allclose(result.conditioned.mean, f, atol=1e-6)
    # R&W eq. 3.32, spelled out with W by differences of the gradient.
    h = 1e-4
    W = -(likelihood.derivatives(y, f + h)[1] - likelihood.derivatives(y, f - h)[1]) / (2 * h)
    evidence = -end.fun - 0.5 * np.linalg.slogdet(np.eye(25) + K * W)[1]
    assert_allclose(result.evidence, evidence, atol=1e-6)


EXACT = [(Probit(), exact_probit_evidence, 5), (Logit(), exact_logit_evidence, 3)]


@pytest.mark.parametrize(("likelihood", "exact", "n"), EXACT, ids=["probit", "logit"])
@pytest.mark.parametrize(("variance", "allowed"), [(0.01, 1e-4), (0.1, 5e-3), (1.0, 0.1), (9.0, 0.7)])
def test_the_evidence_is_near_the_exact_one(likelihood, exact, n, variance, allowed):
    """The gap is Laplace's own; it must vanish as the posterior becomes the prior."""
    X, y = two_moons_like(n, seed=3)
    kernel = variance * RBF(1.0)
    gap = Laplace()(DensePrior(kernel, X), likelihood, y).evidence - exact(matrix(kernel, X), y)
    assert abs(gap) < allowed


def test_evidence_and_latents_are_scikit_learns():
    X, y = two_moons_like(80, d=3)
    rng = np.random.default_rng(1)
    for kernel in (2.0 * RBF([0.5, 1.0, 4.0]), 1.5 * Matern(0.8, nu=1.5) + WhiteKernel(0.2)):
        peer = Peer(kernel, optimizer=None, max_iter_predict=1000).fit(X, y)
        prior = DensePrior(kernel, X)
        result = Laplace()(prior, Logit(), y)
        assert_allclose(result.evidence, peer.log_marginal_likelihood_value_, rtol=1e-9)
        if not hasattr(peer, "latent_mean_and_variance"):  # before scikit-learn 1.7
            continue
        Z = rng.normal(size=(9, 3))
        ours = prior.posterior(result.conditioned).latent(Z)
        for mine, theirs in zip(ours, peer.latent_mean_and_variance(Z), strict=True):
            assert_allclose(mine, theirs, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
@given(theta=st.lists(st.floats(-4.0, 4.0), min_size=3, max_size=3), scale=st.floats(-3.0, 7.0))
@settings(max_examples=6, deadline=None)
def test_the_gradient_holds_at_random_and_extreme_theta(likelihood, theta, scale):
    X, y = two_moons_like(15)
    kernel = 1.0 * RBF([1.0, 1.0]) + WhiteKernel(1.0)
    theta = np.array([scale, theta[0], theta[1], theta[2]])
    method = Laplace(tol=1e-13)

    def evidence(t):
        return method(DensePrior(kernel.clone_with_theta(t), X), likelihood, y).evidence

    prior = DensePrior(kernel.clone_with_theta(theta), X)
    result = method(prior, likelihood, y)
    truth = central_difference(evidence, theta, step=5e-4)
    assert_allclose(
        prior.pullback(result.adjoint()), truth, rtol=1e-6, atol=1e-6 * max(1.0, np.abs(truth).max())
    )


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
@given(
    log_variance=st.floats(-7.0, 12.0),
    log_scale=st.floats(-7.0, 7.0),
    n=st.integers(2, 40),
    shape=st.sampled_from(["noisy", "separable", "one-sided", "duplicated"]),
)
@settings(max_examples=15, deadline=None)
def test_it_always_converges(likelihood, log_variance, log_scale, n, shape):
    X, y = hard(n, shape)
    kernel = float(np.exp(log_variance)) * RBF(float(np.exp(log_scale)))
    result = Laplace()(DensePrior(kernel, X), likelihood, y)
    assert result.info.converged, result.info
    assert np.isfinite(result.evidence)
    assert result.evidence < 0.0
    # The residual of the stationarity condition alpha = l'(f), whatever the loop says.
    _, slope, _ = likelihood.derivatives(y, result.conditioned.mean)
    assert_allclose(result.conditioned.alpha, slope, atol=1e-6 * max(1.0, np.abs(slope).max()))


def test_a_warm_start_saves_steps_and_ends_in_the_same_place():
    X, y = two_moons_like(200)
    kernel = 5.0 * RBF([1.0, 1.0])
    prior = DensePrior(kernel, X)
    cold = Laplace()(prior, Logit(), y)
    prior.pullback(cold.adjoint())  # leaves an inverse behind that preconditions the next
    moved = kernel.theta + 0.05
    warm = Laplace()(prior.at(moved), Logit(), y, init=cold.sites)
    fresh = Laplace()(DensePrior(kernel.clone_with_theta(moved), X), Logit(), y)
    assert_allclose(warm.evidence, fresh.evidence, rtol=1e-10)
    assert_allclose(warm.conditioned.mean, fresh.conditioned.mean, atol=1e-7)
    assert warm.info.n_iter <= fresh.info.n_iter


def test_a_bad_warm_start_does_no_harm():
    X, y = two_moons_like(30)
    cold = Laplace()(DensePrior(2.0 * RBF(1.0), X), Logit(), y)
    for nu, tau in ((1e6 * np.ones(30), 1e-9 * np.ones(30)), (np.zeros(30), np.zeros(30))):
        warm = Laplace()(DensePrior(2.0 * RBF(1.0), X), Logit(), y, init=Sites(nu, tau))
        assert_allclose(warm.evidence, cold.evidence, rtol=1e-10)


def test_too_few_steps_are_reported():
    X, y = two_moons_like(40)
    info = Laplace(max_iter=1)(DensePrior(100.0 * RBF(1.0), X), Logit(), y).info
    assert not info.converged
    assert info.n_iter == 1
    assert info.residual > 1e-3


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="is not valid"):
        Laplace(tol=0.0)
