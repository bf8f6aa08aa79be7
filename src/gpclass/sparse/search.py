"""The search for hyperparameters and places of inducing inputs that maximise the bound."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from gpclass.core.optimisers import RADIUS, Inverse, Limited, minimise
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
    max_iter: int = 100,
    seen: Callable[[Point, bool], None] | None = None,
) -> float:
    """Maximise the bound over hyperparameters and, if they move, inducing inputs; return what is still promised.

    Inducing inputs are measured in the lengths of their columns. ``inverse`` is the inverse Hessian of minus the bound
    with respect to the hyperparameters. ``tol`` returns how many nats the next step must gain. ``seen`` is
    called with every evaluation, and whether it is the best. Promised is what Newton's next step would gain, in nats.
    """
    k, shape = len(theta), objective.Z.shape
    scale = lengths(objective.kernel_at(theta), objective.Z)
    v = np.concatenate([theta, (objective.Z / scale).ravel()]) if moves else theta
    best: list[tuple[Point, Array]] = []
    last: list[tuple[Array, float, Array]] = []
    H: Inverse = inverse
    reached, poor = -np.inf, 0

    def minus_bound(v: Array) -> tuple[float, Array]:
        if last and np.array_equal(last[0][0], v):
            return last[0][1:]
        if moves:
            objective.Z = np.ascontiguousarray(v[k:].reshape(shape) * scale)
        fit = objective.fit_at(v[:k], best[0][0].fit if best else start, gradient=True, inputs=moves)
        slope, value = np.asarray(objective.slope(fit)), fit.bound
        if log_prior is not None:
            more, bend = log_prior(v[:k])
            value, slope = value + more, slope + bend
        whole = np.concatenate([slope, (np.asarray(fit.inputs) * scale).ravel()]) if moves else slope
        point = Point(v[:k].copy(), fit, value, slope, _block(H, k))
        better = not best or value > best[0][0].value
        if better:
            best[:] = [(point, whole)]
        if seen is not None:
            seen(point, better)
        last[:] = [(v.copy(), -value, -whole)]
        return last[0][1:]

    def after(new: Inverse) -> None:
        nonlocal H, reached, poor
        H, before, reached = new, reached, best[0][0].fit.bound  # a gain in the log prior is none in log loss
        poor = poor + 1 if reached - before < tol() else 0
        if poor > int(moves):  # the first step of places is short, and finds out their curvature
            raise _Enough

    slope = minus_bound(v)[1]
    if moves:
        H = Limited(inverse, FIRST_STEP / max(float(np.abs(slope[k:]).max()), 1e-300))
    reached = best[0][0].fit.bound
    box = np.vstack([bounds, np.tile([-np.inf, np.inf], (len(v) - k, 1))])
    radius = LONGEST_STEP if moves else RADIUS
    with suppress(_Enough):
        least = tol() if not moves else DOUBT * tol()
        minimise(minus_bound, v, box, H, tol=least, max_iter=max_iter, radius=radius, after=after)
    end, slope = best[0]
    step = H.times(slope) if isinstance(H, Limited) else H @ slope
    inside = (end.theta > bounds[:, 0]) | (slope[:k] > 0.0)
    inside &= (end.theta < bounds[:, 1]) | (slope[:k] < 0.0)
    step[:k] *= inside
    return max(0.5 * float(slope @ step), 0.0)


def _block(H: Inverse, k: int) -> Array:
    """Return the inverse Hessian with respect to the first k variables."""
    if not isinstance(H, Limited):
        return H
    n = k if not H.changes else len(H.changes[0][0])
    columns = [H.times(row) for row in np.eye(k, n)] if H.changes else []
    out: Array = np.array([column[:k] for column in columns]) if columns else H.block
    return 0.5 * (out + out.T)
