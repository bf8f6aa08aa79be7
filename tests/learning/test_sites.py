"""Fits by Gaussian sites: leave-one-out probabilities against really leaving out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import two_moons_like

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF


@pytest.mark.parametrize("inference", ["laplace", "ep", "vi"])
@pytest.mark.parametrize("likelihood", ["logit", "probit"])
def test_leave_one_out_is_near_really_leaving_out(inference, likelihood):
    X, y = two_moons_like(30)
    options = {"kernel": 3.0 * RBF(1.0), "inference": inference, "likelihood": likelihood, "optimizer": None}
    clf = GaussianProcessClassifier(**options).fit(X, y)
    for i in range(0, 30, 6):
        rest = GaussianProcessClassifier(**options).fit(np.delete(X, i, 0), np.delete(y, i))
        assert np.abs(clf.loo_proba_[i] - rest.predict_proba(X[i : i + 1])[0]).max() < 0.02
    own = clf.loo_proba_[np.arange(30), (y > 0).astype(int)]
    assert_allclose(clf.loo_log_score_, np.log(own).mean(), rtol=1e-12)


def test_leave_one_out_knows_copies_and_classes():
    X, y = two_moons_like(20)
    options = {"kernel": 3.0 * RBF(1.0), "inference": "ep", "optimizer": None}
    twice = GaussianProcessClassifier(**options).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert twice.loo_proba_.shape == (40, 2)
    assert_allclose(twice.loo_proba_[::2], twice.loo_proba_[1::2])
    one = GaussianProcessClassifier(**options).fit(
        np.delete(np.repeat(X, 2, axis=0), 0, 0), np.delete(np.repeat(y, 2), 0)
    )
    assert np.abs(one.predict_proba(X[:1]) - twice.loo_proba_[0]).max() < 0.02
    three = GaussianProcessClassifier(**options).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    assert_allclose(three.loo_proba_.sum(axis=1), 1.0)
    three.set_params(multi_class="one_vs_one").fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    assert not hasattr(three, "loo_proba_")
