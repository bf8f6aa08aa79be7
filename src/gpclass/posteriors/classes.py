"""Gaussian posteriors over several latent functions, one per class.

From n training inputs, with E_c = V_c Lᵀ and L of `priors.factors`,

    mean_c(x) = offset_c + k_c(x, X) alpha_c
    cov_cd(x, z) = [c = d] (k_c(x, z) - k_c(x, X) E_c k_c(X, z)) + k_c(x, X) V_c V_dᵀ k_d(X, z),

and from inducing inputs C independent processes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import matmul, pair_products
from gpclass.core.memory import require_memory
from gpclass.core.protocols import Array, Inputs, Part
from gpclass.core.registry import stored
from gpclass.kernels import diag, matrix
from gpclass.posteriors.gaussian import BLOCK, GaussianProcess
from gpclass.posteriors.process import ONE, Process, check_reduced


@stored
@dataclass(frozen=True, slots=True, eq=False)
class ClassProcesses(Process):
    """C Gaussian processes with a common posterior.

    ``factors`` holds V_c, or E_c where they are independent, ``root`` L, or None. ``offset`` are the prior means, None
    for zero.
    """

    kernels: tuple[Kernel, ...]
    inputs: Inputs = field(metadata={"shape": "n,..."})
    alpha: Array = field(metadata={"shape": "n,c"})
    factors: Array = field(metadata={"shape": "c,n,n"})
    root: Array | None = field(metadata={"shape": "n,n", "stored": "lower"})
    offset: Array | None = field(default=None, metadata={"shape": "c"})

    block_size = 512

    @property
    def latent_shape(self) -> tuple[int]:
        """Number of latent functions."""
        return (self.alpha.shape[1],)

    def check_stored(self) -> None:
        """Raise unless the data reduce the variance of the latent values, at a few inputs."""
        if len(self.kernels) not in (1, *self.latent_shape):
            raise ValueError("Its kernels are not one, or one for each class.")
        check_reduced(self, self.inputs[:4], self.kernels)

    def mean(self, X: Inputs) -> Array:
        """Return the means of f at each row of X, shape (n, C)."""
        return self.by_block(
            X, lambda B: self._means([matrix(kernel, B, self.inputs) for kernel in self.kernels])
        )

    def _means(self, Ks: list[Array]) -> Array:
        if len(Ks) == 1:
            out = matmul(Ks[0], np.ascontiguousarray(self.alpha))
        else:
            out = np.stack([K @ self.alpha[:, c] for c, K in enumerate(Ks)], axis=1)
        return out if self.offset is None else out + self.offset

    def parts(self, X: Inputs) -> list[Part]:
        """Return the one part at the rows of a block."""
        (C,) = self.latent_shape
        Ks = [matrix(kernel, X, self.inputs) for kernel in self.kernels]
        Y, rotated = self._products(Ks)
        cov = np.zeros((len(X), C, C)) if self.root is None else pair_products(Y)
        for c in range(C):
            prior_var = diag(self.kernels[c % len(self.kernels)], X)
            forms = np.einsum("ij,ij->i", Y[:, c], rotated[c % len(Ks)])
            cov[:, c, c] += np.maximum(prior_var - forms, 0.0)
        return [Part(self._means(Ks)[:, None], cov, ONE)]

    def _products(self, Ks: list[Array]) -> tuple[Array, list[Array]]:
        """Return Y_c = k(x, X) V_c as (n, C, number of data), and k(x, X) L for each kernel.

        Their products are k(x, X) E_c k(X, z); where the functions are independent they are those with E_c
        and the identity.
        """
        (C,) = self.latent_shape
        Y = np.stack([matmul(Ks[c % len(Ks)], self.factors[c]) for c in range(C)], axis=1)
        return Y, Ks if self.root is None else [matmul(K, self.root) for K in Ks]

    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return means (n, C) and the full covariance (n, C, n, C) over the rows of X."""
        (C,), n = self.latent_shape, len(X)
        require_memory(n * C, 2.0, joint=True)
        Ks = [matrix(kernel, X, self.inputs) for kernel in self.kernels]
        Y, rotated = self._products(Ks)
        flat = np.zeros((n * C, 1)) if self.root is None else Y.reshape(n * C, -1)
        cov = (flat @ flat.T).reshape(n, C, n, C)
        for c in range(C):
            kernel = self.kernels[c % len(self.kernels)]
            cov[:, c, :, c] += matrix(kernel, X) - Y[:, c] @ rotated[c % len(Ks)].T
        return self._means(Ks), cov


@stored
@dataclass(frozen=True, slots=True, eq=False)
class IndependentProcesses(Process):
    """C processes with the same kernel and inducing inputs, independent of each other.

    ``offset`` are the prior means, None for zero.
    """

    processes: tuple[GaussianProcess, ...]
    offset: Array | None = field(default=None, metadata={"shape": "c"})

    block_size = BLOCK

    @property
    def latent_shape(self) -> tuple[int]:
        """Number of latent functions."""
        return (len(self.processes),)

    def check_stored(self) -> None:
        """Raise unless there are at least two processes at the same inputs."""
        first = self.processes[0] if self.processes else None
        if first is None or any(not np.array_equal(p.inputs, first.inputs) for p in self.processes):
            raise ValueError("Its processes do not have the same inducing inputs.")
        if self.offset is not None and len(self.offset) != len(self.processes):
            raise ValueError("Its prior means are not one for each process.")

    @property
    def inputs(self) -> Inputs:
        """The inducing inputs."""
        return self.processes[0].inputs

    @property
    def alpha(self) -> Array:
        """Coefficients of the means, one column per function."""
        return np.ascontiguousarray(np.stack([each.alpha for each in self.processes], axis=1))

    def mean(self, X: Inputs) -> Array:
        """Return the means of f at each row of X, shape (n, C)."""
        first, alpha = self.processes[0], self.alpha
        return self.by_block(X, lambda B: self._shifted(matmul(matrix(first.kernel, B, first.inputs), alpha)))

    def _shifted(self, mean: Array) -> Array:
        return mean if self.offset is None else mean + self.offset

    def parts(self, X: Inputs) -> list[Part]:
        """Return the one part at the rows of a block."""
        (C,), first = self.latent_shape, self.processes[0]
        K, prior_var = matrix(first.kernel, X, first.inputs), diag(first.kernel, X)
        cov = np.zeros((len(X), C, C))
        for c, each in enumerate(self.processes):
            V = each.whiten(K.copy())
            cov[:, c, c] = np.maximum(prior_var - np.einsum("ij,ij->i", V, V), 0.0)
        return [Part(self._shifted(matmul(K, self.alpha))[:, None], cov, ONE)]

    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return means (n, C) and the full covariance (n, C, n, C) over the rows of X."""
        (C,), n = self.latent_shape, len(X)
        require_memory(n * C, 2.0, joint=True)
        mean, cov = np.empty((n, C)), np.zeros((n, C, n, C))
        for c, each in enumerate(self.processes):
            mean[:, c], cov[:, c, :, c] = each.covariance(X)
        return self._shifted(mean), cov

    def sample(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Draw f jointly at the rows of X; shape (n, C, n_samples)."""
        draws = np.stack([each.sample(X, n_samples, rng) for each in self.processes], axis=1)
        return draws if self.offset is None else draws + self.offset[:, None]
