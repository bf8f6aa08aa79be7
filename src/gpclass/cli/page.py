"""A page of headings, sentences, tables and figures, as one HTML file or as Markdown."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import groupby
from string import Template
from typing import Any


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a section."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table; without a header the first column names the rows."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure as SVG, and its numbers if they are not those of the figure before: Markdown has these alone."""

    svg: str
    caption: str
    table: Table | None


Block = str | Heading | Table | Figure  # a text is a paragraph


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """Return a page that needs no other file; neighbouring figures stand side by side."""
    parts = [f"<h1>{escape(title)}</h1>"]
    for figures, group in groupby(blocks, lambda block: isinstance(block, Figure)):
        text = "\n".join(map(_html, group))
        parts.append(f'<div class="figures">{text}</div>' if figures else text)
    page = Template(files("gpclass.cli").joinpath("page.html").read_text("utf-8"))
    return page.substitute(title=escape(title), body="\n".join(parts))


def _html(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h2>{escape(text)}</h2>"
        case Table(header, rows):
            lines = [_row("th", header)] * bool(header) + [_row("td", row) for row in rows]
            kind = "" if header else ' class="facts"'
            return f'<div class="scroll"><table{kind}>{"".join(lines)}</table></div>'
        case Figure(svg, caption, table):
            image = svg.replace("<svg", f'<svg role="img" aria-label="{escape(caption)}"', 1)
            more = escape(caption)
            if table is not None:
                more = f"<details><summary>{more}: numbers</summary>{_html(table)}</details>"
            return f"<figure>{image}<figcaption>{more}</figcaption></figure>"
    return f"<p>{escape(block)}</p>"


def _row(cell: str, texts: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{cell}>{escape(text)}</{cell}>' for text in texts)}</tr>"


def to_markdown(title: str, blocks: Sequence[Block]) -> str:
    """Return the page as Markdown, with the numbers of figures in place of them."""
    texts = (_markdown(block) for block in blocks if not isinstance(block, Figure) or block.table)
    return "\n\n".join([f"# {title}", *texts]) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Heading(text):
            return f"## {text}"
        case Table(header, rows):
            header = header or [""] * len(rows[0])
            lines = [header, ["---"] * len(header), *rows]
            return "\n".join(
                f"| {' | '.join(text.replace('|', '&#124;') for text in line)} |" for line in lines
            )
        case Figure(_, caption, table):
            return f"{caption}:\n\n{_markdown(table) if table else ''}"
    return block


def svg_of(figure: Any) -> str:
    """Return a figure of matplotlib as SVG: black becomes the colour of the text around it, light or dark."""
    import matplotlib as mpl

    image = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "gpclass"}):  # the same figure has the same names of clip paths
        figure.savefig(image, format="svg", transparent=True, metadata={"Date": None})
    text = image.getvalue()
    text = re.sub(r' id="[A-Za-z.]+_\d+"', "", text[text.index("<svg") :])  # names that all figures share
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return re.sub(r"\s*\n\s*", "\n", text.replace("#000000", "currentColor"))
