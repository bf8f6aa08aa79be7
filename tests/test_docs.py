"""The examples in the documentation run and print what they say."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```pycon\n(.*?)^```", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(page: Path) -> str:
    """Return the examples of a page as one session."""
    return "\n".join(BLOCK.findall(page.read_text("utf-8")))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
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
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing
