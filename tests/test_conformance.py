"""Everything public passes the public checks, and nothing public is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import part_checks
import pytest
from gaussian import Gaussian
from problems import margin_covariance, three_classes, two_moons_like
from scipy.linalg import block_diag

import gpclass.kernels
import gpclass.posteriors
import gpclass.priors
from gpclass import testing
from gpclass.core.registry import parts
from gpclass.inference import EP, VI, Dirichlet, Laplace
from gpclass.kernels import (
    RBF,
    Columns,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    GaussianUnits,
    Grouped,
    Linear,
    Matern,
    NeuralNetwork,
    PairwiseKernel,
    Product,
    RationalQuadratic,
    Sum,
    Warped,
    WhiteKernel,
    matrix,
)
from gpclass.likelihoods import CLogLog, LabelNoise, Logit, MultiProbit, Ordinal, Probit, Softmax
from gpclass.mcmc import HMC, BlockMetropolis, EllipticalSlice
from gpclass.posteriors.mixture import Component, MixtureProcess
from gpclass.posteriors.process import Process
from gpclass.priors import DensePrior, Prior
from gpclass.priors.inducing import InducingPrior, make_basis, process
from gpclass.priors.margins import MarginPrior
from gpclass.testing import BINARY, check_terms

KERNELS = [
    RBF([0.7, 2.0]),
    Matern(0.7, nu=0.5),
    Matern([0.7, 1.5], nu=1.5),
    Matern([0.7, 1.5], nu=2.5),
    Matern(1.2, nu=np.inf),
    Matern(1.2, nu=0.9),
    RationalQuadratic(0.8, 1.5),
    Columns(ExpSineSquared(1.3, 2.0), [0]),  # a covariance on the line only
    Grouped(RBF(0.7) * Linear([1.0, 2.0]), [0, 1]),
    Warped(RBF([0.7, 2.0]), "asinh", [0.1, 0.2], [0.5, 0.0], [0.0, 0.0], [1.0, 1.0]),
    Warped(RBF([0.7, 2.0]), "yeo-johnson", [0.1, 0.2], [0.5, 0.7], [0.0, 0.0], [1.0, 1.0], [0.5, 3.0]),
    WhiteKernel(0.5),
    PairwiseKernel(0.5, metric="rbf"),
    Linear(),
    NeuralNetwork(),
    GaussianUnits(),
    2.0 * RBF([0.7, 2.0]) + WhiteKernel(0.1),
    Sum(RBF(0.5), DotProduct(1.0)),
    Product(RBF(0.5), Matern(2.0, nu=2.5)),
    Exponentiation(RBF(0.5) + DotProduct(1.0), 2.0),
    ConstantKernel(2.0) * RBF(0.7, "fixed"),
]
# Not covariance functions of one process by themselves.
NOT_KERNELS = {"Kernel", "FormulaKernel", "KernelOperator", "Hyperparameter", CompoundKernel.__name__}
ROWS = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.2, 0.5, 0.3]])
LIKELIHOODS = {
    Logit(): BINARY,
    Probit(): BINARY,
    CLogLog(): BINARY,
    LabelNoise(rate=0.1): BINARY,
    Ordinal(widths=(0.7, 2.0)): np.array([-1.0, 1.0, 3.0, 5.0]),
    Softmax(): ROWS,
    MultiProbit(): ROWS,
}
METHODS = [
    (Laplace(tol=1e-12), LabelNoise(rate=0.1)),
    (EP(tol=1e-10), Probit()),
    (VI(tol=1e-10), Logit()),
]
ELSEWHERE = {
    "dirichlet": "tests/inference/test_dirichlet.py",
    "mcmc": "tests/mcmc",
    "rejection": "tests/sampling",
}  # methods of several latent functions only, or without sites, and where they are tested
SAMPLERS = [HMC(), EllipticalSlice(whiten=None), BlockMetropolis()]
KERNEL = 2.0 * RBF([0.7, 2.0]) + WhiteKernel(0.1)
X = two_moons_like(9)[0]
CLASSES = three_classes(9)[1]


def fitc(kernel):
    """Return the covariance of `InducingPrior` by its formula."""
    A, Kuu = kernel(X, X[:4]), kernel(X[:4], X[:4].copy())
    Q = A @ np.linalg.solve(Kuu, A.T)
    return Q + np.diag(kernel.diag(X) - Q.diagonal())


PRIORS = {
    "one function": (DensePrior, {}),
    "inducing inputs": (
        lambda kernel, X: InducingPrior(kernel, X, X[:4].copy(), jitter=1e-13), {"covariance": fitc, "rtol": 1e-6}
    ),
    "several functions": (
        lambda kernel, X: DensePrior(kernel, X, 3),
        {"covariance": lambda kernel: block_diag(*[matrix(kernel, X)] * 3)},
    ),
    "coupled sites": (
        lambda kernel, X: DensePrior(kernel, X, 3),
        {"covariance": lambda kernel: block_diag(*[matrix(kernel, X)] * 3), "coupled": True, "rtol": 1e-6},
    ),
    "one factorisation": (
        lambda kernel, X: DensePrior(kernel, X, 3, shared=True),
        {"covariance": lambda kernel: block_diag(*[matrix(kernel, X)] * 3), "tau": 0.2 + np.eye(3)[CLASSES]},
    ),
    "margins": (
        lambda kernel, X: MarginPrior(kernel, X, 3, CLASSES),
        {"covariance": lambda kernel: margin_covariance([matrix(kernel, X)] * 3, CLASSES)[0], "rtol": 1e-6},
    ),
}  # fmt: skip


def gaussian_process(kernel=KERNEL):
    prior = DensePrior(kernel, X)
    return prior.posterior(Laplace()(prior, Logit(), np.where(CLASSES == 1, 1.0, -1.0)).conditioned)


def coupled_functions():
    prior = DensePrior(KERNEL, X, 3)
    return prior.posterior(Laplace()(prior, Softmax(), np.eye(3)[CLASSES]).conditioned)


def one_factorisation():
    prior = DensePrior(KERNEL, X, 3, shared=True)
    result = Dirichlet(0.01)(prior, Softmax(), np.eye(3)[CLASSES])
    return replace(prior.posterior(result.conditioned), offset=result.offset)


def inducing_inputs():
    rng = np.random.default_rng(0)
    basis = make_basis(KERNEL, X[:5].copy(), 1e-9)
    roots = rng.normal(size=(3, 5, 5))
    return process(
        basis, np.eye(5) + roots @ roots.swapaxes(1, 2), rng.normal(size=(5, 3)), rng.normal(size=3)
    )


def independent_functions():
    prior = DensePrior([KERNEL, 2.0 * RBF(1.3), KERNEL], X, 3)
    return prior.posterior(VI()(prior, Softmax(), np.eye(3)[CLASSES]).conditioned)


def mixture_process():
    rng = np.random.default_rng(3)
    weight = rng.dirichlet(np.ones(7))
    first = Component(2.0 * RBF(0.7), rng.normal(size=(3, 9)), weight[:3])
    second = Component(5.0 * RBF(1.1), 2.0 * rng.normal(size=(4, 9)), weight[3:])
    return MixtureProcess(X, (first, second))


POSTERIORS = {
    "one function": gaussian_process,
    "coupled functions": coupled_functions,
    "independent functions": independent_functions,
    "inducing inputs": inducing_inputs,
    "one factorisation": one_factorisation,
    "mixture": mixture_process,
}


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels(kernel):
    testing.check_kernel(kernel, two_moons_like(6)[0], two_moons_like(4, seed=1)[0])


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_likelihoods(likelihood):
    testing.check_likelihood(likelihood, LIKELIHOODS[likelihood])


def test_the_conjugate_likelihood():
    y, f = np.resize([-1.0, 0.3, 2.0], 12), np.linspace(-3.0, 3.0, 12)
    check_terms(Gaussian(0.4), y, f, np.resize([0.1, 2.0], 12))


@pytest.mark.parametrize("name", PRIORS)
def test_priors(name):
    make, options = PRIORS[name]
    part_checks.check_prior(make, KERNEL, X, **options)


def test_a_prior_that_is_not_stationary():
    part_checks.check_prior(DensePrior, Matern(1.0) * DotProduct(1.0), two_moons_like(40)[0])


@pytest.mark.parametrize(("method", "likelihood"), METHODS, ids=repr)
def test_methods(method, likelihood):
    inputs, y = two_moons_like(12)
    part_checks.check_inference(method, likelihood, 2.0 * RBF([0.7, 2.0]), inputs, y)


@pytest.mark.parametrize("name", POSTERIORS)
def test_posteriors(name):
    part_checks.check_posterior(POSTERIORS[name](), two_moons_like(4, seed=2)[0], rtol=1e-6)


def test_a_posterior_that_is_not_stationary():
    part_checks.check_posterior(gaussian_process(DotProduct(1.0) ** 2), two_moons_like(4, seed=2)[0])


@pytest.mark.parametrize("sampler", SAMPLERS, ids=repr)
def test_samplers(sampler):
    inputs = np.array([[0.0], [0.7], [2.0]])
    part_checks.check_sampler(sampler, Logit(), matrix(4.0 * RBF(1.0), inputs), np.array([1.0, 1.0, -1.0]))


def _public(module, base=object):
    found = (getattr(module, name) for name in module.__all__)
    return {item.__name__ for item in found if isinstance(item, type) and issubclass(item, base)}


def _used(kernel):
    yield type(kernel).__name__
    for child in kernel.get_params(deep=False).values():
        if isinstance(child, gpclass.kernels.Kernel):
            yield from _used(child)


def _ours(kind):
    """Return the names of the registered classes of gpclass; other tests may have added theirs."""
    return {
        name for name, cls in parts(kind).items() if cls.__module__.startswith("gpclass.") and name[0] != "_"
    }


def test_nothing_public_is_left_out():
    kernels = {name for kernel in KERNELS for name in _used(kernel)}
    public = _public(gpclass.kernels, gpclass.kernels.Kernel) - NOT_KERNELS
    assert public <= kernels, f"not checked: {public - kernels}"
    assert _ours("likelihood") == {type(item).name for item in LIKELIHOODS}
    assert _ours("inference") == {type(item).name for item, _ in METHODS} | set(ELSEWHERE)
    assert _ours("sampler") == {type(item).name for item in SAMPLERS}
    made = {
        Prior: [make(KERNEL, X) for make, _ in PRIORS.values()],
        Process: [make() for make in POSTERIORS.values()],
    }
    for base, instances in made.items():
        names = {cls.__name__ for cls in base.__subclasses__() if cls.__module__.startswith("gpclass.")}
        assert names == {type(each).__name__ for each in instances}


def test_the_checks_can_fail(monkeypatch):
    few, _ = two_moons_like(6)
    cases = [
        (testing, "matrix", gpclass.kernels.matrix, lambda: testing.check_kernel(RBF(0.7), few)),
        (testing, "pullback", gpclass.kernels.pullback, lambda: testing.check_kernel(RBF(0.7), few)),
        (Logit, "third", Logit.third, lambda: testing.check_likelihood(Logit())),
        (Probit, "log_predict", Probit.log_predict, lambda: testing.check_likelihood(Probit(), [1.0])),
        (
            DensePrior,
            "multiply",
            DensePrior.multiply,
            lambda: part_checks.check_prior(DensePrior, RBF(0.7), few),
        ),
        (
            DensePrior,
            "pullback",
            DensePrior.pullback,
            lambda: part_checks.check_prior(DensePrior, RBF(0.7), few),
        ),
    ]
    for owner, name, right, check in cases:
        check()
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, lambda *a, right=right, **k: 1.001 * right(*a, **k))
            with pytest.raises(AssertionError):
                check()
