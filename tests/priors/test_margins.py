"""The prior of margins, with which the multinomial probit is a two-class problem, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import dense_precision, margin_covariance, three_classes

from gpclass.core.protocols import Adjoint, Sites
from gpclass.inference import EP, VI, Laplace
from gpclass.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from gpclass.likelihoods import Probit
from gpclass.priors import DensePrior
from gpclass.priors.margins import MarginPrior
from gpclass.testing import central_difference

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
        prior, S, _, _, sites, _ = self.make(which)
        q = prior.condition(sites)
        T = np.diag(sites.tau)
        cov = np.linalg.inv(np.linalg.inv(S) + T)
        assert_allclose(q.mean, cov @ sites.nu, atol=1e-9)
        assert_allclose(S @ q.alpha, q.mean, atol=1e-9)
        assert_allclose(q.var, cov.diagonal(), atol=1e-9)
        assert_allclose(q.half_logdet, 0.5 * np.linalg.slogdet(np.eye(len(S)) + S @ T)[1], atol=1e-10)
        v = np.random.default_rng(2).normal(size=len(S))
        assert_allclose(q.reduce(v), np.linalg.solve(np.eye(len(S)) + T @ S, v), atol=1e-9)
        s = np.sqrt(sites.tau)
        B_inv = np.linalg.inv(np.eye(len(S)) + s[:, None] * S * s)
        assert_allclose(q.inverse_diagonal, B_inv.diagonal(), atol=1e-9)

    def test_solve(self, which):
        prior, S, _, _, sites, rng = self.make(which)
        r, tau = rng.normal(size=len(S)), sites.tau * rng.uniform(0.9, 1.1, size=len(S))
        d, Kd = prior.solve(Sites(nu=r, tau=tau), 1e-12)
        assert_allclose(d, np.linalg.solve(np.eye(len(S)) + tau[:, None] * S, r), atol=1e-9)
        assert_allclose(Kd, S @ d, atol=1e-9)

    def test_pullback(self, which):
        """Against differences of ½ nuᵀ mean - ½ log|B|, whose adjoint is ½(alpha alphaᵀ - R)."""
        prior, _, _, _, sites, _ = self.make(which)
        X, y = three_classes(7)
        kernels, T = KERNELS[which], np.diag(sites.tau)
        sizes = np.cumsum([k.n_dims for k in kernels])[:-1]

        def log_mass(theta):
            moved = [k.clone_with_theta(t) for k, t in zip(kernels, np.split(theta, sizes), strict=True)]
            S = margin_covariance([k(X) for k in (moved * 3)[:3]], y)[0]
            B = np.eye(len(S)) + S @ T
            return 0.5 * sites.nu @ np.linalg.solve(B, S @ sites.nu) - 0.5 * np.linalg.slogdet(B)[1]

        q = prior.condition(sites)
        theta = np.concatenate([k.theta for k in kernels])
        got = prior.pullback(Adjoint(alpha=q.alpha, conditioned=q))
        assert_allclose(got, central_difference(log_mass, theta, 1e-3), rtol=1e-6, atol=1e-8)

    def test_left_out(self, which):
        """Mean and covariance of f at a data point, by leaving out the sites of its margins."""
        prior, S, A, K, sites, _ = self.make(which)
        mean, cov = prior.condition(sites).left_out(np.ones(7))
        for i in (0, 4):
            kept = np.arange(len(S)) // 2 != i
            R = np.linalg.inv(S[np.ix_(kept, kept)] + np.diag(1.0 / sites.tau[kept]))
            KA = K @ A.T[:, kept]
            target = sites.nu[kept] - R @ S[np.ix_(kept, kept)] @ sites.nu[kept]
            assert_allclose(mean[i], (KA @ target)[i::7], atol=1e-7)
            assert_allclose(cov[i], (K - KA @ R @ KA.T)[i::7, i::7], atol=1e-7)

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
        n, blocks = len(on_f.nu), prior.latents.condition(on_f).var
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
    assert_allclose(result.conditioned.var, other.conditioned.var, atol=1e-6)


def test_variances_follow_the_sites_to_first_order():
    X, y = three_classes(9)
    prior = MarginPrior([2.0 * RBF(1.3)], X, 3, y)
    rng = np.random.default_rng(1)
    tau, dtau = rng.uniform(0.05, 2.0, size=18), rng.normal(size=18)
    tau[4:7], dtau[4:7] = 1e-4, 1e-5  # nearly flat sites, whose variances the others move as much
    S = margin_covariance([(2.0 * RBF(1.3))(X)] * 3, y)[0]

    def variances(t):
        return np.linalg.inv(np.linalg.inv(S) + np.diag(tau + t * dtau)).diagonal()

    q = prior.condition(Sites(nu=np.zeros(18), tau=tau))
    truth = (8.0 * (variances(1e-3) - variances(-1e-3)) - variances(2e-3) + variances(-2e-3)) / 12e-3
    assert_allclose(q.respond(dtau), truth, rtol=1e-4, atol=1e-5)  # an estimate, in single precision


def test_few_rounds_are_enough_where_covariances_are_large():
    # Most sites are nearly flat then; a response that is not exact for them takes tens of rounds.
    rng = np.random.default_rng(0)
    y = np.arange(150) % 5
    X = rng.normal(size=(150, 4)) + 2.0 * rng.normal(size=(5, 4))[y]
    kernel = 100.0 * RBF(2.0)
    prior = MarginPrior([kernel], X, 5, y)
    cold = VI()(prior, Probit(), np.ones(600))
    warm = VI()(prior.at(kernel.theta + 0.1), Probit(), np.ones(600), init=cold.sites)
    assert cold.info.converged
    assert warm.info.converged
    assert cold.info.n_iter <= 7
    assert warm.info.n_iter <= 4
