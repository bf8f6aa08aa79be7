"""Columns are encoded as scikit-learn does it, and the encoding is remembered."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_runner import column, one_sentence, rows_of, run, write
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from gpclass import GaussianProcessClassifier
from gpclass.cli.encoding import TableEncoder
from gpclass.cli.files import InputError
from gpclass.cli.tables import Table


def reference(mixed):
    """Return the same model by scikit-learn's encoders, and its inputs."""
    numbers = np.column_stack([mixed["age"], mixed["size"]])
    ward = OneHotEncoder(sparse_output=False).fit_transform(mixed["ward"][:, None])
    X = np.hstack([StandardScaler().fit_transform(numbers), ward, mixed["smoker"][:, None]])
    return GaussianProcessClassifier(random_state=0).fit(X, mixed["ill"]), X


def test_predictions_are_those_of_the_library_on_scikit_learns_encoding(folder, mixed):
    clf, X = reference(mixed)
    rows = rows_of(run("predict", folder / "mixed.gpc", folder / "mixed.csv", "--level", 0.8).stdout)
    low, high = clf.predict_interval(X, level=0.8)
    np.testing.assert_allclose(column(rows, "p_yes"), clf.predict_proba(X)[:, 1], rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(column(rows, "low_yes"), low, rtol=2e-5, atol=1e-9)
    np.testing.assert_allclose(column(rows, "high_yes"), high, rtol=2e-5, atol=1e-9)
    assert [row["prediction"] for row in rows] == clf.predict(X).tolist()


def test_columns_may_be_in_any_order_and_more_than_needed(folder, mixed, tmp_path):
    straight = run("predict", folder / "mixed.gpc", folder / "mixed.csv").stdout
    turned = {"id": np.arange(80)} | {name: mixed[name] for name in ("smoker", "size", "ward", "age")}
    table = write(tmp_path / "turned.csv", list(turned), zip(*turned.values(), strict=True))
    result = run("predict", folder / "mixed.gpc", table)
    assert result.stdout == straight
    assert result.stderr == f"gpclass: warning: the column 'id' of {table} is not used by the model.\n"
    kept = rows_of(run("predict", folder / "mixed.gpc", table, "--keep", "id").stdout)
    assert [row["id"] for row in kept] == [str(i) for i in range(80)]


def test_imputation_is_remembered(mixed, tmp_path):
    age = np.where(np.arange(80) % 9 == 4, "", mixed["age"].astype(str))
    ward = np.where(np.arange(80) % 7 == 2, "NA", mixed["ward"])
    table = write(tmp_path / "t.csv", ["age", "ward", "ill"], zip(age, ward, mixed["ill"], strict=True))
    run("fit", table, "-t", "ill", "--impute", "--inference", "laplace", "-o", tmp_path / "m.gpc")
    frame = np.array(
        [[float(a) if a else np.nan, np.nan if w == "NA" else w] for a, w in zip(age, ward, strict=True)],
        object,
    )
    encoder = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median")), [0]),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(sparse_output=False)), [1]),
    )
    X = encoder.fit_transform(frame).astype(float)
    present = np.array([float(a) for a in age if a])
    X[:, 0] = (X[:, 0] - present.mean()) / present.std()
    clf = GaussianProcessClassifier(inference="laplace").fit(X, mixed["ill"])
    rows = rows_of(run("predict", tmp_path / "m.gpc", table).stdout)
    np.testing.assert_allclose(column(rows, "p_yes"), clf.predict_proba(X)[:, 1], rtol=1e-5, atol=1e-9)


def test_a_number_can_be_a_category(tmp_path):
    rows = [[i % 3, i % 2] for i in range(12)]
    table = write(tmp_path / "t.csv", ["ward", "y"], rows)
    run("fit", table, "-t", "y", "--categorical", "ward", "-o", tmp_path / "m.gpc")
    known = json.loads(run("info", tmp_path / "m.gpc", "--json").stdout)["columns"]
    assert known[0]["kind"] == "category"
    assert known[0]["categories"] == ["0", "1", "2"]


def test_tables_that_do_not_go_with_the_model(folder, tmp_path):
    model = folder / "mixed.gpc"

    def complaint(header, *rows):
        return one_sentence(run("predict", model, write(tmp_path / "t.csv", header, rows), code=1))

    header = ["age", "size", "ward", "smoker"]
    assert "lacks the columns 'size', 'smoker'" in complaint(["age", "ward"], [1, "west"])
    assert "'old' in row 2, column 'age'" in complaint(
        header, [1, 1, "west", "true"], ["old", 1, "west", "true"]
    )
    assert "'east' in row 1, column 'ward'" in complaint(header, [1, 1, "east", "true"])
    assert "'perhaps' in row 1, column 'smoker'" in complaint(header, [1, 1, "west", "perhaps"])
    assert "no value in row 1, column 'ward'" in complaint(header, [1, 1, "", "true"])
    fine = write(tmp_path / "f.csv", header, [[1, 1, "west", 1], [1, 1, "west", "TRUE"]])
    first, second = rows_of(run("predict", model, fine).stdout)
    assert first == second


@pytest.mark.parametrize(
    "columns",
    [
        None,
        [],
        [{"name": "a"}],
        [{"name": "a", "kind": "number", "categories": [], "scale": 0.0}],
        [{"name": "a", "kind": "number", "categories": [], "mean": "x"}],
        [{"name": "a", "kind": "other", "categories": []}],
        [{"name": 1, "kind": "number", "categories": []}],
        [{"name": "a", "kind": "number", "categories": [], "more": 1}],
    ],
)
def test_encodings_that_cannot_be(columns):
    fine = [{"name": "a", "kind": "number", "categories": []}]
    assert TableEncoder.from_json(fine).get_feature_names_out() == ["a"]
    with pytest.raises(InputError, match="fit the model again"):
        TableEncoder.from_json(columns)


def test_the_encoding_in_files_of_version_0_2_stays_readable():
    import pandas as pd

    stored = [
        {"name": "age", "kind": "number", "mean": 50.0, "scale": 8.0, "categories": [], "fill": "49.0"},
        {
            "name": "ward",
            "kind": "category",
            "mean": 0.0,
            "scale": 1.0,
            "categories": ["n", "s", "w"],
            "fill": "s",
        },
        {
            "name": "sex",
            "kind": "category",
            "mean": 0.0,
            "scale": 1.0,
            "categories": ["f", "m"],
            "fill": None,
        },
        {"name": "smoker", "kind": "boolean", "mean": 0.0, "scale": 1.0, "categories": [], "fill": None},
    ]
    encoder = TableEncoder.from_json(stored)
    rows = [["58", "w", "m", "true"], [None, None, "f", "0"]]
    frame = pd.DataFrame(rows, columns=[column["name"] for column in stored], dtype=object)
    X = encoder.transform(Table("t.csv", frame))
    assert X.tolist() == [[1.0, 0.0, 0.0, 1.0, 1.0, 1.0], [-0.125, 0.0, 1.0, 0.0, 0.0, 0.0]]
    assert encoder.get_feature_names_out() == ["age", "ward=n", "ward=s", "ward=w", "sex=m", "smoker"]
    assert json.loads(json.dumps(encoder.to_json())) == stored
    assert encoder.in_units(X)[:, 0].tolist() == [58.0, 49.0]


def test_constant_and_huge_columns(tmp_path):
    rows = [[7, "same", 1e200 * (i % 5), i % 2] for i in range(12)]
    table = write(tmp_path / "t.csv", ["constant", "text", "huge", "y"], rows)
    run("fit", table, "-t", "y", "--inference", "laplace", "-o", tmp_path / "m.gpc")
    constant, text, huge = json.loads(run("info", tmp_path / "m.gpc", "--json").stdout)["columns"]
    assert (constant["mean"], constant["scale"]) == (7.0, 1.0)
    assert text["categories"] == ["same"]
    assert huge["scale"] == pytest.approx(1e200 * np.std([i % 5 for i in range(12)]))
    assert len(rows_of(run("predict", tmp_path / "m.gpc", table).stdout)) == 12
