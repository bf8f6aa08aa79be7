"""Passes with inducing inputs against variational inference on all rows, differences and regression."""

from __future__ import annotations

import numpy as np
import pytest
from gaussian import Gaussian
from numpy.testing import assert_allclose
from problems import inputs_and_labels, many_rows

from gpclass.data.rows import Rows
from gpclass.inference import VI
from gpclass.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from gpclass.likelihoods import Logit, Probit, Softmax
from gpclass.priors import DensePrior
from gpclass.priors.inducing import make_basis, process
from gpclass.sparse.engine import Engine

KERNELS = {
    "rbf": 3.0 * RBF([0.8, 1.0, 2.0]),
    "matern": ConstantKernel(2.0) * Matern([1.0, 1.5, 0.7], nu=2.5) + ConstantKernel(0.5),
}


def differences(f, x, whole=None, step=1e-5):
    """Return central differences; ``x`` may be the first entries of a larger argument."""
    out = np.empty(len(x))
    for i in range(len(x)):
        up, down = (np.array(x if whole is None else whole.ravel(), dtype=float) for _ in range(2))
        up[i] += step
        down[i] -= step
        out[i] = (f(up) - f(down)) / (2.0 * step)
    return out


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("likelihood", [Logit(), Probit()])
class TestAllInputsInducing:
    """With Z = X the approximation is none."""

    def test_variational(self, name, likelihood):
        X, y = inputs_and_labels()
        kernel = KERNELS[name]
        fit = Engine(Rows(X, y), likelihood, dtype=np.float64).converge(
            make_basis(kernel, X.copy(), 1e-12), tol=1e-13, gradient=True
        )
        prior = DensePrior(kernel, X)
        exact = VI(tol=1e-10)(prior, likelihood, y)
        assert_allclose(fit.bound, exact.evidence, atol=1e-8)
        assert_allclose(fit.gradient, prior.pullback(exact.adjoint()), atol=1e-6)
        new = inputs_and_labels(9, seed=1)[0]
        expected = prior.posterior(exact.conditioned).latent(new)
        found = process(fit.basis, fit.q.P, fit.q.mean)
        assert_allclose(found.latent(new), expected, atol=1e-6)


class TestFewInducingInputs:
    def test_sites_of_another_basis_give_the_same_end(self):
        """From other hyperparameters and other inducing inputs, q starts closer than from the prior."""
        X, y = many_rows(400)
        before, here = (
            make_basis(3.0 * RBF(s), X[i : i + 30].copy(), 1e-9) for s, i in ((1.2, 0), (1.0, 30))
        )
        engine = Engine(Rows(X, y), Logit(), dtype=np.float64)
        other = engine.converge(before, tol=1e-9)
        many = {"tol": 1e-9, "max_passes": 300}
        found, afresh = engine.converge(here, other, **many), engine.converge(here, **many)
        assert_allclose(found.bound, afresh.bound, atol=1e-4)
        first = engine.converge(here, other, max_passes=1)
        assert afresh.bound - first.bound < 0.05 * (afresh.bound - engine.converge(here, max_passes=1).bound)

    @pytest.mark.parametrize("weight", [None, np.arange(40) % 3 + 0.5])
    def test_gradient_of_the_bound(self, weight):
        X, y = inputs_and_labels()
        kernel, Z = 3.0 * RBF([0.8, 1.0, 2.0]) + WhiteKernel(0.1), X[:8].copy()
        engine = Engine(Rows(X, y, weight), Logit(), dtype=np.float64)

        def at(theta, Z):
            basis = make_basis(kernel.clone_with_theta(theta), Z, 1e-9)
            return engine.converge(basis, tol=1e-14, gradient=True)

        fit = at(kernel.theta, Z)
        assert_allclose(
            fit.gradient, differences(lambda t: at(t, Z).bound, kernel.theta), rtol=1e-6, atol=1e-6
        )

    def test_more_never_lower_the_bound(self):
        X, y = inputs_and_labels(60)
        bounds = []
        for m in (1, 3, 8, 20, 60):
            basis = make_basis(KERNELS["rbf"], X[:m].copy(), 1e-10)
            bounds.append(Engine(Rows(X, y), Probit(), dtype=np.float64).converge(basis, tol=1e-11).bound)
        assert (np.diff(bounds) > -1e-8).all()
        assert bounds[-1] <= VI(tol=1e-9)(DensePrior(KERNELS["rbf"], X), Probit(), y).evidence + 1e-7

    def test_gaussian_likelihood_is_the_collapsed_bound_of_regression(self):
        X, _ = inputs_and_labels()
        y, noise = np.sin(X[:, 0]), 0.3
        kernel, Z = KERNELS["rbf"], X[:9].copy()
        basis = make_basis(kernel, Z, 1e-12)
        fit = Engine(Rows(X, y), Gaussian(noise), dtype=np.float64).converge(basis, tol=1e-12)
        K_fu, K_uu = kernel(X, Z), kernel(Z)
        Q = K_fu @ np.linalg.solve(K_uu, K_fu.T)
        S = Q + noise * np.eye(40)
        log_density = -0.5 * (y @ np.linalg.solve(S, y) + np.linalg.slogdet(S)[1] + 40 * np.log(2.0 * np.pi))
        assert_allclose(fit.bound, log_density - np.trace(kernel(X) - Q) / (2.0 * noise), rtol=1e-7)

    def test_single_precision(self):
        X, y = many_rows(3000)
        y = 2.0 * y - 1.0
        basis = make_basis(4.0 * RBF(1.0), X[:60].copy())
        bounds = [
            Engine(Rows(X, y), Logit(), dtype=dtype).converge(basis, tol=1e-3).bound
            for dtype in (np.float32, np.float64)
        ]
        assert_allclose(*bounds, rtol=2e-5)


def test_two_classes_of_softmax_with_the_doubled_kernel_are_logit():
    # q is independent over classes, so that the bound is lower: the means agree where nothing is bound.
    X, y = inputs_and_labels()
    labels = np.stack([y < 0, y > 0], axis=1).astype(float)
    basis = make_basis(KERNELS["rbf"], X.copy(), 1e-10)
    two = Engine(Rows(X, labels), Softmax(), 2, np.float64).converge(basis, tol=1e-9, max_passes=300)
    doubled = make_basis(6.0 * RBF([0.8, 1.0, 2.0]), X.copy(), 1e-10)
    one = Engine(Rows(X, y), Logit(), 1, np.float64).converge(doubled, tol=1e-9)
    assert two.gap < 1e-9
    assert two.bound <= one.bound + 1e-8
    assert_allclose(two.q.mean.sum(axis=1), 0.0, atol=1e-5)
