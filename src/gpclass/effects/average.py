"""The average of f over rows, which is Gaussian in closed form, and joint draws of f at many rows.

The average of a Gaussian process over copies of rows is a Gaussian process whose covariance is averaged:

    f̄(g) = Σ_i w_i f(x_i^g),     k̄(g, z) = Σ_i w_i k(x_i^g, z),     k̄(g, h) = Σ_ij w_i w_j k(x_i^g, x_j^h).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh

from gpclass.core.linalg import matmul, pivoted_root, single
from gpclass.core.protocols import Array
from gpclass.effects.columns import Copies
from gpclass.kernels import diag, matrix
from gpclass.posteriors.process import Process, all_pairs, by_row, symmetric_root

RANK = 128  # number of rows whose latent values carry the joint draws
NEGLIGIBLE = 1e-5  # eigenvalues below this fraction of the prior variance are left to the residual
TILE = 2048  # number of rows whose draws are computed at a time


@dataclass(frozen=True, slots=True, eq=False)
class Average:
    """The covariances of averages over `Copies` with one another and with single inputs."""

    kernel: Any

    requires_vector_input = False

    def __call__(self, X: Copies, Z: Any) -> Array:
        """Return covariances; of X with itself only those below the diagonal, which `matrix` reads."""
        out = np.zeros((len(X), len(Z)))
        for g, rows in enumerate(X.sets):
            if isinstance(Z, Copies):
                others = Z[: g if X is Z else len(Z)]
                K = X.weight @ matrix(self.kernel, rows, others.stacked)
                out[g, : len(others)] = K.reshape(len(others), len(Z.weight)) @ Z.weight
            else:
                out[g] = X.weight @ matrix(self.kernel, rows, Z)
        return out

    def diag(self, X: Copies) -> Array:
        """Return the variances; noise of single rows is independent, and averaged as such."""
        return np.array([X.weight @ matrix(self.kernel, rows) @ X.weight for rows in X.sets])


def averages(process: Process, X: Copies) -> Iterator[tuple[Array, Array, Array]]:
    """Yield, for each part of a posterior, the means (G, S, C) and covariance (G, C, G, C) of averages, and weights."""
    G, C = len(X), int(np.prod(process.latent_shape))
    for gaussian, weight in zip(process.gaussians(), process.weights, strict=True):
        averaged = replace(gaussian, kernels=tuple(map(Average, gaussian.kernels)))
        means, blocks = averaged.joint(X, process.latent_shape)
        cov = np.zeros((G, C, G, C))
        for c, block in enumerate(blocks):
            part = cov if block.ndim == 4 else cov[:, c, :, c]
            part += block
        yield means.reshape(G, -1, C), cov, weight


class Draws:
    """Draws of f that can be evaluated at any number of rows.

    A draw is joint at the rows of a basis; elsewhere it is the conditional mean given these, plus a residual with the
    remaining variance. The residuals of copies of a row are the same up to their scale.
    """

    def __init__(self, process: Process, candidates: Array, n_rows: int, n: int, seed: int) -> None:
        rng, weights = np.random.default_rng(seed), np.concatenate(process.weights)
        few = candidates[rng.permutation(len(candidates))[: 4 * RANK]]
        kernel = next(iter(process.gaussians())).kernels[0]
        self.basis = few[pivoted_root(matrix(kernel, few))[1][:RANK]]
        self.process, C = process, int(np.prod(process.latent_shape))
        self.chosen = rng.choice(len(weights), size=n, p=weights / weights.sum())
        self.z = rng.standard_normal((len(self.basis), C, n))
        self.residual = rng.standard_normal((n_rows, C, n))

    def at(self, X: Array) -> Array:
        """Return the draws at copies of the rows, one set after another, of shape (len(X), C, n)."""
        out, first = np.empty((len(X), *self.z.shape[1:])), 0
        for gaussian, weight in zip(self.process.gaussians(), self.process.weights, strict=True):
            mine = np.flatnonzero((first <= self.chosen) & (self.chosen < first + len(weight)))
            for start in range(0, len(X) if mine.size else 0, TILE):
                rows = np.arange(start, min(start + TILE, len(X)))
                mean, roots = self._conditional(gaussian, X[rows])
                mean = mean[:, self.chosen[mine] - first]
                for functions, A, std in roots:
                    z = self.z[:, functions][..., mine].reshape(-1, mine.size)
                    f = matmul(A, z).reshape(*std.shape, -1)
                    f += np.moveaxis(mean[..., functions], 1, -1)
                    noise = self.residual[rows % len(self.residual)][:, functions][..., mine]
                    out[np.ix_(rows, np.array(functions), mine)] = f + std[..., None] * noise
            first += len(weight)
        return out

    def _conditional(self, gaussian: Any, X: Array) -> tuple[Array, Iterator[tuple[list[int], Array, Array]]]:
        """Return the means (n, S, C), and groups of functions with roots and residual deviations (n, functions)."""
        r, shape, C = len(self.basis), self.process.latent_shape, self.z.shape[1]

        def prior(kernel: Any, X: Array) -> Array:
            return np.column_stack([matrix(kernel, X, X[:r]), diag(kernel, X)])

        def product(A: Array, B: Array) -> Array:
            return np.column_stack([all_pairs(A, B[:r]), by_row(A, B)])

        if not gaussian.coupled:  # draws need no more than single precision, and it is twice as fast
            root = None if gaussian.root is None else single(gaussian.root)
            gaussian = replace(gaussian, root=root, factors=tuple(map(single, gaussian.factors)))
        mean, covs, own = gaussian.moments(np.concatenate([self.basis, X]), shape, prior, product)
        groups: Any = (([c], block[:, :-1], block[:, -1]) for c, block in enumerate(covs))
        if gaussian.coupled:
            rows, blocks = np.stack(own, axis=1), np.stack(list(covs), axis=1)
            D = np.einsum("xcn,udn->xcud", rows, rows[:r], optimize=True)
            np.einsum("xcuc->xcu", D)[...] += blocks[..., :-1]
            var = np.einsum("xcn,xcn->xc", rows, rows) + blocks[..., -1]
            groups = [(list(range(C)), D.reshape(-1, r * C), var.ravel())]
        least = NEGLIGIBLE * max(diag(kernel, self.basis).max() for kernel in gaussian.kernels)

        def roots() -> Iterator[tuple[list[int], Array, Array]]:
            for functions, D, var in groups:
                size = D.shape[1]  # the basis comes first: A = D_XU D_UU^-½
                A = matmul(D[size:], inverse_root(D[:size], least))
                std = np.sqrt(np.maximum(var[size:] - by_row(A, A), 0.0))
                yield functions, A, std.reshape(-1, len(functions))

        return mean[r:].reshape(len(X), -1, C), roots()


def inverse_root(cov: Array, least: float) -> Array:
    """Return the symmetric cov^-½ without smaller eigenvalues; rounding hardly changes it, so that draws agree."""
    values, vectors = eigh(cov)
    fine = values > least
    return (vectors[:, fine] / np.sqrt(values[fine])) @ vectors[:, fine].T


def matched(f: Array, weight: Array, mean: Array, cov: Array) -> Array:
    """Return draws (G, m, n) with averages over m whose mean and covariance are as given, by a shift common to all m.

    It makes up for the finite basis and for the finite number of draws.
    """
    averages = np.einsum("gmn,m->gn", f, weight)
    away = averages - averages.mean(axis=1, keepdims=True)
    found = away @ away.T / away.shape[1]
    exact = mean[:, None] + symmetric_root(cov) @ inverse_root(found, 1e-9 * np.trace(found)) @ away
    return f + (exact - averages)[:, None]
