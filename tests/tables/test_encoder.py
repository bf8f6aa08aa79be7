"""The coded matrix: numbers keep their values, levels are at the distance one, and gaps one deviation away."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpclass import GaussianProcessClassifier
from gpclass.data.sources import BlockSource, ParquetSource
from gpclass.tables import Column, ColumnError, Encoder
from gpclass.tables.encoder import encode_source

rng = np.random.default_rng(0)
N = 60


def messy():
    return pd.DataFrame(
        {
            "age": np.where(rng.random(N) < 0.2, np.nan, rng.normal(40, 10, N)),
            "size": rng.normal(size=N),
            "member": rng.random(N) < 0.5,
            "town": rng.choice(["Ulm", "Bonn", "Köln"], N),
            "grade": pd.Categorical(
                rng.choice(["low", "mid", "high"], N), ["low", "mid", "high"], ordered=True
            ),
            "site": pd.Series(rng.choice(["x", "y", None], N), dtype=object),
            "since": pd.date_range("2020-01-01", periods=N, freq="h", tz="Europe/Berlin"),
            "unit": "kg",
        }
    )


FRAME = messy()


def test_numbers_keep_their_values_and_gaps_have_a_coordinate():
    encoder = Encoder().fit(FRAME)
    X, age = encoder.transform(FRAME), FRAME["age"].to_numpy()
    gaps = np.isnan(age)
    assert (X[~gaps, 0] == age[~gaps]).all()
    assert (X[gaps, 0] == np.median(age[~gaps])).all()
    np.testing.assert_allclose(X[:, 1], np.where(gaps, np.std(age[~gaps]), 0.0), rtol=1e-14)
    assert (X[:, 2] == FRAME["size"]).all()


def test_different_levels_are_at_distance_one():
    encoder = Encoder().fit(FRAME)
    X = encoder.transform(FRAME)
    for name in ("member", "town", "grade", "site"):
        own = X[:, encoder.groups_ == encoder.group_names_.index(name)]
        squared = ((own[:, None] - own[None]) ** 2).sum(axis=2)
        values = FRAME[name].astype(object).where(FRAME[name].notna(), "missing").to_numpy()
        np.testing.assert_allclose(squared, values[:, None] != values[None], atol=1e-15)


def test_attributes():
    encoder = Encoder().fit(FRAME)
    assert encoder.get_feature_names_out().tolist() == [
        "age", "age=missing", "size", "member=False", "member=True", "town=Bonn", "town=Köln", "town=Ulm",
        "grade=high", "grade=low", "grade=mid", "site=x", "site=y", "site=missing", "since",
    ]  # fmt: skip
    assert encoder.groups_.tolist() == [0, 0, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6]
    assert encoder.group_names_ == list(FRAME)[:-1]
    assert np.flatnonzero(encoder.numeric_).tolist() == [0, 2, 14]
    assert encoder.n_features_in_ == 8
    assert encoder.feature_names_in_.tolist() == list(FRAME)
    unit = encoder.columns_[-1]
    assert (unit.kind, unit.levels, unit.positions) == ("category", ("kg",), ())
    assert encoder.columns_[5].levels == ("x", "y", None)


def test_all_packages_and_arrays_give_the_same_matrix():
    expected = Encoder().fit_transform(FRAME)
    polars = pl.from_pandas(FRAME).with_columns(pl.col("grade").cast(pl.Enum(["low", "mid", "high"])))
    for X in (polars, pa.Table.from_pandas(FRAME), polars.to_arrow()):
        encoder = Encoder().fit(X)
        np.testing.assert_array_equal(encoder.transform(X), expected)
        assert encoder.feature_names_in_.tolist() == list(FRAME)
    rows = FRAME.drop(columns="grade").to_numpy()
    kept = np.setdiff1d(np.arange(15), [8, 9, 10])
    for X in (rows, rows.tolist()):
        np.testing.assert_array_equal(Encoder().fit_transform(X), expected[:, kept])


def test_float_arrays_with_gaps():
    X = rng.normal(size=(30, 3))
    X[::3, 1] = np.nan
    coded = Encoder().fit_transform(X)
    assert coded.shape == (30, 4)
    assert (coded[:, [0, 3]] == X[:, [0, 2]]).all()
    for kind in (np.float32, object):
        np.testing.assert_allclose(Encoder().fit_transform(X.astype(kind)), coded, rtol=1e-6)


def test_one_warning_counts_what_training_did_not_have():
    encoder, new = Encoder().fit(FRAME), FRAME[:4].copy()
    new["town"] = ["Ulm", "Rom", None, "Oslo"]
    new.loc[[1, 2], "size"] = np.nan
    new["member"] = new["member"].astype(object)
    new.loc[0, "member"] = None
    new["unit"] = "g"  # a column that is left out
    with pytest.warns(UserWarning, match="X has levels") as caught:
        X = encoder.transform(new)
    [warning] = caught
    assert str(warning.message) == (
        "X has levels or missing values that the training rows did not have: 2 in column 'size', 1 in column 'member', "
        "3 in column 'town'."
    )
    town = X[:, encoder.groups_ == 3]
    assert not town[1:].any()
    assert (X[1:3, 2] == FRAME["size"].median()).all()
    # An unseen level is half way to every known one.
    np.testing.assert_allclose(((town[1] - town[0]) ** 2).sum(), 0.5)


def test_types_may_change_between_training_and_prediction():
    frame = pd.DataFrame({"a": [1, 2, 3, 1], "b": [1.5, 2.0, np.nan, 1.0]})
    encoder = Encoder(["a"]).fit(frame)
    expected = encoder.transform(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(encoder.transform(frame.astype(float)), expected)
        np.testing.assert_array_equal(encoder.transform(frame.astype(object)), expected)
        empty = frame.assign(b=pd.Series([None] * 4, dtype=object))
        assert (encoder.transform(empty)[:, -1] > 0).all()
    with pytest.raises(
        ValueError, match="Column 'b' of X has texts where the training rows have numbers, such as 'x'"
    ):
        encoder.transform(frame.assign(b=["x"] * 4))


def test_numbers_are_not_read_as_dates_or_durations_nor_these_as_numbers():
    days = pd.date_range("2020-01-01", periods=3)
    frame = pd.DataFrame({"number": [1.0, 2.0, 4.0], "date": days, "duration": days - days[0]})
    encoder = Encoder().fit(frame)
    for name in frame:
        for other in set(frame) - {name}:
            found = rf"Column '{name}' of X has the type .* \({other}\), and the training rows had {name}s: convert"
            with pytest.raises(ValueError, match=found):
                encoder.transform(frame.assign(**{name: frame[other]}))
        with pytest.raises(ValueError, match=f"Column '{name}' of X has the type .*other"):
            encoder.transform(frame.assign(**{name: [[1]] * 3}))
        with pytest.warns(UserWarning, match=f"3 in column '{name}'"):
            encoder.transform(frame.assign(**{name: np.full(3, np.nan)}))


@pytest.mark.parametrize(
    ("levels", "values"),
    [
        (["2", "4", "more"], [2, 4, 2]),
        (["2", "4", "more"], [2.0, 4.0, 2.0]),
        (["1.5", "2", "x"], [1.5, 2.0, 1.5]),
        (["true", "false", "unknown"], [True, False, True]),
        ([1, 2, 3], ["1", "2", "1"]),
        ([1.5, 2.0, 3.0], ["1.5", "2", "1.5"]),
    ],
)
def test_levels_are_found_when_a_file_has_another_type(levels, values):
    encoder = Encoder([0]).fit(np.array([levels], dtype=object).T)
    wanted = encoder.transform(np.array([[levels[0]], [levels[1]], [levels[0]]], dtype=object))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"x0": values}).to_numpy()), wanted)


def test_gaps_of_a_number_that_is_otherwise_constant():
    encoder = Encoder().fit(np.array([[1.0, 5.0], [2.0, np.nan]]))
    assert encoder.transform([[1.0, np.nan]]).tolist() == [[1.0, 5.0, 1.0]]


def test_large_numbers_do_not_overflow():
    encoder = Encoder().fit(np.array([[1e200], [-1e200], [np.nan]]))
    np.testing.assert_allclose(encoder.columns_[0].scale, 1e200)


def test_errors():
    with pytest.raises(ValueError, match=r"infinity \(inf\) in row 1, column 'x0'"):
        Encoder().fit(np.array([[np.nan], [np.inf]]))
    with pytest.raises(ValueError, match=r"All columns of X are constant .n_samples = 2"):
        Encoder().fit(pd.DataFrame({"a": ["x", "x"], "b": [None, None]}))
    encoder = Encoder().fit(FRAME)
    with pytest.raises(ValueError, match="feature names should match"):
        encoder.transform(FRAME.rename(columns={"age": "years"}))
    with pytest.raises(ValueError, match="0 rows"):
        encoder.transform(FRAME[:0])


def test_intervals_and_numbers_as_levels():
    cut = pd.cut([1, 5, 9, 2], [0, 3, 6, 10])
    encoder = Encoder().fit(pd.DataFrame({"a": cut}))
    assert encoder.columns_[0] == Column(
        "a", "category", ("(0, 3]", "(3, 6]", "(6, 10]"), positions=(0, 1, 2)
    )


def test_it_is_a_transformer():
    encoder = clone(Encoder(categorical_features=["age"]))
    assert encoder.get_params() == {"categorical_features": ["age"]}
    pipeline = make_pipeline(Encoder(), StandardScaler()).fit(FRAME)
    np.testing.assert_allclose(pipeline.transform(FRAME).mean(axis=0), 0.0, atol=1e-9)


def test_an_encoder_is_restored_from_its_columns():
    encoder = Encoder().fit(FRAME)
    again = Encoder.restored(encoder.columns_, "from_dtype", encoder.feature_names_in_)
    np.testing.assert_array_equal(again.transform(FRAME), encoder.transform(FRAME))
    assert again.columns_ == encoder.columns_


@pytest.mark.parametrize(
    "column",
    [
        Column("a", "number", positions=(0,)),
        Column("a", "number", fill=np.inf, positions=(0,)),
        Column("a", "number", fill=1.0, scale=2.0, positions=(0,)),
        Column("a", "category", ("x", b"y"), positions=(0, 1)),
        Column(3, "category", ("x", "y"), positions=(0, 1)),
    ],
)
def test_impossible_columns_of_a_file(column):
    with pytest.raises(ValueError, match=r"coding of column .* is damaged"):
        column.check_stored()


@parametrize_with_checks([Encoder()])
def test_estimator_checks(estimator, check):
    check(estimator)


# ---------------------------------------------------------- rows that are read in passes

again = np.random.default_rng(0)
ROWS = 3000
STORED = pd.DataFrame(
    {
        "age": np.where(again.random(ROWS) < 0.2, np.nan, again.normal(40, 10, ROWS)),
        "size": again.normal(size=ROWS),
        "town": again.choice(["Ulm", "Bonn", "Köln", None], ROWS),
        "grade": pd.Categorical(again.choice(["low", "high"], ROWS), ["low", "mid", "high"], ordered=True),
        "member": again.random(ROWS) < 0.5,
        "since": pd.date_range("2020-01-01", periods=ROWS, freq="h", tz="Europe/Berlin"),
        "unit": "kg",
    }
)
LABELS = np.where(
    STORED["size"] + (STORED["town"] == "Ulm") + 0.3 * again.normal(size=ROWS) > 0.3, "yes", "no"
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    place = tmp_path_factory.mktemp("passes") / "t.parquet"
    STORED.assign(y=LABELS).to_parquet(place, row_group_size=500)
    return place


def test_one_pass_finds_the_encoder_of_all_rows(path):
    classes, encoder = encode_source(ParquetSource(path, target="y", rows=700), "from_dtype")
    assert classes.tolist() == ["no", "yes"]
    whole = Encoder().fit(STORED)
    np.testing.assert_allclose(encoder.transform(STORED), whole.transform(STORED), rtol=0.02, atol=1e-12)
    assert [(c.name, c.kind, c.levels) for c in encoder.columns_] == [
        (c.name, c.kind, c.levels) for c in whole.columns_
    ]
    assert encoder.feature_names_in_.tolist() == list(STORED)


def test_numbers_without_gaps_have_no_encoder(tmp_path):
    STORED[["size", "member"]].assign(y=LABELS).to_parquet(tmp_path / "t.parquet")
    source = ParquetSource(tmp_path / "t.parquet", target="y")
    assert encode_source(source, "from_dtype")[1] is None
    assert encode_source(source, ["member"])[1].columns_[1].kind == "category"
    STORED[["age", "size"]].assign(y=LABELS).to_parquet(tmp_path / "t.parquet")
    encoder = encode_source(ParquetSource(tmp_path / "t.parquet", target="y"), "from_dtype")[1]
    assert encoder.get_feature_names_out().tolist() == ["age", "age=missing", "size"]


OPTIONS = {"inducing": 20, "random_state": 0, "optimizer": None}


def fitted(*arguments, **options):
    return GaussianProcessClassifier("rbf", **OPTIONS).fit(*arguments, **options)


def test_files_are_fitted_as_they_are(path):
    clf = fitted(str(path), "y")
    assert clf.n_features_in_ == 7
    assert clf.score(STORED, LABELS) > 0.85
    coded = clf.encoder_.transform(STORED)
    files = GaussianProcessClassifier(clf.kernel_, **OPTIONS).fit(str(path), "y")
    rows = GaussianProcessClassifier(clf.kernel_, **OPTIONS).fit(BlockSource([(coded, LABELS)]))
    np.testing.assert_allclose(files.predict_proba(STORED), rows.predict_proba(coded), rtol=1e-9)


def test_collections_of_dask(path):
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(STORED.drop(columns="grade").assign(y=LABELS), npartitions=4)
    clf = fitted(frame, "y")
    names = [name for name in STORED if name != "grade"]
    assert clf.feature_names_in_.tolist() == names
    assert clf.encoder_.columns_[2].levels == ("Bonn", "Köln", "Ulm", None)
    assert clf.score(STORED[names], LABELS) > 0.85
    lazy = clf.predict_proba(frame[names]).compute()
    # The rounding of single precision in the latent mean is a relative error of small probabilities.
    np.testing.assert_allclose(lazy, clf.predict_proba(STORED[names]), rtol=1e-5, atol=1e-9)


def test_arrays_of_dask_with_gaps():
    da = pytest.importorskip("dask.array")
    X = STORED[["age", "size"]].to_numpy()
    clf = fitted(da.from_array(X, chunks=(800, 2)), da.from_array(LABELS, chunks=800))
    assert len(clf.encoder_.groups_) == 3
    assert clf.score(X, LABELS) > 0.7


def test_columns_that_are_refused(tmp_path):
    STORED.assign(y=LABELS, name=[f"n{i}" for i in range(ROWS)]).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ColumnError, match="'name' of X has 3000 different texts"):
        encode_source(ParquetSource(tmp_path / "t.parquet", target="y"), "from_dtype")
    STORED[["unit"]].assign(y=LABELS).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="All columns of X are constant"):
        encode_source(ParquetSource(tmp_path / "t.parquet", target="y"), "from_dtype")
