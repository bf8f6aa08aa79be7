"""The base class of posterior processes, which predict from weighted Gaussian processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpclass.core.memory import require_memory
from gpclass.core.protocols import Array, Inputs, Part

ONE = np.ones(1)  # weights of a process with one part


class Process(ABC):
    """A latent process: Gaussian, or a mixture of Gaussians with one theta per part."""

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
                        f"The kernel has no finite covariance at row {row} of X: such inputs are beyond its range."
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
