"""What comes in from a user, checked; every error one sentence that says what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from gpclass.kernels import RBF, ConstantKernel, diag, matrix
from gpclass.protocols import Array, Inputs


def check_inputs(estimator: Any, X: Any, y: Any = None, *, vectors: bool, fitting: bool) -> Any:
    """Return X (and y when fitting) as float64 rows, or as they are for kernels on structured inputs."""
    options: dict[str, Any] = {"ensure_2d": vectors, "dtype": np.float64 if vectors else None}
    if vectors:
        options["ensure_all_finite"] = False  # told below, with the place
    if fitting:
        X, y = validate_data(estimator, X, y, **options)
    else:
        X = validate_data(estimator, X, reset=False, **options)
    if vectors:
        _check_finite(X, getattr(estimator, "feature_names_in_", None))
    return (X, y) if fitting else X


def _check_finite(X: Array, names: Any) -> None:
    # The sum is finite when all is well, and needs no array of flags.
    with np.errstate(over="ignore", invalid="ignore"):
        total = X.sum()
    if np.isfinite(total) or np.isfinite(X).all():
        return
    row, column = np.argwhere(~np.isfinite(X))[0]
    what = "NaN" if np.isnan(X[row, column]) else "infinity (inf)"
    where = column if names is None else repr(str(names[column]))
    raise ValueError(
        f"Input X contains {what} in row {row}, column {where}: drop or impute such rows before, for "
        "example with sklearn.impute.SimpleImputer."
    )


def check_weights(sample_weight: Any, class_weight: Any, y: Any) -> Array | None:
    """Return one weight a datum, or None when all are one."""
    from sklearn.utils.class_weight import compute_sample_weight

    weight = None
    if sample_weight is not None:
        weight = np.asarray(sample_weight, dtype=float)
        if weight.ndim == 0:
            weight = np.full(len(y), float(weight))
        if weight.shape != (len(y),):
            raise ValueError(
                f"sample_weight has shape {weight.shape}, expected ({len(y)},): one weight for each row of X."
            )
        if not np.isfinite(weight).all() or (weight < 0).any():
            row = int(np.argmin(np.where(np.isfinite(weight), weight, -np.inf)))
            raise ValueError(
                f"sample_weight[{row}] is {weight[row]}, expected a finite number that is not negative."
            )
        if not weight.any():
            raise ValueError("All sample weights are zero, expected some positive ones.")
    if class_weight is not None:
        by_class = compute_sample_weight(class_weight, y)
        weight = by_class if weight is None else weight * by_class
    return None if weight is None or (weight == 1.0).all() else weight


def merge_copies(X: Inputs, codes: Any, weight: Array | None, kernel: Any) -> tuple[Any, Any, Any]:
    """Return distinct rows with their classes and the sums of their weights, in an order of their own.

    k copies of a datum are one datum of weight k, so that the cost is that of the distinct ones, and the
    answer to the last bit does not depend on which of the two was given. Kernels with noise of their own
    for each row (`WhiteKernel`) tell copies apart, so then nothing is merged.
    """
    if not isinstance(X, np.ndarray) or X.ndim != 2 or _is_noisy(kernel, X):
        return X, codes, weight
    rows, first, inverse = np.unique(
        np.column_stack([X, codes]), axis=0, return_index=True, return_inverse=True
    )
    if len(rows) == len(X) and weight is None:
        return X, codes, None
    total = np.bincount(inverse.ravel(), weights=weight)
    return X[first], codes[first], None if (total == 1.0).all() else total


def _is_noisy(kernel: Any, X: Array) -> bool:
    return kernel is not None and bool(diag(kernel, X[:1])[0] != matrix(kernel, X[:1], X[:1])[0, 0])


def default_kernel(X: Array, weight: Array | None = None) -> Any:
    """Return 1.0 * RBF with one length scale a column, started and bounded by each column's spread.

    Distances of standardised rows grow like the root of the number of columns, hence the start. A length
    scale a hundred times the spread already means that a column does not matter.
    """
    centre = np.average(X, axis=0, weights=weight)
    spread = np.sqrt(np.average((X - centre) ** 2, axis=0, weights=weight))
    spread = np.where(spread > 0.0, spread, 1.0)
    scale = spread * np.sqrt(X.shape[1])
    bounds = np.column_stack([1e-2 * spread, 1e2 * scale])
    if X.shape[1] == 1:
        scale, bounds = scale[0], bounds[0]
    return ConstantKernel(1.0, (1e-2, 1e4)) * RBF(scale, bounds)


def take(X: Inputs, rows: Any) -> Inputs:
    """Return some rows of X, an array or a sequence of objects."""
    return X[rows] if isinstance(X, np.ndarray) else [X[i] for i in rows]
