"""The classifier with inference="dirichlet" and inducing inputs: in memory, in blocks, in files, in portions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import three_classes
from regressions import Regressions
from scipy.special import log_softmax

from gpclass import DoubtfulFitWarning, GaussianProcessClassifier, load
from gpclass.inference import Dirichlet
from gpclass.kernels import RBF, CompoundKernel
from gpclass.learning.problem import EPSILONS
from gpclass.sparse import Inducing
from gpclass.sparse.settings import inducing_of
from gpclass.testing import central_difference

KERNEL = 4.0 * RBF([1.0, 1.5])
X, CODES = three_classes(60)
NEW = three_classes(9, seed=4)[0]
EVERY = Inducing(inputs=X.copy(), dtype="float64")
SOME = Inducing(inputs=X[:15].copy(), dtype="float64")


def fitted(y=CODES, X=X, inducing=EVERY, eps=0.01, **options):
    options = {"optimizer": None, "random_state": 0} | options
    clf = GaussianProcessClassifier(KERNEL, inference=Dirichlet(eps), inducing=inducing, **options)
    return clf.fit(X, y)


def many(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 2))
    return X, (X[:, 0] > np.sin(2.0 * X[:, 1])).astype(int) + (X[:, 1] > 1.0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_all_inputs_inducing_are_the_exact_regressions(n_classes):
    y = CODES % n_classes
    clf, exact = fitted(y), Regressions(X, np.eye(n_classes)[y], 0.01, KERNEL)
    assert len(clf.posterior_.factors) == clf.n_classes_
    assert clf.likelihood_.name == "softmax"
    assert_allclose(clf.log_marginal_likelihood_value_, exact.evidence(), rtol=1e-6)
    mean, variance = exact.predict(NEW)
    found, std = clf.predict_latent(NEW, return_std=True)
    assert_allclose(found, mean, atol=1e-5)
    assert_allclose(std**2, variance, atol=1e-5)
    at_mean = clf.set_params(integration="map").predict_proba(NEW)
    assert_allclose(at_mean, np.exp(log_softmax(mean, axis=1)), atol=1e-5)


def test_evidence_at_other_hyperparameters():
    clf = fitted(inducing=SOME)
    theta = KERNEL.theta + 0.2
    value, gradient = clf.log_marginal_likelihood(theta, eval_gradient=True)
    assert value < Regressions(X, np.eye(3)[CODES], 0.01, KERNEL).evidence(theta)
    assert_allclose(gradient, central_difference(clf.log_marginal_likelihood, theta), rtol=1e-5)


def test_rows_anywhere_give_one_answer(tmp_path):
    names = np.array(["a", "b", "c"])[CODES]
    whole = fitted(names, inducing=SOME)
    blocks = fitted(None, X=lambda: [(X[:7], names[:7]), (X[7:], names[7:])], inducing=SOME)
    assert blocks.base_estimator_.inducing.n_rows == 60
    answers = [whole, blocks]
    pd, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=["u", "v"]).assign(label=names)
    frame.to_parquet(tmp_path / "rows.parquet")
    answers.append(fitted("label", X=tmp_path / "rows.parquet", inducing=SOME))
    for clf in answers[1:]:
        assert_allclose(clf.log_marginal_likelihood_value_, whole.log_marginal_likelihood_value_, rtol=1e-10)
        assert_allclose(clf.predict_proba(NEW), whole.predict_proba(NEW), atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_dask(n_classes):
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    y = CODES % n_classes
    cluster = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**cluster) as local, distributed.Client(local):
        clf = fitted(da.from_array(y, chunks=20), X=da.from_array(X, chunks=(20, 2)), inducing=SOME)
    right = fitted(y, inducing=SOME)
    assert_allclose(clf.log_marginal_likelihood_value_, right.log_marginal_likelihood_value_, rtol=1e-10)
    assert_allclose(clf.predict_proba(NEW), right.predict_proba(NEW), atol=1e-9)


def test_weights():
    counts = np.arange(60) % 3 + 1
    clf = GaussianProcessClassifier(KERNEL, inference=Dirichlet(0.01), inducing=EVERY, optimizer=None)
    weighted = clf.fit(X, CODES, sample_weight=counts).predict_latent(NEW)
    exact = Regressions(X, np.eye(3)[CODES] * counts[:, None], 0.01, KERNEL)
    assert_allclose(weighted, exact.predict(NEW)[0], atol=5e-5)  # the jitter


def test_portions():
    """The prior means are those of the first portion, and what follows is exact."""
    options = {"inference": Dirichlet(0.01), "inducing": SOME, "optimizer": None, "random_state": 0}
    clf = GaussianProcessClassifier(KERNEL, **options).partial_fit(X[:40], CODES[:40])
    clf.partial_fit(X[40:], CODES[40:])
    whole = fitted(inducing=SOME)
    assert_allclose(clf.predict_proba(NEW), whole.predict_proba(NEW), atol=0.02)
    assert clf.base_estimator_.inducing.n_rows == 60


@pytest.mark.slow
def test_learning_is_near_that_of_all_rows():
    rows, y = many()
    new, truth = many(400, seed=1)
    found = fitted(y, X=rows, inducing=80, eps=None, optimizer="fmin_l_bfgs_b")
    exact = fitted(y, X=rows, inducing=None, eps=None, optimizer="fmin_l_bfgs_b")
    eps = found.base_estimator_.problem.inference.eps
    assert eps in EPSILONS
    assert_allclose(found.kernel_.theta, exact.kernel_.theta, atol=0.7)  # a factor of two, from other rows
    p, q = (clf.predict_proba(new)[np.arange(400), truth] for clf in (found, exact))
    assert_allclose(-np.log(p).mean(), -np.log(q).mean(), atol=0.02)
    assert len(found.history_) > 0


def test_an_own_optimizer_and_a_checkpoint(tmp_path):
    rows, y = many(500)

    def two_steps(objective, theta, bounds):
        values = [(objective(t)[0], t) for t in (theta, theta + 0.1)]
        return min(values, key=lambda pair: pair[0])[1], 0.0

    clf = fitted(y, X=rows, inducing=30, eps=None, optimizer=two_steps)
    assert clf.base_estimator_.problem.inference.eps in EPSILONS
    settings = Inducing(n=30, checkpoint=tmp_path / "fit.npz")
    first = fitted(y, X=rows, inducing=settings, eps=None, optimizer="fmin_l_bfgs_b")
    again = fitted(y, X=rows, inducing=settings, eps=None, optimizer="fmin_l_bfgs_b")
    assert again.base_estimator_.problem.inference == first.base_estimator_.problem.inference
    assert again.base_estimator_.inducing.passes < first.base_estimator_.inducing.passes
    assert_allclose(again.predict_proba(NEW), first.predict_proba(NEW), atol=0.02)


def test_automatic_inducing_inputs_are_for_many_rows():
    assert fitted(inducing="auto").base_estimator_.inducing is None
    assert inducing_of("auto", 6000, 1) is None
    assert inducing_of("auto", 3000, 4) is None  # the root of the number of classes counts
    assert inducing_of("auto", 3001, 4) == Inducing()


def test_draws_intervals_and_files(tmp_path):
    pytest.importorskip("safetensors")
    clf, exact = fitted(), Regressions(X, np.eye(3)[CODES], 0.01, KERNEL)
    mean, variance = exact.predict(NEW)
    draws = clf.sample_latent(NEW, 20_000, random_state=0)
    assert_allclose(draws.mean(axis=2), mean, atol=5.0 * np.sqrt(variance.max() / 20_000))
    assert_allclose(draws.var(axis=2), variance, rtol=0.06, atol=1e-3)
    with pytest.warns(DoubtfulFitWarning, match="too narrow"):
        low, high = clf.predict_interval(NEW)
    p = clf.predict_proba(NEW)
    assert ((low <= p) & (p <= high)).all()
    clf.save(tmp_path / "model.gpc")
    again = load(tmp_path / "model.gpc")
    assert_allclose(again.predict_proba(NEW), p, rtol=1e-12)
    assert again.base_estimator_.problem.inference == Dirichlet(0.01)
    with pytest.raises(ValueError, match="needs the training rows"):
        again.log_marginal_likelihood(KERNEL.theta)


@pytest.mark.parametrize(("n_classes", "route"), [(2, "exact"), (3, "mackay")])
def test_onnx(n_classes, route):
    runtime = pytest.importorskip("onnxruntime")
    from gpclass.onnx import to_onnx

    clf = fitted(CODES % n_classes, inducing=SOME, integration=route)
    session = runtime.InferenceSession(to_onnx(clf), providers=["CPUExecutionProvider"])
    assert_allclose(session.run(["probabilities"], {"X": NEW})[0], clf.predict_proba(NEW), atol=1e-8)


def test_what_has_no_meaning_is_refused():
    check = fitted(inducing=SOME).check_approximation()
    assert check.corrected is None
    assert check.verdict.startswith("q(u) is exact for the targets")
    kernels = CompoundKernel([KERNEL] * 3)
    clf = GaussianProcessClassifier(kernels, inference="dirichlet", inducing=5, optimizer=None)
    with pytest.raises(ValueError, match="one kernel for all classes"):
        clf.fit(X, CODES)
