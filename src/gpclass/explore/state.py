"""Everything that the page shows follows from one record, and each action returns another one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpclass.core.protocols import Array
from gpclass.explore import points as edit
from gpclass.explore.kernels import Choice, build
from gpclass.explore.points import Points
from gpclass.learning.prediction import ROUTES
from gpclass.parameters import INFERENCES, LIKELIHOODS

TITLES = {
    "laplace": "Laplace", "ep": "EP", "vi": "VI", "mcmc": "MCMC", "dirichlet": "Dirichlet", "rejection": "Rejection",
}  # fmt: skip
NEAR = 0.025  # widths of the view within which a click means the point that is there


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The points, the model, and what is marked on the canvas.

    Parameters
    ----------
    points : Points
    choice : Choice
        Names of the kernel.
    theta : tuple of float
        Natural logarithms of its hyperparameters.
    likelihood, method, integration : str
        As for `GaussianProcessClassifier`.
    other : str
        The method to compare with; empty for none.
    drawn : int
        The class of points that are added.
    cursor : tuple of float
        Where the keyboard adds a point.
    selected : int or None
        The point that was clicked last.
    costly, cost : int, float
        An error on this class costs so many times as much as on the others.
    reject : float or None
        What it costs to leave a case undecided.
    """

    points: Points
    choice: Choice = Choice()  # noqa: RUF009
    theta: tuple[float, ...] = ()
    likelihood: str = "probit"
    method: str = "ep"
    integration: str = "exact"
    other: str = ""
    drawn: int = 1
    cursor: tuple[float, ...] = ()
    selected: int | None = None
    costly: int = 1
    cost: float = 1.0
    reject: float | None = None

    def __post_init__(self) -> None:
        if not self.theta:  # those that the kernel starts with
            object.__setattr__(self, "theta", tuple(build(self.choice, self.points.view).theta.tolist()))
        if not self.cursor:
            object.__setattr__(self, "cursor", tuple(self.points.view.mean(axis=1).tolist()))

    @property
    def n_classes(self) -> int:
        """How many classes there are, with or without points."""
        return len(self.points.labels)

    @property
    def cost_matrix(self) -> Array | None:
        """The cost of each decision for each true class; None if all errors are equally bad."""
        if self.cost == 1.0:
            return None
        costs = 1.0 - np.eye(self.n_classes)
        costs[self.costly] *= self.cost
        return costs


def title(method: str) -> str:
    """Return the name of a method as it is written."""
    return TITLES.get(method, method)


# ------------------------------------------------------------------------------------ points


def click(state: State, x: ArrayLike, tolerance: float = NEAR) -> State:
    """Select the point that was clicked, or add one of the class that is drawn.

    Examples
    --------
    >>> state = State(edit.make_points([[0.0], [10.0]], [0, 1]))
    >>> click(state, [5.0]).points.X.ravel(), click(state, [10.1]).selected
    (array([ 0., 10.,  5.]), 1)
    """
    i, distance = edit.nearest(state.points, x)
    if i is not None and distance <= tolerance:
        return replace(state, selected=i, cursor=tuple(state.points.X[i].tolist()))
    return add_point(state, x, state.drawn)


def add_point(state: State, x: ArrayLike, code: int) -> State:
    """Add a point and select it."""
    points = edit.add(state.points, x, code)
    return replace(state, points=points, selected=len(points) - 1, cursor=tuple(points.X[-1].tolist()))


def move_point(state: State, i: int, x: ArrayLike) -> State:
    """Move a point and select it; one that is gone in the meantime is not moved."""
    if not 0 <= i < len(state.points):
        return state
    points = edit.move(state.points, i, x)
    return replace(state, points=points, selected=i, cursor=tuple(points.X[i].tolist()))


def delete_point(state: State) -> State:
    """Delete the selected point, or the one next to the cursor."""
    i = state.selected
    if i is None or i >= len(state.points):
        i, _ = edit.nearest(state.points, state.cursor)
    return state if i is None else replace(state, points=edit.delete(state.points, i), selected=None)


def clear_points(state: State) -> State:
    """Delete all points."""
    return replace(state, points=edit.clear(state.points), selected=None)


def set_classes(state: State, n_classes: int) -> State:
    """Have another number of classes."""
    points = edit.with_classes(state.points, n_classes)
    last = n_classes - 1
    costly, drawn = min(state.costly, last), min(state.drawn, last)
    return replace(state, points=points, drawn=drawn, selected=None, costly=costly)


def select_class(state: State, code: int) -> State:
    """Draw points of this class from now on."""
    return replace(state, drawn=code) if 0 <= code < state.n_classes else state


# ------------------------------------------------------------------------------------- model


def set_kernel(state: State, **names: str) -> State:
    """Choose another kernel, with the hyperparameters that it starts with."""
    return replace(state, choice=replace(state.choice, **names), theta=())


def set_theta(state: State, theta: Any) -> State:
    """Set all hyperparameters, within their bounds."""
    bounds = build(state.choice, state.points.view).bounds
    values = np.asarray(theta, dtype=float)
    if values.shape != (len(bounds),) or not np.isfinite(values).all():
        raise ValueError(f"theta has shape {values.shape}, expected {len(bounds)} finite numbers.")
    return replace(state, theta=tuple(np.clip(values, *bounds.T).tolist()))


def set_model(state: State, **names: Any) -> State:
    """Choose likelihood, method, integration, the method to compare with, costs or the reject option."""
    known = {
        "likelihood": LIKELIHOODS,
        "method": INFERENCES,
        "integration": ROUTES,
        "other": ("", *INFERENCES),
    }
    for name, value in names.items():
        if name in known and value not in known[name]:
            raise ValueError(
                f"{name}={value!r} is not known, expected one of {', '.join(map(repr, known[name]))}."
            )
    return replace(state, **names)
