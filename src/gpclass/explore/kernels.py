"""The kernel that is chosen on the page: one of the named ones, or two of them added or multiplied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.kernels import kernel_names, named_kernel
from gpclass.kernels import move as at_theta
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


@dataclass(frozen=True, slots=True)
class Dial:
    """A hyperparameter: its name, and the range of its natural logarithm."""

    name: str
    low: float
    high: float


def build(choice: Choice, view: Array) -> Any:
    """Return the kernel of a choice; its scales and bounds are those of the middle of the view.

    They do not depend on the points, so that a point can be moved while everything else is held.

    Examples
    --------
    >>> import numpy as np
    >>> view = np.array([[0.0, 100.0]])
    >>> build(Choice("rbf"), view)
    1**2 * RBF(length_scale=15.7)
    >>> build(Choice("rbf", "times", "exp-sine-squared"), view)
    1**2 * RBF(length_scale=15.7) * ExpSineSquared(length_scale=1, periodicity=15.7)
    """
    for name in (choice.first, choice.second):
        if name not in kernel_names():
            raise ValueError(f"There is no kernel {name!r}: choose one of {', '.join(kernel_names())}.")
    centre, quarter = view.mean(axis=1), 0.25 * (view[:, 1] - view[:, 0])
    sides = [np.linspace(c - q, c + q, SIDE) for c, q in zip(centre, quarter, strict=True)]
    rows = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, len(view))
    first, second = named_kernel(choice.first, rows), named_kernel(choice.second, rows)
    if choice.operator == ALONE:
        return first
    # The variances of two factors cannot be told apart: a product has one of them.
    return first + second if choice.operator == "plus" else first * second.k2


def dials(kernel: Any, columns: tuple[str, ...]) -> list[Dial]:
    """Return the free hyperparameters of a kernel in the order of its theta.

    Examples
    --------
    >>> import numpy as np
    >>> [dial.name for dial in dials(build(Choice("rbf"), np.array([[0.0, 1.0], [0.0, 1.0]])), ("a", "b"))]
    ['variance', 'length scale of a', 'length scale of b']
    """
    names = short_names(hyperparameter_names(kernel))
    return [
        Dial(_plain(name, columns), *ends) for name, ends in zip(names, kernel.bounds.tolist(), strict=True)
    ]


def _plain(name: str, columns: tuple[str, ...]) -> str:
    for i, column in enumerate(columns):
        name = name.replace(f"[{i}]", f" of {column}")
    return name.replace("constant value", "variance")


def kernel_at(choice: Choice, view: Array, theta: Any) -> Any:
    """Return the kernel of a choice with its hyperparameters set to exp(theta)."""
    return at_theta(build(choice, view), np.asarray(theta, dtype=float))
