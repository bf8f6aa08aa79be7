"""What a command shows: tables on a terminal, plain lines in a pipe, JSON on demand; warnings apart."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def line(text: str = "") -> None:
    """Write a line of the result."""
    sys.stdout.write(f"{text}\n")


def warn(sentence: str) -> None:
    """Say something beside the result."""
    sys.stderr.write(f"gpclass: warning: {sentence}\n")


def remark(sentence: str) -> None:
    """Say what was done, beside the result."""
    sys.stderr.write(f"{sentence}\n")


def show_json(value: Any) -> None:
    """Write a result as JSON; what does not exist is null."""
    line(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value with numpy's kinds replaced by Python's, as JSON has them."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show_table(headings: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
    """Draw a table on a terminal, write it aligned elsewhere; the first ``left`` columns are to the left."""
    if sys.stdout.isatty():
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for i, heading in enumerate(headings):
            table.add_column(heading, justify="left" if i < left else "right", overflow="fold")
        for row in rows:
            table.add_row(*[Text(cell) for cell in row])
        Console(highlight=False).print(table)
        return
    cells = [list(headings), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        parts = [
            cell.ljust(w) if i < left else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        line("  ".join(parts).rstrip())


def show_facts(facts: dict[str, Any]) -> None:
    """Write names and values, one a line; what does not exist is left out."""
    shown = {name: str(value) for name, value in facts.items() if value is not None and value != ""}
    wide = max(map(len, shown), default=0)
    for name, value in shown.items():
        line(f"{name:<{wide}}  {value}")


@contextlib.contextmanager
def progress(doing: str, total: int) -> Iterator[Any]:
    """Give a function that is called after each of so many steps; a bar if somebody may be looking."""
    if not sys.stderr.isatty() or total < 2:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*parts, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(doing, total=total)
        yield lambda: bars.advance(task)


@contextlib.contextmanager
def waiting(doing: str, quiet: bool = False) -> Iterator[None]:
    """Show that something is going on, if somebody may be looking."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(doing):
        yield
