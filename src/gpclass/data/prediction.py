"""Predictions for the rows of a Dask collection, computed lazily on its workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpclass.data.sources import is_dask

F = TypeVar("F", bound=Callable[..., Any])


def lazily(*, labels: bool = False) -> Callable[[F], F]:
    """Return a decorator for predictions that are lazy if X is a Dask collection."""

    def decorate(method: F) -> F:
        @wraps(method)
        def predict(self: Any, X: Any) -> Any:
            if not is_dask(X):
                return method(self, X)
            check_is_fitted(self)
            if labels:
                return lazy_predict(partial(method, self), X, dtype=self.classes_.dtype)
            return lazy_predict(partial(method, self), X, classes=self.classes_)

        return cast(F, predict)

    return decorate


def lazy_predict(
    function: Callable[[Any], Any], X: Any, *, classes: Sequence[Any] | None = None, dtype: Any = float
) -> Any:
    """Return the predictions of a function as a lazy collection: an array, or a series or frame with the index of X.

    The function takes rows, as an array or a pandas frame, and returns one value per row, or one per row and class.
    """
    work = partial(predicted, function, classes, np.dtype(dtype))
    if hasattr(X, "columns"):
        return X.map_partitions(work, meta=work(X._meta[:0]))
    X = X.rechunk({1: -1})
    columns = {"drop_axis": 1} if classes is None else {"chunks": (X.chunks[0], (len(classes),))}
    return X.map_blocks(work, dtype=dtype, meta=work(np.empty((0, X.shape[1]))), **columns)


def predicted(function: Callable[[Any], Any], classes: Sequence[Any] | None, dtype: Any, X: Any) -> Any:
    """Return the predictions for some rows, with one BLAS thread; the function is not called for no rows."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    values = np.empty(0 if classes is None else (0, len(classes)), dtype=dtype)
    if len(X):
        with threadpool_limits(1):
            values = np.asarray(function(X), dtype=dtype)
    if not hasattr(X, "columns"):
        return values
    import pandas as pd

    if classes is None:
        return pd.Series(values, index=X.index)
    return pd.DataFrame(values, index=X.index, columns=list(classes))
