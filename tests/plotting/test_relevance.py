"""Inverse length scales of the columns, from the kernels of fitted classifiers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from gpclass.kernels import RBF, Columns, CompoundKernel
from gpclass.plotting import RelevanceDisplay


def test_scales_by_name_and_order(fit, moons):
    X, Y = moons
    frame = pd.DataFrame(np.column_stack([X, 10.0 * X[:, 0]]), columns=["a", "b", "c"])
    clf = fit(frame, Y, 2.0 * RBF([4.0, 0.5, 1.0]))
    display = RelevanceDisplay.from_estimator(clf)
    assert_allclose(display.relevance, [[0.25, 2.0, 1.0]])
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["b", "c", "a"]
    scaled = RelevanceDisplay.from_estimator(clf, frame)
    assert_allclose(scaled.relevance, [[0.25, 2.0, 1.0] * frame.std(ddof=0).to_numpy()])
    scaled.plot(n_top=2)
    assert scaled.order_.tolist() == np.argsort(-scaled.relevance[0])[:2].tolist()


def test_parts_of_a_kernel(fit, moons, moons_clf):
    X, Y = moons
    Z = np.column_stack([X, X[:, 0] ** 2])
    clf = fit(Z, Y, Columns(RBF([2.0, 4.0]), [0, 2]) + Columns(RBF(5.0), 1))
    assert_allclose(RelevanceDisplay.from_estimator(clf).relevance, [[0.5, 0.0, 0.25], [0.0, 0.2, 0.0]])
    with pytest.raises(ValueError, match="no length scale for each column"):
        RelevanceDisplay.from_estimator(moons_clf)


def test_a_kernel_for_each_class(fit, iris):
    kernel = CompoundKernel([RBF([1.0, 2.0]), RBF([4.0, 1.0]), RBF([1.0, 8.0])])
    display = RelevanceDisplay.from_estimator(fit(*iris, kernel, likelihood="softmax"))
    assert_allclose(display.relevance, [[1.0, 0.5], [0.25, 1.0], [1.0, 0.125]])
    assert list(display.labels) == ["setosa", "versicolor", "virginica"]


def test_sampled_scales_have_intervals(sampled_theta):
    display = RelevanceDisplay.from_estimator(sampled_theta, level=0.5)
    draws = np.exp(-sampled_theta.chains_.theta[:, :, 1:]).reshape(-1, 2)
    assert_allclose(display.low[0], np.quantile(draws, 0.25, axis=0))
    assert_allclose(display.high[0], np.quantile(draws, 0.75, axis=0))
    (bars,) = (container for container in display.ax_.containers)
    ends = np.array([segment[:, 0] for segment in bars[2][0].get_segments()])
    assert_allclose(ends, np.c_[display.low[0], display.high[0]][display.order_])


def test_length_scales_at_a_bound_are_marked(fit, moons):
    X, Y = moons
    clf = fit(X, Y, 2.0 * RBF([0.5, 100.0], (0.01, 100.0)))
    display = RelevanceDisplay.from_estimator(clf)
    assert display.at_bound.tolist() == [[False, True]]
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["at a bound"]
    hollow = display.ax_.lines[-1]
    assert_allclose(hollow.get_xdata(), [0.01])
    inside = RelevanceDisplay.from_estimator(fit(X, Y, 2.0 * RBF([0.5, 50.0], (0.01, 100.0))))
    assert not inside.at_bound.any()
    assert inside.ax_.get_legend() is None
