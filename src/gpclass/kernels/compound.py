"""A kernel for each class, as scikit-learn's `CompoundKernel`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process import kernels as theirs
from sklearn.gaussian_process.kernels import Hyperparameter

from gpclass.core.protocols import Array


class CompoundKernel(theirs.CompoundKernel):
    """A kernel for each latent function, in the order of the classes.

    Learning must set ``theta``, which scikit-learn's class of the same name does not support.

    Parameters
    ----------
    kernels : list of kernels

    Examples
    --------
    >>> from gpclass.kernels import RBF, CompoundKernel
    >>> kernel = CompoundKernel([RBF(1.0), 2.0 * RBF(3.0)])
    >>> [h.name for h in kernel.hyperparameters]
    ['kernels__0__length_scale', 'kernels__1__k1__constant_value', 'kernels__1__k2__length_scale']
    >>> kernel.clone_with_theta(kernel.theta + 1.0).kernels[0]
    RBF(length_scale=2.72)
    """

    @property
    def theta(self) -> Array:
        """The logarithms of all free hyperparameters, one kernel after another."""
        return np.concatenate([kernel.theta for kernel in self.kernels])

    @theta.setter
    def theta(self, theta: Array) -> None:
        ends = np.cumsum([kernel.n_dims for kernel in self.kernels])[:-1]
        for kernel, part in zip(self.kernels, np.split(np.asarray(theta), ends), strict=True):
            kernel.theta = part

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """The hyperparameters of all kernels; their names begin with the position of the kernel."""
        return [
            Hyperparameter(f"kernels__{i}__{h.name}", h.value_type, h.bounds, h.n_elements)
            for i, kernel in enumerate(self.kernels)
            for h in kernel.hyperparameters
        ]

    @property
    def bounds(self) -> Array:
        """The bounds on ``theta``."""
        return np.vstack([kernel.bounds for kernel in self.kernels if kernel.n_dims] or [np.empty((0, 2))])

    def __repr__(self) -> str:
        return f"{type(self).__name__}([{', '.join(map(repr, self.kernels))}])"


def settable(kernel: Any) -> Any:
    """Return a clone of a kernel whose ``theta`` can be set, which scikit-learn's `CompoundKernel` does not allow."""
    if isinstance(kernel, theirs.CompoundKernel):
        return CompoundKernel([clone(part) for part in kernel.kernels])
    return clone(kernel)
