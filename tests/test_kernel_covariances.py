"""Kernels nobody registered, structured inputs, precision and memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import GenericKernelMixin, Hyperparameter, StationaryKernelMixin

import gpclass.kernels as kernels
from gpclass import GaussianProcessClassifier
from gpclass.kernels import (
    RBF,
    Columns,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    GaussianUnits,
    Kernel,
    Matern,
    NeuralNetwork,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
    diag,
    matrix,
    pullback,
    pullback_diag,
)
from gpclass.kernels.base import by_differences, formulas_of

STEP = np.finfo(float).eps ** (1 / 3)


class Overlap(GenericKernelMixin, StationaryKernelMixin, Kernel):
    """A kernel of words: shared letters count 1, others ``weight``."""

    def __init__(self, weight=0.5, weight_bounds=(1e-5, 1.0)):
        self.weight = weight
        self.weight_bounds = weight_bounds

    @property
    def hyperparameter_weight(self):
        return Hyperparameter("weight", "numeric", self.weight_bounds)

    def __call__(self, X, Y=None, eval_gradient=False):
        same = np.array([[sum(a == b for a in x for b in y) for y in (X if Y is None else Y)] for x in X])
        total = np.array([[len(x) * len(y) for y in (X if Y is None else Y)] for x in X])
        K = same + self.weight * (total - same)
        if not eval_gradient:
            return K
        free = not self.hyperparameter_weight.fixed
        return K, (self.weight * (total - same))[:, :, None][..., : int(free)]

    def diag(self, X):
        return np.array([self([x])[0, 0] for x in X])


class NoGradient(Overlap):
    """The same, unable to differentiate itself."""

    def __call__(self, X, Y=None):
        return super().__call__(X, Y)


class Cubed(RBF):
    """A user's kernel that inherits from RBF and is another function."""

    def __call__(self, X, Y=None, eval_gradient=False):
        if eval_gradient:
            K, gradient = super().__call__(X, eval_gradient=True)
            return K**3, 3 * K[..., None] ** 2 * gradient
        return super().__call__(X, Y) ** 3


class Renamed(RBF):
    """A subclass that is still an RBF."""


WORDS = ["gauss", "process", "class", "laplace", "kernel", "probit", "logit"]
OTHERS = ["site", "evidence", "gauss"]


def differences(kernel, value):
    theta = kernel.theta
    up = [value(kernel.clone_with_theta(theta + STEP * e)) for e in np.eye(len(theta))]
    down = [value(kernel.clone_with_theta(theta - STEP * e)) for e in np.eye(len(theta))]
    return (np.array(up) - np.array(down)) / (2 * STEP)


@pytest.mark.parametrize("word_kernel", [Overlap(), NoGradient(), Overlap(0.3, "fixed")])
@pytest.mark.parametrize("wrap", [lambda k: k, lambda k: 2.0 * k + WhiteKernel(0.3), lambda k: (k * k) ** 2])
@pytest.mark.parametrize("box", [list, lambda words: np.array(words, dtype=object)])
def test_words(word_kernel, wrap, box):
    kernel = wrap(word_kernel)
    X, Z = box(WORDS), box(OTHERS)
    rng = np.random.default_rng(0)
    G, square = rng.standard_normal((7, 3)), rng.standard_normal((7, 7))
    np.testing.assert_allclose(matrix(kernel, X), kernel(X), rtol=1e-14)
    np.testing.assert_allclose(matrix(kernel, X, Z), kernel(X, Z), rtol=1e-14)
    np.testing.assert_allclose(diag(kernel, X), kernel.diag(X), rtol=1e-14)
    for got, value in (
        (pullback(kernel, X, Z, G), lambda k: np.sum(G * k(X, Z))),
        (pullback(kernel, X, None, square), lambda k: np.sum(square * k(X))),
        (pullback_diag(kernel, X, G[:, 0]), lambda k: G[:, 0] @ k.diag(X)),
    ):
        np.testing.assert_allclose(got, differences(kernel, value), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("box", [list, lambda words: np.array(words, dtype=object)])
def test_variances_of_words_are_learned(box):
    X, y = box(["aab", "abb", "bba", "aba", "xxy", "xyy", "yyx", "yxy"]), np.array([0, 0, 1, 0, 1, 1, 0, 1])
    kernel = 0.1 * Overlap(1e-5, "fixed")
    start = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
    clf = GaussianProcessClassifier(kernel).fit(X, y)
    assert clf.log_marginal_likelihood_value_ > start.log_marginal_likelihood_value_


@pytest.mark.parametrize(
    "wrap", [lambda k: k, lambda k: 2.0 * k, lambda k: k + RBF(), lambda k: Columns(k, [0])]
)
def test_a_subclass_with_its_own_call_is_another_kernel(wrap):
    rng = np.random.default_rng(0)
    X, Z, G = rng.standard_normal((9, 2)), rng.standard_normal((5, 2)), rng.standard_normal((9, 5))
    kernel = wrap(Cubed(1.3))
    np.testing.assert_allclose(matrix(kernel, X), kernel(X), rtol=1e-12)
    np.testing.assert_allclose(matrix(kernel, X, Z), kernel(X, Z), rtol=1e-12)
    expected = differences(kernel, lambda k: np.sum(G * k(X, Z)))
    np.testing.assert_allclose(pullback(kernel, X, Z, G), expected, rtol=1e-6)


def test_a_subclass_that_changes_nothing_stays_fast():
    assert formulas_of(Renamed()) is formulas_of(RBF())
    assert formulas_of(Matern()) is not formulas_of(RBF())
    assert formulas_of(Cubed()) is by_differences


def test_metrics_that_are_functions():
    def metric(x, z, gamma=1.0):
        return np.exp(-gamma * np.abs(x - z).sum()) + gamma * x @ z

    rng = np.random.default_rng(0)
    X, Z, G = rng.standard_normal((9, 2)), rng.standard_normal((5, 2)), rng.standard_normal((9, 5))
    kernel = 2.0 * PairwiseKernel(0.7, metric=metric)
    np.testing.assert_allclose(matrix(kernel, X), kernel(X), rtol=1e-13)
    expected = differences(kernel, lambda k: np.sum(G * k(X, Z)))
    np.testing.assert_allclose(pullback(kernel, X, Z, G), expected, rtol=1e-6)
    expected = differences(kernel, lambda k: np.sum(G[:, 0] * np.diagonal(k(X))))
    np.testing.assert_allclose(pullback_diag(kernel, X, G[:, 0]), expected, rtol=1e-6)


def test_a_set_of_kernels_is_not_a_kernel():
    with pytest.raises(ValueError, match="one number for each pair"):
        matrix(CompoundKernel([RBF(), Matern()]), np.zeros((3, 2)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="one number for each pair"):
        matrix(CompoundKernel([RBF(), Matern()]), np.zeros((3, 2)))


# --------------------------------------------------------------------------- precision

SINGLE = [
    2.0 * RBF([1.0, 2.0, 0.5, 1.0]) + WhiteKernel(0.1),
    Matern(nu=0.5),
    1.5 * Matern() + 0.3,
    Matern(nu=1.7),
    RationalQuadratic(),
    ExpSineSquared(1.0, 3.0),
    DotProduct() ** 2,
    NeuralNetwork() * GaussianUnits(),
    Columns(RBF(), [0, 2]) * RBF(),
    PairwiseKernel(metric="polynomial"),
    ConstantKernel(2.0),
    WhiteKernel(),
]


@pytest.mark.parametrize("kernel", SINGLE, ids=[str(k) for k in SINGLE])
def test_single_precision(kernel):
    rng = np.random.default_rng(0)
    X, Z, G = rng.standard_normal((30, 4)), rng.standard_normal((20, 4)), rng.standard_normal((30, 20))
    X, Z = X.astype(np.float32), Z.astype(np.float32)
    K = matrix(kernel, X, Z)
    assert K.dtype == matrix(kernel, X).dtype == diag(kernel, X).dtype == np.float32
    exact = kernel(X.astype(float), Z.astype(float))
    np.testing.assert_allclose(K, exact, rtol=1e-4, atol=3e-5)
    assert matrix(kernel, X, Z.astype(float)).dtype == np.float64
    expected = differences(kernel, lambda k: np.sum(G * k(X.astype(float), Z.astype(float))))
    got = pullback(kernel, X, Z, G.astype(np.float32))
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(pullback(kernel, X, Z, G, K=K), expected, rtol=1e-4, atol=1e-3)
    assert pullback_diag(kernel, X, G[:, 0]).dtype == np.float64


# ------------------------------------------------------------------------------ memory


@pytest.mark.parametrize(
    "kernel", [2.0 * RBF(np.ones(20)), 2.0 * Matern(np.ones(20), nu=0.5) + WhiteKernel(), Cubed(np.ones(20))]
)
def test_pullback_has_no_array_of_all_pairs(kernel):
    n, d = (1500, 20) if not isinstance(kernel, Cubed) else (800, 20)
    rng = np.random.default_rng(0)
    X, G = rng.standard_normal((n, d)), np.ones((n, n))
    K = matrix(kernel, X)
    tracemalloc.start()
    pullback(kernel, X, None, G, K=K)
    matrix(kernel, X, out=K)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (0.75 * K.nbytes if n == 1500 else 0.2 * K.nbytes * d)


def test_everything_public_is_here():
    import sklearn.gaussian_process.kernels as theirs

    public = {
        name
        for name, value in vars(theirs).items()
        if isinstance(value, type) and value.__module__ == theirs.__name__ and not name.startswith("_")
    }
    assert public <= set(kernels.__all__)
    assert all(hasattr(kernels, name) for name in kernels.__all__)
