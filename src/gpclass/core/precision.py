"""The functions of BLAS and LAPACK for the precision of an array."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from gpclass.core.protocols import Array


def blas_of(name: str, A: Array) -> Any:
    """Return BLAS's function of this name for the precision of A, single or double."""
    return getattr(blas, ("s" if A.dtype == np.float32 else "d") + name)


def lapack_of(name: str, A: Array) -> Any:
    """Return LAPACK's function of this name for the precision of A, single or double."""
    return getattr(lapack, ("s" if A.dtype == np.float32 else "d") + name)
