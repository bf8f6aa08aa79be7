"""The factors of B = I + S K S against explicit matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gpclass.core.protocols import Sites
from gpclass.priors.independent import INVERSE, IndependentConditioned


@pytest.fixture(params=[1, 7, 130, 700])
def problem(request):
    n = request.param
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    K = A @ A.T / n
    s = rng.uniform(0.0, 2.0, size=n)
    B = np.eye(n) + s[:, None] * K * s
    lower = np.tril(K) + np.triu(np.full((n, n), np.nan), 32)  # beyond a tile's corner nobody may look
    return K, lower, s, B, rng


def test_every_stage_gives_the_same_answers(problem):
    _, lower, s, B, rng = problem
    b, inverse = rng.normal(size=len(B)), np.linalg.inv(B)
    q = IndependentConditioned(lower, Sites(b, s**2), np.zeros(B.shape))
    assert_allclose(q.half_logdet, 0.5 * np.linalg.slogdet(B)[1], rtol=1e-12)
    for stage in range(INVERSE + 1):
        q.advance(stage)
        assert_allclose(q.precondition(b), inverse @ b, atol=1e-11)
    assert_allclose(q.inverse_diagonal, inverse.diagonal(), atol=1e-12)
    assert_allclose(np.tril(q.B), np.tril(inverse), atol=1e-12)
    assert_allclose(q.root(), np.linalg.inv(np.linalg.cholesky(B)) * s, atol=1e-12)


@pytest.mark.parametrize("n", [3, 300, 1200])
def test_squares_of_the_inverse(n):
    A = np.random.default_rng(n).normal(size=(n, n))
    K, v = A @ A.T / n, np.random.default_rng(0).normal(size=n)
    q = IndependentConditioned(K, Sites(v, np.ones(n)), np.zeros((n, n)))
    assert_allclose(q.multiply_squares(v), np.linalg.inv(np.eye(n) + K) ** 2 @ v, atol=1e-11)


def test_an_indefinite_matrix_is_refused():
    with pytest.raises(np.linalg.LinAlgError):
        IndependentConditioned(
            np.array([[0.0, 0.0], [5.0, 0.0]]), Sites(np.ones(2), np.ones(2)), np.zeros((2, 2))
        )
