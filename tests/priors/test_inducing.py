"""Inducing inputs whose residual variance is part of the prior, against the exact prior and dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import inputs_and_labels

from gpclass.core.protocols import Sites
from gpclass.inference import EP, VI, Laplace
from gpclass.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from gpclass.likelihoods import Logit, Probit
from gpclass.priors import DensePrior
from gpclass.priors.inducing import InducingPrior, greedy
from gpclass.testing import central_difference

TIGHT = {"laplace": Laplace(tol=1e-12), "ep": EP(tol=1e-11)}
KERNELS = {
    "rbf": 3.0 * RBF([0.8, 1.0, 2.0]),
    "matern": ConstantKernel(2.0) * Matern([1.0, 1.5, 0.7], nu=2.5) + ConstantKernel(0.5),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("likelihood", [Logit(), Probit()])
class TestAllInputsInducing:
    """With Z = X the approximation is none."""

    @pytest.mark.parametrize("method", TIGHT)
    def test_residual_in_the_prior(self, name, likelihood, method):
        X, y = inputs_and_labels()
        priors = DensePrior(KERNELS[name], X), InducingPrior(KERNELS[name], X, X.copy())
        exact, found = (TIGHT[method](prior, likelihood, y) for prior in priors)
        assert_allclose(found.evidence, exact.evidence, atol=1e-8)
        gradients = [p.pullback(r.adjoint()) for p, r in zip(priors, (exact, found), strict=True)]
        assert_allclose(gradients[1], gradients[0], atol=1e-6)
        new = inputs_and_labels(9, seed=1)[0]
        latents = [
            p.posterior(r.conditioned).latent(new) for p, r in zip(priors, (exact, found), strict=True)
        ]
        assert_allclose(latents[1], latents[0], atol=1e-6)


class TestFewInducingInputs:
    def test_conditioned_against_dense_algebra(self):
        X, _ = inputs_and_labels()
        prior = InducingPrior(3.0 * RBF([0.8, 1.0, 2.0]) + WhiteKernel(0.2), X, X[:7].copy())
        K = prior.A @ prior.A.T + np.diag(prior.residual)
        rng = np.random.default_rng(1)
        sites = Sites(nu=rng.normal(size=40), tau=10.0 ** rng.uniform(-3.0, 2.0, 40))
        q = prior.condition(sites)
        cov = np.linalg.inv(np.linalg.inv(K) + np.diag(sites.tau))
        assert_allclose(K.diagonal(), 3.2)
        assert_allclose(q.mean, cov @ sites.nu, atol=1e-8)
        assert_allclose(q.var, cov.diagonal(), rtol=1e-7)
        assert_allclose(q.inverse_diagonal, 1.0 - sites.tau * cov.diagonal(), atol=1e-8)
        s = np.sqrt(sites.tau)
        B = np.eye(40) + s[:, None] * K * s
        assert_allclose(q.half_logdet, 0.5 * np.linalg.slogdet(B)[1], rtol=1e-10)
        r = rng.normal(size=40)
        assert_allclose(q.reduce(r), np.linalg.solve(np.eye(40) + sites.tau[:, None] * K, r), atol=1e-8)
        d, Kd = prior.solve(Sites(nu=r, tau=sites.tau), 1e-9)
        assert_allclose(d + sites.tau * (K @ d), r, atol=1e-8)
        assert_allclose(Kd, K @ d, atol=1e-8)

    @pytest.mark.parametrize("method", [Laplace(tol=1e-12), EP(tol=1e-12), VI(tol=1e-11)])
    def test_gradient_with_the_residual_in_the_prior(self, method):
        X, y = inputs_and_labels()
        kernel, Z = 3.0 * RBF([0.8, 1.0, 2.0]) + WhiteKernel(0.1), X[:9].copy()

        def evidence(theta):
            return method(InducingPrior(kernel.clone_with_theta(theta), X, Z), Probit(), y).evidence

        prior = InducingPrior(kernel, X, Z)
        gradient = prior.pullback(method(prior, Probit(), y).adjoint())
        assert_allclose(gradient, central_difference(evidence, kernel.theta, 1e-3), rtol=1e-6, atol=1e-7)


class TestGreedy:
    def test_it_leaves_little_over(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(500, 2))
        kernel = 2.0 * RBF(1.0)
        chosen, share = greedy(kernel, X, 40, rng)
        K = kernel(X, X[chosen])
        left = 2.0 - np.einsum("ij,ji->i", K, np.linalg.solve(kernel(X[chosen]) + 1e-10 * np.eye(40), K.T))
        assert_allclose(share, left.mean() / 2.0, atol=1e-5)
        at_random = rng.permutation(500)[:40]
        K = kernel(X, X[at_random])
        inner = np.linalg.solve(kernel(X[at_random]) + 1e-10 * np.eye(40), K.T)
        assert left.mean() < 0.3 * (2.0 - np.einsum("ij,ji->i", K, inner)).mean()
        assert len(set(chosen.tolist())) == 40

    def test_it_stops_where_nothing_is_left(self):
        rng = np.random.default_rng(0)
        X = np.repeat(rng.normal(size=(7, 2)), 20, axis=0)
        chosen, share = greedy(RBF(1.0) + WhiteKernel(0.5), X, 50, rng)
        assert len(chosen) == 7
        assert share < 1e-9

    def test_tolerance(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(2000, 2))
        few, share = greedy(RBF(1.0), X, 500, rng, tol=1e-3)
        assert len(few) < 100
        assert share <= 1e-3
