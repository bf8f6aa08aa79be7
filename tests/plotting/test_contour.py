"""Class probabilities over two columns: the arrays are predictions, and lines lie where decisions change."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF
from gpclass.plotting import PredictiveContourDisplay


def rows_of(display):
    return np.stack(np.meshgrid(display.x0, display.x1), axis=-1).reshape(-1, 2)


def flips(clf, lines, step):
    """Return the share of points on the lines where the decision differs a step to either side."""
    found = []
    for path in lines.get_paths():
        points = path.vertices
        if len(points) < 3:
            continue
        along = np.gradient(points, axis=0)
        length = np.linalg.norm(along, axis=1)
        keep = length > 1e-9
        normal = np.stack([-along[keep, 1], along[keep, 0]], axis=1) / length[keep, None]
        sides = [clf.predict(points[keep] + sign * step * normal) for sign in (-1.0, 1.0)]
        found += [sides[0] != sides[1]]
    return np.concatenate(found).mean()


@pytest.mark.parametrize("cost", [None, [[0, 1], [6, 0]]])
def test_two_classes(fit, moons, cost):
    X, Y = moons
    clf = fit(X, Y, cost_matrix=cost)
    display = PredictiveContourDisplay.from_estimator(clf, X, Y, grid_resolution=80, latent_std=True)
    grid = rows_of(display)
    assert_allclose(display.proba.reshape(-1, 2), clf.predict_proba(grid))
    assert_allclose(display.latent_std.ravel(), clf.predict_latent(grid, return_std=True)[1])
    assert_array_equal(display.margin[:, :, 1].ravel() > 0.0, clf.predict(grid) == 1)
    (lines,) = display.boundary_
    assert flips(clf, lines, 0.02) > 0.97
    threshold = 0.5 if cost is None else 1.0 / 7.0
    points = np.concatenate([path.vertices for path in lines.get_paths()])
    assert_allclose(clf.predict_proba(points)[:, 1], threshold, atol=0.01)
    assert len(display.axes_) == 2
    assert display.ax_.get_xlabel() == "$x_{1}$"


@pytest.mark.parametrize("options", [{"inference": "laplace"}, {"multi_class": "one_vs_rest"}])
def test_three_classes(fit, iris, options):
    IRIS, SPECIES = iris
    frame = pd.DataFrame(IRIS, columns=["petal length", "petal width"])
    clf = fit(frame, SPECIES, likelihood="logit", **options)
    settings = {"grid_resolution": 40, "latent_std": True}
    display = PredictiveContourDisplay.from_estimator(clf, frame, SPECIES, **settings)
    grid = pd.DataFrame(rows_of(display), columns=frame.columns)
    assert_allclose(display.proba.reshape(-1, 3), clf.predict_proba(grid))
    assert_array_equal(clf.classes_[display.margin.argmax(axis=2).ravel()], clf.predict(grid))
    bare = fit(IRIS, SPECIES, likelihood="logit", **options)
    assert min(flips(bare, lines, 0.03) for lines in display.boundary_) > 0.95
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("petal length", "petal width")
    if "inference" in options:  # the mean square of draws about their mean over the classes
        few = grid.iloc[::500]
        _, cov = clf.predict_latent(few, return_cov=True)
        H = np.eye(3) - 1.0 / 3.0
        mine = display.latent_std.ravel()[::500]
        assert_allclose(mine**2, np.einsum("ab,ibc,ca->i", H, cov, H) / 2.0, rtol=1e-9)


def test_markers_and_legend_show_the_rows(moons, moons_clf):
    X, Y = moons
    display = PredictiveContourDisplay.from_estimator(moons_clf, X, Y, grid_resolution=10)
    drawn = [dots.get_offsets() for dots in display.ax_.collections if dots.get_label() in ("0", "1")]
    assert_allclose(drawn[0], X[Y == 0])
    assert_allclose(drawn[1], X[Y == 1])
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["0", "1", "decision boundary"]


def test_any_classifier_and_own_axes(moons, split):
    import matplotlib.pyplot as plt

    X, Y = moons
    clf = LogisticRegression().fit(X, Y)
    _, axis = plt.subplots()
    display = PredictiveContourDisplay.from_estimator(clf, X, ax=axis, grid_resolution=20)
    assert display.ax_ is axis
    points = np.concatenate([path.vertices for path in display.boundary_[0].get_paths()])
    assert_allclose(points @ clf.coef_[0] + clf.intercept_, 0.0, atol=0.02)
    with pytest.raises(ValueError, match="2 axes were given, expected 1"):
        display.plot(ax=[axis, axis])
    with pytest.raises(ValueError, match="expected two columns"):
        PredictiveContourDisplay.from_estimator(clf, split.X)


def test_no_boundary_in_view(fit, moons, moons_clf):
    X, Y = moons
    near = X[Y == 1][:1] + np.array([[0.0, 0.0], [0.01, 0.01]])
    display = PredictiveContourDisplay.from_estimator(
        moons_clf, near, moons_clf.predict(near), grid_resolution=9
    )
    assert display.boundary_ == []
    two = fit(X, Y, likelihood="softmax")
    display = PredictiveContourDisplay.from_estimator(two, X, Y, grid_resolution=9, latent_std=True)
    _, cov = two.predict_latent(rows_of(display), return_cov=True)
    difference = cov[:, 0, 0] + cov[:, 1, 1] - 2.0 * cov[:, 0, 1]
    assert_allclose(display.latent_std.ravel() ** 2, difference / 2.0, rtol=1e-9)


def test_one_model_per_class(fit, iris):
    """The deviations of several models are means over them."""
    X, y = iris
    clf = GaussianProcessClassifier(4.0 * RBF(0.7), optimizer=None, multi_class="one_vs_rest").fit(X, y)
    display = PredictiveContourDisplay.from_estimator(clf, X, y, grid_resolution=5, latent_std=True)
    std = clf.predict_latent(rows_of(display), return_std=True)[1]
    assert_allclose(display.latent_std.ravel() ** 2, (std**2).mean(axis=1))
