"""Markov chains: autocorrelations and ranks by hand, and the chains of fitted classifiers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gpclass.plotting import TraceDisplay
from gpclass.plotting.trace import autocorrelation, rank_counts


def test_autocorrelation_by_sums_and_by_law():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((3, 20_000))
    series = np.zeros_like(noise)
    for t in range(1, noise.shape[1]):
        series[:, t] = 0.8 * series[:, t - 1] + noise[:, t]
    found = autocorrelation(series, 5)
    assert_allclose(found.mean(axis=0), 0.8 ** np.arange(6), atol=0.03)
    away = series[0] - series[0].mean()
    direct = [away[: len(away) - k] @ away[k:] / (away @ away) for k in range(6)]
    assert_allclose(found[0], direct, rtol=1e-9)
    assert_array_equal(autocorrelation(np.ones((1, 9)), 2), [[1.0, 0.0, 0.0]])


def test_ranks():
    low, high = np.arange(100.0), np.arange(100.0, 200.0)
    counts = rank_counts(np.stack([low, high]), 4)
    assert_array_equal(counts, [[50, 50, 0, 0], [0, 0, 50, 50]])


def test_chains_of_an_estimator(sampled_f):
    chains = sampled_f.chains_
    display = TraceDisplay.from_estimator(sampled_f, rows=[2, 5])
    assert list(display.values) == ["log likelihood", "f[2]", "f[5]"]
    assert_array_equal(display.values["f[5]"], chains.f[:, :, 5])
    assert_array_equal(display.axes_[3].lines[1].get_ydata(), chains.f[1, :, 2])
    assert_allclose(display.diagnostics["f[2]"].rhat, chains.diagnostics().rhat[2])
    assert len(display.axes_) == 10
    assert [line.get_label() for line in display.axes_[-1].lines] == [
        f"chain {i + 1}: {mean:.2f}" for i, mean in enumerate(chains.accept.mean(axis=1))
    ]
    worst = int(np.argmax(chains.diagnostics().rhat))
    assert f"f[{worst}]" in TraceDisplay.from_estimator(sampled_f).values


def test_sampled_hyperparameters_have_their_names(sampled_theta):
    display = TraceDisplay.from_estimator(sampled_theta)
    names = ["constant value", "length scale[0]", "length scale[1]"]
    assert list(display.values)[:3] == names
    assert_allclose(display.values[names[2]], np.exp(sampled_theta.chains_.theta[:, :, 2]))
    assert display.axes_[3].get_yscale() == "log"


def test_no_chains(moons_clf):
    with pytest.raises(AttributeError, match="There are no chains"):
        TraceDisplay.from_estimator(moons_clf)
