"""Importing gpclass loads no optional package; its time is measured by benchmarks/run.py."""

from __future__ import annotations

import subprocess
import sys

CLASS = "GaussianProcessClassifier"
OPTIONAL = ["arviz_stats", "click", "dask", "distributed", "matplotlib", "pandas", "polars", "rich", "tqdm"]


def fresh(code: str) -> str:
    """Return what ``code`` prints in a new interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.rstrip()


def test_no_optional_package_is_loaded():
    # scikit-learn may load some of them itself where they are installed.
    loaded = f"print(*[name for name in {OPTIONAL} if name in sys.modules])"
    later = "import gpclass.active, gpclass.plotting; print('matplotlib' in sys.modules)"
    ours, plots = fresh(f"import sys; from gpclass import {CLASS}; {loaded}; {later}").split("\n")
    theirs = fresh(f"import sys; from sklearn.gaussian_process import {CLASS}; {loaded}")
    assert set(ours.split()) <= set(theirs.split())
    assert plots == "False", "matplotlib is loaded before something is drawn"
