"""Fitting: rows, kernels, names, memory and interruptions."""

from __future__ import annotations

import numpy as np
import pytest
from cli_runner import column, one_sentence, rows_of, run, write
from sklearn.datasets import load_iris

from gpclass import persistence
from gpclass.kernels import kernel_names
from gpclass.learning.problem import Problem


def test_three_classes_and_texts(folder, tmp_path):
    made = tmp_path / "iris.gpc"
    run(
        "fit", folder / "iris.csv", "-t", "y", "--inference", "laplace", "--likelihood", "softmax", "-o", made
    )
    rows = rows_of(run("predict", made, folder / "iris.csv").stdout)
    y = load_iris().target[::5]
    names = load_iris().target_names
    total = sum(column(rows, f"p_{name}") for name in names)
    np.testing.assert_allclose(total, 1.0, atol=1e-5)
    assert np.mean([row["prediction"] == names[c] for row, c in zip(rows, y, strict=True)]) > 0.9
    assert (column(rows, "low_setosa") <= column(rows, "high_setosa")).all()


@pytest.mark.parametrize("kernel", [name for name in kernel_names() if name != "exp-sine-squared"])
def test_every_kernel_is_learned_and_kept(folder, tmp_path, kernel):
    options = ("--kernel", kernel, "--inference", "laplace", "--rows", 40, "-o", tmp_path / "m.gpc")
    run("fit", folder / "moons.csv.gz", "-t", "y", *options)
    assert len(rows_of(run("predict", tmp_path / "m.gpc", folder / "moons.csv.gz").stdout)) == 60
    clf = persistence.load(tmp_path / "m.gpc")
    assert clf.kernel == kernel
    assert str(clf.kernel_) in run("info", tmp_path / "m.gpc").stdout


def test_names_that_are_not_there(folder, tmp_path):
    table = folder / "mixed.csv"
    for option in ("--columns", "--drop", "--categorical"):
        assert "no column 'x'" in one_sentence(run("fit", table, "-t", "ill", option, "x", code=1))
    assert "besides the target" in one_sentence(run("fit", table, "-t", "ill", "--columns", "ill", code=1))
    assert "no directory" in one_sentence(run("fit", table, "-t", "ill", "-o", tmp_path / "no" / "m", code=1))
    assert "directory" in one_sentence(run("fit", tmp_path, "-t", "ill", code=1))


def interrupted(*args, **options):
    raise KeyboardInterrupt


def test_too_many_rows_are_refused_before_they_are_tried(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    table = write(tmp_path / "t.csv", ["x", "y"], [[x, i % 2] for i, x in enumerate(rng.normal(size=300))])
    monkeypatch.setattr("gpclass.core.linalg.available_memory", lambda: 1e6)
    found = one_sentence(run("fit", table, "-t", "y", "-o", tmp_path / "m.gpc", code=1))
    assert "300 rows" in found
    assert "--rows" in found
    run("fit", table, "-t", "y", "--rows", 40, "--inference", "laplace", "-o", tmp_path / "m.gpc")


def test_an_interruption_keeps_the_best_model_so_far(folder, tmp_path, monkeypatch):
    calls, right = [], Problem.infer

    def infer(self, prior, init):
        calls.append(None)
        if len(calls) == 7:
            raise KeyboardInterrupt
        return right(self, prior, init)

    monkeypatch.setattr(Problem, "infer", infer)
    options = ("-t", "y", "--inference", "laplace", "-o", tmp_path / "m.gpc")
    result = run("fit", folder / "moons.csv.gz", *options, code=130)
    assert result.stderr.strip().endswith(f"interrupted. {tmp_path / 'm.gpc'} has the best model so far.")
    assert "Learning was interrupted" in result.stderr
    assert len(persistence.load(tmp_path / "m.gpc").training_rows()[1]) == 60


def test_an_interruption_before_there_is_a_model_leaves_no_file(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("gpclass.cli.tables.read_table", interrupted)
    result = run("fit", folder / "moons.csv.gz", "-t", "y", "-o", tmp_path / "m.gpc", code=130)
    assert result.stderr == "gpclass: interrupted. Unfinished results were not written.\n"
    assert not list(tmp_path.iterdir())
