"""The examples in the documentation run and print what they say."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb

ROOT = Path(__file__).parents[1]
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = [*TOP, *sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)]
BLOCK = re.compile(r"^```pycon\n(.*?)^```", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(page: Path) -> str:
    """Return the examples of a page as one session."""
    return "\n".join(BLOCK.findall(page.read_text("utf-8")))


# The first page repeats the example of the README: sessions that are equal run once.
SESSIONS = {blocks(page): page for page in reversed(PAGES)}


@pytest.mark.parametrize(
    "page", [page for text, page in SESSIONS.items() if text], ids=lambda page: page.stem
)
def test_examples(page):
    session = doctest.DocTestParser().get_doctest(blocks(page), {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    report: list[str] = []
    runner.run(session, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_python_block_is_an_example_that_is_run(page):
    assert "```python" not in page.read_text("utf-8"), "write ```pycon, with prompts and results"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    text = page.read_text("utf-8")
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    for listing in re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL):
        targets += [f"{line}.md" for line in listing.splitlines() if line and not line.startswith(":")]
    made = ("gallery/index.md", "../gallery/index.rst")  # by sphinx-gallery
    missing = [target for target in targets if target not in made and not (page.parent / target).exists()]
    assert not missing


def test_every_page_is_in_the_table_of_contents():
    listed = set(re.findall(r"^guide/\w+$", (ROOT / "docs" / "index.md").read_text("utf-8"), re.MULTILINE))
    assert listed == {f"guide/{page.stem}" for page in (ROOT / "docs" / "guide").glob("*.md")}


def test_tests_and_files_that_pages_name_exist():
    tests = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py"))
    for page in PAGES:
        if page.name == "CHANGELOG.md":  # which also names what is gone
            continue
        text = page.read_text("utf-8")
        for name in re.findall(r"`(test_\w+)`", text):
            assert f"def {name}(" in tests, f"{page.name} names {name}"
        for name in re.findall(r"`((?:src|tests|examples|benchmarks|studies|docs)/[\w/]+\.py)`", text):
            assert (ROOT / name).exists(), f"{page.name} names {name}"


SHOWN = re.compile(r"```\{literalinclude\} (\S+)\n:pyobject: ([\w.]+)")


def test_code_that_pages_show_exists():
    shown = [(page, *found) for page in PAGES for found in SHOWN.findall(page.read_text("utf-8"))]
    assert shown
    for page, file, name in shown:
        scope = ast.parse((page.parent / file).read_text("utf-8"))
        for part in name.split("."):
            scope = next((node for node in scope.body if getattr(node, "name", "") == part), None)
            assert scope is not None, f"{page.name} shows {name} of {file}"


def test_modules_that_the_reference_lists_exist():
    listed = re.findall(r"^   (gpclass[\w.]*)$", (ROOT / "docs" / "api.md").read_text("utf-8"), re.MULTILINE)
    assert listed
    for name in listed:
        path = ROOT / "src" / name.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__init__.py").exists(), name


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs" / "examples").glob("*/plot_*.py")), ids=lambda path: path.stem
)
def test_scripts_of_the_gallery_are_short_and_explained(path):
    text = path.read_text("utf-8")
    assert re.match(r'"""\n(.+)\n=+\n\n.+', text), "a title and a sentence"
    assert len(text.splitlines()) < 60
    compile(text, str(path), "exec")  # `make docs` runs them


def test_the_page_of_combinations_is_that_of_the_table():
    command = [sys.executable, str(ROOT / "docs" / "combinations.py"), "--check"]
    environment = {"PYTHONPATH": str(ROOT / "src")}
    assert subprocess.run(command, env=environment).returncode == 0, "run: python docs/combinations.py"


def test_figures_of_the_gallery_exchange_black_and_white_on_dark_pages(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    figures = importlib.import_module("figures")
    axis = plt.figure().add_subplot()
    (line,) = axis.plot([0, 1], color="black", marker="o", markerfacecolor="white")
    blue = axis.scatter([0, 1], [0, 1], color="#56B4E9")
    label = axis.text(0.5, 0.5, "on a dark colour", color="white")
    numbers = axis.scatter([0, 1], [0, 1], c=[0.0, 1.0], cmap="gray")
    block = {"image_path_iterator": iter([str(tmp_path / "figure.png")]), "target_file": "plot_1_figure.py"}
    markup = figures.light_and_dark(None, block, {"src_dir": str(tmp_path)})
    assert min(to_rgb(line.get_color())) > 0.9
    assert max(to_rgb(line.get_markerfacecolor())) < 0.1
    assert min(to_rgb(axis.xaxis.label.get_color())) > 0.9
    assert to_rgb(label.get_color()) == (1.0, 1.0, 1.0)
    np.testing.assert_allclose(blue.get_facecolor()[0, :3], to_rgb("#56B4E9"))
    np.testing.assert_allclose(numbers.to_rgba([0.0, 1.0])[:, 0], [0.0, 1.0])
    assert [line for line in markup.splitlines() if "image::" in line] == [
        ".. image:: /figure.png",
        ".. image:: /figure_dark.png",
    ]
    assert {path.name for path in tmp_path.iterdir()} == {"figure.png", "figure_dark.png"}
