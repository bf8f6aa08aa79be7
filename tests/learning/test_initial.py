"""Learning does not depend on where the kernel starts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_iris

from gpclass import GaussianProcessClassifier
from gpclass.core.hyperpriors import Hyperprior
from gpclass.core.protocols import Evaluation, Info
from gpclass.inference import EP, Laplace
from gpclass.kernels import RBF, ConstantKernel, DotProduct, Linear, Matern
from gpclass.learning import initial, ladder
from gpclass.learning.initial import RATIO, STARTS, starts
from gpclass.learning.maximise import Plan, maximise
from gpclass.learning.problem import Problem, SiteObjective
from gpclass.likelihoods import Probit
from gpclass.priors import NotPositiveError
from gpclass.validation import some_of_each

INFERENCE = EP()
X, y = load_breast_cancer(return_X_y=True)
RAW, LABELS = X[:80, :6], y[:80]


@pytest.mark.filterwarnings("ignore::gpclass.DoubtfulFitWarning")  # one length scale for raw columns
@pytest.mark.parametrize(("inference", "standardised"), [("laplace", False), ("laplace", True), ("vi", True)])
def test_every_start_ends_at_the_same_evidence(inference, standardised):
    inputs = (RAW - RAW.mean(axis=0)) / RAW.std(axis=0) if standardised else RAW
    rng = np.random.default_rng(0)
    ends = []
    for variance, length in [(1.0, 1.0), *np.exp(rng.uniform(np.log(1e-5), np.log(1e5), size=(3, 2)))]:
        clf = GaussianProcessClassifier(ConstantKernel(variance) * RBF(length), inference=inference)
        ends.append(clf.fit(inputs, LABELS).log_marginal_likelihood_value_)
    assert_allclose(ends, max(ends), atol=0.5)
    share = LABELS.mean()
    assert min(ends) > len(LABELS) * (share * np.log(share) + (1.0 - share) * np.log(1.0 - share))


def posed(kernel, inputs=RAW, labels=LABELS, method=INFERENCE, **options):
    return Problem(inputs, np.where(labels > 0, 1.0, -1.0), None, kernel, Probit(), method, **options)


def evidence(problem, theta):
    return SiteObjective(problem).evaluate(np.asarray(theta), gradient=False).evidence


def test_the_start_of_the_user_is_followed_where_it_is_the_best():
    problem = posed(1.0 * Matern(1.0))
    best = maximise(SiteObjective(problem), starts(problem, [])[0], problem.bounds).theta
    assert_allclose(starts(problem.at(best), [])[0], best)


def test_the_first_start_is_the_best_of_what_was_looked_at():
    problem, looks = posed(1.0 * Matern(1.0)), []
    thetas = starts(problem, looks)
    assert 1 <= len(thetas) <= STARTS
    assert_allclose(evidence(problem, thetas[0]), max(value for value, _ in looks), atol=1e-4)
    for value, theta in looks:
        assert_allclose(value, evidence(problem, theta), atol=1e-4)


def test_the_grid_spans_the_distances_between_rows():
    rng = np.random.default_rng(0)
    inputs = rng.uniform(size=(80, 2))
    looks = []
    starts(posed(4.0 * RBF(1.0), inputs, inputs[:, 0] > 0.5), looks)
    lengths = np.sort(np.exp([theta[1] for _, theta in looks[1:]]))
    distances = np.linalg.norm(inputs[:, None] - inputs, axis=2)
    nearest = np.median((distances + 9.0 * np.eye(80)).min(axis=0))
    assert_allclose(lengths[[0, -1]], [nearest, distances.max()], rtol=1e-9)
    assert (lengths[1:] / lengths[:-1] <= RATIO + 1e-9).all()


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_unit_of_the_inputs_does_not_matter_for_the_starts(unit):
    wide = (1e-9, 1e9)
    inputs = (RAW - RAW.mean(axis=0)) / RAW.std(axis=0)
    kernel = 1.0 * RBF(np.ones(6), wide)
    plain = starts(posed(kernel, inputs), [])
    scaled = starts(posed(1.0 * RBF(unit * np.ones(6), wide), unit * inputs), [])
    assert len(plain) == len(scaled)
    for one, other in zip(plain, scaled, strict=True):
        assert_allclose(other[1:] - np.log(unit), one[1:], atol=1e-8)


@pytest.mark.parametrize(
    "inputs",
    [np.zeros((20, 2)), np.repeat([[0.0, 1.0], [1.0, 0.0]], 10, axis=0), np.array([[0.0]] * 10 + [[1e-300]] * 10)],
    ids=["constant", "two points", "tiny"],
)  # fmt: skip
def test_rows_that_coincide(inputs):
    problem = posed(1.0 * RBF(1.0), inputs, np.arange(20) % 2)
    for theta in starts(problem, []):
        assert np.isfinite(theta).all()
        assert ((theta >= problem.bounds[:, 0]) & (theta <= problem.bounds[:, 1])).all()


def test_starts_stay_inside_the_bounds_and_the_support_of_the_hyperprior():
    kernel = ConstantKernel(1.0, (0.5, 2.0)) * RBF(30.0, (20.0, 100.0))
    prior = Hyperprior.on(kernel, {"length_scale": stats.uniform(25.0, 10.0)})
    for problem in (posed(kernel), posed(kernel, hyperprior=prior)):
        inside = problem.hyperprior.narrow(problem.bounds)
        looks = []
        for theta in starts(problem, looks):
            assert ((theta >= inside[:, 0] - 1e-9) & (theta <= inside[:, 1] + 1e-9)).all()
        assert np.isfinite([value for value, _ in looks]).all()


@pytest.mark.parametrize("kernel", [1.0 * DotProduct(1.0), DotProduct(1.0), Linear(1.0)], ids=str)
def test_kernels_without_length_scales_have_a_start(kernel):
    problem = posed(kernel, (RAW - RAW.mean(axis=0)) / RAW.std(axis=0))
    theta = starts(problem, [])[0]
    assert evidence(problem, theta) >= evidence(problem, problem.theta) - 1e-6


def test_points_that_fail_are_worth_nothing(monkeypatch):
    def fails(self, theta, warm=None, *, gradient=True):
        raise NotPositiveError("beyond double precision")

    monkeypatch.setattr(SiteObjective, "evaluate", fails)
    looks = []
    (theta,) = starts(posed(1.0 * RBF(1.0)), looks)
    assert looks == []
    assert np.isfinite(theta).all()


# ----------------------------------------------------------------------------- hills that are narrow


@pytest.mark.parametrize(("cycles", "length"), [(8, 100.0), (40, 1.0)])
def test_stripes_are_found(cycles, length):
    """Labels that alternate: the evidence is flat but for length scales near the width of a stripe."""
    inputs = np.sort(np.random.default_rng(cycles).uniform(size=(320, 1)), axis=0)
    labels = np.sin(2.0 * np.pi * cycles * inputs[:, 0]) > 0.0
    width = 0.5 / cycles
    given = posed(4.0 * RBF(0.5 * width, (1e-4, 1e2)), inputs, labels, Laplace())
    right = maximise(SiteObjective(given), given.theta, given.bounds, tol=1e-6).objective
    assert right > 320 * np.log(0.5) + 20.0  # there is a hill
    problem = posed(1.0 * RBF(length, (1e-4, 1e2)), inputs, labels, Laplace())
    _, learned = ladder.learn(problem, Plan(), np.random.default_rng(0))
    assert learned.objective > right - 1.0


# ------------------------------------------------------------------------------- case-control samples


RBF_AND_BIAS = 1.0 * RBF([1.0, 1.0]) + ConstantKernel(1.0)


def rare(n=800, share=0.05, seed=0):
    """Return inputs, and labels of a smooth function of which few are positive."""
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(-2.0, 2.0, size=(n, 2))
    f = 6.0 * np.sin(2.0 * inputs[:, 0]) * np.cos(1.5 * inputs[:, 1])
    f = f + np.random.default_rng(seed + 1).logistic(size=n)
    return inputs, f > np.quantile(f, 1.0 - share)


@pytest.mark.parametrize("counts", [(500, 500), (900, 100), (990, 10), (400, 300, 300), (950, 30, 20)])
def test_samples_hold_the_classes_in_equal_numbers_as_far_as_they_can(counts):
    rng = np.random.default_rng(0)
    classes = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    for n in (60, 300):
        rows = some_of_each(classes, n, np.random.default_rng(1))
        held = np.bincount(classes[rows], minlength=len(counts))
        assert (np.diff(rows) > 0).all()
        assert len(rows) <= n
        # Every class has the same number of rows, or all that it has.
        level = held.max()
        assert ((held >= level - 1) | (held == counts)).all()
        rest = len(classes) - max(counts)
        assert held.max() <= 4 * (len(rows) - held.max())
        assert len(rows) == min(n, 5 * rest)


def test_a_class_of_one_row_is_kept():
    classes = np.zeros(1000, dtype=int)
    classes[777] = 1
    rows = some_of_each(classes, 300, np.random.default_rng(0))
    assert 777 in rows
    assert len(rows) == 5
    assert len(some_of_each(np.zeros(50, dtype=int), 3, np.random.default_rng(0))) == 3


def test_samples_are_nested():
    classes = (np.random.default_rng(0).random(5000) < 0.1).astype(int)
    samples = [some_of_each(classes, n, np.random.default_rng(0)) for n in (30, 300, 1200, 4800)]
    for few, more in pairwise(samples):
        assert set(few) <= set(more)
    problem = posed(1.0 * RBF(1.0), np.arange(5000.0)[:, None], classes)
    few, more = problem.some(300), problem.some(1200)
    assert set(few.X[:, 0]) <= set(more.X[:, 0])
    assert problem.some(5000) is problem


def test_rows_of_a_sample_are_random_within_a_class():
    classes = np.zeros(1000, dtype=int)
    classes[500:] = 1
    hits = np.zeros(1000)
    for seed in range(200):
        hits[some_of_each(classes, 100, np.random.default_rng(seed))] += 1
    # Binomial with 200 draws of probability 0.1: mean 20, deviation 4.2.
    assert_allclose(hits.reshape(20, 50).mean(axis=1), 20.0, atol=2.5)


def test_a_rare_class_is_learned():
    inputs, labels = rare()
    problem = posed(RBF_AND_BIAS, inputs, labels, Laplace())
    _, learned = ladder.learn(problem, Plan(), np.random.default_rng(0))
    # Learned on as many negative rows as positive ones.
    positive = np.flatnonzero(labels)
    negative = np.random.default_rng(5).choice(np.flatnonzero(~labels), len(positive), replace=False)
    rows = np.concatenate([positive, negative])
    balanced = posed(RBF_AND_BIAS, inputs[rows], labels[rows], Laplace())
    theta = maximise(SiteObjective(balanced), starts(balanced, [])[0], balanced.bounds, tol=1e-6).theta
    assert learned.objective >= evidence(problem, theta) - 0.05
    share = labels.mean()
    constant = len(labels) * (share * np.log(share) + (1.0 - share) * np.log(1.0 - share))
    assert learned.objective > constant  # not the fit of a constant


# -------------------------------------------------------------------- inference that does not converge


class Trap:
    """A bowl with its maximum at 0, and evidences beyond 0.8 that inference did not converge to."""

    description = "a trap"

    def evaluate(self, theta, warm=None, *, gradient=True):
        far = bool(theta.max() > 0.8)
        away = theta
        value = 1e6 if far else -0.001 * float(away @ away)
        return Evaluation(value, 0.0 * theta if far else -0.002 * away, None, Info(not far, 1, float(far)))


def test_evaluations_that_did_not_converge_are_not_believed():
    end = maximise(
        Trap(), np.array([-1.1, -1.1]), np.array([[-9.0, 9.0]] * 2), inverse_hessian=1e4 * np.eye(2)
    )
    assert end.message == ""
    assert_allclose(end.theta, 0.0, atol=0.1)
    assert (end.history.evidence == 1e6).any()


class Never(Trap):
    """A slope without end, along which inference never converges though it comes near."""

    def evaluate(self, theta, warm=None, *, gradient=True):
        return Evaluation(float(theta.sum()), np.ones(2), None, Info(False, 1, 5e-4))


def test_a_search_that_never_converges_ends_and_says_so():
    end = maximise(Never(), np.zeros(2), np.array([[-1e6, 1e6]] * 2))
    n = len(end.history)
    assert n < 100
    assert f"in {n} of {n} evaluations" in end.message


def test_several_classes_from_a_hopeless_start():
    inputs, labels = load_iris(return_X_y=True)
    inputs, labels = inputs[::3], labels[::3]
    kernels = [ConstantKernel(1e-5) * RBF(1e5), ConstantKernel(1e5) * RBF(1e-5), 1.0 * RBF(1.0)]
    ends = [GaussianProcessClassifier(k).fit(inputs, labels).log_marginal_likelihood_value_ for k in kernels]
    assert_allclose(ends, max(ends), atol=0.5)


class NotANumber:
    def __call__(self, prior, likelihood, y, *, weight=None, init=None):
        return replace(EP()(prior, likelihood, y), evidence=np.nan)

    def __str__(self):
        return "NotANumber()"


def test_an_evidence_that_is_no_number_is_refused():
    problem = Problem(RAW, np.where(LABELS > 0, 1.0, -1.0), None, 1.0 * RBF(1.0), Probit(), NotANumber())
    with pytest.raises(NotPositiveError, match=r"NotANumber\(\) found no finite evidence .* up to 1 here"):
        problem.infer(problem.prior(), None)


def test_a_kernel_of_huge_inputs_is_scaled_down_first():
    inputs = 1e6 * (RAW - RAW.mean(axis=0))
    kernel = ConstantKernel(9.0, (1e-30, 1e30)) * DotProduct(1.0, "fixed")
    looks = []
    theta = starts(posed(kernel, inputs), looks)[0]
    size = np.exp([look[0] for _, look in looks]) * (inputs**2).sum(axis=1).mean()
    assert_allclose(np.sort(size), initial.VARIANCE * np.array([1.0, *initial.LARGER]), rtol=1e-6)
    assert any(theta is look for _, look in looks)
