"""The error of the inducing inputs: the exact posterior of neighbourhoods, given q of all other rows.

Given u the latent values of two rows are correlated, with the residual covariance k(x, z) - a(x)ᵀ a(z), which a model
with inducing inputs sets to zero. The neighbourhood N of a row is the set of rows whose residual covariance with it is
largest. Without the sites of N, with V = A P⁻¹ Aᵀ for the features A of N and sites of precision h and linear term nu,

    cov_- = V + V h^½ (I - h^½ V h^½)⁻¹ h^½ V,     m_- = m - cov_- (nu - h m),

and the prior of f on N given all other rows is N(m_-, cov_- + K - A Aᵀ), residual covariances included (Snelson &
Ghahramani 2007 have it as the partially independent conditional). The method itself then gives the posterior, and
its leave-one-out probability of the row is compared with the model's. If N has all rows, this is the model without
inducing inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from gpclass.core.linalg import matmul_transposed
from gpclass.core.protocols import Array, Likelihood, Sites
from gpclass.data.rows import Rows, concatenate
from gpclass.inference.variational import response
from gpclass.kernels import matrix
from gpclass.priors import DensePrior
from gpclass.sparse.latent import Latent, Marginals
from gpclass.sparse.loo import copies

ROUNDING = 1e-10  # added to the diagonal of I - h^½ V h^½ because of rounding errors
SHIFTED = ("derivatives", "third", "expected", "tilted")  # methods that take labels and latent values


# --------------------------------------------------------------------- the rows around some rows


@dataclass(slots=True, eq=False)
class Nearest:
    """For each centre the rows found so far and their scores, the largest first."""

    size: int
    found: list[tuple[Array, Rows]]

    def add(self, other: Nearest) -> None:
        """Merge two results, and keep the rows with the largest scores."""
        for c, (score, rows) in enumerate(other.found):
            if c < len(self.found):
                score = np.concatenate([self.found[c][0], score])
                rows = concatenate([self.found[c][1], rows])
            order = np.argsort(-score, kind="stable")[: self.size]
            self.found[c : c + 1] = [(score[order], rows.take(order))]


@dataclass(frozen=True, slots=True, eq=False)
class NearestStep:
    """The pass that finds the rows with the largest residual covariance with each centre; the centre comes first."""

    latent: Latent
    centres: Array
    size: int

    def __call__(self, block: Rows) -> Nearest:
        """Return the best rows of a block."""
        total, around = Nearest(self.size, []), self.latent.at(self.centres).A
        for rows, at in self.latent.tiles(block, len(self.centres)):
            R = np.abs(matrix(self.latent.kernel, rows.X, self.centres) - matmul_transposed(at.A, around))
            for c, centre in enumerate(self.centres):
                R[(centre == rows.X).all(axis=1), c] = np.inf
            total.add(Nearest(self.size, [(score, rows) for score in R.T]))
        return total


# ------------------------------------------------------------------------- the exact posterior


@dataclass(frozen=True, slots=True, eq=False)
class Shifted:
    """A likelihood of f = shift + g as a function of g, because methods assume a prior mean of zero.

    Its labels have the labels and the shifts as columns, so that a method can select rows of both.
    """

    base: Any

    def __getattr__(self, name: str) -> Any:
        function = getattr(self.base, name)
        if name not in (*SHIFTED, "ascent_sites"):
            return function

        def shifted(y: Array, f: Array, *rest: Any) -> Any:
            labels, shift = np.split(y, 2, axis=1) if y.shape[1] > 2 else y.T
            return function(labels, f + shift if name in SHIFTED else f, *rest)

        return shifted


def without(at: Marginals, g: Array, h: Array) -> tuple[Array, Array]:
    """Return mean (n, C) and covariance (C, n, n) of a_iᵀ u without the sites of these rows."""
    means, covs = [], []
    for c, C in enumerate(at.latent.roots):
        W = matmul_transposed(at.A, C)
        V, root = matmul_transposed(W, W), np.sqrt(np.maximum(h[:, c], 0.0))
        inner = (1.0 + ROUNDING) * np.eye(len(V)) - root[:, None] * V * root
        cov = V + (V * root) @ cho_solve((np.linalg.cholesky(inner), True), root[:, None] * V)
        covs.append(0.5 * (cov + cov.T))
        means.append(at.mean[:, c] - covs[-1] @ g[:, c])
    return np.stack(means, axis=1), np.stack(covs)


def exact_left_out(
    method: Any, likelihood: Likelihood, rows: Rows, at: Marginals, g: Array, h: Array, *, fixed: bool
) -> tuple[Array, Array]:
    """Return mean (n, C) and (co)variance of each row from the others, by the method itself.

    The method starts from the sites, or they are ``fixed`` because they do not depend on q.
    """
    several, n = np.ndim(rows.y) == 2, len(rows)
    mean, covs = without(at, g, h)
    prior: Any = DensePrior([at.latent.kernel] * len(covs), rows.X, len(covs) if several else None)
    for K, cov in zip(prior.Ks, covs, strict=True):  # lower triangles
        K += np.tril(cov - matmul_transposed(at.A, at.A))
    shape = mean.shape if several else (n,)
    sites = Sites((g + h * (at.mean - mean)).reshape(shape), np.maximum(h, 0.0).reshape(shape))
    if fixed:
        left, cov = prior.condition(sites).left_out(np.maximum(copies(rows), 1.0))
        return left + mean, cov
    labels = np.column_stack([rows.y, mean])
    result = method(prior, Shifted(likelihood), labels, weight=rows.weight, init=sites)
    q = result.conditioned
    moved = [response(rows.y, q.alpha, result.sites.tau)] if several else []
    left, cov = q.left_out(np.maximum(copies(rows), 1.0), *moved)
    return left.reshape(mean.shape) + mean, cov
