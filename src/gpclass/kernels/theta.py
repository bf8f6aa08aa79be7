"""The free hyperparameters of a kernel, and the kernel at other values of them.

scikit-learn finds the hyperparameters of a kernel by reflection. Learning changes them at every evaluation, and
below two hundred rows reflection takes 10 to 20 % of its time, so this module caches the names for each class.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Exponentiation, Kernel, Product, Sum

from gpclass.core.protocols import Array

PREFIX = "hyperparameter_"  # prefix of the properties by which scikit-learn finds hyperparameters


def is_free(kernel: Kernel, name: str) -> bool:
    """Return whether hyperparameter ``name`` is part of theta."""
    bounds = getattr(kernel, name + "_bounds", None)
    if bounds is None:
        return not getattr(kernel, PREFIX + name).fixed
    return not (isinstance(bounds, str) and bounds == "fixed")


def hyperparameter_names(kernel: Kernel) -> tuple[str, ...]:
    """Return the names of the hyperparameters of a kernel that is not composite, in the order of theta."""
    return _names(kernel.__class__)


def free_names(kernel: Kernel) -> list[str]:
    """Return the names of the free hyperparameters of a kernel that is not composite, in the order of theta."""
    return [name for name in _names(kernel.__class__) if is_free(kernel, name)]


def count_free(kernel: Kernel) -> int:
    """Return the length of theta, if possible without computing theta."""
    if type(kernel) in (Sum, Product):
        return count_free(kernel.k1) + count_free(kernel.k2)
    if _is_around(kernel.__class__):
        return count_free(kernel.kernel)
    if not _is_plain(kernel.__class__):
        return int(kernel.n_dims)
    return sum(int(np.size(getattr(kernel, name))) for name in free_names(kernel))


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
    if type(kernel) in (Sum, Product):
        split = count_free(kernel.k1)
        return type(kernel)(move(kernel.k1, theta[:split]), move(kernel.k2, theta[split:]))
    if _is_around(kernel.__class__):
        new = copy.copy(kernel)
        new.kernel = move(kernel.kernel, theta)
        return new
    if not _is_plain(kernel.__class__) or count_free(kernel) != len(theta):
        return kernel.clone_with_theta(theta)  # raises for a theta of the wrong length
    new, start = copy.copy(kernel), 0
    for name in free_names(kernel):
        size = np.size(getattr(kernel, name))
        values = np.exp(theta[start : start + size])
        setattr(new, name, values if size > 1 else values[0])
        start += size
    return new


@cache
def _names(cls: Any) -> tuple[str, ...]:
    """Return the names of the hyperparameters of a class in the order of theta."""
    return tuple(name.removeprefix(PREFIX) for name in sorted(dir(cls)) if name.startswith(PREFIX))


@cache
def _is_plain(cls: Any) -> bool:
    """Return whether theta is that of scikit-learn's base class: logarithms of attributes."""
    return all(
        getattr(cls, name) is getattr(Kernel, name) for name in ("theta", "clone_with_theta", "set_params")
    )


@cache
def _is_around(cls: Any) -> bool:
    """Return whether the hyperparameters are those of the one kernel inside."""
    return getattr(cls, "theta", None) is Exponentiation.theta
