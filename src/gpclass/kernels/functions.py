"""The four functions of a kernel: its matrix, its diagonal, and their pullbacks.

They check the input, split the work into row tiles that fit into the processor's cache, and set the diagonal of
symmetric matrices. The formulas are chosen by the class of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import mirror
from gpclass.core.protocols import Array, Inputs
from gpclass.kernels.covariances import covariances
from gpclass.kernels.inputs import unwrapped
from gpclass.kernels.theta import count_free

TILE_NUMBERS = 2**18  # number of entries in a row tile: 2 MB in double precision
LEAST_ROWS = 16


def matrix(kernel: Kernel, X: Inputs, Z: Inputs | None = None, *, out: Array | None = None) -> Array:
    """Return the covariances k(x_i, z_j).

    Parameters
    ----------
    kernel : Kernel
        Any scikit-learn kernel.
    X, Z : array of shape (n, d) and (m, d), or sequences of objects that the kernel accepts
        Without ``Z`` the matrix is the symmetric one of X with itself: its diagonal is
        ``diag(kernel, X)``, the noise of ``WhiteKernel`` included. With ``Z`` there is no noise.
    out : array of shape (n, m), optional
        Where to write; its rows may be strided.

    Returns
    -------
    array of shape (n, m)
        In single precision if the inputs are, else in double.

    Examples
    --------
    >>> from gpclass.kernels import RBF, WhiteKernel, matrix
    >>> matrix(RBF() + WhiteKernel(0.5), [[0.0], [1.0]]).round(4)
    array([[1.5   , 0.6065],
           [0.6065, 1.5   ]])
    """
    inner, X = _inputs(kernel, X, "X")
    Z, symmetric = (X, True) if Z is None else (_inputs(kernel, Z, "Z")[1], False)
    shape = len(X), len(Z)
    out = np.empty(shape, dtype=_precision(X, Z)) if out is None else _floats("out", out, shape)
    with np.errstate(under="ignore"):
        for rows in _tiles(*out.shape):
            out[rows] = covariances(inner, X[rows], Z, out.dtype).values()
        if symmetric:
            mirror(out)
            np.einsum("ii->i", out)[...] = covariances(inner, X, None, out.dtype).values()
    return out


def diag(kernel: Kernel, X: Inputs) -> Array:
    """Return k(x_i, x_i), noise included.

    Parameters
    ----------
    kernel : kernel
    X : array-like of shape (n, d), or sequence of objects

    Examples
    --------
    >>> from gpclass.kernels import DotProduct, diag
    >>> diag(DotProduct(sigma_0=1.0), [[1.0, 2.0], [0.0, 3.0]])
    array([ 6., 10.])
    """
    inner, X = _inputs(kernel, X, "X")
    with np.errstate(under="ignore"):
        out = np.empty(len(X), dtype=_precision(X))
        out[:] = covariances(inner, X, None, out.dtype).values()
    return out


def pullback(kernel: Kernel, X: Inputs, Z: Inputs | None, G: Array, *, K: Array | None = None) -> Array:
    """Return Σ_ij G_ij ∂k(x_i, z_j) / ∂theta, without an array of n · m · len(theta) numbers.

    Parameters
    ----------
    kernel : Kernel
        Any scikit-learn kernel; theta are the logs of its free hyperparameters, in its order.
    X, Z : inputs as for ``matrix``
        ``Z`` may be None: then the matrix is the symmetric one, noise included.
    G : array of shape (n, m)
        The adjoint of the matrix; it need not be symmetric. Covariances are computed in its precision, sums in double
        precision.
    K : array of shape (n, m), optional
        ``matrix(kernel, X, Z)`` if it is known, which saves its exponentials. It is only read; entries
        where G is zero do not matter.

    Returns
    -------
    array of shape (len(theta),)
        Additive over tiles of the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF, pullback
    >>> pullback(2.0 * RBF(1.0), [[0.0]], [[1.0]], np.ones((1, 1))).round(4)
    array([1.2131, 1.2131])
    """
    inner, X = _inputs(kernel, X, "X")
    Z, symmetric = (X, True) if Z is None else (_inputs(kernel, Z, "Z")[1], False)
    G = _floats("the adjoint", G, (len(X), len(Z)))
    total = np.zeros(count_free(kernel))
    if symmetric:
        total += pullback_diag(inner, X, np.diagonal(G))
    with np.errstate(under="ignore"):
        for rows in _tiles(*G.shape):
            tile = G[rows]
            if symmetric:
                tile = tile.copy()
                np.fill_diagonal(tile[:, rows], 0.0)
            total += covariances(inner, X[rows], Z, G.dtype).pull(tile, None if K is None else K[rows])
    return total


def pullback_diag(kernel: Kernel, X: Inputs, g: Array) -> Array:
    """Return Σ_i g_i ∂k(x_i, x_i) / ∂theta, noise included.

    Parameters
    ----------
    kernel : kernel
    X : array-like of shape (n, d), or sequence of objects
    g : ndarray of shape (n,)
        Adjoint of the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF, WhiteKernel, pullback_diag
    >>> pullback_diag(3.0 * RBF() + WhiteKernel(0.5), [[0.0], [1.0]], np.ones(2))
    array([6., 0., 1.])
    """
    inner, X = _inputs(kernel, X, "X")
    with np.errstate(under="ignore"):
        return covariances(inner, X, None).pull(_floats("the adjoint", g, (len(X),)), None)


def _tiles(n: int, m: int) -> Iterator[slice]:
    size = max(LEAST_ROWS, TILE_NUMBERS // max(m, 1))
    return (slice(start, min(start + size, n)) for start in range(0, n if m else 0, size))


# ----------------------------------------------------------------------------- checks


def _inputs(kernel: Kernel, X: Inputs, name: str) -> tuple[Any, Any]:
    """Return rows of floats, or structured inputs as they are if the kernel takes them.

    Transforms of the inputs are applied here, once for all tiles; the kernel inside them is returned first.
    """
    if not kernel.requires_vector_input:
        return kernel, X
    try:
        rows = np.asarray(X)
        if rows.dtype not in (np.float32, np.float64):
            rows = rows.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} cannot be read as numbers ({error}): {kernel} works on rows of numbers; a kernel for "
            "other inputs must inherit from GenericKernelMixin."
        ) from error
    if rows.ndim != 2:
        raise ValueError(f"{name} has {rows.ndim} dimension(s), expected 2: one row for each input.")
    return unwrapped(kernel, rows)


def _precision(*inputs: Inputs) -> Any:
    single = all(getattr(rows, "dtype", None) == np.float32 for rows in inputs)
    return np.float32 if single else np.float64


def _floats(name: str, array: Array, shape: tuple[int, ...]) -> Array:
    array = np.asarray(array)
    if array.shape != shape or array.dtype not in (np.float32, np.float64):
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, expected floats of shape {shape}.")
    return array
