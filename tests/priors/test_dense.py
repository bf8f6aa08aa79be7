"""The dense prior against dense algebra: digits where the covariance is singular, and several latent functions."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import dense_precision, three_classes
from scipy.linalg import block_diag

from gpclass.core.protocols import Adjoint, CoupledSites, Sites
from gpclass.kernels import RBF, ConstantKernel, Matern, matrix
from gpclass.priors import DensePrior
from gpclass.priors.dense import low_rank_preconditioner, nystrom_root
from gpclass.testing import central_difference

KERNELS = {
    "shared": [2.0 * RBF(1.3)],
    "each": [2.0 * RBF(1.3), ConstantKernel(0.7) * Matern(0.8, nu=2.5), 3.0 * RBF(2.0)],
}
N = 8


def test_a_singular_covariance_costs_no_digits():
    """Sixty digits of mean, variance and determinant, where K⁻¹ has none left in double precision."""
    rng = np.random.default_rng(0)
    X, Z = np.linspace(0.0, 1.0, 20)[:, None], np.array([[0.33], [1.4]])
    kernel = 4.0 * RBF(1.0)
    tau, nu = rng.uniform(0.05, 0.25, 20), rng.normal(size=20)
    assert np.linalg.cond(matrix(kernel, X)) > 1e16
    prior = DensePrior(kernel, X)
    q = prior.condition(Sites(nu=nu, tau=tau))
    mean, var, half_logdet = q.mean.copy(), q.var.copy(), q.half_logdet
    new_mean, new_var = prior.posterior(q).latent(Z)

    with mp.workdps(60):

        def k(x, z):
            return 4 * mp.exp(-((mp.mpf(float(x)) - mp.mpf(float(z))) ** 2) / 2)

        inputs = [*X.ravel(), *Z.ravel()]
        K = mp.matrix(22, 22)
        for i, x in enumerate(inputs):
            for j, z in enumerate(inputs):
                K[i, j] = k(x, z)
        train = K[:20, :20]
        noisy = train + mp.diag([1 / mp.mpf(t) for t in tau])
        target = mp.matrix([mp.mpf(a) / mp.mpf(t) for a, t in zip(nu, tau, strict=True)])
        weights = mp.lu_solve(noisy, target)
        means = [(K[i, :20] * weights)[0] for i in range(22)]
        variances = [K[i, i] - (K[i, :20] * mp.lu_solve(noisy, K[:20, i]))[0] for i in range(22)]
        det = mp.log(mp.det(noisy * mp.diag([mp.mpf(t) for t in tau]))) / 2
    assert_allclose(np.r_[mean, new_mean], np.array(means, dtype=float), rtol=1e-9, atol=1e-10)
    assert_allclose(np.r_[var, new_var], np.array(variances, dtype=float), rtol=1e-9)
    assert_allclose(half_logdet, float(det), rtol=1e-11)


def covariance(kernels, X):
    return block_diag(*[k(X) for k in (kernels * 3)[:3]])


@pytest.fixture(params=[Sites, CoupledSites])
def sites(request):
    rng = np.random.default_rng(1)
    return request.param(rng.normal(size=(N, 3)), rng.uniform(0.01, 2.0, size=(N, 3)))


@pytest.mark.parametrize("which", KERNELS)
class TestSeveralFunctions:
    X = three_classes(N)[0]

    def test_conditioned(self, which, sites):
        K, W = covariance(KERNELS[which], self.X), dense_precision(sites)
        prior = DensePrior(KERNELS[which], self.X, 3)
        assert prior.shape == (N, 3)
        q = prior.condition(sites)
        cov = np.linalg.solve(np.eye(3 * N) + K @ W, K)
        assert_allclose(q.half_logdet, 0.5 * np.linalg.slogdet(np.eye(3 * N) + K @ W)[1], atol=1e-10)
        assert_allclose(q.mean.T.ravel(), cov @ sites.nu.T.ravel(), atol=1e-9)
        blocks = np.array([cov[i::N, i::N] for i in range(N)])
        coupled = isinstance(sites, CoupledSites)
        assert_allclose(q.var, blocks if coupled else np.einsum("icc->ic", blocks), atol=1e-9)
        R = W @ (np.eye(3 * N) - cov @ W)
        v = np.random.default_rng(2).normal(size=(N, 3))
        assert_allclose(q.reduce(v).T.ravel(), v.T.ravel() - R @ K @ v.T.ravel(), atol=1e-9)
        for c in range(3):
            G = np.zeros((N, N))
            q.subtract_R(slice(c, c + 1), slice(0, N), G)
            assert_allclose(np.tril(-G), np.tril(R[N * c : N * c + N, N * c : N * c + N]), atol=1e-9)

    def test_solve(self, which, sites):
        K, W = covariance(KERNELS[which], self.X), dense_precision(sites)
        prior = DensePrior(KERNELS[which], self.X, 3)
        alpha, mean = prior.solve(sites, 1e-12)
        truth = np.linalg.solve(np.eye(3 * N) + W @ K, sites.nu.T.ravel())
        # A step of Newton's method gains three digits with three digits.
        assert_allclose(alpha.T.ravel(), truth, atol=1e-3 * np.abs(truth).max())
        assert_allclose(mean.T.ravel(), K @ alpha.T.ravel(), atol=1e-9)

    def test_left_out(self, which, sites):
        """The latent values of a data point without its site, by leaving the site out."""
        K, W = covariance(KERNELS[which], self.X), dense_precision(sites)
        mean, cov = DensePrior(KERNELS[which], self.X, 3).condition(sites).left_out(np.ones(N))
        nu = sites.nu.T.ravel()
        for i in (0, 5):
            own = np.zeros(3 * N, dtype=bool)
            own[i::N] = True
            rest = np.where(own[:, None] | own, 0.0, W)
            without = np.linalg.solve(np.eye(3 * N) + K @ rest, K)
            assert_allclose(cov[i], without[i::N, i::N], atol=1e-8)
            assert_allclose(mean[i], (without @ np.where(own, 0.0, nu))[i::N], atol=1e-8)

    def test_pullback(self, which, sites):
        kernels = KERNELS[which]
        W, nu = dense_precision(sites), sites.nu.T.ravel()
        sizes = np.cumsum([k.n_dims for k in kernels])[:-1]

        def log_mass(theta):
            parts = np.split(theta, sizes)
            moved = [k.clone_with_theta(t) for k, t in zip(kernels, parts, strict=True)]
            K = covariance(moved, self.X)
            A = np.eye(3 * N) + K @ W
            return 0.5 * nu @ np.linalg.solve(A, K @ nu) - 0.5 * np.linalg.slogdet(A)[1]

        prior = DensePrior(kernels, self.X, 3)
        q = prior.condition(sites)
        theta = np.concatenate([k.theta for k in kernels])
        got = prior.pullback(Adjoint(alpha=q.alpha, conditioned=q))
        assert_allclose(got, central_difference(log_mass, theta, 1e-3), rtol=1e-6, atol=1e-8)


def test_the_mean_is_accurate_at_precise_and_at_flat_sites():
    """With precisions from 0 to 1e24: alpha = (I + T K)⁻¹ nu in 60 digits."""
    X, kernel = np.linspace(0.0, 5.0, 6)[:, None], 100.0 * RBF(1.0)
    tau = np.array([1e24, 0.5, 0.0, 1e20, 1e-12, 3.0])
    nu = np.array([-1e24, 1.0, -2.0, 1e20, 0.5, -1.0])
    q = DensePrior(kernel, X).condition(Sites(nu, tau))
    with mp.workdps(60):
        K = mp.matrix(matrix(kernel, X).tolist())
        alpha = mp.lu_solve(mp.eye(6) + mp.diag(tau.tolist()) * K, mp.matrix(nu.tolist()))
        mean = K * alpha
    np.testing.assert_allclose(q.alpha, np.array(alpha.tolist(), dtype=float)[:, 0], rtol=1e-9)
    np.testing.assert_allclose(q.mean, np.array(mean.tolist(), dtype=float)[:, 0], rtol=1e-9)


@pytest.mark.parametrize("kind", [Sites, CoupledSites])
def test_the_low_rank_preconditioner_solves_exactly_with_all_rows(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 2))
    K = (2.0 * RBF(0.5))(X)
    sites = kind(np.zeros((9, 3)), rng.uniform(0.1, 2.0, size=(9, 3)))
    x = rng.normal(size=(9, 3))
    y = low_rank_preconditioner([nystrom_root(K, 9)], sites)(x)
    back = y + sites.root_transposed(np.stack([K @ v for v in sites.root(y).T], axis=1))
    assert_allclose(back, x, atol=1e-6)
