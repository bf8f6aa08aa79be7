"""A classifier takes tables: numbers as before to the last bit, anything else through its encoder."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import gpclass
from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF, Columns, Matern
from gpclass.persistence import ModelFileError
from gpclass.tables import Encoder
from gpclass.tables.inputs import needs_coding

rng = np.random.default_rng(0)
N = 80
FRAME = pd.DataFrame(
    {
        "age": np.where(rng.random(N) < 0.2, np.nan, rng.normal(40, 10, N)),
        "size": rng.normal(size=N),
        "town": rng.choice(["Ulm", "Bonn", "Köln"], N),
        "member": rng.random(N) < 0.5,
        "since": pd.date_range("2020-01-01", periods=N),
    }
)
Y = np.where(FRAME["size"] + (FRAME["town"] == "Ulm") + 0.3 * rng.normal(size=N) > 0.3, "yes", "no")
KERNEL = 4.0 * RBF(3.0)


def fixed(kernel=KERNEL, **options):
    return GaussianProcessClassifier(kernel, optimizer=None, inference="laplace", random_state=0, **options)


NUMBERS = {
    "array": rng.normal(size=(N, 2)),
    "single precision": rng.normal(size=(N, 2)).astype(np.float32),
    "integers": rng.integers(0, 9, (N, 2)),
    "truth": rng.random((N, 2)) < 0.5,
    "list": rng.normal(size=(N, 2)).tolist(),
    "objects": rng.normal(size=(N, 2)).astype(object),
    "pandas": FRAME[["size", "member"]],
    "polars": pl.from_pandas(FRAME[["size", "member"]]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_without_gaps_have_no_encoder(name):
    X = NUMBERS[name]
    clf = fixed().fit(X, Y)
    assert clf.encoder_ is None
    same = fixed().fit(np.asarray(X, dtype=float), Y)
    assert clf.log_marginal_likelihood_value_ == same.log_marginal_likelihood_value_
    assert (clf.predict_proba(X) == same.predict_proba(np.asarray(X, dtype=float))).all()


def test_what_needs_coding():
    assert needs_coding(FRAME)
    assert needs_coding(FRAME[["age"]])
    assert needs_coding(NUMBERS["array"], [0])
    assert not needs_coding(NUMBERS["array"], None)
    assert not needs_coding([1.0, 2.0])
    assert not needs_coding([[1.0], [2.0, 3.0]])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas, pd.DataFrame.to_numpy])
def test_a_table_is_the_matrix_of_its_encoder(make):
    X = make(FRAME)
    clf = fixed().fit(X, Y)
    matrix = Encoder().fit_transform(X)
    same = fixed().fit(matrix, Y)
    assert clf.log_marginal_likelihood_value_ == same.log_marginal_likelihood_value_
    assert (clf.predict_proba(X) == same.predict_proba(matrix)).all()
    assert (clf.predict_interval(X)[0] == same.predict_interval(matrix)[0]).all()
    assert clf.n_features_in_ == 5
    assert hasattr(clf, "feature_names_in_") == (not isinstance(X, np.ndarray))
    assert clf.score(X, Y) > 0.8
    assert (clf.sample_latent(X[:3], random_state=0) == same.sample_latent(matrix[:3], random_state=0)).all()


def test_learning_and_several_classes():
    classes = np.where(FRAME["town"] == "Bonn", "other", Y)
    clf = GaussianProcessClassifier("rbf").fit(FRAME, classes)
    assert clf.score(FRAME, classes) > 0.8
    for options in (
        {"multi_class": "one_vs_one"},
        {"inference": "dirichlet"},
        {"inducing": 10, "inference": "vi"},
    ):
        assert fixed("rbf").set_params(**options).fit(FRAME, classes).score(FRAME, classes) > 0.6


def test_cross_validation():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert cross_val_score(fixed("rbf"), FRAME, Y, error_score="raise").mean() > 0.7


def test_weights_are_copies_and_rows_of_weight_zero_do_not_count():
    weight = np.arange(N) % 3
    copies = np.repeat(np.arange(N), weight)
    frame = FRAME.assign(town=np.where(np.arange(N) == 3, "Rom", FRAME["town"]))
    clf = fixed().fit(frame, Y, sample_weight=weight)
    same = fixed().fit(frame.iloc[copies], Y[copies])
    assert clf.encoder_.columns_ == same.encoder_.columns_
    assert clf.log_marginal_likelihood_value_ == same.log_marginal_likelihood_value_


def test_outputs_of_transformers_as_frames_do_not_matter():
    with config_context(transform_output="pandas"):
        clf = fixed().fit(FRAME, Y)
        assert (clf.predict_proba(FRAME) == fixed().fit(FRAME, Y).predict_proba(FRAME)).all()
        assert list(Encoder().fit_transform(FRAME)) == list(clf.encoder_.get_feature_names_out())


def test_named_categories():
    X = rng.integers(0, 3, (N, 2))
    clf = fixed(categorical_features=[1]).fit(X, Y)
    assert [column.kind for column in clf.encoder_.columns_] == ["number", "category"]
    frame = pd.DataFrame(X, columns=["a", "b"])
    assert fixed(categorical_features=["b"]).fit(frame, Y).encoder_.columns_[1].kind == "category"
    for wrong in (["c"], "c"):
        with pytest.raises(
            ValueError, match=r"categorical_features=.*'c'.* is not valid: expected columns of X"
        ):
            fixed(categorical_features=wrong).fit(frame, Y)


def test_kernels_of_named_columns():
    kernel = Columns(RBF(10.0), ["age"]) + Columns(Matern(1.0), "town") * Columns(
        RBF(2.0), ["size", "member"]
    )
    clf = fixed(kernel).fit(FRAME, Y)
    assert [clf.kernel_.k1.columns, clf.kernel_.k2.k1.columns, clf.kernel_.k2.k2.columns] == [
        [0, 1],
        [3, 4, 5],
        [2, 6, 7],
    ]
    with pytest.raises(ValueError, match="Columns names 'nobody'"):
        fixed(Columns(RBF(), "nobody")).fit(FRAME, Y)


@pytest.mark.filterwarnings("ignore::gpclass.DoubtfulFitWarning")
def test_further_rows_keep_the_levels():
    frame = FRAME[["size", "town"]]
    clf = GaussianProcessClassifier("rbf", inducing=10, random_state=0)
    clf.partial_fit(frame[:50], Y[:50])
    columns = clf.encoder_.columns_
    with pytest.warns(UserWarning, match="1 in column 'town'"):
        clf.partial_fit(frame[50:].assign(town=["Rom", *frame["town"][51:]]), Y[50:])
    assert clf.encoder_.columns_ is columns
    assert clf.score(frame, Y) > 0.7


@pytest.mark.parametrize("names", [True, False])
def test_files(tmp_path, names):
    X = FRAME if names else FRAME.to_numpy()
    clf = fixed().fit(X, Y)
    clf.save(tmp_path / "m.gpc")
    again = gpclass.load(tmp_path / "m.gpc")
    assert (again.predict_proba(X) == clf.predict_proba(X)).all()
    assert again.encoder_.columns_ == clf.encoder_.columns_
    assert (pickle.loads(pickle.dumps(clf)).predict_proba(X) == clf.predict_proba(X)).all()


def test_files_with_another_table_are_refused(tmp_path):
    clf = fixed().fit(FRAME, Y)
    for wrong in (clf.encoder_.columns_[:-1], clf.encoder_.columns_[:1] * 5):
        broken = fixed().fit(FRAME, Y)
        broken.encoder_.columns_ = wrong
        with pytest.raises(ModelFileError, match="is not consistent"):
            broken.save(tmp_path / "m.gpc")


def test_a_model_of_numbers_refuses_tables_and_gaps():
    clf = fixed().fit(FRAME[["size"]], Y)
    with pytest.raises(
        ValueError, match=r"Column 'size' of X has texts where the training rows have numbers"
    ):
        clf.predict(FRAME[["town"]].set_axis(["size"], axis=1))
    with pytest.raises(ValueError, match="NaN in row"):
        clf.predict(FRAME[["age"]].set_axis(["size"], axis=1))


def test_row_numbers_in_a_frame_are_named():
    with pytest.warns(UserWarning, match="'id' of X numbers the rows"):
        fixed().fit(FRAME[["size"]].assign(id=np.arange(N)), Y)
    with pytest.warns(UserWarning, match="'id' of X numbers the rows"):
        fixed().fit(FRAME.assign(id=np.arange(N)), Y)


def test_labels_and_weights_of_another_length():
    with pytest.raises(ValueError, match="sample_weight"):
        fixed().fit(FRAME, Y, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="sample_weight"):
        fixed().fit(FRAME, Y, sample_weight=["heavy"] * N)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fixed().fit(FRAME, Y[:-1])


def test_other_parts_of_the_library_take_tables():
    result = gpclass.compare(
        FRAME,
        Y,
        methods=["laplace", "logistic-regression", "gradient-boosting", "sklearn-gp"],
        n_samples=0,
        cv=3,
    )
    assert all(row.log_loss < 0.69 for row in result.rows)


def test_columns_of_one_name_are_refused():
    for values in (FRAME[["size", "size"]], FRAME[["town", "town"]]):
        with pytest.raises(
            ValueError, match=r"^X has several columns called '(size|town)': give them different"
        ):
            fixed().fit(values, Y)


def test_masked_arrays_are_as_arrays_with_gaps():
    X = np.column_stack([FRAME["age"], FRAME["size"]])
    masked = np.ma.masked_invalid(X)
    masked.data[masked.mask] = -999.0
    expected = fixed().fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(fixed().fit(masked, Y).predict_proba(masked), expected)


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series(Y == "yes", dtype="boolean"),
        pd.Series(Y == "yes", dtype=object),
        np.array(list(Y == "yes"), dtype=object),
        pl.Series(Y == "yes"),
    ],
)
def test_truth_values_are_classes_whatever_their_column(labels):
    clf = fixed().fit(FRAME, labels)
    assert clf.classes_.tolist() == [False, True]
    assert clf.classes_.dtype == bool
    assert clf.predict(FRAME).dtype == bool
    assert fixed().fit(FRAME, pd.Series(Y == "yes").astype("Int64")).classes_.dtype == np.int64


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (pd.Series(np.where(Y == "yes", "a", None), dtype="string"), "y contains NaN or None in row"),
        (pd.Series(pd.Categorical(np.where(Y == "yes", "a", None))), "y contains NaN or None in row"),
        (np.where(Y == "yes", "a", None), "y contains NaN or None in row"),
        (np.where(Y == "yes", 1, Y.astype(object)), "y has labels of the types int, str, expected text"),
        (
            pd.cut(FRAME["size"], 2),
            r"y has labels of the types Interval, expected text, integers or booleans.*: convert them",
        ),
        ([None, *Y[1:]], "y contains NaN or None in row 0: drop the rows"),
        (
            [*Y[:-1], np.nan],
            f"y contains NaN or None in row {N - 1}: drop the rows",
        ),  # NumPy would make it "nan"
        (np.r_[1.0, np.nan, np.zeros(N - 2)], "y contains NaN or None in row 1: drop the rows"),
        (pd.Series(np.r_[1.0, np.nan, np.zeros(N - 2)]), "y contains NaN or None in row 1: drop the rows"),
        (pa.array([None, *Y[1:].tolist()]), "y contains NaN or None in row 0: drop the rows"),
        (
            FRAME["since"].where(FRAME["since"] > "2020-01-01"),
            "y contains NaN or None in row 0: drop the rows",
        ),
        ([[1], [1, 2]] * (N // 2), "y has lists as labels, expected text, .* one for each row"),
        ("town", r"y is the text 'town', expected a label for each row: give X\['town'\] as y"),
    ],
)
def test_labels_that_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        fixed().fit(FRAME, labels)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (FRAME[[]], "X has no columns, expected at least one"),
        ((row for row in FRAME.to_numpy()), r"X has the type generator, .* give an iterator as list\(X\)"),
        (None, "X has the type NoneType, expected a table or a matrix"),
    ],
)
def test_inputs_that_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        fixed().fit(X, Y)


def test_batches_of_arrow_have_names():
    (batch,) = pa.Table.from_pandas(FRAME[["size", "member"]]).to_batches()
    clf = fixed().fit(batch, Y)
    assert clf.feature_names_in_.tolist() == ["size", "member"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(clf.predict_proba(batch), clf.predict_proba(FRAME[["size", "member"]]))


@pytest.mark.parametrize("columns", [["size"], ["size", "town"]])
def test_rows_to_predict_are_not_a_path(columns):
    clf = fixed().fit(FRAME[columns], Y)
    with pytest.raises(
        ValueError, match=r"X has the type str, expected a table or a matrix: read a file first"
    ):
        clf.predict_proba("rows.parquet")


def test_the_rows_of_a_model_with_inducing_inputs_are_not_kept():
    clf = fixed(inducing=10).set_params(inference="vi").fit(FRAME, Y)
    with pytest.raises(ValueError, match="training rows are not kept by a model with inducing inputs"):
        clf.training_rows()


@pytest.mark.parametrize("columns", [["size", "member", "age"], ["size", "member"]])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_other_columns_are_one_sentence(columns, make):
    frame = FRAME[columns]
    clf = fixed().fit(make(frame), Y)
    for wrong, found in (
        (frame.drop(columns="size"), "lacks 'size': add what is missing."),
        (frame.assign(extra=1.0), "also has 'extra': give X[list(model.feature_names_in_)]."),
        (frame.rename(columns={"size": "Size"}), "lacks 'size' and also has 'Size': add what is missing."),
        (
            frame[columns[::-1]],
            f"has them in another order, from '{columns[-1]}' to 'size': give X[list(model",
        ),
        (
            frame.assign(**dict.fromkeys("abcdef", 0.0)),
            "also has 'a', 'b', 'c', 'd', 'e', 'f': give X[list(model",
        ),
    ):
        with pytest.raises(
            ValueError, match=r"^The feature names should match those .* during fit, but"
        ) as caught:
            clf.predict(make(wrong))
        assert f"but X {found}" in str(caught.value)


def test_columns_of_structures_are_refused():
    structured = FRAME[["size"]].to_records(index=False)
    with pytest.raises(ValueError, match=r"^X is a structured array, .* give pandas\.DataFrame\(X\)\.$"):
        fixed().fit(structured, Y)
    nested = pl.from_pandas(FRAME[["size", "member"]]).with_columns(pl.struct("size", "member").alias("both"))
    with pytest.raises(TypeError, match=r"^Column 'both' of X contains values of the type"):
        fixed().fit(nested, Y)
    vectors = pl.DataFrame({"v": pl.Series(np.ones((N, 3))), "size": FRAME["size"]})
    with pytest.raises(TypeError, match=r"^Column 'v' of X contains values of the type"):
        fixed().fit(vectors, Y)


def generated(seed):
    """Return a table of mixed kinds with gaps, its labels of up to 24 classes, and rows with levels that are new."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(20, 40))
    makers = [
        lambda: draw.normal(size=n) * 10.0 ** draw.integers(-6, 7),
        lambda: draw.integers(0, 9, n).astype(float),
        lambda: draw.choice([f"level {i}" for i in range(15)], n).astype(object),
        lambda: (draw.random(n) < 0.5).astype(object),
        lambda: pd.Timestamp("1999-12-31") + pd.to_timedelta(draw.integers(0, 9000, n), unit="D"),
        lambda: pd.date_range("2020-01-01", periods=n, tz="Asia/Tokyo"),
        lambda: pd.to_timedelta(draw.integers(0, 9000, n), unit="s"),
        lambda: np.array(["same"] * n, dtype=object),
        lambda: pd.Categorical(draw.choice(["lo", "hi"], n), categories=["lo", "mid", "hi"], ordered=True),
        lambda: draw.choice(np.array([1, 2, "x"], dtype=object), n),
    ]
    chosen = [1, 2, *draw.integers(0, len(makers), draw.integers(0, 10))]
    X = pd.DataFrame({f"c{i}": pd.Series(makers[k]()) for i, k in enumerate(chosen)})
    for name in X:
        gaps = draw.random(n) < draw.choice([0.0, 0.1, 0.6])
        X[name] = X[name].where(~gaps)
    y = draw.integers(0, draw.choice([2, 2, 3, 24]), n).astype(str)
    y[:3] = ["alone", "0", "1"]
    return X, y, X.iloc[:9].assign(c1="never seen", c0=np.nan)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(20))
def test_generated_tables_are_fitted_and_saved(seed, tmp_path):
    X, y, new = generated(seed)
    clf = fixed("rbf", integration="mackay").fit(X, y)  # the fastest for many classes
    order = np.random.default_rng(seed).permutation(len(y))
    same = clone(clf).fit(X.iloc[order], y[order])
    clf.save(tmp_path / "m.gpc")
    p = clf.predict_proba(new)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(same.predict_proba(new), p, atol=1e-6)
    np.testing.assert_array_equal(gpclass.load(tmp_path / "m.gpc").predict_proba(new), p)
