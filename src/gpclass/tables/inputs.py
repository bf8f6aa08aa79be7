"""The inputs of a classifier: arrays of numbers as they are, and tables through an encoder."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.tables.encoder import NUMERIC, Encoder
from gpclass.tables.kinds import is_explicit, warn_of_doubts
from gpclass.tables.reading import Values, as_table, check_names, columns_of
from gpclass.tables.records import finite_numbers
from gpclass.validation import check_inputs, is_missing


def read_inputs(
    estimator: Any, X: Any, y: Any = None, weight: Any = None, *, vectors: bool, fitting: bool
) -> Any:
    """Return X (and y when fitting) as rows of float64, or as they are for kernels on structured inputs.

    Fitting sets ``estimator.encoder_``, which is None if X has only numbers and no gaps. ``weight`` has the weights of
    the rows.
    """
    options: dict[str, Any] = {"vectors": vectors, "fitting": fitting}
    if vectors:
        X = as_table(X)
    if not fitting:
        encoder = getattr(estimator, "encoder_", None)
        if encoder is not None:
            return encoder.code(X)
        check_names(X, getattr(estimator, "feature_names_in_", None))
        numeric = isinstance(X, np.ndarray) and X.dtype.kind in "biuf"
        for column in columns_of(X) if vectors and not numeric else ():
            finite_numbers(column, "number")
        return check_inputs(estimator, X, **options)
    given, estimator.encoder_, y = estimator.categorical_features, None, plain_labels(y)
    if not vectors or not needs_coding(X, given):
        X, y = check_inputs(estimator, X, y, **options)
        if vectors and hasattr(estimator, "feature_names_in_") and X.shape[1] > 1:
            warn_of_doubts(dict(zip(estimator.feature_names_in_, X.T, strict=True)))
        return X, y
    encoder = Encoder(given).fit(X, sample_weight=weight)
    X, y = check_inputs(estimator, encoder.code(X, warn=False), y, **options)
    estimator.encoder_, estimator.n_features_in_ = encoder, encoder.n_features_in_
    if hasattr(encoder, "feature_names_in_"):
        estimator.feature_names_in_ = encoder.feature_names_in_
    return X, y


def plain_labels(y: Any) -> Any:
    """Return labels of object or pandas types as booleans or integers if possible; raise if one is missing."""
    if isinstance(y, str):
        raise ValueError(f"y is the text {y!r}, expected a label for each row: give X[{y!r}] as y.")
    given = y if hasattr(y, "dtype") else np.array(y, dtype=object)  # otherwise NaN may become "nan"
    if len(given.shape) != 1:
        return y
    plain = isinstance(given.dtype, np.dtype) and given.dtype.kind != "O"
    labels = np.asarray(given) if plain else Values("y", given).objects
    gaps = labels != labels if plain else list(map(is_missing, labels))  # NaN and NaT differ from themselves
    if np.any(gaps):
        raise ValueError(f"y contains NaN or None in row {np.argmax(gaps)}: drop the rows without a label.")
    kinds = set() if plain else set(map(type, labels))
    if kinds & {list, tuple}:
        raise ValueError("y has lists as labels, expected text, integers or truth values, one for each row.")
    return np.asarray(labels) if len(kinds) == 1 and isinstance(labels[0], int | np.bool_ | np.integer) else y


def needs_coding(X: Any, categorical_features: Any = "from_dtype") -> bool:
    """Return whether a table has missing values, or columns other than numbers and booleans.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.tables.inputs import needs_coding
    >>> needs_coding(np.eye(2)), needs_coding(np.array([[1.0, np.nan]])), needs_coding(np.array([["a"]]))
    (False, True, True)
    """
    X = as_table(X)
    if is_explicit(categorical_features):
        return bool(columns_of(X))
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        return X.ndim == 2 and bool(np.isnan(X).any())
    return any(column.kind not in NUMERIC or np.isnan(column.numbers()).any() for column in columns_of(X))
