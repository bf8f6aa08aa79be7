"""Every way to name a method, its label, and the classifiers of scikit-learn by name."""

from __future__ import annotations

from numpy.testing import assert_allclose
from problems import two_moons_like
from sklearn.linear_model import LogisticRegression

from gpclass import GaussianProcessClassifier
from gpclass.comparison import BASELINES, compare
from gpclass.inference import EP
from gpclass.kernels import RBF
from gpclass.likelihoods import Probit

X, Y = two_moons_like(60)
KERNEL = 4.0 * RBF(1.5)
QUICK = {"kernel": KERNEL, "learn": False, "n_samples": 0, "random_state": 0}


def test_every_way_to_name_one():
    theirs = GaussianProcessClassifier(2.0 * RBF(0.5), optimizer=None, inference="ep")
    methods = ["ep", EP(power=0.5), ("ep", "probit"), (EP(), Probit()), theirs, "ep"]
    result = compare(X, Y, methods=methods, likelihood="logit", cv=None, **QUICK)
    labels = [
        "ep",
        "EP",
        "ep/probit",
        "EP/Probit",
        "GaussianProcessClassifier",
        "ep (2)",
    ]
    assert [row.label for row in result.rows] == labels
    assert [row.likelihood for row in result.rows] == [
        "logit",
        "logit",
        "probit",
        "probit",
        "probit",
        "logit",
    ]
    assert_allclose(result["ep/probit"].evidence, result["EP/Probit"].evidence)
    assert_allclose(result["GaussianProcessClassifier"].kernel.theta, (2.0 * RBF(0.5)).theta)
    assert not hasattr(theirs, "classes_"), "the user's own object is left as it was"
    assert result["EP"].estimator.inference == EP(power=0.5)


def test_options_reach_every_classifier():
    result = compare(X, Y, methods=("laplace", "ep"), cv=None, integration="map", **QUICK)
    assert [row.estimator.integration for row in result.rows] == ["map", "map"]


def test_a_classifier_of_another_kind_has_no_evidence():
    result = compare(X, Y, methods={"GP": "laplace", "line": LogisticRegression()}, **QUICK)
    row = result["line"]
    assert (row.evidence, row.corrected_evidence, row.kernel, row.likelihood) == (None,) * 4
    assert row.log_loss > 0
    assert result.best("evidence").label == "GP"


def test_baselines_by_name():
    X, y = two_moons_like(60)
    kernel = 4.0 * RBF(1.5)
    options = {"kernel": kernel, "cv": 3, "n_samples": 0, "learn": False, "random_state": 0}
    result = compare(X, y, methods=("laplace", *BASELINES), **options)
    assert [one.label for one in result.rows] == [
        "laplace",
        "sklearn-gp",
        "logistic-regression",
        "gradient-boosting",
    ]
    assert all(one.log_loss is not None and not one.note for one in result.rows)
    chosen = compare(X, y, methods="sklearn-gp", cv=2, n_samples=0).rows[0].estimator
    assert chosen[-1].kernel_.k1.constant_value != 1.0, "the default kernel is learned"
