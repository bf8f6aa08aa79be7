"""``gpclass explore``: what the page starts with for a table, and its errors."""

from __future__ import annotations

import numpy as np
import pytest
from cli_runner import one_sentence, run, write
from sklearn.datasets import load_iris

pytest.importorskip("bokeh", reason="Bokeh is not installed")


@pytest.fixture
def begun(monkeypatch):
    """Give a function that runs the command and returns what it would serve."""
    served = []
    monkeypatch.setattr("gpclass.explore.serve", lambda begun, **options: served.append((begun, options)))

    def start(*arguments):
        run("explore", *arguments)
        return served.pop()

    return start


def test_a_built_in_problem(begun):
    found, options = begun("--problem", "moons", "--port", "5011", "--no-browser")
    assert found.points.X.shape == (100, 2)
    assert options["port"] == 5011
    assert not options["browser"]


def test_two_columns_are_in_their_own_units(begun, folder):
    found, _ = begun(folder / "iris.csv", "-t", "y", "--columns", "petal length,petal width")
    X = load_iris().data[::5, 2:]
    np.testing.assert_allclose(found.points.X, X)
    assert found.points.names == ("petal length", "petal width")
    assert found.points.labels == ("setosa", "versicolor", "virginica")


def test_more_columns_are_two_principal_components_and_said_to_be(begun, folder):
    found, _ = begun(folder / "iris.csv", "-t", "y")
    X = load_iris().data[::5]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    shares = np.linalg.svd(Z, compute_uv=False) ** 2
    assert f"{shares[:2].sum() / shares.sum():.0%} of their variance" in found.words
    assert "first two principal components" in found.words
    np.testing.assert_allclose(found.points.X.var(axis=0), shares[:2] / len(X), rtol=1e-6)


def test_a_long_table_is_drawn_in_part(begun, tmp_path):
    rng = np.random.default_rng(0)
    rows = [[x, "rare" if i == 7 else "common"] for i, x in enumerate(rng.normal(size=900))]
    found, _ = begun(write(tmp_path / "long.csv", ["x", "y"], rows), "-t", "y")
    assert len(found.points) == 200
    assert set(found.points.codes) == {0, 1}
    assert "200 of 900 rows" in found.words


def test_errors_are_one_sentence(tmp_path):
    rows = [[i, f"c{i % 6}"] for i in range(60)]
    path = write(tmp_path / "six.csv", ["x", "y"], rows)
    assert "6 classes" in one_sentence(run("explore", path, "-t", "y", "--no-browser", code=1))


def test_a_port_that_is_taken():
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        words = one_sentence(run("explore", "--no-browser", "--port", port, code=1))
    assert f"Port {port} cannot be used" in words
