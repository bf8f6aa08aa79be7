"""The classifier with inference="dirichlet": what it learns, predicts and refuses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import three_classes, two_moons_like
from regressions import Regressions
from scipy.special import expit, log_softmax, softmax
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from gpclass import DoubtfulFitWarning, GaussianProcessClassifier, compare, load
from gpclass.inference import Dirichlet
from gpclass.inference.dirichlet import DEFAULT
from gpclass.kernels import RBF, CompoundKernel
from gpclass.learning.problem import EPSILONS, Problem, SiteObjective, choose_eps
from gpclass.likelihoods import Softmax
from gpclass.testing import central_difference

KERNEL = 4.0 * RBF(1.0)
X, CODES = three_classes(40)
Z = three_classes(7, seed=4)[0]


def fitted(y=CODES, X=X, kernel=KERNEL, eps=0.01, **options):
    options = {"optimizer": None, "random_state": 0} | options
    weight = options.pop("sample_weight", None)
    return GaussianProcessClassifier(kernel, inference=Dirichlet(eps), **options).fit(
        X, y, sample_weight=weight
    )


def truth(y=CODES, X=X, kernel=KERNEL, eps=0.01):
    return Regressions(X, np.eye(y.max() + 1)[y], eps, kernel)


def test_two_classes_are_predicted_by_the_difference_of_two_regressions():
    y = np.where(CODES == 1, 1, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the default likelihood means softmax here
        clf = fitted(np.array(["no", "yes"])[y])
    assert clf.likelihood_.name == "softmax"
    assert_allclose(clf.predict_proba(Z)[:, 1], truth(y).second_class(Z), rtol=1e-8)
    left_out = [truth(y).second_class(X[i : i + 1], np.arange(40) != i)[0] for i in range(40)]
    assert_allclose(clf.loo_proba_[:, 1], left_out, rtol=1e-7)
    mean, variance = truth(y).predict(Z)
    d, std = mean[:, 1] - mean[:, 0], np.sqrt(variance.sum(axis=1))
    with pytest.warns(DoubtfulFitWarning, match="too narrow"):
        low, high = clf.predict_interval(Z, level=0.9)
    for bound, tail in ((low, 0.05), (high, 0.95)):
        assert_allclose(bound, expit(d + norm.ppf(tail) * std), rtol=1e-7)
    assert_allclose(clf.latent_mean_and_variance(Z), (d, std**2), rtol=1e-7)


def test_three_classes_are_predicted_by_the_mean_of_softmax():
    clf = fitted()
    mean, variance = truth().predict(Z)
    z = np.random.default_rng(0).normal(size=(200_000, 1, 3))
    p = np.exp(log_softmax(mean + np.sqrt(variance) * z, axis=2)).mean(axis=0)
    assert_allclose(clf.predict_proba(Z), p, atol=3e-3)
    got, std = clf.predict_latent(Z, return_std=True)
    assert_allclose(got, mean, rtol=1e-8)
    assert_allclose(std, np.sqrt(variance), rtol=1e-8)
    at_mean = clf.set_params(integration="map").predict_proba(Z)
    assert_allclose(at_mean, np.exp(log_softmax(mean, axis=1)), rtol=1e-8)


def test_draws_have_the_moments_of_the_regressions():
    draws = fitted().sample_latent(Z, 20_000, random_state=0)
    mean, variance = truth().predict(Z)
    assert draws.shape == (7, 3, 20_000)
    assert_allclose(draws.mean(axis=2), mean, atol=5.0 * np.sqrt(variance.max() / 20_000))
    assert_allclose(draws.var(axis=2), variance, rtol=0.06)
    together = np.cov(draws[:, 1])
    assert_allclose(together, fitted().posterior_.covariance(Z)[1][:, 1, :, 1], atol=0.05)


def test_evidence_at_other_hyperparameters():
    clf = fitted()
    assert_allclose(clf.log_marginal_likelihood_value_, truth().evidence(), rtol=1e-10)
    theta = KERNEL.theta + np.array([0.3, -0.2])
    value, gradient = clf.log_marginal_likelihood(theta, eval_gradient=True)
    assert_allclose(value, truth().evidence(theta), rtol=1e-10)
    assert_allclose(gradient, central_difference(truth().evidence, theta), rtol=1e-6)


def test_hyperparameters_maximise_the_evidence():
    clf = fitted(optimizer="fmin_l_bfgs_b")
    theta = clf.kernel_.theta
    best = truth().evidence(theta)
    for step in 0.05 * np.concatenate([np.eye(2), -np.eye(2)]):
        assert truth().evidence(theta + step) < best
    assert_allclose(clf.history_.evidence.max(), best, rtol=1e-9)


@pytest.mark.parametrize("y", [X[:, 0] > 0.3, CODES == 1, two_moons_like(40, seed=9)[1] > 0])
@pytest.mark.slow
def test_eps_is_the_best_by_leaving_rows_out(y):
    y = y.astype(int)

    def score(eps):
        model = truth(y, eps=eps)
        p = [model.second_class(X[i : i + 1], np.arange(40) != i)[0] for i in range(40)]
        return np.log(np.where(y == 1, p, 1.0 - np.array(p))).mean()

    scores = [score(eps) for eps in EPSILONS]
    chosen = choose_eps(Problem(X, np.eye(2)[y], None, KERNEL, Softmax(), Dirichlet()))
    assert scores[EPSILONS.index(chosen)] > max(scores) - 1e-3
    clf = fitted(y, eps=None)
    assert clf.base_estimator_.problem.inference == Dirichlet(chosen)


def test_some_rows_are_enough_to_learn_from():
    few = GaussianProcessClassifier(KERNEL, inference=Dirichlet(rows=25), random_state=0).fit(X, CODES)
    method = few.base_estimator_.problem.inference
    assert method.eps in EPSILONS
    assert method.rows == 25
    # They have hyperparameters of their own, and all rows make the predictions.
    every = GaussianProcessClassifier(KERNEL, inference=Dirichlet(rows=None), random_state=0).fit(X, CODES)
    assert not np.allclose(few.kernel_.theta, every.kernel_.theta)
    exact = truth(kernel=few.kernel_, eps=method.eps)
    assert_allclose(few.log_marginal_likelihood_value_, exact.evidence(), rtol=1e-9)
    assert_allclose(few.predict_latent(Z), exact.predict(Z)[0], rtol=1e-7)


def test_an_interruption_keeps_the_default(monkeypatch):
    calls = []

    def interrupt(self, *args, evaluate=SiteObjective.evaluate, **options):
        calls.append(1)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return evaluate(self, *args, **options)

    monkeypatch.setattr(SiteObjective, "evaluate", interrupt)
    with pytest.warns(ConvergenceWarning, match="Learning was interrupted"):
        clf = fitted(optimizer="fmin_l_bfgs_b", eps=None)
    assert clf.base_estimator_.problem.inference == Dirichlet(DEFAULT)
    assert_allclose(clf.log_marginal_likelihood_value_, truth(kernel=clf.kernel_).evidence(), rtol=1e-9)


def test_weights_are_copies():
    y, counts = CODES[:12], np.arange(12) % 3 + 1
    weighted = fitted(y, X[:12], sample_weight=counts)
    copies = fitted(np.repeat(y, counts), np.repeat(X[:12], counts, axis=0))
    assert weighted.posterior_.root is not None  # one factorisation for all classes
    assert_allclose(weighted.predict_proba(Z), copies.predict_proba(Z), rtol=1e-8)
    assert_allclose(weighted.log_marginal_likelihood_value_, copies.log_marginal_likelihood_value_, rtol=1e-9)


def test_a_kernel_per_class():
    kernels = CompoundKernel([KERNEL, 9.0 * RBF(0.5), 1.0 * RBF(2.0)])
    assert_allclose(fitted(kernel=kernels).predict_latent(Z), truth(kernel=kernels).predict(Z)[0], rtol=1e-8)


def test_a_saved_model_predicts_the_same(tmp_path):
    pytest.importorskip("safetensors")
    clf = fitted(eps=None)
    clf.save(tmp_path / "model.gpc")
    again = load(tmp_path / "model.gpc")
    assert_allclose(again.predict_proba(Z), clf.predict_proba(Z), rtol=1e-12)
    assert again.base_estimator_.problem.inference == clf.base_estimator_.problem.inference
    theta = KERNEL.theta + 0.1
    assert_allclose(again.log_marginal_likelihood(theta), clf.log_marginal_likelihood(theta), rtol=1e-12)


@pytest.mark.parametrize(("n_classes", "route"), [(2, "exact"), (3, "mackay"), (3, "map")])
def test_onnx(n_classes, route):
    runtime = pytest.importorskip("onnxruntime")
    from gpclass.onnx import to_onnx

    clf = fitted(CODES % n_classes, integration=route)
    session = runtime.InferenceSession(to_onnx(clf), providers=["CPUExecutionProvider"])
    assert_allclose(session.run(["probabilities"], {"X": Z})[0], clf.predict_proba(Z), atol=1e-9)


def test_a_comparison_leaves_its_evidence_out():
    result = compare(
        X, CODES, methods=("laplace", "dirichlet"), kernel=KERNEL, learn=False, cv=2, random_state=0
    )
    row = result["dirichlet"]
    assert (row.evidence, row.corrected_evidence, row.note) == (None, None, "")
    assert row.log_loss < np.log(3.0)
    assert result.best("evidence").label == "laplace"


def test_what_has_no_meaning_is_refused():
    with pytest.raises(ValueError, match="regression on targets computed from the labels"):
        fitted().check_approximation()
    with pytest.raises(ValueError, match="rows=1 is not valid"):
        Dirichlet(rows=1)


@pytest.mark.parametrize("inference", [Dirichlet(), "vi"], ids=["dirichlet", "vi"])
def test_only_intervals_that_contain_too_little_are_said_to_be_too_narrow(inference):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (320, 2))
    kernel = 4.0 * RBF(1.0)
    F = np.linalg.cholesky(kernel(X) + 1e-8 * np.eye(320)) @ rng.standard_normal((320, 3))
    p, y = softmax(F, axis=1), (F + rng.gumbel(size=F.shape)).argmax(axis=1)
    options = {"likelihood": "softmax", "optimizer": None, "random_state": 0}
    clf = GaussianProcessClassifier(kernel, inference=inference, **options).fit(X[:200], y[:200])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        low, high = clf.predict_interval(X[200:])
    said = [str(warning.message) for warning in caught if "too narrow" in str(warning.message)]
    contained = ((low <= p[200:]) & (p[200:] <= high)).mean()
    assert (len(said), contained < 0.9) == ((1, True) if inference != "vi" else (0, False))
