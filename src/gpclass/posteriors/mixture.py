"""The posterior as a mixture over draws, from Monte Carlo: what it predicts anywhere.

Given theta and the latent values f at the data, f(x) is Gaussian with the prior's conditional moments

    mean = k(x, P) alpha,  alpha = K_PP⁻¹ f_P        var = k(x, x) - |L⁻¹ k(P, x)|²,  K_PP = L Lᵀ

where P are as many of the data as K has rank. The variance is that of all draws at one theta, so draws that
share theta are one component, and a prediction is the average over all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import matmul, pivoted_root, require_memory
from gpclass.core.protocols import Array, Inputs
from gpclass.core.registry import stored
from gpclass.kernels import diag, matrix, pullback_inputs
from gpclass.posteriors.gaussian import diag_gradient
from gpclass.validation import take

BLOCK = 1 << 21  # numbers of draws x rows at a time


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """Draws of f at the data, shape (draws, n), that share a kernel; their weights sum to its share."""

    kernel: Kernel
    f: Array = field(metadata={"shape": "s,n"})
    weight: Array = field(metadata={"shape": "s"})
    jitter: float = 0.0

    def check_stored(self) -> None:
        """Raise unless weights and jitter are possible."""
        if not ((self.weight >= 0.0).all() and 0.0 <= self.jitter < np.inf):
            raise ValueError("Its weights or its jitter are negative.")


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows predicted by one component: means (rows, draws), variance (rows,), weights (draws,)."""

    mean: Array
    var: Array
    weight: Array


def joined(parts: Sequence[Part]) -> tuple[Array, Array]:
    """Return means and standard deviations of all components side by side, both (rows, draws)."""
    stds = [np.broadcast_to(np.sqrt(part.var)[:, None], part.mean.shape) for part in parts]
    return np.concatenate([part.mean for part in parts], axis=1), np.concatenate(stds, axis=1)


@stored
@dataclass(eq=False)
class MixturePosterior:
    """f as a process over all inputs, given draws of it at the data."""

    inputs: Inputs = field(metadata={"shape": "n,..."})
    components: Sequence[Component]

    def __post_init__(self) -> None:
        self.components = tuple(self.components)
        # One component is solved once; many would be as many n x n matrices.
        self._solved = lru_cache(maxsize=1)(self._solve)

    def __getstate__(self) -> dict[str, Any]:
        return {"inputs": self.inputs, "components": self.components}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["inputs"], state["components"])  # type: ignore[misc]

    def check_stored(self) -> None:
        """Raise unless the components belong to the inputs and their weights sum to one."""
        shapes = all(each.f.shape[1] == len(self.inputs) > 0 for each in self.components)
        if not (self.components and shapes and abs(float(self.weight.sum()) - 1.0) < 1e-6):
            raise ValueError("The draws do not belong to the inputs, or their weights do not sum to one.")
        row = take(self.inputs, [0])
        if not all(np.isfinite(matrix(each.kernel, row, row)).all() for each in self.components):
            raise ValueError("Its kernel has no finite covariances.")

    @property
    def n_draws(self) -> int:
        """Number of draws in all components."""
        return sum(len(c.weight) for c in self.components)

    @property
    def weight(self) -> Array:
        """Weights of the draws in all components, one after another."""
        return np.concatenate([c.weight for c in self.components])

    def _solve(self, i: int) -> tuple[Inputs, Array, Array]:
        """Return the inputs P, alpha of shape (rank, draws) and L⁻¹ for one component."""
        component = self.components[i]
        require_memory(len(self.inputs), 4.0)
        K = matrix(component.kernel, self.inputs)
        K[np.diag_indices_from(K)] = diag(component.kernel, self.inputs) + component.jitter
        A, pivots = pivoted_root(K)
        L = A[pivots]
        root = solve_triangular(L, np.eye(len(L)), lower=True, check_finite=False)
        alpha = root.T @ (root @ component.f[:, pivots].T)
        return take(self.inputs, pivots), alpha, root

    def blocks(self, X: Inputs) -> Iterator[tuple[slice, list[Part]]]:
        """Yield rows of X with what every component says of them."""
        step = max(1, BLOCK // max(self.n_draws, len(self.inputs)))
        if len(self.components) > 1:  # solving again for each block must not be what takes the time
            step = max(step, 256)
        for start in range(0, len(X), step):
            rows = slice(start, min(start + step, len(X)))
            yield rows, [self._part(i, X[rows]) for i in range(len(self.components))]

    def _part(self, i: int, X: Inputs) -> Part:
        P, alpha, root = self._solved(i)
        kernel = self.components[i].kernel
        K = matrix(kernel, X, P)
        V = matmul(K, np.ascontiguousarray(root.T))
        var = np.maximum(diag(kernel, X) - np.einsum("ij,ij->i", V, V), 0.0)
        return Part(matmul(K, np.ascontiguousarray(alpha)), var, self.components[i].weight)

    def latent(self, X: Inputs) -> tuple[Array, Array]:
        """Return the mean and the variance of f at each row of X."""
        mean, var = np.empty(len(X)), np.empty(len(X))
        for rows, parts in self.blocks(X):
            mean[rows] = sum(part.mean @ part.weight for part in parts)
            centred = ((part.mean - mean[rows, None]) ** 2 @ part.weight for part in parts)
            share = (part.weight.sum() * part.var for part in parts)
            var[rows] = sum(centred) + sum(share)
        return mean, var

    def mean(self, X: Inputs) -> Array:
        """Return the mean of f at each row of X."""
        return self.latent(X)[0]

    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return the mean of f and its full covariance over the rows of X."""
        require_memory(len(X), 3.0)
        mean, _ = self.latent(X)
        cov = np.zeros((len(X), len(X)))
        for i, component in enumerate(self.components):
            means, conditional = self.joint(i, X)
            away = means - mean[:, None]
            cov += (away * component.weight) @ away.T + component.weight.sum() * conditional
        return mean, cov

    def joint(self, i: int, X: Inputs) -> tuple[Array, Array]:
        """Return the means (rows, draws) and the conditional covariance of one component."""
        P, alpha, root = self._solved(i)
        kernel = self.components[i].kernel
        K = matrix(kernel, X, P)
        V = K @ root.T
        cov = matrix(kernel, X)
        cov -= V @ V.T
        return K @ alpha, cov

    def sample(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Draw f jointly at the rows of X; shape (len(X), n_samples)."""
        weights = self.weight
        chosen = rng.choice(len(weights), size=n_samples, p=weights / weights.sum())
        first = np.cumsum([0, *(len(c.weight) for c in self.components)])
        out = np.empty((len(X), n_samples))
        for i in range(len(self.components)):
            mine = np.flatnonzero((first[i] <= chosen) & (chosen < first[i + 1]))
            if mine.size:
                means, cov = self.joint(i, X)
                values, vectors = np.linalg.eigh(cov)
                root = vectors * np.sqrt(np.maximum(values, 0.0))
                out[:, mine] = means[:, chosen[mine] - first[i]] + root @ rng.standard_normal(
                    (len(X), mine.size)
                )
        return out

    def slopes(self, i: int, X: Array, first: Array, second: Array) -> Array:
        """Return Σ_s w_s (first_s d mean_s/dx + ½ second_s d var/dx) at each row, for one component.

        ``first`` and ``second`` have the shape (rows, draws). The means are linear in alpha, so the draws
        are summed before the kernel is differentiated.
        """
        P, alpha, root = self._solved(i)
        component = self.components[i]
        G = (first * component.weight) @ alpha.T
        half = 0.5 * (second @ component.weight)
        K = matrix(component.kernel, X, P)
        G -= 2.0 * half[:, None] * (K @ root.T) @ root
        out: Array = pullback_inputs(component.kernel, X, P, G)
        return out + half[:, None] * diag_gradient(component.kernel, X)
