"""Kernels by name: what they are made of, and that a name works wherever a kernel does."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import many_rows, three_classes, two_moons_like
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import gpclass
from gpclass import GaussianProcessClassifier, compare
from gpclass.data.sources import BlockSource
from gpclass.kernels import (
    RBF,
    ConstantKernel,
    GaussianUnits,
    Linear,
    Matern,
    NeuralNetwork,
    RationalQuadratic,
    kernel_names,
    matrix,
    named_kernel,
)
from gpclass.kernels.names import column_scales

X, y = two_moons_like(60)
RAW = X * [1e4, 1e-3] + [300.0, 7.0]  # the same data in other units
FAST = {"inference": "laplace"}
# Kernels that do not depend on the units of the columns: there is one hyperparameter for each of them.
PER_COLUMN = ["matern12", "matern32", "matern52", "rbf"]


def test_the_names_are_those_of_the_command_line_before():
    known = {"exp-sine-squared", "gaussian-units", "linear", "matern12", "matern32", "matern52"}
    assert known | {"neural-network", "rational-quadratic", "rbf", "rbf-shared"} <= set(kernel_names())
    assert kernel_names() == sorted(kernel_names())


@pytest.mark.parametrize(
    ("name", "cls", "nu"),
    [
        ("rbf", RBF, None),
        ("matern12", Matern, 0.5),
        ("matern32", Matern, 1.5),
        ("matern52", Matern, 2.5),
    ],
)
def test_one_length_scale_per_column_from_its_deviation(name, cls, nu):
    kernel = named_kernel(name, RAW)
    assert kernel.k1 == ConstantKernel(1.0, (1e-2, 1e4))
    assert type(kernel.k2) is cls
    assert getattr(kernel.k2, "nu", None) == nu
    deviation = np.std(RAW, axis=0)
    assert_allclose(kernel.k2.length_scale, deviation * np.sqrt(2.0), rtol=1e-12)
    bounds = np.column_stack([1e-2 * deviation, 1e2 * np.sqrt(2.0) * deviation])
    assert_allclose(kernel.k2.length_scale_bounds, bounds, rtol=1e-12)


@pytest.mark.parametrize(("name", "cls"), [("rbf-shared", RBF), ("rational-quadratic", RationalQuadratic)])
def test_one_length_scale_for_all_columns(name, cls):
    kernel = named_kernel(name, RAW).k2
    assert type(kernel) is cls
    # Half the mean squared distance of two rows is the sum of the variances.
    squares = ((RAW[:, None] - RAW) ** 2).sum(axis=2)
    assert_allclose(kernel.length_scale, np.sqrt(0.5 * squares.mean()), rtol=1e-10)
    low, high = kernel.length_scale_bounds
    assert low < kernel.length_scale < high


def test_a_single_column_has_a_single_number():
    for name in ("rbf", "matern32", "rbf-shared"):
        kernel = named_kernel(name, RAW[:, :1]).k2
        assert np.ndim(kernel.length_scale) == 0
        assert_allclose(kernel.length_scale, np.std(RAW[:, 0]))
        assert np.shape(kernel.length_scale_bounds) == (2,)
    assert np.ndim(named_kernel("neural-network", RAW[:, :1]).k2.weight_variance) == 0


@pytest.mark.parametrize("name", kernel_names())
def test_the_unit_of_the_columns_does_not_matter(name):
    # Of all columns together, even for kernels with one scale for all of them.
    start, far = named_kernel(name, X), named_kernel(name, 1e3 * X)
    assert_allclose(matrix(far, 1e3 * X), matrix(start, X), rtol=1e-9, atol=1e-9)
    for one, other in zip(start.bounds, far.bounds, strict=True):
        assert_allclose(np.diff(other), np.diff(one), rtol=1e-9)  # as wide on the log scale


@pytest.mark.parametrize("name", [*PER_COLUMN, "neural-network"])
def test_raw_columns_are_as_good_as_standardised_ones(name):
    centred = RAW - RAW.mean(axis=0)
    data = {"raw": RAW if name in PER_COLUMN else centred, "standardised": centred / RAW.std(axis=0)}
    fits = {how: GaussianProcessClassifier(name, **FAST).fit(rows, y) for how, rows in data.items()}
    evidence = [fit.log_marginal_likelihood_value_ for fit in fits.values()]
    assert_allclose(evidence[0], evidence[1], atol=1e-3)
    proba = [fit.predict_proba(data[how]) for how, fit in fits.items()]
    assert_allclose(proba[0], proba[1], atol=1e-2)


def test_weights_count_as_copies_and_zero_as_absence():
    times = np.arange(len(RAW)) % 3
    for name in kernel_names():
        weighted, repeated = named_kernel(name, RAW, times), named_kernel(name, RAW.repeat(times, axis=0))
        assert_allclose(weighted.theta, repeated.theta, rtol=1e-9)
        assert_allclose(weighted.bounds, repeated.bounds, rtol=1e-9)


def test_constant_and_huge_columns_give_finite_numbers():
    odd = np.column_stack([np.full(60, 3.0), 1e200 * X[:, 0], 1e-200 * X[:, 1], np.zeros(60)])
    kernel = named_kernel("rbf", odd).k2
    assert_allclose(
        kernel.length_scale, 2.0 * np.array([3.0, 1e200 * X[:, 0].std(), 1e-200 * X[:, 1].std(), 1.0])
    )
    assert np.isfinite(named_kernel("rbf-shared", odd).theta).all()
    assert named_kernel("rbf-shared", np.ones((5, 2))).k2.length_scale == 1.0


def test_other_hyperparameters_have_the_scale_of_the_rows():
    shifted = X + np.array([5.0, 0.0])
    norm, distance = np.sqrt((shifted**2).sum(axis=1).mean()), np.sqrt(X.var(axis=0).sum())
    linear = named_kernel("linear", shifted).k2
    assert isinstance(linear, Linear)
    assert_allclose(linear.length_scale, X.std(axis=0) * np.sqrt(2.0))
    assert_allclose(linear.centre, shifted.mean(axis=0))
    units = named_kernel("gaussian-units", shifted).k2
    assert isinstance(units, GaussianUnits)
    assert_allclose([units.unit_width, units.center_scale], [distance, norm])
    network = named_kernel("neural-network", shifted).k2
    assert isinstance(network, NeuralNetwork)
    assert_allclose(network.weight_variance, 0.5 / X.var(axis=0))


# ----------------------------------------------------------------- wherever a kernel is possible


def test_a_name_fits_what_the_kernel_built_by_hand_fits():
    scale = RAW.std(axis=0) * np.sqrt(2.0)
    bounds = np.column_stack([1e-2 * RAW.std(axis=0), 1e2 * scale])
    by_hand = ConstantKernel(1.0, (1e-2, 1e4)) * Matern(scale, bounds, nu=2.5)
    named = GaussianProcessClassifier("matern52", **FAST).fit(RAW, y)
    assert_allclose(
        named.predict_proba(RAW), GaussianProcessClassifier(by_hand, **FAST).fit(RAW, y).predict_proba(RAW)
    )
    assert named.kernel == "matern52"
    assert named.kernel_.k2.nu == 2.5


def test_a_name_is_a_parameter_like_any_other():
    clf = GaussianProcessClassifier("matern32", **FAST)
    assert clone(clf).get_params() == clf.get_params()
    assert clf.set_params(kernel="rbf").fit(RAW, y).kernel == "rbf"
    search = GridSearchCV(clf, {"kernel": ["rbf", "matern32"]}, cv=3, scoring="neg_log_loss").fit(RAW, y)
    assert search.best_params_["kernel"] in ("rbf", "matern32")
    assert len(set(search.cv_results_["mean_test_score"])) == 2


def test_a_bound_that_nobody_gave_is_not_told():
    rows = np.column_stack([RAW, np.random.default_rng(0).normal(size=60)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = GaussianProcessClassifier("rbf", **FAST).fit(rows, y)
    assert clf.kernel_.theta[-1] > np.log(5.0)


@pytest.mark.parametrize("wrong", ["matern", 3, RBF])
def test_a_wrong_name_lists_the_right_ones(wrong):
    kernel = "matern 3/2" if wrong == "matern" else wrong
    with pytest.raises(ValueError, match="kernel") as caught:
        GaussianProcessClassifier(kernel).fit(X, y)
    if wrong is RBF:
        assert "RBF()" in str(caught.value)
        return
    for name in kernel_names():
        assert repr(name) in str(caught.value)


@pytest.mark.parametrize("how", ["inducing", "blocks", "parquet", "partial_fit"])
def test_rows_that_are_passed_over(how, tmp_path):
    inputs, labels = many_rows(400)
    inputs = inputs * [1e3, 1.0]
    weight = np.where(np.arange(400) < 200, 0.0, 1.0 + np.arange(400) % 2)
    options = {"inducing": gpclass.sparse.Inducing(30, max_refine=0), "random_state": 0, "optimizer": None}
    clf = GaussianProcessClassifier("matern32", **options)
    expected = named_kernel("matern32", inputs, weight)
    if how == "inducing":
        clf.fit(inputs, labels, weight)
    elif how == "blocks":
        clf.fit(
            BlockSource(
                [(inputs[:150], labels[:150], weight[:150]), (inputs[150:], labels[150:], weight[150:])]
            )
        )
    elif how == "partial_fit":
        clf.partial_fit(inputs, labels, sample_weight=weight)
    else:
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        frame = pandas.DataFrame({"a": inputs[:, 0], "b": inputs[:, 1], "label": labels})
        frame.to_parquet(tmp_path / "rows.parquet")
        clf.fit(tmp_path / "rows.parquet", "label")
        expected = named_kernel("matern32", inputs)
    assert_allclose(clf.kernel_.theta, expected.theta, rtol=1e-9)


@pytest.mark.parametrize("multi_class", ["joint", "one_vs_rest", "one_vs_one"])
def test_three_classes_and_a_model_file(multi_class, tmp_path):
    pytest.importorskip("safetensors")
    rows, labels = three_classes(40)
    clf = GaussianProcessClassifier("matern32", multi_class=multi_class, **FAST).fit(1e3 * rows, labels)
    clf.save(tmp_path / "m")
    again = gpclass.load(tmp_path / "m")
    assert again.kernel == "matern32"
    assert_array_equal(again.predict_proba(1e3 * rows), clf.predict_proba(1e3 * rows))
    assert again.kernel_ == clf.kernel_


def test_comparisons_take_names():
    result = compare(RAW, y, methods=["laplace"], kernel="rbf-shared", cv=2)
    assert np.ndim(result["laplace"].kernel.k2.length_scale) == 0


# ------------------------------------------------------------------- the scales of the columns


def test_columns_of_extreme_magnitudes_give_no_warning():
    X = np.random.default_rng(0).normal(size=(20, 2)) * [1e-200, 1e200]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scales = column_scales(X)
    unit = (X / [1e-200, 1e200]).std(axis=0)
    np.testing.assert_allclose(scales.deviation / [1e-200, 1e200], unit)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_variances_of_the_columns_of_a_group_add_up(scale):
    X = scale * np.random.default_rng(0).normal(size=(20, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = column_scales(X).of_groups(np.array([0, 1, 1, 0]))
    variance = (X / scale).var(axis=0)
    np.testing.assert_allclose(
        found.deviation / scale, np.sqrt([variance[0] + variance[3], variance[1] + variance[2]])
    )


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize("name", ["neural-network", "gaussian-units"])
def test_networks_refuse_columns_whose_squares_overflow(scale, name):
    X = scale * np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=r"below 1e-100 or above 1e\+100.*: rescale them"):
        named_kernel(name, X)
