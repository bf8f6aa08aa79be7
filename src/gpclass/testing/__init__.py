"""Conformance checks for new kernels and likelihoods.

Each check compares an object with independent results (differences, quadrature) and raises AssertionError with the
name of the quantity that differs.

Examples
--------
>>> import numpy as np
>>> from gpclass.kernels import RBF
>>> from gpclass.testing import check_kernel
>>> check_kernel(2.0 * RBF([0.5, 3.0]), np.random.default_rng(0).normal(size=(6, 2)))
"""

from __future__ import annotations

from gpclass.testing.differences import central_difference
from gpclass.testing.kernels import check_kernel
from gpclass.testing.likelihoods import check_likelihood

__all__ = [
    "central_difference",
    "check_kernel",
    "check_likelihood",
]
