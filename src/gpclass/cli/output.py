"""What a command writes: results to standard output, everything else to standard error.

Coloured tables and progress bars appear only on a terminal; a pipe gets plain lines.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

WIDEST_LINE = 110  # width of text on a terminal
WIDEST_TABLE = 10**9  # in a pipe, where nothing is folded


def line(text: str = "") -> None:
    """Write a line of the result."""
    sys.stdout.write(f"{text}\n")


def paragraph(text: str) -> None:
    """Write a text as lines of the result; on a terminal each is wrapped to its width."""
    _write(text, sys.stdout)


def warn(sentence: str) -> None:
    """Write a warning to standard error."""
    remark(sentence, "gpclass: warning: ", "bold yellow")


def remark(sentence: str, title: str = "", style: str = "") -> None:
    """Write a note to standard error, after a styled title if one is given."""
    from rich.text import Text

    _write(Text.assemble((title, style), sentence), sys.stderr)


def _write(text: Any, stream: Any) -> None:
    from rich.console import Console

    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    width = min(console.width, WIDEST_LINE) if stream.isatty() else None
    console.print(text, width=width, soft_wrap=width is None)


def show_json(value: Any) -> None:
    """Write a result as JSON; a value that does not exist is null."""
    text = json.dumps(value, default=lambda array: array.tolist())
    finite = json.loads(text, parse_constant=lambda name: None)
    line(json.dumps(finite, indent=2, ensure_ascii=False))


def show_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: bool = False) -> None:
    """Write a table; ``right`` aligns all columns but the first. On a terminal cells are folded to its width."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_header=any(headings)
    )
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if right and i else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else WIDEST_TABLE)
    with console.capture() as captured:
        console.print(table)
    for text in captured.get().splitlines():
        line(text.rstrip())


def track(items: Sequence[Any], doing: str) -> Iterable[Any]:
    """Yield items, with a bar on a terminal."""
    from rich.console import Console
    from rich.progress import track

    hidden = not sys.stderr.isatty()
    return track(items, doing, console=Console(stderr=True), transient=True, disable=hidden)
