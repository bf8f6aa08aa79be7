"""Tables and models that the tests of the command line share."""

from __future__ import annotations

import numpy as np
import pytest
from cli_runner import run, write
from sklearn.datasets import load_iris, make_moons


@pytest.fixture(scope="session")
def mixed():
    """Two numbers, a category of three, a boolean and labels that depend on all."""
    rng = np.random.default_rng(0)
    n = 80
    age, size = rng.normal(50.0, 10.0, n), rng.normal(0.02, 0.004, n)
    ward = rng.choice(["north", "south", "west"], n)
    smoker = rng.random(n) < 0.4
    worth = (age - 50.0) / 10.0 + 1.5 * (ward == "west") + smoker + rng.normal(0.0, 0.7, n)
    ill = np.where(worth > 0.8, "yes", "no")
    return {"age": age, "size": size, "ward": ward, "smoker": smoker, "ill": ill}


@pytest.fixture(scope="session")
def folder(tmp_path_factory, mixed):
    """Tables, and a model of one of them."""
    place = tmp_path_factory.mktemp("cli")
    write(place / "mixed.csv", list(mixed), zip(*mixed.values(), strict=True))
    X, y = make_moons(60, noise=0.2, random_state=0)
    write(place / "moons.csv.gz", ["a", "b", "y"], np.column_stack([X, y]).tolist())
    X, y, names = *load_iris(return_X_y=True), load_iris().target_names
    rows = [[*x, names[c]] for x, c in zip(X[::5].tolist(), y[::5], strict=True)]
    write(place / "iris.csv", ["sepal length", "sepal width", "petal length", "petal width", "y"], rows)
    run("fit", place / "mixed.csv", "--target", "ill", "-o", place / "mixed.gpc")
    run("fit", place / "moons.csv.gz", "-t", "y", "-o", place / "moons.gpc", "--inference", "laplace")
    return place
