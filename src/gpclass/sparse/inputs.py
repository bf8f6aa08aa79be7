"""The choice of inducing inputs: centres of clusters, or rows with the largest residual variance."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.priors.basis import greedy
from gpclass.sparse.engine import Q
from gpclass.sparse.objective import PassObjective
from gpclass.sparse.settings import Inducing

CANDIDATES = 5  # rows that the greedy choice looks at, as a multiple of the inducing inputs
MOVE_STEPS = 20


def choose(settings: Inducing, kernel: Any, X: Array, most: int, rng: np.random.Generator) -> Array:
    """Return inducing inputs for this kernel from these rows."""
    given = settings.given()
    if given is not None:
        return given
    tol = settings.tol if settings.n == "auto" else 0.0
    pool = np.asarray(X[: max(CANDIDATES * most, 2000)], dtype=float)
    chosen, _ = greedy(kernel, pool, min(most, len(X)), rng, tol)
    if settings.choose == "greedy" or len(chosen) == len(pool):
        return pool[chosen]
    from sklearn.cluster import MiniBatchKMeans

    seed = int(rng.integers(2**31 - 1))
    clusters = MiniBatchKMeans(len(chosen), init=pool[chosen], n_init=1, random_state=seed)
    return np.ascontiguousarray(clusters.fit(X).cluster_centers_, dtype=float)


def move(objective: PassObjective, theta: Array, q: Q | None) -> tuple[Array, Q | None]:
    """Return inducing inputs moved uphill by L-BFGS-B at fixed hyperparameters, and q there."""
    from scipy.optimize import minimize

    shape, last = objective.Z.shape, [q]

    def minus_bound(z: Array) -> tuple[float, Array]:
        objective.Z = z.reshape(shape)
        fit = objective.fit_at(theta, last[0], gradient=True, inputs=True)
        last[0] = fit.next_q
        assert fit.inputs is not None
        return -fit.bound, -fit.inputs.ravel()

    options = {"maxiter": MOVE_STEPS}
    end = minimize(minus_bound, objective.Z.ravel(), jac=True, method="L-BFGS-B", options=options)
    return end.x.reshape(shape), last[0]
