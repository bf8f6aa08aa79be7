"""Output of the commands: results go to standard output, everything else to standard error.

Lines are wrapped, and coloured, only on a terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import rich  # noqa: F401  (its parts are imported when used, because they take long)

WIDEST_LINE = 110  # width of text on a terminal
WIDEST_TABLE = 10**9  # width of tables in a pipe, where cells are not folded


def paragraph(text: Any, stream: Any = None) -> None:
    """Write a text as lines of the result; on a terminal each is wrapped to its width."""
    from rich.console import Console

    console = Console(file=stream or sys.stdout, highlight=False, markup=False, emoji=False)
    width = min(console.width, WIDEST_LINE) if console.is_terminal else None
    console.print(text, width=width, soft_wrap=width is None)


def remark(sentence: str, title: str = "", style: str = "") -> None:
    """Write a note to standard error, after a styled title if one is given."""
    from rich.text import Text

    paragraph(Text.assemble((title, style), sentence), sys.stderr)


def show_json(value: Any) -> None:
    """Write a result as JSON; missing values are null."""
    text = json.dumps(value, default=lambda array: array.tolist())
    finite = json.loads(text, parse_constant=lambda name: None)
    sys.stdout.write(json.dumps(finite, indent=2, ensure_ascii=False) + "\n")


def show_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: bool = False) -> None:
    """Write a table; ``right`` aligns all columns but the first. On a terminal cells are folded to its width."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    look: dict[str, Any] = {"box": None, "pad_edge": False, "padding": (0, 2, 0, 0), "header_style": "bold"}
    table = Table(**look, show_header=any(headings))
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if right and i else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else WIDEST_TABLE)
    with console.capture() as captured:
        console.print(table)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())
