"""Importing gpclass loads no optional package; its time is measured by benchmarks/run.py."""

from __future__ import annotations

import subprocess
import sys

OPTIONAL = ["arviz_stats", "click", "dask", "distributed", "matplotlib", "pandas", "polars", "rich", "tqdm"]


def fresh(code: str) -> str:
    """Return what ``code`` prints in a new interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_no_optional_package_is_loaded():
    # scikit-learn may load some of them itself where they are installed.
    loaded = f"print(*[name for name in {OPTIONAL} if name in sys.modules])"
    ours, theirs = (
        fresh(f"import sys; from {name} import GaussianProcessClassifier; {loaded}")
        for name in ("gpclass", "sklearn.gaussian_process")
    )
    assert set(ours.split()) <= set(theirs.split())
