"""The posterior as a mixture over draws, from Monte Carlo.

Given theta and the latent values f at the data, f(x) is Gaussian with the prior's conditional moments

    mean = k(x, P) alpha,  alpha = K_PP⁻¹ f_P        var = k(x, x) - |L⁻¹ k(P, x)|²,  K_PP = L Lᵀ

where P are as many of the data as K has rank. The variance is that of all draws at one theta, so draws that
share theta are one component, and a prediction is the average over all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import pivoted_root
from gpclass.core.memory import require_memory
from gpclass.core.protocols import Array, Inputs, Part
from gpclass.core.registry import stored
from gpclass.kernels import diag, matrix
from gpclass.posteriors.gaussian import GaussianProcess, all_pairs, by_row
from gpclass.posteriors.process import Process, symmetric_root

BLOCK = 1 << 21  # numbers of draws x rows at a time


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """Draws of f at the data, shape (draws, n) or (draws, n, C), that share a kernel.

    Their weights sum to the component's share.
    """

    kernel: Kernel
    f: Array = field(metadata={"shape": "s,n|s,n,c"})
    weight: Array = field(metadata={"shape": "s"})
    jitter: float = 0.0

    def check_stored(self) -> None:
        """Raise unless weights and jitter are possible."""
        if not ((self.weight >= 0.0).all() and 0.0 <= self.jitter < np.inf):
            raise ValueError("Its weights or its jitter are negative.")


@stored
@dataclass(frozen=True, slots=True, eq=False)
class MixtureProcess(Process):
    """f as a process over all inputs, given draws of it at the data."""

    inputs: Inputs = field(metadata={"shape": "n,..."})
    components: tuple[Component, ...]
    # One component is solved once and kept; many would be as many n x n matrices.
    _last: list[tuple[int, GaussianProcess]] = field(
        default_factory=list, repr=False, metadata={"stored": False}, compare=False
    )

    def check_stored(self) -> None:
        """Raise unless the components belong to the inputs and their weights sum to one."""
        shapes = all(each.f.shape[1] == len(self.inputs) > 0 for each in self.components)
        total = sum(float(weight.sum()) for weight in self.weights)
        if not (self.components and shapes and abs(total - 1.0) < 1e-6):
            raise ValueError("The draws do not belong to the inputs, or their weights do not sum to one.")
        row = self.inputs[:1]
        if not all(np.isfinite(matrix(each.kernel, row, row)).all() for each in self.components):
            raise ValueError("Its kernel has no finite covariances.")

    @property
    def weights(self) -> tuple[Array, ...]:
        """The weights of the draws of each component."""
        return tuple(c.weight for c in self.components)

    @property
    def latent_shape(self) -> tuple[int, ...]:
        """Shape of the latent values at one input."""
        return self.components[0].f.shape[2:]

    @property
    def block_size(self) -> int:
        """Number of rows that are predicted at a time."""
        n_values = sum(c.f.size // c.f.shape[1] for c in self.components)
        step = max(1, BLOCK // max(int(n_values), len(self.inputs)))
        # With many components the solves, repeated for each block, must not dominate.
        return max(step, 256) if len(self.components) > 1 else step

    def _solve(self, i: int) -> GaussianProcess:
        """Return one component as a process with a latent function for each draw and function."""
        if self._last and self._last[0][0] == i:
            return self._last[0][1]
        component = self.components[i]
        require_memory(len(self.inputs), 4.0)
        K = matrix(component.kernel, self.inputs)
        K[np.diag_indices_from(K)] = diag(component.kernel, self.inputs) + component.jitter
        A, pivots = pivoted_root(K)
        L = A[pivots]
        root = solve_triangular(L, np.eye(len(L)), lower=True, check_finite=False)
        f = component.f[:, pivots].swapaxes(0, 1).reshape(len(pivots), -1)
        inputs = (
            self.inputs[pivots] if isinstance(self.inputs, np.ndarray) else [self.inputs[p] for p in pivots]
        )
        solved = GaussianProcess((component.kernel,), inputs, root.T @ (root @ f), root)
        self._last[:] = [(i, solved)]
        return solved

    def parts(self, X: Inputs) -> list[Part]:
        """Return every component at the rows of a block."""
        return [self._part(i, X) for i in range(len(self.components))]

    def _part(self, i: int, X: Inputs) -> Part:
        mean, variances, _ = self._solve(i).moments(X, diag, by_row)
        var = np.maximum(next(variances), 0.0)
        cov = var if not self.latent_shape else var[:, None, None] * np.eye(self.latent_shape[0])
        return Part(mean.reshape(len(X), -1, *self.latent_shape), cov, self.components[i].weight)

    def _joint(self, i: int, X: Inputs) -> tuple[Array, Array]:
        """Return the means (rows, draws, ...) and the conditional covariance over rows of one component."""
        mean, covariances, _ = self._solve(i).moments(X, matrix, all_pairs)
        return mean.reshape(len(X), -1, *self.latent_shape), next(covariances)

    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return the mean of f and its full covariance over the rows: (n, n), or (n, C, n, C)."""
        C = self.latent_shape[0] if self.latent_shape else 1
        n = len(X)
        require_memory(n * C, 3.0, joint=True)
        mean = self.mean(X)
        cov = np.zeros((n, C, n, C))
        for i, component in enumerate(self.components):
            means, conditional = self._joint(i, X)
            away = (means - mean[:, None]).reshape(n, -1, C).swapaxes(1, 2).reshape(n * C, -1)
            cov += ((away * component.weight) @ away.T).reshape(cov.shape)
            for c in range(C):
                cov[:, c, :, c] += component.weight.sum() * conditional
        return mean, cov if self.latent_shape else cov.reshape(n, n)

    def sample(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Draw f jointly at the rows of X; shape (n, n_samples), or (n, C, n_samples)."""
        weights = np.concatenate(self.weights)
        chosen = rng.choice(len(weights), size=n_samples, p=weights / weights.sum())
        first = np.cumsum([0, *(len(w) for w in self.weights)])
        out = np.empty((len(X), *self.latent_shape, n_samples))
        for i in range(len(self.components)):
            mine = np.flatnonzero((first[i] <= chosen) & (chosen < first[i + 1]))
            if mine.size:
                means, cov = self._joint(i, X)
                shape = (len(X), *self.latent_shape, mine.size)
                noise = np.tensordot(symmetric_root(cov), rng.standard_normal(shape), axes=1)
                out[..., mine] = np.moveaxis(means[:, chosen[mine] - first[i]], 1, -1) + noise
        return out

    def input_gradient(self, X: Array, adjoints: Sequence[tuple[Array, Array]]) -> Array:
        """Return Σ_parts Σ_s w_s (first_s d mean_s/dx + ½ second_s d var/dx) at each row."""
        if self.latent_shape:
            return Process.input_gradient(self, X, adjoints)
        out = np.zeros(X.shape)
        for i, (weight, (first, second)) in enumerate(zip(self.weights, adjoints, strict=True)):
            out += self._solve(i).pull(X, first * weight, (second @ weight)[:, None])
        return out
