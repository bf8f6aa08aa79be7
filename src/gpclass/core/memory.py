"""The available memory, and whether matrices fit in it."""

from __future__ import annotations

import contextlib
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def available_memory(group: Path = CGROUP) -> float | None:
    """Return the bytes that can still be allocated, or None if the system does not report them."""
    known = []
    try:
        import psutil

        known.append(float(psutil.virtual_memory().available))
    except ImportError:
        if (kilobytes := _entry(Path("/proc/meminfo"), "MemAvailable:")) is not None:
            known.append(1024.0 * kilobytes)
    # psutil ignores the limit of a control group. Its page cache is reclaimable.
    with contextlib.suppress(ValueError, OSError):  # there is no control group, or its limit is "max"
        limit = float((group / "memory.max").read_text("ascii"))
        used = float((group / "memory.current").read_text("ascii"))
        cache = _entry(group / "memory.stat", "inactive_file") or 0.0
        known.append(max(limit - max(used - cache, 0.0), 0.0))
    return min(known, default=None)


def _entry(path: Path, name: str) -> float | None:
    """Return the number that follows a name in a file of the Linux kernel."""
    try:
        lines = path.read_text("ascii").splitlines()
        return float(dict(line.split()[:2] for line in lines)[name])
    except (KeyError, ValueError, OSError):
        return None


def require_memory(n: int, matrices: float, *, joint: bool = False) -> None:
    """Raise MemoryError, before anything is allocated, if this number of n x n matrices does not fit.

    The matrices are those of a fit to n rows or, if ``joint``, of the joint distribution of n latent values.
    """
    need, have = 8.0 * matrices * n * n, available_memory()
    if have is None or need <= have:
        return
    fits = int((have / (8.0 * matrices)) ** 0.5)
    most = f"{fits // 1000 * 1000 or fits:,}"
    if joint:
        what = f"The joint distribution of {n:,} latent values"
        instead = f"ask for at most {most} of them at a time, or for variances only."
    else:
        what = f"An exact Gaussian process on {n:,} rows"
        instead = (
            f"use inducing inputs (inducing='auto'), or fit a subset of at most {most} rows, for example "
            "sklearn.utils.resample(X, y, replace=False, n_samples=..., stratify=y)."
        )
    raise MemoryError(f"{what} needs {need / 1e9:,.1f} GB and {have / 1e9:,.1f} GB is available: {instead}")
