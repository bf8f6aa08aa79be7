"""What the likelihoods promise beyond accuracy: identities, limits, extremes, shapes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from gaussian import Gaussian
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from gpclass.likelihoods import Logit, Probit
from gpclass.likelihoods.probit import tail
from gpclass.likelihoods.quadrature import blocks, flatten, hermite

CLASSES = [Logit(), Probit()]
binary = pytest.mark.parametrize("likelihood", CLASSES, ids=lambda v: type(v).__name__)
labels = st.sampled_from([-1.0, 1.0])
means = st.floats(-1e3, 1e3)
variances = st.floats(-12.0, 8.0).map(lambda v: 10.0**v)


def arrays(*values: float) -> tuple[np.ndarray, ...]:
    return tuple(np.array([v]) for v in values)


def expected(likelihood, y, mean, var):
    e = likelihood.expected(y, mean, var)
    return e.value, e.slope, e.curvature


def tilted(likelihood, y, mean, var):
    t = likelihood.tilted(y, mean, var)
    return t.log_mass, t.slope, t.curvature, t.shrink


def everything(likelihood, y, mean, var):
    """All that a likelihood computes."""
    out = [likelihood.log_prob(y, mean), *likelihood.derivatives(y, mean), likelihood.third(y, mean, var)]
    out += [*expected(likelihood, y, mean, var), *tilted(likelihood, y, mean, var)]
    out += [likelihood.log_classes(mean), likelihood.log_predict(mean, var), likelihood.link(mean)]
    return out


# --------------------------------------------------------------------------------- identities


@binary
@settings(deadline=None, max_examples=60)
@given(y=labels, mean=means, var=variances)
def test_symmetry_of_the_labels(likelihood, y, mean, var):
    y, mean, var = arrays(y, mean, var)
    signs = (1, -1, 1)
    for pairs in (
        zip(signs, likelihood.derivatives(y, mean), likelihood.derivatives(-y, -mean), strict=True),
        zip(signs, expected(likelihood, y, mean, var), expected(likelihood, -y, -mean, var), strict=True),
        zip((1, -1, 1, 1), tilted(likelihood, y, mean, var), tilted(likelihood, -y, -mean, var), strict=True),
        [(-1, likelihood.third(y, mean, var), likelihood.third(-y, -mean, var))],
        [(1, likelihood.log_predict(mean, var), likelihood.log_predict(-mean, var)[:, ::-1])],
    ):
        for sign, a, b in pairs:
            np.testing.assert_allclose(a, sign * b, rtol=1e-13, atol=1e-11)


@binary
@settings(deadline=None, max_examples=100)
@given(mean=means, var=variances)
def test_probabilities_sum_to_one(likelihood, mean, var):
    mean, var = arrays(mean, var)
    np.testing.assert_allclose(np.exp(likelihood.log_classes(mean)).sum(axis=1), 1.0, atol=1e-13)
    np.testing.assert_allclose(np.exp(likelihood.log_predict(mean, var)).sum(axis=1), 1.0, atol=1e-13)


@binary
@settings(deadline=None, max_examples=100)
@given(y=labels, mean=st.floats(-50.0, 50.0), log_var=st.floats(-3.0, 4.0))
def test_expected_derivatives_by_differences(likelihood, y, mean, log_var):
    """d E[l]/d mean = E[l'], d E[l']/d mean = E[l''], d E[l]/d var = E[l'']/2 (Bonnet, Price)."""
    var = 10.0**log_var
    h = 1e-3 * min(1.0, np.sqrt(var) + 0.1)
    y5 = np.full(5, y)
    # fourth-order differences: the error is h⁴ of a fifth derivative
    stencil = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    weights = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0
    value, slope, curvature = expected(likelihood, y5, mean + h * stencil, np.full(5, var))
    np.testing.assert_allclose(weights @ value / h, slope[2], rtol=1e-7, atol=1e-8 * (1.0 + abs(value[2])))
    np.testing.assert_allclose(
        weights @ slope / h, curvature[2], rtol=1e-7, atol=1e-8 * (1.0 + abs(slope[2]))
    )
    k = 1e-2 * var
    value, _, curvature = expected(likelihood, y5, np.full(5, mean), var + k * stencil)
    np.testing.assert_allclose(
        weights @ value / k, 0.5 * curvature[2], rtol=1e-5, atol=1e-11 * (1.0 + abs(value[2])) / k
    )


@binary
@settings(deadline=None, max_examples=60)
@given(y=labels, mean=st.floats(-30.0, 30.0), log_var=st.floats(-3.0, 4.0))
def test_tilted_derivatives_by_differences(likelihood, y, mean, log_var):
    """Slope and curvature are the derivatives of the mass; shrink is 1 - var · curvature."""
    var = 10.0**log_var
    h = 1e-3 * min(1.0, np.sqrt(var) + 0.1)
    weights = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0
    at = mean + h * np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    mass, slope, curvature, shrink = tilted(likelihood, np.full(5, y), at, np.full(5, var))
    np.testing.assert_allclose(weights @ mass / h, slope[2], rtol=1e-7, atol=1e-8 * (1.0 + abs(mass[2])))
    np.testing.assert_allclose(
        -(weights @ slope) / h, curvature[2], rtol=1e-7, atol=1e-8 * (1 + abs(slope[2]))
    )
    np.testing.assert_allclose(shrink, 1.0 - var * curvature, rtol=1e-9, atol=1e-11)
    assert (shrink > 0.0).all()
    assert (shrink <= 1.0).all()


@binary
def test_bound_and_mass(likelihood):
    """E[l] <= log E[p(y|f)], which is also the prediction (Jensen)."""
    mean, var = (a.ravel() for a in np.meshgrid(np.linspace(-40, 40, 41), np.logspace(-4, 6, 21)))
    for column, y in enumerate([-1.0, 1.0]):
        ys = np.full(mean.size, y)
        mass = likelihood.tilted(ys, mean, var).log_mass
        assert (likelihood.expected(ys, mean, var).value <= mass + 1e-12 * np.abs(mass) + 1e-10).all()
        np.testing.assert_allclose(mass, likelihood.log_predict(mean, var)[:, column], rtol=1e-9, atol=1e-10)


@binary
def test_link_is_the_probability_of_the_second_class(likelihood):
    f = np.linspace(-8.0, 8.0, 33)
    np.testing.assert_allclose(likelihood.link(f), np.exp(likelihood.log_classes(f)[:, 1]), rtol=1e-13)
    np.testing.assert_allclose(likelihood.link(f), norm.cdf(f / likelihood.probit_scale), atol=0.02)


# ------------------------------------------------------------------------------------- limits


@binary
def test_zero_variance_is_the_point_itself(likelihood):
    f = np.concatenate([-np.logspace(3, -3, 25), [0.0], np.logspace(-3, 3, 25)])
    for y in (-1.0, 1.0):
        ys, zero = np.full(f.size, y), np.zeros(f.size)
        l, l1, l2 = likelihood.derivatives(ys, f)
        for found, truth in zip(expected(likelihood, ys, f, zero), (l, l1, l2), strict=True):
            np.testing.assert_allclose(found, truth, rtol=1e-12, atol=1e-300)
        for found, truth in zip(tilted(likelihood, ys, f, zero), (l, l1, -l2, 1.0), strict=True):
            np.testing.assert_allclose(found, truth, rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(likelihood.log_predict(f, zero), likelihood.log_classes(f), rtol=1e-12)


def test_probit_is_the_limit_of_both_links_at_large_variance():
    """E[sigma] -> Phi(mean/s) as var -> infinity."""
    mean, var = np.array([-2e4, 0.0, 1e3, 4e4]), np.full(4, 1e8)
    for likelihood in CLASSES:
        np.testing.assert_allclose(
            np.exp(likelihood.log_predict(mean, var)[:, 1]), norm.cdf(mean / 1e4), rtol=1e-6
        )


# ----------------------------------------------------------------------------- Gaussian anchor


@settings(deadline=None, max_examples=50)
@given(y=st.floats(-5, 5), mean=st.floats(-5, 5), log_var=st.floats(-4, 4), log_noise=st.floats(-3, 3))
def test_gaussian_is_the_product_of_gaussians(y, mean, log_var, log_noise):
    var, noise = 10.0**log_var, 10.0**log_noise
    t = Gaussian(noise).tilted(*arrays(y, mean, var))
    precision = 1.0 / var + 1.0 / noise
    np.testing.assert_allclose(t.log_mass, norm.logpdf(y, mean, np.sqrt(var + noise)), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(t.shrink * var, 1.0 / precision, rtol=1e-12)
    np.testing.assert_allclose(
        mean + var * t.slope,
        (mean / var + y / noise) / precision,
        rtol=1e-9,
        atol=1e-9 * (abs(mean) + abs(y)) + 1e-300,
    )
    np.testing.assert_allclose(t.curvature, 1.0 / (var + noise), rtol=1e-12)


def test_gaussian_expected_is_exact_for_quadratics():
    y, mean, var, noise = 0.7, -0.4, 2.5, 0.3
    x, w = np.polynomial.hermite_e.hermegauss(3)
    w = w / w.sum()
    f = mean + np.sqrt(var) * x
    e = Gaussian(noise).expected(*arrays(y, mean, var))
    np.testing.assert_allclose(e.value, w @ norm.logpdf(y, f, np.sqrt(noise)), rtol=1e-13)
    np.testing.assert_allclose(e.slope, w @ ((y - f) / noise), rtol=1e-13)
    np.testing.assert_allclose(e.curvature, -1.0 / noise)
    np.testing.assert_allclose(
        Gaussian(noise).log_prob(*arrays(y, mean)), norm.logpdf(y, mean, np.sqrt(noise))
    )
    assert not Gaussian(noise).third(*arrays(y, mean, var)).any()


# ------------------------------------------------------------------------- extremes and shapes


@binary
@settings(deadline=None, max_examples=60)
@given(
    y=labels,
    mean=st.floats(allow_nan=False, allow_infinity=False),
    var=st.floats(0.0, allow_nan=False, allow_infinity=False),
)
def test_never_nan_never_a_warning(likelihood, y, mean, var):
    with warnings.catch_warnings(), np.errstate(all="warn"):
        warnings.simplefilter("error")
        for a in everything(likelihood, *arrays(y, mean, var)):
            assert not np.isnan(a).any()


@binary
def test_finite_over_the_stated_range(likelihood):
    m = np.concatenate([[0.0], np.logspace(-6, 3, 40)])
    mean, var = (a.ravel() for a in np.meshgrid(np.concatenate([-m, m]), np.logspace(-12, 8, 81)))
    for y in (-1.0, 1.0):
        assert all(np.isfinite(a).all() for a in everything(likelihood, np.full(mean.size, y), mean, var))
        _, _, precision, shrink = tilted(likelihood, np.full(mean.size, y), mean, var)
        assert (precision >= 0.0).all()
        assert (shrink > 0.0).all()
        assert (shrink <= 1.0).all()
        _, slope, curvature = expected(likelihood, np.full(mean.size, y), mean, var)
        assert (curvature <= 0.0).all()
        assert (y * slope >= 0.0).all()


@binary
def test_shapes_broadcast(likelihood):
    y, mean, var = np.array([1.0, -1.0, 1.0]), np.array([[0.3], [2.0]]), np.float64(0.7)
    for a in (
        *expected(likelihood, y, mean, var),
        *tilted(likelihood, y, mean, var),
        likelihood.third(y, mean, var),
    ):
        assert a.shape == (2, 3)
        assert a.dtype == np.float64
    assert all(a.shape == (2, 3) for a in likelihood.derivatives(y, mean))
    assert likelihood.log_predict(mean, var).shape == (2, 1, 2)
    assert likelihood.log_classes(mean).shape == (2, 1, 2)


@binary
def test_no_data(likelihood):
    empty = np.empty(0)
    assert all(a.size == 0 for a in everything(likelihood, empty, empty, empty))


@binary
def test_each_datum_alone_is_the_same(likelihood):
    """Regimes and blocks partition the data; the answer of one does not depend on the others."""
    rng = np.random.default_rng(3)
    n = 3000
    y, mean = np.sign(rng.standard_normal(n)), rng.normal(0.0, 20.0, n)
    var = 10.0 ** rng.uniform(-6.0, 6.0, n)
    whole = everything(likelihood, y, mean, var)
    for i in (0, 1, 1499, n - 1):
        part = everything(likelihood, y[i : i + 1], mean[i : i + 1], var[i : i + 1])
        for a, b in zip(whole, part, strict=True):
            np.testing.assert_allclose(a[i : i + 1], b, rtol=1e-10, atol=1e-300)


# ------------------------------------------------------------------- quadrature


def test_records_are_values():
    assert Logit() == Logit()


def test_hermite_moments():
    for n in (6, 10, 32):
        x, w = hermite(n)
        assert abs(w @ x**10 - 945.0) < 1e-9
        np.testing.assert_allclose(x, -x[::-1], atol=1e-14)


def test_blocks_cover_once():
    covered = np.concatenate([np.arange(100_000)[b] for b in blocks(100_000, 37)])
    assert np.array_equal(covered, np.arange(100_000))
    assert list(blocks(0, 5)) == []


def test_flatten_broadcasts():
    shape, (a, b) = flatten(np.ones((2, 1)), [1, 2, 3])
    assert shape == (2, 3)
    assert a.shape == b.shape == (6,)


def test_normal_tail_moments_far_out():
    """kappa x -> 1, omega x² -> 1, (kappa² - omega) x⁴ -> 2 as x = -z -> infinity."""
    x = np.array([1e6, 1e20, 1e50])
    rho, kappa, omega, skew = tail(-x)
    np.testing.assert_allclose(rho, x, rtol=1e-11)
    for found, power, limit in ((kappa, 1, 1.0), (omega, 2, 1.0), (skew, 4, 2.0)):
        np.testing.assert_allclose(found * x**power, limit, rtol=1e-10)
