"""Quadrature from log_prob alone against closed forms and mpmath, for every likelihood there is."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mp_rules import integrate, march
from scipy.optimize import brentq
from scipy.special import ndtr

from gpclass import testing
from gpclass.core.registry import _PARTS, parts
from gpclass.inference import EP, VI, Laplace
from gpclass.kernels import RBF
from gpclass.likelihoods import (
    BinaryLikelihood,
    ClassLikelihood,
    CLogLog,
    LabelNoise,
    Logit,
    MultiProbit,
    Probit,
    Softmax,
)
from gpclass.priors import DensePrior

OURS = {name: part for name, part in parts("likelihood").items() if not name.startswith("_")}
BINARY = [part() for part in OURS.values() if issubclass(part, BinaryLikelihood)]
every = pytest.mark.parametrize("likelihood", BINARY, ids=lambda v: v.name)
closed = pytest.mark.parametrize("likelihood", [Logit(), Probit()], ids=lambda v: v.name)


@dataclass(frozen=True)
class _Plain(BinaryLikelihood):
    """The log_prob of another likelihood, and nothing else of it."""

    name = "_plain"
    of: BinaryLikelihood

    def log_prob(self, y, f):
        return self.of.log_prob(y, f)


_PARTS["likelihood"].pop("_plain")  # other tests go through all that are registered


def problem(n=240, seed=0, low=-12.0, high=8.0):
    rng = np.random.default_rng(seed)
    var = 10.0 ** rng.uniform(low, high, n)
    return np.sign(rng.normal(size=n)), rng.normal(size=n) * 2.0 * np.sqrt(1.0 + var), var


def fields(record):
    return [getattr(record, name) for name in record.__slots__]


def everything(likelihood, y, mean, var):
    out = [likelihood.log_prob(y, mean), *likelihood.derivatives(y, mean), likelihood.third(y, mean, var)]
    out += [*fields(likelihood.expected(y, mean, var)), *fields(likelihood.tilted(y, mean, var))]
    out += [likelihood.log_classes(mean), likelihood.log_predict(mean, var), likelihood.link(mean)]
    return [*out, likelihood.mackay(mean, var)]


# --------------------------------------------------------------------------------- registry


def test_every_likelihood_is_registered():
    names = {"logit", "probit", "cloglog", "label_noise", "softmax", "multiprobit"}
    assert names <= set(OURS)
    for part in OURS.values():
        assert issubclass(part, BinaryLikelihood | ClassLikelihood)


def test_the_counterpart_for_several_classes():
    assert Logit().several([0, 1, 2]) == Softmax()
    assert Probit().several([0, 1, 2]) == MultiProbit()
    assert CLogLog().several([0, 1, 2]) is None
    assert Softmax().several([0, 1, 2]) == Softmax()
    assert [v.n_latents(5) for v in (Logit(), Softmax(), MultiProbit())] == [1, 5, 5]
    assert Softmax().probit_scale == Logit().probit_scale
    assert MultiProbit().probit_scale == Probit().probit_scale


@every
def test_conformance(likelihood):
    testing.check_likelihood(likelihood, [-1.0, 1.0])


# ------------------------------------------------------------------- against closed forms


@closed
def test_derivatives_are_the_closed_forms(likelihood):
    y, f, var = problem(low=-1.0, high=2.0)
    plain = _Plain(likelihood)
    for found, truth in zip(plain.derivatives(y, f), likelihood.derivatives(y, f), strict=True):
        np.testing.assert_allclose(found, truth, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(plain.third(y, f, var), likelihood.third(y, f, var), rtol=1e-7, atol=1e-6)


@closed
def test_averages_are_the_closed_forms(likelihood):
    y, mean, var = problem()
    plain, s = _Plain(likelihood), np.sqrt(1.0 + var)
    found, truth = plain.expected(y, mean, var), likelihood.expected(y, mean, var)
    np.testing.assert_allclose(found.value, truth.value, rtol=1e-11)
    np.testing.assert_allclose(found.slope, truth.slope, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.curvature, truth.curvature, rtol=1e-9, atol=1e-11)
    found, truth = plain.tilted(y, mean, var), likelihood.tilted(y, mean, var)
    for name, scale in (("log_mass", 1.0), ("slope", s), ("curvature", s * s), ("shrink", 1.0)):
        a, b = getattr(found, name) * scale, getattr(truth, name) * scale
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(plain.log_predict(mean, var), likelihood.log_predict(mean, var), rtol=1e-11)


@closed
@pytest.mark.parametrize("power", [0.0, 0.3, 2.0])
def test_powers_are_the_closed_forms(likelihood, power):
    y, mean, var = problem(120, high=6.0)
    found, truth = (v.tilted(y, mean, var, power) for v in (_Plain(likelihood), likelihood))
    for a, b in zip(fields(found), fields(truth), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=2e-11)


@closed
def test_median_and_scale(likelihood):
    plain = _Plain(likelihood)
    assert plain.median == pytest.approx(0.0, abs=1e-12)
    assert plain.probit_scale == pytest.approx(likelihood.probit_scale, rel=1e-12)


def test_mackay_is_exact_for_probit_and_near_for_others():
    mean, var = np.linspace(-4.0, 4.0, 9), np.linspace(0.1, 6.0, 9)
    for inner in (Probit(), LabelNoise(rate=0.1)):
        np.testing.assert_allclose(inner.mackay(mean, var), inner.log_predict(mean, var), rtol=1e-9)
    for likelihood in (Logit(), CLogLog()):
        p, q = np.exp(likelihood.mackay(mean, var)), np.exp(likelihood.log_predict(mean, var))
        assert np.abs(p - q).max() < (0.02 if likelihood == Logit() else 0.1)


def test_probit_expected_where_its_lattice_ends():
    """E[l] -> -E[f² 1(f<0)]/2 as var -> infinity: the whole range is covered."""
    var = np.array([3.9e8, 4.1e8, 1e12, 1e30])
    e = Probit().expected(np.ones(4), np.zeros(4), var)
    np.testing.assert_allclose(e.value, -0.25 * var, rtol=1e-3)
    np.testing.assert_allclose(e.slope, np.sqrt(var / (2.0 * np.pi)), rtol=1e-3)
    np.testing.assert_allclose(e.curvature, -0.5, rtol=1e-3)


# --------------------------------------------------------------------------- label noise


@pytest.mark.parametrize("inner", [Logit(), Probit(), "probit"], ids=str)
@pytest.mark.parametrize("rate", [1e-3, 0.05, 0.4])
def test_label_noise_mass_in_closed_form(inner, rate):
    """Z = rate + (1 - 2 rate) Z_inner, and so are its derivatives, apart from the rate."""
    y, mean, var = problem(150, seed=1)
    likelihood = LabelNoise(inner, rate)
    t = likelihood.likelihood.tilted(y, mean, var)
    Z, share = np.exp(t.log_mass), 1.0 - 2.0 * rate
    first, second = share * Z * t.slope, share * Z * (t.slope**2 - t.curvature)
    Z = rate + share * Z
    found = likelihood.tilted(y, mean, var)
    s = np.sqrt(1.0 + var)
    np.testing.assert_allclose(found.log_mass, np.log(Z), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(s * found.slope, s * first / Z, rtol=1e-9, atol=1e-11)
    curvature = (first / Z) ** 2 - second / Z
    np.testing.assert_allclose(s**2 * found.curvature, s**2 * curvature, rtol=3e-8, atol=1e-10)
    np.testing.assert_allclose(found.shrink, 1.0 - var * curvature, rtol=3e-8, atol=1e-10)
    assert (found.shrink > 1.0).any()  # it is not log-concave


def test_label_noise_learns_its_rate():
    likelihood = LabelNoise("logit", rate=0.1)
    np.testing.assert_allclose(likelihood.theta, [np.log(0.1)])
    np.testing.assert_allclose(np.exp(likelihood.bounds), [[1e-3, 0.4]])
    assert likelihood.with_theta(np.log([0.2])).rate == pytest.approx(0.2)
    fixed = LabelNoise(rate_bounds="fixed")
    assert fixed.theta.shape == (0,)
    assert fixed.bounds.shape == (0, 2)
    assert fixed.with_theta(fixed.theta) == fixed
    assert Probit().theta.shape == (0,)
    assert Probit().with_theta(np.zeros(0)) == Probit()
    with pytest.raises(ValueError, match="no free parameters"):
        Probit().with_theta(np.zeros(1))


@pytest.mark.parametrize("rate", [0.0, 0.5, -1.0, np.nan])
def test_label_noise_refuses_rates(rate):
    with pytest.raises(ValueError, match=r"rate=.* is not valid"):
        LabelNoise(rate=rate)


# ------------------------------------------------------------- more than two ordered classes


@dataclass(frozen=True)
class _Ordered(BinaryLikelihood):
    """Cumulative probit: class k is observed where f plus normal noise is between thresholds k - 1 and k."""

    name = "_ordered"
    log_concave = True
    thresholds: tuple[float, ...] = (-1.0, 0.5, 2.0)

    @property
    def labels(self):
        return tuple(np.arange(len(self.thresholds) + 1.0))

    def several(self, classes, order=None):
        return self

    @property
    def theta(self):
        return np.array([self.thresholds[0], *np.log(np.diff(self.thresholds))])

    @property
    def bounds(self):
        return np.array([[-5.0, 5.0]] * len(self.thresholds))

    def with_theta(self, theta):
        return _Ordered(tuple(np.cumsum([theta[0], *np.exp(theta[1:])])))

    def log_prob(self, y, f):
        edges = np.array([-np.inf, *self.thresholds, np.inf])
        low, high = (edges[np.asarray(y, int) + k] - f for k in (0, 1))
        sign = np.where(low > 0.0, -1.0, 1.0)  # in the upper tail 1 - Phi keeps its digits
        low, high = np.where(sign > 0.0, low, -high), np.where(sign > 0.0, high, -low)
        return np.log(np.maximum(ndtr(high) - ndtr(low), 1e-300))


_PARTS["likelihood"].pop("_ordered")


def test_one_latent_value_may_have_more_than_two_classes():
    likelihood = _Ordered()
    assert likelihood.n_latents(4) == 1
    assert likelihood.several([0, 1, 2]) is likelihood
    mean, var = np.linspace(-3.0, 4.0, 9), np.linspace(0.1, 5.0, 9)
    edges = np.array([-np.inf, *likelihood.thresholds, np.inf])
    truth = np.diff(ndtr((edges - mean[:, None]) / np.sqrt(1.0 + var)[:, None]), axis=1)
    np.testing.assert_allclose(np.exp(likelihood.log_predict(mean, var)), truth, atol=1e-10)
    assert likelihood.log_classes(mean).shape == (9, 4)
    y = np.arange(9.0) % 4
    found = likelihood.tilted(y, mean, var).log_mass
    np.testing.assert_allclose(np.exp(found), truth[np.arange(9), y.astype(int)], atol=1e-10)
    x, w = np.polynomial.hermite_e.hermegauss(80)
    value = likelihood.log_prob(y[:, None], mean[:, None] + np.sqrt(var)[:, None] * x) @ (w / w.sum())
    np.testing.assert_allclose(likelihood.expected(y, mean, var).value, value, atol=1e-7)


@pytest.mark.parametrize("method", [Laplace(tol=1e-10), EP(tol=1e-9), VI(tol=1e-9)], ids=repr)
def test_parameters_of_a_likelihood_of_four_classes_have_a_gradient(method):
    rng = np.random.default_rng(0)
    X, likelihood = np.sort(rng.uniform(-3.0, 3.0, (8, 1)), axis=0), _Ordered()
    y = np.clip(np.round(X[:, 0] + 0.5 * rng.normal(size=8) + 1.0), 0.0, 3.0)

    def run(theta):
        return method(DensePrior(4.0 * RBF(1.5), X), likelihood.with_theta(theta), y)

    result = run(likelihood.theta)
    assert result.info.converged
    truth = testing.central_difference(lambda t: run(t).evidence, likelihood.theta, 1e-3)
    np.testing.assert_allclose(result.likelihood_gradient(), truth, rtol=1e-5, atol=1e-5)


# -------------------------------------------------------------------------- against mpmath


def log_cloglog(y, f):
    return mp.log(-mp.expm1(-mp.exp(f))) if y > 0 else -mp.exp(f)


def log_noisy_probit(y, f):
    return mp.log(mp.mpf("0.05") + mp.mpf("0.9") * mp.erfc(-y * f / mp.sqrt(2)) / 2)


def truth(log_prob, y, mean, var):
    """E[l], E[l x] / s, E[l (x² - 1)] / var; and log mass, mean shift / var, shrink."""
    s = mp.sqrt(mp.mpf(var))

    def g(x):
        l, N = log_prob(y, mean + s * x), mp.npdf(x)
        p = N * mp.exp(l)
        return N * l, N * l * x / s, N * l * (x * x - 1) / s**2, p, p * x, p * x * x

    edges = march(mp.mpf(-12), mp.mpf(14), lambda x: min(mp.mpf(2), max(1, abs(mean + s * x) / 4) / s))
    *e, mass, first, second = integrate(g, edges, 16)
    shift = first / mass
    return [*e, mp.log(mass), shift / s, second / mass - shift**2]


@pytest.mark.parametrize(
    ("likelihood", "log_prob"), [(CLogLog(), log_cloglog), (LabelNoise(), log_noisy_probit)]
)
@pytest.mark.parametrize(("mean", "var"), [(-2.0, 0.5), (1.5, 2.0), (0.0, 30.0)])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_against_mpmath(likelihood, log_prob, mean, var, y):
    at = np.array([y]), np.array([mean]), np.array([var])
    e, t = likelihood.expected(*at), likelihood.tilted(*at)
    found = [e.value, e.slope, e.curvature, t.log_mass, t.slope, t.shrink]
    with mp.workdps(25):
        values = [float(v) for v in truth(log_prob, y, mean, var)]
    if likelihood == CLogLog() and y < 0.0:
        values[:3] = [-np.exp(mean + 0.5 * var)] * 3
    np.testing.assert_allclose(np.concatenate(found), values, rtol=1e-9)


def test_cloglog_far_out():
    """E[exp(-exp(f))] where the Gaussian is far above: the mass moves down by up to a million deviations."""
    mean, var = np.array([40.0, 300.0, 1e3, 1e5, 1e5]), np.array([1.0, 4.0, 1e-2, 1e4, 1e-2])
    found = CLogLog().tilted(np.full(5, -1.0), mean, var)
    for i in range(5):
        mode = brentq(lambda f, m=mean[i], v=var[i]: np.exp(f) + (f - m) / v, -10.0, 30.0, xtol=1e-14)
        x = np.linspace(-12.0, 12.0, 20_001) / np.sqrt(
            np.exp(mode) + 1.0 / var[i]
        )  # the integrand around its mode
        L = -np.exp(mode) * (np.expm1(x) - x) - 0.5 * x * x / var[i]
        W = np.exp(L)
        top = -np.exp(mode) - 0.5 * (mode - mean[i]) ** 2 / var[i]
        log_mass = top + np.log(W.sum() * (x[1] - x[0]) / np.sqrt(2.0 * np.pi * var[i]))
        centre = (W @ x) / W.sum()
        shrink = (W @ (x - centre) ** 2) / W.sum() / var[i]
        assert found.log_mass[i] == pytest.approx(log_mass, rel=1e-9)
        assert mean[i] + var[i] * found.slope[i] == pytest.approx(
            mode + centre, abs=max(1e-9, 3e-12 * mean[i])
        )
        assert found.shrink[i] == pytest.approx(shrink, rel=1e-8)
        assert found.curvature[i] == pytest.approx((1.0 - shrink) / var[i], rel=1e-9)


@pytest.mark.parametrize("f", [-700.0, -50.0, -20.0, -4.6, -4.61, -1.0, 0.5, 3.0, 6.0, 200.0])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_derivatives_of_cloglog(y, f):
    likelihood, at = CLogLog(), np.array([f])
    found = likelihood.derivatives(np.array([y]), at)
    with mp.workdps(700):
        u = mp.exp(mp.mpf(f))
        r = u / mp.expm1(u) if u < 1e4 else mp.mpf(0)
        first, second = r, r * (1 - u - r)
        up = [mp.log(-mp.expm1(-u)), first, second]
        values = [float(v) for v in (up if y > 0.0 else [-u] * 3)]
    np.testing.assert_allclose(np.concatenate(found), values, rtol=1e-9, atol=1e-300)


# ----------------------------------------------------------------------- extremes and work


@every
@settings(deadline=None, max_examples=30)
@given(
    y=st.sampled_from([-1.0, 1.0]),
    mean=st.floats(allow_nan=False, allow_infinity=False),
    var=st.floats(0.0, allow_nan=False, allow_infinity=False),
)
def test_never_nan_never_a_warning(likelihood, y, mean, var):
    with warnings.catch_warnings(), np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("error")
        for a in everything(likelihood, *(np.array([v]) for v in (y, mean, var))):
            assert not np.isnan(a).any()


@every
def test_shapes_and_rows(likelihood):
    y, mean, var = np.array([1.0, -1.0, 1.0]), np.array([[0.3], [2.0]]), np.float64(0.7)
    e, t = likelihood.expected(y, mean, var), likelihood.tilted(y, mean, var, np.array([0.5, 1.0, 0.2]))
    assert all(a.shape == (2, 3) for a in (*fields(e), *fields(t), likelihood.third(y, mean, var)))
    assert likelihood.log_predict(mean, var).shape == (2, 1, 2)
    assert all(a.size == 0 for a in everything(likelihood, *[np.empty(0)] * 3))
    y, mean, var = problem(300, seed=2)
    whole, one = everything(likelihood, y, mean, var), everything(likelihood, y[7:8], mean[7:8], var[7:8])
    for a, b in zip(whole, one, strict=True):
        np.testing.assert_allclose(a[7:8], b, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("log_var", [-12, 0, 4, 10, 100])
def test_work_is_bounded(log_var):
    """The number of values of log p that one data point needs, whatever its variance, beside tables made once."""
    counts = []

    class _Counted(BinaryLikelihood):
        name = "_counted"

        def log_prob(self, y, f):
            counts.append(np.size(f))
            return Probit().log_prob(y, f)

    mean, likelihood = np.array([-1.0, 0.0, 1e3]), _Counted()

    def work():
        counts.clear()
        for y in (-1.0, 1.0):
            likelihood.expected(np.full(3, y), mean, np.full(3, 10.0**log_var))
            likelihood.tilted(np.full(3, y), mean, np.full(3, 10.0**log_var))
        return sum(counts)

    assert work() < 500_000
    assert work() < 12 * 500
