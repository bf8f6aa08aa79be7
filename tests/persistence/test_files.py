"""A classifier saved and loaded is the same to the last bit."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import numpy as np
import pytest
from model_files import GRID, SHORT, assert_same, data, same, saved
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import kernels as theirs
from sklearn.gaussian_process.kernels import GenericKernelMixin, Hyperparameter

from gpclass import GaussianProcessClassifier
from gpclass.core.hyperpriors import Shrinkage
from gpclass.inference import EP, VI, Laplace
from gpclass.kernels import (
    RBF,
    Columns,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    GaussianUnits,
    Kernel,
    Linear,
    Matern,
    NeuralNetwork,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
    register,
)
from gpclass.likelihoods import LabelNoise, Logit
from gpclass.mcmc import PseudoMarginal
from gpclass.persistence import ModelFileError, load, load_with_extra, save
from gpclass.sampling import Rejection
from gpclass.sparse.settings import Inducing

warnings_off = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


# ------------------------------------------------------------------------------ round trips

FIXED = {"kernel": 2.0 * RBF(1.0), "optimizer": None}
LEARNED = {"kernel": 2.0 * RBF(1.0), "inference": "laplace"}
SAMPLED = {"inference": SHORT, "random_state": 0}
REST = {"multi_class": "one_vs_rest", "inference": "laplace"}
MARGINAL = replace(SHORT, hyper_sampler=PseudoMarginal(8), learn_by=Laplace(), n_draws=4)
PRIOR = {"length_scale": stats.lognorm(1.0, scale=2.0)}
CASES = {
    "laplace": (2, {"inference": "laplace", "likelihood": "logit"}),
    "ep": (2, {"inference": EP(power=0.5), **FIXED}),
    "vi": (2, {"inference": VI(), "random_state": 3}),
    "map": (2, {"integration": "map", "likelihood": Logit(), "inference": Laplace(), **FIXED}),
    "monte carlo": (2, {"integration": "monte_carlo", "random_state": 4, **FIXED}),
    "cloglog": (2, {"likelihood": "cloglog", **LEARNED}),
    "label noise": (2, {"likelihood": LabelNoise(Logit(), 0.1), **LEARNED}),
    "multiprobit": (3, {**FIXED}),
    "multiprobit ep": (3, {"inference": "ep", **FIXED}),
    "softmax": (3, {"likelihood": "softmax", "inference": "laplace", **FIXED}),
    "softmax vi": (4, {"likelihood": "softmax", **FIXED}),
    "one_vs_rest": (3, {**REST}),
    "one_vs_rest cloglog": (3, {**REST, **FIXED, "likelihood": "cloglog"}),
    "one_vs_one": (3, {"multi_class": "one_vs_one", "inference": "laplace", **FIXED}),
    "mcmc": (2, {**SAMPLED, **FIXED}),
    "joint mcmc": (3, {**SAMPLED, **FIXED}),
    "sampled": (2, {**SAMPLED, "hyperparameters": "sample", "kernel": 2.0 * RBF(1.0)}),
    "sampled by laplace": (2, {"inference": MARGINAL, "hyperparameters": "sample", "kernel": 2.0 * RBF(1.0)}),
    "sampled rest": (
        3,
        {**SAMPLED, "hyperparameters": "sample", "multi_class": "one_vs_rest", "kernel": 2.0 * RBF(1.0)}
        | {"hyperprior": PRIOR},
    ),
    "fitc": (2, {"inducing": Inducing(6), "inference": "ep", **FIXED}),
    "fitc rest": (3, {"inducing": Inducing(6), **REST, **FIXED}),
    "hyperprior": (2, {"hyperprior": {"length_scale": stats.gamma(a=2.0)}}),
    "shrinkage": (2, {"hyperprior": Shrinkage(0.5)}),
    "costs": (3, {"cost_matrix": [[0, 1, 2], [3, 0, 1], [1, 1, 0]], "class_weight": "balanced", **FIXED}),
}


@warnings_off
@pytest.mark.filterwarnings("ignore:Weights that are not small whole numbers")
@pytest.mark.parametrize("case", CASES)
def test_round_trip(case, tmp_path):
    n_classes, settings = CASES[case]
    X, y = data(16, n_classes)
    clf = GaussianProcessClassifier(**settings).fit(X, y)
    assert_same(clf, saved(clf, tmp_path))


@pytest.mark.parametrize(("n_classes", "likelihood"), [(2, "logit"), (3, "softmax")])
def test_rows_in_several_calls(n_classes, likelihood, tmp_path):
    X, y = data(24, n_classes)
    clf = GaussianProcessClassifier(**FIXED, likelihood=likelihood, inducing=6)
    clf.partial_fit(X[:12], y[:12], classes=np.arange(n_classes))
    again = saved(clf, tmp_path)
    assert_same(clf, again, rows=False)
    assert_same(clf.partial_fit(X[12:], y[12:]), again.partial_fit(X[12:], y[12:]))


class Letters(GenericKernelMixin, Kernel):
    """The number of equal letters at equal places, as a kernel of texts."""

    def __init__(self, scale=1.0, scale_bounds=(1e-3, 1e3)):
        self.scale, self.scale_bounds = scale, scale_bounds

    @property
    def hyperparameter_scale(self):
        return Hyperparameter("scale", "numeric", self.scale_bounds)

    def __call__(self, X, Y=None, eval_gradient=False):
        K = np.array([[sum(map(str.__eq__, x, z)) for z in (X if Y is None else Y)] for x in X])
        K = K * float(self.scale)
        return (K, K[..., None]) if eval_gradient else K

    def diag(self, X):
        return np.array([len(x) for x in X]) * float(self.scale)

    def is_stationary(self):
        return False


def test_structured_inputs(tmp_path):
    register(Letters)
    rng = np.random.default_rng(0)
    X = np.array(["".join(rng.choice(list("abc"), 5)) for _ in range(20)])
    y = np.array([x.count("a") > 1 for x in X])
    clf = GaussianProcessClassifier(Letters(), inference="laplace").fit(X, y)
    again = saved(clf, tmp_path)
    for x, z in zip(clf.training_rows(), again.training_rows(), strict=True):
        same(x, z)
    assert_same(clf, again, X[:5])


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
    2.0 * Linear(np.array([1.0, 2.0]), np.array([-1.0, 0.5])),
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
    kernel = sum((RBF(1.0 + i, "fixed") for i in range(150)), start=RBF())
    clf = GaussianProcessClassifier(kernel, optimizer=None, inference="laplace").fit(X, y)
    same(clf.predict_proba(GRID), saved(clf, tmp_path).predict_proba(GRID))


@pytest.mark.parametrize("compound", [CompoundKernel, theirs.CompoundKernel])
def test_a_kernel_for_each_class(compound, tmp_path):
    X, y = data(12, 3)
    kernel = compound([1.0 * RBF(1.0), 2.0 * Matern(2.0), RBF([1.0, 2.0])])
    clf = GaussianProcessClassifier(kernel, optimizer=None, likelihood="softmax", inference="laplace").fit(
        X, y
    )
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


def test_weights_and_copies(tmp_path):
    X, y = data(20, 3)
    X = np.concatenate([X, X[:5]])
    weight = 0.5 + np.arange(25) % 4
    weight[3] = 0.0
    clf = GaussianProcessClassifier(1.0 * RBF(1.0), optimizer=None, likelihood="logit")
    clf.fit(X, np.r_[y, y[:5]], sample_weight=weight)
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


def test_extra_information_is_stored_beside_the_model(tmp_path):
    X, y = data(12)
    clf = GaussianProcessClassifier(**FIXED).fit(X, y)
    extra = {"unit": "hours", "columns": ["a", {"b": [1.5, None, True]}]}
    save(clf, tmp_path / "model", extra=extra)
    again, found = load_with_extra(tmp_path / "model")
    assert found == extra
    assert_same(clf, again)
    assert_same(clf, load(tmp_path / "model"))
    save(clf, tmp_path / "model")
    assert load_with_extra(tmp_path / "model")[1] is None
    for wrong in ({"x": np.arange(3)}, {"x": np.nan}):
        with pytest.raises(ModelFileError, match="extra"):
            save(clf, tmp_path / "model", extra=wrong)


def test_the_extra_to_install_is_named(tmp_path, monkeypatch):
    X, y = data(12)
    clf = GaussianProcessClassifier(**FIXED).fit(X, y)
    save(clf, tmp_path / "model")
    for name in ("safetensors", "safetensors.numpy"):
        monkeypatch.setitem(sys.modules, name, None)
    for action in (lambda: save(clf, tmp_path / "other"), lambda: load(tmp_path / "model")):
        with pytest.raises(ImportError, match="the extra 'files' of gpclass"):
            action()
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize(("n_classes", "settings"), [(2, {}), (3, {"likelihood": "softmax"})])
def test_models_in_passes_leave_their_rows_out(n_classes, settings, tmp_path):
    X, y = data(24, n_classes)
    clf = GaussianProcessClassifier(**FIXED, inducing=6, **settings).fit(X, y)
    again = saved(clf, tmp_path)
    assert again.base_estimator_.objective is None
    assert clf.base_estimator_.objective is not None
    assert_same(clf, again, rows=False)


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


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
def test_columns_of_any_magnitude(scale, tmp_path):
    X = scale * np.random.default_rng(0).normal(size=(40, 2))
    clf = GaussianProcessClassifier("rbf", optimizer=None).fit(X, X[:, 0] > 0.0)
    clf.save(tmp_path / "m.gpc")
    np.testing.assert_array_equal(load(tmp_path / "m.gpc").predict_proba(X), clf.predict_proba(X))
