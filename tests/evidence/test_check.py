"""Checks of an approximation against exact probabilities and evidences."""

from __future__ import annotations

import numpy as np
import pytest
from exact import exact_evidence, quadrature
from problems import exact_probit_evidence, two_moons_like

from gpclass import GaussianProcessClassifier
from gpclass.evidence import check_approximation
from gpclass.evidence.check import judge
from gpclass.inference import EP, VI, Laplace
from gpclass.kernels import RBF, WhiteKernel, matrix
from gpclass.likelihoods import Logit, Probit
from gpclass.posteriors.target import make_target
from gpclass.priors import DensePrior
from gpclass.sampling import ImportanceEstimate
from gpclass.sampling.weigh import khat_limit

LIKELIHOODS = [Logit(), Probit()]


def exact_probabilities(likelihood, K, y):
    """Return E[p(y=+1|f_i) | y] for each datum: a ratio of evidences, with one more label +1 at its input."""
    n, out = len(y), []
    for i in range(n):
        index = np.r_[:n, i]
        more = quadrature(likelihood, K[np.ix_(index, index)], np.r_[y, 1.0], np.ones(n + 1))
        out.append(np.exp(more - quadrature(likelihood, K, y, np.ones(n))))
    return np.array(out)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_the_shift_is_that_to_the_exact_probabilities(likelihood):
    X, y = np.array([[0.0], [0.6], [1.5]]), np.array([1.0, 1.0, -1.0])
    kernel = 60.0 * RBF(1.0)
    K = matrix(kernel, X)
    result = Laplace()(DensePrior(kernel, X), likelihood, y)
    var = np.array([result.conditioned.var])[0]
    approximate = np.exp(likelihood.log_predict(result.conditioned.mean, var))[:, 1]
    shift = np.abs(exact_probabilities(likelihood, K, y) - approximate)
    target = make_target(likelihood, K, y, result.sites)
    check = check_approximation(target, evidence=result.evidence, method="Laplace", n_samples=40_000, rng=0)
    assert abs(check.largest_shift - shift.max()) < 4.0 * check.shift_error
    assert abs(check.mean_shift - shift.mean()) < 4.0 * check.shift_error
    assert check.shift_error < 0.01
    assert "Laplace is inaccurate for this kernel" in check.verdict


def check_of(kernel, X, y, method, likelihood=None, weight=None, **options):
    """Return the check of a method at a kernel."""
    likelihood = Probit() if likelihood is None else likelihood
    result = method(DensePrior(kernel, X), likelihood, y, weight=weight)
    options = {"evidence": result.evidence, "method": type(method).__name__, "rng": 0} | options
    target = make_target(likelihood, matrix(kernel, X), y, result.sites, weight)
    return check_approximation(target, **options)


def test_a_model_with_noise_and_weights_is_checked():
    X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, -1.0, -1.0])
    kernel, weight = 6.0 * RBF(1.0) + WhiteKernel(2.0), np.array([2.0, 1.0, 3.0])
    check = check_of(kernel, X, y, EP(), weight=weight, n_samples=4000)
    exact = exact_evidence(Probit(), kernel(X), y, weight)
    assert abs(check.corrected - exact) < 4.0 * check.standard_error
    assert check.method == "EP"
    assert check.n_samples == 4000
    assert "EP is accurate for this kernel" in check.verdict


def test_verdicts_and_the_table():
    X, y = two_moons_like(200, seed=3)
    lost = check_of(30.0 * RBF(0.4), X, y, Laplace())
    assert lost.khat is None or lost.khat > 0.7
    assert "The correction itself is unreliable" in lost.verdict
    fine = check_of(1.0 * RBF(1.0), X, y, VI(), Logit())
    assert "VI is accurate for this kernel" in fine.verdict
    lines = str(fine).splitlines()
    assert len(lines) == 7
    assert lines[0].startswith("log evidence, VI")
    assert len({line[:27].rstrip() for line in lines[:6]}) == 6
    few = check_of(1.0 * RBF(1.0), X, y, VI(), Logit(), n_samples=60)
    assert "raise n_samples to " in few.verdict or "unreliable" in few.verdict
    low = check_of(1.0 * RBF(1.0), X, y, VI(), Logit(), evidence=fine.evidence - 2.0)
    assert "too low by 2" in low.verdict


NO_BETTER = "The model is no better than predicting the class frequencies"


def test_a_model_that_is_worse_than_none_is_not_praised():
    # Neighbours with different labels: a smooth function is less probable than coins.
    X, y = np.linspace(0.0, 1.0, 6)[:, None], np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    bad, good = 4.0 * RBF(1.0), 4.0 * RBF(1e-3)
    assert exact_probit_evidence(bad(X), y) < 6 * np.log(0.5) - 0.5
    worse = check_of(bad, X, y, EP(), n_samples=4000)
    assert worse.verdict.startswith(NO_BETTER)
    assert f"is not above {6 * np.log(0.5):.4g}" in worse.verdict
    assert "EP is accurate for this kernel" in worse.verdict
    sorted_labels = np.sort(y)
    assert exact_probit_evidence(bad(X), sorted_labels) > 6 * np.log(0.5)
    better = check_of(bad, X, sorted_labels, EP(), n_samples=4000)
    assert better.verdict.startswith("EP is accurate for this kernel")
    # An independent function for each row is coins by another name: to the last digit no better and no worse.
    coins = check_of(good, X, y, EP(), n_samples=4000)
    assert coins.corrected == pytest.approx(6 * np.log(0.5), abs=5.0 * coins.standard_error + 1e-9)


def test_the_evidence_that_is_compared_is_the_corrected_one():
    X, y = np.array([[0.0], [0.5], [3.0], [3.5]]), np.array([1.0, 1.0, -1.0, -1.0])
    far_off = check_of(4.0 * RBF(1.0), X, y, EP(), evidence=-100.0, n_samples=4000)
    assert NO_BETTER not in far_off.verdict
    verdict = check_of(30.0 * RBF(0.4), *two_moons_like(200, seed=3), Laplace(), evidence=-1000.0).verdict
    assert verdict.startswith(NO_BETTER)
    assert "-1000" in verdict
    assert "The correction itself is unreliable" in verdict


@pytest.mark.parametrize("options", [
    {},
    {"inference": "laplace"},
    {"classes": 3, "likelihood": "softmax", "inference": "laplace"},
    {"classes": 3, "inference": "ep"},
    {"classes": 3, "multi_class": "one_vs_rest"},
], ids=str)  # fmt: skip
@pytest.mark.slow
def test_verdicts_of_the_classifier_on_noise(options):
    options = dict(options)
    n_classes = options.pop("classes", 2)
    n = 40
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(n, 1)), np.arange(n) % n_classes
    X = np.sort(X, axis=0)  # the labels of neighbours differ
    clf = GaussianProcessClassifier(4.0 * RBF(1.0), optimizer=None, **options).fit(X, labels)
    checks = clf.check_approximation(random_state=0)
    for check in checks if isinstance(checks, list) else [checks]:
        assert NO_BETTER in check.verdict
    clf.fit(X, np.repeat(np.arange(n_classes), n)[::n_classes][:n])
    checks = clf.check_approximation(random_state=0)
    for check in checks if isinstance(checks, list) else [checks]:
        assert NO_BETTER not in check.verdict


@pytest.mark.parametrize(
    ("khat", "n_samples", "limit"), [("0.670", 1000, "0.667"), ("0.67", 400, "0.62"), ("0.80", 10**6, "0.70")]
)
def test_the_verdict_states_the_limit_of_khat_for_the_number_of_draws(khat, n_samples, limit):
    found = ImportanceEstimate(-1.0, 0.1, float(khat), 50.0, n_samples)
    verdict = judge("EP", -1.0, found, 0.0, 0.0)
    assert f"khat = {khat} is not below {limit}, the limit for {n_samples} draws" in verdict
    assert float(khat) >= khat_limit(n_samples)
    assert not found.reliable


@pytest.mark.parametrize("method", ["Laplace", "EP", "VI"])
@pytest.mark.parametrize("khat", [0.1, 2.0])
def test_a_verdict_never_recommends_the_method_that_it_rejects(method, khat):
    found = ImportanceEstimate(-1.0, 0.1, khat, 900.0, 1000)
    said = judge(method, -1.0, found, 0.4, 0.001)
    quick = " or ".join(name for name in ("VI", "EP") if name != method)
    assert f"use {quick}, or MCMC" in said
