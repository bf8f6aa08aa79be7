"""A kernel at another theta, without the reflection that scikit-learn's ``clone_with_theta`` needs.

Learning moves the kernel at every evaluation, and below a few hundred rows that took a tenth of its time.
"""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import Kernel, Product, Sum

from gpclass.core.protocols import Array
from gpclass.kernels.formulas import count_free, free_names, is_plain


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
    size = _size(kernel)
    if size is None or size != len(theta):  # an unknown kind, or an error that has its own words there
        return kernel.clone_with_theta(theta)
    return _moved(kernel, theta)


def _moved(kernel: Kernel, theta: Array) -> Kernel:
    if type(kernel) in (Sum, Product):
        split = _size(kernel.k1)
        return type(kernel)(_moved(kernel.k1, theta[:split]), _moved(kernel.k2, theta[split:]))
    new = object.__new__(type(kernel))
    new.__dict__.update(kernel.__dict__)
    start = 0
    for name in free_names(kernel):
        size = np.size(getattr(kernel, name))
        values = np.exp(theta[start : start + size])
        setattr(new, name, values if size > 1 else values[0])
        start += size
    return new


def _size(kernel: Kernel) -> int | None:
    """Return the number of free hyperparameters; None for kernels whose theta is not the usual one."""
    if type(kernel) in (Sum, Product):
        first, second = _size(kernel.k1), _size(kernel.k2)
        return None if first is None or second is None else first + second
    return count_free(kernel) if is_plain(kernel.__class__) else None
