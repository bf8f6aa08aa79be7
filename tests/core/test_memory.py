"""How much memory is left, from files as the kernel writes them, and what is said when it does not suffice."""

from __future__ import annotations

import sys

import pytest

from gpclass.core import memory
from gpclass.core.memory import available_memory, require_memory

GB = 10**9
VERSIONS = {
    "two": (".", "memory.max", "memory.current", "inactive_file"),
    "one": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


@pytest.fixture
def group(tmp_path, monkeypatch):
    """Return a function that writes the files of a control group, on a machine with 64 GB left."""
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    monkeypatch.setattr(memory, "_of_machine", lambda: 64.0 * GB)

    def write(version, limit, used, cache=None):
        folder, *names, cached = VERSIONS[version]
        (tmp_path / folder).mkdir(exist_ok=True)
        for name, value in zip(names, (limit, used), strict=True):
            (tmp_path / folder / name).write_text(f"{value}\n", "ascii")
        if cache is not None:
            stat = f"anon {used - cache}\nfile {cache}\ninactive_anon 7\n{cached} {cache}\nactive_file 11\n"
            (tmp_path / folder / "memory.stat").write_text(stat, "ascii")

    return write


class TestContainer:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_page_cache_can_be_given_back(self, group, version):
        group(version, 8 * GB, 7 * GB, cache=5 * GB)
        assert available_memory() == 6.0 * GB
        require_memory(20_000, 1.0)  # 3.2 GB: more than the limit less all that is used
        group(version, 8 * GB, 7 * GB, cache=0)
        assert available_memory() == 1.0 * GB
        with pytest.raises(MemoryError, match=r"needs 3.2 GB and 1.0 GB is available"):
            require_memory(20_000, 1.0)

    @pytest.mark.parametrize("version", VERSIONS)
    def test_without_statistics_all_that_is_used_counts(self, group, version):
        group(version, 8 * GB, 7 * GB)
        assert available_memory() == 1.0 * GB

    @pytest.mark.parametrize(("version", "limit"), [("two", "max"), ("one", 9223372036854771712)])
    def test_without_a_limit_it_is_what_the_machine_has(self, group, version, limit):
        group(version, limit, 7 * GB, cache=GB)
        assert available_memory() == 64.0 * GB

    def test_numbers_that_were_read_at_different_times(self, group):
        group("two", 8 * GB, 2 * GB, cache=3 * GB)
        assert available_memory() == 8.0 * GB
        group("two", 8 * GB, 9 * GB, cache=0)
        assert available_memory() == 0.0
        with pytest.raises(MemoryError, match=r"0\.0 GB is available"):
            require_memory(1000, 1.0)

    def test_without_a_group(self, group):
        assert available_memory() == 64.0 * GB


class TestMachine:
    def test_with_psutil_and_without(self, monkeypatch):
        psutil = pytest.importorskip("psutil")
        monkeypatch.setattr(memory, "_of_container", lambda: None)
        with_it = available_memory()
        assert with_it == pytest.approx(psutil.virtual_memory().available, rel=0.2)
        monkeypatch.setitem(sys.modules, "psutil", None)
        without = available_memory()
        assert without is None or without == pytest.approx(with_it, rel=0.2)

    def test_a_container_has_less_than_psutil_says(self, group, monkeypatch):
        psutil = pytest.importorskip("psutil")
        group("two", psutil.virtual_memory().total // 100, 0, cache=0)
        assert available_memory() == psutil.virtual_memory().total // 100

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
