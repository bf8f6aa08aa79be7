"""Numbers in sentences."""

from __future__ import annotations


def apart(x: float, y: float, digits: int = 2, kind: str = "f") -> tuple[str, str]:
    """Return two numbers as text, with as many more digits as it takes to tell them apart if they differ."""
    first, second = f"{x:.{digits}{kind}}", f"{y:.{digits}{kind}}"
    return (first, second) if first != second or x == y or digits > 16 else apart(x, y, digits + 1, kind)
