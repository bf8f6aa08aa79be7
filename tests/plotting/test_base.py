"""What all displays have in common."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

from gpclass import GaussianProcessClassifier, plotting
from gpclass.plotting.base import short_names


def test_every_display_can_be_drawn_again(moons, moons_clf):
    X, y = moons
    display = plotting.PredictiveContourDisplay.from_estimator(moons_clf, X, y, grid_resolution=5)
    first = display.figure_
    assert display.plot() is display
    assert display.figure_ is not first
    assert display.ax_ is display.axes_[0]


def test_labels_may_be_soft_and_must_be_known(moons, moons_clf):
    X, y = moons
    draw = partial(plotting.PredictiveContourDisplay.from_estimator, moons_clf, X, grid_resolution=3)
    np.testing.assert_array_equal(draw(np.column_stack([0.8 - 0.6 * y, 0.2 + 0.6 * y])).codes, y)
    with pytest.raises(ValueError, match="The label 7 is not among the classes"):
        draw(np.append(y[1:], 7))


def test_short_names():
    names = ["k1__k1__constant_value", "k1__k2__length_scale", "k2__length_scale"]
    assert short_names(names) == ["constant value", "k1.k2.length scale", "k2.length scale"]


def test_tables_are_drawn_over_numbers_with_or_without_gaps_and_nothing_else():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=40), "b": rng.normal(size=40), "c": rng.choice(["u", "v"], 40)}
    )
    y = frame["a"] > 0.0
    frame.loc[::7, "a"] = np.nan
    displays = {1: plotting.LatentDisplay, 2: plotting.PredictiveContourDisplay}

    def draw(*names):
        clf = GaussianProcessClassifier("rbf", optimizer=None).fit(frame[list(names)], y)
        return displays[len(names)].from_estimator(clf, frame[list(names)], y, grid_resolution=5), clf

    display, clf = draw("a")
    np.testing.assert_allclose(display.proba[:, 0], clf.predict_proba(pd.DataFrame({"a": display.x}))[:, 1])
    assert np.isfinite(draw("a", "b")[0].proba).all()
    for names in (("c",), ("a", "c")):
        with pytest.raises(ValueError, match="Column 'c' of X is a text, expected numbers to draw"):
            draw(*names)
