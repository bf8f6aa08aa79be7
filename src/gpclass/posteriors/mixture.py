"""The posterior as a mixture over draws, from Monte Carlo.

Given theta and the latent values f at the data, f(x) is Gaussian with the prior's conditional moments

    mean = k(x, P) alpha,  alpha = K_PP⁻¹ f_P        var = k(x, x) - |L⁻¹ k(P, x)|²,  K_PP = L Lᵀ

where P has as many data points as the rank of K. All draws at one theta have this variance, so draws that
share theta are one component, and a prediction is the average over all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import pivoted_root, require_memory
from gpclass.core.protocols import Array, Inputs
from gpclass.core.registry import stored
from gpclass.kernels import diag, matrix
from gpclass.posteriors.process import GaussianProcess, Process

BLOCK = 1 << 21  # maximum number of draws x rows in a block


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """Draws of f at the data, shape (draws, n) or (draws, n, C), that share a kernel.

    Their weights sum to the weight of the component.
    """

    kernel: Kernel
    f: Array
    weight: Array
    jitter: float = 0.0

    def check_stored(self) -> None:
        """Raise if weights or jitter are negative."""
        if not ((self.weight >= 0.0).all() and 0.0 <= self.jitter < np.inf):
            raise ValueError("The weights or the jitter are negative.")


@stored
@dataclass(frozen=True, slots=True, eq=False)
class MixtureProcess(Process):
    """f as a process over all inputs, given draws of it at the data."""

    inputs: Inputs
    components: tuple[Component, ...]
    # The factor of one component is kept; for many there would be too many n x n matrices.
    _last: list[tuple[int, GaussianProcess]] = field(
        default_factory=list, repr=False, metadata={"stored": False}, compare=False
    )

    def check_stored(self) -> None:
        """Raise unless the draws are finite and match the inputs, and their weights sum to one."""
        draws = [each.f for each in self.components]
        shapes = all(f.shape[1] == len(self.inputs) > 0 and np.isfinite(f * f).all() for f in draws)
        total = sum(float(weight.sum()) for weight in self.weights)
        if not (self.components and shapes and abs(total - 1.0) < 1e-6):
            raise ValueError(
                "The draws are not finite or do not match the inputs, or their weights do not sum to one."
            )
        row = self.inputs[:1]
        if not all(np.isfinite(matrix(each.kernel, row, self.inputs)).all() for each in self.components):
            raise ValueError("The covariances of the kernel are not finite.")

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

    def gaussians(self) -> Iterator[GaussianProcess]:
        """Yield each component as a process with a latent function for each draw and class."""
        for i, component in enumerate(self.components):
            if not (self._last and self._last[0][0] == i):
                self._last[:] = [(i, self._solved(component))]
            yield self._last[0][1]

    def _solved(self, component: Component) -> GaussianProcess:
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
        return GaussianProcess((component.kernel,), inputs, root.T @ (root @ f), root)
