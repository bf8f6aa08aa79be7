"""Importance sampling against integrals, and the coverage of its standard errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from gpclass.sampling import importance, pareto_smooth
from gpclass.sampling.weigh import fit_pareto

AVERAGES = {
    "square, t": (np.square, stats.norm(), stats.t(5), 1.0),
    "shifted": (lambda x: x, stats.norm(1, 1), stats.t(3), 1.0),
    "tail": (lambda x: 1.0 * (x > 2.0), stats.norm(), stats.t(3), stats.norm.sf(2.0)),
    "skewed": (lambda x: x, stats.gamma(3), stats.lognorm(1.0, scale=2.0), 3.0),
    "bounded": (lambda x: x, stats.beta(2, 5), stats.uniform(), 2.0 / 7.0),
    "narrow": (np.square, stats.norm(), stats.norm(0, 0.8), 1.0),  # weights with a tail of k = 0.36
}


@pytest.mark.parametrize("n_runs", [200, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("normalised", [True, False], ids=["plain", "self-normalised"])
@pytest.mark.parametrize("name", AVERAGES)
def test_errors_are_within_three_standard_errors(name, normalised, n_runs):
    h, p, q, truth = AVERAGES[name]
    rng = np.random.default_rng(11)
    runs = [importance(h, p.logpdf, q, 1000, rng, normalised=normalised) for _ in range(n_runs)]
    error = np.array([run.value - truth for run in runs])
    reported = np.array([run.standard_error for run in runs])
    # Weights with a heavy tail are skewed: an estimate that lacks the largest is too low, and so is its error.
    assert np.mean(np.abs(error) <= 3.0 * reported) >= (0.96 if name == "narrow" else 0.985)
    assert np.median(reported) < 1.1 * error.std()  # and not by saying that nothing is known
    if name != "narrow":
        assert abs(error.mean()) < 4.0 * error.std() / n_runs**0.5


def test_importance_sampling_in_two_dimensions_with_several_averages():
    C = np.array([[1.0, 0.8], [0.8, 2.0]])
    p, q = stats.multivariate_normal([1.0, -1.0], C), stats.multivariate_t([0, 0], 3.0 * np.eye(2), df=5)
    estimate = importance(lambda x: np.column_stack([x, x**2]), p.logpdf, q, 50_000, rng=0)
    assert estimate.value.shape == estimate.standard_error.shape == (4,)
    truth = np.array([1.0, -1.0, 2.0, 3.0])
    assert (np.abs(estimate.value - truth) < 3 * estimate.standard_error).all()
    assert estimate.reliable
    assert 5_000 < estimate.ess < 50_000
    assert_allclose(estimate.weights.sum(), 1.0)
    assert_allclose(estimate.weights @ estimate.draws, estimate.value[:2], rtol=1e-12)


def test_equal_weights_are_the_plain_mean():
    for normalised in (True, False):
        estimate = importance(
            lambda x: x, stats.norm.logpdf, stats.norm(), 1000, rng=0, normalised=normalised
        )
        assert_allclose(estimate.value, estimate.draws.mean(), rtol=1e-12)
        assert_allclose(estimate.standard_error, stats.sem(estimate.draws), rtol=1e-3)
        assert_allclose(estimate.ess, 1000.0)
    constant = importance(lambda x: np.full_like(x, 2.5), stats.norm.logpdf, stats.t(5), 1000, rng=0)
    assert constant.value == pytest.approx(2.5, rel=1e-14)
    assert constant.standard_error < 1e-12
    assert importance(np.ones_like, stats.norm.logpdf, stats.norm(), 100, rng=0).khat is None


def test_a_scale_of_the_density_does_not_matter_and_the_plain_estimate_has_it():
    args = np.square, stats.t(5), 2000
    a = importance(args[0], lambda x: -0.5 * x**2 - 900.0, *args[1:], rng=0)
    b = importance(args[0], lambda x: -0.5 * x**2 + 900.0, *args[1:], rng=0)
    assert_allclose(a.value, b.value, rtol=1e-10)
    mass = importance(np.ones_like, lambda x: -0.5 * x**2, stats.t(5), 20_000, rng=0, normalised=True)
    assert abs(mass.value - (2 * np.pi) ** 0.5) < 3 * mass.standard_error


def test_hopeless_weights_are_called_unreliable():
    far = importance(lambda x: x, stats.norm(0, 1).logpdf, stats.norm(0, 0.3), 5000, rng=0)
    assert not far.reliable
    assert far.khat > 0.7
    # The weights are heavy, but where h is zero: nothing of that matters to a plain average.
    rare = importance(lambda x: 1.0 * (x > 3), stats.norm.logpdf, stats.norm(3), 5000, rng=0, normalised=True)
    assert rare.reliable
    assert abs(rare.value - stats.norm.sf(3)) < 3 * rare.standard_error
    never = importance(lambda x: 1.0 * (x > 9), stats.norm.logpdf, stats.norm(), 1000, rng=0, normalised=True)
    assert never.value == 0.0
    assert not never.reliable
    few = importance(lambda x: x, stats.norm.logpdf, stats.norm(), 9, rng=0)
    assert few.khat == np.inf
    assert not few.reliable


def test_weights_of_zero_are_allowed():
    uniform, half = stats.uniform(0, 2), lambda x: np.where(x < 1.0, 0.0, -np.inf)
    estimate = importance(lambda x: x, half, uniform, 20_000, rng=0)
    assert abs(estimate.value - 0.5) < 3 * estimate.standard_error < 0.02
    smoothed, khat = pareto_smooth(np.append(np.random.default_rng(0).normal(size=500), -np.inf))
    assert smoothed[-1] == -np.inf
    assert np.isfinite(khat)


norm = stats.norm.logpdf


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: importance(lambda x: x[:2], norm, stats.norm(), 9), r"shape \(2,\), or NaN, for 9 draws"),
        (lambda: importance(lambda x: x / 0.0 * 0.0, norm, stats.norm(), 9), "expected a finite number"),
        (lambda: importance(np.square, lambda x: x * np.nan, stats.norm(), 9), "log_density is nan"),
        (lambda: importance(np.square, lambda x: -np.inf * x**2, stats.norm(), 9), "All weights are zero"),
        (lambda: importance(np.square, np.square, stats.norm(), 2.5), "n_samples=2.5"),
        (lambda: importance(np.square, np.square, stats.norm(), 1), "n_samples=1"),
    ],
)
def test_importance_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- Pareto smoothing, against the distribution itself and against ArviZ ---


@pytest.mark.parametrize("k", [-0.3, 0.2, 0.6, 1.0])
def test_the_shape_of_a_pareto_tail_is_found(k):
    """Over many samples: the mean has the shrinkage to ½, the variance is that of the estimator."""
    rng = np.random.default_rng(0)
    shapes = [fit_pareto(np.sort(stats.genpareto(k).rvs(200, random_state=rng)))[0] for _ in range(200)]
    assert abs(np.mean(shapes) - (200 * k + 5) / 210) < 0.04
    assert np.std(shapes) < 1.3 * max(1.0 + k, 0.8) / 200**0.5


def test_smoothing_bounds_the_largest_weight_and_keeps_the_others():
    rng = np.random.default_rng(1)
    log_weights = 0.9 * rng.standard_exponential(4000) - 300.0
    smoothed, khat = pareto_smooth(log_weights)
    assert 0.6 < khat < 1.2
    assert smoothed.max() <= log_weights.max()
    n_tail = int(3 * 4000**0.5)
    order = np.argsort(log_weights)
    assert_allclose(smoothed[order[:-n_tail]], log_weights[order[:-n_tail]])
    assert pareto_smooth(np.full(1000, -7.0))[1] is None
    assert pareto_smooth(np.r_[np.zeros(999), 2000.0])[1] == np.inf


def test_smoothing_is_that_of_arviz():
    arviz = pytest.importorskip("arviz_stats.base")
    log_weights = np.random.default_rng(2).standard_exponential(2000) * 0.6
    theirs, khat = arviz.array_stats.psislw(-log_weights)  # it is given log likelihoods
    smoothed, ours = pareto_smooth(log_weights)
    assert_allclose(ours, khat, atol=0.02)
    assert_allclose(smoothed - np.logaddexp.reduce(smoothed), theirs, atol=0.02)
