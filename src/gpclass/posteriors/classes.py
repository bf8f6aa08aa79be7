"""The Gaussian posterior over several latent functions, one a class.

    mean_c(x) = k_c(x, X) alpha_c
    cov_cd(x, z) = [c = d] (k_c(x, z) - k_c(x, X) E_c k_c(X, z)) + k_c(x, X) V_c V_dᵀ k_d(X, z)

with E_c = V_c Lᵀ and L of `priors.coupled`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import matmul, pair_products, require_memory
from gpclass.core.protocols import Array, Inputs
from gpclass.core.registry import stored
from gpclass.kernels import diag, matrix

BLOCK = 512  # rows predicted at a time


@stored
@dataclass(frozen=True, slots=True, eq=False)
class JointPosterior:
    """C Gaussian processes with a common posterior.

    ``factors`` holds V_c, or E_c where they are independent, ``root`` L, or None.
    """

    kernels: tuple[Kernel, ...]
    inputs: Inputs = field(metadata={"shape": "n,..."})
    alpha: Array = field(metadata={"shape": "n,c"})
    factors: Array = field(metadata={"shape": "c,n,n"})
    root: Array | None = field(metadata={"shape": "n,n", "stored": "lower"})

    def check_stored(self) -> None:
        """Raise unless data leave latent values less uncertain than they were, at a few inputs."""
        rows = self.inputs[:4]
        if len(self.kernels) not in (1, self.n_classes):
            raise ValueError("Its kernels are not one, or one for each class.")
        mean, cov = self.latent(rows)
        prior = np.max([diag(kernel, rows) for kernel in self.kernels], axis=0)
        share = np.einsum("icc->ci", cov) / np.maximum(prior, 1e-300)
        if not (len(mean) and share.max() <= 1.001):
            raise ValueError("The variances of its posterior are larger than those of its prior.")

    @property
    def n_classes(self) -> int:
        """Number of latent functions."""
        return int(self.alpha.shape[1])

    def mean(self, X: Inputs) -> Array:
        """Return the means of f at each row of X, shape (n, C)."""
        out = np.empty((len(X), self.n_classes))
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            Ks = [matrix(kernel, X[rows], self.inputs) for kernel in self.kernels]
            out[rows] = self._means(Ks)
        return out

    def _means(self, Ks: list[Array]) -> Array:
        if len(Ks) == 1:
            return matmul(Ks[0], np.ascontiguousarray(self.alpha))
        return np.stack([K @ self.alpha[:, c] for c, K in enumerate(Ks)], axis=1)

    def latent(self, X: Inputs) -> tuple[Array, Array]:
        """Return means (n, C) and covariances (n, C, C) of the latent values at each row of X."""
        C = self.n_classes
        mean, cov = np.empty((len(X), C)), np.empty((len(X), C, C))
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            Ks = [matrix(kernel, X[rows], self.inputs) for kernel in self.kernels]
            mean[rows] = self._means(Ks)
            Y, rotated = self._parts(Ks)
            cov[rows] = 0.0 if self.root is None else pair_products(Y)
            for c in range(C):
                prior_var = diag(self.kernels[c % len(self.kernels)], X[rows])
                forms = np.einsum("ij,ij->i", Y[:, c], rotated[c % len(Ks)])
                cov[rows, c, c] += np.maximum(prior_var - forms, 0.0)
        if not (np.isfinite(mean).all() and np.isfinite(cov).all()):
            row = int(np.argmin(np.isfinite(mean).all(axis=1) & np.isfinite(cov).all(axis=(1, 2))))
            raise ValueError(
                f"The kernel {self.kernels[0]} has no finite covariance at row {row} of X: such inputs are "
                "beyond its range."
            )
        return mean, cov

    def _parts(self, Ks: list[Array]) -> tuple[Array, list[Array]]:
        """Return Y_c = k(x, X) V_c as (n, C, number of data), and k(x, X) L for each kernel.

        Their products are k(x, X) E_c k(X, z); where the functions are independent they are those with E_c
        and the identity.
        """
        Y = np.stack([matmul(Ks[c % len(Ks)], self.factors[c]) for c in range(self.n_classes)], axis=1)
        return Y, Ks if self.root is None else [matmul(K, self.root) for K in Ks]

    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return means (n, C) and the full covariance (n, C, n, C) over the rows of X."""
        C, n = self.n_classes, len(X)
        require_memory(n * C, 2.0)
        Ks = [matrix(kernel, X, self.inputs) for kernel in self.kernels]
        Y, rotated = self._parts(Ks)
        flat = np.zeros((n * C, 1)) if self.root is None else Y.reshape(n * C, -1)
        cov = (flat @ flat.T).reshape(n, C, n, C)
        for c in range(C):
            kernel = self.kernels[c % len(self.kernels)]
            cov[:, c, :, c] += matrix(kernel, X) - Y[:, c] @ rotated[c % len(Ks)].T
        return self._means(Ks), cov

    def sample(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Draw f jointly at the rows of X; shape (n, C, n_samples)."""
        mean, cov = self.covariance(X)
        n, C = mean.shape
        values, vectors = np.linalg.eigh(cov.reshape(n * C, n * C))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        draws = root @ rng.standard_normal((n * C, n_samples))
        out: Array = mean[:, :, None] + draws.reshape(n, C, n_samples)
        return out
