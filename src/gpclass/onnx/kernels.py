"""Covariances with the training inputs as ONNX operators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as theirs

from gpclass.kernels import Columns
from gpclass.kernels.distances import by_column
from gpclass.onnx.graph import Value

FACTORS = {0.5: 1.0, 1.5: 3.0, 2.5: 5.0}  # of the squared distance in a Matern kernel, by its order
LONG = 1e4  # squared norm of scaled inputs from which distances by products lose too many digits
KNOWN = (
    "RBF, Matern of nu 0.5, 1.5, 2.5 or inf, RationalQuadratic, ExpSineSquared, DotProduct, WhiteKernel, "
    "ConstantKernel, Columns, and their sums, products and powers"
)


class OnnxExportError(ValueError):
    """A classifier that cannot be written as an ONNX graph."""


def matrix(kernel: Any, X: Value, P: Any) -> Value:
    """Return k(X, P), as a value of shape (rows, len(P)), for an array P of inputs."""
    match kernel:
        case theirs.Sum():
            return matrix(kernel.k1, X, P) + matrix(kernel.k2, X, P)
        case theirs.Product():
            return matrix(kernel.k1, X, P) * matrix(kernel.k2, X, P)
        case theirs.Exponentiation():
            return matrix(kernel.kernel, X, P) ** float(kernel.exponent)
        case theirs.ConstantKernel() | theirs.WhiteKernel():
            value = float(kernel.constant_value) if isinstance(kernel, theirs.ConstantKernel) else 0.0
            return X.graph.constant(np.full((1, len(P)), value)) + X[[0]] * 0.0
        case theirs.DotProduct():
            inner: Value = X @ P.T
            return inner + float(kernel.sigma_0) ** 2
        case Columns():
            index = _columns(kernel, P.shape[1])
            return matrix(kernel.kernel, X[index], P[:, index])
    return _stationary(kernel, X, P)


def diag(kernel: Any, X: Value, n_columns: int) -> Value:
    """Return k(x, x) for each row, as a column."""
    match kernel:
        case theirs.Sum():
            return diag(kernel.k1, X, n_columns) + diag(kernel.k2, X, n_columns)
        case theirs.Product():
            return diag(kernel.k1, X, n_columns) * diag(kernel.k2, X, n_columns)
        case theirs.Exponentiation():
            return diag(kernel.kernel, X, n_columns) ** float(kernel.exponent)
        case theirs.ConstantKernel():
            return X[[0]] * 0.0 + float(kernel.constant_value)
        case theirs.WhiteKernel():
            return X[[0]] * 0.0 + float(kernel.noise_level)
        case theirs.DotProduct():
            return (X * X).sum() + float(kernel.sigma_0) ** 2
        case Columns():
            index = _columns(kernel, n_columns)
            return diag(kernel.kernel, X[index], len(index))
    return X[[0]] * 0.0 + 1.0


def _columns(kernel: Columns, n_columns: int) -> Any:
    chosen = kernel.columns
    return np.arange(n_columns)[chosen if isinstance(chosen, slice) else np.atleast_1d(np.asarray(chosen))]


def _stationary(kernel: Any, X: Value, P: Any) -> Value:
    match type(kernel):
        case theirs.RBF:
            return (_squares(kernel, X, P) * -0.5).exp()
        case theirs.Matern if kernel.nu == math.inf:
            return (_squares(kernel, X, P) * -0.5).exp()
        case theirs.Matern if kernel.nu in FACTORS:
            S = _squares(kernel, X, P, exact=kernel.nu == 0.5) * FACTORS[kernel.nu]
            r = S.sqrt()
            falling = (-r).exp()
            if kernel.nu == 0.5:
                return falling
            return falling * (r + 1.0 if kernel.nu == 1.5 else S * (1.0 / 3.0) + r + 1.0)
        case theirs.RationalQuadratic:
            S = _squares(kernel, X, P) * (0.5 / float(kernel.alpha)) + 1.0
            return (S.log() * -float(kernel.alpha)).exp()
        case theirs.ExpSineSquared:
            s = (_squares(kernel, X, P, "periodicity", exact=True).sqrt() * math.pi).sin()
            return (s * s * (-2.0 / float(kernel.length_scale) ** 2)).exp()
    raise OnnxExportError(f"The kernel {kernel} has no ONNX form; those that have one are {KNOWN}.")


def _squares(kernel: Any, X: Value, P: Any, scale: str = "length_scale", *, exact: bool = False) -> Value:
    """Return squared distances of scaled rows: column by column, or by a product where that is as good."""
    scales = np.broadcast_to(by_column(kernel, scale, P.shape[1]), P.shape[1])
    centre = P.mean(axis=0)
    A, B = (X - centre) * (1.0 / scales), (P - centre) / scales
    if exact or P.shape[1] <= 2 or np.einsum("ij,ij->i", B, B).max() > LONG:
        each = [A[[d]] - B[None, :, d] for d in range(P.shape[1])]
        total: Value = each[0] * each[0]
        for away in each[1:]:
            total = total + away * away
        return total
    out: Value = (A * A).sum() + np.einsum("ij,ij->i", B, B)[None] - A @ (2.0 * B.T)
    return out.maximum(0.0)
