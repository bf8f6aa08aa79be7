"""The page of a template: what is left out, and what is escaped; its appearance in a browser."""

from __future__ import annotations

import pytest

pytest.importorskip("click")

from gpclass.cli.page import Figure, filled, page

TEMPLATE = """# About $name

One. Two is $two. Three.

## First

$table

Known: $yes.

## Second

$no is here. It was.

Always.

## Third

Nothing to fill in.
"""
VALUES = {"name": "m", "two": "", "table": [{"a": ["1"]}], "yes": "yes", "no": ""}


def test_what_has_no_value_is_left_out():
    found = list(filled(TEMPLATE, VALUES))
    assert found == ["# About m", "One. Three.", "## First", {"a": ["1"]}, "Known: yes."]
    assert list(filled(TEMPLATE, VALUES | {"two": "2"}))[:2] == ["# About m", "One. Two is 2. Three."]
    assert "Always." in list(filled(TEMPLATE, VALUES | {"no": "x"}))
    assert "Nothing to fill in." not in found


def blank(**more):
    """Return values for the template of the page, most of them absent."""
    from pathlib import Path
    from string import Template

    from gpclass.cli import page

    names = Template(Path(page.__file__).with_name("page.md").read_text("utf-8")).get_identifiers()
    return dict.fromkeys(names, "") | more


def test_texts_of_the_user_are_escaped():
    bad = "<script>a|b</script>"
    values = blank(name=bad, facts=[{bad: [bad]}], effects=[Figure("<svg></svg>", bad, {"x": ["1"]})])
    html = page(values, html=True)
    assert "<script>" not in html
    assert html.count("&lt;script&gt;") >= 5
    text = page(values, html=False)
    assert "| <script>a\\|b</script> |\n| --- |\n" in text
    assert "<svg" not in text


FIGURE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 259 201"><path d="M0 0h259v201z"/></svg>"""


def test_page_fits_a_telephone_and_the_dark(tmp_path):
    """Nothing is wider than the screen, text and figures are light on dark, and nothing is fetched."""
    from explore_browser import browser

    wide = {f"column {i}": ["0.123 [0.100,\N{NO-BREAK SPACE}0.200]"] * 3 for i in range(8)}
    figures = [Figure(FIGURE, f"Effect {i}", wide) for i in range(3)]
    values = blank(
        name="m" * 60,
        facts=[{"": ["kernel"], " ": ["length_scale " * 40]}],
        unknown=[wide],
        far="1",
        effects=figures,
    )
    (tmp_path / "page.html").write_text(page(values, html=True), "utf-8")
    script = """() => ({
      width: document.documentElement.scrollWidth,
      rows: [...document.querySelectorAll('tr')].map(row => row.getBoundingClientRect().height),
      ground: getComputedStyle(document.body).backgroundColor,
      ink: getComputedStyle(document.querySelector('svg')).fill,
      figures: [...document.querySelectorAll('svg')].map(svg => svg.getBoundingClientRect().x),
      fetched: performance.getEntriesByType('resource').length})"""
    with browser() as chrome:
        for width, scheme in ((390, "dark"), (1280, "light")):
            context = chrome.new_context(
                viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True
            )
            opened = context.new_page()
            opened.goto((tmp_path / "page.html").as_uri())
            found = opened.evaluate(script)
            assert found["width"] == width
            assert found["fetched"] == 0
            ground, ink = (
                [int(n) for n in text[4:-1].split(",")] for text in (found["ground"], found["ink"])
            )
            assert (
                (sum(ink) > 600 and sum(ground) < 100) if scheme == "dark" else (sum(ink) < 150 < sum(ground))
            )
            assert len(set(found["figures"])) == (
                1 if width == 390 else 3
            )  # below each other, or side by side
            assert max(found["rows"][2:]) < 60  # intervals are not broken
            context.close()
