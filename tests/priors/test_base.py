"""Conjugate gradients against an explicit solution."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from gpclass.priors.base import conjugate_gradient


def test_conjugate_gradient_solves_or_says_that_it_cannot():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 60))
    B = np.eye(60) + A @ A.T
    b = rng.normal(size=60)
    near = np.linalg.inv(B * (1 + 0.01 * np.eye(60)))
    exact = np.linalg.solve(B, b)
    energy = 1.5 * b @ exact

    def solve(b, precondition, rtol, max_iter):
        return conjugate_gradient(lambda p: B @ p, b, precondition, max_iter, energy=energy, rtol=rtol)

    for rtol in (1e-2, 1e-6, 1e-10):
        x = solve(b, lambda r: near @ r, rtol, 25)
        assert np.linalg.norm(b - B @ x) <= 1.001 * rtol * np.sqrt(energy - b @ exact)
    assert solve(b, lambda r: r, 1e-10, 12) is None
    assert_allclose(solve(0 * b, lambda r: r, 1e-8, 3), 0.0)
