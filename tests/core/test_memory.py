"""How much memory is left, from files as the kernel writes them, and what is said when it does not suffice."""

from __future__ import annotations

import sys

import pytest

from gpclass.core import memory
from gpclass.core.memory import available_memory, require_memory

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
        monkeypatch.setattr(memory, "available_memory", lambda: 16e9)
        require_memory(20_000, 2.1)
        with pytest.raises(MemoryError, match=r"200,000 rows needs 672.0 GB and 16.0 GB is available"):
            require_memory(200_000, 2.1)
        monkeypatch.setattr(memory, "available_memory", lambda: None)
        require_memory(200_000, 2.1)

    def test_of_joint_predictions_do_not_advise_on_the_model(self, monkeypatch):
        monkeypatch.setattr(memory, "available_memory", lambda: 16e9)
        with pytest.raises(MemoryError, match="200,000 latent values") as refused:
            require_memory(200_000, 2.0, joint=True)
        assert "inducing" not in str(refused.value)
        assert "at most 31,000" in str(refused.value)
