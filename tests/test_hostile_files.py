"""A file that is not a complete and possible model is refused with a sentence, and runs nothing."""

from __future__ import annotations

import json
import pickle
import struct
import tracemalloc
import warnings
from collections import Counter

import numpy as np
import pytest
from fuzz_files import join, mutate, split
from model_files import GRID, data, same
from scipy import stats

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF, Columns, Matern
from gpclass.likelihoods import LabelNoise
from gpclass.mcmc import MCMC, EllipticalSlice
from gpclass.persistence import ModelFileError, load, save
from gpclass.sparse.settings import Inducing


@pytest.fixture(scope="module")
def blobs(tmp_path_factory):
    """Return files of every kind of model, small ones."""
    path, out = tmp_path_factory.mktemp("models"), {}
    tiny = MCMC(EllipticalSlice(), n_chains=2, n_draws=5, n_warmup=2, n_thetas=3)
    prior = {"length_scale": stats.lognorm(1.0)}
    kinds = {
        "binary": (2, {}),
        "noise": (2, {"likelihood": LabelNoise("logit"), "inference": "laplace"}),
        "joint": (3, {}),
        "rest": (3, {"multi_class": "one_vs_rest", "inference": "laplace"}),
        "pairs": (3, {"multi_class": "one_vs_one", "inference": "laplace", "likelihood": "logit"}),
        "chains": (2, {"inference": tiny}),
        "joint chains": (3, {"inference": tiny}),
        "inducing": (2, {"inducing": Inducing(n=4)}),
        "inducing joint": (3, {"inducing": Inducing(n=4), "likelihood": "softmax"}),
        "table": (2, {"kernel": "rbf", "categorical_features": [1], "inference": "laplace"}),
        "sampled": (2, {"inference": tiny, "hyperparameters": "sample", "hyperprior": prior}),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (n_classes, settings) in kinds.items():
            X, y = data(9, n_classes)
            kernel = 1.0 * RBF([1.0, 2.0]) + Columns(Matern(nu=1.5), [0])
            given = {"kernel": kernel, "random_state": 0, "optimizer": None, **settings}
            clf = GaussianProcessClassifier(**given)
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
    header["__metadata__"]["gpclass"] = header["__metadata__"]["gpclass"].replace(
        '"nu":1.5', '"nu":2147483647'
    )
    assert "Matern(nu=2.14748e+09)" in refusal(join(header, numbers, seal=True), tmp_path / "model")


def test_sentences_about_wrong_files(blobs, tmp_path):
    blob, path = blobs["binary"][0], tmp_path / "model"
    header, numbers = split(blob)
    assert "is not a model file" in refusal(b"", path)
    assert "is not a model file" in refusal(b"hello, I am a text file", path)
    assert "is not a model file" in refusal(pickle.dumps({"a": np.arange(3)}), path)
    assert "truncated" in refusal(blob[:-1], path)
    assert "truncated" in refusal(blob[:200], path)
    assert "altered or damaged" in refusal(blob[:-1] + bytes([blob[-1] ^ 1]), path)
    newer = json.loads(json.dumps(header))
    newer["__metadata__"]["gpclass"] = newer["__metadata__"]["gpclass"].replace('"version":5', '"version":6')
    assert "update gpclass" in refusal(join(newer, numbers, seal=True), path)
    older = json.loads(json.dumps(header))
    older["__metadata__"]["gpclass"] = older["__metadata__"]["gpclass"].replace('"version":5', '"version":4')
    assert "save the model again" in refusal(join(older, numbers, seal=True), path)
    first = {**header, "__metadata__": {"format": "gpclass", "version": "1", "model": "{}"}}
    assert "no description" in refusal(join(first, numbers, seal=False), path)
    foreign = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    assert "no description" in refusal(struct.pack("<Q", len(foreign)) + foreign + b"abcd", path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere")


def test_every_flipped_bit_is_seen(blobs, tmp_path):
    blob = bytearray(blobs["binary"][0])
    rng = np.random.default_rng(0)
    for place in rng.integers(len(blob), size=200):
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
            {**json.loads(model), "params": {"kernel": {"objects": ["x"] * 99_999, "shape": [1]}}}
        ),
        lambda model: model.replace(
            '"shape":[2],"order":"C","width":1', '"shape":[2,0,99],"order":"C","width":1'
        ),
        lambda model: model.replace(
            '"shape":[2],"order":"C","width":1', '"shape":[2],"order":"C","width":99999'
        ),
    ],
)
def test_swollen_headers_take_no_more_memory_than_they_are_long(swollen, blobs, tmp_path):
    header, numbers = split(blobs["binary"][0])
    before = header["__metadata__"]["gpclass"]
    header["__metadata__"]["gpclass"] = swollen(before)
    assert header["__metadata__"]["gpclass"] != before
    (tmp_path / "model").write_bytes(blob := join(header, numbers, seal=True))
    tracemalloc.start()
    with pytest.raises(ModelFileError):
        load(tmp_path / "model")
    assert tracemalloc.get_traced_memory()[1] < 40 * len(blob) + 1_000_000
    tracemalloc.stop()


@pytest.mark.filterwarnings("ignore::gpclass.tables.TableWarning")
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
        if i % 20 == 0:
            tracemalloc.start()  # it takes ten times the time, so not for all
        outcomes[outcome(path, proba, wrong == blob or sealed)] += 1
        if i % 20 == 0:
            assert tracemalloc.get_traced_memory()[1] < 40 * len(wrong) + 5_000_000
            tracemalloc.stop()
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
    outcomes = fuzz(blobs, tmp_path / "model", 400, seed=1)
    assert outcomes["refused"] > 200
    assert outcomes["faithful"] + outcomes["another model"] > 10  # the deeper checks were reached


@pytest.mark.slow
def test_three_thousand_wrong_files_are_refused(blobs, tmp_path):
    outcomes = fuzz(blobs, tmp_path / "model", 3_000, seed=2)
    assert outcomes["refused"] > 1_500
