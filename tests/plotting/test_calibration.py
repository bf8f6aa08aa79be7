"""Calibration curves against scikit-learn's, and the coverage of their intervals."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import beta
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression

from gpclass.plotting import CalibrationDisplay
from gpclass.plotting.calibration import bin_counts, jeffreys


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_curve_is_scikit_learns(strategy):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=300) ** 2
    y = (rng.uniform(size=300) < p).astype(int)
    display = CalibrationDisplay.from_predictions(y, p, n_bins=7, strategy=strategy, level=0.9)
    true, pred = calibration_curve(y, p, n_bins=7, strategy=strategy)
    assert_allclose(display.line_.get_xydata(), np.column_stack([pred, true]))
    assert display.counts_.sum() == 300
    # Each bin by itself, from its mean: the sum of the probabilities in it.
    assert_allclose((pred * display.counts_).sum(), p.sum())
    assert_allclose((true * display.counts_).sum(), y.sum())
    hits = np.round(true * display.counts_)
    assert_allclose(display.high_[1:-1], beta.ppf(0.95, hits + 0.5, display.counts_ - hits + 0.5)[1:-1])


def test_intervals_hold_as_often_as_they_say():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, size=4000)
    hits = rng.binomial(40, p)
    low, high = jeffreys(hits / 40, np.full(4000, 40), 0.9)
    assert abs(((low <= p) & (p <= high)).mean() - 0.9) < 0.02
    assert jeffreys(np.array([0.0]), np.array([5]), 0.9)[0] == 0.0
    assert bin_counts(np.array([0.05, 0.06, 0.95]), 10).tolist() == [2, 1]


def test_estimators_side_by_side(moons, moons_clf):
    Z, z = make_moons(200, noise=0.25, random_state=1)
    first = CalibrationDisplay.from_estimator(moons_clf, Z, z)
    second = CalibrationDisplay.from_estimator(LogisticRegression().fit(*moons), Z, z, ax=first.ax_)
    assert first.line_.get_linestyle() != second.line_.get_linestyle()
    assert first.line_.get_marker() != second.line_.get_marker()
    ends = [container.lines[2][0].get_segments()[0][0][0] for container in first.ax_.containers]
    shift = [end - display.prob_pred[0] for end, display in zip(ends, (first, second), strict=True)]
    assert abs(shift[0] - shift[1]) > 0.005, "the bars of two curves are drawn beside each other"
    again = second.plot()
    assert again.ax_ is not first.ax_


def test_three_classes_are_judged_by_the_predicted_one(fit, iris):
    X, y = iris
    clf = fit(X, y, likelihood="softmax")
    display = CalibrationDisplay.from_estimator(clf, X, y, n_bins=4)
    p = clf.predict_proba(X)
    true, pred = calibration_curve(clf.predict(X) == y, p.max(axis=1), n_bins=4)
    assert_allclose(display.line_.get_xydata(), np.column_stack([pred, true]))
    assert "predicted class" in display.ax_.get_xlabel()
