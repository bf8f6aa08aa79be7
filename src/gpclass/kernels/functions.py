"""The five functions of a kernel: its matrix, its diagonal, and their pullbacks.

They check the input, cut the work into row tiles that fit into the processor's cache, and set the diagonal of
symmetric matrices. The formulas are chosen by the class of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.protocols import Array, Inputs
from gpclass.kernels import formulas

TILE_NUMBERS = 2**18  # of one row tile: 2 MB in double precision
LEAST_ROWS = 16


def matrix(kernel: Kernel, X: Inputs, Z: Inputs | None = None, *, out: Array | None = None) -> Array:
    """Return the covariances k(x_i, z_j).

    Parameters
    ----------
    kernel : Kernel
        Any scikit-learn kernel.
    X, Z : array of shape (n, d) and (m, d), or sequences of what the kernel works on
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
    X = _inputs(kernel, X, "X")
    Z = None if Z is None else _inputs(kernel, Z, "Z")
    out = _output(X, X if Z is None else Z, out)
    with np.errstate(under="ignore"):
        if Z is None:
            _fill_symmetric(kernel, X, out)
        else:
            for rows in _tiles(*out.shape):
                formulas.fill(kernel, X[rows], Z, out[rows])
    return out


def diag(kernel: Kernel, X: Inputs) -> Array:
    """Return k(x_i, x_i), noise included.

    Parameters
    ----------
    kernel : kernel
    X : array-like of shape (n, d), or sequence of objects

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from gpclass.kernels import DotProduct, diag
    >>> diag(DotProduct(sigma_0=1.0), [[1.0, 2.0], [0.0, 3.0]])
    array([ 6., 10.])
    """
    with np.errstate(under="ignore"):
        return formulas.diagonal(kernel, _inputs(kernel, X, "X"))


def pullback(kernel: Kernel, X: Inputs, Z: Inputs | None, G: Array, *, K: Array | None = None) -> Array:
    """Return Σ_ij G_ij ∂k(x_i, z_j) / ∂theta, without an array of n · m · len(theta) numbers.

    Parameters
    ----------
    kernel : Kernel
        Any scikit-learn kernel; theta are the logs of its free hyperparameters, in its order.
    X, Z : inputs as for ``matrix``
        ``Z`` may be None: then the matrix is the symmetric one, noise included.
    G : array of shape (n, m)
        The adjoint of the matrix; it need not be symmetric.
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
    X = _inputs(kernel, X, "X")
    with np.errstate(under="ignore"):
        if Z is None:
            return _pull_symmetric(kernel, X, _adjoint(G, (len(X), len(X))), K)
        Z = _inputs(kernel, Z, "Z")
        G = _adjoint(G, (len(X), len(Z)))
        tiles = _tiles(*G.shape)
        parts = [formulas.pull(kernel, X[i], Z, G[i], None if K is None else K[i]) for i in tiles]
    return np.sum(parts, axis=0) if parts else np.zeros(kernel.n_dims)


def pullback_diag(kernel: Kernel, X: Inputs, g: Array) -> Array:
    """Return Σ_i g_i ∂k(x_i, x_i) / ∂theta, noise included.

    Parameters
    ----------
    kernel : kernel
    X : array-like of shape (n, d)
    g : ndarray of shape (n,)
        Adjoint of the diagonal.

    Returns
    -------
    ndarray of shape (n_dims,)

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF, WhiteKernel, pullback_diag
    >>> pullback_diag(3.0 * RBF() + WhiteKernel(0.5), [[0.0], [1.0]], np.ones(2))
    array([6., 0., 1.])
    """
    X = _inputs(kernel, X, "X")
    with np.errstate(under="ignore"):
        return formulas.pull_diagonal(kernel, X, _adjoint(g, (len(X),)))


def pullback_inputs(kernel: Kernel, X: Array, Z: Array, G: Array) -> Array:
    """Return the (n, d) array with rows Σ_j G_ij ∂k(x_i, z_j) / ∂x_i; ``Z`` is fixed.

    Parameters
    ----------
    kernel : kernel
    X, Z : ndarray of shape (n, d) and (m, d)
    G : ndarray of shape (n, m)
        Adjoint of k(X, Z).

    Returns
    -------
    ndarray of shape (n, d)

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF, pullback_inputs
    >>> pullback_inputs(RBF(1.0), [[0.0]], [[1.0]], np.ones((1, 1))).round(4)
    array([[0.6065]])
    """
    X, Z = _inputs(kernel, X, "X"), _inputs(kernel, Z, "Z")
    G = _adjoint(G, (len(X), len(Z)))
    with np.errstate(under="ignore"):
        parts = [formulas.pull_inputs(kernel, X[i], Z, G[i]) for i in _tiles(*G.shape)]
    return np.concatenate(parts) if parts else np.zeros(X.shape)


# --------------------------------------------------------------------------- symmetric


def _fill_symmetric(kernel: Kernel, X: Inputs, out: Array) -> None:
    """Fill row tiles left of the diagonal and mirror them; a kernel without formulas is called once for all rows."""
    known = formulas.is_known(kernel)
    if not known:
        formulas.assign(kernel, kernel(X), out)
    for rows in _tiles(*out.shape) if known else ():
        tile = out[rows, : rows.stop]
        formulas.fill(kernel, X[rows], X[: rows.stop], tile)
        out[: rows.start, rows] = tile[:, : rows.start].T
        square = tile[:, rows.start :]
        np.copyto(square, square.T.copy(), where=~np.tri(len(square), dtype=bool))
    np.einsum("ii->i", out)[...] = formulas.diagonal(kernel, X)


def _pull_symmetric(kernel: Kernel, X: Inputs, G: Array, K: Array | None) -> Array:
    """Fold G onto its lower triangle: the matrix is symmetric though G need not be."""
    total = formulas.pull_diagonal(kernel, X, np.diagonal(G))
    for rows in _tiles(*G.shape):
        tile = G[rows, : rows.stop] + G[: rows.stop, rows].T
        square = tile[:, rows.start :]
        square *= np.tri(len(square), k=-1)
        known = None if K is None else K[rows, : rows.stop]
        total = total + formulas.pull(kernel, X[rows], X[: rows.stop], tile, known)
    return total


def _tiles(n: int, m: int) -> Iterator[slice]:
    return formulas.tiles(n if m else 0, max(LEAST_ROWS, TILE_NUMBERS // max(m, 1)))


# ----------------------------------------------------------------------------- checks


def _inputs(kernel: Kernel, X: Inputs, name: str) -> Any:
    """Return rows of floats, or structured inputs as they are if the kernel takes them."""
    if not kernel.requires_vector_input:
        return X
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
    return rows


def _output(X: Inputs, Z: Inputs, out: Array | None) -> Array:
    shape = len(X), len(Z)
    if out is None:
        single = all(getattr(rows, "dtype", None) == np.float32 for rows in (X, Z))
        return np.empty(shape, dtype=np.float32 if single else np.float64)
    if out.shape != shape or out.dtype not in (np.float32, np.float64):
        raise ValueError(f"out is {out.dtype} of shape {out.shape}, expected floats of shape {shape}.")
    return out


def _adjoint(G: Array, shape: tuple[int, ...]) -> Array:
    G = np.asarray(G)
    if G.shape != shape:
        raise ValueError(f"the adjoint has shape {G.shape}, expected {shape}, that of the covariances.")
    return G
