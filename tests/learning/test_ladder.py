"""The ladder: rungs of more and more rows, where they start, and where they end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import two_moons_like
from scipy import stats

from gpclass.inference import VI, Laplace
from gpclass.kernels import RBF
from gpclass.learning.ladder import (
    GROWTH,
    State,
    climb,
    first_rung,
    learn,
    measured_inverse,
    rung_sizes,
    rung_tol,
)
from gpclass.learning.maximise import Plan, best_of
from gpclass.learning.problem import Problem
from gpclass.likelihoods import Logit

EXACT = 1e-9  # tolerance in nats of searches that are to find the maximum itself


def end_of(task):
    """Return the best end of learning from the kernel as given."""
    rng = np.random.default_rng(0)
    return best_of(task, [task.theta], Plan(), rng, tol=EXACT)


@pytest.mark.parametrize("n_rows", [2, 449, 450, 1000, 1799, 1800, 5000, 100_000])
def test_rungs_grow_by_a_factor_and_leave_out_those_that_save_little(n_rows):
    *sizes, last = rung_sizes(n_rows)
    assert last == n_rows
    assert sizes == [300 * GROWTH**k for k in range(len(sizes))]
    assert all(size <= 2 / 3 * n_rows for size in sizes)
    assert 300 * GROWTH ** len(sizes) > 2 / 3 * n_rows


def test_the_tolerance_of_a_rung_is_a_share_of_its_sampling_error():
    """The optimum on a sample is off by p / 2 nats in the mean, half a chi-square of p degrees (Wilks)."""
    for p in (1, 7):
        assert_allclose(rung_tol(p), 0.1 * 0.5 * stats.chi2(p).mean())
    assert rung_tol(0) > 0.0


def many(n=500, **options):
    inputs, labels = two_moons_like(n)
    kernel = 2.0 * RBF([1.0, 1.0], (1e-2, 1e3))
    return Problem(inputs, labels, None, kernel, Logit(), Laplace(), **options)


def test_a_rung_starts_where_the_last_one_ended():
    task = many()
    few = first_rung(task)
    assert len(few.X) == 300
    state = climb(State(few, end_of(few)), Plan(), last=False)
    above = climb(state.onto(task), Plan(), last=True)
    assert_allclose(above.problem.theta, above.learned.theta)
    assert_allclose(above.learned.history.theta[0], state.learned.theta)
    whole = end_of(task)
    assert_allclose(above.learned.objective, whole.objective, atol=0.02)
    assert len(above.learned.history) < len(whole.history)
    words = []
    climb(state, Plan(report=words.append), last=False)
    assert words[0] == "learning on 300 rows"


def test_rungs_end_where_a_search_on_all_rows_ends():
    task = many()
    found, learned = learn(task, Plan(), np.random.default_rng(0))
    assert_allclose(found.theta, learned.theta)
    assert learned.message == ""
    assert_allclose(learned.objective, end_of(task).objective, atol=0.02)
    assert len(found.X) == len(task.X)


def test_no_fit_ends_below_the_kernel_as_given():
    """The maximum on all rows is given, and the first rung has another one."""
    task = many()
    best = end_of(task)
    _, learned = learn(task.at(best.theta), Plan(), np.random.default_rng(0))
    assert learned.objective >= best.objective - 1e-6


def test_one_row_of_a_class_is_enough_for_rungs():
    task = many()
    labels = np.full(len(task.X), -1.0)
    labels[123] = 1.0
    few = first_rung(replace(task, y=labels))
    assert (few.y > 0.0).sum() == 1


def test_the_curvature_of_a_rung_is_that_of_fewer_rows_in_proportion():
    """A rung with twice the rows starts from half of the inverse Hessian, which is known on 300 rows."""
    task = many(600)
    few = first_rung(task)
    end = end_of(few)
    inverse = measured_inverse(State(few, end))
    above = measured_inverse(State(task, replace(end, warm=None)))
    assert_allclose(above, 0.5 * inverse, rtol=0.1)  # but for the wide prior
    state = State(few, replace(end, inverse_hessian=inverse)).onto(task)
    assert_allclose(state.learned.inverse_hessian, 0.5 * inverse)
    assert state.learned.warm is None


def test_a_rung_with_another_method_is_climbed_with_its_own_curvature():
    """The end is that of the method of the last rung."""
    task = many(200)
    other = VI()

    def with_vi(state):
        return state.onto(replace(task.like(state.problem), inference=other))

    given = replace(task, inference=VI(max_iter=50))
    _, learned = learn(given, Plan(), np.random.default_rng(0), ladder=[with_vi])
    assert_allclose(learned.objective, end_of(replace(task, inference=other)).objective, atol=0.02)
