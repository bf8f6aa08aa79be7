"""The minimisers against functions whose minima are known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gpclass.core.optimisers import from_afar, from_nearby

FREE = np.array([[-10.0, 10.0]] * 3)


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
    message, _ = from_nearby(counted, x0 + 0.5, FREE, np.linalg.inv(H))
    assert message == ""
    assert len(counted.seen) == 2
    assert_allclose(counted.seen[-1], x0, atol=1e-9)


@pytest.mark.parametrize("minimise", [from_afar, lambda *a: from_nearby(*a, np.eye(3))])
@pytest.mark.parametrize("seed", range(5))
def test_a_wrong_curvature_only_costs_time(minimise, seed):
    f, x0, _ = quadratic(seed)
    counted = Counted(f)
    message, _ = minimise(counted, np.zeros(3), FREE)
    best = min(counted.seen, key=lambda x: f(x)[0])
    assert message == ""
    assert_allclose(best, x0, atol=3e-4)


@pytest.mark.parametrize("seed", range(8))
def test_bounds_hold(seed):
    from scipy.optimize import minimize

    f, _, H = quadratic(seed)
    bounds = np.array([[-0.3, 0.3]] * 3)
    counted = Counted(f)
    from_nearby(counted, np.zeros(3), bounds, np.linalg.inv(H))
    right = minimize(f, np.zeros(3), jac=True, bounds=bounds, method="trust-constr", options={"gtol": 1e-10})
    assert all(((x >= bounds[:, 0]) & (x <= bounds[:, 1])).all() for x in counted.seen)
    assert min(f(x)[0] for x in counted.seen) <= right.fun + 1e-6


def test_the_first_step_from_afar_is_short():
    counted = Counted(lambda x: (1e4 * float(x @ x), 2e4 * x))
    from_afar(counted, np.ones(3), FREE)
    assert np.linalg.norm(counted.seen[1] - 1.0) <= 1.0 + 1e-9


def test_a_curved_valley():
    def rosenbrock(x):
        a, b = x
        value = (1.0 - a) ** 2 + 100.0 * (b - a * a) ** 2
        return value, np.array([-2.0 * (1.0 - a) - 400.0 * a * (b - a * a), 200.0 * (b - a * a)])

    counted = Counted(rosenbrock)
    from_nearby(counted, np.array([-1.2, 1.0]), FREE[:2], np.eye(2))
    assert min(rosenbrock(x)[0] for x in counted.seen) < 1e-6
