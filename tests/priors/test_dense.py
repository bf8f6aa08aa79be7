"""The dense prior: digits where the covariance is singular."""

from __future__ import annotations

import mpmath as mp
import numpy as np
from numpy.testing import assert_allclose

from gpclass.core.protocols import Sites
from gpclass.kernels import RBF, matrix
from gpclass.priors import DensePrior


def test_a_singular_covariance_costs_no_digits():
    """Sixty digits of mean, variance and determinant, where K⁻¹ has none left in double precision."""
    rng = np.random.default_rng(0)
    X, Z = np.linspace(0.0, 1.0, 20)[:, None], np.array([[0.33], [1.4]])
    kernel = 4.0 * RBF(1.0)
    tau, nu = rng.uniform(0.05, 0.25, 20), rng.normal(size=20)
    assert np.linalg.cond(matrix(kernel, X)) > 1e16
    prior = DensePrior(kernel, X)
    q = prior.condition(Sites(nu=nu, tau=tau))
    mean, var, half_logdet = q.mean.copy(), q.var().copy(), q.half_logdet
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
