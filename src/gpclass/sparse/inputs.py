"""The choice of inducing inputs: rows where the residual variance is largest, or lowers the bound most."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.priors.basis import Basis, greedy
from gpclass.sparse.settings import Inducing

CANDIDATES = 5  # candidate rows of the greedy choice, as a multiple of the inducing inputs
LEAST_CANDIDATES = 2000  # minimum number of candidates


def n_candidates(n_inducing: int) -> int:
    """Return the number of candidate rows of the greedy choice."""
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
    """Return the inducing inputs and further ones, up to ``size``: rows where the residual variance matters most.

    A residual variance r_i lowers the bound by h_i r_i / 2 nats to first order, with h_i the ``precision`` of its site:
    little where the class is certain, for any inputs.
    """
    chosen, _ = greedy(basis.kernel, X, size - basis.size, rng, weight=precision, basis=basis)
    return np.vstack([basis.Z, X[chosen]])
