"""Everything public passes the public checks, and nothing public is left out."""

from __future__ import annotations

import numpy as np
import pytest
from problems import two_moons_like

import gpclass.inference
import gpclass.kernels
import gpclass.priors
from gpclass import testing
from gpclass.inference import EP, VI, Laplace
from gpclass.kernels import (
    RBF,
    Columns,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    GaussianUnits,
    Matern,
    NeuralNetwork,
    PairwiseKernel,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)
from gpclass.likelihoods import Gaussian, Logit, Probit
from gpclass.priors import DensePrior

KERNELS = [
    RBF(0.7),
    RBF([0.7, 2.0]),
    Matern(0.7, nu=0.5),
    Matern([0.7, 1.5], nu=1.5),
    Matern([0.7, 1.5], nu=2.5),
    Matern(1.2, nu=np.inf),
    Matern(1.2, nu=0.9),
    RationalQuadratic(0.8, 1.5),
    Columns(ExpSineSquared(1.3, 2.0), [0]),  # a covariance on the line only
    DotProduct(0.7),
    ConstantKernel(2.0),
    WhiteKernel(0.5),
    PairwiseKernel(0.5, metric="rbf"),
    NeuralNetwork(),
    GaussianUnits(),
    Columns(RBF(0.7), [1]),
    2.0 * RBF([0.7, 2.0]) + WhiteKernel(0.1),
    Sum(RBF(0.5), DotProduct(1.0)),
    Product(RBF(0.5), Matern(2.0, nu=2.5)),
    Exponentiation(RBF(0.5) + DotProduct(1.0), 2.0),
    1.0 * RBF(0.7, "fixed"),
]
LIKELIHOODS = [(Gaussian(0.4), [-1.0, 0.3, 2.0])]  # class likelihoods: tests/likelihoods/test_base.py
METHODS = [Laplace(tol=1e-12), EP(tol=1e-10), VI(tol=1e-10), VI("ep", tol=1e-10)]
PRIORS = [DensePrior]
# Kernels that are no covariance functions of one process by themselves.
NOT_KERNELS = {"Kernel", "FormulaKernel", "KernelOperator", "Hyperparameter", CompoundKernel.__name__}


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels(kernel):
    X, _ = two_moons_like(7)
    testing.check_kernel(kernel, X, two_moons_like(5, seed=1)[0])


@pytest.mark.parametrize(("likelihood", "labels"), LIKELIHOODS, ids=lambda v: repr(v)[:12])
def test_likelihoods(likelihood, labels):
    testing.check_likelihood(likelihood, labels)


@pytest.mark.parametrize("make", PRIORS)
@pytest.mark.parametrize(
    "kernel", [2.0 * RBF([0.7, 2.0]) + WhiteKernel(0.1), Matern(1.0) * DotProduct(1.0)], ids=str
)
def test_priors(make, kernel):
    testing.check_prior(make, kernel, two_moons_like(40)[0])


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("likelihood", [Logit(), Probit()], ids=repr)
def test_methods(method, likelihood):
    X, y = two_moons_like(14)
    testing.check_inference(method, likelihood, 2.0 * RBF([0.7, 2.0]), X, y)


@pytest.mark.parametrize("kernel", [2.0 * RBF([0.7, 2.0]), DotProduct(1.0) ** 2], ids=str)
def test_posteriors(kernel):
    X, y = two_moons_like(20)
    prior = DensePrior(kernel, X)
    posterior = prior.posterior(Laplace()(prior, Logit(), y).conditioned)
    testing.check_posterior(posterior, two_moons_like(5, seed=2)[0])


def _classes(module, base=object):
    found = (getattr(module, name) for name in module.__all__)
    return {item.__name__ for item in found if isinstance(item, type) and issubclass(item, base)}


def _used(kernel):
    yield type(kernel).__name__
    for child in kernel.get_params(deep=False).values():
        if isinstance(child, gpclass.kernels.Kernel):
            yield from _used(child)


def test_nothing_public_is_left_out():
    kernels = {name for kernel in KERNELS for name in _used(kernel)}
    public = _classes(gpclass.kernels, gpclass.kernels.Kernel) - NOT_KERNELS
    assert public <= kernels, f"not checked: {public - kernels}"
    assert _classes(gpclass.inference) == {type(item).__name__ for item in METHODS}
    assert _classes(gpclass.priors) - {"NotPositiveError"} == {item.__name__ for item in PRIORS}


def test_the_checks_can_fail(monkeypatch):
    X, _ = two_moons_like(6)
    cases = [
        (testing, "matrix", gpclass.kernels.matrix, lambda: testing.check_kernel(RBF(0.7), X)),
        (testing, "pullback", gpclass.kernels.pullback, lambda: testing.check_kernel(RBF(0.7), X)),
        (Logit, "third", Logit.third, lambda: testing.check_likelihood(Logit(), [-1.0, 1.0])),
        (Probit, "log_predict", Probit.log_predict, lambda: testing.check_likelihood(Probit(), [1.0])),
        (DensePrior, "multiply", DensePrior.multiply, lambda: testing.check_prior(DensePrior, RBF(0.7), X)),
        (DensePrior, "pullback", DensePrior.pullback, lambda: testing.check_prior(DensePrior, RBF(0.7), X)),
    ]
    for owner, name, right, check in cases:
        check()
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, lambda *a, right=right, **k: 1.001 * right(*a, **k))
            with pytest.raises(AssertionError):
                check()
