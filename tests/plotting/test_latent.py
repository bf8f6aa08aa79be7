"""The latent function over one column: curves and bands are what the classifier predicts."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from scipy.special import ndtr

from gpclass.kernels import RBF
from gpclass.plotting import LatentDisplay


def test_arrays_are_the_predictions(fit, split):
    clf = fit(split.X, split.y, 9.0 * RBF(15.0))
    display = LatentDisplay.from_estimator(clf, split.X, split.y, level=0.8, grid_resolution=50)
    grid = display.x[:, None]
    mean, std = clf.predict_latent(grid, return_std=True)
    assert_allclose(display.mean[:, 0], mean)
    assert_allclose(display.high[:, 0] - mean, 1.2815515655446004 * std, rtol=1e-9)
    assert_allclose(display.proba[:, 0], clf.predict_proba(grid)[:, 1])
    assert_allclose(ndtr(display.low), display.proba_low)
    drawn = display.axes_[1].lines[-1]
    assert_allclose(drawn.get_ydata(), display.proba[:, 0])
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["80 % credible band", "mean", "0", "1"]
    assert display.axes_[1].get_ylabel() == "p(y = 1 | x)"


def test_sampled_bands_are_quantiles_of_draws(sampled_f, split):
    display = LatentDisplay.from_estimator(sampled_f, split.X, split.y, grid_resolution=15)
    draws = sampled_f.sample_latent(display.x[:, None], 40_000, random_state=1)
    low, high = np.quantile(draws, [0.025, 0.975], axis=1)
    std_of_draws = draws.std(axis=1)
    assert_allclose((display.low[:, 0] - low) / std_of_draws, 0.0, atol=0.1)
    assert_allclose((display.high[:, 0] - high) / std_of_draws, 0.0, atol=0.1)
    assert_allclose(ndtr(display.low), display.proba_low, atol=1e-5)


def test_three_classes_have_one_curve_each(fit, iris):
    X, y = iris
    clf = fit(X[:, :1], y, likelihood="softmax")
    display = LatentDisplay.from_estimator(clf, X[:, :1], y, grid_resolution=20)
    assert display.proba.shape == display.high.shape == (20, 3)
    assert_allclose(display.proba.sum(axis=1), 1.0)
    assert len({line.get_linestyle() for line in display.axes_[0].lines[1:]}) == 3


def test_two_classes_with_a_function_each_have_the_curve_of_their_difference(fit, split):
    two = fit(split.X, split.y, 9.0 * RBF(15.0), likelihood="softmax", inference="laplace")
    one = fit(split.X, split.y, 18.0 * RBF(15.0), likelihood="logit", inference="laplace")
    ours, theirs = (LatentDisplay.from_estimator(clf, split.X, grid_resolution=20) for clf in (two, one))
    for name in ("mean", "low", "high", "proba", "proba_low", "proba_high"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-6, err_msg=name)


def test_ordered_classes_have_one_function_and_several_probabilities(fit, iris):
    X, y = iris
    codes = np.unique(y, return_inverse=True)[1]
    display = LatentDisplay.from_estimator(
        fit(X[:, :1], codes, likelihood="ordinal"), X[:, :1], codes, grid_resolution=20
    )
    assert display.mean.shape == (20, 1)
    assert display.proba.shape == display.proba_high.shape == (20, 3)
    assert len({line.get_linestyle() for line in display.axes_[1].lines[1:]}) == 3
