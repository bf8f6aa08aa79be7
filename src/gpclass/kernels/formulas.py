"""Formulas for classes of kernels, and the registry that holds them.

Every class of kernels is registered once, with an object that has all operations: matrix, diagonal, their
derivatives, and an expression for exported graphs. The base class `Formulas` uses only the methods of the
kernel itself, so it also serves kernels that are not registered. The functions that users call are in
``functions``; they check and tile the input, so that here ``X`` and ``Z`` are clean and ``Z`` is always
given. The noise of ``WhiteKernel`` is part of the diagonal only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import drop_tiny
from gpclass.core.protocols import Array, Inputs

GRADIENT_NUMBERS = 2**19  # in one block of a kernel's own gradient: 4 MB
STEP = np.finfo(float).eps ** (1 / 3)  # balances rounding and truncation of a central difference

Expression = Any  # an array or a value of an exported graph: both support NumPy's elementwise functions
Check = Callable[[Any], bool]


class Formulas:
    """Operations for one class of kernels; this base class uses only the kernel's own methods.

    The inputs may be anything the kernel understands: rows of an array, strings, graphs.
    """

    stationary = False

    def chosen(self, kernel: Kernel) -> Formulas:
        """Return the formulas for this kernel, where they depend on its parameters."""
        return self

    def fill(self, kernel: Kernel, X: Inputs, Z: Inputs, out: Array) -> None:
        """Write k(x_i, z_j) into ``out``, whose dtype is the working precision."""
        assign(kernel, kernel(X, Z), out)

    def diagonal(self, kernel: Kernel, X: Inputs) -> Array:
        """Return k(x_i, x_i), noise included."""
        return np.asarray(kernel.diag(X), dtype=working_type(X))

    def pull(self, kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
        """Return Σ_ij G_ij ∂(scale · k(x_i, z_j)) / ∂theta.

        ``K`` is scale · k(X, Z) wherever G is not zero, or None. The scale is the product of the constant
        factors further up the kernel tree: with it, neither K / c nor c · G is ever formed. Here it is the
        contraction of G with the kernel's own gradient, or with central differences if it has none.
        """
        n_dims = kernel.n_dims
        total = np.zeros(n_dims)
        size = max(4, int(np.sqrt(GRADIENT_NUMBERS / max(n_dims, 1))) // 2)
        for i in tiles(len(X), size) if n_dims else ():
            for j in tiles(len(Z), size):
                # scikit-learn's kernels differentiate k(X, X) only, so the block wanted is cut from
                # the gradient at both sets of rows together.
                n = len(X[i])
                gradient = _own_gradient(kernel, _stack(X[i], Z[j]), n_dims)
                if gradient is None:
                    return scale * by_differences(kernel, G, lambda k: k(X, Z))
                total += np.einsum("ij,ijp->p", G[i, j], gradient[:n, n:])
        return scale * total

    def pull_diagonal(self, kernel: Kernel, X: Inputs, g: Array) -> Array:
        """Return Σ_i g_i ∂k(x_i, x_i) / ∂theta, noise included."""
        n_dims = kernel.n_dims
        total = np.zeros(n_dims)
        for i in tiles(len(X), 8) if n_dims else ():
            gradient = _own_gradient(kernel, X[i], n_dims)
            if gradient is None:
                return by_differences(kernel, g, lambda k: k.diag(X))
            total += np.einsum("i,iip->p", g[i], gradient)
        return total

    def pull_inputs(self, kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
        """Return the (n, d) array with rows Σ_j G_ij ∂k(x_i, z_j) / ∂x_i with ``Z`` fixed."""
        if not (isinstance(X, np.ndarray) and X.dtype.kind == "f"):
            raise TypeError(
                f"inputs of {type(kernel).__name__} are {type(X).__name__}, not rows of numbers: "
                "derivatives with respect to inputs exist for numeric inputs only."
            )
        X = X.astype(float)
        width = np.maximum(X.std(axis=0), np.asarray(Z, dtype=float).std(axis=0))
        steps = STEP * np.where(width > 0, width, 1 + np.abs(X).max(axis=0, initial=0))
        result = np.empty(X.shape)
        for k, step in enumerate(steps):
            up, down = X.copy(), X.copy()
            up[:, k] += step
            down[:, k] -= step
            difference = (kernel(up, Z) - kernel(down, Z)) / (up - down)[:, k, None]
            result[:, k] = np.einsum("ij,ij->i", G, difference)
        return result

    def gradient(self, kernel: Kernel, X: Array) -> Array:
        """Return ∂k(X, X) / ∂theta of shape (n, n, n_dims), as scikit-learn's kernels return it."""
        return np.asarray(kernel(X, eval_gradient=True)[1])

    def express(self, kernel: Kernel, X: Expression, n_columns: int, P: Array | None) -> Expression:
        """Return k(X, P), or the column of all k(x, x) if P is None, as an expression in X."""
        raise NotImplementedError(f"there are no formulas for {kernel}")


# ------------------------------------------------------------------------------------------- registry


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A registered class of kernels: its formulas, and checks of parameters that have special values."""

    name: str  # in model files
    cls: type
    formulas: Formulas
    checks: Mapping[str, Check]


_ENTRIES: dict[type, Entry] = {}
_UNKNOWN = Formulas()


def register(
    cls: type, formulas: Formulas, checks: Mapping[str, Check] | None = None, *, file_name: str = ""
) -> None:
    """Register the formulas for a class of kernels, which model files may then hold.

    Parameters
    ----------
    cls : type
        A subclass of scikit-learn's ``Kernel``. Its constructor parameters are what a model file stores.
    formulas : Formulas
        `Stationary` or `InnerProduct` with a `Profile`, or an object with all the operations.
    checks : mapping of str to callable, optional
        For a parameter that is not a positive hyperparameter: whether a value read from a file is allowed.
    file_name : str, optional
        The name of the class in model files, if it is not its own.

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
    name = file_name or cls.__name__
    for other in _ENTRIES.values():
        if other.name == name and other.cls.__module__ != cls.__module__:
            raise TypeError(f"Two classes of kernels cannot both be stored as {name}: rename yours.")
    _ENTRIES[cls] = Entry(name, cls, formulas, checks or {})


def entries() -> Mapping[type, Entry]:
    """Return all registered classes of kernels."""
    return MappingProxyType(_ENTRIES)


def formulas_of(kernel: Kernel) -> Formulas:
    """Return the formulas for a kernel.

    A subclass of a registered class that has its own ``__call__`` or ``diag`` is a different kernel: it does
    not get the formulas of its parent.
    """
    cls = type(kernel)
    for base in cls.__mro__:
        if base in _ENTRIES:
            same = cls.__call__ is base.__call__ and getattr(cls, "diag", None) is getattr(base, "diag", None)
            return _ENTRIES[base].formulas.chosen(kernel) if same else _UNKNOWN
    return _UNKNOWN


def is_known(kernel: Kernel) -> bool:
    """Return whether there are formulas for this kernel."""
    return type(formulas_of(kernel)) is not Formulas


# The operations, by the class of the kernel


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


def express(kernel: Kernel, X: Expression, n_columns: int, P: Array | None = None) -> Expression:
    """Return k(X, P), or the column of all k(x, x) if P is None, as an expression in X."""
    return formulas_of(kernel).express(kernel, X, n_columns, P)


# -------------------------------------------------------------------------------------------- helpers


def is_free(kernel: Kernel, name: str) -> bool:
    """Return whether hyperparameter ``name`` is part of theta."""
    # As scikit-learn's specification of the hyperparameter has it, which takes many times as long to make.
    bounds = getattr(kernel, name + "_bounds", None)
    if bounds is None:
        return not getattr(kernel, "hyperparameter_" + name).fixed
    return not (isinstance(bounds, str) and bounds == "fixed")


@cache
def is_plain(cls: Any) -> bool:
    """Return whether a class has the theta of scikit-learn's base class, of hyperparameters that are its attributes."""
    same = all(
        getattr(cls, name) is getattr(Kernel, name) for name in ("theta", "clone_with_theta", "set_params")
    )
    return same and not hasattr(cls, "__slots__")


@cache
def _names(cls: Any) -> tuple[str, ...]:
    """Return the names of the hyperparameters of a class in the order of theta."""
    prefix = "hyperparameter_"
    return tuple(name.removeprefix(prefix) for name in sorted(dir(cls)) if name.startswith(prefix))


def free_names(kernel: Kernel) -> list[str]:
    """Return the names of the free hyperparameters of a plain kernel, in the order of theta."""
    return [name for name in _names(kernel.__class__) if is_free(kernel, name)]


def count_free(kernel: Kernel) -> int:
    """Return the length of theta, without making it where that is possible."""
    if not is_plain(kernel.__class__):
        return int(kernel.n_dims)
    return sum(int(np.size(getattr(kernel, name))) for name in free_names(kernel))


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


def by_differences(kernel: Kernel, G: Array, values: Callable[[Kernel], Array]) -> Array:
    """Contract G with central differences of the values of a kernel in each entry of theta."""
    theta, total = kernel.theta, []
    for step in STEP * np.eye(len(theta)):
        up, down = kernel.clone_with_theta(theta + step), kernel.clone_with_theta(theta - step)
        total.append(np.sum(G * (values(up) - values(down))))
    return np.array(total) / (2 * STEP)


def _own_gradient(kernel: Kernel, X: Inputs, n_dims: int) -> Any:
    """Return the gradient array (n, n, n_dims), or None if the kernel does not give one.

    An error that is not about the gradient is raised again when the kernel is called without it.
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
