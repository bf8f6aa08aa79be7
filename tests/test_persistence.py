"""A classifier saved and loaded is the same to the last bit; a wrong file is refused with a sentence."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import struct
import time
import tracemalloc
import warnings
from collections import Counter

import numpy as np
import pytest
from fuzz_files import join, mutate, split
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import kernels as theirs

from gpclass import GaussianProcessClassifier
from gpclass.inference import EP, VI, Laplace
from gpclass.kernels import (
    RBF,
    Columns,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    GaussianUnits,
    Matern,
    NeuralNetwork,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)
from gpclass.likelihoods import Logit
from gpclass.mcmc import MCMC, EllipticalSlice
from gpclass.persistence import ModelFileError, load, save
from gpclass.persistence.registry import REGISTRY
from gpclass.sampling import Rejection

warnings_off = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = MCMC(EllipticalSlice(), n_chains=2, n_draws=15, n_warmup=5, n_thetas=8)


def data(n: int = 24, n_classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    f = X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.3 * rng.normal(size=n)
    return X, np.digitize(f, np.quantile(f, np.arange(1, n_classes) / n_classes))


GRID = np.random.default_rng(5).normal(size=(11, 2)) * 1.5


def saved(clf, path):
    """Return the classifier after a visit to the disk."""
    save(clf, path / "model.safetensors")
    return load(path / "model.safetensors")


def same(a, b):
    """Assert that two answers are equal to the last bit, in value and in type."""
    if isinstance(a, tuple | list):
        assert type(a) is type(b)
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            same(getattr(a, field.name), getattr(b, field.name))
    else:
        assert type(a) is type(b)
        x, y = np.asarray(a), np.asarray(b)
        assert x.dtype == y.dtype
        assert x.shape == y.shape
        if x.dtype.kind == "f":
            x, y = x.view(np.int64), y.view(np.int64)
        assert (x == y).all()


def answers(clf, X):
    """Yield all that a fitted classifier can be asked and what it says, be it a refusal."""
    questions = {
        "predict": lambda: clf.predict(X),
        "proba": lambda: clf.predict_proba(X),
        "log_proba": lambda: clf.predict_log_proba(X),
        "interval": lambda: clf.predict_interval(X),
        "mean": lambda: clf.predict_latent(X),
        "std": lambda: clf.predict_latent(X, return_std=True),
        "cov": lambda: clf.predict_latent(X, return_cov=True),
        "sample": lambda: clf.sample_latent(X, 3, random_state=1),
        "gradient": lambda: clf.proba_gradient(X),
        "loo": lambda: clf.loo_proba_,
        "score": lambda: clf.loo_log_score_,
        "evidence": lambda: clf.log_marginal_likelihood_value_,
        "evidence at": lambda: clf.log_marginal_likelihood(clf.kernel_.theta + 0.1, eval_gradient=True),
        "theta": lambda: clf.kernel_.theta,
        "bounds": lambda: clf.kernel_.bounds,
        "history": lambda: clf.history_,
        "classes": lambda: clf.classes_,
        "chains": lambda: clf.chains_.f,
        "columns": lambda: clf.n_features_in_,
    }
    for name, question in questions.items():
        try:
            yield name, question()
        except (ValueError, AttributeError) as error:
            yield name, str(error)


def assert_same(a, b, X=GRID):
    for (name, x), (_, y) in zip(answers(a, X), answers(b, X), strict=True):
        try:
            same(x, y)
        except AssertionError as error:
            raise AssertionError(f"{name} differs") from error
    assert a.kernel_ == b.kernel_
    params, again = a.get_params(deep=False), b.get_params(deep=False)
    priors, others = params.pop("hyperprior") or {}, again.pop("hyperprior") or {}
    assert repr(params) == repr(again)
    assert {k: (p.dist.name, p.args, p.kwds) for k, p in priors.items()} == {
        k: (p.dist.name, p.args, p.kwds) for k, p in others.items()
    }


# ------------------------------------------------------------------------------ round trips

CASES = {
    "laplace": (2, {"inference": "laplace", "likelihood": "logit"}),
    "ep": (2, {"inference": EP(power=0.5)}),
    "vi": (2, {"inference": VI(), "random_state": 3}),
    "map": (2, {"integration": "map", "likelihood": Logit(), "inference": Laplace()}),
    "monte carlo": (2, {"integration": "monte_carlo", "random_state": 4}),
    "multiprobit": (3, {}),
    "softmax": (3, {"likelihood": "softmax", "inference": "laplace"}),
    "softmax vi": (4, {"likelihood": "softmax", "optimizer": None, "kernel": 2.0 * RBF(1.0)}),
    "one_vs_rest": (3, {"multi_class": "one_vs_rest", "inference": "laplace"}),
    "one_vs_one": (3, {"multi_class": "one_vs_one", "inference": "laplace"}),
    "mcmc": (2, {"inference": SHORT, "random_state": 0}),
    "joint mcmc": (3, {"inference": SHORT, "random_state": 0, "kernel": 1.0 * RBF(1.0), "optimizer": None}),
    "sampled": (2, {"inference": SHORT, "hyperparameters": "sample", "random_state": 0}),
    "sampled rest": (
        3,
        {
            "inference": SHORT,
            "hyperparameters": "sample",
            "multi_class": "one_vs_rest",
            "random_state": 0,
            "hyperprior": {"length_scale": stats.lognorm(1.0, scale=2.0)},
        },
    ),
    "hyperprior": (2, {"hyperprior": {"k2__length_scale": stats.gamma(a=2.0)}}),
    "costs": (3, {"cost_matrix": [[0, 1, 2], [3, 0, 1], [1, 1, 0]], "class_weight": "balanced"}),
}


@warnings_off
@pytest.mark.filterwarnings("ignore:Weights that are no small whole numbers")
@pytest.mark.parametrize("case", CASES)
def test_round_trip(case, tmp_path):
    n_classes, settings = CASES[case]
    X, y = data(24, n_classes)
    clf = GaussianProcessClassifier(**settings).fit(X, y)
    assert_same(clf, saved(clf, tmp_path))


def test_rejection(tmp_path):
    clf = GaussianProcessClassifier(
        4.0 * RBF(1.0), inference=Rejection(n_draws=50), optimizer=None, random_state=0
    )
    clf.fit(GRID[:4], [0, 1, 0, 1])
    assert_same(clf, saved(clf, tmp_path))


KERNELS = [
    ConstantKernel(2.0, "fixed") * RBF([1.0, 2.0], (1e-3, 1e3)),
    1.0 * Matern([1.0, 2.0], nu=1.5) + WhiteKernel(0.1),
    1.0 * Matern(1.0, nu=np.inf) * RationalQuadratic(1.0, 2.0),
    ExpSineSquared(1.0, 3.0) + DotProduct(0.0, "fixed") ** 2,
    1.0 * Columns(RBF(2.0), [1]) * Columns(Matern(), slice(0, 1)) + Columns(RBF(), np.array([True, False])),
    NeuralNetwork(1.0, np.array([1.0, 2.0])) + GaussianUnits(),
    PairwiseKernel(gamma=0.5, metric="laplacian"),
    PairwiseKernel(metric="poly", pairwise_kernels_kwargs={"degree": 2, "coef0": 1.0}),
]


@warnings_off
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: str(kernel)[:30])
def test_kernels(kernel, tmp_path):
    X, y = data(16)
    clf = GaussianProcessClassifier(kernel, optimizer=None, inference="laplace").fit(X, y)
    assert_same(clf, saved(clf, tmp_path))


def test_a_sum_of_many_kernels(tmp_path):
    X, y = data(16)
    kernel = sum((RBF(1.0 + i, "fixed") for i in range(60)), start=RBF())
    clf = GaussianProcessClassifier(kernel, optimizer=None, inference="laplace").fit(X, y)
    same(clf.predict_proba(GRID), saved(clf, tmp_path).predict_proba(GRID))


@pytest.mark.parametrize("compound", [CompoundKernel, theirs.CompoundKernel])
def test_a_kernel_for_each_class(compound, tmp_path):
    X, y = data(18, 3)
    kernel = compound([1.0 * RBF(1.0), 2.0 * Matern(2.0), RBF([1.0, 2.0])])
    clf = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
    again = saved(clf, tmp_path)
    assert_same(clf, again)
    assert type(again.kernel) is compound


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, -5]),
        np.array([3, -5], dtype=np.int8),
        np.array([True, False]),
        np.array([0.0, 2.0]),
        np.array(["low", "señor"]),
        np.array(["low", "high"], dtype="<U300"),
        np.array(["low", "high"], dtype=object),
        np.array([1, 2], dtype=np.uint64),
    ],
    ids=lambda labels: labels.dtype.str,
)
def test_labels(labels, tmp_path):
    X, y = data(16)
    clf = GaussianProcessClassifier(1.0 * RBF(), optimizer=None).fit(X, labels[y])
    again = saved(clf, tmp_path)
    same(clf.classes_, again.classes_)
    same(clf.predict(GRID), again.predict(GRID))


def test_frames_keep_their_names(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = data(20)
    frame = pd.DataFrame(X, columns=["höhe", "age"])
    clf = GaussianProcessClassifier(1.0 * Columns(RBF(), ["age"]), inference="laplace").fit(frame, y)
    again = saved(clf, tmp_path)
    same(clf.feature_names_in_, again.feature_names_in_)
    assert_same(clf, again, frame[:5])
    with pytest.raises(ValueError, match="feature names"):
        again.predict(pd.DataFrame(X, columns=["age", "höhe"]))


@pytest.mark.parametrize("likelihood", ["logit", "softmax"])
def test_weights_copies_and_soft_labels(likelihood, tmp_path):
    X, y = data(20, 3)
    X = np.concatenate([X, X[:5]])
    P = np.full((25, 3), 0.1)
    P[np.arange(25), np.r_[y, y[:5]]] = 0.8
    weight = 0.5 + np.arange(25) % 4
    weight[3] = 0.0
    for target, classes in ((P, likelihood), (np.r_[y, y[:5]], "logit")):
        clf = GaussianProcessClassifier(1.0 * RBF(1.0), optimizer=None, likelihood=classes)
        clf.fit(X, target, sample_weight=weight)
        assert_same(clf, saved(clf, tmp_path))


def test_training_goes_on_from_a_loaded_model(tmp_path):
    X, y = data(24)
    clf = GaussianProcessClassifier(warm_start=True).fit(X, y)
    again = saved(clf, tmp_path)
    assert_same(clf.fit(X[::-1], y), again.fit(X[::-1], y))


def test_what_is_shared_is_stored_once_and_nothing_unused_is(tmp_path):
    X, y = data(60, 3)
    clf = GaussianProcessClassifier(1.0 * RBF(), multi_class="one_vs_rest", inference="laplace").fit(X, y)
    again = saved(clf, tmp_path)
    assert len({id(model.problem.X.base) for model in again.base_estimator_.models}) == 1
    # Three triangles of 60 rows are what is large; the inputs are there once.
    assert (tmp_path / "model.safetensors").stat().st_size < 8 * 3 * 60 * 61 / 2 + 30_000


def test_equal_models_are_equal_files(tmp_path):
    # So nothing of the memory that a buffer happened to be in comes along.
    X, y = data(30)
    for name in ("a", "b"):
        np.full((400, 400), np.random.default_rng().normal())
        save(GaussianProcessClassifier(1.0 * RBF(), random_state=0).fit(X, y), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_format_is_that_of_safetensors(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    X, y = data(20)
    clf = GaussianProcessClassifier(1.0 * RBF(), optimizer=None).fit(X, y)
    save(clf, tmp_path / "m.safetensors")
    tensors = numpy.load_file(tmp_path / "m.safetensors")
    assert any(np.array_equal(t, X.ravel()) for t in tensors.values())


def test_every_field_of_a_record_is_registered():
    for schema in REGISTRY.schemas.values():
        if dataclasses.is_dataclass(schema.cls):
            assert set(schema.fields) == {f.name for f in dataclasses.fields(schema.cls)}, schema.cls


# ------------------------------------------------------------------------------- what is refused


class Own(RBF):
    pass


def refusals():
    X, y = data(12)
    fit = GaussianProcessClassifier(1.0 * RBF(), optimizer=None).fit(X, y)
    yield "Own", GaussianProcessClassifier(1.0 * Own(), optimizer=None).fit(X, y)
    yield (
        "optimizer",
        GaussianProcessClassifier(optimizer=lambda f, theta, bounds: (theta, f(theta)[0])).fit(X, y),
    )
    yield (
        "random_state",
        GaussianProcessClassifier(
            1.0 * RBF(),
            random_state=np.random.RandomState(0),
            optimizer=None,
        ).fit(X, y),
    )
    yield (
        "metric",
        GaussianProcessClassifier(
            PairwiseKernel(metric=lambda x, z, gamma: float(x @ z)), optimizer=None
        ).fit(X, y),
    )
    fit.note = "mine"
    yield "note", fit
    deep = sum((RBF(1.0, "fixed") for _ in range(150)), start=RBF(1.0, "fixed"))
    yield "deep", GaussianProcessClassifier(deep, optimizer=None).fit(X, y)
    yield "SVC", pytest.importorskip("sklearn.svm").SVC().fit(X, y)


@warnings_off
def test_what_cannot_be_kept_is_named_and_nothing_is_written(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"what was there before")
    for word, clf in refusals():
        with pytest.raises(ModelFileError, match=word) as caught:
            save(clf, path)
        assert str(caught.value).endswith(".")
        assert os.listdir(tmp_path) == ["model"]
        assert path.read_bytes() == b"what was there before"
    with pytest.raises(NotFittedError):
        save(GaussianProcessClassifier(), path)


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    X, y = data(12)
    clf = GaussianProcessClassifier(1.0 * RBF(), optimizer=None).fit(X, y)
    save(clf, tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, lambda *_: (_ for _ in ()).throw(OSError("disk full")))
            with pytest.raises(OSError, match="disk full"):
                save(clf, tmp_path / "model")
        assert os.listdir(tmp_path) == ["model"]
        assert (tmp_path / "model").read_bytes() == before


@pytest.fixture(scope="module")
def blobs(tmp_path_factory):
    """Return files of every kind of model, small ones."""
    path, out = tmp_path_factory.mktemp("models"), {}
    tiny = MCMC(EllipticalSlice(), n_chains=2, n_draws=5, n_warmup=2, n_thetas=3)
    kinds = {
        "binary": (2, {}),
        "joint": (3, {}),
        "rest": (3, {"multi_class": "one_vs_rest", "inference": "laplace"}),
        "pairs": (3, {"multi_class": "one_vs_one", "inference": "laplace", "likelihood": "logit"}),
        "chains": (2, {"inference": tiny}),
        "joint chains": (3, {"inference": tiny}),
        "sampled": (
            2,
            {
                "inference": tiny,
                "hyperparameters": "sample",
                "hyperprior": {"length_scale": stats.lognorm(1.0)},
            },
        ),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (n_classes, settings) in kinds.items():
            X, y = data(9, n_classes)
            kernel = 1.0 * RBF([1.0, 2.0]) + Columns(Matern(nu=1.5), [0])
            clf = GaussianProcessClassifier(kernel, random_state=0, optimizer=None, **settings)
            save(clf.fit(X, np.array(["a", "b", "c"])[y]), path / name)
            out[name] = (path / name).read_bytes(), clf.predict_proba(GRID)
    return out


def refusal(blob, path):
    """Return the sentence with which a file is refused."""
    path.write_bytes(blob)
    with pytest.raises(ModelFileError) as caught:
        load(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", ")."))
    return str(caught.value)


def test_a_kernel_that_would_take_all_memory_is_refused(blobs, tmp_path):
    header, numbers = split(blobs["binary"][0])
    header["__metadata__"]["model"] = header["__metadata__"]["model"].replace('"nu":1.5', '"nu":2147483647')
    assert "nu of the kernel Matern" in refusal(join(header, numbers, seal=True), tmp_path / "model")


def test_sentences_about_wrong_files(blobs, tmp_path):
    blob, path = blobs["binary"][0], tmp_path / "model"
    header, numbers = split(blob)
    assert "is not a model file" in refusal(b"", path)
    assert "is not a model file" in refusal(b"hello, I am a text file", path)
    assert "is not a model file" in refusal(pickle.dumps({"a": np.arange(3)}), path)
    assert "cut off" in refusal(blob[:-1], path)
    assert "cut off" in refusal(blob[:200], path)
    assert "altered or damaged" in refusal(blob[:-1] + bytes([blob[-1] ^ 1]), path)
    newer = json.loads(json.dumps(header))
    newer["__metadata__"]["version"] = "2"
    assert "update gpclass" in refusal(join(newer, numbers, seal=True), path)
    foreign = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    assert "no description" in refusal(struct.pack("<Q", len(foreign)) + foreign + b"abcd", path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere")


def test_every_flipped_bit_is_seen(blobs, tmp_path):
    blob = bytearray(blobs["binary"][0])
    rng = np.random.default_rng(0)
    for place in rng.integers(len(blob), size=300):
        blob[place] ^= 1 << int(place % 8)
        refusal(bytes(blob), tmp_path / "model")
        blob[place] ^= 1 << int(place % 8)


@pytest.mark.parametrize("claim", [2**30, 2**40, 2**62])
def test_memory_is_that_of_the_file_whatever_it_claims(claim, blobs, tmp_path):
    blob = blobs["binary"][0]
    header, numbers = split(blob)
    entry = header["0"]
    entry["shape"], entry["data_offsets"] = [claim], [0, 8 * claim]
    (tmp_path / "model").write_bytes(join(header, numbers, seal=True))
    tracemalloc.start()
    with pytest.raises(ModelFileError):
        load(tmp_path / "model")
    assert tracemalloc.get_traced_memory()[1] < 40 * len(blob) + 1_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    "swollen",
    [
        lambda model: "[" + "[]," * 300_000 + "[]]",
        lambda model: "[" * 500_000,
        lambda model: model.replace('"_seed":', '"_seed":' + "9" * 500_000),
        lambda model: json.dumps(
            {
                **json.loads(model),
                "params": {"labels": ["x" * 9999] + [""] * 99_999, "shape": [1], "dtype": "<U9999"},
            }
        ),
        lambda model: model.replace('"labels":["a","b"],"shape":[2]', '"labels":["a","b"],"shape":[2,0,99]'),
        lambda model: model.replace(
            '"labels":["a","b"]', '"labels":["' + "x" * 9999 + '"' + ',""' * 99_999 + "]"
        ).replace('"shape":[2],"dtype":"<U1"', '"shape":[100000],"dtype":"<U9999"'),
    ],
)
def test_swollen_headers_take_no_more_memory_than_they_are_long(swollen, blobs, tmp_path):
    header, numbers = split(blobs["binary"][0])
    before = header["__metadata__"]["model"]
    header["__metadata__"]["model"] = swollen(before)
    assert header["__metadata__"]["model"] != before
    (tmp_path / "model").write_bytes(blob := join(header, numbers, seal=True))
    tracemalloc.start()
    with pytest.raises(ModelFileError):
        load(tmp_path / "model")
    assert tracemalloc.get_traced_memory()[1] < 40 * len(blob) + 1_000_000
    tracemalloc.stop()


def test_a_file_runs_nothing(tmp_path, blobs, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("code from a file was run")

    for name in ("loads", "load", "Unpickler"):
        monkeypatch.setattr(pickle, name, never)
    monkeypatch.setattr("builtins.eval", never)
    monkeypatch.setattr("builtins.exec", never)
    for name, (blob, proba) in blobs.items():
        if name == "sampled":  # SciPy itself makes the methods of a distribution by exec
            continue
        (tmp_path / "model").write_bytes(blob)
        same(load(tmp_path / "model").predict_proba(GRID), proba)


# --------------------------------------------------------------------------------------- fuzz


def fuzz(blobs, path, count, seed):
    """Load ``count`` wrong files; return how many were refused, were faithful, or were other sound models."""
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rng, outcomes, names = np.random.default_rng(seed), Counter(), list(blobs)
    for i in range(count):
        blob, proba = blobs[names[i % len(names)]]
        wrong, sealed = mutate(blob, rng)
        path.write_bytes(wrong)
        start = time.perf_counter()
        if i % 20 == 0:
            tracemalloc.start()  # it takes ten times the time, so not for all
        outcomes[outcome(path, proba, wrong == blob or sealed)] += 1
        if i % 20 == 0:
            assert tracemalloc.get_traced_memory()[1] < 40 * len(wrong) + 5_000_000
            tracemalloc.stop()
        assert time.perf_counter() - start < 5.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 200_000  # kilobytes
    return outcomes


def outcome(path, proba, may_differ):
    try:
        clf = load(path)
    except ModelFileError:
        return "refused"
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            got = clf.predict_proba(GRID)
        except ValueError:
            assert may_differ
            return "refused when asked"
    if got.shape == proba.shape and (got == proba).all():
        return "faithful"
    assert may_differ, "a file with another content passed for the one that was saved"
    assert got.shape[0] == len(GRID)
    assert ((got >= 0.0) & (got <= 1.0)).all()
    assert np.abs(got.sum(axis=1) - 1.0).max() < 1e-6
    return "another model"


def test_wrong_files_are_refused(blobs, tmp_path):
    outcomes = fuzz(blobs, tmp_path / "model", 2000, seed=1)
    assert outcomes["refused"] > 1000
    assert outcomes["faithful"] + outcomes["another model"] > 50  # the deeper checks were reached


@pytest.mark.slow
def test_a_hundred_thousand_wrong_files_are_refused(blobs, tmp_path):
    outcomes = fuzz(blobs, tmp_path / "model", 100_000, seed=2)
    assert outcomes["refused"] > 50_000
