"""The search for hyperparameters and places of inducing inputs that maximise the bound."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.optimisers import MAX_ITER, RADIUS, Inverse, Limited, minimise
from gpclass.core.protocols import Array
from gpclass.sparse.engine import Fit, Q
from gpclass.sparse.inputs import lengths
from gpclass.sparse.objective import PassObjective

FIRST_STEP = 0.1  # most that an inducing input moves at first, in the lengths of the columns
LONGEST_STEP = 0.5  # and later; log hyperparameters that are learned with them likewise

DOUBT = 0.1  # of the gain that a step needs, below which the promise of an unknown curvature ends the search


class _Enough(Exception):
    """The last step gained less than it must."""


Prior = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """The bound at some hyperparameters and inducing inputs; ``value`` has the log prior of the former in it."""

    theta: Array
    fit: Fit
    value: float
    slope: Array  # with respect to the hyperparameters
    inverse: Array  # inverse Hessian with respect to them, as far as it is known


@dataclass(slots=True, eq=False)
class _MinusBound:
    """Minus the bound as a function of theta and, if they move, inducing inputs in units of ``scale``."""

    objective: PassObjective
    start: Q | Fit | None
    n_theta: int
    scale: Array | None  # None if inducing inputs do not move
    log_prior: Prior | None
    seen: Callable[[Point, bool], None] | None
    H: Inverse
    best: Any = None  # the best point
    slope: Any = None  # gradient there
    last: Any = None

    def __call__(self, v: Array) -> tuple[float, Array]:
        if self.last is not None and np.array_equal(self.last[0], v):
            return self.last[1], self.last[2]
        theta, scale, objective = v[: self.n_theta].copy(), self.scale, self.objective
        if scale is not None:
            objective.Z = np.ascontiguousarray(v[len(theta) :].reshape(objective.Z.shape) * scale)
        start = self.start if self.best is None else self.best.fit
        fit = objective.fit_at(theta, start, gradient=True, inputs=scale is not None)
        slope, value = np.asarray(objective.slope(fit)), fit.bound
        if self.log_prior is not None:
            more, bend = self.log_prior(theta)
            value, slope = value + more, slope + bend
        point = Point(theta, fit, value, slope, _block(self.H, len(theta)))
        whole = slope if scale is None else np.concatenate([slope, (np.asarray(fit.inputs) * scale).ravel()])
        better = self.best is None or value > self.best.value
        if better:
            self.best, self.slope = point, whole
        if self.seen is not None:
            self.seen(point, better)
        self.last = v.copy(), -value, -whole
        return -value, -whole

    def promised(self, bounds: Array) -> float:
        """Return the nats that Newton's step from the best point would gain, between the bounds of theta."""
        k, theta, slope = self.n_theta, self.best.theta, self.slope
        step = self.H.times(slope) if isinstance(self.H, Limited) else self.H @ slope
        held = (theta <= bounds[:, 0]) & (slope[:k] <= 0.0) | (theta >= bounds[:, 1]) & (slope[:k] >= 0.0)
        step[:k][held] = 0.0
        return max(0.5 * float(slope @ step), 0.0)


def climb(
    objective: PassObjective,
    theta: Array,
    start: Q | Fit | None,
    bounds: Array,
    inverse: Array,
    tol: Callable[[], float],
    *,
    moves: bool = True,
    log_prior: Prior | None = None,
    max_iter: int = MAX_ITER,
    seen: Callable[[Point, bool], None] | None = None,
) -> float:
    """Maximise the bound over hyperparameters and, if they move, inducing inputs; return what is still promised.

    Inducing inputs are measured in the lengths of their columns. ``inverse`` is the inverse Hessian of minus the bound
    with respect to the hyperparameters. ``tol`` returns how many nats the next step must gain. ``seen`` is called with
    every evaluation, and whether it is the best. Promised is what Newton's next step would gain, in nats.
    """
    k, scale = len(theta), lengths(objective.kernel_at(theta), objective.Z) if moves else None
    function = _MinusBound(objective, start, k, scale, log_prior, seen, inverse)
    v = theta if scale is None else np.concatenate([theta, (objective.Z / scale).ravel()])
    slope, poor = function(v)[1], 0
    if moves:
        function.H = Limited(inverse, FIRST_STEP / max(float(np.abs(slope[k:]).max()), 1e-300))
    reached = function.best.fit.bound

    def after(new: Inverse) -> None:
        nonlocal reached, poor
        function.H, before = new, reached
        reached = function.best.fit.bound  # a gain in the log prior is none in log loss
        poor = poor + 1 if reached - before < tol() else 0
        if poor > int(moves):  # the first step of places is short, and finds out their curvature
            raise _Enough

    box = np.vstack([bounds, np.tile([-np.inf, np.inf], (len(v) - k, 1))])
    least, radius = (DOUBT * tol(), LONGEST_STEP) if moves else (tol(), RADIUS)
    with suppress(_Enough):
        minimise(function, v, box, function.H, tol=least, max_iter=max_iter, radius=radius, after=after)
    return function.promised(bounds)


def _block(H: Inverse, k: int) -> Array:
    """Return the inverse Hessian with respect to the first k variables."""
    if not isinstance(H, Limited):
        return H
    n = k if not H.changes else len(H.changes[0][0])
    columns = [H.times(row) for row in np.eye(k, n)] if H.changes else []
    out: Array = np.array([column[:k] for column in columns]) if columns else H.block
    return 0.5 * (out + out.T)
