"""Read the data sets of a folder of gzip-compressed tables: numeric columns, the label last."""

from __future__ import annotations

from pathlib import Path

import numpy as np

DEFAULT = Path(__file__).parents[2] / "shared" / "data"


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs, without constant columns, and the labels."""
    table = np.loadtxt(folder / f"{name}.csv.gz", delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1].astype(int)
    return X[:, X.std(axis=0) > 0.0], y


def names(folder: Path) -> list[str]:
    """Return the names of the data sets of two classes."""
    found = sorted(path.name.removesuffix(".csv.gz") for path in folder.glob("*.csv.gz"))
    return [name for name in found if len(np.unique(load(folder, name)[1])) == 2]
