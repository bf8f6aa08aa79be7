"""How much memory there is, and whether matrices fit in it."""

from __future__ import annotations

import os
from pathlib import Path


def available_memory() -> float | None:
    """Return the bytes that can still be allocated, or None where the system does not say."""
    known = [bytes_left for bytes_left in (_of_machine(), _of_container()) if bytes_left is not None]
    return min(known, default=None)


def _of_machine() -> float | None:
    # MemAvailable counts the page cache that can be given back, which SC_AVPHYS_PAGES does not.
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None


def _of_container() -> float | None:
    group = Path("/sys/fs/cgroup")
    try:
        used = float((group / "memory.current").read_text("ascii"))
        return float((group / "memory.max").read_text("ascii")) - used
    except (ValueError, OSError):  # no such group, or a limit of "max"
        return None


def require_memory(n: int, matrices: float) -> None:
    """Raise MemoryError, before anything is allocated, if that many n x n matrices do not fit."""
    need, have = 8.0 * matrices * n * n, available_memory()
    if have is None or need <= have:
        return
    fits = int((have / (8.0 * matrices)) ** 0.5)
    raise MemoryError(
        f"An exact Gaussian process on {n:,} rows needs {need / 1e9:,.1f} GB and {have / 1e9:,.1f} GB is "
        f"available: use inducing inputs (inducing='auto'), or fit a subset of at most "
        f"{fits // 1000 * 1000 or fits:,} rows, for example "
        "sklearn.utils.resample(X, y, replace=False, n_samples=..., stratify=y)."
    )
