"""The curvature of the log evidence, and the integral over the hyperparameters by Laplace's method.

A = -∂² log p(y|theta) / ∂theta² is measured by differences of the gradient at fixed sites of the approximation:
one factorisation for each direction. With theta = mu + R z and z ~ N(0, I) in the prior, the integral needs
½ log|I + Rᵀ A R|, and the search the inverse of A + (R Rᵀ)⁻¹.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.core.hyperpriors import Hyperprior
from gpclass.core.protocols import Array
from gpclass.learning.problem import Problem, SiteObjective

DIRECTIONS = 64  # directions in which curvature is measured; random ones for more hyperparameters than this
STEP = 0.1  # step of theta in differences of gradients: 10 % of a hyperparameter
NEGLIGIBLE = 1e-3  # fraction of the largest eigenvalue below which one-sided differences are unreliable


def integral(prior: Hyperprior, A: Array) -> tuple[Array, float]:
    """Return the inverse of A + the prior's Hessian, in the range of R, and ½ log|I + Rᵀ A R|."""
    R = prior.root(len(A))
    L = np.linalg.cholesky(np.eye(R.shape[1]) + R.T @ A @ R)
    half = np.linalg.solve(L, R.T)
    return half.T @ half, float(np.log(L.diagonal()).sum())


def curvature(problem: Problem, prior: Hyperprior, theta: Array, sites: Any) -> Array:
    """Return A along the directions of a prior, zero along all others and where the evidence is not concave.

    With many hyperparameters A is measured along orthonormal directions Q only, those of wide priors and random ones,
    and A ≈ A Q (Qᵀ A Q)⁻¹ Qᵀ A (Nyström). The missing part of the trace, also estimated from Q, is distributed
    evenly over all other directions.
    """
    p, R = len(theta), prior.root(len(theta))
    if R.shape[1] < p or p <= DIRECTIONS:
        Q = _basis(R) if R.shape[1] < p else np.eye(p)
        values, vectors = np.linalg.eigh(_symmetric(Q.T @ _differences(problem, theta, sites, Q)))
        V = Q @ vectors
        return (V * np.maximum(values, 0.0)) @ V.T
    wide = _basis(prior.root(p, tied=True))[:, : DIRECTIONS // 2]
    exact = wide.shape[1]
    random = np.random.default_rng(0).standard_normal((p, DIRECTIONS - exact))
    Q = np.linalg.qr(np.column_stack([wide, random]))[0]
    AQ = _differences(problem, theta, sites, Q)
    inside = _symmetric(Q.T @ AQ)
    diagonal = np.maximum(inside.diagonal(), 0.0)
    trace = float(diagonal[:exact].sum() + (p - exact) * diagonal[exact:].mean())
    values, vectors = np.linalg.eigh(inside)
    good = values > NEGLIGIBLE * max(float(values.max()), 1e-12)
    U, roots, _ = np.linalg.svd((AQ @ vectors[:, good]) / np.sqrt(values[good]), full_matrices=False)
    rest = max(0.0, trace - float((roots**2).sum())) / (p - len(roots))
    return (U * np.maximum(roots**2 - rest, 0.0)) @ U.T + rest * np.eye(p)


def _basis(R: Array) -> Array:
    """Return orthonormal columns that span the range of R, with the signs of its columns."""
    Q, upper = np.linalg.qr(R)
    return np.where(upper.diagonal() < 0.0, -Q, Q)


def _symmetric(M: Array) -> Array:
    return 0.5 * (M + M.T)


def _differences(problem: Problem, theta: Array, sites: Any, Q: Array) -> Array:
    """Return A Q by differences of the gradient at fixed sites."""
    objective, highest = SiteObjective(problem), problem.bounds[:, 1]
    middle = objective.gradient_at_sites(theta, sites)
    out = np.empty(Q.shape)
    for k, length in enumerate(STEP / np.abs(Q).max(axis=0)):
        step = length * Q[:, k]
        if (theta + step > highest).any():
            step, length = -step, -length
        out[:, k] = (middle - objective.gradient_at_sites(theta + step, sites)) / length
    return np.nan_to_num(out, posinf=0.0, neginf=0.0)  # curvature zero where numbers overflow
