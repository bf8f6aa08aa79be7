"""Bayes decisions against brute force; coupling of pairwise probabilities against its own minimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from gpclass import bayes_decision
from gpclass.learning.multiclass import couple

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(3), size=50)


@settings(deadline=None)
@given(arrays(float, (3, 4), elements=st.floats(-10, 10)), st.floats(-5, 5))
def test_no_action_is_cheaper(cost, reject):
    chosen = bayes_decision(P, cost)
    for p, action in zip(P, chosen, strict=True):
        expected = [sum(p[i] * cost[i, a] for i in range(3)) for a in range(4)]
        assert expected[action] <= min(expected) + 1e-12
    for p, action in zip(P, bayes_decision(P, cost, reject=reject), strict=True):
        least = min(sum(p[i] * cost[i, a] for i in range(3)) for a in range(4))
        assert (action == -1) == (least > reject) or abs(least - reject) < 1e-12


def test_without_costs_the_most_probable_class_wins():
    assert_array_equal(bayes_decision(P), P.argmax(axis=1))
    assert_array_equal(bayes_decision([[0.5, 0.5]]), [1])
    assert_array_equal(bayes_decision([[0.6, 0.4], [0.9, 0.1]], reject=0.2), [-1, 0])
    assert bayes_decision(np.empty((0, 2))).shape == (0,)


@pytest.mark.parametrize(("proba", "cost", "message"), [
    ([0.5, 0.5], None, "proba has shape"),
    ([[0.5, 0.6]], None, "Row 0 of proba sums to 1.1"),
    ([[1.5, -0.5]], None, "negative or non-finite"),
    ([[0.5, 0.5]], [[0, 1, 2]], "cost matrix has shape"),
    ([[0.5, 0.5]], [[0, np.nan], [1, 0]], "not finite"),
])  # fmt: skip
def test_bad_input_is_named(proba, cost, message):
    with pytest.raises(ValueError, match=message):
        bayes_decision(proba, cost)


def test_coupling_is_the_constrained_minimum():
    r = RNG.uniform(0.05, 0.95, size=(4, 4))
    r = np.triu(r, 1) + np.tril(1.0 - r.T, -1)

    def objective(p):
        return sum((r[j, i] * p[i] - r[i, j] * p[j]) ** 2 for i in range(4) for j in range(4) if i != j)

    constraint = {"type": "eq", "fun": lambda p: p.sum() - 1.0}
    end = minimize(objective, np.full(4, 0.25), constraints=constraint, bounds=[(0, 1)] * 4, tol=1e-14)
    assert_allclose(couple(r[None])[0], end.x, atol=1e-5)
    assert objective(couple(r[None])[0]) <= end.fun + 1e-12
    for p in RNG.dirichlet(np.ones(5), size=20):
        consistent = p[:, None] / (p[:, None] + p) * (1 - np.eye(5))
        assert_allclose(couple(consistent[None])[0], p, rtol=1e-9)
    sure = np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    assert_allclose(couple(sure[None])[0], [1.0, 0.0, 0.0], atol=1e-9)
