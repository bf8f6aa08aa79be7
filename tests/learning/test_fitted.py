"""Fits that are of little use are told, once and with a remedy; fits that are of use are not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from problems import many_rows, three_classes, two_moons_like
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from gpclass import DoubtfulFitWarning, GaussianProcessClassifier, compare
from gpclass.data.sources import BlockSource
from gpclass.kernels import RBF

FREQUENCIES = "predicting the class frequencies"
X, y = two_moons_like(60)


def told(X, y, kernel=None, **options):
    """Return the one doubt that a fit expresses, or an empty text."""
    options = {"inference": "laplace", "random_state": 0, **options}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        GaussianProcessClassifier(kernel, **options).fit(X, y)
    doubts = [str(w.message) for w in caught if issubclass(w.category, DoubtfulFitWarning)]
    assert len(doubts) < 2
    assert all(w.filename == __file__ for w in caught if issubclass(w.category, DoubtfulFitWarning))
    return doubts[0] if doubts else ""


def noise(n, d, seed, n_classes=2, rare=0.0):
    """Return labels that have nothing to do with the inputs."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_classes, size=n)
    labels[rng.random(n) < rare] = 0
    return rng.normal(size=(n, d)), labels


# ------------------------------------------------------------------------------- fits that are of use


@pytest.mark.parametrize(
    "load", [load_iris, load_wine, load_breast_cancer, load_digits], ids=lambda f: f.__name__[5:]
)
@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.slow
def test_nothing_is_said_about_good_data(load, raw):
    inputs, labels = load(return_X_y=True)
    inputs, labels = (
        inputs[::8] if len(inputs) > 1000 else inputs[::2],
        labels[::8] if len(inputs) > 1000 else labels[::2],
    )
    inputs = inputs if raw else StandardScaler().fit_transform(inputs)
    # One length scale per column is slow for the 64 columns of digits, whose scales do not differ much.
    assert told(inputs, labels, "rbf-shared" if load is load_digits else None, likelihood="logit") == ""
    if not raw:
        assert told(inputs, labels, 1.0 * RBF(1.0), likelihood="logit") == ""


@pytest.mark.parametrize("inference", ["laplace", "ep", "vi"])
@pytest.mark.parametrize(("make", "options"), [(make_moons, {}), (make_circles, {"factor": 0.5})])
@pytest.mark.slow
def test_nothing_is_said_about_moons_and_circles(make, options, inference):
    for n in (20, 80):
        rows = make(n, noise=0.1, random_state=0, **options)
        assert told(*rows, inference=inference) == ""
        assert told(*rows, 1.0 * RBF(1.0), inference=inference) == ""


def test_nothing_is_said_about_a_few_separable_rows():
    assert told([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]) == ""
    assert told([[0.0], [1e3], [2e3]], [0, 0, 1], 1.0 * RBF(1.0), optimizer=None) == ""


def test_many_columns_of_few_good_rows_are_no_reason():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(30, 20))
    assert told(inputs, inputs[:, 0] > 0.0, "rbf") == ""  # 21 hyperparameters


# --------------------------------------------------------------------------- labels that are pure noise


@pytest.mark.parametrize("d", [1, 2, 5])
def test_noise_is_no_better_than_class_frequencies(d):
    sentences = [told(*noise(80, d, seed, rare=0.5 * (seed % 2)), "rbf") for seed in range(4)]
    assert sum(FREQUENCIES in sentence for sentence in sentences) >= 3
    assert any("kernel='matern12'" in sentence for sentence in sentences)


@pytest.mark.parametrize("options", [
    {"inference": "ep"},
    {"inference": "vi", "likelihood": "logit"},
    {"kernel": "matern32"},
    {"kernel": 1.0 * RBF([1.0, 1.0])},
    {"inducing": 20},
    {"inference": "vi", "inducing": 20},
], ids=str)  # fmt: skip
def test_by_any_method(options):
    assert FREQUENCIES in told(*noise(80, 2, 7), **options)


@pytest.mark.parametrize("options", [{}, {"likelihood": "softmax"}, {"kernel": "rbf", "multi_class": "one_vs_rest"},
                                     {"kernel": "rbf", "multi_class": "one_vs_one"}], ids=str)  # fmt: skip
def test_with_three_classes(options):
    assert FREQUENCIES in told(*noise(60, 2, 1, n_classes=3), **options)
    assert told(*three_classes(60), **options) == ""


def test_one_good_class_against_the_rest_is_enough():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(90, 2))
    labels = np.where(inputs[:, 0] > 0.5, 2, rng.integers(2, size=90))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = GaussianProcessClassifier("rbf", inference="laplace", multi_class="one_vs_rest").fit(
            inputs, labels
        )
    assert len(clf.base_estimator_.models) == 3


def test_weights_are_counted():
    inputs, labels = noise(60, 1, 3)
    weight = 0.5 + 0.5 * (np.arange(60) % 2)  # copies of a row that agree would speak for a rough function
    with pytest.warns(DoubtfulFitWarning, match=FREQUENCIES):
        clf = GaussianProcessClassifier(inference="laplace").fit(inputs, labels, weight)
    counts = [weight[labels == c].sum() for c in (0, 1)]
    assert clf.base_estimator_.class_counts == pytest.approx(counts)


def test_rows_that_are_passed_over():
    inputs, labels = noise(200, 2, 0)
    options = {"inducing": 20, "random_state": 0}
    with pytest.warns(DoubtfulFitWarning, match=FREQUENCIES):
        GaussianProcessClassifier(**options).fit(
            BlockSource([(inputs[:100], labels[:100]), (inputs[100:], labels[100:])])
        )
    with pytest.warns(DoubtfulFitWarning, match=FREQUENCIES):
        clf = GaussianProcessClassifier(**options).partial_fit(inputs[:100], labels[:100])
    with pytest.warns(DoubtfulFitWarning, match=FREQUENCIES):
        clf.partial_fit(inputs[100:], labels[100:])
    assert clf.base_estimator_.inducing.counts.tolist() == np.bincount(labels).tolist()
    good = many_rows(200)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulFitWarning)
        GaussianProcessClassifier(**options).fit(BlockSource([good]))


def test_fixed_hyperparameters_are_not_judged():
    assert told(*noise(60, 2, 0), 1.0 * RBF(1.0), optimizer=None) == ""


def test_structured_inputs_have_no_columns():
    from sklearn.gaussian_process.tests._mini_sequence_kernel import MiniSeqKernel

    words, labels = ["abba", "abc", "bbb", "cab", "aaa", "bca"], [1, 1, 0, 1, 1, 0]
    assert told(words, labels, MiniSeqKernel(), optimizer=None) == ""


# ------------------------------------------------------------------------------------- one warning only


def test_bounds_of_length_scales_are_the_remedy():
    sentence = told(X, y, RBF(length_scale_bounds=(1e3, 1e5)))
    assert "widen the bounds of the length scales" in sentence


def test_where_inference_did_not_converge_nothing_else_is_said():
    rows = noise(60, 2, 0)
    assert told(*rows, inference="vi", max_iter_predict=1) == ""
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        GaussianProcessClassifier(max_iter_predict=1).fit(*rows)


def test_comparisons_note_it():
    result = compare(*noise(60, 2, 0), methods=["laplace"], cv=2, n_samples=100)
    assert FREQUENCIES in result["laplace"].note


def test_the_command_line_says_it(tmp_path):
    cli = pytest.importorskip("cli_runner")
    inputs, labels = noise(60, 1, 0)
    table = cli.write(
        tmp_path / "t.csv", ["x", "y"], [[x, c] for x, c in zip(inputs[:, 0], labels, strict=True)]
    )
    done = cli.run("fit", table, "-t", "y", "--inference", "laplace", "-o", tmp_path / "m.gpc")
    assert FREQUENCIES in done.stderr
