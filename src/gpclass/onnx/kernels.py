"""Covariances as ONNX operators, by the class of the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Kernel, Product, Sum, WhiteKernel

from gpclass.core.protocols import Array
from gpclass.kernels import Columns, Grouped, Linear, Stationary, Warped
from gpclass.kernels.base import formulas_of
from gpclass.kernels.inputs import positions
from gpclass.kernels.stationary import per_column
from gpclass.onnx.graph import OnnxExportError, Value

LONGEST = 1e4  # largest squared norm of a scaled row for which distances are computed by products
NO_POWER = 1e-9  # replaces a power of zero, which would need a logarithm; they agree to nine digits


def covariances(kernel: Kernel, X: Value, n_columns: int, P: Array | None = None) -> Any:
    """Return k(X, P) with shape (rows, len(P)), or the column of all k(x, x) if P is None."""
    formulas = formulas_of(kernel)
    form = _stationary if isinstance(formulas, Stationary) else FORMS.get(type(kernel))
    if form is None:
        raise OnnxExportError(
            f"The kernel {kernel} cannot be exported to ONNX: use stationary and linear kernels, constants, sums, "
            "products and Columns."
        )
    return form(kernel, X, n_columns, P)


def _filled(X: Value, P: Array | None, value: float) -> Any:
    """Return one number for all pairs."""
    return X[[0]] * 0.0 + np.full((1, 1 if P is None else len(P)), value)


def _columns(kernel: Any, X: Value, n_columns: int, P: Array | None) -> Any:
    index = positions(kernel.columns, n_columns)
    return covariances(kernel.kernel, X[index], len(index), None if P is None else P[:, index])


def _warped(kernel: Any, X: Value, n_columns: int, P: Array | None) -> Any:
    on = np.asarray(kernel.scale) > 0.0
    u = (X - np.where(on, kernel.centre, 0.0)) * (1.0 / np.where(on, kernel.scale, 1.0))
    size = np.absolute(u)
    if kernel.power is None:
        g = np.log(size * 2.0 + np.sqrt(size * size * 4.0 + 1.0))  # asinh(2 |u|)
    else:
        power = np.asarray(kernel.power) + np.where(np.isin(kernel.power, (0.0, 2.0)), NO_POWER, 0.0)
        exponent = (u < 0.0).where(np.float64(2.0) - power, power)
        g = (np.exp(np.log1p(size) * exponent) - 1.0) / exponent
    g = (u < 0.0).where(np.negative(g), g)
    there = (g * kernel.slope + kernel.offset) * on.astype(float) + X * (~on).astype(float)
    return covariances(kernel.kernel, there, n_columns, None if P is None else kernel.inputs(P))


def _dot_product(kernel: Any, X: Value, n_columns: int, P: Array | None) -> Any:
    return ((X * X).sum() if P is None else X @ P.T) + float(kernel.sigma_0) ** 2


def _linear(kernel: Any, X: Value, n_columns: int, P: Array | None) -> Any:
    centre, scale = (per_column(kernel, name, n_columns) for name in ("centre", "length_scale"))
    U = (X - centre) * (1.0 / scale)
    return (U * U).sum() if P is None else U @ ((P - centre) / scale).T


def _stationary(kernel: Any, X: Value, n_columns: int, P: Array | None) -> Any:
    if P is None:
        return _filled(X, P, 1.0)
    formulas: Any = formulas_of(kernel)
    profile, centre = formulas.profile(kernel), P.mean(axis=0)
    scales = np.broadcast_to(per_column(kernel, formulas.scale, n_columns), n_columns)
    A, B = (X - centre) * (1.0 / scales), (P - centre) / scales
    norms = np.vecdot(B, B)
    if profile.exact or n_columns <= 2 or norms.max() > LONGEST:
        S: Any = 0.0
        for d in range(n_columns):
            difference = A[[d]] - B[None, :, d]
            S = S + difference * difference
    else:
        S = np.maximum((A * A).sum() + norms[None] - A @ (2.0 * B.T), 0.0)
    return profile.value(S * profile.factor)


FORMS: dict[type, Callable[..., Any]] = {
    ConstantKernel: lambda kernel, X, _, P: _filled(X, P, float(kernel.constant_value)),
    WhiteKernel: lambda kernel, X, _, P: _filled(X, P, float(kernel.noise_level) if P is None else 0.0),
    Sum: lambda kernel, *at: covariances(kernel.k1, *at) + covariances(kernel.k2, *at),
    Product: lambda kernel, *at: covariances(kernel.k1, *at) * covariances(kernel.k2, *at),
    Columns: _columns,
    Grouped: lambda kernel, *at: covariances(kernel.widened()[0], *at),
    Warped: _warped,
    DotProduct: _dot_product,
    Linear: _linear,
}
