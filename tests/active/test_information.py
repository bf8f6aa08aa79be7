"""The expected entropy of labels, against adaptive quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad, trapezoid
from scipy.special import entr, log_expit, log_ndtr, ndtr
from scipy.stats import norm

from gpclass.active.information import expected_entropy
from gpclass.likelihoods import LabelNoise, Logit, Probit

LINKS = {"probit": (Probit(), log_ndtr), "logit": (Logit(), log_expit)}


def binary_entropy(f, log_link):
    a, b = log_link(f), log_link(-f)
    return -(np.exp(a) * a + np.exp(b) * b)


@pytest.mark.parametrize("name", ["probit", "logit"])
@pytest.mark.parametrize("std", [1e-3, 0.3, 0.99, 1.7, 6.0, 80.0])
@pytest.mark.parametrize("mean", [0.0, -1.3, 9.0])
def test_expected_entropy_by_adaptive_quadrature(name, std, mean):
    likelihood, log_link = LINKS[name]
    ends = max(mean - 12 * std, -60.0), min(mean + 12 * std, 60.0)  # the entropy is below 1e-24 beyond
    truth = quad(
        lambda f: binary_entropy(f, log_link) * norm.pdf(f, mean, std),
        *ends,
        points=np.clip([-5.0, 0.0, 5.0, mean], *ends),
        epsabs=1e-13,
        epsrel=1e-11,
        limit=500,
    )[0]
    assert_allclose(expected_entropy(likelihood, np.array([mean]), np.array([std])), truth, atol=1e-10)


@pytest.mark.parametrize("std", [0.3, 6.0, 80.0])
def test_expected_entropy_of_labels_that_may_be_flipped(std):
    noisy, f = LabelNoise(rate=0.05), np.linspace(-12.0, 12.0, 40_001)
    p = 0.05 + 0.9 * ndtr(1.0 + std * f)
    truth = trapezoid((entr(p) + entr(1.0 - p)) * norm.pdf(f), f)
    assert_allclose(expected_entropy(noisy, np.array([1.0]), np.array([std])), truth, atol=1e-7)
