"""The classifier by Monte Carlo: its predictions against weighted draws of the prior, and all its methods."""

from __future__ import annotations

import pickle
import sys
import warnings
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import expit, ndtr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import GenericKernelMixin, Kernel, StationaryKernelMixin

import gpclass.estimator
from gpclass import GaussianProcessClassifier
from gpclass.inference import EP, Laplace
from gpclass.kernels import RBF, ConstantKernel, WhiteKernel
from gpclass.mcmc import HMC, MCMC, BlockMetropolis, EllipticalSlice, PseudoMarginal
from gpclass.posteriors.mixture import Component, MixtureProcess
from gpclass.sampling import Rejection

X = np.array([[-2.0], [-1.2], [-0.5], [0.4], [1.1], [2.2]])
LABELS = np.array(["no", "no", "yes", "no", "yes", "yes"])
Y = np.where(LABELS == "yes", 1.0, -1.0)
X_TEST = np.array([[-2.5], [-1.0], [0.0], [1.5], [4.0]])
KERNEL = ConstantKernel(4.0) * RBF(1.0)
FEW = MCMC(n_draws=600, n_warmup=100)


def classifier(kernel=KERNEL, likelihood="logit", **options):
    return GaussianProcessClassifier(kernel, likelihood=likelihood, **options)


FIXED = {
    "HMC": MCMC(HMC(), n_draws=1000, n_warmup=150),
    "slices": MCMC(EllipticalSlice(), n_draws=1000, n_warmup=100),
    "slices of the prior": MCMC(EllipticalSlice(whiten=None), n_draws=1000, n_warmup=100, thin=4),
    "blocks": MCMC(BlockMetropolis(), n_draws=1000, n_warmup=300, thin=6),
    "rejection": Rejection(4000),
}


@cache
def fixed(name, likelihood="logit", **options):
    inference = FIXED[name]
    clf = classifier(likelihood=likelihood, inference=inference, optimizer=None, random_state=0, **options)
    return clf.fit(X, LABELS)


SAMPLED = {
    "short": MCMC(n_draws=20, n_warmup=20),
    "mcmc": MCMC(n_draws=300, n_warmup=100),
    "noisy": MCMC(n_draws=300, n_warmup=100, hyper_sampler=PseudoMarginal(4)),
}


@cache
def sampled(name):
    clf = classifier(inference=SAMPLED[name], hyperparameters="sample", optimizer=None, random_state=1)
    with warnings.catch_warnings():  # short chains are complained of
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clf.fit(X, LABELS)


def covariance(theta, Z):
    """Return the kernel at each row of theta, by its formula."""
    scale, length = np.exp(theta).T[:, :, None, None]
    return scale * np.exp(-0.5 * (Z - Z.T) ** 2 / length**2)


@cache
def weighted_prior(spread, link="logit", n=200_000):
    """Return draws of f from the prior at the data and test inputs, and p(y|f): a posterior, unsampled.

    With a spread, theta is drawn as well.
    """
    rng, Z = np.random.default_rng(0), np.vstack([X, X_TEST])
    if not spread:
        K = covariance(np.log([[4.0, 1.0]]), Z)[0]
        f = rng.standard_normal((n, len(Z))) @ np.linalg.cholesky(K + 1e-10 * np.eye(len(Z))).T
    else:
        theta = np.log([4.0, 1.0]) + spread * rng.standard_normal((n // 2, 2))
        K = covariance(theta, Z) + 1e-9 * np.exp(theta[:, :1, None]) * np.eye(len(Z))
        f = np.einsum("nij,nj->ni", np.linalg.cholesky(K), rng.standard_normal((n // 2, len(Z))))
    w = (expit if link == "logit" else ndtr)(Y * f[:, :6]).prod(axis=1)
    return f, w / w.sum()


def check_against_prior(clf, f, w, squash, tolerance):
    """Compare everything predicted at test inputs with weighted draws."""
    rest = f[:, 6:]
    assert_allclose(clf.predict_proba(X_TEST)[:, 1], w @ squash(rest), atol=tolerance)
    mean, cov = clf.predict_latent(X_TEST, return_cov=True)
    spread = np.sqrt(w @ (rest - w @ rest) ** 2)
    assert_allclose(mean, w @ rest, atol=4.0 * tolerance * spread.max())
    away = rest - w @ rest
    truth = (w[:, None] * away).T @ away
    assert_allclose(cov, truth, atol=16.0 * tolerance * truth.max())
    low, high = clf.predict_interval(X_TEST, level=0.8)
    order = np.argsort(rest, axis=0)
    for i in range(len(X_TEST)):
        cumulated = np.cumsum(w[order[:, i]])
        quantiles = rest[order[np.searchsorted(cumulated, [0.1, 0.9]), i], i]
        assert_allclose([low[i], high[i]], squash(quantiles), atol=3.0 * tolerance)


# --------------------------------------------------------------------------------- truth


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.slow
def test_predictions_are_those_of_the_weighted_prior(name):
    check_against_prior(fixed(name), *weighted_prior(0.0), expit, 0.02)


@pytest.mark.parametrize("name", ["HMC", "rejection"])
@pytest.mark.slow
def test_predictions_are_those_of_the_weighted_prior_with_a_probit(name):
    check_against_prior(fixed(name, "probit"), *weighted_prior(0.0, "probit"), ndtr, 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mcmc", "noisy"])
def test_predictions_with_theta_sampled_are_those_of_the_weighted_prior(name):
    check_against_prior(sampled(name), *weighted_prior(1.5), expit, 0.04)


@pytest.mark.parametrize("name", ["HMC", "rejection"])
def test_predictions_at_the_data_are_the_draws(name):
    clf = fixed(name)
    draws = clf.base_estimator_.draws
    assert_allclose(clf.predict_proba(X)[:, 1], expit(draws).mean(axis=0), rtol=1e-5)
    mean, std = clf.predict_latent(X, return_std=True)
    assert_allclose(mean, draws.mean(axis=0), atol=1e-8)
    assert_allclose(std, draws.std(axis=0), rtol=1e-5)
    samples = clf.sample_latent(X, 50, random_state=0)
    for f in samples.T:
        assert np.abs(draws - f).max(axis=1).min() < 1e-3


@pytest.mark.slow
def test_samples_have_the_moments_predicted():
    for clf, tolerance in ((fixed("HMC"), 0.04), (sampled("mcmc"), 0.1)):
        mean, cov = clf.predict_latent(X_TEST, return_cov=True)
        samples = clf.sample_latent(X_TEST, 20_000, random_state=0)
        assert samples.shape == (5, 20_000)
        assert_allclose(samples.mean(axis=1), mean, atol=0.02 * np.sqrt(cov.max()))
        assert_allclose(np.cov(samples), cov, atol=tolerance * cov.max())
        assert_array_equal(samples, clf.sample_latent(X_TEST, 20_000, random_state=0))


# --------------------------------------------------------------------------- the estimator


def skewed_classifier():
    """Return a classifier whose mean of f is negative where the mean probability is above one half."""
    clf = classifier(
        inference=Rejection(2), optimizer=None, random_state=0
    ).fit(X, LABELS)  # fmt: skip
    model = clf.base_estimator_
    f = np.array([np.full(6, 0.8), np.full(6, -6.0)])
    components = [Component(KERNEL, f, np.array([0.75, 0.25]))]
    changed = {name: getattr(model, name) for name in type(model).__slots__}
    changed["posterior"] = MixtureProcess(X, tuple(components))
    clf.base_estimator_ = type(model)(**changed)
    return clf


def test_predict_is_the_decision_on_predict_proba():
    clf = skewed_classifier()
    assert (clf.predict_latent(X) < 0.0).all()
    assert (clf.predict_proba(X)[:, 1] > 0.5).all()
    assert (clf.predict(X) == "yes").all()
    for clf in (fixed("HMC"), sampled("short")):
        P = clf.predict_proba(X_TEST)
        assert_allclose(P.sum(axis=1), 1.0)
        assert_array_equal(clf.predict(X_TEST), clf.classes_[P.argmax(axis=1)])
        assert_allclose(np.log(P), clf.predict_log_proba(X_TEST))


@pytest.mark.parametrize("route", ["monte_carlo", "map", "mackay"])
def test_other_integrals(route, monkeypatch):
    for clf in (fixed("HMC"), sampled("short")):
        exact = clf.predict_proba(X_TEST)
        other = pickle.loads(pickle.dumps(clf)).set_params(integration=route)
        P = other.predict_proba(X_TEST)
        assert_allclose(P, exact, atol={"monte_carlo": 0.03, "mackay": 0.01, "map": 0.2}[route])
        one_by_one = np.vstack([other.predict_proba(x[None]) for x in X_TEST])
        assert_allclose(P, one_by_one, rtol=1e-9)  # a row's answer does not depend on its company
        if route == "map":
            assert_allclose(P[:, 1], expit(clf.predict_latent(X_TEST)), rtol=1e-9)


def left_out(i, **options):
    """Return the probability of the second class at a data point from a fit without it."""
    rows = np.arange(6) != i
    clf = classifier(inference=Rejection(10_000), optimizer=None, random_state=i)
    weight = options.get("sample_weight")
    return clf.fit(X[rows], LABELS[rows], None if weight is None else weight[rows]).predict_proba(X[[i]])[
        0, 1
    ]


def test_leave_one_out():
    truth = np.array([left_out(i) for i in range(6)])
    for name in ("HMC", "rejection"):
        assert_allclose(fixed(name).loo_proba_[:, 1], truth, atol=0.035)
        clf = fixed(name)
        own = clf.loo_proba_[np.arange(6), (LABELS == "yes").astype(int)]
        assert clf.loo_log_score_ == pytest.approx(np.log(own).mean())


@pytest.mark.slow
def test_leave_one_out_of_weights():
    weight = np.array([0.3, 1.0, 3.0, 1.0, 0.5, 1.0])
    clf = classifier(inference=MCMC(n_draws=2000, n_warmup=150), optimizer=None,
                                    random_state=0).fit(X, LABELS, weight)  # fmt: skip
    for i in (0, 4):  # less than a copy: all of it goes
        assert clf.loo_proba_[i, 1] == pytest.approx(left_out(i, sample_weight=weight), abs=0.035)
    fewer = weight - (np.arange(6) == 2)  # of three copies one goes
    other = classifier(inference=Rejection(10_000), optimizer=None, random_state=0)
    truth = other.fit(X, LABELS, fewer).predict_proba(X[[2]])[0, 1]
    assert clf.loo_proba_[2, 1] == pytest.approx(truth, abs=0.035)


def test_check_of_draws_at_fixed_theta():
    for name, words in (("HMC", "The chains agree"), ("rejection", "The draws are exact")):
        check = fixed(name).check_approximation(random_state=0)
        assert check.corrected is None
        assert check.reliable
        assert check.largest_shift < 0.05
        assert check.verdict.startswith(words)
    assert fixed("rejection").log_marginal_likelihood_value_ == pytest.approx(exact_logit(), abs=0.1)


@cache
def exact_logit():
    """Return the log evidence by the mean likelihood over draws of the prior."""
    rng = np.random.default_rng(1)
    K = covariance(np.log([[4.0, 1.0]]), X)[0]
    f = rng.standard_normal((500_000, 6)) @ np.linalg.cholesky(K).T
    return float(np.log(expit(Y * f).prod(axis=1).mean()))


@pytest.mark.slow
def test_check_of_chains_with_theta_sampled():
    check = sampled("mcmc").check_approximation(random_state=0)
    assert check.method == "MCMC"
    assert check.evidence is None
    assert check.corrected is None
    assert check.n_samples == 1200
    assert 0.0 < check.largest_shift < 0.2
    assert check.largest_shift < 5.0 * check.shift_error
    assert "chains" in check.verdict


def test_attributes():
    clf = fixed("HMC")
    assert clf.chains_.f.shape == (4, 1000, 6)
    assert clf.log_marginal_likelihood_value_ is None
    assert clf.log_marginal_likelihood() is None
    with pytest.raises(ValueError, match="no evidence at other"):
        clf.log_marginal_likelihood(clf.kernel_.theta)
    assert_array_equal(clf.kernel_.theta, KERNEL.theta)
    assert isinstance(clf.posterior_, MixtureProcess)
    assert clf.history_ is None
    assert not hasattr(fixed("rejection"), "chains_")
    with pytest.raises(AttributeError, match="inference='mcmc'"):
        _ = fixed("rejection").chains_
    plain = classifier(optimizer=None).fit(X, LABELS)
    assert not hasattr(plain, "chains_")
    both = sampled("short")
    assert both.chains_.theta.shape == (4, 20, 2)
    assert_allclose(both.kernel_.theta, both.chains_.theta.mean(axis=(0, 1)))
    assert both.log_marginal_likelihood_value_ is None
    assert 1 < len(both.posterior_.components) <= 200
    assert sum(c.weight.sum() for c in both.posterior_.components) == pytest.approx(1.0)


def test_hyperparameters_are_learned_first():
    labels = LABELS[[0, 1, 1, 4, 4, 4]]
    hyperprior = {"constant_value": stats.gamma(5.0), "length_scale": stats.gamma(5.0)}
    for inference in (FEW, Rejection(500)):
        clf = classifier(inference=inference, hyperprior=hyperprior, random_state=0).fit(X, labels)
        by_ep = classifier(inference="ep", hyperprior=hyperprior).fit(X, labels)
        assert_allclose(clf.kernel_.theta, by_ep.kernel_.theta, atol=1e-3)
        assert len(clf.history_) > 1


def test_names_stand_for_settings():
    clf = classifier(inference="mcmc", optimizer=None, random_state=0).fit(X, LABELS)
    assert clf.chains_.f.shape == (4, 1000, 6)
    clf = classifier(inference="rejection", optimizer=None, random_state=0).fit(X, LABELS)
    assert clf.base_estimator_.draws.shape == (4000, 6)


@pytest.mark.parametrize("inference", [Laplace(), EP()])
@pytest.mark.slow
def test_an_approximation_finds_the_start_of_the_chains(inference, monkeypatch):
    import gpclass.learning.draws

    monkeypatch.setattr(gpclass.learning.draws, "MCMC", Few)
    clf = classifier(inference=inference, hyperparameters="sample", random_state=0)
    with pytest.warns(ConvergenceWarning, match="have not mixed"):
        clf.fit(X, LABELS)
    assert clf.chains_.sampler == PseudoMarginal()
    assert clf.chains_.theta.shape == (4, 20, 2)
    assert clf.predict_proba(X_TEST).shape == (5, 2)
    assert len(clf.history_) > 1


class Few(MCMC):
    """Settings for very short chains."""

    def __init__(self, **options):
        super().__init__(**({"n_draws": 20, "n_warmup": 10} | options))


def test_nothing_to_sample_is_an_ordinary_fit():
    kernel = ConstantKernel(4.0, "fixed") * RBF(1.0, "fixed")
    clf = classifier(kernel, hyperparameters="sample").fit(X, LABELS)
    assert_array_equal(clf.predict_proba(X), classifier(kernel).fit(X, LABELS).predict_proba(X))
    clf = classifier(kernel, inference=FEW, hyperparameters="sample", random_state=0).fit(X, LABELS)
    assert clf.chains_.theta is None


def test_weights_are_copies():
    weight = np.array([1.0, 2.0, 1.0, 0.0, 3.0, 1.0])
    rows = np.repeat(np.arange(6), weight.astype(int))
    make = classifier(inference=Rejection(8000), optimizer=None, random_state=0)
    a = make.fit(X, LABELS, weight).predict_proba(X_TEST)
    b = clone(make).set_params(inference=MCMC(n_draws=2000, n_warmup=100)).fit(X[rows], LABELS[rows])
    assert_allclose(a, b.predict_proba(X_TEST), atol=0.025)


@pytest.mark.parametrize("labels", [np.array([7, 3]), np.array([True, False]), np.array(["b", "a"], object)])
def test_labels_of_any_kind(labels):
    y = labels[(LABELS == "yes").astype(int)]
    clf = classifier(inference=Rejection(200), optimizer=None, random_state=0).fit(X, y)
    assert_array_equal(clf.classes_, np.unique(labels))
    assert set(clf.predict(X_TEST)) <= set(labels.tolist())


@pytest.mark.parametrize("how", ["one_vs_rest", "one_vs_one"])
@pytest.mark.parametrize("inference", [Rejection(2000), FEW])
def test_three_classes(how, inference):
    y = np.array([0, 0, 1, 1, 2, 2])
    clf = classifier(inference=inference, optimizer=None, multi_class=how, random_state=0).fit(X, y)
    P = clf.predict_proba(X_TEST)
    assert P.shape == (5, 3)
    assert_allclose(P.sum(axis=1), 1.0)
    assert_array_equal(clf.predict(X), y)
    by_ep = clone(clf).set_params(inference="ep").fit(X, y).predict_proba(X_TEST)
    assert_allclose(P, by_ep, atol=0.06)
    if how == "one_vs_one":
        return
    low, high = clf.predict_interval(X_TEST)
    assert low.shape == high.shape == (5, 3)
    assert (low < high).all()
    apart = [clf.predict_interval(x[None])[0][0] for x in X_TEST]
    assert_allclose(low, apart, atol=1e-9)
    assert clf.sample_latent(X_TEST, 3).shape == (5, 3, 3)
    assert clf.loo_proba_.shape == (6, 3)
    assert len(clf.check_approximation(500)) == 3


@pytest.mark.slow
def test_classes_have_hyperparameters_and_priors_of_their_own():
    y = np.array([0, 0, 1, 1, 2, 2])
    settings = MCMC(n_draws=10, n_warmup=5, n_chains=2)
    make = classifier(
        inference=settings,
        hyperparameters="sample",
        optimizer=None,
        random_state=0,
        multi_class="one_vs_rest",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one, two = make.fit(X, y), clone(make).set_params(n_jobs=2).fit(X, y)
    assert len(one.chains_) == 3
    for a, b in zip(one.chains_, two.chains_, strict=True):
        assert_array_equal(a.theta, b.theta)
    assert one.kernel_.n_dims == 6


class Letters(GenericKernelMixin, StationaryKernelMixin, Kernel):
    """The share of equal letters of two words."""

    def __init__(self):
        pass

    def __call__(self, X, Y=None, eval_gradient=False):
        words = X if Y is None else Y
        K = np.array([[np.mean([a == b for a, b in zip(x, y, strict=True)]) for y in words] for x in X])
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X):
        return np.ones(len(X))


def test_words_as_inputs():
    words, y = ["aaaa", "aaab", "abab", "bbbb", "bbba", "baba"], [0, 0, 0, 1, 1, 1]
    kernel = ConstantKernel(9.0) * Letters()
    for inference, how in ((FEW, "learn"), (Rejection(500), "learn"), (Few(), "sample")):
        clf = classifier(kernel, inference=inference, optimizer=None, hyperparameters=how, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            clf.fit(words, y)
        assert_array_equal(clf.predict(["aaaa", "bbbb"]), [0, 1])
        assert clf.predict_latent(words, return_cov=True)[1].shape == (6, 6)


def test_noise_of_the_latent_function():
    kernel = KERNEL + WhiteKernel(0.5)
    by_ep = classifier(kernel, inference="ep", optimizer=None).fit(X, LABELS)
    clf = classifier(kernel, inference=MCMC(n_draws=2000, n_warmup=100), optimizer=None, random_state=0).fit(
        X, LABELS
    )
    Z = np.vstack([X_TEST, X])
    assert_allclose(clf.predict_proba(Z), by_ep.predict_proba(Z), atol=0.02)
    for ours, theirs in zip(clf.predict_latent(Z, True), by_ep.predict_latent(Z, True), strict=True):
        assert_allclose(ours, theirs, atol=0.15)


def test_copies_of_a_fitted_classifier():
    for clf in (fixed("HMC"), sampled("short")):
        again = pickle.loads(pickle.dumps(clf))
        assert_array_equal(again.predict_proba(X_TEST), clf.predict_proba(X_TEST))
        assert_array_equal(again.chains_.f, clf.chains_.f)
        fresh = clone(clf)
        assert fresh.get_params() == clf.get_params()
        assert not hasattr(fresh, "chains_")
    again = clone(fixed("HMC")).fit(X, LABELS)
    assert_array_equal(again.predict_proba(X_TEST), fixed("HMC").predict_proba(X_TEST))


def test_warm_start_goes_from_any_method_to_any_other():
    clf = classifier(optimizer=None, warm_start=True, random_state=0).fit(X, LABELS)
    for inference in (FEW, Rejection(100), "laplace", FEW):
        P = clf.set_params(inference=inference).fit(X, LABELS).predict_proba(X_TEST)
        assert P.shape == (5, 2)


# ----------------------------------------------------------------------------- what goes wrong


def interrupting(monkeypatch, when):
    """Make the progress report interrupt the fit when it says so."""

    @contextmanager
    def reporter(verbose, task):
        def report(what):
            if str(what).startswith(when):
                raise KeyboardInterrupt

        yield report

    monkeypatch.setattr(gpclass.estimator, "reporter", reporter)


@pytest.mark.parametrize("how", ["learn", pytest.param("sample", marks=pytest.mark.slow)])
def test_interruption_keeps_the_draws(how, monkeypatch):
    interrupting(monkeypatch, "draw 50 of")
    clf = classifier(inference=FEW, hyperparameters=how, optimizer=None, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(X, LABELS)
    assert any("interrupted: the first 50 draws" in str(w.message) for w in caught)
    assert clf.chains_.interrupted
    assert clf.chains_.n_draws == 50
    assert clf.predict_proba(X_TEST).shape == (5, 2)
    assert sum(map(len, clf.posterior_.weights)) >= 100
    interrupting(monkeypatch, "warming up")
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, LABELS)
    assert clf.chains_.n_draws == 50  # a fit that fails leaves the last one as it was


def test_short_chains_are_complained_of_with_numbers():
    clf = classifier(inference=MCMC(n_draws=20, n_warmup=10), optimizer=None, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"largest R-hat is \d\.\d+ .* effective sample size is \d+"):
        clf.fit(X, LABELS)
    assert "have not mixed" in clf.chains_.complaint()


@pytest.mark.parametrize("how", ["learn", "sample"])
def test_missing_arviz_is_said_before_the_work(how, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "arviz_stats"] + ["arviz_stats"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "arviz_stats.base", None)
    clf = classifier(inference="mcmc", hyperparameters=how, optimizer=None)
    with pytest.raises(ImportError, match="needs arviz-stats: pip install arviz-stats"):
        clf.fit(X, LABELS)
    classifier(inference=Rejection(100), optimizer=None).fit(X, LABELS)


def test_rejection_of_many_data_is_refused():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 2))
    clf = classifier(inference="rejection", optimizer=None, random_state=0)
    with pytest.raises(ValueError, match=r"draws by rejection need at least .* proposals"):
        clf.fit(Z, rng.integers(0, 2, 200))


def test_combinations_that_make_no_sense_are_refused():
    clf = classifier(inference="rejection", hyperparameters="sample")
    with pytest.raises(ValueError, match="not rejection"):
        clf.fit(X, LABELS)
    with pytest.raises(ValueError, match="'learn', 'sample'"):
        classifier(hyperparameters="guess").fit(X, LABELS)
    with pytest.raises(ValueError, match="n_draws"):
        MCMC(n_draws=0)
    with pytest.raises(ValueError, match="is not valid"):
        Rejection(0)


def test_hyperprior_narrows_what_is_sampled():
    clf = classifier(
        inference=Few(), hyperparameters="sample", random_state=0,
        hyperprior={"length_scale": stats.uniform(0.5, 1.0), "constant_value": stats.gamma(4.0)},
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(X, LABELS)
    lengths = np.exp(clf.chains_.theta[..., 1])
    assert ((lengths > 0.5) & (lengths < 1.5)).all()
