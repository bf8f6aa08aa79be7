"""Bayes decisions against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from gpclass import bayes_decision

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(3), size=20)


@settings(max_examples=30, deadline=None)
@given(arrays(float, (3, 4), elements=st.floats(-10, 10)), st.floats(-5, 5))
def test_no_action_is_cheaper(cost, reject):
    chosen = bayes_decision(P, cost)
    for p, action in zip(P, chosen, strict=True):
        expected = [sum(p[i] * cost[i, a] for i in range(3)) for a in range(4)]
        assert expected[action] <= min(expected) + 1e-8 * np.abs(cost).max()
    for p, action in zip(P, bayes_decision(P, cost, reject=reject), strict=True):
        least = min(sum(p[i] * cost[i, a] for i in range(3)) for a in range(4))
        assert (action == -1) == (least > reject) or abs(least - reject) < 1e-7


def test_ties_go_to_the_last_also_if_rounding_breaks_them():
    third = 1.0 / 3.0
    nearly = [[third, third, third], [third + 2e-16, third, third - 2e-16], [0.4 + 1e-16, 0.4, 0.2]]
    for cost in (None, 1.0 - np.eye(3), 1e-5 - 1e6 * np.eye(3)):
        assert_array_equal(bayes_decision(nearly, cost), [2, 2, 1])
    assert_array_equal(bayes_decision([[0.5, 0.5], [0.5 + 1e-8, 0.5 - 1e-8]]), [1, 0])
    # A cost of 0.3 that is a sum of 0.1 and 0.2 in one column only.
    assert_array_equal(bayes_decision([[0.5, 0.5]], [[0.3, 0.1 + 0.2], [0.0, 0.0]]), [1])
    assert_array_equal(bayes_decision([[0.5, 0.5]], [[0.1 + 0.2, 0.3], [0.0, 0.0]]), [1])
    # Small expected costs are compared with each other, not with the largest cost.
    assert_array_equal(bayes_decision([[1.0 - 1e-20, 1e-20]], [[0, 1], [1e19, 0]]), [0])


def test_without_costs_the_most_probable_class_wins():
    assert_array_equal(bayes_decision(P), P.argmax(axis=1))
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
