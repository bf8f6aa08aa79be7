"""What a model file contains: facts, the check, and files that are not models; figures."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_runner import one_sentence, run, write
from sklearn.datasets import load_iris

from gpclass import GaussianProcessClassifier, persistence


def test_check_is_that_of_the_library(folder):
    out = json.loads(run("check", folder / "moons.gpc", "--draws", 500, "--seed", 3, "--json").stdout)
    check = persistence.load(folder / "moons.gpc").check_approximation(500, random_state=3)
    assert out["corrected"] == pytest.approx(check.corrected, abs=1e-9)
    assert check.verdict in run("check", folder / "moons.gpc", "--draws", 500, "--seed", 3).stdout


def test_info_names_everything(folder, mixed):
    text = run("info", folder / "mixed.gpc").stdout
    assert "integrated evidence" in text
    for word in (
        "80",
        "ill",
        "no, yes",
        "Probit()",
        "length_scale",
        "log evidence",
        "north, south, west",
        "False, True",
    ):
        assert word in text
    assert "\ncolumns\n" in text
    assert [line for line in text.splitlines() if line.endswith(" rows, chosen")]
    out = json.loads(run("info", folder / "mixed.gpc", "--json").stdout)
    assert out["classes"] == ["no", "yes"]
    for i, name in enumerate(("age", "size")):
        assert out["columns"][i]["fill"] == pytest.approx(np.median(mixed[name]))


def test_columns_without_names_are_only_counted(tmp_path):
    X, y = load_iris(return_X_y=True)
    GaussianProcessClassifier(inference="laplace", optimizer=None).fit(X, y == 0).save(tmp_path / "m.gpc")
    text = run("info", tmp_path / "m.gpc").stdout
    assert "x0" not in text
    assert "\ncolumns\n" not in text


@pytest.mark.parametrize(
    ("options", "n_classes"),
    [({}, 2), ({}, 3), ({"likelihood": "softmax"}, 3), ({"multi_class": "one_vs_rest"}, 3)],
)
def test_training_rows_have_their_labels(options, n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes, 2:], y[y < n_classes]  # with copies
    clf = GaussianProcessClassifier(inference="laplace", optimizer=None, **options).fit(X, y)
    rows, labels = clf.training_rows()
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(labels, y)


def test_files_that_are_no_models(folder, tmp_path):
    cut = tmp_path / "cut.gpc"
    cut.write_bytes((folder / "mixed.gpc").read_bytes()[:-100])
    for command in (("info",), ("check",), ("plot",)):
        assert "model file" in one_sentence(run(*command, folder / "mixed.csv", code=1))
        one_sentence(run(*command, cut, code=1))
        assert "No such file" in one_sentence(run(*command, tmp_path / "none", code=1))


def test_pictures(folder, tmp_path):
    pytest.importorskip("matplotlib")
    one = tmp_path / "one.gpc"
    run(
        "fit",
        folder / "moons.csv.gz",
        "-t",
        "y",
        "--columns",
        "a",
        "--inference",
        "laplace",
        "--kernel",
        "rbf",
        "-o",
        one,
    )
    for model in (one, folder / "moons.gpc"):
        figure = tmp_path / f"{model.stem}.png"
        run("plot", model, "-o", figure)
        assert figure.read_bytes().startswith(b"\x89PNG")
    assert "4 columns, expected one or two numerical columns without missing values" in one_sentence(
        run("plot", folder / "mixed.gpc", code=1)
    )
    assert ".txt" in one_sentence(run("plot", one, "-o", tmp_path / "a.txt", code=1))


def test_units_of_pictures_are_those_of_the_table(tmp_path):
    pytest.importorskip("matplotlib")
    from gpclass.cli.show import display_of

    x = np.linspace(1000.0, 2000.0, 30)
    table = write(tmp_path / "t.csv", ["metres", "y"], zip(x, x > 1500, strict=True))
    run("fit", table, "-t", "y", "-o", tmp_path / "m.gpc", "--inference", "laplace")
    figure = display_of(persistence.load(tmp_path / "m.gpc")).figure_
    low, high = figure.axes[1].get_xlim()
    assert (low, high) == pytest.approx((900.0, 2100.0))
    assert figure.axes[1].get_xlabel() == "metres"


def test_check_lists_doubtful_labels(tmp_path):
    x = np.arange(30.0)
    y = np.where((x > 14) ^ (x == 22), "yes", "no")  # row 22 is wrong
    write(tmp_path / "rows.csv", ["x", "y"], zip(x, y, strict=True))
    run("fit", tmp_path / "rows.csv", "--target", "y", "--kernel", "rbf", "-o", tmp_path / "rows.gpc")
    assert "row 22  no 0.0" in run("check", tmp_path / "rows.gpc").stdout
    found = json.loads(run("check", tmp_path / "rows.gpc", "--json").stdout)["doubtful_labels"]
    assert found[0]["row"] == 22
    assert (found[0]["label"], found[0]["likely"]) == ("no", "yes")
