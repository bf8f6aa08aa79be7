"""What a command writes: results to standard output, everything else to standard error.

Tables have colours and bars move only on a terminal; in a pipe there are plain lines.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

RED, YELLOW, HEADING, OPTION = "1;31", "1;33", "1;36", "32"  # as terminals count colours
WIDEST = 10**9  # columns of a table that is not on a terminal


def line(text: str = "") -> None:
    """Write a line of the result."""
    sys.stdout.write(f"{text}\n")


def paragraph(text: str) -> None:
    """Write a text as lines of the result; on a terminal each is wrapped to its width."""
    for each in text.split("\n"):
        line(_wrapped(each, sys.stdout))


def _wrapped(text: str, stream: Any) -> str:
    """Return a line wrapped to the width of the stream if that is a terminal; words, as paths are, stay whole."""
    from rich.console import Console

    if not stream.isatty():
        return text
    width = min(Console(file=stream).width, 110)
    return "\n".join(textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False))


def warn(sentence: str) -> None:
    """Write a warning to standard error."""
    remark(sentence, "gpclass: warning: ", YELLOW)


def remark(sentence: str, title: str = "", colour: str = "") -> None:
    """Write what was done to standard error, under a title in a colour if one is given."""
    text = _wrapped(title + sentence, sys.stderr)
    sys.stderr.write(f"{coloured(title, colour)}{text.removeprefix(title)}\n" if title else f"{text}\n")


def coloured(text: str, colour: str, stream: Any = None) -> str:
    """Return a text in a colour if the stream, standard error by default, is a terminal that shows colours."""
    return f"\x1b[{colour}m{text}\x1b[0m" if has_colours(stream or sys.stderr) else text


def has_colours(stream: Any) -> bool:
    """Return whether to write colours: NO_COLOR and FORCE_COLOR decide, then whether this is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    dumb = os.environ.get("TERM") == "dumb"
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and not dumb)


def show_json(value: Any) -> None:
    """Write a result as JSON; a value that does not exist is null."""
    line(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value built of Python's own types, as JSON needs them."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if not isinstance(value, str | bool | int | float | None):  # arrays and scalars of NumPy
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else WIDEST)
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
