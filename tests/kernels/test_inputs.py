"""Kernels of transformed inputs, and length scales that groups of columns share."""

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from gpclass.kernels import Columns, Grouped, Linear, diag, matrix, move, pullback, warps
from gpclass.kernels.inputs import measured_inputs

RNG = np.random.default_rng(0)
X = np.exp(RNG.normal(size=(30, 4)) * [1.0, 2.0, 0.3, 0.0])
X[:, 3] = RNG.integers(0, 2, 30)
Z = X[:6] + 0.1
GROUPS = [0, 0, 1, 2]
FULL = [1.5, 1.5, 0.7, 2.0]


def transforms():
    return [warp(ConstantKernel(2.0) * RBF([1.0, 3.0, 0.5, 2.0]) + WhiteKernel(0.1)) for warp in warps(X)]


KERNELS = [
    *transforms(),
    Grouped(2.0 * RBF([1.5, 0.7, 2.0]) + 1.0 + Linear([1.5, 0.7, 2.0], [0.1, 0.2, 0.3, 0.4]), GROUPS),
    Grouped(Matern(0.7, nu=1.5) * RBF([1.5, 0.7, 2.0], "fixed"), GROUPS),
    warps(X)[1](Grouped(2.0 * Matern([1.5, 0.7, 2.0], nu=2.5), GROUPS)),
    2.0 * Columns(Grouped(RBF([1.0, 2.0]), [0, 1, 1]), [0, 2, 3]) + 1.0,
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_matrices_are_those_of_the_kernel_itself(kernel):
    np.testing.assert_allclose(matrix(kernel, X), kernel(X), rtol=1e-12)
    np.testing.assert_allclose(matrix(kernel, X, Z), kernel(X, Z), rtol=1e-12)
    np.testing.assert_allclose(diag(kernel, X), kernel.diag(X), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_pullbacks_agree_with_differences(kernel):
    G, theta, step = RNG.normal(size=(30, 30)), kernel.theta, 1e-5
    moved = [
        [(G * matrix(move(kernel, theta + s * e), X)).sum() for s in (step, -step)]
        for e in np.eye(len(theta))
    ]
    expected = [(up - down) / (2.0 * step) for up, down in moved]
    np.testing.assert_allclose(pullback(kernel, X, None, G), expected, rtol=1e-6, atol=1e-6)
    _, slopes = kernel(X, eval_gradient=True)
    np.testing.assert_allclose(np.einsum("ij,ijk->k", G, slopes), expected, rtol=1e-4, atol=1e-4)


def test_columns_of_a_group_share_a_length_scale():
    narrow, wide = Grouped(2.0 * RBF([1.5, 0.7, 2.0]), GROUPS), 2.0 * RBF(FULL)
    np.testing.assert_array_equal(matrix(narrow, X, Z), matrix(wide, X, Z))
    G = RNG.normal(size=(30, 6))
    each = pullback(wide, X, Z, G)
    expected = [each[0], each[1] + each[2], each[3], each[4]]
    np.testing.assert_allclose(pullback(narrow, X, Z, G), expected, rtol=1e-12)


def test_a_kernel_equals_one_of_the_same_parameters_only():
    first, second = transforms()
    again = transforms()[0]
    assert first == again
    assert first != second
    assert first != move(first, first.theta + 0.1)
    assert Grouped(RBF([1.0, 2.0]), [0, 1, 1]) != Grouped(RBF([1.0, 2.0]), [0, 0, 1])
    assert first.get_params()["kernel__k1__k2__length_scale"][1] == 3.0


@pytest.mark.parametrize("kernel", transforms(), ids=lambda kernel: kernel.transform)
def test_a_transform_preserves_order_mean_and_deviation(kernel):
    W = kernel.inputs(X)
    np.testing.assert_array_equal(np.argsort(W, axis=0), np.argsort(X, axis=0))
    np.testing.assert_allclose(W.mean(axis=0), X.mean(axis=0))
    np.testing.assert_allclose(W.std(axis=0), X.std(axis=0))
    np.testing.assert_array_equal(W[:, 3], X[:, 3])  # two values


@pytest.mark.parametrize("which", [0, 1])
def test_a_transform_does_not_depend_on_the_units(which):
    scale, shift = np.array([1e-3, 7.0, 1e5, 2.0]), np.array([3.0, -5.0, 0.0, 1.0])
    plain, moved = warps(X)[which](RBF()), warps(scale * X + shift)[which](RBF())
    np.testing.assert_allclose(moved.inputs(scale * X + shift), scale * plain.inputs(X) + shift, rtol=1e-6)


def test_a_weight_counts_as_copies():
    weight = RNG.integers(1, 4, len(X))
    for one, other in zip(warps(X, weight.astype(float)), warps(np.repeat(X, weight, axis=0)), strict=True):
        for name, value in one.keywords.items():
            if name != "transform" and value is not None:
                np.testing.assert_allclose(value, other.keywords[name], rtol=1e-6)


def test_the_power_is_that_of_maximum_likelihood():
    x = RNG.gamma(2.0, size=(400, 1))
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75], method="inverted_cdf")
    expected = stats.yeojohnson((x[:, 0] - middle) / (high - low))[1]
    found = warps(x)[1].keywords["power"][0]
    assert found == pytest.approx(expected, abs=0.02)


def test_an_outlier_is_close_to_the_others():
    x = np.append(RNG.normal(size=299), 1e6)[:, None]
    for warp in warps(x):
        W = warp(RBF()).inputs(x)[:, 0]
        assert W[-1] - W[:-1].max() < 5.0 * np.ptp(W[:-1])


@pytest.mark.parametrize("kernel", transforms(), ids=lambda kernel: kernel.transform)
def test_no_input_is_too_far(kernel):
    far = np.vstack([1e300 * np.ones(4), -1e300 * np.ones(4)])
    W = kernel.inputs(far)
    assert np.isfinite(W).all()


def test_nothing_to_transform():
    assert warps(X[:, 3:]) == ()
    assert warps(np.ones((5, 2))) == ()
    assert warps(X, numeric=np.zeros(4, dtype=bool)) == ()


def test_the_inputs_that_length_scales_measure():
    kernel = warps(X)[0](Grouped(RBF([1.5, 0.7, 2.0]), GROUPS))
    W, groups = measured_inputs(kernel, X)
    np.testing.assert_array_equal(W, kernel.inputs(X))
    np.testing.assert_array_equal(groups, GROUPS)
    W, groups = measured_inputs(2.0 * RBF(), X)
    assert W is X
    assert groups is None


def test_columns_must_be_those_of_the_transform():
    with pytest.raises(ValueError, match="4 columns but X has 2"):
        matrix(transforms()[0], X[:, :2])
