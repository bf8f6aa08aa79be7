"""What all displays have in common."""

from __future__ import annotations

from gpclass import plotting
from gpclass.plotting.base import codes_of, short_names


def test_every_display_can_be_drawn_again(moons, moons_clf):
    X, y = moons
    display = plotting.PredictiveContourDisplay.from_estimator(moons_clf, X, y, grid_resolution=5)
    first = display.figure_
    assert display.plot() is display
    assert display.figure_ is not first
    assert display.ax_ is display.axes_[0]


def test_labels_and_names():
    assert codes_of(["b", "a", "z"], ["a", "b"]).tolist() == [1, 0, -1]
    assert codes_of([[0.2, 0.8], [0.9, 0.1]], ["a", "b"]).tolist() == [1, 0]
    assert codes_of(None, ["a"]) is None
    names = ["k1__k1__constant_value", "k1__k2__length_scale", "k2__length_scale"]
    assert short_names(names) == ["constant value", "k1.k2.length scale", "k2.length scale"]
