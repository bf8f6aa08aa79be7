"""Minimisers of a smooth function between bounds: from afar, and from nearby with the curvature known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpclass.core.protocols import Array

Function = Callable[[Array], tuple[float, Array]]  # theta -> value, gradient

GTOL, FTOL = 1e-5, 2.2e-9  # SciPy's own for L-BFGS-B: on the gradient, and on the gain relative to the value


def from_afar(function: Function, start: Array, bounds: Array, ftol: float = FTOL) -> tuple[str, Array]:
    """Minimise by L-BFGS-B; return what went wrong, if anything, and the inverse Hessian at the end.

    Between bounds L-BFGS-B first tries the whole gradient as a step: for an evidence, a corner of the box.
    So the function is taken in units that make that step at most one long.
    """
    from scipy.optimize import minimize

    first = function(start)
    unit = max(1.0, float(np.linalg.norm(first[1])))

    def scaled(theta: Array) -> tuple[float, Array]:
        value, gradient = first if np.array_equal(theta, start) else function(theta)
        return value / unit, gradient / unit

    options = {"gtol": GTOL / unit, "ftol": ftol * min(1.0, max(1.0, abs(first[0])) / unit)}
    end = minimize(scaled, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    inverse = np.asarray(end.hess_inv.todense(), dtype=float) / unit
    if end.success:
        return "", inverse
    norm = unit * float(np.linalg.norm(end.jac))
    return (
        f"L-BFGS-B stopped after {end.nfev} evaluations with a gradient of norm {norm:.3g} before it "
        f"converged ({end.message}): scale the inputs, tighten the bounds or set n_restarts_optimizer."
    ), inverse


def from_nearby(
    function: Function,
    start: Array,
    bounds: Array,
    inverse: Array,
    *,
    ftol: float = FTOL,
    max_iter: int = 50,
    longest: float = 2.0,
) -> tuple[str, Array]:
    """Minimise by BFGS from a known inverse Hessian, on the box by projection; returns as `from_afar`.

    With the right curvature every step is Newton's, where L-BFGS-B would have to learn it first. No step is
    longer than ``longest``.
    """
    H: Array = 0.5 * (inverse + inverse.T)
    x: Array = np.clip(start, *bounds.T)
    value, gradient = function(x)
    for _ in range(max_iter):
        held = ((x <= bounds[:, 0]) & (gradient > 0.0)) | ((x >= bounds[:, 1]) & (gradient < 0.0))
        free = ~held
        if not np.abs(gradient[free]).max(initial=0.0) > GTOL:
            return "", H
        direction = np.zeros_like(x)
        direction[free] = -H[np.ix_(free, free)] @ gradient[free]
        if -0.5 * float(gradient @ direction) <= ftol * max(abs(value), 1.0):  # all that is to be gained
            return "", H
        step = min(1.0, longest / max(float(np.linalg.norm(direction)), 1e-300))
        for _ in range(25):
            new: Array = np.clip(x + step * direction, *bounds.T)
            new_value, new_gradient = function(new)
            slope = float(gradient @ (new - x))
            if new_value <= value + 1e-4 * slope:
                break
            # The minimum of the parabola through both values and the slope here.
            step *= min(0.5, max(0.1, -0.5 * slope / max(new_value - value - slope, 1e-300)))
        else:
            return from_afar(function, x, bounds, ftol)  # the curvature misleads: start afresh
        moved, bent, gain = new - x, new_gradient - gradient, value - new_value
        H = _updated(H, moved, bent)
        x, value, gradient = np.asarray(new), new_value, new_gradient
        if gain <= ftol * max(abs(value), 1.0):
            return "", H
    return from_afar(function, x, bounds, ftol) if max_iter >= 50 else ("", H)


def _updated(H: Array, moved: Array, bent: Array) -> Array:
    """Return the inverse Hessian of BFGS after one step."""
    slope = float(moved @ bent)
    if not slope > 1e-10 * float(np.linalg.norm(moved) * np.linalg.norm(bent)):
        return H
    V = np.eye(len(H)) - np.outer(moved, bent) / slope
    out: Array = V @ H @ V.T + np.outer(moved, moved) / slope
    return out
