"""Scaled squared distances between rows, and sums weighted by them.

|a - b|² = |a|² + |b|² - 2 a·b is one matrix product if the rows are extended by their squared norm and by a
one. Its rounding error is about eps · |a|², so it is used while the centred, scaled rows are short. For longer rows
(tiny length scales, rare levels of a category) results in single precision come from a product in double precision, and
beyond that the differences are computed first, which is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import drop_tiny, matmul, matmul_transposed, single
from gpclass.core.protocols import Array

LONGEST = {4: 512.0, 8: 1024.0}  # squared norm up to which products are used, by bytes per number
LONGEST_IN_DOUBLE = 1e8  # the same for products in double whose results are wanted in single precision
LONGEST_EXPRESSED = 1e4  # the same in expressions, where differences of each column are expensive
CENTRE_ROWS = 64
LAST_EXPONENT = -87.0


def by_column(kernel: Kernel, name: str, n_columns: int) -> Array:
    """Return a hyperparameter as a 0-d array, or as a 1-d array with one number per column."""
    value = np.squeeze(np.asarray(getattr(kernel, name), dtype=float))
    if value.ndim and value.shape != (n_columns,):
        raise ValueError(
            f"{name} of {type(kernel).__name__} has shape {value.shape} but X has {n_columns} columns: "
            "give one number, or one for each column."
        )
    return value


def centred(X: Array, Z: Array, scale: Array, dtype: Any = float) -> tuple[Array, Array]:
    """Return rows of X and Z minus a common centre, divided by ``scale``.

    Distances do not depend on the centre, but their rounding does; the mean of a few rows is good enough.
    """
    centre = Z[:: max(1, len(Z) // CENTRE_ROWS)].mean(axis=0, dtype=float)
    A = np.subtract(X, centre, dtype=float)
    B = np.subtract(Z, centre, dtype=float)
    inverse = 1.0 / scale
    A *= inverse
    B *= inverse
    return drop_tiny(A.astype(dtype, copy=False), 1.0), drop_tiny(B.astype(dtype, copy=False), 1.0)


def rows_in(X: Array, dtype: Any) -> Array:
    """Return rows in the precision of a product, without tiny numbers."""
    return single(X) if dtype == np.float32 else X.astype(dtype, copy=False)


def squared_norms(A: Array) -> Array:
    """Return |a_i|²."""
    norms: Array = np.einsum("id,id->i", A, A)
    return norms


def are_long(A: Array, B: Array, wanted: Any = float) -> bool:
    """Return whether |a|² + |b|² - 2 a·b in double precision would round badly for results of type ``wanted``."""
    limit = LONGEST_IN_DOUBLE if wanted == np.float32 else LONGEST[8]
    return bool(squared_norms(A).max(initial=0) > limit or squared_norms(B).max(initial=0) > limit)


def squared_distances(
    A: Array, B: Array, factor: float, out: Array, *, exact: bool = False, wanted: Any = None
) -> None:
    """Write factor · |a_i - b_j|² into ``out``, accurate for type ``wanted``, by default that of ``out``."""
    a2, b2 = squared_norms(A), squared_norms(B)
    columns, longest = A.shape[1], float(max(a2.max(initial=0), b2.max(initial=0)))
    if A.dtype == np.float32 and LONGEST[4] < longest <= LONGEST_IN_DOUBLE:
        A, B = A.astype(float), B.astype(float)
        a2, b2 = squared_norms(A), squared_norms(B)
    single_is_enough = (out.dtype if wanted is None else wanted) == np.float32
    limit = LONGEST_IN_DOUBLE if single_is_enough else LONGEST[8]
    # With one or two columns differences cost no more than products.
    if exact or columns <= 2 or longest > limit:
        if columns > 1:
            np.multiply(cdist(A, B, "sqeuclidean"), factor, out=out)
            return
        np.subtract(A, B.T, out=out)
        np.multiply(out, out, out=out)
        out *= factor
        return
    left = np.empty((len(A), columns + 2), dtype=A.dtype)
    left[:, :columns] = A
    np.multiply(a2, factor, out=left[:, columns])
    left[:, columns + 1] = 1.0
    right = np.empty((len(B), columns + 2), dtype=A.dtype)
    np.multiply(B, -2.0 * factor, out=right[:, :columns])
    right[:, columns] = 1.0
    np.multiply(b2, factor, out=right[:, columns + 1])
    S = matmul_transposed(left, right)
    if factor > 0:
        np.maximum(S, 0.0, out=out)
    else:  # an exponent: below the last one the exponential is denormal
        np.clip(S, LAST_EXPONENT if out.dtype == np.float32 else -np.inf, 0.0, out=out)


def express_squares(X: Any, P: Array, scales: Array, *, exact: bool) -> Any:
    """Return the squared distances of scaled rows as an expression in X, for a given array P."""
    centre = P.mean(axis=0)
    A, B = (X - centre) * (1.0 / scales), (P - centre) / scales
    norms = squared_norms(B)
    if not (exact or P.shape[1] <= 2 or norms.max() > LONGEST_EXPRESSED):
        return np.maximum((A * A).sum() + norms[None] - A @ (2.0 * B.T), 0.0)
    differences = [A[[d]] - B[None, :, d] for d in range(P.shape[1])]
    return sum((each * each for each in differences[1:]), start=differences[0] * differences[0])


def weighted_squares(W: Array, A: Array, B: Array, *, exact: bool) -> Array:
    """Return Σ_ij W_ij (a_id - b_jd)² for every column d, without an n x m x d array."""
    if exact:
        D, squares = np.empty(W.shape), np.empty(A.shape[1])
        for d in range(A.shape[1]):
            np.subtract.outer(A[:, d], B[:, d], out=D)
            np.multiply(D, D, out=D)
            squares[d] = np.einsum("ij,ij->", W, D)
        return squares
    rows, WB = _product_with_sums(W, B)
    return np.asarray(rows @ (A * A) + W.sum(axis=0) @ (B * B) - 2.0 * np.einsum("id,id->d", A, WB))


def weighted_differences(W: Array, A: Array, B: Array) -> Array:
    """Return Σ_j W_ij (a_i - b_j) for every row i."""
    rows, WB = _product_with_sums(W, B)
    return rows[:, None] * A - WB


def _product_with_sums(W: Array, B: Array) -> tuple[Array, Array]:
    """Return the row sums of W, and W B."""
    augmented = np.ones((B.shape[0], B.shape[1] + 1))
    augmented[:, :-1] = B
    product = matmul(W, augmented)
    return product[:, -1], product[:, :-1]
