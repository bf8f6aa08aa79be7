"""The examples in the documentation run and print what they say."""

from __future__ import annotations

import ast
import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
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
    made = ("gallery/index.md", "gallery/index.rst", "../gallery/index.rst")  # by sphinx-gallery
    missing = [target for target in targets if target not in made and not (page.parent / target).exists()]
    assert not missing


def entries(page: Path) -> list[str]:
    """Return the pages that the tables of contents of a page list, with their path from docs/."""
    listings = re.findall(r"```\{toctree\}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    names = [
        line for listing in listings for line in listing.splitlines() if line and not line.startswith(":")
    ]
    return [os.path.relpath(page.parent / name, DOCS) for name in names]


def test_every_page_is_listed_once():
    listed = [entry for page in DOCS.rglob("*.md") if "_build" not in page.parts for entry in entries(page)]
    pages = [
        str(page.relative_to(DOCS).with_suffix("")) for page in (*DOCS.glob("*.md"), *DOCS.glob("guide/*.md"))
    ]
    assert sorted(listed) == sorted({*pages, "gallery/index"} - {"index"})


def test_the_sidebar_is_short():
    assert len(entries(DOCS / "index.md")) <= 28


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub and MyST make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_a_heading(page):
    links = re.findall(r"\]\(([^)#:\s]*)#([^)]*)\)", page.read_text("utf-8"))
    targets = [(page.parent / name if name else page, anchor) for name, anchor in links]
    missing = [
        (str(to), anchor) for to, anchor in targets if to.suffix == ".md" and anchor not in anchors(to)
    ]
    assert not missing


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


def test_names_that_the_reference_lists_exist():
    text = "".join(page.read_text("utf-8") for page in (DOCS / "api.md", DOCS / "guide" / "extending.md"))
    listed = re.findall(r"^   (gpclass\.[\w.]*)$", text, re.MULTILINE)
    assert len(listed) > 100
    for name in listed:
        assert pkgutil.resolve_name(name) is not None


@pytest.mark.parametrize(
    "name",
    [
        "active",
        "comparison",
        "effects",
        "evidence",
        "inference",
        "likelihoods",
        "mcmc",
        "plotting",
        "sampling",
        "sparse",
        "testing",
    ],
)
def test_what_a_module_exports_is_in_the_reference(name):
    text = "".join(page.read_text("utf-8") for page in (DOCS / "api.md", DOCS / "guide" / "extending.md"))
    listed = set(re.findall(r"^   gpclass\.(?:\w+\.)*(\w+)$", text, re.MULTILINE))
    exported = importlib.import_module(f"gpclass.{name}").__all__
    assert {each for each in exported if not each.isupper() or len(each) < 4} <= listed  # constants excepted


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


@pytest.mark.parametrize("study", ["bayes", "defaults", "multiclass"])
def test_a_study_replaces_its_own_section_only(study, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "studies"))
    sections = importlib.import_module("sections")
    source = (ROOT / "studies" / f"{study}.py").read_text("utf-8")
    title = re.search(r'^TITLE = "(.+)"$', source, re.MULTILINE)[1]
    page = sections.PAGE.read_text("utf-8")
    before, rest = page.split(f"## {title}\n")
    new = sections.replaced(page, title, "### New\n\nA \\1 body.\n")
    after = "\n## " + rest.split("\n## ", 1)[1]
    assert new == f"{before}## {title}\n\n### New\n\nA \\1 body.\n{after}"
    with pytest.raises(ValueError, match="0 sections"):
        sections.replaced(page, "No such study", "")


def test_figures_of_the_gallery_exchange_black_and_white_on_dark_pages(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    figures = importlib.import_module("figures")
    plt.close("all")  # those of other tests in this process
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
