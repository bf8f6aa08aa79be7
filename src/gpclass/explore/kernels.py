"""The kernel that is chosen on the page: one of the named kernels, or two of them added or multiplied."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gpclass.core.protocols import Array
from gpclass.kernels import move, named_kernel
from gpclass.plotting.base import hyperparameter_names, short_names

ALONE = "alone"
OPERATORS = (ALONE, "plus", "times")
SIDE = 12  # points along each side of the view, from which kernels take their scales


@dataclass(frozen=True, slots=True)
class Choice:
    """The names of one or two kernels, and how they are combined."""

    first: str = "rbf"
    operator: str = ALONE
    second: str = "linear"


class Dial(NamedTuple):
    """A hyperparameter: its name, and the range of its natural logarithm."""

    name: str
    low: float
    high: float


def build(choice: Choice, view: Array) -> Any:
    """Return the kernel of a choice, with the scales and bounds of the middle of the view.

    They do not depend on the points, so that a point can be moved while everything else is held.
    """
    sides = np.linspace(0.75 * view[:, 0] + 0.25 * view[:, 1], 0.25 * view[:, 0] + 0.75 * view[:, 1], SIDE)
    rows = np.stack(np.meshgrid(*sides.T), axis=-1).reshape(-1, len(view))
    first = named_kernel(choice.first, rows)
    if choice.operator == ALONE:
        return first
    second = named_kernel(choice.second, rows)
    # The variances of two factors are not identifiable: a product has one of them.
    return first + second if choice.operator == "plus" else first * second.k2


def kernel_at(choice: Choice, view: Array, theta: Any) -> Any:
    """Return the kernel of a choice with its hyperparameters set to exp(theta)."""
    return move(build(choice, view), np.asarray(theta, dtype=float))


def dials(choice: Choice, view: Array, columns: tuple[str, ...]) -> list[Dial]:
    """Return the free hyperparameters of a choice in the order of theta."""
    return _dials(choice, tuple(map(tuple, view.tolist())), columns)


@lru_cache  # every slider asks
def _dials(choice: Choice, view: Any, columns: tuple[str, ...]) -> list[Dial]:
    kernel = build(choice, np.array(view))
    names = short_names(hyperparameter_names(kernel))
    for i, column in enumerate(columns):
        names = [name.replace(f"[{i}]", f" of {column}") for name in names]
    names = [name.replace("constant value", "variance") for name in names]
    return [Dial(name, *ends) for name, ends in zip(names, kernel.bounds.tolist(), strict=True)]
