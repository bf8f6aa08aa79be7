"""The minimiser against functions whose minima are known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gpclass.core.optimisers import MAX_ITER, RADIUS, minimise

FREE = np.array([[-10.0, 10.0]] * 3)
EXACT = 1e-10  # tolerance of searches that are to find the minimum itself


def quadratic(seed=0):
    """Return f, its minimum and its Hessian."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 3))
    H, x0 = A @ A.T + 0.1 * np.eye(3), rng.normal(size=3)
    return (lambda x: (0.5 * float((x - x0) @ H @ (x - x0)), H @ (x - x0))), x0, H


class Counted:
    def __init__(self, function):
        self.function, self.seen = function, []

    def __call__(self, x):
        self.seen.append(np.array(x))
        return self.function(x)


def test_with_the_curvature_known_two_evaluations_do():
    f, x0, H = quadratic()
    counted = Counted(f)
    message = minimise(counted, x0 + 0.5, FREE, np.linalg.inv(H)).message
    assert message == ""
    assert len(counted.seen) == 2
    assert_allclose(counted.seen[-1], x0, atol=1e-9)


@pytest.mark.parametrize("inverse", [None, np.eye(3), 1e-3 * np.eye(3), 1e3 * np.eye(3)])
@pytest.mark.parametrize("seed", range(5))
def test_a_wrong_curvature_only_costs_time(inverse, seed):
    f, _, _ = quadratic(seed)
    counted = Counted(f)
    message = minimise(counted, np.zeros(3), FREE, inverse, tol=EXACT).message
    best = min(counted.seen, key=lambda x: f(x)[0])
    assert message == ""
    assert f(best)[0] < 1e-4
    assert len(counted.seen) < 60


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_bounds_hold(seed, known):
    from scipy.optimize import minimize

    f, _, H = quadratic(seed)
    bounds = np.array([[-0.3, 0.3]] * 3)
    counted = Counted(f)
    minimise(counted, np.zeros(3), bounds, np.linalg.inv(H) if known else None, tol=EXACT)
    right = minimize(f, np.zeros(3), jac=True, bounds=bounds, method="trust-constr", options={"gtol": 1e-10})
    assert all(((x >= bounds[:, 0]) & (x <= bounds[:, 1])).all() for x in counted.seen)
    assert min(f(x)[0] for x in counted.seen) <= right.fun + 1e-6


def test_the_first_step_is_short_where_nothing_is_known():
    counted = Counted(lambda x: (1e4 * float(x @ x), 2e4 * x))
    minimise(counted, np.ones(3), FREE)
    assert np.linalg.norm(counted.seen[1] - 1.0) <= 1.0 + 1e-9


def test_no_step_is_longer_than_allowed():
    # Nearly linear, so that the curvature asks for steps of thousands.
    slope = np.array([1.0, -2.0, 0.5])
    counted = Counted(lambda x: (float(slope @ x) + 1e-6 * float(x @ x), slope + 2e-6 * x))
    minimise(counted, np.zeros(3), np.array([[-50.0, 50.0]] * 3))
    steps = np.abs(np.diff(counted.seen, axis=0))
    assert steps.max() <= RADIUS + 1e-9
    assert_allclose(counted.seen[-1], [-50.0, 50.0, -50.0])


def test_it_comes_out_of_a_plateau_without_leaving_for_a_corner():
    # -exp(-|x - 6|²/8): flat at the start, bent down on the way, with a minimum of -1 at 6.
    def f(x):
        value = -float(np.exp(-((x - 6.0) @ (x - 6.0)) / 8.0))
        return 1e3 * value, -1e3 * value * (x - 6.0) / 4.0

    counted = Counted(f)
    message = minimise(counted, np.zeros(2), FREE[:2]).message
    assert message == ""
    assert_allclose(min(counted.seen, key=lambda x: f(x)[0]), [6.0, 6.0], atol=1e-3)


def test_points_without_a_value_are_avoided():
    f, x0, _ = quadratic(1)

    def walled(x):
        return f(x) if x[0] < x0[0] + 0.1 else (np.inf, np.zeros(3))

    counted = Counted(walled)
    message = minimise(counted, x0 - 2.0, FREE, 5.0 * np.eye(3), tol=EXACT).message
    assert message == ""
    assert min(walled(x)[0] for x in counted.seen) < 1e-4


def test_a_gradient_that_is_wrong_is_told():
    message = minimise(lambda x: (float(x @ x), -2.0 * x), np.ones(3), FREE).message
    assert "before it converged" in message
    assert "n_restarts_optimizer" in message


def test_a_curved_valley():
    def rosenbrock(x):
        a, b = x
        value = (1.0 - a) ** 2 + 100.0 * (b - a * a) ** 2
        return value, np.array([-2.0 * (1.0 - a) - 400.0 * a * (b - a * a), 200.0 * (b - a * a)])

    counted = Counted(rosenbrock)
    minimise(counted, np.array([-1.2, 1.0]), FREE[:2], np.eye(2), tol=EXACT)
    assert min(rosenbrock(x)[0] for x in counted.seen) < 1e-6


def test_variables_at_a_bound_leave_newtons_step_of_the_others():
    # A quadratic of strongly correlated variables, one of them held at its bound: with the curvature known, one step
    # is to find the minimum of the others given that one.
    A = np.array([[1.0, 0.99, 0.2], [0.99, 1.0, 0.1], [0.2, 0.1, 1.0]])
    centre, bounds = np.array([2.0, -1.0, 0.5]), np.array([[-9.0, 1.0], [-9.0, 9.0], [-9.0, 9.0]])
    calls = []

    def function(x):
        calls.append(x)
        return 0.5 * float((x - centre) @ A @ (x - centre)), A @ (x - centre)

    start = np.array([1.0, 0.5, 0.5])
    message = minimise(function, start, bounds, np.linalg.inv(A)).message
    others = centre[1:] - np.linalg.solve(A[1:, 1:], A[1:, 0] * (1.0 - centre[0]))
    assert message == ""
    assert_allclose(calls[-1], [1.0, *others], atol=1e-8)
    assert len(calls) <= 3


def test_a_curvature_that_is_too_small_everywhere_is_mended_by_one_step():
    """As after a rung of fewer rows: each of the twenty directions would need a shortened step of its own otherwise."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 20))
    H, x0, bounds = A @ A.T + 20.0 * np.eye(20), rng.normal(size=20), np.array([[-10.0, 10.0]] * 20)
    f = Counted(lambda x: (0.5 * float((x - x0) @ H @ (x - x0)), H @ (x - x0)))
    minimise(f, np.zeros(20), bounds, 10.0 * np.diag(1.0 / np.diag(H)), tol=1e-8)
    assert_allclose(f.seen[-1], x0, atol=1e-2)
    assert len(f.seen) < 30


def test_where_no_point_has_a_value_the_search_ends_soon():
    f = Counted(lambda x: (1.0 if not x.any() else np.inf, np.ones(3)))
    message = minimise(f, np.zeros(3), FREE, np.eye(3)).message
    assert "before it converged" in message
    assert len(f.seen) <= 20


# ------------------------------------------------------------------------------------- stopping rules


@pytest.mark.parametrize("tol", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_search_ends_within_its_tolerance_of_the_minimum(tol, seed):
    f, _, _ = quadratic(seed)
    counted = Counted(f)
    message, inverse = minimise(counted, np.zeros(3), FREE, np.eye(3), tol=tol)
    best = min(counted.seen, key=lambda x: f(x)[0])
    gradient = f(best)[1]
    assert message == ""
    promised = 0.5 * float(gradient @ inverse @ gradient)
    gained = f(counted.seen[-2])[0] - f(best)[0] if len(counted.seen) > 1 else np.inf
    assert min(promised, gained) <= tol
    assert f(best)[0] < 20.0 * tol  # the minimum is 0; the inverse Hessian is an estimate


def test_a_looser_tolerance_takes_fewer_evaluations():
    numbers = []
    for tol in (1.0, 1e-2, 1e-8):
        counted = Counted(quadratic(2)[0])
        minimise(counted, np.full(3, 4.0), FREE, np.eye(3), tol=tol)
        numbers.append(len(counted.seen))
    assert numbers[0] < numbers[1] < numbers[2]


def test_nothing_is_tried_where_newtons_step_promises_less_than_the_tolerance():
    f, x0, H = quadratic()
    away = 1e-3 * np.ones(3)
    counted = Counted(f)
    message, inverse = minimise(counted, x0 + away, FREE, np.linalg.inv(H), tol=float(away @ H @ away))
    assert (message, len(counted.seen)) == ("", 1)
    assert_allclose(inverse, np.linalg.inv(H))


def test_a_promise_is_not_believed_before_the_curvature_is_known():
    """Without an inverse Hessian the first step promises little on a long gentle slope, and the search goes on."""

    def f(x):  # the minimum of -4.5 is at 30, and the first step gains 0.09
        return -0.3 * float(x[0]) + 0.005 * float(x[0]) ** 2, np.array([-0.3 + 0.01 * x[0]])

    counted = Counted(f)
    message = minimise(counted, np.zeros(1), np.array([[-100.0, 100.0]]), tol=0.15).message
    assert message == ""
    assert f(counted.seen[-1])[0] < -4.5 + 0.15


def test_running_out_of_iterations_is_an_error_with_the_default_number_only():
    slope = lambda x: (-float(x[0]), np.array([-1.0]))  # noqa: E731
    wide = np.array([[-1e9, 1e9]])
    counted = Counted(slope)
    message = minimise(counted, np.zeros(1), wide, max_iter=5).message
    assert (message, len(counted.seen)) == ("", 6)
    message = minimise(slope, np.zeros(1), wide).message
    assert f"stopped after {MAX_ITER + 1} evaluations with a gradient of norm 1 before" in message


# -------------------------------------------------------------------------- singular inverse Hessians


@pytest.mark.parametrize("seed", range(4))
def test_a_singular_inverse_hessian_confines_the_search_to_its_range(seed):
    f, x0, H = quadratic(seed)
    R = np.random.default_rng(seed + 10).normal(size=(3, 2))
    start = x0 + np.array([1.0, -2.0, 0.5])
    counted = Counted(f)
    message, inverse = minimise(counted, start, FREE, R @ R.T, tol=1e-10)
    assert message == ""
    across = np.linalg.svd(R)[0][:, 2]  # the direction that R does not reach
    assert_allclose((np.array(counted.seen) - start) @ across, 0.0, atol=1e-9)
    assert_allclose(inverse @ across, 0.0, atol=1e-9)
    # The minimum among start + R z.
    right = start + R @ np.linalg.solve(R.T @ H @ R, R.T @ H @ (x0 - start))
    assert_allclose(f(counted.seen[-1])[0], f(right)[0], atol=1e-8)


def test_variables_that_are_tied_stop_together_at_their_bound():
    """Two variables with one common value, which would leave the box: both are held, the third is free."""
    A = np.array([[1.0, 0.3, 0.2], [0.3, 1.0, 0.1], [0.2, 0.1, 1.0]])
    centre, bounds = np.array([3.0, 3.0, 0.5]), np.array([[-9.0, 1.0], [-9.0, 1.0], [-9.0, 9.0]])
    tied = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    for start in ([0.0, 0.0, 0.0], [1.0, 1.0, 0.0]):
        counted = Counted(lambda x: (0.5 * float((x - centre) @ A @ (x - centre)), A @ (x - centre)))
        message = minimise(counted, np.array(start), bounds, tied, tol=1e-10).message
        assert message == ""
        third = 0.5 + A[2, :2] @ [2.0, 2.0]
        assert_allclose(counted.seen[-1], [1.0, 1.0, third], atol=1e-4)
