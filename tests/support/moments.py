"""Labelled rows, and a job on them whose total has a closed form: moments of X and y."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gpclass.data.rows import Rows

NAMES = ["x0", "x1", "x2"]
STARTED, OPEN = threading.Event(), threading.Event()


def labelled_rows(n: int = 3000, classes: int = 2, seed: int = 0) -> tuple[Any, Any, Any]:
    """Return inputs of three columns, labels 'no', 'perhaps' (and 'yes'), and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    f = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=n)
    y = np.array(["no", "perhaps", "yes"])[np.digitize(f, [0.0] if classes == 2 else [-0.5, 0.5])]
    return X, y, rng.uniform(0.5, 2.0, size=n)


def write_files(folder, X, y, weight, cuts, group=500, kind="parquet"):
    """Write rows as several files; return the folder."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    for i, rows in enumerate(np.split(np.arange(len(X)), cuts)):
        columns = {name: X[rows, j] for j, name in enumerate(NAMES)}
        table = pa.table({**columns, "label": y[rows], "w": weight[rows]})
        if kind == "parquet":
            parquet.write_table(table, folder / f"part-{i:03}.parquet", row_group_size=group)
        else:
            feather.write_feather(table, folder / f"part-{i:03}.feather", chunksize=group)
    return folder


@dataclass
class Moments:
    """Σ w, Σ w x yᵀ and Σ w x xᵀ."""

    n: float
    first: Any
    second: Any

    def add(self, other: Moments) -> None:
        self.n += other.n
        self.first += other.first
        self.second += other.second


@dataclass(frozen=True)
class MomentsJob:
    """A pass that adds up moments, of labels -1 and 1 or of label weights (n, C)."""

    def __call__(self, rows: Rows) -> Moments:
        X, w = rows.X, np.ones(len(rows)) if rows.weight is None else rows.weight
        Y = rows.y.reshape(len(X), -1)
        return Moments(w.sum(), X.T @ (w[:, None] * Y), (X.T * w) @ X)


@dataclass(frozen=True)
class GatedJob(MomentsJob):
    """Waits, in a worker of this process, until the test opens the gate."""

    def __call__(self, rows: Rows) -> Moments:
        STARTED.set()
        assert OPEN.wait(60)
        return super().__call__(rows)


@dataclass(frozen=True)
class SlowJob(MomentsJob):
    """Takes its time over every block, so that a worker can be killed while it is at it."""

    seconds: float = 0.3

    def __call__(self, rows: Rows) -> Moments:
        time.sleep(self.seconds)
        return super().__call__(rows)


@dataclass(frozen=True)
class GreedyJob(MomentsJob):
    """Takes more memory than a worker may have, once."""

    flag: str = ""

    def __call__(self, rows: Rows) -> Moments:
        try:
            open(self.flag, "x").close()
        except FileExistsError:
            return super().__call__(rows)
        hoard = [np.ones(10**7) for _ in range(15) if time.sleep(0.05) is None]
        time.sleep(120.0)  # until the nanny ends this worker
        raise MemoryError(len(hoard))


@dataclass(frozen=True)
class DeadlyJob(MomentsJob):
    """Kills its worker, always."""

    def __call__(self, rows: Rows) -> Moments:
        os.kill(os.getpid(), 9)
        raise AssertionError("dead")


def moments(X: Any, y: Any, weight: Any) -> Moments:
    """Return the truth for two classes: the moments of all rows at once."""
    return MomentsJob()(Rows(X, np.where(y == "no", -1.0, 1.0), weight))


def assert_same(a: Moments, b: Moments, rtol: float = 1e-10) -> None:
    """Assert that moments agree; with rtol=0 to the last digit."""
    for name in ("n", "first", "second"):
        x, y = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * np.abs(y).max(), err_msg=name)
