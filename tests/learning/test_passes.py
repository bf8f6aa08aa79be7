"""Fits in passes over the rows: near the exact answers, in parts, and what is not possible."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import many_rows
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF, Columns, ConstantKernel
from gpclass.sparse import Inducing
from gpclass.testing import central_difference


def log_loss(clf, X, y):
    return -np.log(clf.predict_proba(X)[np.arange(len(y)), y]).mean()


class TestClassifier:
    def test_auto_is_exact_for_few_rows_and_not_for_many(self):
        X, y = many_rows(6000)
        kernel = 4.0 * RBF(1.0)
        few = GaussianProcessClassifier(kernel, optimizer=None).fit(X[:300], y[:300])
        many = GaussianProcessClassifier(kernel, optimizer=None, random_state=0).fit(X, y)
        assert few.posterior_.inputs.shape == (300, 2)
        assert many.posterior_.inputs.shape[0] < 1000
        assert many.base_estimator_.inducing.n_rows == 6000

    @pytest.mark.parametrize("inference", ["vi", "ep", "laplace"])
    def test_near_the_exact_answer(self, inference):
        X, y = many_rows(700)
        new = many_rows(300, seed=1)[0]
        options = {"kernel": 4.0 * RBF([1.0, 1.0]), "optimizer": None, "inference": inference}
        exact = GaussianProcessClassifier(**options, inducing=None).fit(X, y)
        found = GaussianProcessClassifier(**options, inducing=80, random_state=0).fit(X, y)
        assert_allclose(found.predict_proba(new), exact.predict_proba(new), atol=2e-3)
        assert_allclose(found.log_marginal_likelihood_value_, exact.log_marginal_likelihood_value_, rtol=3e-3)

    def test_learning_finds_the_exact_hyperparameters(self):
        X, y = many_rows(500)
        kernel = ConstantKernel(1.0, (1e-2, 1e3)) * RBF([1.0, 1.0], (0.05, 50.0))
        exact = GaussianProcessClassifier(kernel, inducing=None).fit(X, y)
        settings = Inducing(n=100, gain=1e-6, dtype="float64", max_refine=30)
        found = GaussianProcessClassifier(kernel, inducing=settings, random_state=0).fit(X, y)
        assert_allclose(found.kernel_.theta, exact.kernel_.theta, atol=0.05)
        assert_allclose(found.log_marginal_likelihood_value_, exact.log_marginal_likelihood_value_, atol=0.3)

    def test_evidence_at_theta(self):
        X, y = many_rows(500)
        settings = Inducing(n=30, dtype="float64")
        clf = GaussianProcessClassifier(4.0 * RBF(1.0), inducing=settings, optimizer=None).fit(X, y)
        theta = clf.kernel_.theta
        value, gradient = clf.log_marginal_likelihood(theta, eval_gradient=True)
        assert_allclose(value, clf.log_marginal_likelihood_value_, rtol=1e-6)
        assert_allclose(gradient, central_difference(clf.log_marginal_likelihood, theta, 1e-3), rtol=1e-3)

    def test_weights_are_copies(self):
        X, y = many_rows(300)
        weight = np.where(np.arange(300) % 3 == 0, 2.0, 1.0)
        options = {
            "kernel": 4.0 * RBF(1.0),
            "optimizer": None,
            "inducing": Inducing(inputs=X[:40], dtype="float64"),
        }
        a = GaussianProcessClassifier(**options).fit(X, y, sample_weight=weight)
        copies = np.repeat(np.arange(300), weight.astype(int))
        b = GaussianProcessClassifier(**options).fit(X[copies], y[copies])
        assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-6)

    @pytest.mark.slow
    def test_three_classes(self):
        X, y = load_iris(return_X_y=True)
        X, y = StandardScaler().fit_transform(X)[::3], y[::3]
        with pytest.warns(UserWarning, match="softmax"):
            clf = GaussianProcessClassifier(4.0 * RBF(2.0), inference="vi", inducing=20, random_state=0).fit(
                X, y
            )
        assert clf.score(X, y) > 0.95
        assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)
        exact = GaussianProcessClassifier(
            clf.kernel_, optimizer=None, likelihood="softmax", inducing=None
        ).fit(X, y)
        settings = Inducing(inputs=X, dtype="float64")
        same = GaussianProcessClassifier(
            clf.kernel_, optimizer=None, likelihood="logit", inducing=settings
        ).fit(X, y)
        assert_allclose(same.log_marginal_likelihood_value_, exact.log_marginal_likelihood_value_, atol=1e-2)
        assert_allclose(same.predict_proba(X), exact.predict_proba(X), atol=1e-3)

    @pytest.mark.parametrize(
        ("options", "word"),
        [
            ({"inducing": 5, "inference": "mcmc"}, "all rows in memory"),
            ({"inducing": 0}, "positive"),
        ],
    )
    def test_what_is_not_possible_is_said(self, options, word):
        X, y = make_moons(40, random_state=0)
        with pytest.raises(ValueError, match=word):
            GaussianProcessClassifier(**options).fit(X, y)


class TestPartialFit:
    def test_it_learns_from_all_rows(self):
        X, y = many_rows(4000)
        new = many_rows(1000, seed=1)
        options = {"kernel": 4.0 * RBF(1.0), "optimizer": None, "inducing": 60, "random_state": 0}
        whole = GaussianProcessClassifier(**options).fit(X, y)
        parts = GaussianProcessClassifier(**options)
        losses = []
        for start in range(0, 4000, 500):
            parts.partial_fit(X[start : start + 500], y[start : start + 500])
            losses.append(log_loss(parts, *new))
        assert losses[-1] < losses[0]
        assert_allclose(losses[-1], log_loss(whole, *new), atol=5e-3)
        assert_allclose(parts.log_marginal_likelihood_value_, whole.log_marginal_likelihood_value_, rtol=0.02)

    def test_classes_to_come(self):
        X, y = many_rows(300)
        settings = Inducing(inputs=X[:60])  # of the first rows, those of one class would be no good
        clf = GaussianProcessClassifier(2.0 * RBF(1.0), optimizer=None, inducing=settings)
        with pytest.raises(ValueError, match="classes="):
            clf.partial_fit(X[y == 0], y[y == 0])
        few = np.flatnonzero(y == 0)[:5]
        clf.partial_fit(X[few], y[few], classes=[0, 1]).partial_fit(X, y)
        assert clf.score(X, y) > 0.72
        with pytest.raises(ValueError, match="not among the classes"):
            clf.partial_fit(X, y + 5)

    def test_columns_by_name(self):
        pd = pytest.importorskip("pandas")
        X, y = many_rows(200)
        frame = pd.DataFrame(X, columns=["width", "height"])
        settings = Inducing(inputs=X[:20], dtype="float64")
        named = 2.0 * Columns(RBF(1.0), ["height"])
        by_name = GaussianProcessClassifier(named, optimizer=None, inducing=settings)
        by_place = GaussianProcessClassifier(2.0 * Columns(RBF(1.0), [1]), optimizer=None, inducing=settings)
        for rows in (slice(0, 100), slice(100, 200)):
            by_name.partial_fit(frame[rows], y[rows])
            by_place.partial_fit(X[rows], y[rows])
        assert_allclose(by_name.predict_proba(frame), by_place.predict_proba(X), rtol=1e-9)
        with pytest.raises(ValueError, match="names should match"):
            by_name.partial_fit(frame[["height", "width"]], y)

    def test_bad_costs_are_refused(self):
        X, y = many_rows(60)
        clf = GaussianProcessClassifier(
            2.0 * RBF(1.0), optimizer=None, inducing=10, cost_matrix=np.ones((3, 2))
        )
        with pytest.raises(ValueError, match="cost matrix has shape"):
            clf.partial_fit(X, y)
        assert not hasattr(clf, "classes_")
        clf.set_params(cost_matrix=[[0.0, 1.0], [9.0, 0.0]]).partial_fit(X, y)
        p = clf.predict_proba(X)
        assert (clf.predict(X) == (p[:, 1] >= 0.1)).all()

    def test_shortcomings_are_told(self):
        X, y = many_rows(300)
        clf = GaussianProcessClassifier(400.0 * RBF(0.4), optimizer=None, inducing=30, max_iter_predict=1)
        with pytest.warns(ConvergenceWarning, match="did not converge in"):
            clf.partial_fit(X, y)

    def test_labels_of_the_wrong_shape(self):
        X, y = many_rows(60)
        clf = GaussianProcessClassifier(2.0 * RBF(1.0), optimizer=None, inducing=10).partial_fit(X, y)
        with pytest.raises(ValueError, match="one label for each row of X"):
            clf.partial_fit(X, y[:10])


@pytest.mark.parametrize(
    "options",
    [{}, {"inference": "ep"}, {"classes": 3}, {"classes": 3, "multi_class": "one_vs_rest"}],
    ids=["vi", "ep", "softmax", "one_vs_rest"],
)
def test_model_files(options, tmp_path):
    import gpclass

    options = dict(options)
    X, y = load_iris(return_X_y=True)
    if options.pop("classes", 2) == 2:
        y = np.minimum(y, 1)
    if y.max() == 2:
        options = {"likelihood": "logit"} | options
    clf = GaussianProcessClassifier(2.0 * RBF(1.0), optimizer=None, inducing=12, **options).fit(X, y)
    clf.save(tmp_path / "model.gpc")
    back = gpclass.load(tmp_path / "model.gpc")
    np.testing.assert_array_equal(back.predict_proba(X), clf.predict_proba(X))
    assert back.log_marginal_likelihood_value_ == clf.log_marginal_likelihood_value_


def test_what_rows_in_passes_cannot_do_is_said():
    X, y = many_rows(300)

    def blocks():
        yield X, y

    with pytest.raises(ValueError, match="class_weight"):
        GaussianProcessClassifier(class_weight="balanced").fit(blocks)
    clf = GaussianProcessClassifier(optimizer=None, inducing=20, random_state=0).fit(blocks)
    assert clf.score(X, y) > 0.6


@pytest.mark.parametrize(
    ("options", "word"),
    [({"inference": "ep"}, "inference='vi'"), ({"likelihood": "softmax"}, "'logit'")],
)
def test_passes_do_not_change_the_model_silently(options, word):
    X, y = many_rows(60)
    for fit in (lambda clf: clf.partial_fit(X, y), lambda clf: clf.fit(lambda: [(X, y)])):
        with pytest.raises(ValueError, match=word):
            fit(GaussianProcessClassifier(**options))


def test_a_column_called_groups_is_a_column():
    pd = pytest.importorskip("pandas")
    X, y = many_rows(60)
    frame = pd.DataFrame(X, columns=["groups", "blocks"])
    clf = GaussianProcessClassifier(2.0 * RBF(1.0), optimizer=None).fit(frame, y)
    assert clf.predict(frame).shape == (60,)


def test_a_users_optimizer_gets_the_kernel_that_was_chosen_and_all_rows():
    X, y = many_rows(700)
    seen = []

    def stay(objective, theta, bounds):
        seen.append(theta)
        return theta, objective(theta, eval_gradient=False)

    options = {"inducing": 30, "random_state": 0}
    clf = GaussianProcessClassifier(optimizer=stay, **options).fit(X, y)
    chosen = GaussianProcessClassifier(**options).fit(X, y).kernel_
    assert len(seen) == 1
    assert len(seen[0]) == chosen.n_dims
    ours, theirs = re.split(r"[^A-Za-z]+", str(clf.kernel_)), re.split(r"[^A-Za-z]+", str(chosen))
    assert ours == theirs  # the same classes of kernels
