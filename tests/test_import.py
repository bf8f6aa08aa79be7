"""Importing gpclass is cheap: no optional package comes along, and it costs about what scikit-learn does."""

from __future__ import annotations

import subprocess
import sys

# 1.2 is what we hold ourselves to; the rest is room for the noise of a shared machine.
ALLOWED_RATIO = 1.35
OPTIONAL = ["arviz_stats", "click", "dask", "distributed", "matplotlib", "pandas", "polars", "rich", "tqdm"]


def fresh(code: str) -> str:
    """Return what ``code`` prints in a new interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def seconds(module: str) -> float:
    return float(
        fresh(f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)")
    )


def test_no_optional_package_is_loaded():
    # scikit-learn may load some of them itself where they are installed.
    loaded = f"print(*[name for name in {OPTIONAL} if name in sys.modules])"
    ours, theirs = (
        fresh(f"import sys, {name}; {loaded}") for name in ("gpclass", "sklearn.gaussian_process")
    )
    assert set(ours.split()) <= set(theirs.split())


def test_import_costs_little_more_than_scikit_learn():
    # Taken in turn, so that a change in the machine's load meets both; the best of five suffers least.
    pairs = [(seconds("gpclass"), seconds("sklearn.gaussian_process")) for _ in range(5)]
    ours, theirs = (min(column) for column in zip(*pairs, strict=True))
    assert ours <= ALLOWED_RATIO * theirs, (
        f"import gpclass takes {ours:.2f} s, scikit-learn's part {theirs:.2f} s."
    )
