"""Columns of every package of tables have the same kinds and values."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gpclass.tables.reading import Values, as_table, columns_of
from gpclass.validation import is_missing

DAYS = [datetime.date(2020, 1, 1), None, datetime.date(2020, 3, 1)]
MOMENTS = [datetime.datetime(2020, 1, 1, 12), None, datetime.datetime(2020, 3, 1)]
SPANS = [datetime.timedelta(1), None, datetime.timedelta(hours=36)]
# name: values, kind, numbers
COLUMNS = {
    "whole": ([1, 2, 4], "number", [1, 2, 4]),
    "gaps": ([1, None, 4], "number", [1, np.nan, 4]),
    "floats": ([1.5, None, 4], "number", [1.5, np.nan, 4]),
    "decimals": ([decimal.Decimal("1.5"), None, decimal.Decimal(4)], "number", [1.5, np.nan, 4]),
    "truth": ([True, None, False], "truth", None),
    "text": (["a", None, "b"], "text", None),
    "days": (DAYS, "date", [18262, np.nan, 18322]),
    "moments": (MOMENTS, "date", [18262.5, np.nan, 18322]),
    "spans": (SPANS, "duration", [1, np.nan, 1.5]),
    "times": ([datetime.time(6), None, datetime.time(12)], "duration", [0.25, np.nan, 0.5]),
    "nothing": ([None] * 3, "number", [np.nan] * 3),
}
TABLES = {
    "pandas": lambda values: pd.DataFrame({"a": values}),
    "pandas objects": lambda values: pd.DataFrame({"a": pd.Series(values, dtype=object)}),
    "pandas with Arrow": lambda values: pd.DataFrame(
        {"a": pd.array(values, dtype=pd.ArrowDtype(pa.array(values).type))}
    ),
    "polars": lambda values: pl.DataFrame({"a": values}),
    "Arrow": lambda values: pa.table({"a": values}),
    "array": lambda values: np.array([values], dtype=object).T,
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", COLUMNS)
def test_every_package_gives_the_same_kinds_and_numbers(table, name):
    values, kind, numbers = COLUMNS[name]
    [column] = columns_of(TABLES[table](values))
    assert column.name == ("x0" if table == "array" else "a")
    assert column.kind == kind
    assert [is_missing(value) for value in column.objects] == [value is None for value in values]
    if numbers is not None:
        np.testing.assert_allclose(column.numbers(kind), numbers, rtol=1e-15)


def test_time_zones_are_converted_to_utc():
    local = pd.Series(pd.to_datetime(["2020-01-01", None, "2020-07-01"]).tz_localize("Europe/Berlin"))
    frame = pd.DataFrame({"a": local})
    expected = [18262 - 1 / 24, np.nan, 18444 - 2 / 24]
    python = np.array([[None if is_missing(v) else v.to_pydatetime()] for v in local], dtype=object)
    for X in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame), frame.astype(object), python):
        [column] = columns_of(X)
        np.testing.assert_allclose(column.numbers("date"), expected, rtol=1e-14)


def test_categorical_types_are_categories():
    frame = pd.DataFrame({"a": pd.Categorical(["high", None, "low"], ordered=True)})
    levels = pl.Enum(["low", "high"])
    frames = [frame, pl.DataFrame({"a": pl.Series(["high", None, "low"], dtype=levels)})]
    arrow = pa.Table.from_pandas(frame)
    for X in (*frames, arrow, arrow.to_pandas(types_mapper=pd.ArrowDtype)):
        [column] = columns_of(X)
        assert column.kind == "category"
        assert column.present == ["high", "low"]
    for column in (pl.Series(["a"], dtype=pl.Categorical), pa.array(["a"]).dictionary_encode()):
        assert Values("a", column).kind == "category"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, "a"], "text"),
        ([True, 2], "number"),
        ([np.float32(1), None], "number"),
        ([{}], "other"),
        ([[1]], "other"),
    ],
)
def test_kinds_of_objects(values, kind):
    assert Values("a", np.array([*values, None], dtype=object)).kind == kind


def test_lazy_frames_are_refused():
    with pytest.raises(ValueError, match=r"give X\.collect\(\)"):
        as_table(pl.LazyFrame({"a": [1]}))


def test_what_is_missing():
    assert all(
        map(is_missing, [None, np.nan, float("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), np.float32("nan")])
    )
    assert not any(
        map(is_missing, ["", "nan", 0, False, np.array([1.0]), pd.Timestamp(0), decimal.Decimal(1)])
    )


def test_tables_that_need_another_form_say_which():
    series = pd.Series(["a", "b"])
    for X, remedy in (
        ({"a": [1.0]}, r"give pandas.DataFrame\(X\)"),
        ([{"a": 1.0}], r"give pandas.DataFrame\(X\)"),
        (series, r"give X.to_frame\(\)"),
        (pl.Series(["a", "b"]), r"give X.to_frame\(\)"),
    ):
        with pytest.raises(ValueError, match=remedy):
            as_table(X)


def test_masked_values_are_missing():
    X = np.ma.masked_equal(np.array([[1, -999], [2, 3]]), -999)
    np.testing.assert_array_equal(as_table(X), [[1.0, np.nan], [2.0, 3.0]])
