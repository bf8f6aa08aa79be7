"""Read the data sets of a folder of gzip-compressed tables: numeric columns, the label last."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np

DEFAULT = Path(__file__).parents[2] / "shared" / "data"


@lru_cache(maxsize=2)  # a study asks for one data set many times in a row
def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs, without constant columns, and the labels."""
    table = np.loadtxt(folder / f"{name}.csv.gz", delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1].astype(int)
    return X[:, X.std(axis=0) > 0.0], y


def labels(folder: Path, name: str) -> np.ndarray:
    """Return the labels alone, without parsing the inputs."""
    with gzip.open(folder / f"{name}.csv.gz", "rt") as file:
        next(file)
        return np.array([int(float(line.rpartition(",")[2])) for line in file])


def width(folder: Path, name: str) -> int:
    """Return the number of input columns, from the header."""
    with gzip.open(folder / f"{name}.csv.gz", "rt") as file:
        return next(file).count(",")


def two_classes(y: np.ndarray) -> bool:
    """Return whether the labels are of two classes."""
    return len(np.unique(y)) == 2


def names(folder: Path, keep: Callable[[np.ndarray], bool] = two_classes) -> list[str]:
    """Return the names of the data sets whose labels satisfy ``keep``: by default, those of two classes."""
    found = sorted(path.name.removesuffix(".csv.gz") for path in folder.glob("*.csv.gz"))
    return [name for name in found if keep(labels(folder, name))]


def cost(y: np.ndarray, train: int) -> float:
    """Return a number that grows with the time of a fit to at most ``train`` rows."""
    return min(len(y), train) ** 2 * len(np.unique(y))


def subset(y: np.ndarray, most: int, seed: int = 0) -> np.ndarray:
    """Return the positions of at most ``most`` rows, a random subset with the class frequencies of all rows.

    Each row gets its random rank within its class, divided by the size of the class; the rows of smallest values are
    taken. This works for classes of any size, including a single row.
    """
    order = np.random.default_rng(seed).permutation(len(y))
    place = np.empty(len(y))
    for label in np.unique(y):
        rows = order[y[order] == label]
        place[rows] = (np.arange(len(rows)) + 0.5) / len(rows)
    return np.sort(order[np.argsort(place[order], kind="stable")][:most])
