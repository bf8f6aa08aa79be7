"""The command line does what the library does, remembers columns, and says in a sentence what is wrong."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, make_moons
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from gpclass import GaussianProcessClassifier, bayes_decision, persistence
from gpclass.cli.app import make_group
from gpclass.cli.choices import kernels
from gpclass.cli.encoding import Encoding
from gpclass.cli.errors import InputError

pytest.importorskip("click")
pytest.importorskip("rich")
from click.testing import CliRunner

SRC = Path(__file__).parents[2] / "src"
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]


def run(*arguments, code=0):
    """Return the outcome of a command that is to end with an exit code."""
    result = CliRunner().invoke(make_group(), [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def process(*arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(SRC), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "gpclass", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **options
    )


def write(path, header, rows):
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "wt", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def column(rows, name):
    return np.array([float(row[name]) for row in rows])


@pytest.fixture(scope="module")
def mixed():
    """Two numbers, a category of three, a truth value and labels that depend on all."""
    rng = np.random.default_rng(0)
    n = 80
    age, size = rng.normal(50.0, 10.0, n), rng.normal(0.02, 0.004, n)
    ward = rng.choice(["north", "south", "west"], n)
    smoker = rng.random(n) < 0.4
    worth = (age - 50.0) / 10.0 + 1.5 * (ward == "west") + smoker + rng.normal(0.0, 0.7, n)
    ill = np.where(worth > 0.8, "yes", "no")
    return {"age": age, "size": size, "ward": ward, "smoker": smoker, "ill": ill}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, mixed):
    """Tables, and a model of one of them."""
    place = tmp_path_factory.mktemp("cli")
    write(place / "mixed.csv", list(mixed), zip(*mixed.values(), strict=True))
    X, y = make_moons(60, noise=0.2, random_state=0)
    write(place / "moons.csv.gz", ["a", "b", "y"], np.column_stack([X, y]).tolist())
    iris = load_iris()
    write(
        place / "iris.csv",
        [*NAMES, "y"],
        [[*x, iris.target_names[c]] for x, c in zip(*iris_rows(), strict=True)],
    )
    run("fit", place / "mixed.csv", "--target", "ill", "-o", place / "mixed.gpc")
    run("fit", place / "moons.csv.gz", "-t", "y", "-o", place / "moons.gpc", "--inference", "laplace")
    return place


def iris_rows():
    iris = load_iris()
    return iris.data[::4], iris.target[::4]


# ------------------------------------------------------------------------------ fit and predict


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


def test_arrow_tables_are_the_same_as_csv(folder, mixed, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    table = pa.table({name: pa.array(values.tolist()) for name, values in mixed.items()})
    table = table.set_column(2, "ward", table["ward"].dictionary_encode())
    parquet.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.feather")
    for name in ("t.parquet", "t.feather"):
        made = tmp_path / "made.gpc"
        run("fit", tmp_path / name, "-t", "ill", "-o", made)
        again = run("predict", made, tmp_path / name).stdout
        assert again == run("predict", folder / "mixed.gpc", folder / "mixed.csv").stdout
    for name in ("out.parquet", "out.feather"):
        run("predict", folder / "mixed.gpc", tmp_path / "t.parquet", "-o", tmp_path / name)
    out = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert out == feather.read_table(tmp_path / "out.feather").to_pydict()
    np.testing.assert_allclose(out["p_yes"], column(rows_of(again), "p_yes"), rtol=1e-5)


def test_imputation_is_remembered(mixed, tmp_path):
    age = np.where(np.arange(80) % 9 == 4, "", mixed["age"].astype(str))
    ward = np.where(np.arange(80) % 7 == 2, "NA", mixed["ward"])
    table = write(tmp_path / "t.csv", ["age", "ward", "ill"], zip(age, ward, mixed["ill"], strict=True))
    run("fit", table, "-t", "ill", "--impute", "-o", tmp_path / "m.gpc")
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
    clf = GaussianProcessClassifier(random_state=0).fit(X, mixed["ill"])
    rows = rows_of(run("predict", tmp_path / "m.gpc", table).stdout)
    np.testing.assert_allclose(column(rows, "p_yes"), clf.predict_proba(X)[:, 1], rtol=1e-5, atol=1e-9)


def test_a_number_can_be_a_category(tmp_path):
    rows = [[i % 3, i % 2] for i in range(12)]
    table = write(tmp_path / "t.csv", ["ward", "y"], rows)
    run("fit", table, "-t", "y", "--categorical", "ward", "-o", tmp_path / "m.gpc")
    known = json.loads(run("info", tmp_path / "m.gpc", "--json").stdout)["columns"]
    assert known[0]["kind"] == "category"
    assert known[0]["categories"] == ["0", "1", "2"]


def test_scores_of_cross_validation_are_those_by_hand(folder):
    from sklearn.model_selection import StratifiedKFold

    out = json.loads(
        run("fit", folder / "moons.csv.gz", "-t", "y", "--cv", 3, "-o", folder / "cv.gpc", "--json").stdout
    )
    X, y = make_moons(60, noise=0.2, random_state=0)
    losses = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        model = make_pipeline(StandardScaler(), GaussianProcessClassifier(random_state=0)).fit(
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


def test_costs_decide(folder):
    model, table = folder / "mixed.gpc", folder / "mixed.csv"
    proba = None
    given = [
        "[[0, 1], [5, 0]]",
        '{"yes": {"no": 5, "yes": 0}, "no": {"yes": 1, "no": 0}}',
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
    actions = '{"yes": {"treat": 1, "wait": 9}, "no": {"treat": 2, "wait": 0}}'
    found = {row["decision"] for row in rows_of(run("predict", model, table, "--cost", actions).stdout)}
    assert found == {"treat", "wait"}


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        ("[[0, 1]]", "shape"),
        ("[[0, 1", "JSON"),
        ("nowhere.json", "nowhere.json"),
        ("nowhere", "not a file"),
        ('{"yes": {"a": 1}}', "classes"),
        ('{"yes": {"a": 1}, "no": {"b": 1}}', "same decisions"),
        ('[[0, 1], ["x", 0]]', "numbers"),
    ],
)
def test_costs_that_cannot_be(folder, cost, words):
    result = run("predict", folder / "mixed.gpc", folder / "mixed.csv", "--cost", cost, code=1)
    assert words in one_sentence(result)


def test_three_classes_and_texts(folder, tmp_path):
    made = tmp_path / "iris.gpc"
    run("fit", folder / "iris.csv", "-t", "y", "--inference", "laplace", "-o", made)
    rows = rows_of(run("predict", made, folder / "iris.csv").stdout)
    y = iris_rows()[1]
    names = load_iris().target_names
    total = sum(column(rows, f"p_{name}") for name in names)
    np.testing.assert_allclose(total, 1.0, atol=1e-5)
    assert np.mean([row["prediction"] == names[c] for row, c in zip(rows, y, strict=True)]) > 0.9
    assert (column(rows, "low_setosa") <= column(rows, "high_setosa")).all()


@pytest.mark.parametrize("kernel", [name for name in kernels() if name != "exp-sine-squared"])
def test_every_kernel_is_learned_and_kept(folder, tmp_path, kernel):
    options = ("--kernel", kernel, "--inference", "laplace", "--rows", 40, "-o", tmp_path / "m.gpc")
    run("fit", folder / "moons.csv.gz", "-t", "y", *options)
    assert len(rows_of(run("predict", tmp_path / "m.gpc", folder / "moons.csv.gz").stdout)) == 60


# --------------------------------------------------------------------------------- other commands


def test_check_is_that_of_the_library(folder):
    out = json.loads(run("check", folder / "moons.gpc", "--draws", 500, "--seed", 3, "--json").stdout)
    check = persistence.load(folder / "moons.gpc").check_approximation(500, random_state=3)
    assert out["corrected"] == pytest.approx(check.corrected, abs=1e-9)
    assert check.verdict in run("check", folder / "moons.gpc", "--draws", 500, "--seed", 3).stdout


def test_info_names_everything(folder, mixed):
    text = run("info", folder / "mixed.gpc").stdout
    for word in (
        "80 of",
        "ill",
        "no, yes",
        "vi, probit",
        "RBF",
        "log evidence",
        "north, south, west",
        "0 false",
    ):
        assert word in text
    out = json.loads(run("info", folder / "mixed.gpc", "--json").stdout)
    assert out["classes"] == ["no", "yes"]
    for i, name in enumerate(("age", "size")):
        assert out["columns"][i]["mean"] == pytest.approx(mixed[name].mean())
        assert out["columns"][i]["scale"] == pytest.approx(mixed[name].std())


def test_a_model_saved_in_python_can_be_used(tmp_path):
    X, y = make_moons(40, noise=0.2, random_state=0)
    clf = GaussianProcessClassifier(inference="laplace").fit(X, y)
    persistence.save(clf, tmp_path / "m.gpc")
    table = write(tmp_path / "t.csv", ["u", "v"], X.tolist())
    rows = rows_of(run("predict", tmp_path / "m.gpc", table).stdout)
    np.testing.assert_allclose(column(rows, "p_1"), clf.predict_proba(X)[:, 1], rtol=1e-5)
    wide = write(tmp_path / "w.csv", ["u", "v", "w"], np.ones((2, 3)).tolist())
    assert "3 columns" in one_sentence(run("predict", tmp_path / "m.gpc", wide, code=1))


def test_pictures(folder, tmp_path):
    pytest.importorskip("matplotlib")
    one = tmp_path / "one.gpc"
    run("fit", folder / "moons.csv.gz", "-t", "y", "--columns", "a", "--inference", "laplace", "-o", one)
    for model in (one, folder / "moons.gpc", folder / "mixed.gpc"):
        figure = tmp_path / f"{model.stem}.png"
        run("plot", model, "-o", figure)
        assert figure.read_bytes().startswith(b"\x89PNG")
    assert "2 columns" in one_sentence(run("plot", folder / "mixed.gpc", "--kind", "contour", code=1))
    assert "chains" in one_sentence(run("plot", one, "--kind", "trace", code=1))
    assert ".txt" in one_sentence(run("plot", one, "-o", tmp_path / "a.txt", code=1))


def test_units_of_pictures_are_those_of_the_table(tmp_path):
    pytest.importorskip("matplotlib")
    from gpclass.cli.figures import model_figure
    from gpclass.cli.modelfile import read_model

    x = np.linspace(1000.0, 2000.0, 30)
    table = write(tmp_path / "t.csv", ["metres", "y"], zip(x, x > 1500, strict=True))
    run("fit", table, "-t", "y", "-o", tmp_path / "m.gpc", "--inference", "laplace")
    figure = model_figure(read_model(str(tmp_path / "m.gpc")), "auto")
    low, high = figure.axes[1].get_xlim()
    assert (low, high) == pytest.approx((900.0, 2100.0))
    assert figure.axes[1].get_xlabel() == "metres"


@pytest.mark.parametrize(
    ("options", "n_classes"),
    [({}, 2), ({}, 3), ({"likelihood": "softmax"}, 3), ({"multi_class": "one_vs_rest"}, 3)],
)
def test_training_rows_have_their_labels(options, n_classes):
    from gpclass.cli.modelfile import training_rows as _training_rows

    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes, 2:], y[y < n_classes]  # with copies
    clf = GaussianProcessClassifier(inference="laplace", optimizer=None, **options).fit(X, y)
    rows, labels = _training_rows(clf)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(labels, y)


class TestCompare:
    def test_built_in_problem_in_all_forms(self, tmp_path):
        pytest.importorskip("matplotlib")
        figure, page = tmp_path / "f.pdf", tmp_path / "r.html"
        options = ("-m", "laplace", "-m", "ep", "-o", figure, "--html", page)
        text = run("compare", *options).stdout
        assert re.search(r"laplace, probit +-7\.48", text)
        assert re.search(r"ep, logit +-7\.9", text)
        assert figure.read_bytes().startswith(b"%PDF")
        html = page.read_text("utf-8")
        assert html.count("data:image/png;base64,") == 1
        assert "http" not in html  # it needs nothing else
        assert "expected calibration error" in html
        assert "laplace, logit" in html

    def test_plane_as_json(self, tmp_path):
        out = json.loads(
            run("compare", "--problem", "moons", "-m", "laplace", "-l", "probit", "--json").stdout
        )
        (row,) = out["methods"]
        assert row["method"] == "laplace"
        assert 0.0 < row["log_loss"] < 0.5
        assert out["scored_rows"] == 500

    def test_data(self, folder):
        from gpclass import compare

        options = ("--target", "ill", "-m", "laplace", "-m", "vi", "--test-fraction", 0.3, "--json")
        out = json.loads(run("compare", folder / "mixed.csv", *options).stdout)
        assert [row["method"] for row in out["methods"]] == ["laplace", "vi"]
        assert (out["training_rows"], out["scored_rows"]) == (56, 24)
        two = ("-t", "y", "-m", "laplace", "--cv", 3, "--json")
        out = json.loads(run("compare", folder / "moons.csv.gz", *two).stdout)
        X, y = make_moons(60, noise=0.2, random_state=0)
        X = StandardScaler().fit_transform(X)
        wanted = compare(X, y, methods=["laplace"], cv=None, n_samples=0)["laplace"].evidence
        assert out["methods"][0]["evidence"] == pytest.approx(wanted, rel=1e-6)

    def test_an_interruption_keeps_what_was_finished(self, monkeypatch):
        fit, calls = GaussianProcessClassifier.fit, []

        def second_is_cut(self, X, y, sample_weight=None):
            calls.append(1)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return fit(self, X, y)

        monkeypatch.setattr(GaussianProcessClassifier, "fit", second_is_cut)
        result = run("compare", "-m", "laplace", "-m", "ep", "-l", "probit", code=130)
        assert "interrupted after 1 of 2 methods" in result.stdout
        assert result.stderr.strip().startswith("gpclass: interrupted")

    def test_usage(self, folder):
        assert "--target" in run("compare", folder / "iris.csv", code=2).stderr
        assert "DATA" in run("compare", "--target", "y", code=2).stderr
        assert "two ways" in run("compare", folder / "iris.csv", "-t", "y", "--cv", 3, "--test-fraction", 0.5,
                                 code=2).stderr  # fmt: skip
        assert "need DATA" in one_sentence(run("compare", "--cv", 3, code=1))


# ---------------------------------------------------------------------------------- broken inputs


def one_sentence(result):
    """Return what a command complained of, when that is one line and nothing of Python's."""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("gpclass: error: ")
    assert lines[0].endswith(".")
    assert "Traceback" not in result.output
    assert not result.stdout
    return lines[0]


BROKEN = {
    "empty": ("", "is empty"),
    "header": ("a,b,y\n", "no rows"),
    "one class": ("a,y\n1,0\n2,0\n", "one class '0'"),
    "missing": ("a,b,y\n1,2,0\n1,,1\n1,NaN,1\n", "row 2, column 'b' (2 rows"),
    "infinite": ("a,y\n1,0\n-inf,1\n", "'-inf' in row 2, column 'a'"),
    "text": ("a,b,y\n1,2,0\n2,3,1\n3,4,0\n4,5,1\n5,12x,1\n6,6,1\n", "'12x' in row 5, column 'b'"),
    "odd nan": ("a,y\n1,0\n2,1\n3,1\n4,1\n-nan,1\n5,0\n", "'-nan' in row 5"),
    "twice": ("a,a,y\n1,2,0\n", "more than one column called 'a'"),
    "separator": ("a;b;y\n1;2;0\n", "--separator ';'"),
    "tabs": ("a\tb\ty\n1\t2\t0\n", "--separator '\\t'"),
    "no target": ("a,b\n1,2\n", "no column 'y'"),
    "no label": ("a,y\n1,\n2,0\n", "no label in row 1"),
    "no inputs": ("y\n0\n1\n", "besides the target"),
    "ragged": ("a,y\n1,0\n2\n", "1 values in row 2"),
    "no header": ("1,2\n3,4\n", "starts with numbers"),
    "no name": ("a,,y\n1,2,0\n", "column 2"),
    "quotes": ('a,y\n"1,0\n2,1\n', "quotes"),
    "measurement": ("a,y\n1,0.5\n2,0.7\n3,0.1\n", "measurement"),
    "names": ("a,y\n" + "".join(f"n{i},{i % 2}\n" for i in range(50)), "--drop a"),
    "commas": ("a;y\n" + "".join(f'"{i},5";{i % 2}\n' for i in range(50)), "decimal point"),
    "empty column": ("a,b,y\n1,,0\n2,,1\n", "--drop b"),
    "binary": (b"\x00\x01\x02\xff" * 50, "binary"),
    "latin": (b"caf\xe9,y\n1,0\n", "UTF-8"),
    "parquet": (b"PAR1 and so on", ".parquet"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_tables(name, tmp_path):
    content, words = BROKEN[name]
    table = tmp_path / "t.csv"
    table.write_bytes(content if isinstance(content, bytes) else content.encode())
    options = ("--separator", ";") if name == "commas" else ()
    found = one_sentence(run("fit", table, "-t", "y", "-o", tmp_path / "m.gpc", *options, code=1))
    assert words in found
    assert not (tmp_path / "m.gpc").exists()


@pytest.mark.parametrize("ending", ["csv.gz", "parquet", "feather"])
def test_garbage_of_other_kinds(ending, tmp_path):
    table = tmp_path / f"t.{ending}"
    table.write_bytes(np.random.default_rng(0).bytes(500))
    assert "damaged" in one_sentence(run("fit", table, "-t", "y", code=1))
    table.unlink()
    assert "No such file" in one_sentence(run("fit", table, "-t", "y", code=1))


def test_names_that_are_not_there(folder, tmp_path):
    table = folder / "mixed.csv"
    for option in ("--columns", "--drop", "--categorical"):
        assert "no column 'x'" in one_sentence(run("fit", table, "-t", "ill", option, "x", code=1))
    assert "itself" in one_sentence(run("fit", table, "-t", "ill", "--columns", "ill", code=1))
    assert "no directory" in one_sentence(run("fit", table, "-t", "ill", "-o", tmp_path / "no" / "m", code=1))
    assert "directory" in one_sentence(run("fit", tmp_path, "-t", "ill", code=1))
    assert "3 folds" not in one_sentence(run("fit", table, "-t", "ill", "--cv", 99, code=1))
    assert "--test-fraction" in one_sentence(run("fit", table, "-t", "ill", "--test-fraction", 0.001, code=1))


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


def test_files_that_are_no_models(folder, tmp_path):
    cut = tmp_path / "cut.gpc"
    cut.write_bytes((folder / "mixed.gpc").read_bytes()[:-100])
    for command in (("info",), ("check",), ("plot",)):
        assert "model file" in one_sentence(run(*command, folder / "mixed.csv", code=1))
        one_sentence(run(*command, cut, code=1))
        assert "No such file" in one_sentence(run(*command, tmp_path / "none", code=1))


@pytest.mark.parametrize(
    "change",
    [
        {"columns": []},
        {"columns": [{"name": "a"}]},
        {"columns": [{"name": "a", "kind": "number", "categories": [], "scale": 0.0}]},
        {"columns": [{"name": "a", "kind": "number", "categories": [], "mean": "x"}]},
        {"columns": [{"name": "a", "kind": "other", "categories": []}]},
        {"columns": [{"name": 1, "kind": "number", "categories": []}]},
        {"columns": [{"name": "a", "kind": "number", "categories": [], "more": 1}]},
    ],
)
def test_encodings_that_cannot_be(change):
    fine = {"target": "y", "columns": [{"name": "a", "kind": "number", "categories": []}]}
    assert Encoding.from_json(fine).outputs == ["a"]
    with pytest.raises(InputError, match="fit the model again"):
        Encoding.from_json(fine | change)


def test_too_many_rows_are_refused_before_they_are_tried(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    table = write(tmp_path / "t.csv", ["x", "y"], [[x, i % 2] for i, x in enumerate(rng.normal(size=300))])
    monkeypatch.setattr("gpclass.core.linalg.available_memory", lambda: 1e6)
    found = one_sentence(run("fit", table, "-t", "y", "-o", tmp_path / "m.gpc", code=1))
    assert "300 rows" in found
    assert "--rows" in found
    run("fit", table, "-t", "y", "--rows", 40, "--inference", "laplace", "-o", tmp_path / "m.gpc")


def test_errors_that_nobody_foresaw_are_one_sentence_too(folder, monkeypatch):
    def burst(*args, **options):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(GaussianProcessClassifier, "fit", burst)
    arguments = ("fit", folder / "mixed.csv", "-t", "ill", "-o", folder / "x.gpc")
    assert "RuntimeError: two lines" in one_sentence(run(*arguments, code=1))
    assert "Traceback" in run(*arguments, "--debug", code=1).stderr


# ------------------------------------------------------------------------------------- help, processes


@pytest.mark.parametrize("command", ["compare", "fit", "predict", "check", "plot", "info"])
def test_help_has_examples(command):
    text = run(command, "--help").stdout
    assert f"  gpclass {command}" in text
    assert max(map(len, text.splitlines())) <= 110


def test_as_a_program(folder, tmp_path):
    done = process(
        "fit", folder / "mixed.csv", "-t", "ill", "-o", tmp_path / "m.gpc", "--inference", "laplace"
    )
    out, err = done.communicate()
    assert done.returncode == 0, err
    assert "log evidence" in out
    assert err == ""  # no bars, no colours
    assert "\x1b" not in out
    done = process("predict", tmp_path / "m.gpc", folder / "iris.csv")
    out, err = done.communicate()
    assert (done.returncode, out) == (1, "")
    assert "lacks the columns" in err.splitlines()[0]
    assert len(err.splitlines()) == 1


def test_an_interruption_is_one_sentence_and_leaves_no_file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    y = X[:, 0] + rng.normal(size=300) > 0
    table = write(
        tmp_path / "t.csv", [*"abcdefgh", "y"], [[*x, c] for x, c in zip(X.tolist(), y, strict=True)]
    )
    running = process("fit", table, "-t", "y", "-o", tmp_path / "m.gpc", "--inference", "mcmc", "-v")
    running.stderr.read(8)  # it is at work
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=30)
    assert running.returncode == 130, err
    assert err.splitlines()[-1].startswith("gpclass: interrupted")
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_without_click_it_says_what_to_install():
    code = "import sys; sys.modules['click'] = None; from gpclass.cli import main; main(['--help'])"
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert done.stderr == 'The command line needs click: pip install "gpclass[cli]".\n'
