"""The greedy choice of inducing inputs against what it leaves unexplained."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from gpclass.kernels import RBF, WhiteKernel
from gpclass.priors.basis import greedy


class TestGreedy:
    def test_it_leaves_little_over(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(500, 2))
        kernel = 2.0 * RBF(1.0)
        chosen, share = greedy(kernel, X, 40, rng)
        K = kernel(X, X[chosen])
        left = 2.0 - np.einsum("ij,ji->i", K, np.linalg.solve(kernel(X[chosen]) + 1e-10 * np.eye(40), K.T))
        assert_allclose(share, left.mean() / 2.0, atol=1e-5)
        at_random = rng.permutation(500)[:40]
        K = kernel(X, X[at_random])
        inner = np.linalg.solve(kernel(X[at_random]) + 1e-10 * np.eye(40), K.T)
        assert left.mean() < 0.3 * (2.0 - np.einsum("ij,ji->i", K, inner)).mean()
        assert len(set(chosen.tolist())) == 40

    def test_it_stops_where_nothing_is_left(self):
        rng = np.random.default_rng(0)
        X = np.repeat(rng.normal(size=(7, 2)), 20, axis=0)
        chosen, share = greedy(RBF(1.0) + WhiteKernel(0.5), X, 50, rng)
        assert len(chosen) == 7
        assert share < 1e-9

    def test_tolerance(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(2000, 2))
        few, share = greedy(RBF(1.0), X, 500, rng, tol=1e-3)
        assert len(few) < 100
        assert share <= 1e-3
