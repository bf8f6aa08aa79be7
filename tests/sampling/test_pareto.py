"""Pareto smoothing against the distribution itself and against ArviZ."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import genpareto

from gpclass.sampling.pareto import fit_pareto, pareto_smooth


@pytest.mark.parametrize("k", [-0.3, 0.2, 0.6, 1.0])
def test_the_shape_of_a_pareto_tail_is_found(k):
    """Over many samples: the mean has the shrinkage to ½, the variance is that of the estimator."""
    rng = np.random.default_rng(0)
    shapes = [fit_pareto(np.sort(genpareto(k).rvs(200, random_state=rng)))[0] for _ in range(200)]
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
    stats = pytest.importorskip("arviz_stats.base")
    log_weights = np.random.default_rng(2).standard_exponential(2000) * 0.6
    theirs, khat = stats.array_stats.psislw(-log_weights)  # it is given log likelihoods
    smoothed, ours = pareto_smooth(log_weights)
    assert_allclose(ours, khat, atol=0.02)
    assert_allclose(smoothed - np.logaddexp.reduce(smoothed), theirs, atol=0.02)
