"""Write one section of docs/guide/studies.md: each study owns the section that has its title."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "studies.md"


def replaced(page: str, title: str, body: str) -> str:
    """Return the page with another body below the heading ``## title``."""
    section = re.compile(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    new, n = section.subn(lambda _: f"## {title}\n\n{body.strip()}\n\n", page)
    if n != 1:
        raise ValueError(f"{PAGE.name} has {n} sections with the title {title!r}; expected one.")
    return new.rstrip() + "\n"


def write(title: str, body: str) -> None:
    PAGE.write_text(replaced(PAGE.read_text("utf-8"), title, body), "utf-8")
