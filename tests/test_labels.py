"""Soft labels: rows of class probabilities in the place of classes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning

from gpclass import GaussianProcessClassifier
from gpclass.inference import EP, VI, Laplace
from gpclass.kernels import RBF, WhiteKernel
from gpclass.labels import Encode, soft_classes

KERNEL = 2.0 * RBF(1.2)
Z = np.random.default_rng(9).normal(size=(12, 2))


def problem(n: int = 24, n_classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and class probabilities that are neither zero nor one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    F = 2.0 * X @ rng.normal(size=(2, n_classes)) + rng.normal(size=(n, n_classes))
    P = np.exp(F)
    return X, P / P.sum(axis=1, keepdims=True)


def classifier(likelihood="softmax", inference=Laplace(tol=1e-11), **options):  # noqa: B008
    options = {"optimizer": None, "random_state": 0} | options
    return GaussianProcessClassifier(KERNEL, likelihood=likelihood, inference=inference, **options)


def in_parts(X, P):
    """Return a row for each class of each datum, its class and its probability as its weight."""
    n, n_classes = P.shape
    return np.repeat(X, n_classes, axis=0), np.tile(np.arange(n_classes), n), P.ravel()


@pytest.mark.parametrize("inference", [Laplace(tol=1e-11), VI(tol=1e-9)], ids=repr)
def test_a_soft_label_is_a_weighted_row_of_each_class(inference):
    X, P = problem()
    soft = classifier(inference=inference).fit(X, P)
    rows, codes, weight = in_parts(X, P)
    hard = classifier(inference=inference).fit(rows, codes, sample_weight=weight)
    assert list(soft.classes_) == [0, 1, 2]
    assert_allclose(soft.log_marginal_likelihood_value_, hard.log_marginal_likelihood_value_, rtol=1e-7)
    assert_allclose(soft.predict_proba(Z), hard.predict_proba(Z), atol=1e-6)


@pytest.mark.parametrize("likelihood", ["logit", "probit"])
@pytest.mark.parametrize("inference", [Laplace(tol=1e-11), EP(tol=1e-9), VI(tol=1e-9)], ids=repr)
def test_two_classes(likelihood, inference):
    X, P = problem(n_classes=2)
    soft = classifier(likelihood, inference).fit(X, P)
    rows, codes, weight = in_parts(X, P)
    hard = classifier(likelihood, inference).fit(rows, codes, sample_weight=weight)
    assert_allclose(soft.log_marginal_likelihood_value_, hard.log_marginal_likelihood_value_, rtol=1e-10)
    assert_allclose(soft.predict_proba(Z), hard.predict_proba(Z), atol=1e-10)
    with pytest.raises(AttributeError, match="softmax"):
        _ = soft.loo_proba_


def test_probabilities_that_are_rounding_do_not_count():
    X = problem()[0]
    y = np.arange(len(X)) % 2
    P = np.clip(np.eye(2)[y], 1e-12, 1.0)
    hard, nearly = (GaussianProcessClassifier(optimizer=None).fit(X, labels) for labels in (y, P))
    assert len(nearly.base_estimator_.problem.X) == len(hard.base_estimator_.problem.X)
    np.testing.assert_array_equal(nearly.predict_proba(X), hard.predict_proba(X))


def test_softmax_of_two_classes_is_the_logit_with_twice_the_kernel():
    X, P = problem(n_classes=2)
    soft = classifier().fit(X, P)
    binary = clone(classifier("logit")).set_params(kernel=4.0 * RBF(1.2)).fit(X, P)
    assert_allclose(soft.log_marginal_likelihood_value_, binary.log_marginal_likelihood_value_, rtol=1e-9)
    assert_allclose(soft.predict_proba(Z), binary.predict_proba(Z), atol=1e-8)


@pytest.mark.parametrize(
    "options",
    [
        {"likelihood": "softmax"},
        {"likelihood": "logit"},
        {"likelihood": "multiprobit"},
        {"likelihood": "probit", "inference": "ep"},
        {"likelihood": "probit", "multi_class": "one_vs_rest"},
        {"likelihood": "probit", "multi_class": "one_vs_one"},
    ],
    ids=str,
)
def test_rows_of_zeros_and_a_one_are_labels(options):
    X, P = problem()
    codes = P.argmax(axis=1)
    weight = np.arange(24) % 3
    a = classifier(**options).fit(X, np.eye(3)[codes], sample_weight=weight)
    b = classifier(**options).fit(X, codes, sample_weight=weight)
    assert a.log_marginal_likelihood_value_ == b.log_marginal_likelihood_value_
    assert (a.predict_proba(Z) == b.predict_proba(Z)).all()
    assert (a.predict(Z) == b.predict(Z)).all()


def test_hard_labels_are_the_limit():
    X, P = problem()
    codes = P.argmax(axis=1)
    almost = classifier().fit(X, 0.9999999 * np.eye(3)[codes] + 0.0000001 / 3.0)
    assert_allclose(almost.predict_proba(Z), classifier().fit(X, codes).predict_proba(Z), atol=1e-6)


def test_learning_by_soft_labels():
    X, P = problem(40)
    clf = classifier(optimizer="fmin_l_bfgs_b").fit(X, P)
    value, gradient = clf.log_marginal_likelihood(clf.kernel_.theta, eval_gradient=True)
    assert value > clf.log_marginal_likelihood(KERNEL.theta)
    assert np.abs(gradient).max() < 1e-2
    h = 1e-4
    for j, e in enumerate(h * np.eye(2)):
        pair = [clf.log_marginal_likelihood(KERNEL.theta + s * e) for s in (1.0, -1.0)]
        slope = clf.log_marginal_likelihood(KERNEL.theta, eval_gradient=True)[1][j]
        assert_allclose(slope, (pair[0] - pair[1]) / (2.0 * h), rtol=1e-6)


def test_one_against_the_rest():
    X, P = problem()
    soft = classifier("logit", multi_class="one_vs_rest").fit(X, P)
    rows, codes, weight = in_parts(X, P)
    hard = classifier("logit", multi_class="one_vs_rest").fit(rows, codes, sample_weight=weight)
    assert_allclose(soft.predict_proba(Z), hard.predict_proba(Z), atol=1e-10)


class TestWeights:
    X, P = problem()

    def test_sample_weight(self):
        times = np.arange(24) % 3
        a = classifier().fit(self.X, self.P, sample_weight=times)
        b = classifier().fit(np.repeat(self.X, times, axis=0), np.repeat(self.P, times, axis=0))
        assert_allclose(a.log_marginal_likelihood_value_, b.log_marginal_likelihood_value_, rtol=1e-8)
        assert_allclose(a.predict_proba(Z), b.predict_proba(Z), atol=1e-7)

    def test_class_weight(self):
        given = {0: 2.0, 2: 0.5}
        a = classifier(class_weight=given).fit(self.X, self.P)
        rows, codes, weight = in_parts(self.X, self.P)
        b = classifier().fit(rows, codes, sample_weight=weight * np.array([2.0, 1.0, 0.5])[codes])
        assert_allclose(a.predict_proba(Z), b.predict_proba(Z), atol=1e-7)

    def test_balanced_classes(self):
        a = classifier(class_weight="balanced").fit(self.X, self.P)
        each = dict(enumerate(24.0 / (3.0 * self.P.sum(axis=0))))
        b = classifier(class_weight=each).fit(self.X, self.P)
        assert_allclose(a.predict_proba(Z), b.predict_proba(Z), atol=1e-12)


def test_leave_one_out_is_scored_against_soft_labels():
    X, P = problem()
    clf = classifier().fit(X, P)
    assert clf.loo_proba_.shape == (24, 3)
    assert_allclose(clf.loo_log_score_, (P * np.log(clf.loo_proba_)).sum(axis=1).mean())
    keep = np.arange(24) != 5
    again = classifier().fit(X[keep], P[keep]).predict_proba(X[5:6])[0]
    assert_allclose(clf.loo_proba_[5], again, atol=0.1)


def test_columns_of_a_frame_are_the_classes():
    X, P = problem()
    clf = classifier().fit(X, pd.DataFrame(P, columns=["sun", "rain", "snow"]))
    assert list(clf.classes_) == ["sun", "rain", "snow"]
    assert_allclose(clf.predict_proba(Z), classifier().fit(X, P).predict_proba(Z))
    assert set(clf.predict(Z)) <= {"sun", "rain", "snow"}


def test_a_class_nobody_is_in():
    X, P = problem()
    P = np.column_stack([P, np.zeros(24)])
    p = classifier().fit(X, P).predict_proba(Z)
    assert p.shape == (12, 4)
    assert (p[:, 3] < 0.3).all()
    with pytest.raises(ValueError, match="Column 3 of y is zero"):
        classifier("logit", multi_class="one_vs_rest").fit(X, P)


class TestErrors:
    X, P = problem()

    @pytest.mark.parametrize("likelihood", ["probit", "multiprobit"])
    def test_the_multinomial_probit_has_no_soft_labels(self, likelihood):
        with pytest.raises(ValueError, match=r"likelihood='softmax' \(or 'logit'\)"):
            classifier(likelihood).fit(self.X, self.P)

    def test_rows_that_are_no_probabilities(self):
        P = self.P.copy()
        P[7] *= 2.0
        with pytest.raises(ValueError, match="Row 7 of y sums to 2,"):
            classifier().fit(self.X, P)
        P[7] = [-0.5, 0.5, 1.0]
        with pytest.raises(ValueError, match=r"Row 7 of y has the negative number -0\.5"):
            classifier().fit(self.X, P)
        P[7] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            classifier().fit(self.X, P)

    def test_one_class_only(self):
        with pytest.raises(ValueError, match="2 or more distinct classes"):
            classifier().fit(self.X, np.eye(3)[np.zeros(24, dtype=int)])

    def test_wrong_number_of_rows(self):
        with pytest.raises(ValueError, match="inconsistent"):
            classifier().fit(self.X, self.P[:-1])

    def test_noise_of_its_own_for_each_row(self):
        X, P = problem(n_classes=2)
        clf = GaussianProcessClassifier(KERNEL + WhiteKernel(0.1), likelihood="logit", optimizer=None)
        with pytest.raises(ValueError, match="independent noise"):
            clf.fit(X, P)
        clf.set_params(likelihood="softmax").fit(X, P)

    def test_other_matrices_are_what_they_were(self):
        codes = self.P.argmax(axis=1)
        with pytest.raises(ValueError, match="1d array"):
            classifier().fit(self.X, np.eye(3, dtype=int)[codes])
        with pytest.warns(DataConversionWarning):
            classifier().fit(self.X, codes[:, None])

    @pytest.mark.parametrize(
        "y", [[0, 1, 1], [[0.5], [0.5]], [[1, 0], [0, 1]], [["a", "b"]], [[1.0], [0.5, 0.5]]]
    )
    def test_what_is_no_soft_label(self, y):
        assert soft_classes(y) is None


class TestEncode:
    def test_unknown_labels_are_named(self):
        encode = Encode(np.array([1, 2]))
        with pytest.raises(ValueError, match="label 3 is not among the classes, which are 1, 2"):
            encode(np.array([1, 3]), None)
        with pytest.raises(ValueError, match="label 'two' is not among the classes"):
            encode(np.array(["two"]), None)
        with pytest.raises(ValueError, match="label None is not among"):
            encode(np.array([None, 1], dtype=object), None)

    def test_texts_of_all_kinds(self):
        y = np.array(["b", "a", "b"])
        for classes in (np.array(["a", "b"]), np.array(["a", "b"], dtype=object)):
            for labels in (y, y.astype(object), y.astype("U20")):
                assert Encode(classes)(labels, None)[0].tolist() == [1.0, -1.0, 1.0]
