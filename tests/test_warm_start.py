"""A warm start saves work in inference; it changes neither the kernel nor where learning ends."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import scale

from gpclass import GaussianProcessClassifier
from gpclass.core.hyperpriors import Shrinkage
from gpclass.kernels import RBF


def smooth(n=60, d=3, seed=0):
    """Return rows whose class depends on the first column in waves: no linear part helps."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, d))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=n) > 0.0


def several():
    X, y = load_wine(return_X_y=True)
    return scale(X)[::4, :3], y[::4]


def parts(kernel):
    """Return the structure of a kernel: the classes of its parts, in order."""
    below = [
        value for name, value in sorted(kernel.get_params(deep=False).items()) if hasattr(value, "theta")
    ]
    return (type(kernel).__name__, getattr(kernel, "nu", None), *map(parts, below))


def assert_same_fit(warm, cold, atol=0.02):
    """Compare two fits: the structure of the kernel, the evidence to a fraction of a nat, the probabilities."""
    assert parts(warm.kernel_) == parts(cold.kernel_)
    assert_allclose(warm.log_marginal_likelihood_value_, cold.log_marginal_likelihood_value_, atol=atol)
    X = warm.training_rows()[0]
    assert_allclose(warm.predict_proba(X), cold.predict_proba(X), atol=atol)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"inference": "laplace"},
        {"inference": "ep"},
        {"kernel": "rbf", "hyperprior": Shrinkage()},  # whose scale is chosen as well
        {"kernel": 1e-4 * RBF(1e-3)},  # where the evidence is flat, and no gradient leads out
    ],
    ids=["default", "laplace", "ep", "shrinkage", "flat start"],
)
def test_the_same_data_again_give_the_same_fit(options):
    X, y = smooth()
    cold = GaussianProcessClassifier(warm_start=True, **options).fit(X, y)
    assert_same_fit(deepcopy(cold).fit(X, y), cold)


def test_more_rows_than_learning_begins_on_give_the_same_fit_again():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X)[:320, :5], y[:320]
    cold = GaussianProcessClassifier(warm_start=True, inference="laplace").fit(X, y)
    assert_same_fit(deepcopy(cold).fit(X, y), cold)


@pytest.mark.parametrize(
    ("inference", "likelihood"), [("auto", "probit"), ("vi", "probit"), ("vi", "softmax"), ("laplace", "softmax")]
)  # fmt: skip
def test_several_classes_again_give_the_same_fit(inference, likelihood):
    X, y = several()
    cold = GaussianProcessClassifier(inference=inference, likelihood=likelihood, warm_start=True).fit(X, y)
    assert_same_fit(deepcopy(cold).fit(X, y), cold, atol=0.05)


@pytest.mark.parametrize(
    ("kernel", "inference"), [(None, "laplace"), (2.0 * RBF(1.0), "ep"), (2.0 * RBF(1.0), "vi")]
)
def test_other_data_of_another_width_are_fitted_as_from_cold(kernel, inference):
    X, y = smooth(100)
    other, labels = smooth(len(X), d=5, seed=1)
    clf = GaussianProcessClassifier(kernel, inference=inference, warm_start=True).fit(X, y)
    cold = clone(clf).fit(other, labels)
    assert_same_fit(clf.fit(other, labels), cold)


def test_other_classes_are_fitted_as_from_cold():
    X, y = load_iris(return_X_y=True)
    X, y = X[50::2], y[50::2]
    clf = GaussianProcessClassifier(warm_start=True, inference="laplace").fit(X, y)
    labels = np.where(y < 2, "yes", "no")  # the first and the second class change places
    assert_same_fit(clf.fit(X, labels), clone(clf).fit(X, labels))
