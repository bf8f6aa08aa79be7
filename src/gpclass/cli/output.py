"""What a command writes: results to standard output, everything else to standard error.

Tables have colours and bars move only on a terminal; in a pipe there are plain lines.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

WIDEST_LINE = 110  # of prose on a terminal
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
    """Write what was done to standard error, after a title in a style if one is given."""
    from rich.text import Text

    _write(Text.assemble((title, style), sentence), sys.stderr)


def _write(text: Any, stream: Any) -> None:
    """Write prose, wrapped only on a terminal."""
    from rich.console import Console

    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    width = min(console.width, WIDEST_LINE) if stream.isatty() else None
    console.print(text, width=width, soft_wrap=width is None)


def show_json(value: Any) -> None:
    """Write a result as JSON; a value that does not exist is null."""
    text = json.dumps(value, default=lambda array: array.tolist())
    finite = json.loads(text, parse_constant=lambda name: None)
    line(json.dumps(finite, indent=2, ensure_ascii=False))


def show_table(headings: Sequence[str], rows: Sequence[Sequence[Any]], *, right: bool = False) -> None:
    """Write a table of texts or `rich.text.Text`; ``right`` aligns all columns but the first.

    On a terminal long cells are folded to its width.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    named = any(headings)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_header=named)
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if right and i else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else WIDEST_TABLE)
    with console.capture() as captured:
        console.print(table)
    for text in captured.get().splitlines():
        line(text.rstrip())


@contextlib.contextmanager
def progress(doing: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Give a function to call after each step; a bar, or a spinner if there is no total, on a terminal."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich import progress as bars
    from rich.console import Console

    counted = (bars.SpinnerColumn(),) if total is None else (bars.BarColumn(), bars.MofNCompleteColumn())
    columns = (bars.TextColumn("{task.description}"), *counted, bars.TimeElapsedColumn())
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda: bar.advance(task)


def fit_width(columns: dict[str, list[Any]], optional: Sequence[str]) -> list[str]:
    """Remove optional columns, in this order, until a table fits on the terminal; return those removed."""
    from rich.console import Console

    width, removed = Console(file=sys.stdout).width, []
    for name in optional:
        if sum(max(map(len, (heading, *cells))) + 2 for heading, cells in columns.items()) - 2 > width:
            del columns[name]
            removed.append(name)
    return removed
