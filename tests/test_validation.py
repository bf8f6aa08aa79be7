"""Dates among the inputs; bytes as labels and estimators that are not a classifier are refused in one sentence."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpclass import GaussianProcessClassifier, compare, to_onnx
from gpclass.kernels import RBF

N = 12
NUMBERS = np.random.default_rng(0).normal(size=N)
Y = (NUMBERS > 0).astype(int)
DAYS = pd.date_range("2020-01-31", periods=N)
TIMES = [datetime.time(i) for i in range(N)]
COLUMNS = {
    "days": DAYS,
    "with a time zone": DAYS.tz_localize("Europe/Berlin"),
    "durations": DAYS - DAYS[0],
    "periods": DAYS.to_period("D"),
    "Timestamp objects": DAYS.astype(object),
    "a date among None": [None, *DAYS.date[1:]],
    "times": TIMES,
    "Timedelta objects": (DAYS - DAYS[0]).astype(object),
    "datetime64 objects": np.array(list(DAYS.values), dtype=object),
    "arrow days": pd.array(DAYS, dtype="timestamp[ns][pyarrow]"),
    "arrow durations": pd.array(DAYS - DAYS[0], dtype="duration[ns][pyarrow]"),
    "polars days": pl.Series(DAYS.date),
    "polars datetimes": pl.Series(DAYS.to_pydatetime()),
    "polars durations": pl.Series([datetime.timedelta(i) for i in range(N)]),
    "polars times": pl.Series(TIMES),
}


def frames(values, name="when"):
    make = pl.DataFrame if isinstance(values, pl.Series) else pd.DataFrame
    yield make({"x": NUMBERS, name: values}), name
    yield make({name: values}), name


def arrays():
    days = DAYS.values
    for column in (days, days - days[0]):
        yield column[:, None], "0"
        yield column[:, None].tolist(), "0"
        yield list(column[:, None]), "0"
        yield [list(pair) for pair in zip(NUMBERS, column, strict=True)], "1"
        yield np.array(list(zip(NUMBERS, column, strict=True)), dtype=object), "1"
    yield [list(pair) for pair in zip(NUMBERS, DAYS.to_pydatetime(), strict=True)], "1"


def classifier(**options):
    return GaussianProcessClassifier(RBF(1.0), optimizer=None, inference="vi", **options)


def refused(call, name):
    with pytest.raises(
        ValueError, match=rf"^Column {name} of X has the type .* training rows had numbers"
    ) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("kind", COLUMNS)
def test_dates_are_fitted_and_are_refused_by_a_model_of_numbers(kind):
    for frame, name in frames(COLUMNS[kind]):
        fitted = classifier().fit(frame, Y)
        assert fitted.encoder_.columns_[-1].kind in ("date", "duration")
        assert fitted.predict_proba(frame).shape == (N, 2)
        numbers = dict.fromkeys(frame.columns, NUMBERS)
        fitted = classifier().fit(type(frame)(numbers), Y)
        refused(lambda frame=frame, fitted=fitted: fitted.predict(frame), repr(name))
        refused(lambda frame=frame, fitted=fitted: fitted.predict_proba(frame), repr(name))


def test_arrays_and_lists_of_dates():
    for rows, name in arrays():
        if isinstance(rows, list) and isinstance(rows[0], list) and isinstance(rows[0][0], int):
            continue  # tolist() of nanoseconds gives integers
        assert classifier().set_params(kernel="rbf").fit(rows, Y).encoder_ is not None
        fitted = classifier().fit(np.ones((N, np.shape(rows)[1])) * NUMBERS[:, None], Y)
        refused(lambda rows=rows, fitted=fitted: fitted.predict(rows), f"'x{name}'")


def test_frames_whose_columns_have_the_same_name():
    frame = pd.DataFrame({"a": NUMBERS, "b": DAYS}).set_axis(["a", "a"], axis=1)
    with pytest.raises(ValueError, match="several columns called 'a'"):
        classifier().fit(frame, Y)


def test_numbers_in_objects_and_lists_still_fit():
    rows = np.array([[1, 2.5], [True, 3]] * 6, dtype=object)
    for X in (rows, rows.tolist(), pd.DataFrame(rows), tuple(map(tuple, NUMBERS[:, None]))):
        assert classifier().fit(X, Y).n_features_in_ == len(X[0] if not hasattr(X, "columns") else X.columns)


# --------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize("kind", ["S", "object", "list", "series"])
def test_labels_of_bytes(kind):
    labels = np.array([b"no", b"yes"])[Y]
    labels = {
        "S": labels,
        "object": labels.astype(object),
        "list": list(labels),
        "series": pd.Series(labels),
    }[kind]
    for call in (classifier().fit, classifier().partial_fit, lambda X, y: compare(X, y, methods="laplace")):
        with pytest.raises(
            ValueError, match=r"^y has labels of bytes, expected text or integers: decode them"
        ) as error:
            call(NUMBERS[:, None], labels)
        assert "\n" not in str(error.value)


def test_the_advice_for_bytes_works():
    labels = np.array([b"no", b"yes"])[Y]
    assert classifier().fit(NUMBERS[:, None], np.char.decode(labels)).classes_.tolist() == ["no", "yes"]
    assert (
        classifier().fit(NUMBERS[:, None], np.char.decode(labels.astype(object).astype("S"))).n_classes_ == 2
    )


# ----------------------------------------------------------------------------------------- ONNX


def test_what_is_not_a_classifier_cannot_be_exported():
    X = NUMBERS[:, None]
    pipeline = make_pipeline(StandardScaler(), classifier()).fit(X, Y)
    for estimator, name in (
        (pipeline, "Pipeline"),
        (LogisticRegression().fit(X, Y), "LogisticRegression"),
        (3, "int"),
    ):
        with pytest.raises(ValueError, match=rf"^A {name} cannot be exported, expected .*pipeline\[-1\]"):
            to_onnx(estimator)
    pytest.importorskip("onnx")
    assert to_onnx(pipeline[-1])
