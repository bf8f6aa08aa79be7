"""The Gaussian posterior over any number of latent functions, for all methods.

With inputs P, k_c(x) = k_c(P, x), and one column of alpha for each latent function c,

    mean_c(x) = offset_c + k_c(x)ᵀ alpha_c
    cov_cc(x, z) = k_c(x, z) - <T k_c(x), T k_c(z)> - <F_c k_c(x), F_c k_c(z)>,     cov_cd = 0,

where T (``root``, lower triangular) is common to all functions, F_c (``factors``) belongs to one, and either may be
absent. One function with the n training inputs as P has T = L⁻¹ S, where B = L Lᵀ (R&W algorithm 3.2, lines 4-6).
Where the sites couple the functions (softmax by Laplace, the multinomial probit), F_c = V_cᵀ and T = L of
`gpclass.priors.coupled`, and

    cov_cd(x, z) = [c = d] (k_c(x, z) - <F_c k_c(x), Tᵀ k_c(z)>) + <F_c k_c(x), F_d k_d(z)>.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import (
    drop_tiny,
    matmul,
    matmul_transposed,
    matvec,
    single,
    times_lower_transposed,
)
from gpclass.core.memory import require_memory
from gpclass.core.protocols import Array, Inputs
from gpclass.core.registry import stored
from gpclass.kernels import diag, matrix
from gpclass.posteriors.process import Process

Product = Callable[[Array, Array], Array]


def by_row(A: Array, B: Array) -> Array:
    """Return the inner product of each row of A with the same row of B, in double precision."""
    return np.asarray(np.einsum("ij,ij->i", A, B), dtype=float)


def all_pairs(A: Array, B: Array) -> Array:
    """Return the inner products of all rows of A with all rows of B."""
    return np.asarray(A @ B.T, dtype=float)


@stored
@dataclass(frozen=True, slots=True, eq=False)
class GaussianProcess(Process):
    """Latent functions with a Gaussian posterior; ``alpha`` of shape (n,) is one function, (n, C) are C of them.

    There is one kernel for all functions or one for each. The prior means ``offset`` are zero if they are None.
    ``root`` and ``factors`` may be in single precision. Where ``beta`` is given, alpha = rootᵀ beta, and the moments at
    single rows are computed in single precision: the mean as betaᵀ (root k), whose terms remain small even if those of
    kᵀ alpha are large.
    """

    kernels: tuple[Kernel, ...]
    inputs: Inputs
    alpha: Array
    root: Array | None = field(default=None, metadata={"stored": "lower"})
    factors: tuple[Array, ...] = ()
    coupled: bool = False
    offset: Array | None = None
    beta: Array | None = None

    block_size = 512

    @property
    def latent_shape(self) -> tuple[int, ...]:
        """Shape of the latent values at one input: () for one function, (C,) for C of them."""
        return self.alpha.shape[1:]

    @property
    def n_functions(self) -> int:
        """Number of latent functions."""
        return int(np.prod(self.latent_shape))

    def check_stored(self) -> None:
        """Raise unless the shapes of the parts agree and the data reduce the variances, at a few inputs."""
        C, n = self.n_functions, len(self.inputs)
        if len(self.kernels) not in {1, C} or len(self.factors) not in {0, C}:
            raise ValueError("The number of kernels or factors differs from the number of latent functions.")
        wide = all(F.ndim == 2 and F.shape[1] == n and np.isfinite(F).all() for F in self.factors)
        parted = self.coupled and (self.root is None or any(len(F) != n for F in self.factors))
        if not wide or parted or (self.beta is not None and (self.root is None or self.latent_shape)):
            raise ValueError("The shapes of the factors do not match the number of inputs.")
        X = self.inputs[:4]
        mean, cov = self.latent(X)
        var = cov if cov.ndim == 1 else np.einsum("icc->ci", cov)
        prior = np.max([diag(kernel, X) for kernel in self.kernels], axis=0)
        if not (len(mean) and (var / np.maximum(prior, 1e-300)).max() <= 1.001):
            raise ValueError("The posterior variances are larger than the prior variances.")

    def gaussians(self) -> Iterator[GaussianProcess]:
        """Yield the process itself."""
        yield self

    # ------------------------------------------------------------------------------ moments

    def mean(self, X: Inputs) -> Array:
        """Return the means alone, which need only the kernel values and no factors."""
        out = np.empty((len(X), *self.latent_shape))
        for start in range(0, len(X), self.block_size):
            rows = slice(start, start + self.block_size)
            out[rows] = self._mean([matrix(kernel, X[rows], self.inputs) for kernel in self.kernels])
        if not np.isfinite(out).all():
            self.latent(X)  # raises an error that names the row
        return out

    def _mean(self, Ks: list[Array]) -> Array:
        if self.alpha.ndim == 1:
            return matvec(Ks[0], self.alpha)
        if len(Ks) == 1:
            out = matmul(Ks[0], np.ascontiguousarray(self.alpha))
        else:
            out = np.stack([matvec(K, self.alpha[:, c].copy()) for c, K in enumerate(Ks)], axis=1)
        return out if self.offset is None else out + self.offset

    def moments(
        self, X: Inputs, shape: tuple[int, ...], prior: Callable[[Any, Inputs], Array], product: Product
    ) -> tuple[Array, Iterator[Array], list[Array]]:
        """Return the means (n, S, *shape), the (co)variances of each function in turn, and the rows F_c k_c.

        ``shape`` is that of the latent values at one input: there are S draws of them. ``prior`` and ``product`` are
        `diag` and `by_row` for variances, `matrix` and `all_pairs` for covariances. The rows F_c k_c are
        needed for covariances between coupled functions.
        """
        size, dtype = (len(X), len(self.inputs)), np.float64 if self.beta is None else np.float32
        Ks = [matrix(kernel, X, self.inputs, out=np.empty(size, dtype)) for kernel in self.kernels]
        if self.beta is None:
            mean = self._mean(Ks)
        own = [_times(Ks[c % len(Ks)], F) for c, F in enumerate(self.factors)]
        common = self._common(Ks)
        if self.beta is not None:
            mean = np.asarray(common[0] @ single(self.beta), dtype=float)
        base = [prior(kernel, X) for kernel in self.kernels]
        if common and not self.coupled:
            base = [whole - product(W, W) for whole, W in zip(base, common, strict=True)]

        def covariances() -> Iterator[Array]:
            for c in range(int(np.prod(shape))):
                rest = base[c % len(base)]
                yield rest - product(own[c], common[c % len(Ks)] if self.coupled else own[c]) if own else rest

        return mean.reshape(len(X), -1, *shape), covariances(), own

    def _common(self, Ks: list[Array]) -> list[Array]:
        """Return the rows T k of each kernel, or Tᵀ k for coupled functions, in the memory of K if possible."""
        if self.root is None:
            return []
        return [matmul(K, self.root) if self.coupled else self.whiten(K) for K in Ks]

    def whiten(self, K: Array) -> Array:
        """Return rows T k for rows k, in the lower precision of T and K, in the memory of K if the precisions agree."""
        root: Any = self.root
        if np.float32 in (K.dtype, root.dtype):
            root = root if root.dtype == np.float32 else single(root)
            K = K if K.dtype == np.float32 else single(K)
        return drop_tiny(times_lower_transposed(K, root))

    def marginals(self, X: Inputs, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Return the means (n, S, *shape) and the (co)variances of the latent values at each row."""
        mean, variances, own = self.moments(X, shape, diag, by_row)
        # The difference of two equal numbers may be negative by rounding.
        var = np.maximum(np.stack(list(variances), axis=1), 0.0)
        if not shape:
            return mean, var[:, 0]
        cov = np.zeros((len(X), *shape, *shape))
        if self.coupled:
            rows = np.stack(own, axis=1)
            cov += rows @ rows.transpose(0, 2, 1)
        np.einsum("icc->ic", cov)[...] += var
        return mean, cov

    def joint(self, X: Inputs, shape: tuple[int, ...]) -> tuple[Array, Iterator[Array]]:
        """Return the means (n, S, *shape), and covariances over the rows: one for each function, (n, n).

        Coupled functions have one for all of them, (n, C, n, C).
        """
        if not self.coupled:
            require_memory(len(X), 4.0, joint=True)
            return self.moments(X, shape, matrix, all_pairs)[:2]
        n, C = len(X), self.n_functions
        require_memory(n * C, 2.0, joint=True)
        mean, blocks, own = self.moments(X, shape, matrix, all_pairs)
        rows = np.stack(own, axis=1).reshape(n * C, -1)
        cov = all_pairs(rows, rows).reshape(n, C, n, C)
        for c, block in enumerate(blocks):
            cov[:, c, :, c] += block
        return mean, iter([cov])


def _times(K: Array, F: Array) -> Array:
    """Return the rows F k for rows k, in the precision of F."""
    return matmul_transposed(single(K) if F.dtype == np.float32 else K, F)
