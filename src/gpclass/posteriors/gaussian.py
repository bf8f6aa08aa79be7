"""The Gaussian posterior over the latent function, whoever made it.

    mean(x) = k(x, P) alpha            cov(x, z) = k(x, z) - <root k(P, x), root k(P, z)>

With the n training inputs as P, root = L⁻¹ S, where B = L Lᵀ (R&W algorithm 3.2, lines 4-6).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import blas
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import matvec, require_memory
from gpclass.core.protocols import Array, Inputs
from gpclass.core.registry import stored
from gpclass.kernels import diag, matrix, pullback_inputs

BLOCK = 1024  # rows predicted at a time: memory is bounded by BLOCK x P whatever is asked for


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """A Gaussian process conditioned on sites at the inputs P; ``root`` is lower triangular.

    Where ``beta`` is given, alpha = rootᵀ beta, and means and variances at single rows are worked out in
    single precision: the mean as betaᵀ (root k), whose terms are small where those of k alpha need not be.
    """

    kernel: Kernel
    inputs: Inputs = field(metadata={"shape": "n,..."})
    alpha: Array = field(metadata={"shape": "n"})
    root: Array = field(metadata={"shape": "n,n", "stored": "lower"})
    beta: Array | None = field(default=None, metadata={"shape": "n"})

    def check_stored(self) -> None:
        """Raise unless data leave latent values less uncertain than they were, at a few inputs."""
        rows = self.inputs[:4]
        mean, var = self.latent(rows)
        share = var / np.maximum(diag(self.kernel, rows), 1e-300)
        if not (len(mean) and np.isfinite(mean).all() and share.max() <= 1.001):
            raise ValueError("The variances of its posterior are larger than those of its prior.")

    def latent(self, X: Inputs) -> tuple[Array, Array]:
        """Return the mean and the variance of f at each row of X."""
        if self.beta is not None:
            return self._latent_single(X)
        mean, var = np.empty(len(X)), np.empty(len(X))
        buffer = np.empty((min(BLOCK, len(X)), len(self.inputs)))  # fresh pages cost as much as exponentials
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            K = matrix(self.kernel, X[rows], self.inputs, out=buffer[: len(X[rows])])
            mean[rows] = matvec(K, self.alpha)
            V = self.whiten(K)
            var[rows] = diag(self.kernel, X[rows]) - np.einsum("ij,ij->i", V, V)
        self._check(mean, var)
        # The difference of two equal numbers may round below zero, never further.
        return mean, np.maximum(var, 0.0, out=var)

    def _latent_single(self, X: Inputs) -> tuple[Array, Array]:
        mean, var = np.empty(len(X)), np.empty(len(X))
        buffer = np.empty((min(BLOCK, len(X)), len(self.inputs)), dtype=np.float32)
        root = self.root.astype(np.float32)
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            K = matrix(self.kernel, X[rows], self.inputs, out=buffer[: len(X[rows])])
            V = blas.strmm(1.0, root.T, K.T, side=0, lower=0, trans_a=1, overwrite_b=1).T
            mean[rows] = V @ self.beta.astype(np.float32)  # type: ignore[union-attr]
            var[rows] = diag(self.kernel, X[rows]) - np.einsum("ij,ij->i", V, V)
        self._check(mean, var)
        return mean, np.maximum(var, 0.0, out=var)

    def mean(self, X: Inputs) -> Array:
        """Return the mean of f alone: no variance, so only n kernel values a row."""
        mean = np.empty(len(X))
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            mean[rows] = matvec(matrix(self.kernel, X[rows], self.inputs), self.alpha)
        self._check(mean)
        return mean

    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return the mean of f and its full covariance over the rows of X."""
        require_memory(len(X), 2.0)
        K = matrix(self.kernel, X, self.inputs)
        mean: Array = K @ self.alpha
        cov = matrix(self.kernel, X)
        V = self.whiten(K)
        cov -= V @ V.T
        return mean, cov

    def sample(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Draw f jointly at the rows of X; shape (len(X), n_samples).

        The square root comes from the eigenvalues, so a singular covariance needs no jitter.
        """
        mean, cov = self.covariance(X)
        values, vectors = np.linalg.eigh(cov)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        draws: Array = mean[:, None] + root @ rng.standard_normal((len(X), n_samples))
        return draws

    def input_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return d mean / d x and d variance / d x at each row of X, both of the shape of X."""
        slope, spread = np.empty(X.shape), np.empty(X.shape)
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            K = matrix(self.kernel, X[rows], self.inputs)
            G = np.broadcast_to(self.alpha, K.shape)
            slope[rows] = pullback_inputs(self.kernel, X[rows], self.inputs, G)
            # d/dx (-|root k|²) = -2 (rootᵀ root k) · dk/dx
            G = -2.0 * self.whiten(K) @ np.tril(self.root)
            spread[rows] = pullback_inputs(self.kernel, X[rows], self.inputs, G)
            spread[rows] += diag_gradient(self.kernel, X[rows])
        return slope, spread

    def _check(self, *moments: Array) -> None:
        for moment in moments:
            if not np.isfinite(moment).all():
                row = int(np.argmin(np.isfinite(moment)))
                raise ValueError(
                    f"The kernel {self.kernel} has no finite covariance at row {row} of X: such inputs are "
                    "beyond its range."
                )

    def whiten(self, K: Array) -> Array:
        """Turn rows k(x, P) into rows root k(P, x), in the memory of K."""
        V: Array = blas.dtrmm(1.0, self.root.T, K.T, side=0, lower=0, trans_a=1, overwrite_b=1)
        return V.T


def diag_gradient(kernel: Any, X: Array) -> Array:
    """Return d k(x, x) / d x = 2 ∂₁k(x, z) at z = x, in small squares of rows."""
    if kernel.is_stationary():
        return np.zeros(X.shape)
    out = np.empty(X.shape)
    for start in range(0, len(X), 32):
        rows = slice(start, start + 32)
        out[rows] = 2.0 * pullback_inputs(kernel, X[rows], X[rows], np.eye(len(X[rows])))
    return out
