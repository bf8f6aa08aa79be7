"""The four functions of a kernel: its matrix, its diagonal, and their pullbacks.

They check the input, split the work into row tiles that fit into the processor's cache, and set the diagonal of
symmetric matrices. The formulas are chosen by the class of the kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel, KernelOperator

from gpclass.core.linalg import mirror, row_tiles
from gpclass.core.protocols import Array, Inputs
from gpclass.kernels.base import covariances, free_sizes
from gpclass.kernels.inputs import unwrapped

quiet = np.errstate(under="ignore")  # where covariances underflow, they are zero


@quiet
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
    inner, X = _read(kernel, X, "X")
    Z, symmetric = (X, True) if Z is None else (_read(kernel, Z, "Z")[1], False)
    if out is None:
        out = np.empty((len(X), len(Z)), _precision(X, Z))
    _check_floats("out", out, (len(X), len(Z)))
    for rows in row_tiles(len(X) if len(Z) else 0, len(Z)):
        out[rows] = covariances(inner, X[rows], Z, out.dtype).values()
    if symmetric:
        mirror(out)
        np.einsum("ii->i", out)[...] = covariances(inner, X, None, out.dtype).values()
    return out


@quiet
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
    inner, X = _read(kernel, X, "X")
    out = np.empty(len(X), _precision(X))
    out[:] = covariances(inner, X, None, out.dtype).values()
    return out


@quiet
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
    inner, X = _read(kernel, X, "X")
    Z, symmetric = (X, True) if Z is None else (_read(kernel, Z, "Z")[1], False)
    _check_floats("the adjoint", G, (len(X), len(Z)))
    total = np.zeros(sum(free_sizes(kernel).values()))
    if symmetric:
        total += pullback_diag(inner, X, np.diagonal(G))
    for rows in row_tiles(len(X) if len(Z) else 0, len(Z)):
        tile = G[rows]
        if symmetric:
            tile = tile.copy()
            np.fill_diagonal(tile[:, rows], 0.0)
        total += _pull(inner, X[rows], Z, tile, None if K is None else K[rows])
    return total


@quiet
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
    inner, X = _read(kernel, X, "X")
    _check_floats("the adjoint", g, (len(X),))
    return _pull(inner, X, None, g)


# ----------------------------------------------------------------------------- checks


def _pull(kernel: Kernel, X: Inputs, Z: Inputs | None, G: Array, K: Array | None = None) -> Array:
    """Return the pullback of G; raise an error that names the kernel whose formulas return the wrong length."""
    slopes = covariances(kernel, X, Z, float if Z is None else G.dtype).pull(G, K)
    expected = sum(free_sizes(kernel).values())
    if np.shape(slopes) != (expected,):
        for part in (kernel.k1, kernel.k2) if isinstance(kernel, KernelOperator) else ():
            _pull(part, X, Z, G)
        raise ValueError(
            f"The pullback of {type(kernel).__name__} returned {np.size(slopes)} numbers, expected {expected}: one for "
            "each hyperparameter that is not fixed, in alphabetical order."
        )
    return slopes


def _read(kernel: Kernel, X: Inputs, name: str) -> tuple[Any, Any]:
    """Return a kernel and its inputs: rows of floats, or structured inputs as they are if the kernel takes them.

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


def _check_floats(name: str, array: Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape or array.dtype not in (np.float32, np.float64):
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, expected floats of shape {shape}.")
