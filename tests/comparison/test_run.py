"""Rows of a comparison against classifiers fitted one at a time; methods, failures and interruptions."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import exact_probit_evidence, two_moons_like
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.metrics import brier_score_loss, log_loss, zero_one_loss
from sklearn.model_selection import ShuffleSplit

from gpclass import GaussianProcessClassifier
from gpclass.comparison import compare
from gpclass.datasets import interval
from gpclass.inference import EP
from gpclass.kernels import RBF
from gpclass.mcmc import MCMC, EllipticalSlice, Sampler
from gpclass.plotting import ComparisonDisplay

X, Y = two_moons_like(60)
SPLIT = interval()
HELD_OUT = {"X_test": SPLIT.X_test, "y_test": SPLIT.y_test}
KERNEL = 4.0 * RBF(1.5)
QUICK = {"kernel": KERNEL, "learn": False, "n_samples": 0, "random_state": 0}
FEW = MCMC(n_draws=50, n_warmup=50, n_chains=2)  # too few to be accurate, which the note says
METHODS = {"laplace": "laplace", "ep": "ep", "vi": "vi", "mcmc": FEW}


class Prior(ClassifierMixin, BaseEstimator):
    """Predicts the shares of the classes; fails, is interrupted or is checked as told."""

    def __init__(self, fail=None, fail_below=10**9, evidence=None):
        self.fail = fail
        self.fail_below = fail_below
        self.evidence = evidence

    def fit(self, X, y, sample_weight=None):
        if self.fail is not None and len(y) < self.fail_below:
            raise self.fail
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.share_ = np.bincount(codes) / len(codes)
        return self

    def predict_proba(self, X):
        return np.tile(self.share_, (len(X), 1))


class Checked(Prior):
    """Has evidence and a check of it."""

    def check_approximation(self, n_samples, random_state):
        return SimpleNamespace(corrected=-n_samples, standard_error=0.25, khat=0.5, doubtful=False)


class TestRows:
    def test_held_out_are_those_of_each_classifier(self):
        A, a, B, b = X[:30], Y[:30], X[30:], Y[30:]
        options = {"kernel": KERNEL, "X_test": B, "y_test": b, "n_samples": 0, "random_state": 0}
        result = compare(A, a, methods=("laplace", "ep", "vi"), **options)
        assert [row.label for row in result.rows] == ["laplace", "ep", "vi"]
        for row in result.rows:
            clf = GaussianProcessClassifier(KERNEL, likelihood="probit", inference=row.label)
            p = clf.fit(A, a).predict_proba(B)
            assert_allclose(row.proba, p, rtol=1e-10)
            assert_allclose(row.kernel.theta, clf.kernel_.theta, rtol=1e-10)
            assert_allclose(row.evidence, clf.log_marginal_likelihood_value_, rtol=1e-10)
            assert_allclose(row.log_loss, log_loss(b, p))
            assert_allclose(row.error, zero_one_loss(b, clf.predict(B)))
            assert_allclose(row.brier, brier_score_loss(b, p[:, 1]))
            assert row.note == ""
            assert row.likelihood == "probit"
            assert row.fit_seconds > 0
            assert row.predict_seconds > 0

    def test_cross_validated_rows_were_not_fitted(self):
        result = compare(X, Y, methods=["laplace"], cv=4, **QUICK)
        assert_array_equal(result.index, np.arange(60))
        assert_array_equal(np.bincount(result.fold), np.full(4, 15))
        for k in range(4):
            rest, fold = result.fold != k, result.fold == k
            clf = GaussianProcessClassifier(KERNEL, optimizer=None, inference="laplace").fit(X[rest], Y[rest])
            assert_allclose(result.rows[0].proba[fold], clf.predict_proba(X[fold]), rtol=1e-10)
            assert abs((Y[fold] > 0).sum() - (Y > 0).sum() / 4) < 1, "stratified"
        assert_allclose(result.rows[0].log_loss, log_loss(Y, result.rows[0].proba))
        assert_array_equal(result.classes[result.codes], Y)

    def test_without_learning_all_have_the_kernel_given(self):
        for row in compare(X, Y, methods=METHODS, cv=None, **QUICK).rows:
            assert_array_equal(row.kernel.theta, KERNEL.theta)
            if row.evidence is not None:
                assert_allclose(row.estimator.log_marginal_likelihood(KERNEL.theta), row.evidence, rtol=1e-6)

    def test_a_seed_decides_all(self):
        first, again, other = (compare(X, Y, methods="laplace", **(QUICK | {"random_state": seed}))
                               for seed in (1, 1, 2))  # fmt: skip
        assert_array_equal(first.fold, again.fold)
        assert_array_equal(first.rows[0].proba, again.rows[0].proba)
        assert not np.array_equal(first.fold, other.fold)

    def test_three_classes_in_a_frame_with_names(self):
        rows = X[:36]
        frame = pd.DataFrame(rows, columns=["width", "height"], index=np.arange(100, 136))
        y = pd.Series(np.array(["c", "a", "b"])[np.digitize(rows[:, 0], [-0.5, 0.5])], index=frame.index)
        rest = GaussianProcessClassifier(KERNEL, optimizer=None, multi_class="one_vs_rest")
        methods = {"ep": "ep", "vi": "vi", "rest": rest}
        result = compare(frame, y, methods=methods, cv=2, **(QUICK | {"n_samples": 500}))
        ep, vi, rest = result.rows
        # Both are importance sampling of the one evidence, and VI's own is below it.
        assert abs(ep.corrected_evidence - vi.corrected_evidence) < 4 * np.hypot(
            ep.standard_error, vi.standard_error
        )
        assert vi.evidence < vi.corrected_evidence + 3 * vi.standard_error
        assert (rest.corrected_evidence, rest.standard_error, rest.khat) == (None, None, None)
        for row in result.rows:
            assert row.note == ""
            assert row.proba.shape == (36, 3)
            assert_allclose(row.log_loss, log_loss(y, row.proba))
            assert_allclose(row.error, zero_one_loss(y, result.classes[row.proba.argmax(axis=1)]))
            assert list(row.estimator.feature_names_in_) == ["width", "height"]
        assert ep.kernel_text.count("RBF") == 1, "one kernel for all classes"


class TestChecks:
    def test_check_is_passed_on(self):
        row = compare(X, Y, methods={"a": Checked()}, cv=None, n_samples=7).rows[0]
        assert (row.corrected_evidence, row.standard_error, row.khat) == (-7.0, 0.25, 0.5)
        assert compare(X, Y, methods={"a": Checked()}, cv=None, n_samples=0).rows[0].khat is None

    @pytest.mark.slow
    def test_joint_models_that_are_too_large_are_not_checked(self):
        rows = np.random.default_rng(0).normal(size=(1340, 2))  # 4020 latent values of three classes
        y = np.digitize(rows[:, 0], [-0.4, 0.4])
        options = QUICK | {"n_samples": 50, "cv": None, "inducing": None}
        row = compare(rows, y, methods="laplace", likelihood="softmax", **options).rows[0]
        assert (row.check, row.corrected_evidence, row.note) == (None, None, "")

    @pytest.mark.slow
    def test_corrected_evidence_is_the_exact_one(self):
        x, y = X[:7], Y[:7]
        truth = exact_probit_evidence(KERNEL(x), y)
        options = QUICK | {"n_samples": 5000}
        rows = compare(x, y, methods=METHODS, cv=None, **options).rows
        corrected = [row for row in rows if row.corrected_evidence is not None]
        assert len(corrected) > 1
        for row in corrected:
            assert abs(row.corrected_evidence - truth) < 5 * row.standard_error + 1e-3
            assert row.standard_error < 0.03


class Interrupted:
    """Elliptical slice sampling, interrupted by the user at the given step."""

    whiten, jitter, piece, begin = None, 0.0, 1, Sampler.begin

    def __init__(self, at):
        self.left, self.inner = at, EllipticalSlice(whiten=None)

    def init(self, target, f):
        return self.inner.init(target, f)

    def step(self, rng, state):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return self.inner.step(rng, state)

    def adapt(self, state, draws, progress):
        return state


class TestSampling:
    def test_no_evidence_is_shown_as_none(self):
        mpl = pytest.importorskip("matplotlib")
        mpl.use("Agg")
        options = QUICK | {"n_samples": 500}
        methods = {"ep": "ep", "mcmc": MCMC(n_draws=400, thin=3)}
        result = compare(SPLIT.X, SPLIT.y, methods=methods, **options, **HELD_OUT)
        ep, mcmc = result.rows
        assert_allclose(mcmc.proba, mcmc.estimator.predict_proba(SPLIT.X_test))
        assert mcmc.note == ""
        assert mcmc.evidence is None
        assert mcmc.corrected_evidence is None
        assert_allclose(mcmc.proba, ep.proba, atol=0.03)
        line = next(line for line in str(result).splitlines() if line.startswith("mcmc"))
        assert re.match("mcmc +– +– ", line)
        assert "–*" not in str(result)
        assert result.to_frame().loc["mcmc", "evidence"] is pd.NA
        assert result.best("evidence").label == "ep"
        import matplotlib.pyplot as plt

        axes = ComparisonDisplay(result).plot().axes_
        drawn = [float(container[0].get_xdata()[0]) for container in axes[1].containers]
        assert drawn == [ep.corrected_evidence]
        plt.close("all")

    def test_sampled_hyperparameters_have_no_evidence_at_all(self):
        few = MCMC(n_draws=10, n_warmup=10, n_chains=2)
        row = compare(
            X[:12], Y[:12], methods={"full": few}, kernel=KERNEL, cv=None, n_samples=50, random_state=0,
            hyperparameters="sample",
        ).rows[0]  # fmt: skip
        assert (row.evidence, row.corrected_evidence, row.standard_error, row.khat) == (None,) * 4
        assert row.estimator.chains_.theta.shape == (2, 10, 2)
        assert "have not mixed" in row.note, "ten draws are too few"

    def test_without_arviz_the_row_says_what_to_install(self, monkeypatch):
        for name in ("arviz_stats", "arviz_stats.base"):
            monkeypatch.setitem(sys.modules, name, None)
        result = compare(X, Y, methods=("mcmc", "laplace"), cv=2, **QUICK)
        assert "needs arviz-stats" in result["mcmc"].note
        assert "the extra 'mcmc' of gpclass" in result["mcmc"].note
        assert result["mcmc"].log_loss is None
        assert result["laplace"].log_loss > 0

    def test_interruption_while_sampling_ends_all_too(self):
        stopped = MCMC(Interrupted(at=60), n_warmup=10, n_draws=200)
        methods = {"one": "laplace", "two": stopped, "three": "vi"}
        result = compare(X, Y, methods=methods, cv=None, **QUICK)
        assert [row.label for row in result.rows] == ["one"]


class TestFailures:
    def test_one_failure_does_not_end_all(self):
        methods = {
            "bad": Prior(fail=RuntimeError("no luck")),
            "worse": Prior(RuntimeError("late"), 60),
            "good": "laplace",
        }
        result = compare(X, Y, methods=methods, **QUICK)
        assert result["bad"].note == "failed with RuntimeError: no luck"
        assert result["bad"].log_loss is None
        assert result["bad"].fit_seconds is None
        assert result["worse"].note == "failed with RuntimeError: late [predicting]"
        assert result["worse"].log_loss is None
        assert result["worse"].fit_seconds is not None
        assert result["good"].note == ""
        assert result.best("log_loss").label == "good"

    def test_convergence_is_noted_once_for_all_folds(self):
        row = compare(X, Y, methods={"hasty": EP(max_iter=1)}, cv=3, **QUICK).rows[0]
        assert row.note.count("did not converge") == 1
        assert row.log_loss is not None

    def test_other_warnings_are_passed_on(self):
        class Loud(Prior):
            def fit(self, X, y, sample_weight=None):
                import warnings

                warnings.warn("look here", UserWarning, stacklevel=1)
                return super().fit(X, y)

        with pytest.warns(UserWarning, match="look here"):
            result = compare(X, Y, methods={"loud": Loud()}, cv=None)
        assert result.rows[0].note == ""

    def test_interruption_keeps_what_is_finished(self):
        methods = {"one": "laplace", "two": Prior(fail=KeyboardInterrupt()), "three": "vi"}
        result = compare(X, Y, methods=methods, **QUICK)
        assert [row.label for row in result.rows] == ["one"]
        assert "interrupted after 1 of 3 methods" in " ".join(str(result).split())
        with pytest.raises(KeyboardInterrupt):
            compare(X, Y, methods={"two": Prior(fail=KeyboardInterrupt())})

    def test_interruption_while_learning_ends_all_too(self):
        calls = []

        def optimizer(objective, theta, bounds):
            objective(theta)
            calls.append(theta)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return theta, 0.0

        result = compare(X, Y, cv=None, kernel=KERNEL, optimizer=optimizer, n_samples=0)
        assert [row.label for row in result.rows] == ["laplace"]


def test_inducing_inputs_are_compared_and_checked():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, size=(150, 2))
    y = (np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=150) > 0.0).astype(int)
    options = {"kernel": 4.0 * RBF(1.0), "learn": False, "cv": 2, "random_state": 0, "n_samples": 2000}
    methods = ("laplace", "ep", "vi", "dirichlet")
    exact = compare(X, y, methods=methods, **options)
    every, few = (compare(X, y, methods=methods, inducing=Z, **options) for Z in (X.copy(), X[:3].copy()))
    for name in methods[:3]:
        assert abs(every[name].evidence - exact[name].evidence) < 1e-2
        assert every[name].corrected_evidence is None
    for name in methods:
        assert every[name].note == ""
        assert abs(every[name].log_loss - exact[name].log_loss) < 2e-3
        assert few[name].log_loss > exact[name].log_loss
    for name in ("vi", "dirichlet"):
        assert "use more of them" in few[name].note
    assert few["dirichlet"].evidence is None
    failed = compare(X, y, methods=("mcmc",), inducing=5, **options)["mcmc"]
    assert "all rows in memory" in failed.note


# ------------------------------------------------------------------------------ folds and bad input


def test_all_methods_get_the_same_folds():
    seen = []

    class Recording(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append(np.array(X))
            return super().fit(X, y)

    compare(X, Y, methods={"a": Recording(), "b": Recording()}, cv=3, random_state=0)
    for ours, theirs in zip(seen[:4], seen[4:], strict=True):
        assert_array_equal(ours, theirs)
    assert_array_equal(seen[0], X)


def test_other_splits():
    result = compare(X, Y, methods="laplace", cv=ShuffleSplit(3, test_size=10, random_state=0), **QUICK)
    assert len(result.index) == 30
    row = result.rows[0]
    assert_allclose(row.log_loss, log_loss(Y[result.index], row.proba))
    nothing = compare(X, Y, methods="laplace", cv=None, **QUICK)
    assert nothing.rows[0].proba is None
    assert "no rows scored" in str(nothing)


@pytest.mark.parametrize(("change", "message"), [
    ({"methods": ()}, "methods is empty"),
    ({"methods": "expectation"}, "inference='expectation' is not valid"),
    ({"methods": [EP]}, "inference is the class EP"),
    ({"methods": {"svm": object}}, "is the class object"),
    ({"likelihood": "cauchit"}, "likelihood='cauchit' is not valid"),
    ({"cv": 1}, "n_splits=2 or more"),
    ({"cv": 50}, "n_splits=50 cannot be greater"),
    ({"X_test": X}, "Only one of X_test and y_test"),
    ({"X_test": X, "y_test": Y[:3]}, "y_test has shape"),
    ({"X_test": X, "y_test": Y + 1}, "is not among the classes"),
    ({"X_test": X[:, :1], "y_test": Y}, "features"),
    ({"y": np.ones(60)}, "only the class"),
    ({"X": np.full((60, 2), np.nan)}, "All columns of X are constant"),
])  # fmt: skip
def test_bad_input_is_named_at_once(change, message):
    with pytest.raises(ValueError, match=message):
        compare(**({"X": X, "y": Y} | QUICK | change))
