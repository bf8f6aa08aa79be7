"""Numbers that users set: a boolean, text or NaN in their place is refused in one sentence that names them."""

from __future__ import annotations

import dataclasses
import sys
import typing

import numpy as np
import pytest

import gpclass
from gpclass import GaussianProcessClassifier, active, compare
from gpclass.core.checks import check_integers, check_numbers, optional
from gpclass.core.hyperpriors import Shrinkage
from gpclass.core.registry import kinds, parts
from gpclass.datasets import interval
from gpclass.kernels import RBF
from gpclass.mcmc import PseudoMarginal
from gpclass.sparse.settings import Inducing

X, Y = interval()[:2]
RECORDS = [
    *(part for kind in ("inference", "sampler", "likelihood") for part in parts(kind).values()),
    PseudoMarginal,
    Inducing,
    Shrinkage,
]
NUMERIC = [
    (record, field.name, hint)
    for record in RECORDS
    if record.__module__.startswith("gpclass") and dataclasses.is_dataclass(record)
    for field in dataclasses.fields(record)
    for hint in [typing.get_type_hints(record)[field.name]]
    if {int, float} & {hint, *typing.get_args(hint)}
]


def one_sentence(error, name):
    words = str(error.value)
    assert name in words
    assert words.count("\n") == 0
    assert words.endswith(".")


def test_the_settings_are_found():
    found = {(record.__name__, name) for record, name, _ in NUMERIC}
    assert {
        ("EP", "power"),
        ("HMC", "accept"),
        ("Inducing", "n"),
        ("MCMC", "thin"),
        ("Dirichlet", "rows"),
    } <= found
    assert "sampler" in kinds()


@pytest.mark.parametrize(
    ("record", "name", "hint"), NUMERIC, ids=lambda each: getattr(each, "__name__", str(each))
)
def test_settings_refuse_what_is_not_a_number(record, name, hint):
    bad = [True, np.True_, np.nan, -1.5, "3", [1], 2 + 0j]
    if int in {hint, *typing.get_args(hint)}:
        bad += [2.5, 1.0]
    for value in bad:
        with pytest.raises(ValueError, match=rf"\b{name}=") as error:
            record(**{name: value})
        one_sentence(error, name)


def test_numbers_of_numpy_are_fine():
    from gpclass.inference import EP, Dirichlet
    from gpclass.mcmc import MCMC

    EP(power=np.float32(0.5), max_iter=np.int64(3))
    Dirichlet(eps=1, rows=np.int32(5))
    MCMC(n_draws=np.uint8(5))
    Inducing(n=np.int16(5), gain=3, rows=(np.int64(5), 7))


BAD = {
    "inducing": [True, np.True_, 0, -3, 2.5, "7", "none", [True, False], np.array([1.0, 2.0]), {}],
    "n_jobs": ["2", 1.5, True, 0],
    "random_state": ["a", 1.5, True, -1, 2**32, [1]],
    "verbose": ["x", None, -1, 0.5],
    "max_iter_predict": ["3", 0, 2.5, True, None],
    "n_restarts_optimizer": [1.5, "1", -1, True, None],
    "categorical_features": ["auto", True, 3, 1.5, {}],
    "class_weight": ["balancedd", 3, [1.0, 2.0], True, {0: "a"}, {0: -1.0}, {0: np.nan}],
    "warm_start": ["yes", 1, None],
    "copy_X_train": ["yes", 1, None],
    "hyperprior": ["x", 3, [Shrinkage()], {"length_scale": 3.0}],
    "multi_class": ["ovr", True, None],
    "integration": [None, 1],
    "hyperparameters": [None, True],
    "optimizer": ["adam", True, 3],
    "kernel": ["rbff", 3, True],
    "likelihood": [None, 3, True],
    "inference": [None, 3, True],
    "cost_matrix": ["x", True, [[0, 1]], [[0, "a"], [1, 0]]],
}


def test_every_parameter_is_tried():
    assert set(BAD) == set(GaussianProcessClassifier().get_params())


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]], ids=str)
def test_a_parameter_of_the_wrong_kind_is_named(name, value):
    clf = GaussianProcessClassifier(
        **{"kernel": RBF(10.0), "optimizer": None, "inference": "vi", name: value}
    )
    spoken = {"cost_matrix": "cost matrix"}.get(name, name)
    for fit in (clf.fit, clf.partial_fit) if name != "multi_class" else (clf.fit,):
        with pytest.raises(ValueError, match=spoken) as error:
            fit(X, Y)
        one_sentence(error, spoken)
    assert not hasattr(clf, "classes_")


def test_good_kinds_are_accepted():
    for options in (
        {"n_jobs": np.int64(-1), "random_state": np.random.RandomState(0), "verbose": np.False_},
        {"inducing": np.int64(5), "random_state": np.int64(3), "warm_start": np.True_},
        {"inducing": np.array([[1.0], [50.0]]), "class_weight": {0: 2, 1: np.float32(1.0)}},
    ):
        clf = GaussianProcessClassifier(RBF(10.0), optimizer=None, inference="laplace", **options)
        assert clf.fit(X, Y).score(X, Y) > 0.5


def test_arguments_of_functions():
    clf = GaussianProcessClassifier(RBF(10.0), optimizer=None, inference="laplace").fit(X, Y)
    calls = {
        "n_samples": [
            lambda n: clf.sample_latent(X, n),
            lambda n: clf.check_approximation(n),
            lambda n: compare(X, Y, methods="laplace", n_samples=n),
        ],
        "level": [lambda level: clf.predict_interval(X, level)],
        "n_draws": [lambda n: active.query(clf, X, n_draws=n)],
        "n": [lambda n: active.query(clf, X, n)],
        "n_train": [lambda n: interval(n)],
    }
    for name, each in calls.items():
        for call in each:
            for value in (True, "3", 2.5, -1, np.nan):
                with pytest.raises(ValueError, match=rf"\b{name}=") as error:
                    call(value)
                one_sentence(error, name)
    for call in (clf.sample_latent, lambda X, **options: compare(X, Y, methods="laplace", **options)):
        with pytest.raises(ValueError, match="random_state='a'"):
            call(X, random_state="a")


def test_intervals():
    check_numbers("[0, 1)", a=0, b=0.5)
    check_numbers("(0, inf)", a=1e300)
    for interval_, value in (("(0, 1]", 0), ("[0, 1)", 1), ("(0, inf)", np.inf), ("[0, inf)", -1e-9)):
        with pytest.raises(ValueError, match=r"a=.* is not valid: expected a number in"):
            check_numbers(interval_, a=value)
    check_integers(0, a=0)


# ---------------------------------------------------------------------------------- optional packages


def test_a_missing_package_is_announced_in_one_way(monkeypatch):
    clf = GaussianProcessClassifier(RBF(10.0), optimizer=None, inference="laplace").fit(X, Y)
    result = compare(X, Y, methods="laplace", cv=None, n_samples=0, learn=False)
    from gpclass.data.sources import as_source
    from gpclass.explore import make_server
    from gpclass.plotting import LatentDisplay

    uses = {
        ("onnx", "onnx"): lambda: gpclass.to_onnx(clf),
        ("safetensors", "files"): lambda: clf.save("never.model"),
        ("matplotlib", "plot"): lambda: LatentDisplay.from_estimator(clf, X),
        ("pandas", "cli"): result.to_frame,
        ("pyarrow", "tables"): lambda: as_source("none.parquet", "y"),
        ("bokeh", "explore"): make_server,
    }
    for (package, extra), use in uses.items():
        with monkeypatch.context() as without:
            for name in [name for name in sys.modules if name.partition(".")[0] == package] + [package]:
                without.setitem(sys.modules, name, None)
            with pytest.raises(ImportError) as error:
                use()
            assert f"needs {package}: pip install {package} (the extra {extra!r} of gpclass has it)." in str(
                error.value
            )
            one_sentence(error, package)


def test_another_package_that_is_missing_is_not_blamed_on_this_one(tmp_path, monkeypatch):
    (tmp_path / "half_there.py").write_text("import surely_missing")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="surely_missing"):
        optional("half_there", "Nothing", "none")
