"""Averages over classes whose variances are large or very different: accuracy, and bounded work."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from gpclass.likelihoods import Logit, MultiProbit, Softmax
from gpclass.likelihoods.largest import panels
from gpclass.likelihoods.softmax import log_sum

SCALES = [150.0, 250.0, 1e4, 1e8, 1e16]


def mixed(n, n_classes, scale, seed=0):
    """Means and variances of classes as wide as ``scale`` and of others, down to no variance at all."""
    rng = np.random.default_rng(seed)
    mean = np.sqrt(scale) * rng.normal(size=(n, n_classes)) * rng.choice([0.01, 1.0], size=(n, 1))
    var = scale * rng.uniform(0.2, 2.0, size=(n, n_classes))
    var[:, ::2] *= rng.choice([0.0, 1.0 / scale, 0.01, 1.0], size=var[:, ::2].shape)
    return mean, var


@pytest.mark.parametrize("scale", SCALES)
def test_two_classes_are_logit(scale):
    mean, var = mixed(60, 2, scale)
    truth = Logit().expected(np.ones(60), mean[:, 1] - mean[:, 0], var.sum(axis=1))
    value, first, second = log_sum(mean, var)
    np.testing.assert_allclose(
        mean[:, 1] - mean.max(axis=1) - value, truth.value, atol=1e-12 * np.sqrt(scale)
    )
    np.testing.assert_allclose(1.0 - first[:, 1], truth.slope, atol=1e-11)
    np.testing.assert_allclose(second, -np.stack([truth.curvature] * 2, axis=1), rtol=3e-8, atol=1e-13)


@pytest.mark.parametrize("scale", [150.0, 1e4, 1e16])
def test_derivatives_by_differences(scale):
    """E[p] and E[p (1 - p)] are derivatives of the value."""
    mean, var = mixed(6, 5, scale, seed=1)
    _, first, second = log_sum(mean, var)
    np.testing.assert_allclose(first.sum(axis=1), 1.0, atol=1e-11)
    assert (second >= 0.0).all()
    s = np.sqrt(scale)
    for c in range(5):
        h = np.where(np.arange(5) == c, 1e-3 * np.sqrt(1.0 + var[:, c : c + 1]), 0.0)
        at = [log_sum(mean + k * h, var) for k in (-2, -1, 1, 2)]
        tops = [(mean + k * h).max(axis=1) for k in (-2, -1, 1, 2)]
        weights = np.array([1.0, -8.0, 8.0, -1.0]) / (12.0 * h[:, c, None])
        slope = sum(w * (a[0] + t - mean.max(axis=1)) for w, a, t in zip(weights.T, at, tops, strict=True))
        np.testing.assert_allclose(slope, first[:, c], atol=1e-8 * max(1.0, s / h[:, c].min() * 1e-7))
        curvature = sum(w * a[1][:, c] for w, a in zip(weights.T, at, strict=True))
        np.testing.assert_allclose(curvature, second[:, c], atol=1e-8)


def test_both_rules_agree_where_they_meet():
    # Lattices serve standard deviations up to 14, panels larger ones.
    mean, var = mixed(30, 4, 90.0, seed=3)
    var[:, 1] = 14.0**2
    for below, above in zip(log_sum(mean, var), log_sum(mean, var * (1.0 + 1e-12)), strict=True):
        np.testing.assert_allclose(below, above, atol=5e-10)


@pytest.mark.parametrize("likelihood", [Softmax(), MultiProbit()], ids=repr)
@pytest.mark.parametrize("n_classes", [3, 4, 6])
@pytest.mark.parametrize("scale", [1e5, 1e16])
def test_prediction_against_monte_carlo(likelihood, n_classes, scale):
    rng = np.random.default_rng(4)
    mean, var = mixed(4, n_classes, scale, seed=5)
    A = np.sqrt(var)[:, :, None] * (np.eye(n_classes) + 0.2 * rng.normal(size=(4, n_classes, n_classes)))
    p = np.exp(likelihood.log_predict(mean, A @ A.transpose(0, 2, 1)))
    f = mean[:, None] + rng.normal(size=(4, 40_000, n_classes)) @ A.transpose(0, 2, 1)
    if likelihood == MultiProbit():
        f += rng.normal(size=f.shape)
        draws = np.equal(f, f.max(axis=2, keepdims=True)).astype(float)
    else:
        draws = softmax(f, axis=2)
    np.testing.assert_allclose(p, draws.mean(axis=1), atol=0.02)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("scale", [1e3, 1e8, 1e16, 1e100])
def test_work_is_bounded(n_classes, scale):
    """The nodes of a row are as many at a variance of 1e16 as at 1e3, with narrow classes among them."""
    mean, var = mixed(10, n_classes, scale, seed=6)
    assert all(np.isfinite(a).all() for a in log_sum(mean, var))
    s = np.sqrt(var)
    rule = panels(mean - 8.0 * s - 4.0, mean + 8.0 * s + 38.0, 1.6 * np.sqrt(var + 1.6), n_classes)
    assert max(np.count_nonzero(weight, axis=1).max() for _, _, weight in rule) < 500 * n_classes


def test_three_classes_at_absurd_variances():
    for likelihood in (Softmax(), MultiProbit()):
        for scale in (1e16, 1e40, 1e100):
            for C in (np.eye(3), np.ones((3, 3)), np.diag([1.0, 0.0, 0.0])):
                log_p = likelihood.log_predict(np.array([[0.0, 1.0, -2.0]]), scale * C[None])
                assert np.isfinite(log_p).all()
                assert np.exp(log_p).sum() == pytest.approx(1.0, abs=1e-9)
