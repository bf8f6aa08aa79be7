"""Products, factors and inverses in place, against explicit matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gpclass.core.linalg import (
    cholesky,
    clear_upper,
    inverse_of,
    invert_factor,
    mirror,
    multiply,
    row_tiles,
)


@pytest.mark.parametrize("n", [1, 7, 130])
def test_multiply_reads_the_lower_triangle_only(n):
    rng = np.random.default_rng(n)
    A, v = rng.normal(size=(n, n)), rng.normal(size=n)
    K = A @ A.T
    only_lower = np.tril(K) + np.triu(np.full(K.shape, np.nan), 1)
    assert_allclose(multiply(only_lower, v), K @ v, atol=1e-10)


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
    T, half_logdet = inverse_of(np.tril(B))
    assert_allclose(half_logdet, np.log(L.diagonal()).sum())
    mirror(T)
    assert_allclose(T, np.linalg.inv(B), atol=1e-12)
    clear_upper(T, diagonal=True)
    assert_allclose(T, np.tril(np.linalg.inv(B), -1), atol=1e-12)


@pytest.mark.parametrize("n", [1, 31, 512, 5000])
def test_tiles_cover_every_row_once(n):
    rows = np.concatenate([np.arange(n)[tile] for tile in row_tiles(n)])
    assert_allclose(rows, np.arange(n))
