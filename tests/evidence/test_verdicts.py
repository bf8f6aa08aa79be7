"""The sentences of a check."""

from __future__ import annotations

import numpy as np
import pytest

from gpclass.evidence.verdicts import on_approximation
from gpclass.sampling import ImportanceEstimate
from gpclass.sampling.pareto import khat_limit


@pytest.mark.parametrize(
    ("khat", "n_samples", "limit"), [("0.670", 1000, "0.667"), ("0.67", 400, "0.62"), ("0.80", 10**6, "0.70")]
)
def test_the_verdict_states_the_limit_of_khat_for_the_number_of_draws(khat, n_samples, limit):
    found = ImportanceEstimate(-1.0, 0.1, float(khat), 50.0, n_samples)
    verdict = on_approximation("EP", -1.0, found, np.zeros(1), np.zeros(1))
    assert f"khat = {khat} is not below {limit}, the limit for {n_samples} draws" in verdict
    assert float(khat) >= khat_limit(n_samples)
    assert not found.reliable


@pytest.mark.parametrize("method", ["Laplace", "EP", "VI"])
@pytest.mark.parametrize("khat", [0.1, 2.0])
def test_a_verdict_never_recommends_the_method_that_it_rejects(method, khat):
    found = ImportanceEstimate(-1.0, 0.1, khat, 900.0, 1000)
    said = on_approximation(method, -1.0, found, np.array([0.4]), np.array([0.001]))
    quick = " or ".join(name for name in ("VI", "EP") if name != method)
    assert f"use {quick}, or MCMC" in said
