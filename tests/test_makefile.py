"""Targets of the Makefile that compute do so with one BLAS thread per process."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def environments(target):
    """Return what each command of a target that runs Python would see of the variables, as text."""
    show = "env | grep -E '^(" + "|".join(NAMES) + ")=' | sort | tr '\\n' ' '; echo; true"
    # No environment is made: every file that a target needs is a file that exists, and Python is `true`.
    ready = [f"{name}={ROOT / 'pyproject.toml'}" for name in ("READY", "DOCS_READY")]
    free = {
        name: value for name, value in os.environ.items() if name not in NAMES and not name.startswith("MAKE")
    }
    command = ["make", "-s", "-o", "lint", "-o", "typecheck", target, f"PY={show}", *ready]
    done = subprocess.run(command, cwd=ROOT, env=free, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if line.strip() and "documentation is at" not in line]


@pytest.mark.parametrize("target", ["test", "slow", "demo", "docs", "study"])
def test_one_thread(target):
    expected = " ".join(f"{name}=1" for name in sorted(NAMES))
    found = environments(target)
    assert found
    assert {line.strip() for line in found} == {expected}


def test_benchmarks_choose_their_threads():
    assert environments("bench") == []
