"""The prior of margins, with which the multinomial probit is a two-class problem, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import dense_precision, margin_covariance, three_classes

from gpclass.core.protocols import Sites
from gpclass.inference import EP, VI, Laplace
from gpclass.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from gpclass.likelihoods import Probit
from gpclass.priors import DensePrior, MarginPrior

KERNELS = {
    "shared": [2.0 * RBF(1.3)],
    "each": [2.0 * RBF(1.3), ConstantKernel(0.7) * Matern(0.8, nu=2.5), 3.0 * RBF(2.0)],
}


@pytest.mark.parametrize("which", KERNELS)
class TestMarginPrior:
    def make(self, which, n=7, seed=0):
        X, y = three_classes(n, seed=seed)
        kernels = KERNELS[which]
        S, A, K = margin_covariance([k(X) for k in (kernels * 3)[:3]], y)
        rng = np.random.default_rng(seed)
        tau = 10.0 ** rng.uniform(-4.0, 1.5, size=len(S))
        sites = Sites(nu=rng.normal(size=len(S)), tau=tau)
        return MarginPrior(kernels, X, 3, y), S, A, K, sites, rng

    def test_covariance(self, which):
        prior, S, *_ = self.make(which)
        assert prior.shape == (len(S),)
        columns = [prior.multiply(e) for e in np.eye(len(S))]
        assert_allclose(np.array(columns), S, atol=1e-12)

    def test_conditioned(self, which):
        prior, S, _, _, sites, rng = self.make(which)
        q = prior.condition(sites)
        T = np.diag(sites.tau)
        cov = np.linalg.inv(np.linalg.inv(S) + T)
        assert_allclose(q.mean, cov @ sites.nu, atol=1e-9)
        assert_allclose(S @ q.alpha, q.mean, atol=1e-9)
        assert_allclose(q.var(), cov.diagonal(), atol=1e-9)
        assert_allclose(q.half_logdet, 0.5 * np.linalg.slogdet(np.eye(len(S)) + S @ T)[1], atol=1e-10)
        assert_allclose(q.dense_R(), np.linalg.inv(S + np.linalg.inv(T)), atol=1e-9)
        assert_allclose(q.dense_covariance(), cov, atol=1e-9)
        x = rng.normal(size=len(S))
        near = prior.latents.low_rank(prior.coupled(sites.tau)).solve(prior.by_class(x))[prior.others]
        assert_allclose(near, q.dense_R() @ x, rtol=1e-5, atol=1e-6)
        s = np.sqrt(sites.tau)
        B_inv = np.linalg.inv(np.eye(len(S)) + s[:, None] * S * s)
        assert_allclose(q.inverse_diagonal(), B_inv.diagonal(), atol=1e-9)

    def test_solve(self, which):
        prior, S, _, _, sites, rng = self.make(which)
        r, tau = rng.normal(size=len(S)), sites.tau * rng.uniform(0.9, 1.1, size=len(S))
        d, Kd = prior.solve(Sites(nu=r, tau=tau), 1e-12)
        assert_allclose(d, np.linalg.solve(np.eye(len(S)) + tau[:, None] * S, r), atol=1e-9)
        assert_allclose(Kd, S @ d, atol=1e-9)

    def test_sites_on_the_latent_values(self, which):
        prior, S, A, K, sites, _ = self.make(which)
        q = prior.condition(sites)
        on_f = prior.latent_sites(sites)
        R = np.linalg.inv(S + np.diag(1.0 / sites.tau))
        # f and g are jointly Gaussian, and only g has sites.
        cov = K - K @ A.T @ R @ A @ K
        mean = K @ A.T @ (sites.nu - R @ S @ sites.nu)
        W = dense_precision(on_f)
        assert_allclose(np.linalg.solve(np.eye(len(K)) + K @ W, K), cov, atol=1e-9)
        assert_allclose(cov @ on_f.nu.T.ravel(), mean, atol=1e-9)
        assert_allclose(prior.coefficients(q.alpha).T.ravel(), np.linalg.solve(K, mean), atol=1e-6)
        n, blocks = len(on_f.nu), q.factors.covariances()
        for i in range(n):
            assert_allclose(blocks[i], cov[i::n, i::n], atol=1e-9)


@pytest.mark.parametrize("method", [Laplace(tol=1e-11), EP(tol=1e-10), VI(tol=1e-10)], ids=repr)
def test_margins_of_two_classes_are_a_two_class_problem_with_noise(method):
    # The only margin is ±(f_1 - f_0) + e, with the covariance 2K + I up to the signs.
    X, y = three_classes(20, n_classes=2, seed=2)
    result = method(MarginPrior([2.0 * RBF(1.3)], X, 2, y), Probit(), np.ones(len(y)))
    dense = DensePrior(4.0 * RBF(1.3) + WhiteKernel(1.0), X)
    other = method(dense, Probit(), np.where(y == 1, 1.0, -1.0))
    assert_allclose(result.evidence, other.evidence, rtol=1e-8)
    assert_allclose(np.abs(result.conditioned.mean), np.abs(other.conditioned.mean), atol=1e-6)
    assert_allclose(result.conditioned.var(), other.conditioned.var(), atol=1e-6)
