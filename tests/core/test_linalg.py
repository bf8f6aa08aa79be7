"""Products, factors and inverses in place, against explicit matrices."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gpclass.core import linalg
from gpclass.core.linalg import (
    available_memory,
    cholesky,
    clear_upper,
    inverse_of,
    invert_factor,
    mirror,
    multiply,
    require_memory,
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


GB = 10**9


def write(group, limit, used, cache=None):
    """Write the files of a control group."""
    (group / "memory.max").write_text(f"{limit}\n", "ascii")
    (group / "memory.current").write_text(f"{used}\n", "ascii")
    if cache is not None:
        stat = f"anon {used - cache}\nfile {cache}\ninactive_anon 7\ninactive_file {cache}\nactive_file 11\n"
        (group / "memory.stat").write_text(stat, "ascii")


class TestContainer:
    MB = 10**6  # limits that no machine is below

    def test_page_cache_can_be_given_back(self, tmp_path):
        write(tmp_path, 8 * self.MB, 7 * self.MB, cache=5 * self.MB)
        assert available_memory(tmp_path) == 6.0 * self.MB
        write(tmp_path, 8 * self.MB, 7 * self.MB, cache=0)
        assert available_memory(tmp_path) == 1.0 * self.MB

    def test_without_statistics_all_that_is_used_counts(self, tmp_path):
        write(tmp_path, 8 * self.MB, 7 * self.MB)
        assert available_memory(tmp_path) == 1.0 * self.MB

    def test_without_a_limit_it_is_what_the_machine_has(self, tmp_path):
        have = available_memory(tmp_path)  # no group at all
        write(tmp_path, "max", 7 * GB, cache=GB)
        limited = available_memory(tmp_path)
        assert have is None or limited == pytest.approx(have, rel=0.2)

    def test_numbers_that_were_read_at_different_times(self, tmp_path):
        write(tmp_path, 8 * self.MB, 2 * self.MB, cache=3 * self.MB)
        assert available_memory(tmp_path) == 8.0 * self.MB
        write(tmp_path, 8 * self.MB, 9 * self.MB, cache=0)
        assert available_memory(tmp_path) == 0.0


class TestMachine:
    def test_with_psutil_and_without(self, tmp_path, monkeypatch):
        psutil = pytest.importorskip("psutil")
        with_it = available_memory(tmp_path)
        assert with_it == pytest.approx(psutil.virtual_memory().available, rel=0.2)
        monkeypatch.setitem(sys.modules, "psutil", None)
        without = available_memory(tmp_path)
        assert without is None or without == pytest.approx(with_it, rel=0.2)

    def test_a_plausible_number(self):
        have = available_memory()
        assert have is None or 1e7 < have < 1e14


class TestRefusals:
    def test_come_before_memory_is_allocated(self, monkeypatch):
        monkeypatch.setattr(linalg, "available_memory", lambda: 16e9)
        require_memory(20_000, 2.1)
        with pytest.raises(MemoryError, match=r"200,000 rows needs 672.0 GB and 16.0 GB is available"):
            require_memory(200_000, 2.1)
        monkeypatch.setattr(linalg, "available_memory", lambda: None)
        require_memory(200_000, 2.1)

    def test_of_joint_predictions_do_not_advise_on_the_model(self, monkeypatch):
        monkeypatch.setattr(linalg, "available_memory", lambda: 16e9)
        with pytest.raises(MemoryError, match="200,000 latent values") as refused:
            require_memory(200_000, 2.0, joint=True)
        assert "inducing" not in str(refused.value)
        assert "at most 31,000" in str(refused.value)
