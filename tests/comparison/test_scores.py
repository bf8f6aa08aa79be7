"""Scores of probabilities, against those of scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import brier_score_loss, log_loss, zero_one_loss

from gpclass.comparison import score


def draws(n_classes: int, seed: int, n: int = 40):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n_classes), size=n)
    codes = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    return p, codes


@given(st.integers(2, 4), st.integers(0, 2**20))
@settings(deadline=None, max_examples=30)
def test_scores_are_those_of_scikit_learn(n_classes, seed):
    p, codes = draws(n_classes, seed)
    s = score(np.log(p), codes)
    assert_allclose(s["log_loss"], log_loss(codes, p, labels=range(n_classes)), rtol=1e-12)
    assert_allclose(s["error"], zero_one_loss(codes, p.argmax(axis=1)), atol=1e-12)
    each = [brier_score_loss(codes == c, p[:, c]) for c in range(n_classes)]
    assert_allclose(s["brier"], each[1] if n_classes == 2 else sum(each), rtol=1e-12)


def test_standard_error_of_folds_by_hand():
    p, codes = np.full((6, 2), 0.5), np.array([0, 1, 0, 1, 0, 1])
    p[2:4], fold = [0.25, 0.75], np.array([0, 0, 1, 1, 2, 2])
    means = [np.log(2), -0.5 * np.log(0.25 * 0.75), np.log(2)]
    s = score(np.log(p), codes, fold=fold)
    assert_allclose(s["log_loss_error"], np.std(means, ddof=1) / np.sqrt(3))
    losses = -np.log(p[np.arange(6), codes])
    assert_allclose(score(np.log(p), codes)["log_loss_error"], np.std(losses, ddof=1) / np.sqrt(6))
    assert score(np.log(p), codes, fold=np.zeros(6))["log_loss_error"] is None
