"""Covariances as ONNX operators, by the class of the kernel or of its formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Exponentiation, Kernel, Product, Sum, WhiteKernel

from gpclass.core.protocols import Array
from gpclass.kernels import Columns, GaussianUnits, Grouped, InnerProduct, Stationary, Warped
from gpclass.kernels.columns import positions
from gpclass.kernels.covariances import formulas_of, registered
from gpclass.kernels.metric import per_column, squared_norms
from gpclass.onnx.graph import OnnxExportError, Value

LONGEST = 1e4  # squared norm of a scaled row up to which distances come from products, not from differences

NO_POWER = 1e-9  # instead of a power of zero, which would be a logarithm: they agree to nine digits

Form = Callable[[Any, Value, int, Array | None], Any]


def covariances(kernel: Kernel, X: Value, n_columns: int, P: Array | None = None) -> Value:
    """Return k(X, P) with shape (rows, len(P)), or the column of all k(x, x) if P is None."""
    try:
        out: Value = _express(kernel, X, n_columns, P)
    except OnnxExportError as error:
        expressed = [
            cls.__name__ for cls, formulas in registered().items() if {cls, type(formulas)} & {*FORMS}
        ]
        raise OnnxExportError(
            f"The kernel {kernel} has no ONNX form: {error}. The kernels that have one are "
            f"{', '.join(expressed)} (Matern with nu = 0.5, 1.5, 2.5 or inf)."
        ) from error
    return out


def _express(kernel: Kernel, X: Value, n_columns: int, P: Array | None) -> Any:
    form = FORMS.get(type(kernel)) or FORMS.get(type(formulas_of(kernel)))
    if form is None:
        raise OnnxExportError(f"there are no formulas for {kernel}")
    return form(kernel, X, n_columns, P)


def _filled(X: Value, P: Array | None, value: float) -> Any:
    """Return one number for all pairs."""
    return X[[0]] * 0.0 + np.full((1, 1 if P is None else len(P)), value)


def _columns(kernel: Any, X: Value, n_columns: int, P: Array | None) -> Any:
    index = positions(kernel.columns, n_columns)
    return _express(kernel.kernel, X[index], len(index), None if P is None else P[:, index])


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
    return _express(kernel.kernel, there, n_columns, None if P is None else kernel.inputs(P))


def _grouped(kernel: Any, *at: Any) -> Any:
    return _express(kernel.widened()[0], *at)


def _inner_product(kernel: Any, X: Value, n_columns: int, P: Array | None) -> Any:
    formulas: Any = formulas_of(kernel)
    profile = formulas.profile(kernel)
    centre, scale = formulas.scaled(kernel, n_columns)
    U = (X - centre) * (1.0 / scale.values)
    S = (U * U).sum() if P is None else U @ ((P - centre) / scale.values).T
    return profile.value(S * profile.factor)


def _squares(X: Value, P: Array, scales: Array, *, exact: bool) -> Any:
    """Return the squared distances of rows in units of the scales."""
    centre = P.mean(axis=0)
    A, B = (X - centre) * (1.0 / scales), (P - centre) / scales
    norms = squared_norms(B)
    if not (exact or P.shape[1] <= 2 or norms.max() > LONGEST):
        return ((A * A).sum() + norms[None] - A @ (2.0 * B.T)).maximum(0.0)
    differences = [A[[d]] - B[None, :, d] for d in range(P.shape[1])]
    return sum((each * each for each in differences[1:]), start=differences[0] * differences[0])


def _stationary(kernel: Any, X: Value, n_columns: int, P: Array | None) -> Any:
    if P is None:
        return _filled(X, P, 1.0)
    formulas: Any = formulas_of(kernel)
    profile = formulas.profile(kernel)
    scales = np.broadcast_to(per_column(kernel, formulas.scale, n_columns).values, n_columns)
    return profile.value(_squares(X, P, scales, exact=profile.exact) * profile.factor)


def _gaussian_units(kernel: Any, X: Value, n_columns: int, P: Array | None) -> Any:
    fade, decay = kernel.rates()
    norms = (X * X).sum()
    if P is None:
        return np.exp(norms * -fade)
    squares = _squares(X, P, np.ones(n_columns), exact=False)
    return np.exp((norms + squared_norms(P)[None]) * (-0.5 * fade) + squares * (-0.5 * decay))


FORMS: dict[type, Form] = {
    ConstantKernel: lambda kernel, X, _, P: _filled(X, P, float(kernel.constant_value)),
    WhiteKernel: lambda kernel, X, _, P: _filled(X, P, float(kernel.noise_level) if P is None else 0.0),
    Sum: lambda kernel, *at: _express(kernel.k1, *at) + _express(kernel.k2, *at),
    Product: lambda kernel, *at: _express(kernel.k1, *at) * _express(kernel.k2, *at),
    Exponentiation: lambda kernel, *at: _express(kernel.kernel, *at) ** float(kernel.exponent),
    Columns: _columns,
    Grouped: _grouped,
    Warped: _warped,
    GaussianUnits: _gaussian_units,
    InnerProduct: _inner_product,
    Stationary: _stationary,
}
