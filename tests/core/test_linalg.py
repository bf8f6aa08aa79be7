"""The B-form and conjugate gradients against explicit matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gpclass.core.linalg import (
    BForm,
    cholesky,
    clear_upper,
    conjugate_gradient,
    invert_factor,
    invert_positive,
    mirror,
    multiply,
    row_tiles,
)


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


def test_multiply_reads_the_lower_triangle_only(problem):
    K, _, _, _, rng = problem
    v = rng.normal(size=len(K))
    only_lower = np.tril(K) + np.triu(np.full(K.shape, np.nan), 1)
    assert_allclose(multiply(only_lower, v), K @ v, atol=1e-12)


def test_every_stage_gives_the_same_answers(problem):
    _, lower, s, B, rng = problem
    form = BForm(lower, s, np.zeros(B.shape))
    b, inverse = rng.normal(size=len(B)), np.linalg.inv(B)
    assert_allclose(form.half_logdet, 0.5 * np.linalg.slogdet(B)[1], rtol=1e-12)
    for advance in (lambda: None, form.inverse_diagonal, form.inverse):
        advance()
        assert_allclose(form.solve(b), inverse @ b, atol=1e-11)
    assert_allclose(form.inverse_diagonal(), inverse.diagonal(), atol=1e-12)
    assert_allclose(np.tril(form.matrix), np.tril(inverse), atol=1e-12)
    L_inverse = form.inverse_factor(lower, s)
    assert_allclose(L_inverse, np.linalg.inv(np.linalg.cholesky(B)), atol=1e-12)
    assert_allclose(form.inverse_diagonal(), inverse.diagonal(), atol=1e-12)


@pytest.mark.parametrize("n", [64, 193, 300, 511])
def test_the_blocked_factor_is_the_factor(n):
    A = np.random.default_rng(n).normal(size=(n, n))
    B = np.eye(n) + A @ A.T
    blocked = np.tril(B) + np.triu(np.full((n, n), 7.0), 64)
    cholesky(blocked, block=64)
    assert_allclose(np.tril(blocked), np.linalg.cholesky(B), atol=1e-10)
    with pytest.raises(np.linalg.LinAlgError):
        cholesky(B - 100.0 * np.eye(n) * (np.arange(n) == n - 1) * B[-1, -1], block=64)


@pytest.mark.parametrize("n", [1, 5, 64, 65, 200, 431, 600])
def test_triangles_are_inverted_and_mirrored_in_place(n):
    A = np.random.default_rng(n).normal(size=(n, n))
    B = np.eye(n) + A @ A.T / n
    L = np.linalg.cholesky(B)
    T = L + np.triu(np.full((n, n), 7.0), 1)
    invert_factor(T)
    assert_allclose(np.tril(T) @ L, np.eye(n), atol=1e-12)
    T = L + np.triu(np.full((n, n), 7.0), 1)
    invert_positive(T)
    mirror(T)
    assert_allclose(T, np.linalg.inv(B), atol=1e-12)
    clear_upper(T, diagonal=True)
    assert_allclose(T, np.tril(np.linalg.inv(B), -1), atol=1e-12)


@pytest.mark.parametrize("n", [3, 300, 1200])
def test_squares_of_the_inverse(n):
    A = np.random.default_rng(n).normal(size=(n, n))
    K, v = A @ A.T / n, np.random.default_rng(0).normal(size=n)
    form = BForm(K, np.ones(n), np.zeros((n, n)))
    assert_allclose(form.multiply_squares(v), np.linalg.inv(np.eye(n) + K) ** 2 @ v, atol=1e-11)


def test_an_indefinite_matrix_is_refused():
    with pytest.raises(np.linalg.LinAlgError):
        BForm(np.array([[0.0, 0.0], [5.0, 0.0]]), np.ones(2), np.zeros((2, 2)))


def test_conjugate_gradient_solves_or_says_that_it_cannot():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 60))
    B = np.eye(60) + A @ A.T
    b = rng.normal(size=60)
    near = np.linalg.inv(B * (1 + 0.01 * np.eye(60)))
    exact = np.linalg.solve(B, b)
    energy = 1.5 * b @ exact

    def solve(b, precondition, rtol, max_iter):
        return conjugate_gradient(
            lambda p: B @ p, b, precondition, energy=energy, rtol=rtol, max_iter=max_iter
        )

    for rtol in (1e-2, 1e-6, 1e-10):
        x = solve(b, lambda r: near @ r, rtol, 25)
        assert np.linalg.norm(b - B @ x) <= 1.001 * rtol * np.sqrt(energy - b @ exact)
    assert solve(b, lambda r: r, 1e-10, 12) is None
    assert_allclose(solve(0 * b, lambda r: r, 1e-8, 3), 0.0)


@pytest.mark.parametrize("n", [1, 31, 512, 5000])
def test_tiles_cover_every_row_once(n):
    rows = np.concatenate([np.arange(n)[tile] for tile in row_tiles(n)])
    assert_allclose(rows, np.arange(n))
