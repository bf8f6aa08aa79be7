"""Rejection sampling against known distributions and integrals."""

from __future__ import annotations

import numpy as np
import pytest
from draws import MANY, same
from scipy import stats

from gpclass.sampling import (
    generalised_rejection,
    importance,
    rejection,
)


def test_rejection_of_a_bounded_density():
    result = rejection(lambda x: 5.0 * x * (1.0 - x) ** 4, 0.45, (0.0, 1.0), MANY, rng=0)
    assert result.draws.shape == (MANY,)
    assert same(result.draws, stats.beta(2, 5).cdf)
    mass = 5.0 / 30.0  # 5 B(2, 5)
    assert abs(result.log_mass - np.log(mass)) < 3 * result.standard_error < 0.01
    n = result.n_proposals
    assert abs(result.acceptance_rate - mass / 0.45) < 4 * (0.25 / n) ** 0.5
    assert n > MANY


class Disc:
    """Uniform on a square."""

    def rvs(self, size, random_state):
        return random_state.uniform(-1.0, 1.0, (size, 2))

    def logpdf(self, x):
        return np.full(len(x), -np.log(4.0))


def test_generalised_rejection():
    log_bound = -0.5 - stats.cauchy.logpdf(1.0)  # the ratio is greatest at -1 and 1
    result = generalised_rejection(lambda x: -0.5 * x**2, stats.cauchy(), log_bound, MANY, rng=0)
    assert same(result.draws, "norm")
    assert abs(result.log_mass - 0.5 * np.log(2 * np.pi)) < 3 * result.standard_error < 0.01


def test_generalised_rejection_in_two_dimensions():
    inside = generalised_rejection(
        lambda x: np.where((x**2).sum(axis=1) < 1.0, 0.0, -np.inf), Disc(), np.log(4.0), MANY, rng=0
    )
    assert inside.draws.shape == (MANY, 2)
    assert same((inside.draws**2).sum(axis=1), "uniform")  # of a disc: the squared radius is
    assert same(np.arctan2(*inside.draws.T), stats.uniform(-np.pi, 2 * np.pi).cdf)
    assert abs(np.exp(inside.log_mass) - np.pi) < 3 * np.pi * inside.standard_error
    C = np.array([[1.0, 0.8], [0.8, 1.0]])
    wide = stats.multivariate_normal(np.zeros(2), 1.8 * np.eye(2))  # C <= 1.8 I
    narrow = stats.multivariate_normal(np.zeros(2), C)
    log_bound = narrow.logpdf([0, 0]) - wide.logpdf([0, 0])
    result = generalised_rejection(narrow.logpdf, wide, log_bound, MANY, rng=0)
    assert same(np.einsum("ij,ij->i", result.draws @ np.linalg.inv(C), result.draws), stats.chi2(2).cdf)
    assert same(result.draws @ [1.0, -1.0], stats.norm(0, 0.4**0.5).cdf)
    assert abs(result.log_mass) < 3 * result.standard_error


def test_a_violated_bound_is_found():
    with pytest.raises(ValueError, match=r"exceeds its bound at 1\.57\d* by a factor of 1\.111"):
        rejection(np.sin, 0.9, (0.0, 3.0), 5000, rng=0)
    with pytest.raises(ValueError, match=r"exceeds its bound at .* by a factor of 2:"):
        generalised_rejection(stats.norm(0, 0.5).logpdf, stats.norm(), 0.0, 5000, rng=0)
    rejection(np.sin, 1.0, (0.0, 3.0), 5000, rng=0)  # is as high as its bound, and that is allowed


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rejection(np.sin, 1.0, (0.0, np.inf), 9), "expected finite ends"),
        (lambda: rejection(np.sin, 1.0, (1.0, 0.0), 9), "expected finite ends"),
        (lambda: rejection(np.sin, 0.0, (0.0, 1.0), 9), "bound=0.0 is not possible"),
        (lambda: rejection(np.sin, 1.0, (-1.0, 1.0), 9, 0), "never negative"),
        (lambda: rejection(lambda x: x * np.nan, 1.0, (0.0, 1.0), 9, 0), "density is nan"),
        (lambda: rejection(np.sin, 1.0, (0.0, 1.0), 0), "size=0 is not possible"),
        (lambda: rejection(np.sin, 1.0, (0.0, 1.0), 10, max_proposals=5), "even if all are accepted"),
        (lambda: rejection(np.zeros_like, 1.0, (0.0, 1.0), 1, 0), "as 0 of .* were accepted"),
        (lambda: rejection(lambda x: x < 1e-4, 1.0, (0.0, 1.0), 5000, 0), "max_proposals=10,000,000"),
        (lambda: generalised_rejection(np.square, stats.norm(), np.nan, 9), "log_bound=nan"),
        (lambda: generalised_rejection(np.square, Disc(), 0.0, 9, 0), r"shape \(10000, 2\)"),
    ],
)
def test_rejection_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_hopeless_is_refused_early():
    calls = []

    def density(x):
        calls.append(len(x))
        return 1e-6 * np.ones_like(x)

    with pytest.raises(ValueError, match="draws by rejection need"):
        rejection(density, 1.0, (0.0, 1.0), 10_000, rng=0)
    assert sum(calls) <= 100_000


def test_a_proposal_must_be_one():
    with pytest.raises(TypeError, match="cannot propose"):
        generalised_rejection(np.square, stats.poisson(3.0), 0.0, 9)
    with pytest.raises(TypeError, match="lacks rvs or logpdf"):
        importance(np.square, np.square, "normal", 9)
