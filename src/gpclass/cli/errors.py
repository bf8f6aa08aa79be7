"""What the command line says when it cannot go on: one sentence."""

from __future__ import annotations


class InputError(ValueError):
    """An input that cannot be used; its text is one sentence: what was found, what to do."""


def named(names: object, most: int = 6) -> str:
    """Return names in quotes with commas between them, the first few of many.

    Examples
    --------
    >>> named(["a", "b"])
    "'a', 'b'"
    >>> named("abcdefgh", most=2)
    "'a', 'b' and 6 more"
    """
    shown = [repr(str(name)) for name in names]  # type: ignore[attr-defined]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more
