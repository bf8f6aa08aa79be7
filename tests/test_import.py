"""Importing gpclass loads no optional package, and its names are the public ones."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gpclass

OPTIONAL = ["arviz_stats", "click", "dask", "distributed", "matplotlib", "pandas", "polars"]
OPTIONAL += ["bokeh", "onnx", "pyarrow", "safetensors", "tornado"]
LATE = ["gpclass.cli", "gpclass.comparison", "gpclass.onnx", "gpclass.persistence", "gpclass.plotting"]
LATE += ["gpclass.explore"]


def fresh(code: str) -> str:
    """Return what ``code`` prints in a new interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_no_optional_package_is_loaded():
    # scikit-learn may load some of them itself where they are installed.
    path = f"import sys; sys.path[:0] = {sys.path!r}"
    loaded = f"print(*[name for name in {OPTIONAL + LATE} if name in sys.modules])"
    ours, theirs = (
        fresh(f"{path}; import {name}; {loaded}") for name in ("gpclass", "sklearn.gaussian_process")
    )
    assert set(ours.split()) <= set(theirs.split())


def test_the_names_of_the_package():
    names = {name for name in dir(gpclass) if not name.startswith("__")}
    assert names == set(gpclass.__all__)
    assert {"compare", "load", "to_onnx"} <= names
    assert "__version__" in dir(gpclass)
    assert callable(gpclass.load)
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        _ = gpclass.lod
