"""The kernels scikit-learn lacks: networks and chosen columns."""

from __future__ import annotations

import pickle

import mpmath
import numpy as np
import pytest
from scipy.special import erf
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor

from gpclass.kernels import (
    RBF,
    Columns,
    ConstantKernel,
    GaussianUnits,
    Linear,
    Matern,
    NeuralNetwork,
    WhiteKernel,
    bind_columns,
    diag,
    matrix,
    pullback,
    pullback_diag,
)

STEP = np.finfo(float).eps ** (1 / 3)
NEW = [
    NeuralNetwork(0.6, 2.3),
    Linear(0.7),
    Linear([2.3, 0.4, 11.0], centre=[1.0, -2.0, 30.0]),
    Linear([2.3, 0.4, 11.0], 0.5, "fixed"),
    NeuralNetwork(0.6, [2.3, 0.4, 11.0]),
    NeuralNetwork(0.6, [2.3, 0.4, 11.0], bias_variance_bounds="fixed"),
    NeuralNetwork(0.6, 2.3, weight_variance_bounds="fixed"),
    NeuralNetwork(1e-4, [1e-4, 1e3, 1.0]),
    NeuralNetwork(1e3, 1e3),
    GaussianUnits(0.8, 1.7),
    GaussianUnits(0.8, 1.7, unit_width_bounds="fixed"),
    GaussianUnits(0.8, 1.7, center_scale_bounds="fixed"),
    NeuralNetwork(0.6, 2.3, "fixed", "fixed"),
    GaussianUnits(0.8, 1.7, "fixed", "fixed"),
    GaussianUnits(1e-2, 10.0),
    GaussianUnits(30.0, 0.1),
    Columns(RBF([0.5, 2.0]), [2, 0]),
    Columns(Matern(0.7), 1),
    Columns(NeuralNetwork(), slice(0, 2)),
    Columns(2.0 * RBF(0.7) + WhiteKernel(0.1), np.array([True, False, True])),
    2.0 * Columns(RBF(), -1) * GaussianUnits() + Columns(NeuralNetwork(), [0]) ** 2 + WhiteKernel(0.2),
]
ids = [str(kernel) for kernel in NEW]


def data(seed=0, n=19, m=11):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 3)), rng.standard_normal((m, 3)), rng.standard_normal((n, m))


def differences(kernel, value):
    theta = kernel.theta
    up = [value(kernel.clone_with_theta(theta + STEP * e)) for e in np.eye(len(theta))]
    down = [value(kernel.clone_with_theta(theta - STEP * e)) for e in np.eye(len(theta))]
    return (np.array(up) - np.array(down)) / (2 * STEP)


# ------------------------------------------------------------------------------ values


@pytest.mark.parametrize(("bias", "weights"), [(0.3, [1.0, 2.0]), (4.0, [20.0, 0.1])])
def test_network_is_the_mean_product_of_erf_units(bias, weights):
    """Gauss-Hermite in each of the three weights u ~ N(0, Σ) of E[erf(u·x̃) erf(u·z̃)]."""
    X = np.array([[0.3, -0.2], [-0.5, 0.4], [0.1, 0.6]])
    nodes, mass = np.polynomial.hermite_e.hermegauss(100)
    mass = mass / mass.sum()
    scales = np.sqrt([bias, *weights])
    u = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 3) * scales
    w = (mass[:, None, None] * mass[:, None] * mass).ravel()
    units = erf(u @ np.column_stack([np.ones(3), X]).T)
    expected = (units * w[:, None]).T @ units
    tolerance = 1e-9 if bias < 1 else 1e-3  # steep units are hard for quadrature
    np.testing.assert_allclose(matrix(NeuralNetwork(bias, weights), X), expected, atol=tolerance)


def test_network_diagonal_in_many_digits():
    """Large and small variances, where asin(s / (1 + s)) loses digits."""
    x = np.array([[0.7]])
    for bias, weight in ((1e-5, 1e-5), (1.0, 1e5), (1e5, 1e5)):
        with mpmath.workdps(40):
            s = 2 * (mpmath.mpf(bias) + mpmath.mpf(weight) * mpmath.mpf(0.7) ** 2)
            truth = float(2 / mpmath.pi * mpmath.asin(s / (1 + s)))
        assert diag(NeuralNetwork(bias, weight), x)[0] == pytest.approx(truth, rel=1e-13)


@pytest.mark.parametrize(("width", "spread"), [(0.8, 1.7), (2.0, 0.5)])
def test_units_are_the_mean_product_of_bumps(width, spread):
    """E over centres u ~ N(0, s_u²) of two bumps, by quadrature in each column (they factorise)."""
    X, Z = data()[0], data()[1]

    def one_column(x, z):
        def integrand(u):
            exponent = -((x - u) ** 2 + (z - u) ** 2) / (2 * width**2) - u**2 / (2 * spread**2)
            return mpmath.exp(exponent) / (spread * mpmath.sqrt(2 * mpmath.pi))

        return float(mpmath.quad(integrand, [-mpmath.inf, -2, 0, 2, mpmath.inf]))

    for x, z in zip(X[:2], Z[:2], strict=True):
        mean = np.prod([one_column(a, b) for a, b in zip(x, z, strict=True)])
        s_e = 1 / np.sqrt(2 / width**2 + 1 / spread**2)
        got = matrix(GaussianUnits(width, spread), x[None], z[None])[0, 0]
        assert got * (s_e / spread) ** 3 == pytest.approx(mean, rel=1e-10)


def test_units_with_wide_centres_are_a_squared_exponential():
    X = data()[0]
    np.testing.assert_allclose(matrix(GaussianUnits(0.7, 1e5), X), RBF(0.7 * np.sqrt(2))(X), atol=1e-8)


def test_columns_are_the_columns():
    X, Z, _ = data()
    for columns, chosen in (
        (1, [1]),
        ([2, 0], [2, 0]),
        (-1, [2]),
        (slice(1, None), [1, 2]),
        (np.array([True, False, True]), [0, 2]),
        ([False, True, False], [1]),
    ):
        expected = RBF(0.7)(X[:, chosen], Z[:, chosen])
        np.testing.assert_allclose(Columns(RBF(0.7), columns)(X, Z), expected, rtol=1e-13)


# --------------------------------------------------------- the kernel contract, fast and own


@pytest.mark.parametrize("kernel", NEW, ids=ids)
def test_own_gradient_and_pullbacks_are_central_differences(kernel):
    X, Z, G = data()
    square = np.random.default_rng(1).standard_normal((len(X), len(X)))
    K, gradient = kernel(X, eval_gradient=True)
    assert gradient.shape == (len(X), len(X), kernel.n_dims)
    expected = differences(kernel, lambda k: k(X)).reshape(-1, len(X), len(X))
    size = np.max(np.abs(expected), initial=1e-3)
    np.testing.assert_allclose(np.moveaxis(gradient, -1, 0), expected, rtol=1e-6, atol=1e-7 * size)
    own = np.einsum("ij,ijp->p", square, gradient)
    np.testing.assert_allclose(pullback(kernel, X, None, square), own, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(pullback(kernel, X, None, square, K=K), own, rtol=1e-7, atol=1e-8)
    expected = differences(kernel, lambda k: np.sum(G * k(X, Z)))
    np.testing.assert_allclose(pullback(kernel, X, Z, G), expected, rtol=1e-6, atol=1e-8)
    expected = differences(kernel, lambda k: G[:, 0] @ k.diag(X))
    np.testing.assert_allclose(pullback_diag(kernel, X, G[:, 0]), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", NEW, ids=ids)
def test_matrix_diag_and_definiteness(kernel):
    X, Z, _ = data(n=40)
    K = kernel(X)
    np.testing.assert_allclose(matrix(kernel, X), K, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(np.diagonal(K), kernel.diag(X), rtol=1e-13)
    np.testing.assert_allclose(matrix(kernel, X, Z), kernel(X, Z), rtol=1e-13, atol=1e-14)
    assert np.linalg.eigvalsh(K).min() > -1e-12 * len(X) * K.max()


@pytest.mark.parametrize("kernel", NEW, ids=ids)
def test_contract_of_scikit_learn(kernel):
    assert clone(kernel) == kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert kernel.bounds.size == 2 * kernel.n_dims
    moved = kernel.clone_with_theta(kernel.theta + 0.1)
    np.testing.assert_allclose(moved.theta, kernel.theta + 0.1)
    assert (moved != kernel) == (kernel.n_dims > 0)
    assert sum(h.n_elements for h in kernel.hyperparameters if not h.fixed) == kernel.n_dims
    assert repr(kernel)
    assert kernel.is_stationary() in (True, False)


@pytest.mark.filterwarnings("ignore:The optimal value found")
@pytest.mark.parametrize("kernel", [NeuralNetwork(1.0, [1.0, 1.0]), 2.0 * Columns(RBF(), 1), GaussianUnits()])
def test_scikit_learns_regressor_and_classifier_learn_with_them(kernel):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 2))
    y = np.tanh(2 * X[:, 1])
    model = GaussianProcessRegressor(kernel, alpha=1e-2, random_state=0).fit(X, y)
    start = GaussianProcessRegressor(kernel, alpha=1e-2, optimizer=None).fit(X, y)
    assert model.log_marginal_likelihood_value_ > start.log_marginal_likelihood_value_ + 0.1
    assert model.score(X, y) > 0.8
    assert GaussianProcessClassifier(kernel).fit(X, y > 0).score(X, y > 0) > 0.8


def test_gradient_of_a_cross_matrix_is_refused():
    X = data()[0]
    for kernel in (NeuralNetwork(), GaussianUnits()):
        with pytest.raises(ValueError, match="eval_gradient"):
            kernel(X, X, eval_gradient=True)


# ------------------------------------------------------------------------------- names


def test_names_are_bound_anywhere_in_a_tree():
    X = data()[0]
    names = ["age", "weight", "height"]
    tree = 2.0 * Columns(RBF([0.5, 2.0]), ["height", "age"]) + (Columns(Matern(), "weight") + 1.0) ** 2
    bound = bind_columns(tree, names)
    by_index = 2.0 * Columns(RBF([0.5, 2.0]), [2, 0]) + (Columns(Matern(), [1]) + 1.0) ** 2
    assert bound == by_index
    np.testing.assert_array_equal(matrix(bound, X), matrix(by_index, X))
    np.testing.assert_array_equal(bound.theta, tree.theta)
    bound.theta = bound.theta + 1.0
    assert tree.k1.k2.kernel.length_scale == [0.5, 2.0]
    assert bind_columns(bound, names) == bound


def test_names_inside_columns_are_of_those_columns():
    X = data()[0]
    kernel = bind_columns(Columns(Columns(RBF(), "c"), ["a", "c"]), ["a", "b", "c"])
    np.testing.assert_allclose(kernel(X), RBF()(X[:, [2]]), rtol=1e-13)


def test_errors_name_what_is_wrong():
    X = data()[0]
    with pytest.raises(ValueError, match="'wait', which is not among the columns of X"):
        bind_columns(1.0 * Columns(RBF(), ["age", "wait"]), ["age", "weight"])
    for call in (lambda k: k(X), lambda k: matrix(k, X), lambda k: k.diag(X)):
        with pytest.raises(ValueError, match="bind_columns"):
            call(Columns(RBF(), "age"))
    with pytest.raises(ValueError, match=r"Columns\(3\) is not possible for X with 3 columns"):
        matrix(Columns(RBF(), 3), X)
    with pytest.raises(ValueError, match=r"Columns\(\[True, False\]\) is not possible for X with 3 columns"):
        matrix(Columns(RBF(), [True, False]), X)
    with pytest.raises(ValueError, match=r"Columns\(0.5\) is not possible"):
        matrix(Columns(RBF(), 0.5), X)
    with pytest.raises(ValueError, match="weight_variance of NeuralNetwork has shape"):
        matrix(NeuralNetwork(1.0, [1.0, 2.0]), X)


def test_a_column_chosen_twice_counts_twice():
    X, Z, G = data()
    twice = pullback(Columns(RBF(1.0), [0, 0]), X, Z, G)
    once = pullback(Columns(RBF(np.sqrt(0.5)), [0]), X, Z, G)
    np.testing.assert_allclose(twice, once, rtol=1e-10, atol=1e-12)


def test_constant_times_columns_keeps_order_of_theta():
    kernel = ConstantKernel(3.0) * Columns(RBF([1.0, 2.0]), [0, 1])
    np.testing.assert_allclose(np.exp(kernel.theta), [3.0, 1.0, 2.0])
