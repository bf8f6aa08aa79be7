"""One of each part in a module of a user's own works everywhere, without an entry in any list."""

from __future__ import annotations

import importlib.util
import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from part_checks import check_inference
from problems import two_moons_like
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import gpclass
from gpclass import GaussianProcessClassifier, testing
from gpclass.core.registry import _PARTS, parts
from gpclass.data.sources import BlockSource
from gpclass.inference import Laplace
from gpclass.kernels import RBF
from gpclass.mcmc import MCMC

SOURCE = '''
from dataclasses import dataclass

import numpy as np

from gpclass.core.registry import Method
from gpclass.inference import EP
from gpclass.kernels import FormulaKernel, Profile, Stationary
from gpclass.likelihoods import BinaryLikelihood


@dataclass(frozen=True, slots=True)
class LogLog(BinaryLikelihood):
    """p(y=+1|f) = exp(-exp(-f)), by its logarithm alone."""

    def log_prob(self, y, f):
        rate = np.exp(-np.clip(f, -500.0, 500.0))
        rest = np.log(-np.expm1(-np.maximum(rate, 1e-300)))
        return np.where(y > 0.0, -rate, rest)


@dataclass(frozen=True, slots=True)
class HalfPower(Method):
    """Power EP with the power one half, under a name of its own."""

    max_iter: int = 100

    def __call__(self, prior, likelihood, y, *, weight=None, init=None):
        return EP(power=0.5, max_iter=self.max_iter)(prior, likelihood, y, weight=weight, init=init)


def agnesi(kernel):
    return Profile(value=lambda S: 1 / (1 + S), slope=lambda S: -((1 + S) ** -2))


class Agnesi(FormulaKernel, formulas=Stationary(agnesi)):
    """1 / (1 + |x - z|² / l²)."""

    def __init__(self, length_scale=1.0, length_scale_bounds=(1e-3, 1e3)):
        self.length_scale = length_scale
        self.length_scale_bounds = length_scale_bounds
'''
X, y = two_moons_like(16)
KERNEL = 2.0 * RBF(1.0)


@pytest.fixture(scope="module")
def user(tmp_path_factory):
    """Return a module of a user's own, imported from a temporary file."""
    path = tmp_path_factory.mktemp("user") / "user_parts.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("user_parts", path)
    module = importlib.util.module_from_spec(spec)
    before = {kind: dict(known) for kind, known in _PARTS.items()}
    sys.modules["user_parts"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["user_parts"]
    for kind, known in before.items():
        _PARTS[kind].clear()
        _PARTS[kind].update(known)


def fitted(**options):
    weight = options.pop("sample_weight", None)
    options = {"kernel": KERNEL, "optimizer": None, "likelihood": "loglog", "random_state": 0} | options
    return GaussianProcessClassifier(**options).fit(X, y, sample_weight=weight)


class TestLikelihood:
    def test_it_conforms(self, user):
        assert parts("likelihood")["loglog"] is user.LogLog
        testing.check_likelihood(user.LogLog())
        check_inference(Laplace(tol=1e-12), user.LogLog(), KERNEL, X[:8], y[:8])

    @pytest.mark.parametrize("inference", ["laplace", "ep", "vi"])
    def test_it_is_complementary_log_log_with_exchanged_labels(self, user, inference):
        """1 - exp(-exp(f)) with f for -f and the labels exchanged."""
        mine = fitted(inference=inference)
        mirrored = GaussianProcessClassifier(
            KERNEL, likelihood="cloglog", inference=inference, optimizer=None
        )
        mirrored.fit(X, -y)
        assert_allclose(
            mine.log_marginal_likelihood_value_, mirrored.log_marginal_likelihood_value_, rtol=1e-6
        )
        assert_allclose(mine.predict_proba(X), mirrored.predict_proba(X)[:, ::-1], atol=1e-6)
        assert_allclose(mine.predict_latent(X), -mirrored.predict_latent(X), atol=1e-5)

    def test_in_chains(self, user):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            clf = fitted(inference=MCMC(n_draws=200, n_warmup=50))
        assert_allclose(clf.predict_proba(X), fitted(inference="ep").predict_proba(X), atol=0.1)

    @pytest.mark.parametrize("inference", ["laplace", "vi"])
    def test_with_inducing_inputs(self, user, inference):
        all_inputs = fitted(inference=inference, inducing=X.copy())
        assert_allclose(all_inputs.predict_proba(X), fitted(inference=inference).predict_proba(X), atol=1e-3)

    def test_with_weights(self, user):
        weight = np.resize([1.0, 2.0, 3.0], len(X))
        copies = np.repeat(np.arange(len(X)), weight.astype(int))
        clf = fitted(inference="laplace", sample_weight=weight)
        again = GaussianProcessClassifier(KERNEL, likelihood="loglog", inference="laplace", optimizer=None)
        assert_allclose(clf.predict_proba(X), again.fit(X[copies], y[copies]).predict_proba(X), rtol=1e-10)

    def test_in_learning_and_one_class_against_the_rest(self, user):
        clf = fitted(inference="laplace", optimizer="fmin_l_bfgs_b")
        assert clf.log_marginal_likelihood_value_ > fitted(inference="laplace").log_marginal_likelihood_value_
        labels = np.digitize(X[:, 0], [-0.5, 0.5])
        with pytest.raises(ValueError, match="use multi_class='one_vs_rest', or likelihood='softmax'"):
            clone(clf).fit(X, labels)
        clf.set_params(multi_class="one_vs_rest", optimizer=None).fit(X, labels)
        assert clf.predict_proba(X).shape == (16, 3)

    def test_in_model_files(self, user, tmp_path):
        clf = fitted(inference="laplace")
        clf.save(tmp_path / "model.gpc")
        back = gpclass.load(tmp_path / "model.gpc")
        assert_allclose(back.predict_proba(X), clf.predict_proba(X), rtol=1e-12)
        assert type(back.likelihood_) is user.LogLog


class TestMethod:
    def test_it_is_not_replaced_by_vi_in_passes(self, user):
        clf = GaussianProcessClassifier(KERNEL, inference="halfpower", optimizer=None)
        with pytest.raises(ValueError, match="Passes over rows that are not in memory need inference='vi'"):
            clf.fit(BlockSource([(X, y)]))

    def test_by_name_and_as_an_object(self, user):
        assert parts("inference")["halfpower"] is user.HalfPower
        check_inference(user.HalfPower(), parts("likelihood")["probit"](), KERNEL, X[:8], y[:8], rtol=1e-4)
        named = fitted(inference="halfpower", likelihood="probit")
        given = fitted(inference=user.HalfPower(), likelihood="probit")
        assert named.log_marginal_likelihood_value_ == given.log_marginal_likelihood_value_
        vi, ep = (fitted(inference=name, likelihood="probit") for name in ("vi", "ep"))
        low, high = (clf.log_marginal_likelihood_value_ for clf in (vi, ep))
        assert low < named.log_marginal_likelihood_value_ < high

    def test_in_learning(self, user):
        clf = fitted(inference="halfpower", likelihood="probit", optimizer="fmin_l_bfgs_b")
        gradient = clf.log_marginal_likelihood(clf.kernel_.theta, eval_gradient=True)[1]
        assert np.abs(gradient).max() < 1e-2

    def test_in_model_files(self, user, tmp_path):
        clf = fitted(inference="halfpower", likelihood="probit")
        clf.save(tmp_path / "model.gpc")
        assert_allclose(
            gpclass.load(tmp_path / "model.gpc").predict_proba(X), clf.predict_proba(X), rtol=1e-12
        )


class TestKernel:
    def test_it_conforms(self, user):
        testing.check_kernel(2.0 * user.Agnesi(0.8), X[:6], X[6:10])

    def test_in_the_classifier(self, user, tmp_path):
        clf = fitted(kernel=2.0 * user.Agnesi(0.8), inference="laplace", likelihood="logit")
        clf.save(tmp_path / "model.gpc")
        assert_allclose(
            gpclass.load(tmp_path / "model.gpc").predict_proba(X), clf.predict_proba(X), rtol=1e-12
        )
