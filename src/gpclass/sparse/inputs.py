"""The choice of inducing inputs: centres of clusters, or rows with the largest residual variance; and adding more."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.kernels import diag, matrix
from gpclass.priors.basis import Basis, greedy
from gpclass.sparse.settings import Inducing

CANDIDATES = 5  # rows that the greedy choice looks at, as a multiple of the inducing inputs
LEAST_CANDIDATES = 2000  # and at least so many
PROBE = 0.1  # deviations of a column that rows are moved by, to measure lengths
IGNORED = 100.0  # deviations, the length of a column that the kernel ignores
PROBES = 50  # rows at which the lengths of the columns are measured


def n_candidates(n_inducing: int) -> int:
    """Return how many rows the greedy choice looks at."""
    return max(CANDIDATES * n_inducing, LEAST_CANDIDATES)


def choose(settings: Inducing, kernel: Any, X: Array, most: int, rng: np.random.Generator) -> Array:
    """Return inducing inputs for this kernel from these rows."""
    given = settings.given()
    if given is not None:
        return given
    tol = settings.tol if settings.n == "auto" else 0.0
    pool = np.asarray(X[: n_candidates(most)], dtype=float)
    chosen, _ = greedy(kernel, pool, min(most, len(X)), rng, tol)
    if settings.choose == "greedy" or len(chosen) == len(pool):
        return pool[chosen]
    from sklearn.cluster import MiniBatchKMeans

    seed, scale = int(rng.integers(np.iinfo(np.int32).max)), lengths(kernel, pool)
    clusters = MiniBatchKMeans(
        len(chosen), init=pool[chosen] / scale, n_init=1, random_state=seed, batch_size=4096, max_iter=20
    )
    return np.ascontiguousarray(clusters.fit(X / scale).cluster_centers_ * scale, dtype=float)


def grown(basis: Basis, X: Array, precision: Array, size: int, rng: np.random.Generator) -> Array:
    """Return the inducing inputs and further ones, up to ``size``: rows where the residual variance costs most.

    A residual variance r_i costs the bound h_i r_i / 2 nats to first order, with ``precision`` h_i of the row's site:
    little where the class is certain, whatever the inputs.
    """
    chosen, _ = greedy(basis.kernel, X, size - basis.size, rng, weight=precision, basis=basis)
    return np.vstack([basis.Z, X[chosen]])


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
    for d, step in enumerate(PROBE * deviation):
        moved = X.copy()
        moved[:, d] += step
        cross = matrix(kernel, X, moved).diagonal()
        change = float(np.mean((variance + diag(kernel, moved) - 2.0 * cross) / variance))
        out[d] = step / np.sqrt(max(change, 1e-12))
    return np.minimum(out, IGNORED * deviation)
