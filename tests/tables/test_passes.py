"""Rows that are read in passes have the encoder of the same rows in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gpclass import GaussianProcessClassifier
from gpclass.data.sources import BlockSource, ParquetSource
from gpclass.tables import ColumnError, Encoder
from gpclass.tables.passes import encode_source, fit_in_passes

rng = np.random.default_rng(0)
N = 3000
FRAME = pd.DataFrame(
    {
        "age": np.where(rng.random(N) < 0.2, np.nan, rng.normal(40, 10, N)),
        "size": rng.normal(size=N),
        "town": rng.choice(["Ulm", "Bonn", "Köln", None], N),
        "grade": pd.Categorical(rng.choice(["low", "high"], N), ["low", "mid", "high"], ordered=True),
        "member": rng.random(N) < 0.5,
        "since": pd.date_range("2020-01-01", periods=N, freq="h", tz="Europe/Berlin"),
        "unit": "kg",
    }
)
Y = np.where(FRAME["size"] + (FRAME["town"] == "Ulm") + 0.3 * rng.normal(size=N) > 0.3, "yes", "no")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    place = tmp_path_factory.mktemp("passes") / "t.parquet"
    FRAME.assign(y=Y).to_parquet(place, row_group_size=500)
    return place


def test_one_pass_finds_the_encoder_of_all_rows(path):
    classes, encoder = encode_source(ParquetSource(path, target="y", rows=700), "from_dtype")
    assert classes.tolist() == ["no", "yes"]
    whole = Encoder().fit(FRAME)
    np.testing.assert_allclose(encoder.transform(FRAME), whole.transform(FRAME), rtol=0.02, atol=1e-12)
    assert [(c.name, c.kind, c.levels) for c in encoder.columns_] == [
        (c.name, c.kind, c.levels) for c in whole.columns_
    ]
    assert encoder.feature_names_in_.tolist() == list(FRAME)


def test_numbers_without_gaps_have_no_encoder(tmp_path):
    FRAME[["size", "member"]].assign(y=Y).to_parquet(tmp_path / "t.parquet")
    source = ParquetSource(tmp_path / "t.parquet", target="y")
    assert encode_source(source, "from_dtype")[1] is None
    assert encode_source(source, ["member"])[1].columns_[1].kind == "category"
    FRAME[["age", "size"]].assign(y=Y).to_parquet(tmp_path / "t.parquet")
    encoder = encode_source(ParquetSource(tmp_path / "t.parquet", target="y"), "from_dtype")[1]
    assert encoder.get_feature_names_out().tolist() == ["age", "age=missing", "size"]


OPTIONS = {"inducing": 20, "random_state": 0, "optimizer": None}


def fitted(*arguments, **options):
    return GaussianProcessClassifier("rbf", **OPTIONS).fit(*arguments, **options)


def test_files_are_fitted_as_they_are(path):
    clf = fitted(str(path), "y")
    assert clf.n_features_in_ == 7
    assert clf.score(FRAME, Y) > 0.85
    coded = clf.encoder_.transform(FRAME)
    files = GaussianProcessClassifier(clf.kernel_, **OPTIONS).fit(str(path), "y")
    rows = GaussianProcessClassifier(clf.kernel_, **OPTIONS).fit(BlockSource([(coded, Y)]))
    np.testing.assert_allclose(files.predict_proba(FRAME), rows.predict_proba(coded), rtol=1e-9)


def test_collections_of_dask(path):
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(FRAME.drop(columns="grade").assign(y=Y), npartitions=4)
    clf = fitted(frame, "y")
    names = [name for name in FRAME if name != "grade"]
    assert clf.feature_names_in_.tolist() == names
    assert clf.encoder_.columns_[2].levels == ("Bonn", "Köln", "Ulm", None)
    assert clf.score(FRAME[names], Y) > 0.85
    lazy = clf.predict_proba(frame[names]).compute()
    np.testing.assert_allclose(lazy, clf.predict_proba(FRAME[names]), rtol=1e-5)


def test_arrays_of_dask_with_gaps():
    da = pytest.importorskip("dask.array")
    X = FRAME[["age", "size"]].to_numpy()
    clf = fitted(da.from_array(X, chunks=(800, 2)), da.from_array(Y, chunks=800))
    assert len(clf.encoder_.groups_) == 3
    assert clf.score(X, Y) > 0.7


def test_columns_that_are_refused(tmp_path):
    FRAME.assign(y=Y, name=[f"n{i}" for i in range(N)]).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ColumnError, match="'name' of X has 3000 different texts"):
        fit_in_passes(ParquetSource(tmp_path / "t.parquet", target="y"), "from_dtype")
    FRAME[["unit"]].assign(y=Y).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="All columns of X are constant"):
        fit_in_passes(ParquetSource(tmp_path / "t.parquet", target="y"), "from_dtype")
