"""The Gaussian posterior over one latent function, whichever method made it.

    mean(x) = k(x, P) alpha            cov(x, z) = k(x, z) - <root k(P, x), root k(P, z)>

With the n training inputs as P, root = L⁻¹ S, where B = L Lᵀ (R&W algorithm 3.2, lines 4-6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import drop_tiny, matvec, single, times_lower_transposed
from gpclass.core.memory import require_memory
from gpclass.core.protocols import Array, Inputs, Part
from gpclass.core.registry import stored
from gpclass.kernels import diag, matrix, pullback_inputs
from gpclass.posteriors.process import ONE, Process, check_reduced, diag_gradient

BLOCK = 1024  # rows predicted at a time: memory is bounded by BLOCK x P


@stored
@dataclass(frozen=True, slots=True, eq=False)
class GaussianProcess(Process):
    """A Gaussian process conditioned on sites at the inputs P; ``root`` is lower triangular.

    Where ``beta`` is given, alpha = rootᵀ beta, and means and variances at single rows are computed in
    single precision: the mean as betaᵀ (root k), whose terms are small where those of k alpha need not be.
    """

    kernel: Kernel
    inputs: Inputs = field(metadata={"shape": "n,..."})
    alpha: Array = field(metadata={"shape": "n"})
    root: Array = field(metadata={"shape": "n,n", "stored": "lower"})
    beta: Array | None = field(default=None, metadata={"shape": "n"})

    latent_shape = ()
    block_size = BLOCK

    def check_stored(self) -> None:
        """Raise unless the data reduce the variance of the latent values, at a few inputs."""
        check_reduced(self, self.inputs[:4], [self.kernel])

    def parts(self, X: Inputs) -> list[Part]:
        """Return the one part at the rows of a block."""
        dtype = np.float64 if self.beta is None else np.float32
        K = matrix(self.kernel, X, self.inputs, out=np.empty((len(X), len(self.inputs)), dtype=dtype))
        if self.beta is None:
            mean = matvec(K, self.alpha)
            V = self.whiten(K)
        else:
            V = self.whiten(K)
            mean = np.asarray(V @ single(self.beta), dtype=float)
        var = np.asarray(diag(self.kernel, X) - np.einsum("ij,ij->i", V, V), dtype=float)
        # The difference of two equal numbers may round below zero, never further.
        return [Part(mean[:, None], np.maximum(var, 0.0), ONE)]

    def mean(self, X: Inputs) -> Array:
        """Return the mean of f alone: no variance, so only one kernel value per training row."""
        mean = self.by_block(X, lambda B: matvec(matrix(self.kernel, B, self.inputs), self.alpha))
        if not np.isfinite(mean).all():
            self.latent(X)  # which says where
        return mean

    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return the mean of f and its full covariance over the rows of X."""
        require_memory(len(X), 2.0, joint=True)
        K = matrix(self.kernel, X, self.inputs)
        mean: Array = K @ self.alpha
        cov = matrix(self.kernel, X)
        V = self.whiten(K)
        cov -= V @ V.T
        return mean, cov

    def input_gradient(self, X: Array, adjoints: Sequence[tuple[Array, Array]]) -> Array:
        """Return first · d mean / d x + ½ second · d variance / d x at each row of X."""
        ((first, second),) = adjoints
        out = np.empty(X.shape)
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            K, half = matrix(self.kernel, X[rows], self.inputs), 0.5 * second[rows]
            # d/dx (-|root k|²) = -2 (rootᵀ root k) · dk/dx
            G = first[rows] * self.alpha - 2.0 * half * (self.whiten(K) @ np.tril(self.root))
            out[rows] = pullback_inputs(self.kernel, X[rows], self.inputs, G)
            out[rows] += half * diag_gradient(self.kernel, X[rows])
        return out

    def whiten(self, K: Array) -> Array:
        """Turn rows k(x, P) into rows root k(P, x), in the memory of K."""
        root = single(self.root) if K.dtype == np.float32 else self.root
        return drop_tiny(times_lower_transposed(K, root))
