"""Posterior processes: their predictions, and the Gaussian one over any number of latent functions, for all methods.

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

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import (
    drop_tiny,
    matmul,
    matmul_transposed,
    matvec,
    require_memory,
    single,
    times_lower_transposed,
)
from gpclass.core.protocols import Array, Inputs, Part
from gpclass.core.registry import stored
from gpclass.kernels import diag, matrix

Product = Callable[[Array, Array], Array]
ONE = np.ones(1)  # weights of a process with one part


class Process(ABC):
    """A latent process: one Gaussian process, or a mixture of several, each part with its own hyperparameters."""

    __slots__ = ()

    @property
    def weights(self) -> tuple[Array, ...]:
        """The weights of each part: one part of weight one, unless it is a mixture."""
        return (ONE,)

    @property
    @abstractmethod
    def block_size(self) -> int:
        """Number of rows that are predicted at a time, which bounds the memory."""

    @property
    @abstractmethod
    def latent_shape(self) -> tuple[int, ...]:
        """Shape of the latent values at one input: () for one function, (C,) for one per class."""

    @abstractmethod
    def gaussians(self) -> Iterator[Any]:
        """Yield each part as a `GaussianProcess`, with a latent function for each draw and class."""

    def blocks(self, X: Inputs) -> Iterator[tuple[slice, list[Part]]]:
        """Yield the rows of X in blocks, with every part at those rows."""
        for start in range(0, len(X), self.block_size):
            rows = slice(start, min(start + self.block_size, len(X)))
            parts = []
            for gaussian, weight in zip(self.gaussians(), self.weights, strict=True):
                mean, cov = gaussian.marginals(X[rows], self.latent_shape)
                fine = [np.isfinite(each.reshape(len(each), -1)).all(axis=1) for each in (mean, cov)]
                if not np.all(fine):
                    row = start + int(np.argmin(fine[0] & fine[1]))
                    raise ValueError(
                        f"The kernel has no finite covariance at row {row} of X: such inputs are outside its range."
                    )
                parts.append(Part(mean, cov, weight))
            yield rows, parts

    def latent(self, X: Inputs) -> tuple[Array, Array]:
        """Return mean and variance of f at each row, or means (n, C) and covariances (n, C, C)."""
        shape = (len(X), *self.latent_shape)
        mean, cov = np.empty(shape), np.empty((*shape, *self.latent_shape))
        for rows, parts in self.blocks(X):
            mean[rows], cov[rows] = moments(parts)
        return mean, cov

    def mean(self, X: Inputs) -> Array:
        """Return the mean of f at each row."""
        return self.latent(X)[0]

    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return the mean of f and its full covariance over the rows: (n, n), or (n, C, n, C)."""
        n, C = len(X), int(np.prod(self.latent_shape))
        require_memory(n * C, 3.0, joint=True)
        mean, cov = self.mean(X), np.zeros((n, C, n, C))
        for gaussian, weight in zip(self.gaussians(), self.weights, strict=True):
            means, blocks = gaussian.joint(X, self.latent_shape)
            if len(weight) > 1 or len(self.weights) > 1:
                away = (means - mean[:, None]).reshape(n, -1, C).swapaxes(1, 2).reshape(n * C, -1)
                cov += ((away * weight) @ away.T).reshape(cov.shape)
            for c, block in enumerate(blocks):
                part = cov if block.ndim == 4 else cov[:, c, :, c]
                part += weight.sum() * block
        return mean, cov if self.latent_shape else cov.reshape(n, n)

    def sample(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Return joint draws of f at the rows of X, of shape (n, n_samples) or (n, C, n_samples).

        The square root comes from the eigenvalues, so a singular covariance needs no jitter.
        """
        weights, first = np.concatenate(self.weights), np.cumsum([0, *map(len, self.weights)])
        chosen = np.zeros(n_samples, dtype=int)
        if len(weights) > 1:
            chosen = rng.choice(len(weights), size=n_samples, p=weights / weights.sum())
        out = np.empty((len(X), *self.latent_shape, n_samples))
        for i, gaussian in enumerate(self.gaussians()):
            mine = np.flatnonzero((first[i] <= chosen) & (chosen < first[i + 1]))
            if not mine.size:
                continue
            means, blocks = gaussian.joint(X, self.latent_shape)
            noise, last = [], None
            for block in blocks:
                if block is not last:  # the functions of a mixture share a covariance
                    order = int(np.sqrt(block.size))
                    last, root = block, symmetric_root(block.reshape(order, order))
                noise.append(root @ rng.standard_normal((len(root), mine.size)))
            shape = (len(X), *self.latent_shape, mine.size)
            out[..., mine] = np.moveaxis(means[:, chosen[mine] - first[i]], 1, -1)
            out[..., mine] += np.stack(noise, axis=1).reshape(shape)
        return out


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
    """

    kernels: tuple[Kernel, ...]
    inputs: Inputs
    alpha: Array
    root: Array | None = field(default=None, metadata={"stored": "lower"})
    factors: tuple[Array, ...] = ()
    coupled: bool = False
    offset: Array | None = None

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
        if not wide or parted:
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
        Ks = [matrix(kernel, X, self.inputs) for kernel in self.kernels]
        mean = self._mean(Ks)
        own = [matmul_transposed(K, F) for F, K in zip(self.factors, cycle(Ks), strict=False)]
        common, root = [], self.root
        if root is not None:  # rows Tᵀ k for coupled functions, else T k, in the memory of K
            left = (
                Ks if root.dtype == float else map(single, Ks)
            )  # draws of effects have it in single precision
            times = matmul if self.coupled else times_lower_transposed
            common = [drop_tiny(times(K, root)) for K in left]
        base = [prior(kernel, X) for kernel in self.kernels]
        if common and not self.coupled:
            base = [whole - product(W, W) for whole, W in zip(base, common, strict=True)]

        def covariances() -> Iterator[Array]:
            for c in range(int(np.prod(shape))):
                rest = base[c % len(base)]
                yield rest - product(own[c], common[c % len(Ks)] if self.coupled else own[c]) if own else rest

        return mean.reshape(len(X), -1, *shape), covariances(), own

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


def moments(parts: Sequence[Part]) -> tuple[Array, Array]:
    """Return mean and (co)variance of the mixture of all parts, at each row."""
    if len(parts) == 1 and len(parts[0].weight) == 1:
        return parts[0].mean[:, 0], parts[0].cov
    mean = np.sum([np.einsum("ns...,s->n...", p.mean, p.weight) for p in parts], axis=0)
    cov = np.zeros((*mean.shape, *mean.shape[1:]))
    for p in parts:
        away = p.mean - mean[:, None]
        outer = away**2 if away.ndim == 2 else away[..., :, None] * away[..., None, :]
        cov += np.einsum("ns...,s->n...", outer, p.weight) + p.weight.sum() * p.cov
    return mean, cov


def symmetric_root(cov: Array) -> Array:
    """Return the symmetric A with cov = A A, for one matrix or a stack of them; singular ones are fine.

    Unlike the eigenvectors, which may swap or change their signs, it is a smooth function of the covariance.
    """
    values, vectors = np.linalg.eigh(cov)
    return (vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]) @ vectors.swapaxes(-1, -2)
