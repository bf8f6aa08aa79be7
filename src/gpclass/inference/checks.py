"""What every method checks before it starts."""

from __future__ import annotations

from typing import Any


def check_settings(settings: Any, *, tol: float, max_iter: int) -> None:
    """Raise unless the tolerance is positive and at least one iteration is allowed."""
    if not tol > 0 or not max_iter >= 1:
        raise ValueError(f"{settings!r} is not possible: tol must be positive and max_iter at least 1.")


def require(likelihood: Any, capability: Any, method: str, functions: str) -> None:
    """Raise unless the likelihood has what the method needs of it."""
    if not isinstance(likelihood, capability):
        raise TypeError(f"{method} needs a likelihood with {functions}, {likelihood!r} has not.")
