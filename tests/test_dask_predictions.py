"""Predictions for Dask collections are made when they are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from moments import NAMES, labelled_rows
from sklearn.base import BaseEstimator

from gpclass.data.distributed import predict_lazily

da = pytest.importorskip("dask.array")
N = 600


class Model(BaseEstimator):
    """Predicts by the sign of the first column, and refuses empty blocks."""

    classes_ = np.array(["no", "yes"])

    def __sklearn_is_fitted__(self):
        return True

    def fit(self):
        return self

    def predict(self, X):
        assert len(X)
        return self.classes_[(np.asarray(X)[:, 0] > 0).astype(int)]

    def predict_proba(self, X):
        assert len(X)
        return np.asarray(X)[:, :2]


def test_arrays():
    X, model = labelled_rows(N)[0], Model()
    lazy = da.from_array(X, chunks=(250, 2))
    labels = predict_lazily(model, "predict", lazy)
    assert (labels.shape, labels.dtype, labels.chunks) == ((N,), Model.classes_.dtype, ((250, 250, 100),))
    assert np.array_equal(labels.compute(), np.where(X[:, 0] > 0, "yes", "no"))
    P = predict_lazily(model, "predict_proba", lazy)
    assert (P.shape, P.chunks[1]) == ((N, 2), (2,))
    assert np.array_equal(P.compute(), X[:, :2])
    few = lazy[lazy[:, 0] > 2.0]  # sizes unknown
    assert np.array_equal(predict_lazily(model, "predict_proba", few).compute(), X[X[:, 0] > 2.0, :2])


def test_frames():
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    frame, model = pd.DataFrame(labelled_rows(N)[0], columns=NAMES, index=np.arange(N) + 7), Model()
    lazy = dd.from_pandas(frame, npartitions=4)
    labels = predict_lazily(model, "predict", lazy).compute()
    assert np.array_equal(labels, model.predict(frame))
    assert np.array_equal(labels.index, frame.index)
    P = predict_lazily(model, "predict_proba", lazy)
    assert list(P.columns) == ["no", "yes"]
    assert np.array_equal(P.compute().to_numpy(), frame[["x0", "x1"]].to_numpy())
    assert len(predict_lazily(model, "predict", lazy[lazy["x0"] > 1e9]).compute()) == 0
