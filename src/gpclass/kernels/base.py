"""The base class of new kernels, which need only their formulas and a constructor."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from gpclass.core.protocols import Array
from gpclass.kernels.covariances import Formulas, covariances, differences, formulas_of, register


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
