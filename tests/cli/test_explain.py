"""The page of a model: its numbers are those of the library, it is complete, and needs no other file."""

from __future__ import annotations

import re

import numpy as np
import pytest
from cli_runner import one_sentence, run, write

pytest.importorskip("matplotlib")

import pandas as pd

from gpclass import GaussianProcessClassifier, load
from gpclass.kernels import RBF

HEADINGS = [
    "The model",
    "How good its predictions are",
    "Which columns matter",
    "How the probabilities depend on them",
    "Labels worth a second look",
    "What the model does not know",
]


def markdown(model, data, *options, folder):
    """Return the page as Markdown, and its tables by their first header cells."""
    run("explain", model, data, "-o", folder / "page.md", *options)
    text = (folder / "page.md").read_text("utf-8").replace("\N{NO-BREAK SPACE}", " ")
    tables = {}
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        rows = [
            [cell.strip() for cell in line.strip("|\n").split("|")]
            for line in block.splitlines(keepends=True)
        ]
        tables[tuple(rows[0][:2])] = rows[2:]
    return text, tables


def numbers(text):
    return [float(each) for each in re.findall(r"-?\d+\.?\d*", text)]


@pytest.fixture(scope="module")
def page(folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("explained")
    return place, *markdown(folder / "mixed.gpc", folder / "mixed.csv", folder=place)


def test_scores_of_training_rows_are_those_of_leaving_them_out(folder, mixed, page):
    _, text, tables = page
    clf = load(folder / "mixed.gpc")
    assert "each is predicted from all others" in text
    own = clf.loo_proba_[np.arange(80), (mixed["ill"] == "yes").astype(int)]
    loss, low, high = numbers(tables["", "log loss"][0][1])
    assert loss == pytest.approx(-np.log(own).mean(), abs=6e-4)
    assert high - loss == pytest.approx(1.96 * np.log(own).std() / 80**0.5, abs=2e-3)
    error, low, high = numbers(tables["", "log loss"][0][2])
    k = round(80 * error)  # Wilson's interval contains exactly the p with |k/n - p| <= 1.96 √(p (1 - p) / n)
    for end in (low, high):
        assert abs(k / 80 - end) == pytest.approx(1.96 * np.sqrt(end * (1 - end) / 80), abs=2e-3)
    assert sum(int(row[2]) for row in tables["mean probability", "frequency"]) == 80


def test_columns_and_effects_are_those_of_the_library(folder, page):
    _, _, tables = page
    frame = pd.read_csv(folder / "mixed.csv")
    clf = load(folder / "mixed.gpc")
    found = clf.importance(frame.drop(columns="ill"), frame["ill"].to_numpy())
    rows = tables["column", "first order"]
    assert [row[0] for row in rows] == list(found.features)
    for row, total, cost in zip(rows, found.total, found.cost, strict=True):
        assert numbers(row[2]) == pytest.approx(total, abs=6e-3)
        assert numbers(row[3]) == pytest.approx(cost, abs=6e-5)
    assert len(tables["pair", "interaction"]) == 5
    for level, p in tables["ward", "p(yes)"]:
        values = clf.predict_proba(frame.drop(columns="ill").assign(ward=level))[:, 1]
        mean, low, high = numbers(p)
        assert mean == pytest.approx(values.mean(), abs=0.02)  # of all rows, the page of a hundred
        assert low < mean < high


def test_page_needs_no_other_file_and_has_all_sections(folder, tmp_path):
    run("explain", folder / "mixed.gpc", folder / "mixed.csv", "-o", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert len(text) < 2_000_000
    assert re.findall(r"<h2>(.*?)</h2>", text) == HEADINGS
    assert not re.search(r"""(src|href)=["'](?!#|data:)|url\((?!#)|@import|<script""", text)
    assert text.count("<svg") == text.count("</figure>") >= 7
    assert text.count("<tr>") == text.count("</tr>")
    assert "#000000" not in text
    shapes = {}  # of a name that several figures define, the shape is the same
    for name, shape in re.findall(r'<\w+ id="(.*?)"(.*?)/>', text, re.DOTALL):
        assert shapes.setdefault(name, shape) == shape
    assert len(shapes) > 20


def test_sections_without_values_are_left_out(folder, tmp_path):
    frame = pd.read_csv(folder / "iris.csv").drop(columns="y")
    clf = GaussianProcessClassifier("rbf", inducing=10).fit(frame[:20], np.arange(20) % 2)
    clf.save(tmp_path / "m.gpc")
    frame.to_csv(tmp_path / "new.csv", index=False)
    text, tables = markdown(tmp_path / "m.gpc", tmp_path / "new.csv", folder=tmp_path)
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == [
        heading for heading in HEADINGS if heading not in (HEADINGS[1], HEADINGS[4])
    ]
    assert not any("cost" in header for header in tables)
    assert "$" not in text


def test_new_rows_of_several_classes(folder, tmp_path):
    frame = pd.read_csv(folder / "iris.csv")
    X, y = frame.drop(columns="y"), frame["y"].to_numpy()
    GaussianProcessClassifier("rbf", inference="vi", likelihood="softmax").fit(X[::2], y[::2]).save(
        tmp_path / "m.gpc"
    )
    wrong = frame[1::2].copy()
    wrong.iloc[3, 4] = "virginica"
    wrong.to_csv(tmp_path / "new.csv", index=False)
    text, tables = markdown(tmp_path / "m.gpc", tmp_path / "new.csv", "-t", "y", folder=tmp_path)
    assert "None of these 15 rows was used" in text
    assert ["3", "virginica"] in [row[:2] for row in tables["row", "label"]]
    frame.to_csv(tmp_path / "new.csv", index=False)
    assert (
        "15 of these 30 rows are training rows"
        in markdown(tmp_path / "m.gpc", tmp_path / "new.csv", "-t", "y", folder=tmp_path)[0]
    )


def test_far_rows_come_first_whatever_the_bias(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    clf = GaussianProcessClassifier(4.0 * RBF(1.0) + 30.0, optimizer=None, inference="ep").fit(X, X[:, 0] > 0)
    clf.save(tmp_path / "m.gpc")
    new = np.vstack([X[:10], [[50.0, 50.0]], X[10:20]])
    write(tmp_path / "new.csv", ["a", "b"], new.tolist())
    text, tables = markdown(tmp_path / "m.gpc", tmp_path / "new.csv", folder=tmp_path)
    row, left, of, p, *_ = next(rows for header, rows in tables.items() if header[0] == "row")[0]
    assert (row, left) == ("10", "1.00")
    p, low, high = numbers(p)
    assert of == "True"
    assert low < 0.1
    assert p == pytest.approx(0.5, abs=0.1)
    assert high > 0.9
    assert "5.48**2" in text  # the bias


def test_errors_are_one_sentence(folder, tmp_path):
    table = pd.read_csv(folder / "mixed.csv")
    table.assign(ill="perhaps").to_csv(tmp_path / "t.csv", index=False)
    command = ("explain", folder / "mixed.gpc")
    assert "'perhaps', expected the classes 'no', 'yes'" in one_sentence(
        run(*command, tmp_path / "t.csv", code=1)
    )
    table.drop(columns="ward").to_csv(tmp_path / "t.csv", index=False)
    assert "no column 'ward'" in one_sentence(run(*command, tmp_path / "t.csv", code=1))
    words = one_sentence(run(*command, folder / "mixed.csv", "-o", tmp_path / "page.pdf", code=1))
    assert ".html, .md" in words
    assert "no column 'sick'" in one_sentence(run(*command, folder / "mixed.csv", "-t", "sick", code=1))
    frame = pd.read_csv(folder / "iris.csv")
    clf = GaussianProcessClassifier("rbf", multi_class="one_vs_one", inference="laplace")
    clf.fit(frame.drop(columns="y"), frame["y"].to_numpy()).save(tmp_path / "m.gpc")
    words = one_sentence(run("explain", tmp_path / "m.gpc", folder / "iris.csv", "-t", "y", code=1))
    assert "one_vs_one" in words
    assert not (tmp_path / "m.html").exists()
