"""The choice of inducing inputs: centres of clusters, or rows with the largest residual variance; and moving them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.optimisers import Limited, minimise
from gpclass.core.protocols import Array
from gpclass.kernels import diag, matrix
from gpclass.priors.basis import greedy
from gpclass.sparse.engine import Fit, Q
from gpclass.sparse.objective import PassObjective
from gpclass.sparse.settings import Inducing

CANDIDATES = 5  # rows that the greedy choice looks at, as a multiple of the inducing inputs
PROBES = 50  # rows at which the lengths of the columns are measured
FIRST_STEP = 0.1  # most that an inducing input moves at first, in the lengths of the columns
LONGEST_STEP = 0.5  # and later

Prior = Callable[[Array], tuple[float, Array]]


def choose(
    settings: Inducing, kernel: Any, X: Array, most: int, rng: np.random.Generator, tol: float | None = None
) -> Array:
    """Return inducing inputs for this kernel from these rows; ``tol`` replaces that of the settings."""
    given = settings.given()
    if given is not None:
        return given
    tol = (settings.tol if tol is None else tol) if settings.n == "auto" else 0.0
    pool = np.asarray(X[: max(CANDIDATES * most, 2000)], dtype=float)
    chosen, _ = greedy(kernel, pool, min(most, len(X)), rng, tol)
    if settings.choose == "greedy" or len(chosen) == len(pool):
        return pool[chosen]
    from sklearn.cluster import MiniBatchKMeans

    seed, scale = int(rng.integers(2**31 - 1)), lengths(kernel, pool)
    clusters = MiniBatchKMeans(
        len(chosen), init=pool[chosen] / scale, n_init=1, random_state=seed, batch_size=4096, max_iter=20
    )
    return np.ascontiguousarray(clusters.fit(X / scale).cluster_centers_ * scale, dtype=float)


def lengths(kernel: Any, X: Array) -> Array:
    """Return how far a row has to move along each column to change f by one prior standard deviation.

    It is measured at a few rows, from moves of a tenth of the deviation of a column: for kernels with length scales it
    gives these. Columns that the kernel ignores have a hundred deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> lengths(9.0 * RBF([2.0, 5.0]), X).round(1)
    array([2., 5.])
    """
    X = np.asarray(X[:PROBES], dtype=float)
    variance = np.maximum(diag(kernel, X), 1e-300)
    deviation = X.std(axis=0)
    deviation = np.where(deviation > 0.0, deviation, 1.0)
    out = np.empty(X.shape[1])
    for d, step in enumerate(0.1 * deviation):
        moved = X.copy()
        moved[:, d] += step
        cross = matrix(kernel, X, moved).diagonal()
        change = float(np.mean((variance + diag(kernel, moved) - 2.0 * cross) / variance))
        out[d] = step / np.sqrt(max(change, 1e-12))
    return np.minimum(out, 100.0 * deviation)


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """Hyperparameters and inducing inputs after a search: the best fit, every evaluation, and the curvature."""

    theta: Array
    fit: Fit
    value: float
    records: list[tuple[Array, float, float]]  # theta, bound, norm of the gradient with respect to theta
    inverse: Limited
    scale: Array
    interrupted: bool


def move(
    objective: PassObjective,
    theta: Array,
    start: Q | Fit | None,
    bounds: Array,
    inverse: Array | Limited,
    *,
    scale: Array | None = None,
    log_prior: Prior | None = None,
    tol: float = 1e-2,
    max_iter: int = 100,
    after: Callable[[Array, Fit, Limited], None] | None = None,
) -> Moved:
    """Maximise the bound over hyperparameters and inducing inputs together.

    Inducing inputs are measured in the lengths of their columns, or in ``scale``. ``inverse`` is the inverse Hessian of
    minus the bound with respect to the hyperparameters, or that of an earlier search on other rows. ``after`` is called
    after every step with theta, the fit and the curvature, from which a search that was cut off can go on.
    """
    k, shape = len(theta), objective.Z.shape
    scale = lengths(objective.kernel_at(theta), objective.Z) if scale is None else scale
    best: list[tuple[float, Array, Fit]] = []
    last: list[tuple[Array, float, Array]] = []
    records: list[tuple[Array, float, float]] = []

    def minus_bound(v: Array) -> tuple[float, Array]:
        if last and np.array_equal(last[0][0], v):
            return last[0][1:]
        objective.Z = np.ascontiguousarray(v[k:].reshape(shape) * scale)
        fit = objective.fit_at(v[:k], best[0][2] if best else start, gradient=True, inputs=True)
        slope, value = np.asarray(objective.slope(fit)), fit.bound
        if log_prior is not None:
            more, bend = log_prior(v[:k])
            value, slope = value + more, slope + bend
        records.append((v[:k].copy(), fit.bound, float(np.linalg.norm(slope))))
        if not best or value > best[0][0]:
            best[:] = [(value, v[:k].copy(), fit)]
        if objective.watch is not None:
            objective.watch(fit)
        last[:] = [(v.copy(), -value, -np.concatenate([slope, (np.asarray(fit.inputs) * scale).ravel()]))]
        return last[0][1:]

    v, interrupted = np.concatenate([theta, (objective.Z / scale).ravel()]), False
    H: Any = inverse
    if not isinstance(H, Limited):
        slope = minus_bound(v)[1]
        H = Limited(H, FIRST_STEP / max(float(np.abs(slope[k:]).max()), 1e-300))

    def told(H: Any) -> None:
        if after is not None:
            after(best[0][1], best[0][2], H)

    box = np.vstack([bounds, np.tile([-np.inf, np.inf], (len(v) - k, 1))])
    try:
        _, H = minimise(minus_bound, v, box, H, tol=tol, max_iter=max_iter, radius=LONGEST_STEP, after=told)
    except KeyboardInterrupt:
        if not best:
            raise
        interrupted = True
    value, theta, fit = best[0]
    return Moved(theta, fit, value, records, H, scale, interrupted)
