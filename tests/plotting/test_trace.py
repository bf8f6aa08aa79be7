"""Markov chains: the traces of fitted classifiers and their diagnostics."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gpclass.plotting import TraceDisplay


def test_chains_of_an_estimator(sampled_f):
    chains = sampled_f.chains_
    display = TraceDisplay.from_estimator(sampled_f, rows=[2, 5])
    assert list(display.values) == ["log likelihood", "f[2]", "f[5]"]
    assert_array_equal(display.values["f[5]"], chains.f[:, :, 5])
    assert_array_equal(display.axes_[1].lines[1].get_ydata(), chains.f[1, :, 2])
    assert_allclose(display.diagnostics["f[2]"].rhat, chains.diagnostics().rhat[2])
    assert len(display.axes_) == 3
    assert [text.get_text() for text in display.axes_[2].get_legend().get_texts()] == [
        f"chain {i + 1}: {mean:.2f} accepted" for i, mean in enumerate(chains.accept.mean(axis=1))
    ]
    worst = int(np.argmax(chains.diagnostics().rhat))
    assert f"f[{worst}]" in TraceDisplay.from_estimator(sampled_f).values


def test_sampled_hyperparameters_have_their_names(sampled_theta):
    display = TraceDisplay.from_estimator(sampled_theta)
    names = ["constant value", "length scale[0]", "length scale[1]"]
    assert list(display.values)[:3] == names
    assert_allclose(display.values[names[2]], np.exp(sampled_theta.chains_.theta[:, :, 2]))
    assert display.axes_[0].get_yscale() == "log"


def test_no_chains(moons_clf):
    with pytest.raises(AttributeError, match="There are no chains"):
        TraceDisplay.from_estimator(moons_clf)
