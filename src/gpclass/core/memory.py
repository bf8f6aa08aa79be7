"""The available memory, and whether matrices fit in it."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
GROUPS = (  # versions 2 and 1: folder, limit, use, and the entry of memory.stat for the reclaimable page cache
    (".", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def available_memory() -> float | None:
    """Return the bytes that can still be allocated, or None if the system does not report them."""
    known = [bytes_left for bytes_left in (_of_machine(), _of_container()) if bytes_left is not None]
    return min(known, default=None)


def _of_machine() -> float | None:
    try:
        import psutil

        return float(psutil.virtual_memory().available)
    except ImportError:
        pass
    # MemAvailable includes the reclaimable page cache, unlike SC_AVPHYS_PAGES.
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None


def _of_container() -> float | None:
    """Return the remaining memory of the control group, which psutil ignores."""
    for folder, limit, use, cache in GROUPS:
        group = CGROUP / folder
        try:
            left = float((group / limit).read_text("ascii"))
            used = float((group / use).read_text("ascii"))
        except (ValueError, OSError):  # no such group, or a limit of "max"
            continue
        return max(left - max(used - _statistic(group, cache), 0.0), 0.0)
    return None


def _statistic(group: Path, name: str) -> float:
    try:
        lines = (group / "memory.stat").read_text("ascii").splitlines()
        return float(dict(line.split() for line in lines)[name])
    except (KeyError, ValueError, OSError):
        return 0.0


def require_memory(n: int, matrices: float, *, joint: bool = False) -> None:
    """Raise MemoryError, before anything is allocated, if this number of n x n matrices does not fit.

    They are those of a fit to n rows, or of the ``joint`` distribution of n latent values.
    """
    need, have = 8.0 * matrices * n * n, available_memory()
    if have is None or need <= have:
        return
    fits = int((have / (8.0 * matrices)) ** 0.5)
    most = f"{fits // 1000 * 1000 or fits:,}"
    what = (
        f"The joint distribution of {n:,} latent values"
        if joint
        else f"An exact Gaussian process on {n:,} rows"
    )
    instead = f"ask for at most {most} of them at a time, or for variances only."
    if not joint:
        instead = (
            f"use inducing inputs (inducing='auto'), or fit a subset of at most {most} rows, for example "
            "sklearn.utils.resample(X, y, replace=False, n_samples=..., stratify=y)."
        )
    raise MemoryError(f"{what} needs {need / 1e9:,.1f} GB and {have / 1e9:,.1f} GB is available: {instead}")
