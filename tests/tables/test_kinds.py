"""Columns are numbers or categories as a user means them, and doubtful ones are refused with a remedy."""

from __future__ import annotations

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest

from gpclass import GaussianProcessClassifier
from gpclass.tables import ColumnError, Encoder, TableWarning
from gpclass.tables.kinds import MOST_LEVELS, chosen_columns, warn_of_doubts

rng = np.random.default_rng(0)
N = 200


def kind(values, **options):
    frame = pd.DataFrame({"a": values, "z": rng.normal(size=len(values))})
    return Encoder(**options).fit(frame).columns_[0].kind


@pytest.mark.parametrize(
    "levels",
    [
        ["2", "3", "4", "5more"],
        ["2", "4", "more"],
        ["01234", "56789"],
        ["0-2", "3-5"],
        ["1.2.3", "1.2.4"],
        ["yes", "no"],
        ["<3", ">=3"],
        ["10.0.0.1", "192.168.0.1"],
        ["2021-13", "2021-44"],
        ["2010-2014", "2015-2019"],
        ["March", "May"],
        ["10:1", "9:2"],
        [f"level {i}" for i in range(100)],
        [f"{i:05d}" for i in range(0, 99999, 1000)],
        [1, "a"],
    ],
)
def test_texts_are_categories(levels):
    assert kind(np.resize(np.array(levels, dtype=object), N)) == "category"


@pytest.mark.parametrize("levels", [["1", "2"], ["1.5", "-2", ".5", "1e-3", "0"], [" 1", "2 "], ["3.", None]])
def test_texts_that_are_plain_numbers_are_numbers(levels):
    values = np.resize(np.array(levels, dtype=object), N)
    assert kind(values) == "number"
    assert kind(values, categorical_features=["a"]) == "category"


REFUSED = {
    "decimal comma": (["1,5", "2,25"], "numbers as text, such as '1,5': read them as numbers"),
    "thousands": (["1.234.567,5", "2"], "numbers as text, such as '1.234.567,5'"),
    "spaces": (["12 000", "3 500"], "numbers as text"),
    "percent": (["10%", "12.5 %"], "numbers as text, such as '10%': remove the other characters"),
    "currency": (["$5", "$1,200.50"], "numbers as text, such as .*: remove the other characters"),
    "sign after the currency": (
        [f"$-{i},500" for i in range(N)],
        "numbers as text, such as .*: remove the other",
    ),
    "units": (
        [f"{i}.5 kg" for i in range(N)],
        "numbers as text, such as '0.5 kg': remove the other characters",
    ),
    "few texts among numbers": (
        [*map(str, range(50)), "unknown"],
        "texts among its numbers, such as 'unknown': replace them by numbers or missing values",
    ),
    "blanks among numbers": ([*map(str, range(50)), ""], "texts among its numbers, such as ''"),
    "telephone numbers": ([f"{i} 123" for i in range(1000, 1000 + N)], "200 different texts"),
    "dates": (["2020-01-31", "2021-12-01 10:00"], "dates as text, such as '2020-01-31': convert them"),
    "other dates": (["31.12.2020", "1.1.2021"], "dates as text, such as '1.1.2021': convert them"),
    "short dates": (["31.12.20", "1.1.21"], "dates as text"),
    "months": (
        ["2021-03", "2021-12"],
        r"dates as text, such as '2021-03': convert them with pandas.to_datetime \(utc=True for time zones, dayfirst=",
    ),
    "names of months": (["3 Mar 2021", "12 October 2021"], "dates as text, such as '12 October 2021'"),
    "American dates": (["Mar 3, 2021", "May 2021"], "dates as text"),
    "dates with slashes": (["2021/03/01", "3/1/2021"], "dates as text"),
    "times": (["14:30", "09:05"], "times as text, such as '09:05': convert them with pandas.to_timedelta"),
    "durations": (["1 days 02:30:00", "0:10:00.5"], "times as text"),
    "texts among times": (
        [*(f"10:{m}" for m in range(10, 40)), "late"],
        "texts among its times, such as 'late'",
    ),
    "texts among dates": (
        [*(f"2020-01-{day}" for day in range(10, 31)), "soon"],
        "texts among its dates, such as 'soon'",
    ),
    "other minus signs": (["−1.5", "2.5"], "numbers as text, such as '−1.5'"),
    "identifiers": (
        [f"p{i}" for i in range(N)],
        "200 different texts in 200 rows, .* likely to be an identifier",
    ),
    "levels": ([f"p{i % 300}" for i in range(900)], "300 levels, and at most 255 are possible: merge"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_columns_that_are_refused(name):
    levels, message = REFUSED[name]
    values = np.resize(np.array(levels, dtype=object), max(N, len(levels)))
    with pytest.raises(ColumnError, match=rf"^Column 'a' of X has {message}") as caught:
        kind(values)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
    if name != "levels":
        assert kind(values, categorical_features=["a"]) == "category"
        assert kind(pd.Categorical(values)) == "category"


def test_few_rows_of_different_texts_are_categories():
    assert kind([f"name {i}" for i in range(10)]) == "category"


def test_the_largest_number_of_levels():
    levels = [f"p{i % MOST_LEVELS}" for i in range(3 * MOST_LEVELS)]
    assert kind(levels) == "category"
    levels[0] = None
    with pytest.raises(ColumnError, match="256 levels"):
        kind(levels)


def test_without_categories_text_is_refused_and_truth_is_a_number():
    for values in (["a", "b"] * 10, pd.Categorical(["a", "b"] * 10)):
        with pytest.raises(ColumnError, match=r"has text .* or use categorical_features='from_dtype'"):
            kind(values, categorical_features=None)
    assert kind([True, None] * 10, categorical_features=None) == "number"
    assert kind(pd.Categorical([1, 2] * 10), categorical_features=None) == "number"


def test_other_objects_are_refused():
    for values, types in (
        ([{}] * 5, "type dict"),
        ([1.5, datetime.date(2020, 1, 1)], "types date, float"),
    ):
        found = rf"'a' of X contains values of the {types}, but the argument must be a string, a number"
        with pytest.raises(TypeError, match=found):
            kind(values)
    with pytest.raises(ValueError, match="'a' of X has lists or other values that cannot be levels"):
        kind([{}] * 5, categorical_features=["a"])


FRAME = pd.DataFrame({"a": [1], "b": [2], "c": [3]})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("from_dtype", set()),
        (None, set()),
        (["a", "c"], {0, 2}),
        ("b", {1}),
        ([0, -1], {0, 2}),
        (np.array([1]), {1}),
        ([True, False, True], {0, 2}),
        ([], set()),
    ],
)
def test_categorical_features(given, expected):
    assert chosen_columns(given, list(FRAME), named=True) == expected


@pytest.mark.parametrize("given", [["d"], [3], [1.5], [True], {"a": 1}, [["a"]]])
def test_categorical_features_that_are_not_possible(given):
    with pytest.raises(ValueError, match="categorical_features"):
        chosen_columns(given, list(FRAME), named=True)
    with pytest.raises(ValueError, match="3 columns without names"):
        chosen_columns(["a"], ["x0", "x1", "x2"], named=False)


def warns(values):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_doubts(["a"], [np.asarray(values, dtype=float)])
    return bool(caught)


def test_integers_that_number_the_rows_are_named():
    assert warns(range(100))
    assert warns(rng.permutation(1000)[:300] + 12345)
    with pytest.warns(UserWarning, match="^Column '[ab]' of X numbers the rows") as caught:
        warn_of_doubts(["a", "b"], [np.arange(60.0)] * 2)
    assert len(caught) == 2


@pytest.mark.parametrize(
    "values",
    [
        range(49),
        rng.integers(0, 1000, 300),
        rng.integers(0, 10**9, 300),
        np.arange(100) / 10,
        np.arange(100) * 10,
        rng.normal(size=100).round(2),
    ],
)
def test_ordinary_numbers_are_not_named(values):
    assert not warns(values)


@pytest.mark.parametrize("mark", [-999.0, 9999.0, -1e30])
@pytest.mark.parametrize(
    "make", [pd.DataFrame, lambda columns: pd.DataFrame(columns).assign(t=["a", "b"] * 100)]
)
def test_values_that_may_mark_missing_ones_are_named(mark, make):
    frame = make({"age": rng.uniform(20, 80, N), "size": rng.normal(size=N), "n": rng.poisson(30, N)})
    frame.loc[::20, "age"] = mark
    frame.loc[0, "size"] = 1e6  # an outlier, but not frequent
    found = (
        rf"far from all others, .* missing values: {mark:g} in column 'age'; if they do, replace them by NaN"
    )
    given = frame.copy()
    with pytest.warns(TableWarning, match=found.replace("+", r"\+")) as caught:
        GaussianProcessClassifier("rbf", optimizer=None, inference="laplace").fit(frame, np.arange(N) % 2)
    assert len(caught) == 1
    pd.testing.assert_frame_equal(frame, given)


@pytest.mark.parametrize(
    "values",
    [
        np.where(rng.random(N) < 0.5, 0.0, rng.gamma(2.0, 5.0, N)),
        np.where(rng.random(N) < 0.5, 0, 1000),
        rng.choice([1, 2, 3, 99], N),
        np.minimum(rng.lognormal(0.0, 2.0, N), 5.0),
        np.where(rng.random(N) < 0.3, -1.0, rng.uniform(0, 80, N)),
        np.full(N, np.nan),
        np.append(rng.normal(size=N - 1), np.nan),
        -np.append(rng.normal(size=N - 2), [1e6, 2e6]),
    ],
)
def test_other_frequent_values_are_not(values):
    assert not warns(values)
