"""Dense linear algebra: products, factors and inverses, in place and in single or double precision.

A symmetric matrix is a C-contiguous n x n array with a valid lower triangle only. LAPACK reads columns, so
it gets the transposed view, whose *upper* triangle is that memory: nothing is copied.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from gpclass.core.protocols import Array, Index

TILE = 1 << 18  # numbers in a tile: 2 MB, so that a few tiles stay in the cache of one core
MIRROR = 64  # rows of a block when a matrix is transposed
NEGLIGIBLE = 2.0**-33  # see `drop_tiny`
CGROUP = Path("/sys/fs/cgroup")


def routine(name: str, A: Array) -> Any:
    """Return the function of BLAS or LAPACK of this name for the precision of A, single or double."""
    name = ("s" if A.dtype == np.float32 else "d") + name
    return getattr(blas, name, None) or getattr(lapack, name)


def row_tiles(n: int, columns: int | None = None) -> Iterator[slice]:
    """Yield slices of n rows, tiles of about ``TILE`` numbers if a row has this many columns (default n)."""
    step = min(512, max(32, TILE // max(1, columns if columns is not None else n)))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


# NumPy and SciPy may each have a BLAS with its own threads, and threads of one that wait for
# work slow down the other: in loops that call LAPACK, products go through SciPy's as well.


def matmul(A: Array, B: Array, out: Array | None = None) -> Array:
    """Return A B by SciPy's BLAS, in the memory of ``out`` if it is given; rows must be contiguous."""
    memory = {} if out is None else {"c": out.T, "overwrite_c": 1}
    return routine("gemm", A)(1.0, B.T, A.T, **memory).T


def matmul_transposed(A: Array, B: Array) -> Array:
    """Return A Bᵀ by SciPy's BLAS; rows must be contiguous."""
    return routine("gemm", A)(1.0, B.T, A.T, trans_a=1).T


def times_lower_transposed(A: Array, T: Array) -> Array:
    """Return A Tᵀ for lower triangular T, in the memory of A; rows must be contiguous."""
    return routine("trmm", A)(1.0, T.T, A.T, side=0, lower=0, trans_a=1, overwrite_b=1).T


def gram(A: Array) -> Array:
    """Return the lower triangle of Aᵀ A, in double precision; rows must be contiguous."""
    # The upper triangle in Fortran order is the lower triangle here.
    return np.asarray(routine("syrk", A)(1.0, A.T, lower=0).T, dtype=float)


def drop_tiny(A: Array, scale: float | None = None) -> Array:
    """Set numbers that are far below ``scale`` to zero if they are in single precision, in place; return A.

    Below 1e-38 single precision has denormal numbers, with which a matrix product runs ten to a hundred times slower
    on many processors; and products of two numbers below 1e-19 are denormal. With c = 2⁻³³ scale, (a + c) - c is zero
    for abs(a) < 2⁻⁵⁸ scale and differs from a by at most 2⁻⁵⁷ scale, or by one rounding, elsewhere. Two additions cost
    a hundredth of the products. The default ``scale`` is the largest number of A.
    """
    if A.dtype != np.float32 or not A.size:
        return A
    if scale is None:
        scale = max(float(A.max()), -float(A.min()))
    if not np.isfinite(scale):
        return A
    c = np.float32(max(NEGLIGIBLE * scale, 2.0**-90))
    for rows in row_tiles(len(A), A[0].size):
        A[rows] += c
        A[rows] -= c
    return A


def single(A: Array) -> Array:
    """Return a copy of A in single precision with contiguous rows and negligible numbers set to zero."""
    return drop_tiny(np.array(A, dtype=np.float32, order="C"))


def matvec(A: Array, v: Array) -> Array:
    """Return A v by SciPy's BLAS; rows must be contiguous."""
    return blas.dgemv(1.0, A.T, v, trans=1)


def clear_upper(A: Array, *, diagonal: bool = False) -> None:
    """Set entries above the diagonal to zero, and the diagonal too if requested."""
    mask = ~np.tri(MIRROR, k=-1 if diagonal else 0, dtype=bool)
    for start in range(0, len(A), MIRROR):
        block = slice(start, min(start + MIRROR, len(A)))
        A[block, block.stop :] = 0.0
        corner = A[block, block]
        np.copyto(corner, 0.0, where=mask[: len(corner), : len(corner)])


def mirror(K: Array, into: Array | None = None) -> None:
    """Copy the lower triangle to the upper triangle of this or another matrix, in blocks that stay in the cache."""
    out, mask = K if into is None else into, ~np.tri(MIRROR, dtype=bool)
    for start in range(0, len(K), MIRROR):
        block = slice(start, min(start + MIRROR, len(K)))
        out[:start, block] = K[block, :start].T
        corner = K[block, block]
        np.copyto(out[block, block], corner.T, where=mask[: len(corner), : len(corner)])


def mirrored(K: Array) -> Array:
    """Return a full copy of the symmetric K whose lower triangle is given."""
    out = K.copy()
    mirror(out)
    return out


def multiply(K: Array, v: Array) -> Array:
    """Return K v for the symmetric K whose lower triangle is given."""
    return routine("symv", K)(1.0, K.T, v, lower=0)


def cholesky(B: Array, block: int = 4096) -> None:
    """Factor the lower triangle of B in place, leaving the upper one; LinAlgError if not positive definite.

    LAPACK factors matrices of up to three blocks. Larger ones, for which the threaded potrf of current OpenBLAS
    crashes (from about 16,000 rows), are factored panel by panel: factor the corner, solve for the
    rows below it, subtract their products from the rest.
    """
    n = len(B)
    if n <= 3 * block:
        _, info = routine("potrf", B)(B.T, lower=0, clean=0, overwrite_a=1)
        if info != 0:
            raise np.linalg.LinAlgError(f"leading minor {info} is not positive")
        return
    for start in range(0, n, block):
        stop = min(start + block, n)
        corner = B[start:stop, start:stop].copy()
        cholesky(corner, block)
        B[start:stop, start:stop] = corner
        panel = B[stop:, start:stop].copy()
        trsm = routine("trsm", panel)
        panel = trsm(1.0, corner.T, panel.T, side=0, lower=0, trans_a=1, overwrite_b=1).T
        B[stop:, start:stop] = panel
        for low in range(0, n - stop, block // 4):
            high = min(low + block // 4, n - stop)
            rest = B[stop + low : stop + high, stop : stop + high]
            product = matmul_transposed(panel[low:high], panel[:high])
            rest -= np.tril(product, low)


def invert_factor(L: Array) -> None:
    """Invert the lower triangle L in place."""
    lapack.dtrtri(L.T, lower=0, overwrite_c=1)


def invert(P: Array) -> float:
    """Replace the lower triangle of a positive definite P by that of its inverse, and return ½ log|P|."""
    cholesky(P)
    half_logdet = float(np.log(P.diagonal()).sum())
    invert_factor(P)
    lapack.dlauum(P.T, lower=0, overwrite_c=1)
    return half_logdet


def inverse_of(P: Array) -> tuple[Array, float]:
    """Return the lower triangle of P⁻¹, and ½ log|P|, for a positive definite P whose lower triangle is given."""
    C = P.copy(order="C")
    return C, invert(C)


def gram_of_lower(T: Array) -> Array:
    """Return Tᵀ T for lower triangular T: the inverse of P = L Lᵀ for T = L⁻¹."""
    out: Array = lapack.dlauum(T.T, lower=0)[0].T
    mirror(out)
    return out


def pivoted_root(K: Array) -> tuple[Array, Index]:
    """Return A with K = A Aᵀ, and the pivots: the rows of A in this order form a lower triangle.

    No jitter is needed: the remainder is at most n · eps · max K_ii on the diagonal, the rounding error of K.
    """
    require_memory(len(K), 3.0)
    L, pivots, rank, _ = lapack.dpstrf(K, lower=1)
    A = np.empty((len(K), rank))
    A[pivots - 1] = np.tril(L)[:, :rank]
    probe = np.cos(np.arange(len(K)))
    left = K @ probe - A @ (A.T @ probe)
    if not np.abs(left).max(initial=0.0) <= 1e-6 * K.max(initial=0.0):
        raise ValueError("K is not a covariance matrix: it has a negative eigenvalue or is not symmetric.")
    return A, pivots[:rank] - 1


# ---------------------------------------------------------------------------------- memory


def available_memory(group: Path = CGROUP) -> float | None:
    """Return the bytes that can still be allocated, or None if the system does not report them."""
    known = []
    try:
        import psutil

        known.append(float(psutil.virtual_memory().available))
    except ImportError:
        if (kilobytes := _entry(Path("/proc/meminfo"), "MemAvailable:")) is not None:
            known.append(1024.0 * kilobytes)
    # psutil ignores the limit of a control group. Its page cache is reclaimable.
    with contextlib.suppress(ValueError, OSError):  # there is no control group, or its limit is "max"
        limit = float((group / "memory.max").read_text("ascii"))
        used = float((group / "memory.current").read_text("ascii"))
        cache = _entry(group / "memory.stat", "inactive_file") or 0.0
        known.append(max(limit - max(used - cache, 0.0), 0.0))
    return min(known, default=None)


def _entry(path: Path, name: str) -> float | None:
    """Return the number that follows a name in a file of the Linux kernel."""
    try:
        lines = path.read_text("ascii").splitlines()
        return float(dict(line.split()[:2] for line in lines)[name])
    except (KeyError, ValueError, OSError):
        return None


def require_memory(n: int, matrices: float, *, joint: bool = False) -> None:
    """Raise MemoryError, before anything is allocated, if this number of n x n matrices does not fit.

    The matrices are those of a fit to n rows or, if ``joint``, of the joint distribution of n latent values.
    """
    need, have = 8.0 * matrices * n * n, available_memory()
    if have is None or need <= have:
        return
    fits = int((have / (8.0 * matrices)) ** 0.5)
    most = f"{fits // 1000 * 1000 or fits:,}"
    if joint:
        what = f"The joint distribution of {n:,} latent values"
        instead = f"ask for at most {most} of them at a time, or for variances only."
    else:
        what = f"An exact Gaussian process on {n:,} rows"
        instead = (
            f"use inducing inputs (inducing='auto'), or fit a subset of at most {most} rows, for example "
            "sklearn.utils.resample(X, y, replace=False, n_samples=..., stratify=y)."
        )
    raise MemoryError(f"{what} needs {need / 1e9:,.1f} GB and {have / 1e9:,.1f} GB is available: {instead}")
