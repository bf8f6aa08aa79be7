"""Every command in a terminal of 80 columns, where there are bars and tables that fit."""

from __future__ import annotations

import re

import pytest
from sklearn.datasets import make_moons

pytest.importorskip("click")
pytest.importorskip("pandas")
pytest.importorskip("fcntl", reason="There are no pseudo-terminals on this system.")

from cli_runner import write
from terminal import COLUMNS, in_terminal

from gpclass.cli.app import gpclass


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a small table and a model of it, fitted in a terminal."""
    folder = tmp_path_factory.mktemp("terminal")
    X, y = make_moons(40, noise=0.2, random_state=0)
    header = ["the first of two coordinates", "the second of two coordinates", "y"]
    write(folder / "t.csv", header, [[*x, label] for x, label in zip(X.tolist(), y.tolist(), strict=True)])
    shown = check("fit", "t.csv", "-t", "y", "--inference", "laplace", "-o", "m.gpc", cwd=folder)
    assert "log evidence" in shown.text
    return folder


def check(*arguments, code=0, columns=COLUMNS, **options):
    """Run a command, and raise unless it ends as expected, without a traceback and within the columns."""
    shown = in_terminal(*arguments, columns=columns, **options)
    assert shown.code == code, shown.text
    assert "Traceback" not in shown.text
    assert max(map(len, shown.lines)) <= columns, shown.text
    return shown


@pytest.mark.parametrize("command", [(), *((name,) for name in gpclass.commands)], ids=" ".join)
def test_help(command):
    shown = check(*command, "--help")
    assert "Usage: " in shown.text
    assert "\n    gpclass " in shown.text or not command, "examples"


def test_help_lists_commands_in_the_order_of_work_and_options_in_sections():
    shown = check("--help").text.partition("Commands:")[2]
    places = [shown.index(f"  {name} ") for name in ("compare", "fit", "check", "predict", "info", "explore")]
    assert places == sorted(places)
    text = check("fit", "--help").text
    titles = ["Options:", "Model:", "Rows and columns:", "Reading DATA:", "General:", "Examples:"]
    assert [line.strip() for line in text.splitlines() if line.strip() in titles] == titles
    options = dict(zip(titles, re.split("|".join(titles), text)[1:], strict=True))
    assert "--kernel" in options["Model:"]
    assert "--decimal" in options["Reading DATA:"]
    assert "--help" in options["General:"]


def test_names_are_listed():
    assert "rbf-shared" in check("fit", "--kernel", "list").text
    assert "label_noise" in check("compare", "--likelihood", "list").text
    names = [
        line.split()[0] for line in check("fit", "--inference", "list", columns=200).lines if line.strip()
    ]
    assert {"auto", "laplace", "ep", "vi", "mcmc"} <= set(names)
    assert "gradient-boosting" in check("compare", "-m", "list").lines


def test_progress_names_rows_and_stage_and_scores_come_first(place):
    shown = check("fit", "t.csv", "-t", "y", "-o", "vi.gpc", cwd=place)
    for words in ("searching for length scales", "choosing the kernel", "learning"):
        assert re.search(rf"^fitting 40 rows, \d+ s: {words} on 40 rows", shown.text, re.MULTILINE)
    facts = shown.text.partition("leave-one-out log loss ")[2]
    assert -1 < facts.index("leave-one-out error") < facts.index("training rows") < facts.index("kernel ")
    assert shown.lines[-2].startswith("Wrote the model to vi.gpc")


def test_an_interrupted_fit_keeps_its_model(place):
    options = {"cwd": place, "stop_at": "choosing the kernel", "code": 130}
    shown = check("fit", "t.csv", "-t", "y", "-o", "cut.gpc", **options)
    assert "gpclass: interrupted. cut.gpc has the best model so far." in shown.text
    assert "log evidence" in check("info", "cut.gpc", cwd=place).text


def test_wrong_names_are_corrected(place):
    said = " ".join(check("fit", "t.csv", "-t", "Y", cwd=place, code=1).lines)
    assert "no column 'Y' (did you mean 'y'?)" in said
    said = " ".join(check("fit", "t.csv", "-t", "y", "--kernel", "mattern32", cwd=place, code=1).lines)
    assert "did you mean 'matern32'?" in said
    assert "Did you mean 'predict'?" in check("predct", code=2).text
    assert "--target" in check("fit", "t.csv", "--traget", "y", code=2).text
    said = " ".join(check("fit", "t.csv", cwd=place, code=2).lines)
    assert "Give --target, the column with the labels, one of 'the first of two coordinates'" in said


@pytest.mark.parametrize("options", [("-m", "laplace"), ("-m", "laplace", "--baselines")], ids=len)
def test_compare(place, options):
    shown = check("compare", "t.csv", "-t", "y", "--kernel", "rbf", "--cv", 2, *options, cwd=place)
    assert "log evidence" in shown.text
    for method in ("laplace", *("sklearn-gp", "gradient-boosting") * ("--baselines" in options)):
        assert any(line.startswith(method) for line in shown.lines)


def test_compare_a_built_in_problem(tmp_path):
    pytest.importorskip("matplotlib")
    options = ("-m", "laplace", "-m", "dirichlet", "-o", "f.png")
    shown = check("compare", *options, cwd=tmp_path)
    assert "Wrote the figure to f.png." in shown.text
    assert (tmp_path / "f.png").exists()


def test_predict(place):
    shown = check("predict", "m.gpc", "t.csv", cwd=place)
    assert "prediction,p_0,p_1,low_1,high_1" in shown.lines
    assert "Wrote 40 predictions" in check("predict", "m.gpc", "t.csv", "-o", "p.csv", cwd=place).text


def test_commands_that_show_a_model(place):
    pytest.importorskip("matplotlib")
    assert "the second of two coordinates" in check("info", "m.gpc", cwd=place).text
    assert "Laplace" in check("check", "m.gpc", "--draws", 200, cwd=place).text
    assert "Wrote the figure" in check("plot", "m.gpc", cwd=place).text


def test_explain(place):
    pytest.importorskip("matplotlib")
    shown = check("explain", "m.gpc", "t.csv", "-o", "page.html", cwd=place)
    assert [line for line in shown.lines if line] == ["Wrote the page to page.html."]
    assert (place / "page.html").read_text("utf-8").count("<svg") >= 5
    assert (
        '"page": "page.md"' in check("explain", "m.gpc", "t.csv", "-o", "page.md", "--json", cwd=place).text
    )
    shown = in_terminal("explain", "m.gpc", "t.csv", "-o", "page.txt", cwd=place)
    assert shown.code == 1
    assert "expected one that ends in .html, .md" in shown.text.replace("\n", " ")


def test_explore_starts_and_stops(place):
    pytest.importorskip("bokeh")
    words = "interrupt with Ctrl+C"
    shown = check("explore", "t.csv", "-t", "y", "--no-browser", cwd=place, stop_at=words)
    assert "http://127.0.0.1:" in shown.text


@pytest.mark.parametrize("arguments", [("fit", "none.csv", "-t", "y"), ("info", "t.csv")], ids="-".join)
def test_an_error_is_one_sentence_in_red(place, arguments):
    shown = check(*arguments, cwd=place, code=1, columns=60)
    assert re.search(r"\x1b\[31m(\x1b\[1m)?gpclass: error:", shown.raw)
    assert "\x1b[31m" not in check(*arguments, cwd=place, code=1, NO_COLOR="1").raw
