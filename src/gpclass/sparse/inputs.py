"""The choice of inducing inputs: rows at which the residual variance is largest, or costs the bound most."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.priors.basis import Basis, greedy
from gpclass.sparse.settings import Inducing

CANDIDATES = 5  # rows that the greedy choice looks at, as a multiple of the inducing inputs
LEAST_CANDIDATES = 2000  # and at least so many


def n_candidates(n_inducing: int) -> int:
    """Return how many rows the greedy choice looks at."""
    return max(CANDIDATES * n_inducing, LEAST_CANDIDATES)


def choose(settings: Inducing, kernel: Any, X: Array, most: int, rng: np.random.Generator) -> Array:
    """Return inducing inputs for this kernel: those given, or rows with the largest residual variance."""
    given = settings.given()
    if given is not None:
        return given
    pool = np.asarray(X[: n_candidates(most)], dtype=float)
    chosen, _ = greedy(kernel, pool, min(most, len(X)), rng, settings.tol if settings.n == "auto" else 0.0)
    return pool[chosen]


def grown(basis: Basis, X: Array, precision: Array, size: int, rng: np.random.Generator) -> Array:
    """Return the inducing inputs and further ones, up to ``size``: rows where the residual variance costs most.

    A residual variance r_i costs the bound h_i r_i / 2 nats to first order, with ``precision`` h_i of the row's site:
    little where the class is certain, whatever the inputs.
    """
    chosen, _ = greedy(basis.kernel, X, size - basis.size, rng, weight=precision, basis=basis)
    return np.vstack([basis.Z, X[chosen]])
