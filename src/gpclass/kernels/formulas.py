"""Formulas for classes of kernels, and the registry that holds them.

Every class of kernels is registered once, with an object that has all operations: matrix, diagonal and their
derivatives. The base class `Formulas` uses only the methods of the kernel itself, so it also serves kernels that are
not registered. The functions that users call are in ``functions``; they check and tile the input, so that here ``X``
and ``Z`` are clean and ``Z`` is always given. The noise of ``WhiteKernel`` is part of the diagonal only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import drop_tiny
from gpclass.core.protocols import Array, Inputs

STEP = np.finfo(float).eps ** (1 / 3)  # balances rounding and truncation of a central difference


class Formulas:
    """Operations for one class of kernels; this base class uses only the kernel's own methods.

    The inputs may be anything the kernel understands: rows of an array, strings, graphs.
    """

    stationary = False

    def fill(self, kernel: Kernel, X: Inputs, Z: Inputs, out: Array) -> None:
        """Write k(x_i, z_j) into ``out``, whose dtype is the working precision."""
        assign(kernel, kernel(X, Z), out)

    def diagonal(self, kernel: Kernel, X: Inputs) -> Array:
        """Return k(x_i, x_i), noise included."""
        return np.asarray(kernel.diag(X), dtype=working_type(X))

    def slopes(self, kernel: Kernel, X: Inputs, Z: Inputs) -> Iterable[Array]:
        """Return the matrices ∂k(X, Z) / ∂theta_p, one after another: here by central differences.

        They take less time than the gradient array of a kernel, which exists for k(X, X) only.
        """
        X, Z = _in_double(X), _in_double(Z)
        return differences(kernel, lambda other: evaluate(other, X, Z))

    def pull(self, kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
        """Return Σ_ij G_ij ∂(scale · k(x_i, z_j)) / ∂theta.

        ``K`` is scale · k(X, Z) wherever G is not zero, or None. The scale is the product of the constant
        factors further up the kernel tree: with it, neither K / c nor c · G is ever formed.
        """
        return scale * contract(self.slopes(kernel, X, Z), G)

    def pull_diagonal(self, kernel: Kernel, X: Inputs, g: Array) -> Array:
        """Return Σ_i g_i ∂k(x_i, x_i) / ∂theta, noise included."""
        X = _in_double(X)
        return contract(differences(kernel, lambda other: diagonal(other, X)), g)

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        """Return the (n, d) array with rows Σ_j G_ij ∂k(x_i, z_j) / ∂x_i with ``Z`` fixed."""
        if not (isinstance(X, np.ndarray) and X.dtype.kind == "f"):
            raise TypeError(
                f"inputs of {type(kernel).__name__} are {type(X).__name__}, not rows of numbers: "
                "derivatives with respect to inputs exist for numeric inputs only."
            )
        X, Z = X.astype(float), Z.astype(float)
        width = np.maximum(X.std(axis=0), Z.std(axis=0))
        steps = STEP * np.where(width > 0, width, 1 + np.abs(X).max(axis=0, initial=0))
        result = np.empty(X.shape)
        for k, step in enumerate(steps):
            up, down = X.copy(), X.copy()
            up[:, k] += step
            down[:, k] -= step
            difference = (kernel(up, Z) - kernel(down, Z)) / (up - down)[:, k, None]
            result[:, k] = np.einsum("ij,ij->i", G, difference)
        return result


# ------------------------------------------------------------------------------------------- registry

_REGISTERED: dict[type, Formulas] = {}
_UNKNOWN = Formulas()


def register(cls: type, formulas: Formulas) -> None:
    """Register the formulas for a class of kernels, which model files may then hold.

    Parameters
    ----------
    cls : type
        A subclass of scikit-learn's ``Kernel``. Its constructor parameters are what a model file stores.
    formulas : Formulas
        `Stationary` or `InnerProduct` with a `Profile`, or an object with all the operations.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF, Profile, Stationary, pullback, register
    >>> class Rational(RBF):
    ...     def __call__(self, X, Y=None):
    ...         return 1 / (1 + np.sum(((X[:, None] - (X if Y is None else Y)) / self.length_scale) ** 2, -1))
    >>> profile = Profile(value=lambda S: 1 / (1 + S), slope=lambda S: -((1 + S) ** -2))
    >>> register(Rational, Stationary(lambda kernel: profile))
    >>> pullback(Rational(), [[0.0]], [[1.0]], np.ones((1, 1)))
    array([0.5])
    """
    name = cls.__name__
    if any(other.__name__ == name and other.__module__ != cls.__module__ for other in _REGISTERED):
        raise TypeError(f"Two classes of kernels cannot both be stored as {name}: rename yours.")
    _REGISTERED[cls] = formulas


def registered() -> Mapping[type, Formulas]:
    """Return all registered classes of kernels with their formulas."""
    return MappingProxyType(_REGISTERED)


def formulas_of(kernel: Kernel) -> Formulas:
    """Return the formulas for a kernel.

    A subclass of a registered class that has its own ``__call__`` or ``diag`` is a different kernel: it does
    not get the formulas of its parent.
    """
    cls = type(kernel)
    for base in cls.__mro__:
        if base in _REGISTERED:
            same = cls.__call__ is base.__call__ and getattr(cls, "diag", None) is getattr(base, "diag", None)
            return _REGISTERED[base] if same else _UNKNOWN
    return _UNKNOWN


def is_known(kernel: Kernel) -> bool:
    """Return whether there are formulas for this kernel."""
    return type(formulas_of(kernel)) is not Formulas


# ------------------------------------------------------------- the operations, by the class of the kernel


def fill(kernel: Kernel, X: Inputs, Z: Inputs, out: Array) -> None:
    """Write k(x_i, z_j) into ``out``."""
    formulas_of(kernel).fill(kernel, X, Z, out)


def evaluate(kernel: Kernel, X: Inputs, Z: Inputs, dtype: Any = float) -> Array:
    """Return k(x_i, z_j) in a new array."""
    K = np.empty((len(X), len(Z)), dtype=dtype)
    fill(kernel, X, Z, K)
    return K


def diagonal(kernel: Kernel, X: Inputs) -> Array:
    """Return k(x_i, x_i), noise included."""
    return formulas_of(kernel).diagonal(kernel, X)


def pull(kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None = None, scale: float = 1.0) -> Array:
    """Return Σ_ij G_ij ∂(scale · k(x_i, z_j)) / ∂theta."""
    return formulas_of(kernel).pull(kernel, X, Z, G, K, scale)


def pull_diagonal(kernel: Kernel, X: Inputs, g: Array) -> Array:
    """Return Σ_i g_i ∂k(x_i, x_i) / ∂theta, noise included."""
    return formulas_of(kernel).pull_diagonal(kernel, X, g)


def pull_inputs(kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
    """Return the (n, d) array with rows Σ_j G_ij ∂k(x_i, z_j) / ∂x_i."""
    return formulas_of(kernel).pull_inputs(kernel, X, Z, G)


# -------------------------------------------------------------------------------------------- helpers


def contract(slopes: Iterable[Array], G: Array) -> Array:
    """Return the sum of G times each of several matrices or vectors."""
    return np.array([np.sum(G * slope, dtype=float) for slope in slopes], dtype=float)


def differences(kernel: Kernel, values: Callable[[Kernel], Array]) -> Iterator[Array]:
    """Yield the derivative of an array by each entry of theta, by central differences."""
    theta = kernel.theta
    for step in STEP * np.eye(len(theta)):
        up, down = (values(kernel.clone_with_theta(at)) for at in (theta + step, theta - step))
        yield (up - down) / (2.0 * STEP)


def assign(kernel: Kernel, K: Any, out: Array) -> None:
    """Write the matrix that a kernel returned into ``out``, or raise if it has another shape."""
    if np.shape(K) != out.shape:
        raise ValueError(
            f"{type(kernel).__name__} returned an array of shape {np.shape(K)}, expected {out.shape}: "
            "a covariance function must return one number for each pair of inputs."
        )
    out[...] = K
    drop_tiny(out)


def working_type(X: Inputs) -> type:
    """Return the floating-point type of covariances of these inputs."""
    return np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64


def tiles(n: int, size: int) -> Iterator[slice]:
    """Return slices of ``size`` rows that cover n rows."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def _in_double(X: Inputs) -> Inputs:
    return X.astype(float) if getattr(X, "dtype", None) == np.float32 else X
