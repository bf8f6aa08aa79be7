"""Gaussian posteriors over one latent function per class that have most of their covariance in common.

With T and Y of `priors.shared` (TᵀT = A⁻¹, and Y_c some rows of Y),

    mean_c(x) = offset_c + k(x, X) alpha_c
    cov_cc(x, z) = k(x, z) - <T k(X, x), T k(X, z)> - <Y_c k(X, x), Y_c k(X, z)>,     cov_cd = 0.

The variances of all classes cost two products with n x n matrices, for any number of classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import matmul, matmul_transposed, single, times_lower_transposed
from gpclass.core.memory import require_memory
from gpclass.core.protocols import Array, Index, Inputs, Part
from gpclass.core.registry import stored
from gpclass.kernels import diag, matrix
from gpclass.posteriors.process import ONE, Process, check_reduced, symmetric_root


@stored
@dataclass(frozen=True, slots=True, eq=False)
class SharedProcesses(Process):
    """C independent Gaussian processes of one kernel.

    ``root`` holds T, ``factors`` Y, whose rows ``bounds[c]`` to ``bounds[c + 1]`` belong to class c, and ``offset`` the
    prior means, None for zero. Of many rows T and Y are in single precision.
    """

    kernel: Kernel
    inputs: Inputs = field(metadata={"shape": "n,..."})
    alpha: Array = field(metadata={"shape": "n,c"})
    root: Array = field(metadata={"shape": "n,n", "stored": "lower"})
    factors: Array = field(metadata={"shape": "n,n"})
    bounds: Index = field(metadata={"shape": "b"})
    offset: Array | None = field(default=None, metadata={"shape": "c"})

    block_size = 512

    @property
    def latent_shape(self) -> tuple[int]:
        """Number of latent functions."""
        return (self.alpha.shape[1],)

    def check_stored(self) -> None:
        """Raise unless the classes divide the rows, and the data reduce the variance of the latent values."""
        ends = np.array([0, len(self.factors)])
        steps = np.diff(self.bounds)
        if len(steps) != self.alpha.shape[1] or (steps < 0).any() or (self.bounds[[0, -1]] != ends).any():
            raise ValueError("Its classes do not divide its rows.")
        check_reduced(self, self.inputs[:4], [self.kernel])

    def mean(self, X: Inputs) -> Array:
        """Return the means of f at each row of X, shape (n, C)."""
        return self.by_block(X, lambda B: self._means(matrix(self.kernel, B, self.inputs)))

    def _means(self, K: Array) -> Array:
        out = matmul(K, np.ascontiguousarray(self.alpha))
        return out if self.offset is None else out + self.offset

    def parts(self, X: Inputs) -> list[Part]:
        """Return the one part at the rows of a block."""
        K = matrix(self.kernel, X, self.inputs)
        mean = self._means(K)
        Y, W = self._products(K)
        common = diag(self.kernel, X) - _row_squares(W)
        cov = np.zeros((*mean.shape, mean.shape[1]))
        for c, columns in enumerate(self.classes()):
            cov[:, c, c] = np.maximum(common - _row_squares(Y[:, columns]), 0.0)
        return [Part(mean[:, None], cov, ONE)]

    def classes(self) -> list[slice]:
        """Return which rows of ``factors`` belong to each class."""
        return [slice(*ends) for ends in zip(self.bounds[:-1], self.bounds[1:], strict=True)]

    def _products(self, K: Array) -> tuple[Array, Array]:
        """Return the rows k(x, X) Yᵀ, and k(x, X) Tᵀ in the memory of K if that has the precision of T."""
        K = single(K) if self.root.dtype == np.float32 else K
        return matmul_transposed(K, self.factors), times_lower_transposed(K, self.root)

    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return means (n, C) and the full covariance (n, C, n, C) over the rows of X."""
        (C,), n = self.latent_shape, len(X)
        require_memory(n * C, 2.0, joint=True)
        mean, blocks = self._covariances(X)
        cov = np.zeros((n, C, n, C))
        for c, block in enumerate(blocks):
            cov[:, c, :, c] = block
        return mean, cov

    def _covariances(self, X: Inputs) -> tuple[Array, Iterator[Array]]:
        """Return the means, and the covariance of each function in turn."""
        K = matrix(self.kernel, X, self.inputs)
        mean = self._means(K)
        Y, W = self._products(K)
        common = matrix(self.kernel, X) - W @ W.T
        return mean, (common - Y[:, columns] @ Y[:, columns].T for columns in self.classes())

    def sample(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Draw f jointly at the rows of X; shape (n, C, n_samples)."""
        require_memory(len(X), 4.0, joint=True)
        mean, blocks = self._covariances(X)
        draws = [symmetric_root(block) @ rng.standard_normal((len(X), n_samples)) for block in blocks]
        out: Array = mean[:, :, None] + np.stack(draws, axis=1)
        return out


def _row_squares(W: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", W, W), dtype=float)
