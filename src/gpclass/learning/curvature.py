"""The curvature of the log evidence, and the integral over the hyperparameters by Laplace's method.

A = -∂² log p(y|theta) / ∂theta² is measured by differences of the gradient at fixed sites of the approximation:
one factorisation for each direction. With theta = mu + R z and z ~ N(0, I) in the prior, the integral needs
½ log|I + Rᵀ A R|, and the search the inverse of A + (R Rᵀ)⁻¹.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpclass.core.hyperpriors import Hyperprior
from gpclass.core.protocols import Array
from gpclass.learning.problem import Problem, SiteObjective

DIRECTIONS = 64  # number of directions of the curvature; random ones if there are more hyperparameters
STEP = 0.1  # change of theta for a difference of gradients: 10 % of a hyperparameter
NEGLIGIBLE = 1e-3  # fraction of the largest eigenvalue below which one-sided differences are unreliable


@dataclass(frozen=True, slots=True, eq=False)
class Curvature:
    """A = U diag(values) Uᵀ + rest I, with orthonormal columns U and no negative values."""

    U: Array
    values: Array
    rest: float = 0.0

    def __mul__(self, factor: float) -> Curvature:
        """Return the curvature for this many times as many rows."""
        return Curvature(self.U, factor * self.values, factor * self.rest)

    def times(self, x: Array) -> Array:
        """Return A x."""
        out: Array = self.U @ (self.values * (self.U.T @ x)) + self.rest * x
        return out

    def inside(self, prior: Hyperprior, b: Array) -> tuple[Array, float]:
        """Return (I + Rᵀ A R)⁻¹ b for columns b, and ½ log|I + Rᵀ A R|, by the matrix inversion lemma."""
        W = prior.whitened(self.U * np.sqrt(self.values))
        (VW, half_logdet), Vb = prior.ridge(self.rest, W), prior.ridge(self.rest, b)[0]
        L = np.linalg.cholesky(np.eye(W.shape[1]) + W.T @ VW)
        X = np.linalg.solve(L, VW.T)
        return Vb - X.T @ (X @ b), half_logdet + float(np.log(L.diagonal()).sum())

    def moved(self, n_dims: int, at: int) -> Curvature:
        """Return the curvature with an element of theta inserted, along which it is zero, or removed, at a position."""
        if n_dims > len(self.U):
            return replace(self, U=np.insert(self.U, at, 0.0, axis=0))
        return replace(self, U=np.delete(self.U, at, axis=0)) if n_dims < len(self.U) else self


def integral(prior: Hyperprior, A: Curvature) -> tuple[Array, float]:
    """Return the inverse of A + the prior's Hessian, in the range of R, and ½ log|I + Rᵀ A R|."""
    p = len(A.U)
    inner, log_volume = A.inside(prior, np.eye(prior.n_free(p)))
    return prior.unwhitened(prior.unwhitened(inner, p).T, p), log_volume


def curvature(
    problem: Problem, prior: Hyperprior, theta: Array, sites: Any, *, tied: bool = False
) -> Curvature:
    """Return A; directions in which the evidence is not concave count as flat.

    With ``tied`` it is measured along the common values of groups of hyperparameters, and zero along all others.

    With many hyperparameters A is known along orthonormal directions Q only, those of wide priors and random ones, and
    A ≈ A Q (Qᵀ A Q)⁻¹ Qᵀ A (Nyström). The missing part of the trace, also estimated from Q, is distributed evenly
    over all other directions.
    """
    p = len(theta)
    first = prior.wide_directions(p)
    if tied or p <= DIRECTIONS:
        Q = first if tied else np.eye(p)
        inside = Q.T @ _differences(problem, theta, sites, Q)
        values, vectors = np.linalg.eigh(0.5 * (inside + inside.T))
        return Curvature(Q @ vectors, np.maximum(values, 0.0))
    exact = min(first.shape[1], DIRECTIONS // 2)
    random = np.random.default_rng(0).standard_normal((p, DIRECTIONS - exact))
    Q = np.linalg.qr(np.column_stack([first[:, :exact], random]))[0]
    AQ = _differences(problem, theta, sites, Q)
    inside = 0.5 * (Q.T @ AQ + AQ.T @ Q)
    values, vectors = np.linalg.eigh(inside)
    diagonal = np.maximum(inside.diagonal(), 0.0)
    trace = float(diagonal[:exact].sum() + (p - exact) * diagonal[exact:].mean())
    good = values > NEGLIGIBLE * max(float(values.max()), 1e-12)
    U, roots, _ = np.linalg.svd((AQ @ vectors[:, good]) / np.sqrt(values[good]), full_matrices=False)
    rest = max(0.0, trace - float((roots**2).sum())) / (p - len(roots))
    return Curvature(U, np.maximum(roots**2 - rest, 0.0), rest)


def _differences(problem: Problem, theta: Array, sites: Any, Q: Array) -> Array:
    """Return A Q by differences of the gradient at fixed sites."""
    objective, highest = SiteObjective(problem), problem.bounds[:, 1]
    lengths = STEP / np.abs(Q).max(axis=0)
    middle = objective.gradient_at_sites(theta, sites)
    out = np.empty(Q.shape)
    for k, length in enumerate(lengths):
        step = length * Q[:, k]
        if (theta + step > highest).any():
            step, length = -step, -length
        out[:, k] = (middle - objective.gradient_at_sites(theta + step, sites)) / length
    return np.nan_to_num(out, posinf=0.0, neginf=0.0)  # flat where numbers overflow
