"""What every posterior process has in common: prediction in blocks of rows, from weighted Gaussian parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gpclass.core.protocols import Array, Inputs, Part
from gpclass.kernels import pullback_inputs

ONE = np.ones(1)  # the weight of a single part


class Process(ABC):
    """A latent process: Gaussian, or a mixture of Gaussians that share theta part by part."""

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
    def parts(self, X: Inputs) -> list[Part]:
        """Return the parts at the rows of one block."""

    @abstractmethod
    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return mean and full covariance of f over the rows of X."""

    def blocks(self, X: Inputs) -> Iterator[tuple[slice, list[Part]]]:
        """Yield the rows of X in blocks, with every part at those rows."""
        for start in range(0, len(X), self.block_size):
            rows = slice(start, min(start + self.block_size, len(X)))
            parts = self.parts(X[rows])
            for part in parts:
                _check(part, start)
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

    def by_block(self, X: Inputs, mean: Callable[[Inputs], Array]) -> Array:
        """Return the means at all rows from a function that computes those of a block."""
        out = np.empty((len(X), *self.latent_shape))
        for start in range(0, len(X), self.block_size):
            rows = slice(start, start + self.block_size)
            out[rows] = mean(X[rows])
        return out

    def sample(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Draw f jointly at the rows of X; shape (n, n_samples), or (n, C, n_samples).

        The square root comes from the eigenvalues, so a singular covariance needs no jitter.
        """
        mean, cov = self.covariance(X)
        root = symmetric_root(cov.reshape(mean.size, mean.size))
        draws: Array = mean.reshape(-1, 1) + root @ rng.standard_normal((mean.size, n_samples))
        return draws.reshape(*mean.shape, n_samples)

    def input_gradient(self, X: Array, adjoints: Sequence[tuple[Array, Array]]) -> Array:
        """Return Σ_parts Σ_s w_s (first_s d mean_s/dx + ½ second_s d var/dx) at each row, shape (n, d)."""
        raise ValueError("The gradient of the latent moments exists for one latent function only.")


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
    out: Array = (vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]) @ vectors.swapaxes(-1, -2)
    return out


def diag_gradient(kernel: Any, X: Array) -> Array:
    """Return d k(x, x) / d x = 2 ∂₁k(x, z) at z = x, in small squares of rows."""
    if kernel.is_stationary():
        return np.zeros(X.shape)
    out = np.empty(X.shape)
    for start in range(0, len(X), 32):
        rows = slice(start, start + 32)
        out[rows] = 2.0 * pullback_inputs(kernel, X[rows], X[rows], np.eye(len(X[rows])))
    return out


def _check(part: Part, start: int) -> None:
    if np.isfinite(part.mean).all() and np.isfinite(part.cov).all():
        return
    n = len(part.mean)
    fine = np.isfinite(part.mean.reshape(n, -1)).all(axis=1) & np.isfinite(part.cov.reshape(n, -1)).all(
        axis=1
    )
    raise ValueError(
        f"The kernel has no finite covariance at row {start + int(np.argmin(fine))} of X: such inputs are "
        "beyond its range."
    )
