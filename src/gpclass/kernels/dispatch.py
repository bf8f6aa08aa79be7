"""Five operations on kernels, each chosen by the class of the kernel.

Every operation has one implementation a kernel class and, for all other classes, one that uses
nothing but the kernel's own methods. The functions users call are in ``functions``; they check
and tile the input, so that here ``X`` and ``Z`` are clean, ``Z`` is always given, and the noise
of ``WhiteKernel`` lives in ``diagonal`` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.protocols import Array, Inputs
from gpclass.kernels import fallback

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


class Operation(Generic[P, R]):
    """A ``singledispatch`` function whose first argument is a kernel.

    A subclass of a registered class that has its own ``__call__`` or ``diag`` is another kernel:
    it gets the default, not the formulas of its parent.
    """

    def __init__(self, default: Callable[P, R]) -> None:
        self._default = default
        self._table: Any = singledispatch(default)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the implementation for the class of the first argument."""
        return self.implementation(type(args[0]))(*args, **kwargs)

    def register(self, *classes: type) -> Callable[[F], F]:
        """Return a decorator that makes a function the implementation for ``classes``."""

        def keep(function: F) -> F:
            for cls in classes:
                self._table.register(cls, function)
            return function

        return keep

    def implementation(self, cls: type) -> Callable[P, R]:
        """Return the function that serves kernels of class ``cls``."""
        registry: Any = self._table.registry
        if cls in registry:
            return registry[cls]  # type: ignore[no-any-return]
        owner = next(base for base in cls.__mro__ if base in registry)
        inherited = owner is not object and cls.__call__ is owner.__call__ and _diag(cls) is _diag(owner)
        return registry[owner] if inherited else self._default

    def is_default(self, kernel: Kernel) -> bool:
        """Return whether nobody registered an implementation for this kernel's class."""
        return self.implementation(type(kernel)) is self._default


def _diag(cls: type) -> Any:
    return getattr(cls, "diag", None)


@Operation
def fill(kernel: Kernel, X: Inputs, Z: Inputs, out: Array) -> None:
    """Write the cross-covariance k(x_i, z_j) into ``out``, whose dtype is the working precision."""
    fallback.fill(kernel, X, Z, out)


@Operation
def diagonal(kernel: Kernel, X: Inputs) -> Array:
    """Return k(x_i, x_i), noise included."""
    return np.asarray(kernel.diag(X), dtype=getattr(X, "dtype", None) if _is_float(X) else float)


@Operation
def pull(kernel: Kernel, X: Inputs, Z: Inputs, G: Array, K: Array | None, scale: float) -> Array:
    """Return Σ_ij G_ij ∂(scale · k(x_i, z_j)) / ∂theta.

    ``K`` is scale · k(X, Z) wherever G is not zero, or None. The scale is what a constant factor
    further up the kernel tree contributes: with it, neither K / c nor c · G is ever formed.
    """
    return scale * fallback.pull(kernel, X, Z, G)


@Operation
def pull_diagonal(kernel: Kernel, X: Inputs, g: Array) -> Array:
    """Return Σ_i g_i ∂k(x_i, x_i) / ∂theta, noise included."""
    return fallback.pull_diagonal(kernel, X, g)


@Operation
def pull_inputs(kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
    """Return the (n, d) array with rows Σ_j G_ij ∂k(x_i, z_j) / ∂x_i, ``Z`` held."""
    return fallback.pull_inputs(kernel, X, Z, G)


def evaluate(kernel: Kernel, X: Inputs, Z: Inputs, dtype: Any = float) -> Array:
    """Return the cross-covariance in a new array."""
    K = np.empty((len(X), len(Z)), dtype=dtype)
    fill(kernel, X, Z, K)
    return K


def is_free(kernel: Kernel, name: str) -> bool:
    """Return whether hyperparameter ``name`` is part of theta."""
    return not getattr(kernel, "hyperparameter_" + name).fixed


def _is_float(X: Inputs) -> bool:
    return isinstance(X, np.ndarray) and X.dtype.kind == "f"
