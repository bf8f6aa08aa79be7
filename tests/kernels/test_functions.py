"""Matrix, diagonal and pullbacks of scikit-learn's kernels, against scikit-learn and central differences."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpclass.kernels import (
    RBF,
    ConstantKernel,
    Covariances,
    DotProduct,
    ExpSineSquared,
    FormulaKernel,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
    diag,
    matrix,
    pullback,
    pullback_diag,
)

D = 4
ARD = np.array([0.7, 1.3, 2.1, 0.9])
KERNELS = [
    RBF(1.3),
    RBF(ARD),
    RBF(ARD, "fixed"),
    Matern(0.8, nu=0.5),
    Matern(ARD, nu=0.5),
    Matern(1.1, nu=1.5),
    Matern(ARD, nu=1.5),
    Matern(1.1, nu=2.5),
    Matern(ARD, nu=2.5),
    Matern(1.4, nu=np.inf),
    RationalQuadratic(1.2, 0.6),
    RationalQuadratic(1.2, 0.6, alpha_bounds="fixed"),
    RationalQuadratic(1.2, 0.6, length_scale_bounds="fixed"),
    ExpSineSquared(1.3, 2.2),
    ExpSineSquared(1.3, 2.2, periodicity_bounds="fixed"),
    DotProduct(0.8),
    DotProduct(0.8, "fixed"),
    ConstantKernel(2.5),
    WhiteKernel(0.7),
    WhiteKernel(0.7, "fixed"),
    2.5 * RBF(1.3),
    RBF(ARD) * ConstantKernel(0.4, "fixed"),
    2.5 * RBF(ARD) + WhiteKernel(0.3),
    WhiteKernel(0.3) + 2.5 * Matern(ARD),
    1.5 * (RBF(ARD) * Matern(0.9)) + 0.7 * RationalQuadratic() + 0.2,
    0.3 + DotProduct() ** 2,
    (2.0 * RBF(1.1)) ** 2,
    (1.5 * RBF(1.1) + 0.5) ** 0.5,
    2.0 * (3.0 * (RBF(ARD) + WhiteKernel(0.2))),
    RBF(1.2) * WhiteKernel(0.5) + Matern(),
    (RBF(1.2) + WhiteKernel(0.5)) ** 2 * DotProduct(),
    PairwiseKernel(metric="linear"),
    PairwiseKernel(metric="cosine"),
]
PAIRWISE = [
    PairwiseKernel(0.3, metric=metric) for metric in ("rbf", "laplacian", "polynomial", "sigmoid", "chi2")
] + [
    PairwiseKernel(0.3, metric="poly", pairwise_kernels_kwargs={"degree": 2, "coef0": 0.5}),
    PairwiseKernel(0.3, "fixed", metric="rbf"),
    PairwiseKernel(0.3, metric="additive_chi2"),
]
ALL = KERNELS + PAIRWISE
ids = [str(k) for k in ALL]
STEP = np.finfo(float).eps ** (1 / 3)


def data(n: int = 23, m: int = 17, d: int = D, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, Z = rng.uniform(0.01, 2.0, (n, d)), rng.uniform(0.01, 2.0, (m, d))
    Z[:3] = X[:3]  # coincident rows: r = 0 off the diagonal
    return X, Z, rng.standard_normal((n, m))


def differences(kernel, value):
    """Return central differences of value(kernel) in every entry of theta."""
    theta = kernel.theta
    up = [value(kernel.clone_with_theta(theta + STEP * e)) for e in np.eye(len(theta))]
    down = [value(kernel.clone_with_theta(theta - STEP * e)) for e in np.eye(len(theta))]
    return (np.array(up) - np.array(down)) / (2 * STEP)


def own_contraction(kernel, X, G):
    """Return Σ G ∂K/∂theta by scikit-learn's own gradient, and the size of its terms."""
    _, gradient = kernel(X, eval_gradient=True)
    return np.einsum("ij,ijp->p", G, gradient), np.einsum("ij,ijp->p", np.abs(G), np.abs(gradient))


@pytest.mark.parametrize("kernel", ALL, ids=ids)
def test_matrix_and_diag_are_scikit_learns(kernel):
    X, Z, _ = data()
    K = matrix(kernel, X)
    np.testing.assert_allclose(K, kernel(X), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(matrix(kernel, X, Z), kernel(X, Z), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(diag(kernel, X), kernel.diag(X), rtol=1e-13)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diagonal(K), diag(kernel, X))


@pytest.mark.parametrize("kernel", ALL, ids=ids)
def test_matrix_writes_into_strided_rows(kernel):
    X, Z, _ = data()
    room = np.full((30, 40), 7.0)
    view = room[2 : 2 + len(X), 5 : 5 + len(Z)]
    assert matrix(kernel, X, Z, out=view) is view
    np.testing.assert_allclose(view, kernel(X, Z), rtol=1e-12, atol=1e-12)
    room[2 : 2 + len(X), 5 : 5 + len(Z)] = 7.0
    assert (room == 7.0).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=ids[: len(KERNELS)])
def test_symmetric_pullback_is_the_contraction_of_scikit_learns_gradient(kernel):
    X, _, _ = data()
    G = np.random.default_rng(1).standard_normal((len(X), len(X)))
    expected, size = own_contraction(kernel, X, G)
    K = matrix(kernel, X)
    before = K.copy()
    for known in (None, K):
        got = pullback(kernel, X, None, G, K=known)
        assert got.shape == (kernel.n_dims,)
        assert np.all(np.abs(got - expected) <= 1e-9 * np.abs(expected) + 1e-13 * size)
    np.testing.assert_array_equal(K, before)


@pytest.mark.parametrize("kernel", ALL, ids=ids)
def test_cross_pullback_is_the_central_difference(kernel):
    X, Z, G = data()
    expected = differences(kernel, lambda k: np.sum(G * k(X, Z)))
    for known in (None, matrix(kernel, X, Z)):
        got = pullback(kernel, X, Z, G, K=known)
        assert got.shape == (kernel.n_dims,)
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", ALL, ids=ids)
def test_pullback_diag_is_the_central_difference(kernel):
    X, _, _ = data()
    g = np.random.default_rng(2).standard_normal(len(X))
    expected = differences(kernel, lambda k: g @ k.diag(X))
    np.testing.assert_allclose(pullback_diag(kernel, X, g), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", ALL, ids=ids)
def test_tiles_of_the_lower_triangle_make_the_whole(kernel):
    """What a dense prior does: row tiles left of the diagonal, the diagonal apart."""
    X, _, _ = data()
    n = len(X)
    G = np.random.default_rng(3).standard_normal((n, n))
    G += G.T
    K = np.zeros((n, n))
    total = pullback_diag(kernel, X, np.diagonal(G).copy())
    for i in range(0, n, 6):
        j = min(i + 6, n)
        matrix(kernel, X[i:j], X[:j], out=K[i:j, :j])
        weights = np.tril(2 * G[i:j, :j], k=i - 1)
        total += pullback(kernel, X[i:j], X[:j], weights, K=K[i:j, :j])
    np.fill_diagonal(K, diag(kernel, X))
    np.testing.assert_allclose(np.tril(K), np.tril(kernel(X)), rtol=1e-12, atol=1e-12)
    if kernel in PAIRWISE:
        expected = differences(kernel, lambda k: np.sum(G * k(X)))
        np.testing.assert_allclose(total, expected, rtol=1e-6, atol=1e-8)
    else:
        expected, size = own_contraction(kernel, X, G)
        assert np.all(np.abs(total - expected) <= 1e-9 * np.abs(expected) + 1e-13 * size)


STATIONARY = [
    lambda s: RBF(s),
    lambda s: RBF(s * ARD),
    lambda s: Matern(s, nu=0.5),
    lambda s: Matern(s * ARD, nu=0.5),
    lambda s: Matern(s, nu=1.5),
    lambda s: Matern(s * ARD, nu=1.5),
    lambda s: Matern(s * ARD, nu=2.5),
    # alpha apart, below: scikit-learn's own derivative loses it in log(1 + S) - S / (1 + S)
    lambda s: RationalQuadratic(s, 1.4, alpha_bounds="fixed"),
]


@settings(max_examples=80, deadline=None)
@given(
    make=st.sampled_from(STATIONARY),
    exponent=st.floats(-3, 3),
    offset=st.sampled_from([0.0, 100.0]),
    seed=st.integers(0, 999),
)
def test_extreme_length_scales(make, exponent, offset, seed):
    """Length scales from 1e-3 to 1e3 on data of unit size, some rows nearly coincident."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(14, D))
    X[7:] = X[:7] + rng.choice([0.0, 1e-6, 1e-3], size=(7, 1)) * rng.standard_normal((7, D))
    X += offset
    kernel = 1.7 * make(10.0**exponent)
    G = rng.standard_normal((14, 14))
    # An offset costs digits in the differences themselves, whoever takes them.
    digits = 1.0 + offset * 10.0**-exponent
    np.testing.assert_allclose(matrix(kernel, X), kernel(X), rtol=0, atol=2e-12 * digits)
    expected, size = own_contraction(kernel, X, G)
    # Beside nearly coincident rows, what counts is K itself: its terms carry the same rounding.
    size += np.sum(np.abs(G * kernel(X)))
    for known in (None, matrix(kernel, X)):
        got = pullback(kernel, X, None, G, K=known)
        assert np.all(np.abs(got - expected) <= 1e-9 * np.abs(expected) + 1e-12 * digits * size)


@pytest.mark.parametrize("nu", [0.3, 0.8, 1.0, 1.7, 3.0, 7.25, 19.5, 30.2])
@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e2])
def test_general_matern(nu, scale):
    """M(a) = 2^(1-nu)/Gamma(nu) a^nu K_nu(a), a = sqrt(2 nu) r, in 30 digits."""
    X = np.array([[0.0], [1e-3], [1.5]])
    kernel = Matern(scale, nu=nu)

    with mpmath.workdps(30):

        def value(log_scale, r):
            a = mpmath.sqrt(2 * mpmath.mpf(nu)) * r / mpmath.exp(log_scale)
            return 2 ** (1 - mpmath.mpf(nu)) / mpmath.gamma(nu) * a**nu * mpmath.besselk(nu, a)

        pairs = [(i, j) for i in range(3) for j in range(i)]
        truth = {p: mpmath.mpf(X[p[0], 0]) - mpmath.mpf(X[p[1], 0]) for p in pairs}
        at = mpmath.log(mpmath.mpf(scale))
        values = {p: float(value(at, r)) for p, r in truth.items()}
        slopes = {p: float(mpmath.diff(lambda s, r=r: value(s, r), at)) for p, r in truth.items()}
    K = matrix(kernel, X)
    assert np.all(np.diagonal(K) == 1.0)
    for i, j in pairs:
        assert K[i, j] == pytest.approx(values[i, j], rel=1e-11, abs=1e-13)
        G = np.zeros((3, 3))
        G[i, j] = 1.0
        slope = pullback(kernel, X, X, G)[0]
        assert slope == pytest.approx(slopes[i, j], rel=1e-9, abs=1e-14)


def test_general_matern_meets_the_closed_forms():
    X, Z, G = data()
    for nu in (0.5, 1.5, 2.5):
        near = Matern(ARD, nu=nu * (1 + 1e-12))
        np.testing.assert_allclose(matrix(near, X, Z), Matern(ARD, nu=nu)(X, Z), atol=1e-10)
        np.testing.assert_allclose(
            pullback(near, X, Z, G), pullback(Matern(ARD, nu=nu), X, Z, G), rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("alpha", [1e-4, 1.0, 1e5])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_rational_quadratic_in_many_digits(alpha, scale):
    X = np.array([[0.0, 0.0, 0.3], [0.3, 0.1, 0.2]])
    G = np.array([[0.0, 1.0], [0.0, 0.0]])
    with mpmath.workdps(50):
        r2 = sum((mpmath.mpf(a) - mpmath.mpf(b)) ** 2 for a, b in X.T)

        def value(log_alpha, log_scale):
            a, s = mpmath.exp(log_alpha), mpmath.exp(log_scale)
            return (1 + r2 / (2 * a * s**2)) ** -a

        at = mpmath.log(mpmath.mpf(alpha)), mpmath.log(mpmath.mpf(scale))
        truth = float(value(*at))
        slopes = [float(mpmath.diff(value, at, order)) for order in ((1, 0), (0, 1))]
    kernel = RationalQuadratic(scale, alpha)
    assert matrix(kernel, X)[0, 1] == pytest.approx(truth, rel=1e-11)
    np.testing.assert_allclose(pullback(kernel, X, None, G), slopes, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("period", [1e-2, 0.5, 1e3])
@pytest.mark.parametrize("scale", [3e-2, 1.0, 1e3])
def test_periodic_at_extremes(period, scale):
    rng = np.random.default_rng(5)
    X, G = rng.uniform(size=(9, 1)), rng.standard_normal((9, 9))
    kernel = ExpSineSquared(scale, period)
    # The phase has an absolute error of eps · r / period before any sine is taken.
    digits = 1 + (1 / period) / scale
    np.testing.assert_allclose(matrix(kernel, X), kernel(X), rtol=0, atol=1e-13 * digits)
    expected, size = own_contraction(kernel, X, G)
    assert np.all(
        np.abs(pullback(kernel, X, None, G) - expected) <= 1e-12 * digits * (size + 1e-3 / scale**2)
    )


def test_rough_kernel_has_no_pole():
    X = np.zeros((3, 5))
    kernel = Matern(ARD[0] * np.ones(5), nu=0.5)
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(pullback(kernel, X, X, np.ones((3, 3))), np.zeros(5))


@pytest.mark.parametrize("kernel", ALL, ids=ids)
def test_no_floating_point_trouble(kernel):
    """Far and coincident rows underflow quietly even where numpy is told to raise."""
    X, Z, G = data()
    if kernel in PAIRWISE:
        X, Z = X / 5, Z / 5
    else:
        X[0], Z[1] = 60.0, 0.0
    with np.errstate(all="raise"):
        parts = [
            matrix(kernel, X),
            pullback(kernel, X, Z, G),
            pullback(kernel, X, None, np.ones((len(X), len(X)))),
        ]
    assert all(np.all(np.isfinite(part)) for part in parts)


def test_power_of_an_underflowed_kernel():
    X = np.array([[0.0], [100.0], [0.5]])
    kernel = RBF(1.0) ** 0.5
    G = np.ones((3, 3))
    expected = own_contraction(RBF(math.sqrt(2.0)), X, G)[0]
    np.testing.assert_allclose(pullback(kernel, X, None, G), expected, rtol=1e-9)  # central differences


@pytest.mark.parametrize("kernel", ALL, ids=ids)
def test_no_rows(kernel):
    X, none = data()[0], np.empty((0, D))
    assert matrix(kernel, X, none).shape == (len(X), 0)
    assert matrix(kernel, none, X).shape == (0, len(X))
    np.testing.assert_array_equal(pullback(kernel, X, none, np.empty((len(X), 0))), np.zeros(kernel.n_dims))


def test_large_matrices_are_tiled():
    """Several row tiles, a ragged last one, symmetric and not."""
    X, Z, G = data(600, 500)
    kernel = 1.5 * RBF(ARD) + 0.5 * Matern() + WhiteKernel(0.3)
    K = matrix(kernel, X)
    np.testing.assert_allclose(K, kernel(X), rtol=1e-12)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(matrix(kernel, X, Z), kernel(X, Z), rtol=1e-12)
    square = np.random.default_rng(1).standard_normal((600, 600))
    expected = own_contraction(kernel, X, square)[0]
    np.testing.assert_allclose(pullback(kernel, X, None, square, K=K), expected, rtol=1e-10)
    expected = differences(kernel, lambda k: np.sum(G * k(X, Z)))
    np.testing.assert_allclose(pullback(kernel, X, Z, G), expected, rtol=1e-6, atol=1e-8)


def test_bad_shapes_are_named():
    X, Z, G = data()
    with pytest.raises(ValueError, match=r"length_scale of RBF has shape \(2,\) but X has 4 columns"):
        matrix(RBF([1.0, 2.0]), X)
    with pytest.raises(ValueError, match="adjoint is float64 of shape"):
        pullback(RBF(), X, Z, G.T)
    with pytest.raises(ValueError, match="out is float64 of shape"):
        matrix(RBF(), X, Z, out=np.empty((3, 3)))
    with pytest.raises(ValueError, match="X has 1 dimension"):
        matrix(RBF(), [1.0, 2.0])
    with pytest.raises(ValueError, match="X cannot be read as numbers"):
        matrix(RBF(), [["a"], ["b"]])


def test_a_matern_kernel_of_absurd_smoothness_is_refused():
    with pytest.raises(ValueError, match="nu=inf"):
        matrix(Matern(nu=2.0**31), np.zeros((1, 1)), np.ones((1, 1)))


class Wave(FormulaKernel, formulas=lambda kernel, X, Z, dtype: wave(X, Z)):
    def __init__(self, rate=1.0, rate_bounds=(1e-5, 1e5)):
        self.rate = rate
        self.rate_bounds = rate_bounds


def wave(X, Z):
    """Return the covariances of `Wave`, with two derivatives although it has one hyperparameter."""
    return Covariances(lambda: np.ones(len(X) if Z is None else (len(X), len(Z))), lambda G, K: np.zeros(2))


@pytest.mark.parametrize("kernel", [Wave(), 2.0 * Wave() + WhiteKernel(0.1)], ids=str)
def test_a_pullback_of_the_wrong_length_is_refused(kernel):
    message = "The pullback of Wave returned 2 numbers, expected 1: one for each hyperparameter"
    with pytest.raises(ValueError, match=message):
        pullback(kernel, np.eye(3), np.eye(3), np.ones((3, 3)))
    with pytest.raises(ValueError, match=message):
        pullback_diag(kernel, np.eye(3), np.ones(3))
