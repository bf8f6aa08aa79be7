"""Leave-one-out predictions of the data points of a problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.core.linalg import row_tiles
from gpclass.core.protocols import Array
from gpclass.inference import VI, Dirichlet
from gpclass.inference.variational import response
from gpclass.learning.problem import Problem
from gpclass.likelihoods.largest import normal_points
from gpclass.priors.base import Prior

POINTS = 61  # a prime number; the softmax is averaged over twice as many points


def left_out(problem: Problem, result: Any) -> tuple[Array, Array]:
    """Return mean and (co)variance of the latent values of each data point from the other data points."""
    q = result.conditioned
    softmax = isinstance(problem.inference, VI) and problem.y.ndim == 2
    moved = [response(problem.y, q.alpha, result.sites.tau)] if softmax else []
    mean, cov = q.left_out(problem.copies, *moved)
    return (mean if result.offset is None else mean + result.offset), cov


def dirichlet_scores(problem: Problem, prior: Prior, eps: float) -> Array:
    """Return the log probability of the labels of each row, from the other rows, by Dirichlet classification.

    E[softmax] is an average over lattice points, the same for every eps, which is accurate enough for a comparison.
    """
    mean, cov = left_out(problem, Dirichlet(eps)(prior, problem.likelihood, problem.y))
    std = np.sqrt(np.einsum("icc->ic", cov))
    z = normal_points(POINTS, mean.shape[1])
    out = np.empty(len(mean))
    for rows in row_tiles(len(mean), z.size):
        f = mean[rows, :, None] + std[rows, :, None] * z
        f -= f.max(axis=1, keepdims=True)
        np.exp(f, out=f)
        p = (f / f.sum(axis=1, keepdims=True)).mean(axis=2)
        out[rows] = (problem.y[rows] * np.log(np.maximum(p, 1e-300))).sum(axis=1)
    return out
