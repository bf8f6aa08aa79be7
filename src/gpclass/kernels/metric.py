"""The metric of stationary kernels: squared distances in units of the length scales, and their derivatives.

|a - b|² = |a|² + |b|² - 2 a·b is one matrix product if each row is extended by its squared norm and a
one. Its rounding error is about eps · |a|², so it is used, in single or in double precision, if that is small
enough for the result. For longer rows (tiny length scales) differences of rows are computed first, which is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import drop_tiny, matmul, matmul_transposed
from gpclass.core.protocols import Array

# For each precision of the result: precisions of the product, each with the largest squared norm of rows it allows.
LONGEST: dict[Any, Any] = {
    np.dtype(np.float32): ((np.float32, 512.0), (np.float64, 1e8)),
    np.dtype(np.float64): ((np.float64, 1024.0),),
}
LAST_EXPONENT = -87.0  # exponentials of smaller numbers are denormal in single precision


def per_column(kernel: Kernel, name: str, n_columns: int) -> Array:
    """Return a parameter of a kernel that applies to the columns of X: 0-d, or one number for each column."""
    values = np.squeeze(np.asarray(getattr(kernel, name), dtype=float))
    if values.ndim and values.shape != (n_columns,):
        raise ValueError(
            f"{name} of {type(kernel).__name__} has shape {values.shape} but X has {n_columns} columns: "
            "give one number, or one for each column."
        )
    return values


def collect(values: Array, by_column: Array) -> Array:
    """Return the derivatives with respect to a parameter from those for each column; a shared number has their sum."""
    return by_column if values.ndim else by_column.sum(keepdims=True)


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """S_ij = factor · |a_i - b_j|² between rows of X and Z, which are centred and in units of the scales."""

    factor: float
    scale: Array
    A: Array
    B: Array
    dtype: np.dtype[Any]  # precision of S
    product: type | None  # precision of the matrix product that gives S; None: use differences

    def distances(self) -> Array:
        """Return S as a new array."""
        if self.product is None:
            return np.asarray(cdist(self.A, self.B, "sqeuclidean") * self.factor, dtype=self.dtype)
        A, B = (drop_tiny(rows.astype(self.product, copy=False), 1.0) for rows in (self.A, self.B))
        columns = A.shape[1]
        left = np.empty((len(A), columns + 2), dtype=self.product)
        left[:, :columns] = A
        np.multiply(squared_norms(A), self.factor, out=left[:, columns])
        left[:, columns + 1] = 1.0
        right = np.empty((len(B), columns + 2), dtype=self.product)
        np.multiply(B, -2.0 * self.factor, out=right[:, :columns])
        right[:, columns] = 1.0
        np.multiply(squared_norms(B), self.factor, out=right[:, columns + 1])
        S = matmul_transposed(left, right)
        if self.factor > 0:
            np.maximum(S, 0.0, out=S)
        else:  # S is the exponent of a kernel
            np.clip(S, LAST_EXPONENT if self.dtype == np.float32 else -np.inf, 0.0, out=S)
        return S.astype(self.dtype, copy=False)

    def pull(self, W: Array) -> Array:
        """Return Σ_ij W_ij ∂S_ij / ∂log scale."""
        if self.product is None:
            D = (np.subtract.outer(a, b) for a, b in zip(self.A.T, self.B.T, strict=True))
            squares = np.array([np.vdot(W, np.square(d, out=d)) for d in D])
        else:  # Σ_ij W_ij (a_id - b_jd)², multiplied out
            squares = W.sum(axis=1) @ (self.A * self.A) + W.sum(axis=0) @ (self.B * self.B)
            squares -= 2.0 * np.einsum("id,id->d", self.A, matmul(W, self.B))
        return -2.0 * self.factor * collect(self.scale, squares)


def make_metric(
    factor: float, scale: Array, X: Array, Z: Array, dtype: Any = float, *, exact: bool = False
) -> Metric:
    """Return the metric between rows, with distances in ``dtype``.

    Subtracting a common centre does not change distances, but it reduces their rounding errors.
    """
    centre = Z.mean(axis=0, dtype=float)
    A, B = np.subtract(X, centre, dtype=float), np.subtract(Z, centre, dtype=float)
    A *= 1.0 / scale
    B *= 1.0 / scale
    longest = max(squared_norms(A).max(initial=0.0), squared_norms(B).max(initial=0.0))
    wanted = np.dtype(dtype)
    fine = [product for product, limit in LONGEST[wanted] if longest <= limit and not exact]
    return Metric(factor, scale, A, B, wanted, fine[0] if fine else None)


def squared_norms(A: Array) -> Array:
    """Return |a_i|²."""
    return np.einsum("id,id->i", A, A)
