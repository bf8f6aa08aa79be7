"""Fitting: scores, rows, kernels, names, memory and interruptions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_runner import column, one_sentence, rows_of, run, write
from sklearn.datasets import load_iris, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpclass import GaussianProcessClassifier, persistence
from gpclass.kernels import kernel_names
from gpclass.learning.problem import Problem


@pytest.mark.slow
def test_scores_of_cross_validation_are_those_by_hand(folder):
    from sklearn.model_selection import StratifiedKFold

    options = ("-t", "y", "--cv", 3, "--inference", "laplace", "-o", folder / "cv.gpc", "--json")
    out = json.loads(run("fit", folder / "moons.csv.gz", *options).stdout)
    X, y = make_moons(60, noise=0.2, random_state=0)
    losses = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        model = make_pipeline(StandardScaler(), GaussianProcessClassifier(inference="laplace")).fit(
            X[train], y[train]
        )
        losses += (-np.log(model.predict_proba(X[test])[np.arange(len(test)), y[test]])).tolist()
    assert out["scores"]["log_loss"] == pytest.approx(np.mean(losses), rel=1e-4)
    assert out["training_rows"] == 60


def test_rows_held_out_are_not_fitted(folder):
    options = (
        "-t",
        "y",
        "--test-fraction",
        0.25,
        "--inference",
        "laplace",
        "-o",
        folder / "part.gpc",
        "--json",
    )
    out = json.loads(run("fit", folder / "moons.csv.gz", *options).stdout)
    assert out["training_rows"] == 45
    assert len(persistence.load(folder / "part.gpc").loo_proba_) == 45
    assert "15 rows held out" in run("info", folder / "part.gpc").stdout


def test_a_category_in_one_fold_only_does_not_stop_a_cross_validation(tmp_path):
    rows = [["rare" if i == 5 else "common", i % 7, i % 2] for i in range(30)]
    table = write(tmp_path / "t.csv", ["kind", "x", "y"], rows)
    run("fit", table, "-t", "y", "--cv", 3, "--inference", "laplace", "-o", tmp_path / "m.gpc")


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
    assert "itself" in one_sentence(run("fit", table, "-t", "ill", "--columns", "ill", code=1))
    assert "no directory" in one_sentence(run("fit", table, "-t", "ill", "-o", tmp_path / "no" / "m", code=1))
    assert "directory" in one_sentence(run("fit", tmp_path, "-t", "ill", code=1))
    assert "3 folds" not in one_sentence(run("fit", table, "-t", "ill", "--cv", 99, code=1))
    assert "--test-fraction" in one_sentence(run("fit", table, "-t", "ill", "--test-fraction", 0.001, code=1))


def test_too_many_rows_are_refused_before_they_are_tried(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    table = write(tmp_path / "t.csv", ["x", "y"], [[x, i % 2] for i, x in enumerate(rng.normal(size=300))])
    monkeypatch.setattr("gpclass.core.memory.available_memory", lambda: 1e6)
    found = one_sentence(run("fit", table, "-t", "y", "-o", tmp_path / "m.gpc", code=1))
    assert "300 rows" in found
    assert "--rows" in found
    run("fit", table, "-t", "y", "--rows", 40, "--inference", "laplace", "-o", tmp_path / "m.gpc")


def test_an_interruption_is_one_sentence_and_leaves_no_file(folder, tmp_path, monkeypatch):
    calls, right = [], Problem.infer

    def infer(self, prior, init):
        calls.append(None)
        if len(calls) == 7:
            raise KeyboardInterrupt
        return right(self, prior, init)

    monkeypatch.setattr(Problem, "infer", infer)
    options = ("-t", "y", "--inference", "laplace", "-o", tmp_path / "m.gpc")
    result = run("fit", folder / "moons.csv.gz", *options, code=130)
    assert result.stderr.strip().endswith("gpclass: interrupted; unfinished results were not written.")
    assert "Learning was interrupted" in result.stderr
    assert not list(tmp_path.iterdir())
