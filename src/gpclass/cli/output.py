"""Output of the commands: results go to standard output, everything else to standard error.

Lines are wrapped, and coloured, only on a terminal.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from textwrap import fill
from typing import Any

import click

WIDTH = 110  # of text on a wide terminal
NAMES = 40  # of the names in a list; longer ones have a line of their own


def width_of(stream: Any) -> int | None:
    """Return the width for text on a terminal; None for other streams."""
    return min(shutil.get_terminal_size().columns, WIDTH) if stream.isatty() else None


def wrapped(text: Any, stream: Any) -> str:
    """Return a text whose lines fit on a terminal."""
    lines, width = str(text).splitlines(), width_of(stream)
    return "\n".join(fill(line, width, break_on_hyphens=False) if width else line for line in lines)


def remark(sentence: str, title: str = "", colour: str = "") -> None:
    """Write a note to standard error, after a coloured title if one is given; it replaces a line of progress."""
    words = wrapped(title + sentence, sys.stderr).removeprefix(title)
    title = title if os.environ.get("NO_COLOR") or not title else click.style(title, fg=colour, bold=True)
    click.echo(("\r\x1b[K" if sys.stderr.isatty() else "") + title + words, err=True)


def show_json(value: Any) -> None:
    """Write a result as JSON; missing values are null."""
    text = json.dumps(value, default=lambda array: array.tolist())
    finite = json.loads(text, parse_constant=lambda name: None)
    sys.stdout.write(json.dumps(finite, indent=2, ensure_ascii=False) + "\n")


def show_pairs(title: str, pairs: Sequence[tuple[str, str]]) -> None:
    """Write names and values in two columns below a title, if there is one; nothing if there are no pairs."""
    if pairs:
        text = click.HelpFormatter(width=width_of(sys.stdout) or 10**9)
        text.write_dl(pairs, col_max=NAMES)
        title = wrapped(title, sys.stdout)
        click.echo(f"\n{title}\n{text.getvalue()}" if title else text.getvalue(), nl=False)
