"""Checks of user settings: numbers, seeds and optional packages. Every error is one sentence."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def check_option(name: str, value: Any, fine: bool, expected: str) -> None:
    """Raise an error that names the parameter, its value and what was expected, unless ``fine``."""
    if not fine:
        found = " ".join(f"{value!r:.200}".split())  # the text of an array may have several lines
        raise ValueError(f"{name}={found} is not valid: expected {expected}.")


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer and not a bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_integers(least: int = 1, /, **values: Any) -> None:
    """Raise unless all are integers and large enough."""
    for name, value in values.items():
        fine = is_integer(value) and value >= least
        check_option(name, value, fine, f"an integer of at least {least}")


def check_numbers(interval: str, /, **values: Any) -> None:
    """Raise unless all are numbers, and not bools, in an interval such as ``"(0, 1]"``."""
    low, high = map(float, interval[1:-1].split(","))
    for name, value in values.items():
        number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        ends = [end for end, closed in ((low, interval[0] == "["), (high, interval[-1] == "]")) if closed]
        fine = number and (low < value < high or value in ends)
        check_option(name, value, fine, f"a number in {interval}")


def seed_of(random_state: Any) -> int:
    """Return a seed drawn from the ``random_state`` of a user."""
    fine = isinstance(random_state, np.random.RandomState | None) or random_state is np.random
    fine = fine or (is_integer(random_state) and 0 <= random_state < 2**32)
    check_option("random_state", random_state, fine, "None, an integer from 0 to 2**32 - 1, or a RandomState")
    return int(check_random_state(random_state).randint(2**31 - 1))


def optional(module: str, use: str, extra: str) -> Any:
    """Return a module of an optional package, or raise an error that says what needs it and how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != package:
            raise
        package = package.replace("_", "-")
        more = f" (the extra {extra!r} of gpclass has it)" if extra else ""
        raise ImportError(f"{use} needs {package}: pip install {package}{more}.", name=package) from None


def apart(x: float, y: float, digits: int = 2, kind: str = "f") -> tuple[str, str]:
    """Return two numbers as text, with enough digits to distinguish them if they differ."""
    first, second = f"{x:.{digits}{kind}}", f"{y:.{digits}{kind}}"
    return (first, second) if first != second or x == y or digits > 16 else apart(x, y, digits + 1, kind)
