"""Predictions for the rows of a Dask collection, computed lazily on its workers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted


def predict_lazily(model: Any, method: str, X: Any) -> Any:
    """Return what a method of the model ("predict", "predict_proba", ...) predicts for a Dask collection, lazily."""
    check_is_fitted(model)
    work = partial(_predicted, model, method)
    if hasattr(X, "columns"):
        return X.map_partitions(work, meta=work(X._meta[:0]))
    X = X.rechunk({1: -1})
    labels = {"drop_axis": 1} if method == "predict" else {"chunks": (X.chunks[0], (len(model.classes_),))}
    return X.map_blocks(work, meta=work(np.empty((0, X.shape[1]))), **labels)


def _predicted(model: Any, method: str, X: Any) -> Any:
    """Return the predictions for a partition, with its index if it has one; it may be empty."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    labels = method == "predict"
    values = model.classes_[:0] if labels else np.empty((0, len(model.classes_)))
    if len(X):
        with threadpool_limits(1):
            values = getattr(model, method)(X)
    if not hasattr(X, "columns"):
        return values
    import pandas as pd

    return pd.Series(values, X.index) if labels else pd.DataFrame(values, X.index, list(model.classes_))
