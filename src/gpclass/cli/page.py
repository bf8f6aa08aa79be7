"""A page of text, tables and figures from a template, as one HTML file or as Markdown."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

Table = Mapping[str, Sequence[str]]  # columns of texts by their names


class Figure(NamedTuple):
    """A figure as SVG and its numbers, unless the figure before has them; Markdown has the numbers alone."""

    svg: str
    caption: str
    table: Table | None = None


def page(values: Mapping[str, Any], *, html: bool) -> str:
    """Return the page with values in the template: texts, or lists of tables and figures."""
    folder = files("gpclass.cli")
    blocks = [*filled(folder.joinpath("page.md").read_text("utf-8"), values)]
    if not html:
        return "\n\n".join(filter(None, map(_markdown, blocks))) + "\n"
    whole = Template(folder.joinpath("page.html").read_text("utf-8"))
    return whole.substitute(title=escape(blocks[0][2:]), body="\n".join(map(_html, blocks)))


def filled(template: str, values: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the blocks of a template.

    Sentences without their values are left out, paragraphs without their first sentence, and sections without values.
    """

    def known(text: str) -> bool:
        return all(values.get(name) for name in Template(text).get_identifiers())

    for section in re.split(r"\n(?=## )", template):
        head, *paragraphs = section.strip().split("\n\n")
        found, used = list[Any](), head
        for paragraph in paragraphs:
            sentences = re.split(r"(?<=\.)\s+", paragraph)
            if isinstance(values.get(paragraph[1:]), list):
                found += values[paragraph[1:]]
                used += paragraph * bool(values[paragraph[1:]])
            elif known(sentences[0]):
                text = " ".join(each for each in sentences if known(each)).replace("\n", " ")
                used += text
                found.append(Template(text).substitute(values))
        if "$" in used:
            yield from [Template(head).substitute(values), *found]


def _html(block: Any) -> str:
    if isinstance(block, Mapping):
        lines = [
            "".join(f"<td>{escape(text)}</td>" for text in row) for row in zip(*block.values(), strict=True)
        ]
        head = "".join(f"<th>{escape(name.strip())}</th>" for name in block)
        return f"<section><table><tr>{'</tr><tr>'.join([head, *lines])}</tr></table></section>"
    if isinstance(block, Figure):
        image = block.svg.replace("<svg", f'<svg role="img" aria-label="{escape(block.caption)}"', 1)
        more = escape(block.caption)
        if block.table:
            more = f"<details><summary>{more}: numbers</summary>{_html(block.table)}</details>"
        return f"<figure>{image}<figcaption>{more}</figcaption></figure>"
    level = len(block) - len(block.lstrip("#"))
    return f"<h{level}>{escape(block[level + 1 :])}</h{level}>" if level else f"<p>{escape(block)}</p>"


def _markdown(block: Any) -> str:
    if isinstance(block, Mapping):
        lines = [block, ["---"] * len(block), *zip(*block.values(), strict=True)]
        texts = ([text.replace("|", "\\|").replace("\n", " ") for text in line] for line in lines)
        return "\n".join(f"| {' | '.join(line)} |" for line in texts)
    if isinstance(block, Figure):
        return f"{block.caption}:\n\n{_markdown(block.table)}" if block.table else ""
    return str(block)


def svg_of(figure: Any) -> str:
    """Return a figure of matplotlib as SVG: black becomes the colour of the text around it, light or dark."""
    import matplotlib as mpl

    image = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "gpclass"}):  # the same figure has the same names of clip paths
        figure.savefig(image, format="svg", transparent=True, metadata={"Date": None})
    text = image.getvalue()
    text = re.sub(r' id="[A-Za-z][\w.]*_\d+"', "", text[text.index("<svg") :])  # names that all figures share
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return re.sub(r"\s*\n\s*", "\n", text.replace("#000000", "currentColor"))
