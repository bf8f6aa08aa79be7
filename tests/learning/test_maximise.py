"""Learning by the evidence: priors on hyperparameters, restarts, interruption, history, bounds."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import two_moons_like
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from gpclass import GaussianProcessClassifier
from gpclass.core.hyperpriors import Hyperprior
from gpclass.inference import Laplace
from gpclass.kernels import RBF, WhiteKernel
from gpclass.learning.ladder import State, learn
from gpclass.learning.maximise import Learned, Plan, Search, best_of, maximise
from gpclass.learning.problem import Problem, SiteObjective
from gpclass.likelihoods import Logit
from gpclass.testing import central_difference

X, y = two_moons_like(40)
EXACT = 1e-9  # tolerance in nats of searches that are to find the maximum itself


def classifier(*args, **options):
    return GaussianProcessClassifier(*args, **{"inference": "laplace"} | options)


def problem(kernel=None, **options):
    kernel = 2.0 * RBF([1.0, 1.0], (1e-2, 1e3)) if kernel is None else kernel
    return Problem(X, y, None, kernel, Logit(), Laplace(), **options)


def search(task):
    return Search(SiteObjective(task), task.hyperprior)


def end_of(task, n_jobs=None, n_restarts=0, rng=None):
    """Return the best end of learning from the kernel as given and from random points."""
    plan = Plan(n_restarts=n_restarts, n_jobs=n_jobs)
    rng = rng or np.random.default_rng(0)
    return best_of(task, [task.theta], plan, rng, tol=EXACT)


def test_the_end_is_a_maximum():
    task = problem()
    end = maximise(SiteObjective(task), task.theta, task.bounds, tol=EXACT)
    assert end.message == ""
    gradient = search(task)(end.theta)[1]
    inside = (end.theta > task.kernel.bounds[:, 0] + 1e-6) & (end.theta < task.kernel.bounds[:, 1] - 1e-6)
    assert np.abs(gradient[inside]).max() < 1e-3
    rng = np.random.default_rng(0)
    for _ in range(10):
        near = np.clip(end.theta + 0.1 * rng.normal(size=3), *task.kernel.bounds.T)
        assert -search(task)(near, eval_gradient=False) < end.objective


def test_the_history_tells_the_course():
    clf = classifier(2.0 * RBF(1.0)).fit(X, y)
    history = clf.history_
    assert len(history) == len(history.theta) == len(history.gradient_norm) > 3
    assert history.evidence[0] >= clf.log_marginal_likelihood((2.0 * RBF(1.0)).theta) - 1e-7
    assert_allclose(history.evidence.max(), clf.log_marginal_likelihood_value_, atol=1e-7)
    assert_allclose(history.evidence[0], clf.log_marginal_likelihood(history.theta[0]), atol=1e-7)
    assert history.gradient_norm[-1] < history.gradient_norm[0]
    assert classifier(2.0 * RBF(1.0), optimizer=None).fit(X, y).history_ is None


@pytest.mark.parametrize(
    "prior", [stats.lognorm(0.7), stats.gamma(2.0, scale=3.0), stats.invgamma(3.0), stats.halfcauchy()]
)
def test_hyperpriors_enter_value_and_gradient(prior):
    task = problem()
    theta = task.kernel.theta + np.array([0.3, -0.2, 0.1])
    plain, gradient = search(task)(theta)
    hyperprior = Hyperprior.on(task.kernel, {"k2__length_scale": prior})
    withal, withal_gradient = search(problem(hyperprior=hyperprior))(theta)
    scales = np.exp(theta[1:])
    assert_allclose(plain - withal, prior.logpdf(scales).sum(), rtol=1e-12)
    truth = central_difference(lambda t: prior.logpdf(np.exp(t)).sum(), theta[1:], 1e-3)
    assert_allclose((gradient - withal_gradient)[1:], truth, rtol=1e-6)
    assert_allclose(gradient[0], withal_gradient[0])


def test_a_tight_hyperprior_pins_its_hyperparameter():
    tight = {"length_scale": stats.lognorm(0.01, scale=3.0)}
    clf = classifier(2.0 * RBF([1.0, 1.0]), hyperprior=tight).fit(X, y)
    assert_allclose(clf.kernel_.k2.length_scale, 3.0, rtol=0.02)
    # the reported evidence is the evidence alone
    assert_allclose(
        clf.log_marginal_likelihood_value_, clf.log_marginal_likelihood(clf.kernel_.theta), atol=1e-7
    )


def test_restarts_are_drawn_between_the_bounds_and_never_hurt():
    seen = []

    def optimizer(objective, start, bounds):
        seen.append(start)
        return start, objective(start, eval_gradient=False)

    kernel = 1.0 * RBF(1.0, (1e-3, 1e3))
    clf = classifier(kernel, optimizer=optimizer, n_restarts_optimizer=60, random_state=0)
    clf.fit(X, y)
    starts = np.array(seen)
    assert_allclose(starts[0], kernel.theta)
    low, high = kernel.bounds.T
    uniform = (starts[1:] - low) / (high - low)
    assert stats.kstest(uniform[:, 1], "uniform").pvalue > 0.01  # uniform in log space, not exp of it
    values = [clf.log_marginal_likelihood(start) for start in starts[:20]]
    assert clf.log_marginal_likelihood_value_ >= max(values) - 1e-7


@pytest.mark.slow
def test_restarts_in_parallel_give_the_same_answer():
    kernel = 1.0 * RBF([1.0, 1.0], (1e-2, 1e2))
    rngs = [np.random.default_rng(3), np.random.default_rng(3)]
    one = end_of(problem(kernel), n_restarts=2, rng=rngs[0])
    two = end_of(problem(kernel), n_restarts=2, rng=rngs[1], n_jobs=2)
    assert_allclose(one.theta, two.theta, atol=1e-5)
    assert_allclose(one.objective, two.objective, rtol=1e-9)


def test_unbounded_hyperparameters_cannot_restart():
    with pytest.raises(ValueError, match="requires that all bounds are finite"):
        end_of(problem(1.0 * RBF(1.0, (0.1, np.inf))), n_restarts=1)


def test_an_interruption_keeps_the_best_so_far(monkeypatch):
    calls = []
    right = Problem.infer

    def infer(self, prior, init):
        calls.append(None)
        if len(calls) == 7:  # the first one is for the curvature
            raise KeyboardInterrupt
        return right(self, prior, init)

    monkeypatch.setattr(Problem, "infer", infer)
    task = problem()
    start = State(task, Learned(task.theta, -np.inf))
    found, learned = learn(task, Plan(), np.random.default_rng(0), first=start)
    assert learned.interrupted
    assert "interrupted" in learned.message
    assert len(learned.history) == 5
    best = learned.history.evidence.argmax()
    assert_allclose(found.theta, learned.history.theta[best], rtol=1e-12)
    assert_allclose(learned.objective, learned.history.evidence[best], rtol=1e-12)


@pytest.mark.parametrize("calls", [4, 13, 20])
def test_an_interrupted_fit_predicts(calls, monkeypatch):
    seen = []
    right = Problem.infer

    def infer(self, prior, init):
        seen.append(None)
        if len(seen) == calls:
            raise KeyboardInterrupt
        return right(self, prior, init)

    monkeypatch.setattr(Problem, "infer", infer)
    with pytest.warns(ConvergenceWarning, match="Learning was interrupted"):
        clf = classifier(2.0 * RBF([1.0, 1.0]), n_restarts_optimizer=2).fit(X, y)
    assert clf.score(X, y) > 0.7


def test_an_interruption_before_anything_was_reached_goes_through(monkeypatch):
    def infer(self, prior, init):
        raise KeyboardInterrupt

    monkeypatch.setattr(Problem, "infer", infer)
    with pytest.raises(KeyboardInterrupt):
        classifier(2.0 * RBF(1.0)).fit(X, y)


@pytest.mark.parametrize("kernel", [2.0 * RBF([1.0, 1.0]), None])
@pytest.mark.parametrize("calls", [3, 9, 20])
def test_an_interruption_at_the_beginning_keeps_what_was_found(kernel, calls, monkeypatch):
    seen = []
    right = SiteObjective.evaluate

    def evaluate(self, theta, *args, **options):
        if len(seen) == calls:
            raise KeyboardInterrupt
        seen.append(right(self, theta, *args, **options).evidence)
        return right(self, theta, *args, **options)

    monkeypatch.setattr(SiteObjective, "evaluate", evaluate)
    with pytest.warns(ConvergenceWarning, match="Learning was interrupted"):
        clf = classifier(kernel).fit(X, y)
    assert clf.log_marginal_likelihood_value_ >= seen[0] - 1e-6
    assert np.isfinite(clf.predict_proba(X)).all()


def test_an_optimiser_that_gives_up_is_reported(monkeypatch):
    right = SiteObjective.evaluate

    def uphill(self, *args, **options):
        end = right(self, *args, **options)
        return end if end.gradient is None else replace(end, gradient=-end.gradient)

    monkeypatch.setattr(SiteObjective, "evaluate", uphill)
    with pytest.warns(ConvergenceWarning, match=r"Learning stopped after .* gradient of norm"):
        classifier(2.0 * RBF(1.0)).fit(X, y)


def test_fixed_hyperparameters_stay():
    kernel = 2.0 * RBF(1.3, "fixed") + WhiteKernel(0.1, (1e-3, 1e1))
    with pytest.warns(ConvergenceWarning, match="noise_level is close to the specified lower bound"):
        clf = classifier(kernel).fit(X, y)
    assert clf.kernel_.k1.k2.length_scale == 1.3
    assert clf.kernel_.theta.shape == (2,)


BOUNDED = [
    stats.uniform(0.5, 2.0),
    stats.uniform(2.0, 2.0),
    stats.truncnorm(-1.0, 1.0, loc=2.0, scale=0.5),
    stats.beta(2.0, 2.0),
]


@pytest.mark.parametrize("prior", BOUNDED)
def test_a_hyperprior_of_bounded_support_holds_its_hyperparameter_inside(prior):
    low, high = prior.support()
    clf = classifier(2.0 * RBF(1.0), hyperprior={"length_scale": prior}).fit(X, y)
    assert low <= clf.kernel_.k2.length_scale <= high
    assert clf.kernel_.k1.constant_value != 2.0  # it did learn
    # the best of a grid inside the support is no better
    theta = clf.kernel_.theta
    best = clf.log_marginal_likelihood(theta) + prior.logpdf(np.exp(theta[1]))
    for scale in np.linspace(low + 1e-3, high - 1e-3, 7):
        other = clf.log_marginal_likelihood([theta[0], np.log(scale)]) + prior.logpdf(scale)
        assert other <= best + 1e-4


def test_a_hyperprior_outside_the_bounds_is_refused():
    with pytest.raises(ValueError, match="does not overlap with the bounds"):
        classifier(RBF(1.0, (0.1, 10.0)), hyperprior={"length_scale": stats.uniform(20.0, 5.0)}).fit(X, y)
    for wrong in (stats.lognorm, stats.poisson(3.0), [stats.lognorm(1.0)]):
        hyperprior = wrong if isinstance(wrong, list) else {"length_scale": wrong}
        with pytest.raises(ValueError, match="hyperprior"):
            classifier(RBF(1.0), hyperprior=hyperprior).fit(X, y)


def test_the_more_exact_name_of_a_hyperprior_wins():
    kernel = 1.0 * RBF(1.0) + 1.0 * RBF(2.0)
    both = Hyperprior.on(kernel, {"k1__k2__length_scale": stats.gamma(3.0), "length_scale": stats.gamma(2.0)})
    assert sorted(both.terms) == [1, 3]
    value = stats.gamma(3.0).logpdf(1.0) + stats.gamma(2.0).logpdf(2.0)
    assert_allclose(both(kernel.theta)[0], value)


def test_an_optimiser_of_ones_own_has_the_last_word():
    def timid(objective, start, bounds):
        for step in (0.5, 0.1):
            objective(start + step)
        return start + 0.1, 0.0

    kernel = 1.0 * RBF(1.0)
    clf = classifier(kernel, optimizer=timid).fit(X, y)
    assert_allclose(clf.kernel_.theta, kernel.theta + 0.1)
    for end in ((np.array([np.nan, 0.0]), 0.0), (np.zeros(5), 0.0), (None, 0.0)):
        with pytest.raises(ValueError, match=r"The optimizer returned|could not convert"):
            classifier(kernel, optimizer=lambda *a, end=end: end).fit(X, y)


def test_evaluations_that_did_not_converge_are_counted():
    with pytest.warns(ConvergenceWarning) as caught:
        classifier(100.0 * RBF(1.0), inference="ep", max_iter_predict=1).fit(X, y)
    (message,) = (str(w.message) for w in caught if "evaluations while learning" in str(w.message))
    assert "max_iter=1" in message


@pytest.mark.parametrize("max_iter", [2, 3, 5, 10])
def test_a_method_that_does_not_converge_is_not_asked_for_ever(max_iter):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = classifier(100.0 * RBF(1.0), inference="ep", max_iter_predict=max_iter).fit(X, y)
    assert len(clf.history_.evidence) < 200


def test_one_interruption_stops_the_learning_of_all_classes(monkeypatch):
    calls = []
    right = Problem.infer

    def infer(self, prior, init):
        calls.append(None)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return right(self, prior, init)

    monkeypatch.setattr(Problem, "infer", infer)
    clf = classifier(2.0 * RBF(1.0), multi_class="one_vs_rest")
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        clf.fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    assert_allclose(clf.kernel_.theta, np.tile(clf.kernel_.kernels[0].theta, 3))
