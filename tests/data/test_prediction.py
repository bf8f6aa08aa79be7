"""Predictions for Dask collections are made when they are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from moments import NAMES, labelled_rows

from gpclass.data.prediction import lazy_predict

da = pytest.importorskip("dask.array")
N = 600


def test_arrays():
    X = labelled_rows(N)[0]
    lazy = da.from_array(X, chunks=(250, 2))
    classes = np.array(["no", "yes"])
    labels = lazy_predict(lambda rows: classes[(rows[:, 0] > 0).astype(int)], lazy, dtype=classes.dtype)
    assert (labels.shape, labels.dtype, labels.chunks) == ((N,), classes.dtype, ((250, 250, 100),))
    assert np.array_equal(labels.compute(), np.where(X[:, 0] > 0, "yes", "no"))
    P = lazy_predict(lambda rows: np.stack([rows[:, 0], 1 - rows[:, 0]], axis=1), lazy, classes=classes)
    assert (P.shape, P.chunks[1]) == ((N, 2), (2,))
    assert np.array_equal(P.compute(), np.stack([X[:, 0], 1 - X[:, 0]], axis=1))
    few = lazy[lazy[:, 0] > 2.0]  # sizes unknown
    assert np.array_equal(lazy_predict(lambda rows: rows[:, 1], few).compute(), X[X[:, 0] > 2.0, 1])


def test_frames():
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    frame = pd.DataFrame(labelled_rows(N)[0], columns=NAMES, index=np.arange(N) + 7)
    lazy = dd.from_pandas(frame, npartitions=4)
    first = lazy_predict(lambda rows: rows["x0"], lazy)
    pd.testing.assert_series_equal(first.compute(), frame["x0"], check_names=False)
    P = lazy_predict(lambda rows: rows[["x0", "x1"]], lazy, classes=["no", "yes"])
    assert list(P.columns) == ["no", "yes"]
    assert np.array_equal(P.compute().to_numpy(), frame[["x0", "x1"]].to_numpy())
    none = lazy_predict(lambda rows: 1 / 0, lazy[lazy["x0"] > 1e9])  # is not called for no rows
    assert len(none.compute()) == 0
