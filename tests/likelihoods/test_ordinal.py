"""Ordered classes: against mpmath, rectangle probabilities of a normal vector, the probit, and generated thresholds."""

from __future__ import annotations

import warnings

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from scipy.stats import multivariate_normal

from gpclass import GaussianProcessClassifier, load
from gpclass.inference import EP, VI, Laplace
from gpclass.kernels import RBF, ConstantKernel
from gpclass.learning.problem import Problem, SiteObjective
from gpclass.likelihoods import OrderWarning, Ordinal, Probit
from gpclass.likelihoods.ordinal import truncated
from gpclass.posteriors.target import make_target
from gpclass.priors import DensePrior
from gpclass.testing import check_likelihood

GRADES = Ordinal(widths=(0.8, 1.7))
X = np.array([[0.0], [0.9], [2.5]])
Y = np.array([1.0, 5.0, -1.0])
KERNEL = 3.0 * RBF(1.2)


def grades(n=150, seed=0):
    """Return inputs, classes 0 to 3 with thresholds -2, 0 and 1 of a known function, and its values."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-4.0, 4.0, (n, 1)), axis=0)
    f = 2.5 * np.sin(X[:, 0])
    return X, np.digitize(f + rng.normal(size=n), [-2.0, 0.0, 1.0]), f


# ------------------------------------------------------------------------------- one value


@pytest.mark.parametrize(
    ("low", "high"),
    [(-1, 1), (-0.01, 0.005), (5, 8), (-6, 7), (-30, 0.3), (30, 31), (100, 100.5), (-mp.inf, -20), (0.5, mp.inf)],
)  # fmt: skip
def test_cumulants_of_a_truncated_normal_variable(low, high):
    with mp.workdps(40):
        peak = min(max(mp.mpf(0), low), high)
        ends = [
            max(mp.mpf(low), peak - 30),
            *(peak + d for d in (-3, -0.1, 0.1, 3)),
            min(mp.mpf(high), peak + 30),
        ]
        ends = sorted(x for x in ends if low <= x <= high)

        def moment(of):
            return mp.quad(lambda x: mp.exp((peak**2 - x**2) / 2) * of(x), ends)

        mass = moment(lambda x: 1)
        mean = moment(lambda x: x) / mass
        log_p = mp.log(mass) - peak**2 / 2 - mp.log(2 * mp.pi) / 2
        central = [moment(lambda x, k=k: (x - mean) ** k) / mass for k in (2, 3)]
        truth = np.array([float(value) for value in (log_p, mean, *central)])
    ends = (np.array([float(x)]) for x in (low, high, mp.mpf(high) - low))
    np.testing.assert_allclose(truncated(*ends)[:, 0], truth, rtol=1e-9, atol=1e-12)


def test_likelihoods_of_several_widths():
    for widths in ((), (1.0,), (0.05, 2.0, 6.0)):
        likelihood = Ordinal(widths=widths)
        check_likelihood(likelihood, np.array(likelihood.labels))
    wide = Ordinal(widths=(25.0, 30.0))  # thresholds far from zero
    f = wide.thresholds[:, None] + np.linspace(-4.0, 4.0, 9)
    x, w = np.polynomial.hermite_e.hermegauss(60)
    for y in wide.labels:
        truth = wide.log_prob(y, f[..., None] + 0.5 * x) @ w / w.sum()
        np.testing.assert_allclose(wide.expected(y, f, 0.25).value, truth, rtol=1e-8)


def test_two_classes_are_the_probit():
    y, mean, var = np.array([-1.0, 1.0, 1.0]), np.array([2.0, -30.0, 0.3]), np.array([4.0, 0.5, 1e6])
    two = Ordinal().several([0, 1])
    for name in ("tilted", "expected"):
        ours, known = (getattr(likelihood, name)(y, mean, var) for likelihood in (two, Probit()))
        for field in ours.__dataclass_fields__:
            np.testing.assert_allclose(getattr(ours, field), getattr(known, field), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(two.log_predict(mean, var), Probit().log_predict(mean, var), rtol=1e-12)
    X, y, _ = grades(60)
    kernel = ConstantKernel(4.0, "fixed") * RBF(1.0)
    fits = [
        GaussianProcessClassifier(kernel, likelihood=name).fit(X, y > 1) for name in ("ordinal", "probit")
    ]
    first, second = (fit.log_marginal_likelihood_value_ for fit in fits)
    assert first == pytest.approx(second, abs=1e-6)
    np.testing.assert_allclose(*(fit.predict_interval(X) for fit in fits), atol=1e-4)


# --------------------------------------------------------------------------------- evidence


def rectangle(likelihood, K, y):
    """Return the exact evidence, P(l < f + e < u) for the thresholds l and u, a rectangle probability."""
    b = np.array([-40.0, *likelihood.thresholds, 40.0])
    c = np.rint((y + 1.0) / 2.0).astype(int)
    accuracy = {"abseps": 1e-12, "releps": 1e-12, "maxpts": 10**7}
    cov = K + np.eye(len(y))
    return np.log(multivariate_normal.cdf(b[c + 1], np.zeros(len(y)), cov, lower_limit=b[c], **accuracy))


@pytest.mark.parametrize(("method", "error"), [(Laplace(), 0.15), (EP(), 0.005), (VI(), 0.08)], ids=repr)
def test_evidence_of_three_points(method, error):
    exact = rectangle(GRADES, KERNEL(X), Y)
    found = method(DensePrior(KERNEL, X), GRADES, Y).evidence
    assert found == pytest.approx(exact, abs=error)
    if isinstance(method, VI):
        assert found < exact
    if isinstance(method, EP):  # one point has no approximation at all
        one = method(DensePrior(KERNEL, X[:1]), GRADES, Y[:1]).evidence
        assert one == pytest.approx(rectangle(GRADES, KERNEL(X[:1]), Y[:1]), abs=1e-9)


@pytest.mark.parametrize("method", [Laplace(tol=1e-12), EP(tol=1e-10), VI(tol=1e-10)], ids=repr)
def test_gradients_of_kernel_and_widths(method):
    objective = SiteObjective(Problem(X, Y, np.array([1.0, 2.0, 0.5]), KERNEL, GRADES, method))
    theta, h = objective.problem.theta, 1e-4
    truth = [
        (objective.evaluate(theta + e).evidence - objective.evaluate(theta - e).evidence) / (2 * h)
        for e in h * np.eye(len(theta))
    ]
    assert len(theta) == 4
    np.testing.assert_allclose(objective.evaluate(theta).gradient, truth, rtol=1e-5, atol=1e-6)


def test_corrected_evidence_is_exact():
    from gpclass.evidence import check_approximation

    ep = EP()(DensePrior(KERNEL, X), GRADES, Y)
    target = make_target(GRADES, KERNEL(X), Y, ep.sites)
    found = check_approximation(target, evidence=ep.evidence, method="EP", rng=0, n_samples=20_000)
    assert found.corrected == pytest.approx(rectangle(GRADES, KERNEL(X), Y), abs=5.0 * found.standard_error)


# -------------------------------------------------------------------------------- classifier


@pytest.mark.parametrize("options", [{"inference": "ep"}, {"inference": "vi", "inducing": 15}], ids=str)
def test_thresholds_are_recovered(options):
    X, y, f = grades(300)
    kernel = 4.0 * RBF(1.5) + 1.0
    clf = GaussianProcessClassifier(kernel, likelihood="ordinal", random_state=0, **options).fit(X, y)
    b, shift = clf.likelihood_.thresholds, np.mean(clf.predict_latent(X) - f)
    np.testing.assert_allclose(b - shift, [-2.0, 0.0, 1.0], atol=0.4)
    p, edges = clf.predict_proba(X), np.array([-np.inf, -2.0, 0.0, 1.0, np.inf])
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    assert np.abs(p - np.diff(ndtr(edges - f[:, None]), axis=1)).mean() < 0.04
    low, high = clf.predict_interval(X[::20])
    assert ((low <= p[::20]) & (p[::20] <= high)).mean() > 0.9
    assert clf.loo_log_score_ == pytest.approx(np.log(p[np.arange(len(y)), y]).mean(), abs=0.05)


@pytest.mark.parametrize(
    "options",
    [
        {"inference": "mcmc"},
        pytest.param({"inference": "mcmc", "hyperparameters": "sample"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_chains_agree_with_expectation_propagation(options):
    pytest.importorskip("arviz_stats")
    X, y, _ = grades(40)
    kernel = ConstantKernel(4.0) * RBF(1.5)
    fixed = {"likelihood": Ordinal(widths=(2.0, 1.0)), "random_state": 0}
    ep = GaussianProcessClassifier(kernel, inference="ep", **fixed).fit(X, y)
    chains = GaussianProcessClassifier(kernel, **fixed | options).fit(X, y)
    assert np.abs(chains.predict_proba(X) - ep.predict_proba(X)).max() < 0.08
    low, high = chains.predict_interval(X[:3])
    assert low.shape == (3, 4)
    assert (low < high).all()


def test_rows_in_passes_and_streams_agree_with_all_rows():
    X, y, _ = grades(200)
    order = np.random.default_rng(1).permutation(200)
    X, y = X[order], y[order]
    fixed = {"kernel": 4.0 * RBF(1.5) + 1.0, "likelihood": Ordinal(widths=(2.0, 1.0)), "optimizer": None}
    p = GaussianProcessClassifier(**fixed).fit(X, y).predict_proba(X)
    halves = [(X[:100], y[:100]), (X[100:], y[100:])]
    passes = GaussianProcessClassifier(**fixed, random_state=0).fit(lambda: halves)
    np.testing.assert_allclose(passes.predict_proba(X), p, atol=0.005)
    stream = GaussianProcessClassifier(**fixed, inducing=20, random_state=0)
    for each in halves:
        stream.partial_fit(*each, classes=range(4))
    np.testing.assert_allclose(stream.predict_proba(X), p, atol=0.02)
    np.testing.assert_array_equal(stream.base_estimator_.inducing.counts, np.bincount(y))


def test_weights_are_copies():
    X, y, _ = grades(40)
    weight = np.resize([1.0, 2.0, 3.0], len(y))
    fixed = {
        "kernel": 4.0 * RBF(1.5),
        "likelihood": Ordinal(widths=(2.0, 1.0)),
        "optimizer": None,
        "inference": "ep",
    }
    once = GaussianProcessClassifier(**fixed).fit(X, y, sample_weight=weight)
    again = np.repeat(np.arange(len(y)), weight.astype(int))
    copied = GaussianProcessClassifier(**fixed).fit(X[again], y[again])
    assert once.log_marginal_likelihood_value_ == pytest.approx(
        copied.log_marginal_likelihood_value_, abs=1e-7
    )
    halves = GaussianProcessClassifier(**fixed | {"inference": "vi"}).fit(X, y, sample_weight=0.5 * weight)
    assert np.isfinite(halves.predict_log_proba(X)).all()


class TestOrder:
    def fit(self, y, **options):
        X, codes, _ = grades(80)
        names = np.array(["poor", "fair", "good", "best"])
        fixed = {"kernel": 4.0 * RBF(1.5), "optimizer": None, "inference": "laplace", "likelihood": "ordinal"}
        return GaussianProcessClassifier(**fixed | options).fit(X, y(names[codes])), X

    def test_three_ways_to_give_it_are_the_same(self, tmp_path):
        order = ["poor", "fair", "good", "best"]
        with warnings.catch_warnings():
            warnings.simplefilter("error", OrderWarning)
            typed, X = self.fit(lambda y: pd.Series(pd.Categorical(y, order, ordered=True)))
            given, _ = self.fit(lambda y: y, likelihood=Ordinal(order))
        numbers, _ = self.fit(lambda y: np.array([order.index(each) for each in y]))
        assert list(typed.classes_) == sorted(order)
        columns = [order.index(name) for name in typed.classes_]
        for each in (typed, given):
            np.testing.assert_allclose(
                each.predict_proba(X), numbers.predict_proba(X)[:, columns], rtol=1e-10
            )
            np.testing.assert_allclose(each.loo_proba_, numbers.loo_proba_[:, columns], rtol=1e-10)
        assert numbers.likelihood_.widths == typed.likelihood_.widths
        typed.save(tmp_path / "model.gpc")
        restored = load(tmp_path / "model.gpc")
        np.testing.assert_array_equal(restored.predict_proba(X), typed.predict_proba(X))
        assert restored.likelihood_ == typed.likelihood_

    def test_texts_in_sorted_order_are_announced(self):
        with pytest.warns(OrderWarning, match="'best' < 'fair' < 'good' < 'poor'") as caught:
            self.fit(lambda y: y)
        assert [each.filename for each in caught] == [__file__]  # once, at the call of fit

    def test_a_class_that_the_order_lacks(self):
        with pytest.raises(ValueError, match="lacks the label 'best'"):
            self.fit(lambda y: y, likelihood=Ordinal(["poor", "fair", "good"]))

    @pytest.mark.parametrize(
        ("widths", "message"), [((1.0,), "1 numbers for 4 classes"), ((1.0, -1.0), "positive")]
    )
    def test_widths(self, widths, message):
        with pytest.raises(ValueError, match=message):
            self.fit(lambda y: y, likelihood=Ordinal(["poor", "fair", "good", "best"], widths))


def test_labels_are_equally_probable_at_first():
    likelihood = Ordinal().several(np.arange(5))
    np.testing.assert_allclose(np.exp(likelihood.log_predict(0.0, 4.0)), 0.2, atol=1e-12)
