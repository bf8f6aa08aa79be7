"""A fit that fails leaves the previous one as it was."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from gpclass import GaussianProcessClassifier
from gpclass.core import linalg
from gpclass.kernels import RBF, Columns, CompoundKernel
from gpclass.mcmc import MCMC
from gpclass.sparse import Inducing

rng = np.random.default_rng(0)
FEW = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
LABELS = np.where(FEW["a"] + 0.3 * rng.normal(size=40) > 0.0, "yes", "no")
WIDE = rng.normal(size=(40, 5))
WIDE_LABELS = np.repeat([3, 4, 5, 6], 10)
NAMED = pd.DataFrame(WIDE, columns=list("vwxyz"))
TWO = WIDE_LABELS > 4
LEARNED = ("classes_", "n_classes_", "n_features_in_", "feature_names_in_", "log_marginal_likelihood_value_")


def with_nan():
    broken = WIDE.copy()
    broken[7, 2] = np.nan
    return broken


def raises(*args, **options):
    raise RuntimeError("the optimizer gave up")


def interrupts(function, start, bounds):
    raise KeyboardInterrupt


class Objects(RBF):
    """A kernel that takes its inputs as they are."""

    requires_vector_input = False


class Breaks(RBF):
    """A kernel that raises when it is called for the third time."""

    calls = 0

    def __call__(self, X, Y=None, eval_gradient=False):
        Breaks.calls += 1
        if Breaks.calls > 2:
            raise RuntimeError("the kernel broke")
        return super().__call__(X, Y, eval_gradient)


def yields_broken_blocks():
    yield WIDE[:20], TWO[:20]
    raise OSError("the disk is gone")


# parameters, arguments of fit, what is raised
FAILURES = {
    "NaN for a kernel on objects": ({"kernel": Objects()}, (with_nan(), TWO), ValueError),
    "infinity": ({}, (np.where(WIDE > 2.0, np.inf, WIDE), TWO), ValueError),
    "texts": ({}, (NAMED.assign(v=[f"id {i}" for i in range(40)]), TWO), ValueError),
    "one class": ({}, (WIDE, np.zeros(40)), ValueError),
    "regression targets": ({}, (WIDE, rng.normal(size=40)), ValueError),
    "no labels": ({}, (WIDE, None), ValueError),
    "labels of another length": ({}, (WIDE, TWO[:-1]), ValueError),
    "weights of another length": ({}, (NAMED, TWO, np.ones(39)), ValueError),
    "negative weights": ({}, (WIDE, TWO, -np.ones(40)), ValueError),
    "zero weights": ({}, (WIDE, TWO, np.zeros(40)), ValueError),
    "a matrix of labels": ({}, (WIDE, np.full((40, 2), 0.7)), ValueError),
    "unknown name": ({"inference": "magic"}, (WIDE, TWO), ValueError),
    "class weights": ({"class_weight": {"red": 2.0}}, (WIDE, TWO), ValueError),
    "costs": ({"cost_matrix": np.ones((3, 3))}, (WIDE, TWO), ValueError),
    "length scales": ({"kernel": RBF(np.ones(3))}, (WIDE, TWO), ValueError),
    "unknown columns": ({"kernel": Columns(RBF(), ["a"])}, (NAMED, TWO), ValueError),
    "kernels of other classes": ({"kernel": CompoundKernel([RBF()] * 3)}, (WIDE, WIDE_LABELS), ValueError),
    "priors": ({"hyperprior": {"nobody": stats.norm()}}, (WIDE, TWO), ValueError),
    "restarts": (
        {"kernel": RBF(1.0, (1e-5, np.inf)), "n_restarts_optimizer": 1},
        (WIDE, TWO),
        ValueError,
    ),
    "refused combination": ({"inference": "ep", "likelihood": "softmax"}, (WIDE, WIDE_LABELS), ValueError),
    "inducing inputs": ({"inducing": np.ones((4, 3))}, (WIDE, TWO), ValueError),
    "optimizer": ({"kernel": "rbf", "optimizer": raises}, (NAMED, TWO), RuntimeError),
    "optimizer of nothing": ({"kernel": "rbf", "optimizer": lambda f, x, b: None}, (WIDE, TWO), Exception),
    "interruption": ({"kernel": "rbf", "optimizer": interrupts}, (NAMED, TWO), KeyboardInterrupt),
    "kernel": ({"kernel": Breaks(1.0)}, (NAMED, TWO), RuntimeError),
    "source": ({}, (yields_broken_blocks, None), OSError),
    "source of one class": ({}, (lambda: iter([(WIDE, np.zeros(40))]), None), ValueError),
    "class weights of a source": ({"class_weight": "balanced"}, (lambda: iter([(WIDE, TWO)]), None), ValueError),
    "checkpoint": ({"inducing": Inducing(5, checkpoint=__file__)}, (NAMED, TWO), ValueError),
}  # fmt: skip


def previous(**options):
    return GaussianProcessClassifier(2.0 * RBF(2.0), optimizer=None, random_state=0, **options).fit(
        FEW, LABELS
    )


def seen(clf):
    """Return everything that a user can see of a fitted classifier."""
    return (
        [clf.predict(FEW), clf.predict_proba(FEW), *clf.predict_latent(FEW, return_std=True), clf.loo_proba_],
        [getattr(clf, name) for name in LEARNED],
        repr(clf.kernel_) + repr(clf.inference_) + repr(sorted(vars(clf))),
    )


def assert_same(clf, before):
    now = seen(clf)
    for one, other in zip(now[0] + now[1], before[0] + before[1], strict=True):
        assert_array_equal(one, other)
    assert now[2] == before[2]


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("name", FAILURES)
def test_a_fit_that_fails_leaves_the_previous_one(name, warm):
    options, arguments, error = FAILURES[name]
    Breaks.calls = 0
    clf = previous(warm_start=warm)
    before, own = seen(clf), clf.get_params(deep=False)
    clf.set_params(**{"optimizer": "fmin_l_bfgs_b", **options})
    with pytest.raises(error):
        clf.fit(*arguments)
    clf.set_params(**own)
    assert_same(clf, before)
    assert_same(pickle.loads(pickle.dumps(clf)), before)


def test_a_fit_that_fails_leaves_an_unfitted_classifier_unfitted():
    for options, arguments, error in FAILURES.values():
        Breaks.calls = 0
        clf = GaussianProcessClassifier(**options)
        fresh = set(vars(clf))
        with pytest.raises(error):
            clf.fit(*arguments)
        assert set(vars(clf)) == fresh


def test_a_warning_that_is_an_error_is_a_fit_that_fails():
    clf = previous()
    before = seen(clf)
    clf.set_params(kernel=RBF(1.0, (0.9, 1.1)), optimizer="fmin_l_bfgs_b", likelihood="logit")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning, match="close to the specified"):
            clf.fit(NAMED, TWO)
    assert_same(clf, before)


def test_too_little_memory_leaves_the_previous_fit(monkeypatch):
    clf = previous()
    before = seen(clf)
    monkeypatch.setattr(linalg, "available_memory", lambda: 1e3)
    with pytest.raises(MemoryError):
        clf.fit(NAMED, TWO)
    monkeypatch.undo()
    assert_same(clf, before)


def test_chains_that_are_interrupted_early_leave_the_previous_fit(monkeypatch):
    clf = previous()
    before = seen(clf)
    clf.set_params(inference=MCMC(n_draws=20, n_warmup=10))
    with monkeypatch.context() as patch:
        patch.setattr("gpclass.mcmc.chains.Sampler.begin", interrupts_at_once)
        with pytest.raises(KeyboardInterrupt):
            clf.fit(NAMED, TWO)
    clf.set_params(inference="auto")
    assert_same(clf, before)


def interrupts_at_once(*args):
    raise KeyboardInterrupt


def test_a_fit_without_names_forgets_those_of_the_previous_one():
    clf = previous().fit(WIDE, TWO)
    assert clf.n_features_in_ == 5
    assert not hasattr(clf, "feature_names_in_")
    clf.fit(FEW, LABELS)
    assert list(clf.feature_names_in_) == ["a", "b", "c"]
    clf.fit(lambda: iter([(WIDE, TWO)]))
    assert not hasattr(clf, "feature_names_in_")


def test_what_others_set_while_it_fits_stays():
    class Counting(GaussianProcessClassifier):
        def count(self, function, start, bounds):
            self.evaluations = getattr(self, "evaluations", 0) + 1
            return start, function(start)[0]

    clf = Counting(2.0 * RBF(3.0))
    clf.optimizer = clf.count
    clf.fit(FEW, LABELS).fit(FEW, LABELS)
    assert clf.evaluations == 2


# ------------------------------------------------------------------------------ partial_fit


def streamed():
    clf = GaussianProcessClassifier(2.0 * RBF(2.0), optimizer=None, inducing=10, random_state=0)
    return clf.partial_fit(FEW, LABELS)


def streamed_seen(clf):
    latent = clf.predict_latent(FEW, return_std=True)
    return [clf.predict_proba(FEW), *latent, *(getattr(clf, name) for name in LEARNED)]


MORE = {
    "width": (WIDE, TWO),
    "names": (FEW.rename(columns={"a": "d"}), LABELS),
    "NaN": (FEW.mask(FEW > 1.5), LABELS),
    "labels": (FEW, WIDE_LABELS),
    "length": (FEW, LABELS[:-1]),
    "weights": (FEW, LABELS, None, -np.ones(40)),
}


@pytest.mark.parametrize("name", MORE)
def test_further_rows_that_fail_leave_the_model(name):
    clf = streamed()
    before = streamed_seen(clf)
    with pytest.raises(ValueError, match=r"\w"):
        clf.partial_fit(*MORE[name])
    for one, other in zip(streamed_seen(clf), before, strict=True):
        assert_array_equal(one, other)


def test_an_interruption_while_rows_are_taken_in_leaves_the_model(monkeypatch):
    clf = streamed()
    before = streamed_seen(clf)
    with monkeypatch.context() as patch:
        patch.setattr("gpclass.estimator.complaints", interrupts_at_once)
        with pytest.raises(KeyboardInterrupt):
            clf.partial_fit(FEW, LABELS)
    for one, other in zip(streamed_seen(clf), before, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("classes", [None, [True, False]])
@pytest.mark.parametrize("fault", ["infinity", "one class", "weights", "optimizer"])
def test_a_first_call_that_fails_leaves_the_previous_fit(fault, classes):
    clf = previous()
    before, own = seen(clf), clf.get_params(deep=False)
    X, labels, weight, error = NAMED, TWO, None, ValueError
    if fault == "infinity":
        X = np.where(WIDE > 2.0, np.inf, WIDE)
    elif fault == "one class":
        labels = np.ones(40, dtype=bool)
        if classes is not None:
            labels = np.full(40, 7)  # none of the classes
    elif fault == "weights":
        weight = np.ones(3)
    else:
        clf.set_params(kernel="rbf", optimizer=raises)
        error = RuntimeError
    with pytest.raises(error):
        clf.partial_fit(X, labels, classes, weight)
    clf.set_params(**own)
    assert_same(clf, before)
