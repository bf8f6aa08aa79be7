"""The free hyperparameters of a kernel, and the kernel at other values of them.

scikit-learn finds the hyperparameters of a kernel by reflection. Learning changes them at every evaluation, and
below two hundred rows reflection takes 10 to 20 % of its time, so this module caches the names for each class.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Exponentiation, Kernel, KernelOperator

from gpclass.core.protocols import Array

PREFIX = "hyperparameter_"  # prefix of the properties by which scikit-learn finds hyperparameters
PARTS = {KernelOperator.theta: ("k1", "k2"), Exponentiation.theta: ("kernel",)}


def is_free(kernel: Kernel, name: str) -> bool:
    """Return whether hyperparameter ``name`` is part of theta."""
    bounds = getattr(kernel, name + "_bounds", None)
    if bounds is None:
        return not getattr(kernel, PREFIX + name).fixed
    return not (isinstance(bounds, str) and bounds == "fixed")


@cache
def hyperparameter_names(cls: Any) -> tuple[str, ...]:
    """Return the names of the hyperparameters of a class that is not composite, in the order of theta."""
    return tuple(name.removeprefix(PREFIX) for name in sorted(dir(cls)) if name.startswith(PREFIX))


def free_names(kernel: Kernel) -> list[str]:
    """Return the names of the free hyperparameters of a kernel that is not composite, in the order of theta."""
    return [name for name in hyperparameter_names(kernel.__class__) if is_free(kernel, name)]


def count_free(kernel: Kernel) -> int:
    """Return the length of theta, if possible without computing theta."""
    if parts := PARTS.get(kernel.__class__.theta):
        return sum(count_free(getattr(kernel, part)) for part in parts)
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
    new, start = copy.copy(kernel), 0
    if parts := PARTS.get(kernel.__class__.theta):
        for part in parts:
            inner = getattr(kernel, part)
            end = start + count_free(inner) if part != parts[-1] else len(theta)
            setattr(new, part, move(inner, theta[start:end]))
            start = end
        return new
    if not _is_plain(kernel.__class__) or count_free(kernel) != len(theta):
        return kernel.clone_with_theta(theta)  # raises for a theta of the wrong length
    for name in free_names(kernel):
        size = np.size(getattr(kernel, name))
        values = np.exp(theta[start : start + size])
        setattr(new, name, values if size > 1 else values[0])
        start += size
    return new


@cache
def _is_plain(cls: Any) -> bool:
    """Return whether theta is defined by scikit-learn's base class, as logarithms of attributes."""
    return all(
        getattr(cls, name) is getattr(Kernel, name) for name in ("theta", "clone_with_theta", "set_params")
    )
