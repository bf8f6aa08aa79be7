"""The formulas of kernels by class, their free hyperparameters, and the base class of new kernels.

For each class of kernels one function is registered. It returns the covariances of some inputs together with the
function that pulls an adjoint back to the hyperparameters. A sum or a product of kernels combines the results of its
parts. A kernel that is not registered is differentiated by central differences.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Exponentiation, Hyperparameter, Kernel, KernelOperator

from gpclass.core.linalg import drop_tiny
from gpclass.core.protocols import Array, Inputs

STEP = np.finfo(float).eps ** (1 / 3)  # balances rounding and truncation errors of central differences
PREFIX = "hyperparameter_"  # prefix of the properties by which scikit-learn finds hyperparameters
PARTS = {
    KernelOperator.theta: ("k1", "k2"),
    Exponentiation.theta: ("kernel",),
}  # inner kernels, by their theta

# -------------------------------------------------------------------------- free hyperparameters


@cache
def names_of(cls: Any) -> tuple[str, ...] | None:
    """Return the names of the inner kernels or of the hyperparameters of a class; None if it has a theta of its own.

    scikit-learn finds them by reflection, which takes 10 to 20 % of the time of learning from less than 200 rows.
    """
    if cls.theta in PARTS:
        return PARTS[cls.theta]
    own = "theta", "clone_with_theta", "set_params"
    if any(getattr(cls, name) is not getattr(Kernel, name) for name in own):
        return None
    return tuple(name.removeprefix(PREFIX) for name in sorted(dir(cls)) if name.startswith(PREFIX))


def free_sizes(kernel: Kernel) -> dict[str, int]:
    """Return the number of entries in theta of each inner kernel or free hyperparameter, in the order of theta.

    That is the alphabetical order of their names. A hyperparameter is free if its bounds are not "fixed".

    Examples
    --------
    >>> from gpclass.kernels import RationalQuadratic, free_sizes
    >>> free_sizes(RationalQuadratic())
    {'alpha': 1, 'length_scale': 1}
    >>> free_sizes(2.0 * RationalQuadratic(alpha_bounds="fixed"))
    {'k1': 1, 'k2': 1}
    """
    names, sizes = names_of(kernel.__class__), {}
    if names is None:
        return {"theta": int(kernel.n_dims)}
    for name in names:
        value, bounds = getattr(kernel, name), getattr(kernel, name + "_bounds", None)
        if isinstance(value, Kernel):
            sizes[name] = sum(free_sizes(value).values())
        elif not (getattr(kernel, PREFIX + name).fixed if bounds is None else isinstance(bounds, str)):
            sizes[name] = int(np.size(value))
    return sizes


def move(kernel: Kernel, theta: Array) -> Kernel:
    """Return the kernel with other values of its free hyperparameters, ``exp(theta)``.

    Parameters that are not hyperparameters are shared with the kernel given, not copied.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF, move
    >>> move(2.0 * RBF([1.0, 3.0]), np.log([4.0, 5.0, 6.0]))
    2**2 * RBF(length_scale=[5, 6])
    """
    sizes, start = free_sizes(kernel), 0
    if "theta" in sizes or sum(sizes.values()) != len(theta):
        return kernel.clone_with_theta(theta)  # raises for a theta of the wrong length
    new = copy.copy(kernel)
    for name, size in sizes.items():
        value, part = getattr(kernel, name), theta[start : start + size]
        if isinstance(value, Kernel):
            setattr(new, name, move(value, part))
        else:
            setattr(new, name, np.exp(part if size > 1 else part[0]))
        start += size
    return new


# --------------------------------------------------------------------------- formulas by class


@dataclass(frozen=True, slots=True, eq=False)
class Covariances:
    """Covariances of inputs X and Z, or variances of X, with their derivatives as pullbacks.

    Parameters
    ----------
    values : callable
        Returns k(x_i, z_j) without noise, of shape (n, m), or k(x_i, x_i) with noise, of shape (n,), as a new array
        that the caller may overwrite; 0-dimensional if all of them are the same number.
    pull : callable
        Returns Σ G · ∂values/∂theta for an adjoint G, in double precision: one number for each entry of theta, see
        `free_sizes`. The second argument is the values if they are known, else None.
    """

    values: Callable[[], Array]
    pull: Callable[[Array, Array | None], Array]


# Called with a kernel, X, Z (None for the variances of X) and the floating-point type of the values.
Formulas = Callable[[Any, Any, Any, Any], Covariances]


def by_differences(
    kernel: Kernel, X: Inputs, Z: Inputs | None, dtype: Any, diag: Callable[..., Any] | None = None
) -> Covariances:
    """Return the covariances by the methods of the kernel itself, with central differences as derivatives.

    The inputs may be anything that the kernel understands: rows of an array, strings, graphs. ``diag`` replaces the
    method of this name.
    """
    inputs: Any = X, Z
    X, Z = (rows.astype(float) if getattr(rows, "dtype", None) == np.float32 else rows for rows in inputs)

    def evaluate(other: Any) -> Array:
        if Z is None:
            return np.asarray(diag(other, X) if diag else other.diag(X), dtype=float)
        return np.asarray(other(X, Z), dtype=float)

    def values() -> Array:
        K, shape = evaluate(kernel), (len(X),) if Z is None else (len(X), len(Z))
        if K.shape != shape:
            raise ValueError(
                f"{type(kernel).__name__} returned an array of shape {K.shape}, expected {shape}: "
                "a covariance function must return one number for each pair of inputs."
            )
        return drop_tiny(K.astype(dtype))

    def pull(G: Array, K: Array | None) -> Array:
        return np.array([np.vdot(G, slope) for slope in differences(kernel, evaluate)], dtype=float)

    return Covariances(values, pull)


def differences(kernel: Kernel, values: Callable[[Kernel], Array]) -> Iterator[Array]:
    """Yield the derivative of an array with respect to each entry of theta, by central differences."""
    theta = kernel.theta
    for step in STEP * np.eye(len(theta)):
        up, down = (values(kernel.clone_with_theta(at)) for at in (theta + step, theta - step))
        yield (up - down) / (2.0 * STEP)


FORMULAS: dict[type, Formulas] = {}  # of all registered classes


def register(cls: type, formulas: Formulas = by_differences) -> None:
    """Register the formulas for a class of kernels, and allow the class in model files.

    Parameters
    ----------
    cls : type
        A subclass of scikit-learn's ``Kernel``. Its constructor parameters are what a model file stores.
    formulas : callable, default=by_differences
        `Stationary` with a `Profile`, or a function of a kernel, X, Z and a floating-point type that returns
        `Covariances`.
    """
    name = cls.__name__
    if any(other.__name__ == name and other.__module__ != cls.__module__ for other in FORMULAS):
        raise TypeError(f"Two classes of kernels cannot both be stored as {name}: rename one of them.")
    FORMULAS[cls] = formulas


def formulas_of(kernel: Kernel) -> Formulas:
    """Return the formulas for a kernel.

    A subclass of a registered class that has its own ``__call__``, ``diag`` or ``theta`` is a different kernel: it does
    not get the formulas of its parent.
    """
    cls = type(kernel)
    for base in cls.__mro__:
        if base in FORMULAS:
            same = all(getattr(cls, name) is getattr(base, name) for name in ("__call__", "diag", "theta"))
            return FORMULAS[base] if same else by_differences
    return by_differences


def covariances(kernel: Kernel, X: Inputs, Z: Inputs | None, dtype: Any = float) -> Covariances:
    """Return k(x_i, z_j), or k(x_i, x_i) if Z is None, by the formulas for the kernel."""
    return formulas_of(kernel)(kernel, X, Z, dtype)


# ---------------------------------------------------------------------------- new kernels


class FormulaKernel(Kernel):
    """A scikit-learn kernel whose matrix, diagonal and gradient come from its formulas.

    A subclass is registered when it is defined. `matrix`, `pullback` and the other functions, model files and
    exported graphs then support it. A constructor parameter ``name`` is a hyperparameter if there is another one
    ``name_bounds``; all parameters must be stored as attributes of the same name.

    Parameters
    ----------
    formulas : callable
        A class argument: `Stationary` with a profile, or a function as in `register`.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import FormulaKernel, Profile, Stationary
    >>> def bell(kernel):
    ...     return Profile(value=lambda S: 1 / (1 + S), slope=lambda S: -((1 + S) ** -2))
    >>> class Bell(FormulaKernel, formulas=Stationary(bell)):
    ...     def __init__(self, length_scale=1.0, length_scale_bounds=(1e-5, 1e5)):
    ...         self.length_scale = length_scale
    ...         self.length_scale_bounds = length_scale_bounds
    >>> kernel = 2.0 * Bell(length_scale=2.0)
    >>> kernel
    1.41**2 * Bell(length_scale=2)
    >>> kernel(np.array([[0.0], [2.0]]))
    array([[2., 1.],
           [1., 2.]])
    """

    def __init_subclass__(cls, formulas: Formulas | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        names = tuple(inspect.signature(cls).parameters)
        for name in names:
            if name + "_bounds" in names:
                setattr(cls, "hyperparameter_" + name, property(partial(_hyperparameter, name=name)))
        if formulas is not None:
            register(cls, formulas)

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False) -> Any:
        """Return k(X, Y), and its gradient with respect to theta if requested (Y must be None then)."""
        X = _rows(X)
        if Y is not None:
            if eval_gradient:
                raise ValueError(
                    "Y was given with eval_gradient=True: the gradient is of k(X, X), so leave Y out."
                )
            return covariances(self, X, _rows(Y)).values()
        K = covariances(self, X, X).values()
        np.fill_diagonal(K, self.diag(X))
        if not eval_gradient:
            return K
        slopes = list(differences(self, lambda kernel: kernel(X)))
        return K, np.stack(slopes, axis=-1) if slopes else np.empty((*K.shape, 0))

    def diag(self, X: ArrayLike) -> Array:
        """Return k(x_i, x_i)."""
        return np.broadcast_to(covariances(self, _rows(X), None).values(), len(_rows(X))).copy()

    def is_stationary(self) -> bool:
        """Return whether the kernel depends on differences of its inputs only."""
        return bool(getattr(formulas_of(self), "stationary", False))

    def __repr__(self) -> str:
        names = [name for name in self.get_params() if not name.endswith("_bounds")]
        return f"{type(self).__name__}({', '.join(f'{name}={_text(getattr(self, name))}' for name in names)})"


def _hyperparameter(kernel: Kernel, name: str) -> Hyperparameter:
    """Return the specification of a hyperparameter, in scikit-learn's form."""
    bounds, size = getattr(kernel, name + "_bounds"), int(np.size(getattr(kernel, name)))
    return Hyperparameter(name, "numeric", bounds, size)


def _rows(X: ArrayLike) -> Array:
    return np.atleast_2d(np.asarray(X, dtype=float))


def _text(value: Any) -> str:
    if isinstance(value, str | bool | None):
        return repr(value)
    numbers = [f"{number:.3g}" for number in np.ravel(value)]
    return f"[{', '.join(numbers)}]" if len(numbers) > 1 else numbers[0]
