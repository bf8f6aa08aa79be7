"""Predictions for the rows of a Dask collection, computed lazily on its workers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpclass.data.sources import is_dask

F = TypeVar("F", bound=Callable[..., Any])


def lazily(*, labels: bool = False) -> Callable[[F], F]:
    """Return a decorator for predictions, of labels or of all classes, that are lazy if X is a Dask collection."""

    def decorate(method: F) -> F:
        @wraps(method)
        def predict(self: Any, X: Any) -> Any:
            if not is_dask(X):
                return method(self, X)
            check_is_fitted(self)
            work = partial(_predicted, method, self, labels)
            if hasattr(X, "columns"):
                return X.map_partitions(work, meta=work(X._meta[:0]))
            X = X.rechunk({1: -1})
            shape = {"drop_axis": 1} if labels else {"chunks": (X.chunks[0], (len(self.classes_),))}
            return X.map_blocks(work, meta=work(np.empty((0, X.shape[1]))), **shape)

        return cast(F, predict)

    return decorate


def _predicted(method: Any, model: Any, labels: bool, X: Any) -> Any:
    """Return the predictions for a partition, with its index if it has one; it may be empty."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    values = model.classes_[:0] if labels else np.empty((0, len(model.classes_)))
    if len(X):
        with threadpool_limits(1):
            values = method(model, X)
    if not hasattr(X, "columns"):
        return values
    import pandas as pd

    return pd.Series(values, X.index) if labels else pd.DataFrame(values, X.index, list(model.classes_))
