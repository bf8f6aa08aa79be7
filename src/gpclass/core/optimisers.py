"""A quasi-Newton minimiser of a smooth function between bounds, for functions that are costly to evaluate.

It is BFGS on a box: variables that would cross a bound are fixed there, steps are projected, and no variable moves by
more than `RADIUS` in one step. The functions minimised here are negative log evidences of log hyperparameters, flat in
some regions and steep in others; an unlimited step of a quadratic model that was fitted in a flat region
ends in a corner of the box.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpclass.core.protocols import Array

Function = Callable[[Array], tuple[float, Array]]  # theta -> value, gradient; infinite values are rejected

TOL_NATS = 1e-9  # expected gain at which a search ends: as accurate as L-BFGS-B
GRADIENT_NATS = 9e-5  # largest element of the gradient at a minimum; scikit-learn tests for 1e-4
RADIUS = 2.0  # largest change of a variable in one step; a factor of 7.4 for a hyperparameter
ARMIJO = 1e-4  # fraction of the expected gain that a step must achieve (Nocedal & Wright, p. 33)
RISE = 0.5  # if even short steps raise the value by this fraction of the expected gain, the gradient is wrong
SHORTER = 0.1  # smallest factor by which a failed step is shortened
MAX_ITER = 200  # maximum number of iterations


Tol = float | Callable[[], float]  # a callable tolerance is evaluated before each step


class End(NamedTuple):
    """The result of a search: an error message or '', and the inverse Hessian."""

    message: str
    inverse: Array


def minimise(
    function: Function,
    start: Array,
    bounds: Array,
    inverse: Array | None = None,
    *,
    tol: Tol = TOL_NATS,
    max_iter: int = MAX_ITER,
) -> End:
    """Minimise a function.

    Parameters
    ----------
    function : callable
        Returns value and gradient. Where the value is infinite the step is shortened.
    start : array of shape (p,)
    bounds : array of shape (p, 2)
    inverse : array of shape (p, p), default=None
        The inverse Hessian, if it is known; the first step is then Newton's. A singular one confines the search to its
        range. Without it the first step is along the negative gradient, with a length of at most one.
    tol : float or callable
        The search ends when the expected gain of Newton's step is less than this.
    max_iter : int
        Maximum number of iterations. Reaching it is only an error with the default.

    Returns
    -------
    end : End

    Examples
    --------
    >>> import numpy as np
    >>> bowl = lambda x: (0.5 * float((x - 3) @ (x - 3)), x - 3)
    >>> minimise(bowl, np.zeros(2), np.array([[-9.0, 9.0], [-9.0, 9.0]])).message
    ''
    """
    x: Array = np.clip(start, *bounds.T)
    value, gradient = function(x)
    known = inherited = inverse is not None  # whether H contains curvature, and whether this is the caller's
    # Without a Hessian the first step has a length of at most one.
    H: Array = np.eye(len(x)) / max(1.0, float(np.linalg.norm(gradient))) if inverse is None else inverse
    evaluations, message, trusted = 1, "", RADIUS
    for _ in range(max_iter):
        enough = tol() if callable(tol) else tol
        direction = _direction(x, gradient, bounds, H)
        flat = np.abs(gradient[direction != 0.0]).max(initial=0.0) <= GRADIENT_NATS
        if flat or (known and -0.5 * float(gradient @ direction) <= enough):
            break
        new, new_value, new_gradient, tried, rise = _line_search(
            function, x, value, gradient, direction, bounds, trusted, enough
        )
        evaluations += tried
        if new is None:
            if rise < RISE:
                break
            if not known or np.isinf(rise):
                message = _unfinished(evaluations, gradient[direction != 0.0])
                break
            # The curvature was wrong: keep only the scale of H, with steps of at most one.
            known, inherited, H = False, False, H / max(1.0, float(np.abs(H @ gradient).max()))
            continue
        moved, bent = new - x, new_gradient - gradient
        if inherited and tried > 1:
            H = _shrunk(H, moved, bent)
        inherited = inherited and (tried > 1 or np.abs(direction).max() > trusted)  # until a full step
        H, known = _updated(H, moved, bent, known)
        # Trust region: the radius shrinks after a failed step and doubles after a successful one.
        trusted = min(RADIUS, 2.0 * (trusted if tried == 1 else float(np.abs(moved).max())))
        x, value, gradient = new, new_value, new_gradient
    else:
        if max_iter == MAX_ITER:
            message = _unfinished(evaluations, gradient[_direction(x, gradient, bounds, H) != 0.0])
    return End(message, H)


def _unfinished(evaluations: int, gradient: Array) -> str:
    return (
        f"Learning stopped after {evaluations} evaluations with a gradient of norm {np.linalg.norm(gradient):.3g} "
        "before it converged: scale the inputs, tighten the bounds or set n_restarts_optimizer."
    )


def _direction(x: Array, gradient: Array, bounds: Array, H: Array) -> Array:
    """Return Newton's direction over the variables that are not held at a bound, zero for the others.

    A variable at a bound is held if the gradient, or the step of the others (through H), would take it out. With h the
    variables held and f the others, the inverse of the Hessian of the latter is H_ff - H_fh H_hh⁻¹ H_hf.
    """
    low, high = x <= bounds[:, 0], x >= bounds[:, 1]
    held = (low & (gradient >= 0.0)) | (high & (gradient <= 0.0))
    while True:
        direction = np.zeros_like(x)
        free = ~held
        among: Array = H[np.ix_(free, free)]
        if held.any():
            across = H[np.ix_(free, held)]
            among = among - across @ np.linalg.lstsq(H[np.ix_(held, held)], across.T, rcond=1e-12)[0]
        direction[free] = -among @ gradient[free]
        leaving = (low & (direction < 0.0)) | (high & (direction > 0.0))
        if not leaving.any():
            return direction
        held |= leaving


def _line_search(
    function: Function,
    x: Array,
    value: float,
    gradient: Array,
    direction: Array,
    bounds: Array,
    radius: float,
    tol: float,
) -> tuple[Array | None, float, Array, int, float]:
    """Return the first point along the projected direction that gains enough, and the number of points tried.

    The point is None if the expected gain of the step is less than ``tol``. The last number is the rise of the value
    at the last point, relative to the expected fall; infinite if the value is infinite.
    """
    step, tried, rise = min(1.0, radius / max(float(np.abs(direction).max()), 1e-300)), 0, 0.0
    while True:
        new: Array = np.clip(x + step * direction, *bounds.T)
        slope = float(gradient @ (new - x))
        if tried and -slope <= tol:
            return None, value, gradient, tried, rise
        tried += 1
        new_value, new_gradient = function(new)
        if new_value <= value + ARMIJO * slope:
            return new, new_value, new_gradient, tried, rise
        # The next step ends at the minimum of the parabola through both values and the slope here. If the value
        # rises there too, the slope is wrong.
        bend = new_value - value - slope
        rise = (new_value - value) / max(-slope, 1e-300) if tried > 1 or not np.isfinite(bend) else 0.0
        step *= min(0.5, max(SHORTER, -0.5 * slope / bend)) if np.isfinite(bend) else SHORTER


def _shrunk(H: Array, moved: Array, bent: Array) -> Array:
    """Return an inverse Hessian whose step was too long, scaled by the observed curvature (Oren & Luenberger 1974).

    A Hessian from fewer rows is too small in every direction, not only along the step.
    """
    slope = float(moved @ bent)
    if not slope > 0.0:
        return H
    return H * min(1.0, slope / float(bent @ H @ bent))


def _updated(H: Array, moved: Array, bent: Array, known: bool) -> tuple[Array, bool]:
    """Return the inverse Hessian after a BFGS update, and whether it contains any curvature.

    If the function is concave along the step, H is doubled instead, for a longer next step.
    """
    slope = float(moved @ bent)
    if not slope > 1e-10 * float(np.linalg.norm(moved) * np.linalg.norm(bent)):
        return 2.0 * H, known
    if not known:
        H = H * (slope / float(bent @ H @ bent))
    Hy = H @ bent  # (I - s yᵀ / sᵀy) H (I - y sᵀ / sᵀy) + s sᵀ / sᵀy, multiplied out
    cross = np.outer(Hy / slope, moved)
    return H - cross - cross.T + np.outer((1.0 + float(bent @ Hy) / slope) / slope * moved, moved), True
