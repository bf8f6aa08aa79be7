"""Effects and importance: what is drawn are the arrays of the records, at the right places."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gpclass.plotting import EffectDisplay, ImportanceDisplay


def test_curves_and_bands_are_the_effects(moons_clf, moons):
    X, _ = moons
    display = EffectDisplay.from_estimator(moons_clf, X, [1, (0, 1)], grid_resolution=5)
    effect = moons_clf.effect(X, 1, grid_resolution=5)
    curve, mean, deviation = display.axes_
    assert_allclose(np.array(curve.lines[0].get_data()), [effect.grid, effect.mean])
    drawn = curve.collections[0].get_paths()[0].vertices
    assert_allclose([drawn[:, 1].min(), drawn[:, 1].max()], [effect.low.min(), effect.high.max()])
    rug = curve.lines[1].get_xdata()
    inside = (effect.grid[0] <= X[:, 1]) & (X[:, 1] <= effect.grid[-1])
    assert_allclose(np.sort(rug), np.sort(X[inside, 1]))
    assert curve.get_ylabel() == "average p(y = 1)"
    assert (mean.get_xlabel(), deviation.get_ylabel()) == ("x0", "x1")


def test_individual_curves_are_drawn(moons_clf, moons):
    X, _ = moons
    display = EffectDisplay.from_estimator(moons_clf, X, 1, individual=True, grid_resolution=5, max_rows=10)
    drawn = [line.get_ydata() for line in display.ax_.lines[:10]]
    assert_allclose(drawn, display.effects[0].individual)
    assert display.ax_.get_ylim()[1] > np.max(drawn)


def test_importance_without_labels_has_no_costs(moons_clf, moons):
    assert len(ImportanceDisplay.from_estimator(moons_clf, moons[0]).axes_) == 1


def test_columns_with_large_effects_come_first(fit):
    X = np.random.default_rng(0).normal(size=(80, 3))
    clf = fit(X, X[:, 1] + 0.3 * X[:, 2] > 0.0, "rbf", optimizer="fmin_l_bfgs_b")
    display = EffectDisplay.from_estimator(clf, X, kind="latent", grid_resolution=4)
    assert [axis.get_xlabel() for axis in display.axes_] == ["x1", "x2", "x0"]
    assert len({axis.get_ylim() for axis in display.axes_}) == 1


def test_levels_have_points_and_names(fit, moons):
    pd = pytest.importorskip("pandas")
    X, y = moons
    frame = pd.DataFrame({"height": X[:, 0], "sex": np.where(X[:, 1] > 0.2, "f", "m")})
    clf = fit(frame, y, "rbf")
    display = EffectDisplay.from_estimator(clf, frame, ["sex", ("height", "sex")], grid_resolution=4)
    points, _, deviation = display.axes_
    assert_allclose(points.lines[0].get_ydata(), clf.effect(frame, "sex").mean)
    assert [text.get_text() for text in points.get_xticklabels()] == ["f", "m"]
    assert [text.get_text() for text in deviation.get_yticklabels()] == ["f", "m"]


def test_classes_have_a_curve_each(fit, iris):
    clf = fit(*iris, likelihood="softmax", inference="laplace")
    display = EffectDisplay.from_estimator(clf, iris[0], 0, grid_resolution=4)
    assert len(display.ax_.collections) == 3
    assert len(display.ax_.get_legend().get_texts()) == 3


def test_importance_is_drawn_with_its_intervals(moons_clf, moons):
    display = ImportanceDisplay.from_estimator(moons_clf, *moons)
    found = display.importance
    shares, costs = display.axes_
    assert [text.get_text() for text in shares.get_yticklabels()] == list(found.features)
    assert_allclose(shares.lines[3].get_xdata(), found.total[:, 0])
    assert_allclose(costs.lines[0].get_xdata(), found.cost[:, 0])
    ends = shares.containers[1].lines[2][0].get_segments()
    assert_allclose([segment[:, 0] for segment in ends], found.total[:, 1:])
