"""scikit-learn's own tests of its classifier, run on ours, and its checks of estimators."""

from __future__ import annotations

from functools import partial

import pytest
from sklearn.gaussian_process.tests import test_gpc as suite
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpclass import GaussianProcessClassifier

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::gpclass.DoubtfulFitWarning"),
]
VARIANTS = {
    "defaults": GaussianProcessClassifier,
    "laplace-logit": partial(GaussianProcessClassifier, inference="laplace", likelihood="logit"),
}


@pytest.fixture(params=VARIANTS)
def variant(request, monkeypatch):
    if request.param == "defaults" and request.node.originalname == "test_warning_bounds":
        pytest.skip("counts the hyperparameters that are at their bounds where Laplace's evidence is largest")
    monkeypatch.setattr(suite, "GaussianProcessClassifier", VARIANTS[request.param])


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
    check(estimator)
