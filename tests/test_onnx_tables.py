"""The graph of a table takes its columns as they are, and agrees with the classifier on new and missing values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF
from gpclass.onnx import OnnxExportError, to_onnx

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

rng = np.random.default_rng(0)
N = 90
FRAME = pd.DataFrame(
    {
        "age": np.where(rng.random(N) < 0.2, np.nan, rng.normal(40, 10, N)),
        "size": rng.normal(size=N),
        "constant": 1.0,
        "member": rng.random(N) < 0.5,
        "month": rng.choice([1, 2, 12, np.nan], N),
        "since": pd.date_range("2020-01-01", periods=N, freq="17h"),
        "town": rng.choice(np.array(["Ulm", "Bonn", "Köln", None], dtype=object), N),
        "rooms": rng.choice(np.array([1, 2, "more"], dtype=object), N),
    }
)
Y = np.where(FRAME["size"] + (FRAME["town"] == "Ulm") + 0.3 * rng.normal(size=N) > 0.3, "yes", "no")
NEW = FRAME.assign(
    age=FRAME["age"].to_numpy()[::-1],
    size=np.where(np.arange(N) < 5, np.nan, FRAME["size"]),
    month=np.where(np.arange(N) < 8, 7, FRAME["month"]),
    town=np.where(np.arange(N) < 10, "Rom", FRAME["town"].to_numpy()[::-1]),
)


def fitted(frame):
    clf = GaussianProcessClassifier(
        4.0 * RBF(3.0), optimizer=None, inference="laplace", categorical_features=["month"]
    )
    return clf.fit(frame, Y)


def numbers(column):
    """Return a column as the graph takes it: days, and booleans as 0 and 1."""
    if column.dtype.kind == "M":
        return (column - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return column.astype(float)


def run(clf, feed):
    session = runtime.InferenceSession(to_onnx(clf), providers=["CPUExecutionProvider"])
    assert [each.name for each in session.get_inputs()] == list(feed)
    return session.run(["label", "probabilities"], feed)


def test_a_table_with_text_has_an_input_for_each_column():
    clf = fitted(FRAME)
    feed = {
        name: numbers(NEW[name]).to_numpy()[:, None] for name in ("age", "size", "member", "month", "since")
    }
    feed |= {name: NEW[[name]].fillna("").astype(str).to_numpy(dtype=object) for name in ("town", "rooms")}
    label, proba = run(clf, feed)
    with pytest.warns(UserWarning, match="5 in column 'size', 8 in column 'month', 10 in column 'town'"):
        expected = clf.predict_proba(NEW)
    assert (label == clf.classes_[expected.argmax(axis=1)]).all()
    np.testing.assert_allclose(proba, expected, atol=1e-9)


def test_a_table_without_text_is_one_matrix():
    names = ["age", "size", "constant", "member", "month", "since"]
    clf = fitted(FRAME[names])
    X = NEW[names].apply(numbers).to_numpy()
    with pytest.warns(UserWarning, match="did not have"):
        expected = clf.predict_proba(NEW[names])
    np.testing.assert_allclose(run(clf, {"X": X})[1], expected, atol=1e-9)


def test_columns_with_the_name_of_an_output_are_refused():
    with pytest.raises(
        OnnxExportError, match="A column is called 'label', like an output of the graph: rename it"
    ):
        to_onnx(fitted(FRAME.rename(columns={"size": "label"})))
