"""What a kernel nobody registered gets: its own methods, on blocks, and central differences.

The inputs may be anything the kernel understands: rows of an array, strings, graphs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.protocols import Array, Inputs

GRADIENT_NUMBERS = 2**19  # in one block of a kernel's own gradient: 4 MB
STEP = np.finfo(float).eps ** (1 / 3)  # balances rounding against the truncation of a central difference


def fill(kernel: Kernel, X: Inputs, Z: Inputs | None, out: Array) -> None:
    """Write ``kernel(X, Z)``, or ``kernel(X)`` if there is no ``Z``, into ``out``."""
    K = np.asarray(kernel(X) if Z is None else kernel(X, Z))
    if K.shape != out.shape:
        raise ValueError(
            f"{type(kernel).__name__} returned an array of shape {K.shape}, expected {out.shape}: "
            "a covariance function must return one number for each pair of inputs."
        )
    out[...] = K


def pull(kernel: Kernel, X: Inputs, Z: Inputs, G: Array) -> Array:
    """Contract G with the kernel's own gradient, or with central differences if it has none."""
    n_dims = kernel.n_dims
    total = np.zeros(n_dims)
    if not n_dims:
        return total
    size = max(4, int(np.sqrt(GRADIENT_NUMBERS / n_dims)) // 2)
    for i in _blocks(len(X), size):
        for j in _blocks(len(Z), size):
            # scikit-learn's kernels differentiate k(X, X) only, so the block wanted is cut from
            # the gradient at both sets of rows together.
            n = len(X[i])
            gradient = _own_gradient(kernel, _stack(X[i], Z[j]), n_dims)
            if gradient is None:
                return pull_by_differences(kernel, X, Z, G)
            total += np.einsum("ij,ijp->p", G[i, j], gradient[:n, n:])
    return total


def pull_diagonal(kernel: Kernel, X: Inputs, g: Array) -> Array:
    """Contract g with the diagonal of the kernel's own gradient, a few rows at a time."""
    n_dims = kernel.n_dims
    total = np.zeros(n_dims)
    if not n_dims:
        return total
    for i in _blocks(len(X), 8):
        gradient = _own_gradient(kernel, X[i], n_dims)
        if gradient is None:
            return pull_diagonal_by_differences(kernel, X, g)
        total += np.einsum("i,iip->p", g[i], gradient)
    return total


def pull_inputs(kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
    """Differentiate by central differences in one column after the other."""
    if not (isinstance(X, np.ndarray) and X.dtype.kind == "f"):
        raise TypeError(
            f"inputs of {type(kernel).__name__} are {type(X).__name__}, not rows of numbers: "
            "derivatives with respect to inputs exist for numeric inputs only."
        )
    X = X.astype(float)
    spread = np.maximum(X.std(axis=0), np.asarray(Z, dtype=float).std(axis=0))
    steps = STEP * np.where(spread > 0, spread, 1 + np.abs(X).max(axis=0, initial=0))
    result = np.empty(X.shape)
    for k, step in enumerate(steps):
        up, down = X.copy(), X.copy()
        up[:, k] += step
        down[:, k] -= step
        difference = (kernel(up, Z) - kernel(down, Z)) / (up - down)[:, k, None]
        result[:, k] = np.einsum("ij,ij->i", G, difference)
    return result


def pull_diagonal_by_differences(kernel: Kernel, X: Inputs, g: Array) -> Array:
    """Contract g with central differences of the kernel's diagonal."""
    return np.array([g @ (up.diag(X) - down.diag(X)) for up, down in _shifted(kernel)]) / (2 * STEP)


def pull_by_differences(kernel: Kernel, X: Inputs, Z: Inputs, G: Array) -> Array:
    """Contract G with central differences in theta."""
    return np.array([np.sum(G * (up(X, Z) - down(X, Z))) for up, down in _shifted(kernel)]) / (2 * STEP)


def _shifted(kernel: Kernel) -> Iterator[tuple[Kernel, Kernel]]:
    """Yield the kernel a step up and a step down each entry of theta."""
    theta = kernel.theta
    for unit in np.eye(len(theta)):
        yield kernel.clone_with_theta(theta + STEP * unit), kernel.clone_with_theta(theta - STEP * unit)


def _own_gradient(kernel: Kernel, X: Inputs, n_dims: int) -> Any:
    """Return the gradient array (n, n, n_dims), or None if the kernel does not give one.

    An error that is not about the gradient comes again when the kernel is called without it.
    """
    try:
        _, gradient = kernel(X, eval_gradient=True)
    except (TypeError, ValueError, AttributeError, NotImplementedError):
        return None
    return gradient if np.shape(gradient) == (len(X), len(X), n_dims) else None


def _stack(X: Inputs, Z: Inputs) -> Inputs:
    if isinstance(X, np.ndarray) and isinstance(Z, np.ndarray):
        return np.concatenate([X, Z])
    return [*X, *Z]


def _blocks(n: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, n)) for start in range(0, n, size))
