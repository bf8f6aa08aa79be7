"""Predictions: costs and decisions, and models that were saved in Python."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_runner import column, one_sentence, rows_of, run, write
from sklearn.datasets import make_moons

from gpclass import GaussianProcessClassifier, bayes_decision, persistence


def test_costs_decide(folder):
    model, table = folder / "mixed.gpc", folder / "mixed.csv"
    proba = None
    given = [
        "[[0, 1], [5, 0]]",
        write(folder / "cost.csv", ["true", "no", "yes"], [["yes", 5, 0], ["no", 0, 1]]),
    ]
    for cost in given:
        rows = rows_of(run("predict", model, table, "--no-intervals", "--cost", cost).stdout)
        proba = np.column_stack([column(rows, "p_no"), column(rows, "p_yes")])
        proba /= proba.sum(axis=1, keepdims=True)
        wanted = np.array(["no", "yes"])[bayes_decision(proba, [[0, 1], [5, 0]])]
        assert [row["decision"] for row in rows] == wanted.tolist()
        assert "low_yes" not in rows[0]
    rows = rows_of(run("predict", model, table, "--reject", 0.2).stdout)
    unsure = [row["decision"] == "undecided" for row in rows]
    np.testing.assert_array_equal(unsure, proba.min(axis=1) > 0.2)
    actions = write(folder / "actions.csv", ["true", "treat", "wait"], [["yes", 1, 9], ["no", 2, 0]])
    found = {row["decision"] for row in rows_of(run("predict", model, table, "--cost", actions).stdout)}
    assert found == {"treat", "wait"}


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        ("[[0, 1]]", "shape"),
        ("[[0, 1", "JSON"),
        ("nowhere", "nowhere cannot be read"),
        ("[[0, 1, 2], [1, 0, 2]]", "shape"),
        ([["yes", 1, 0]], "no row for the class 'no'"),
        ([["yes", 1, 0], ["no", "", 1]], "not finite"),
        ('[[0, 1], ["x", 0]]', "numbers"),
    ],
)
def test_costs_that_cannot_be(folder, tmp_path, cost, words):
    if not isinstance(cost, str):
        cost = write(tmp_path / "cost.csv", ["true", "no", "yes"], cost)
    result = run("predict", folder / "mixed.gpc", folder / "mixed.csv", "--cost", cost, code=1)
    assert words in one_sentence(result)


def test_a_model_saved_in_python_can_be_used(tmp_path):
    X, y = make_moons(40, noise=0.2, random_state=0)
    clf = GaussianProcessClassifier(inference="laplace").fit(X, y)
    persistence.save(clf, tmp_path / "m.gpc")
    table = write(tmp_path / "t.csv", ["u", "v"], X.tolist())
    rows = rows_of(run("predict", tmp_path / "m.gpc", table).stdout)
    np.testing.assert_allclose(column(rows, "p_1"), clf.predict_proba(X)[:, 1], rtol=1e-5)
    wide = write(tmp_path / "w.csv", ["u", "v", "w"], np.ones((2, 3)).tolist())
    assert "3 features" in one_sentence(run("predict", tmp_path / "m.gpc", wide, code=1))


def test_json_has_all_digits_and_csv_six(folder, tmp_path):
    arguments = ("predict", folder / "mixed.gpc", folder / "mixed.csv", "--keep", "ward")
    rows = rows_of(run(*arguments).stdout)
    found = json.loads(run(*arguments, "--json").stdout)
    assert [row["p_yes"] for row in rows] == [f"{row['p_yes']:.6g}" for row in found]
    assert [row["ward"] for row in rows] == [row["ward"] for row in found]
    run(*arguments, "-o", tmp_path / "out.json.gz")
    run(*arguments, "-o", tmp_path / "out.csv.gz")
    import gzip

    assert json.loads(gzip.decompress((tmp_path / "out.json.gz").read_bytes())) == found
    assert rows_of(gzip.decompress((tmp_path / "out.csv.gz").read_bytes()).decode()) == rows


def test_a_kept_column_does_not_disappear_behind_one_of_the_result(folder, mixed, tmp_path):
    names = ("prediction", "decision", "p_yes", "low_no", "low_yes", "id")
    rows = [[*row, *[f"mine {i}"] * len(names)] for i, row in enumerate(zip(*mixed.values(), strict=True))]
    table = write(tmp_path / "t.csv", [*mixed, *names], rows)
    arguments = ("predict", folder / "mixed.gpc", table, "--keep")
    words = one_sentence(run(*arguments, "id,prediction,p_yes,low_yes", code=1))
    assert "--keep names 'prediction', 'p_yes', 'low_yes'" in words
    assert "rename" in words
    assert "'decision'" in one_sentence(run(*arguments, "decision", "--reject", 0.2, code=1))
    for kept, options in (("id,decision,low_no", ()), ("low_yes", ("--no-intervals",))):
        found = rows_of(run(*arguments, kept, *options).stdout)
        assert all(row[name] == f"mine {i}" for i, row in enumerate(found) for name in kept.split(","))


def test_kept_columns_are_as_in_the_file(folder, mixed, tmp_path):
    rows = [[*row, "007", "1234567.25", "31.12.2020"] for row in zip(*mixed.values(), strict=True)]
    table = write(tmp_path / "t.csv", [*mixed, "id", "account", "day"], rows)
    found = rows_of(run("predict", folder / "mixed.gpc", table, "--keep", "id,account,day,age,smoker").stdout)
    assert {(row["id"], row["account"], row["day"]) for row in found} == {("007", "1234567.25", "31.12.2020")}
    assert [float(row["age"]) for row in found] == mixed["age"].tolist()


def test_intervals_that_are_too_narrow_are_said_to_be_so_once(tmp_path):
    X, y = make_moons(40, noise=0.2, random_state=0)
    GaussianProcessClassifier(inference="dirichlet").fit(X, y).save(tmp_path / "m.gpc")
    table = write(tmp_path / "t.csv", ["u", "v"], np.repeat(X, 60, axis=0).tolist())  # three blocks of rows
    result = run("predict", tmp_path / "m.gpc", table)
    assert result.stderr.count("too narrow") == 1
    assert {"low_1", "high_1"} <= set(rows_of(result.stdout)[0])
    assert "low_0" not in rows_of(result.stdout)[0]
    assert "too narrow" not in run("predict", tmp_path / "m.gpc", table, "--no-intervals").stderr
