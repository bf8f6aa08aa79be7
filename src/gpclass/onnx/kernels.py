"""Covariances with the training inputs as ONNX operators, from the same formulas as the matrices."""

from __future__ import annotations

from typing import Any

from gpclass.core.protocols import Array
from gpclass.kernels.formulas import Formulas, entries, express
from gpclass.onnx.graph import OnnxExportError, Value


def covariances(kernel: Any, X: Value, n_columns: int, P: Array | None = None) -> Value:
    """Return k(X, P) with shape (rows, len(P)), or the column of all k(x, x) if P is None."""
    try:
        out: Value = express(kernel, X, n_columns, P)
    except (NotImplementedError, OnnxExportError) as error:
        known = entries().values()
        expressed = [e.name for e in known if type(e.formulas).express is not Formulas.express]
        raise OnnxExportError(
            f"The kernel {kernel} has no ONNX form: {error}. The kernels that have one are "
            f"{', '.join(expressed)} (Matern with nu = 0.5, 1.5, 2.5 or inf)."
        ) from error
    return out
