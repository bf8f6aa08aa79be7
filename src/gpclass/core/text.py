"""Texts for users: the name that was meant, intervals, and short forms of long lists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

LONGEST = 8  # numbers of a list that is shown in full


def similar(name: object, known: Iterable[str]) -> str:
    """Return a question in brackets that names the known name most similar to a wrong one; '' if none is similar.

    >>> similar("Matern", ["matern12", "rbf"])
    " (did you mean 'matern12'?)"
    """
    names = {each.casefold(): each for each in known}
    found = get_close_matches(name[:80].casefold(), names, 1) if isinstance(name, str) else []
    return "".join(f" (did you mean {names[each]!r}?)" for each in found)


def named(names: Iterable[object], most: int = 6) -> str:
    """Return names in quotes, separated by commas; only the first few of many.

    >>> named("abcdefgh", most=2)
    "'a', 'b' and 6 more"
    """
    shown = [repr(str(name)) for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def between(found: Any, digits: int = 2) -> str:
    """Return a number and its interval as text."""
    return "{:.{d}f} [{:.{d}f}, {:.{d}f}]".format(*found, d=digits)


def shortened(text: str) -> str:
    """Return the text of a kernel in which long lists have three dots for all but their ends.

    >>> shortened("RBF(length_scale=[1, 2, 3, 4, 5, 6, 7, 8, 9])")
    'RBF(length_scale=[1, 2, 3, ..., 9])'
    """

    def short(found: re.Match[str]) -> str:
        numbers = found[1].split(", ")
        return f"[{', '.join(numbers[:3])}, ..., {numbers[-1]}]" if len(numbers) > LONGEST else found[0]

    return re.sub(r"\[([^][]*)\]", short, text)
