"""Softmax and multinomial probit against quadrature, closed forms, Monte Carlo and central differences."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import dblquad
from scipy.special import log_ndtr, logsumexp, ndtr, softmax
from scipy.stats import multivariate_normal, norm

from gpclass.likelihoods import Logit, MultiProbit, Probit, Softmax
from gpclass.likelihoods.multiprobit import bivariate

BOTH = [Softmax(), MultiProbit()]
both = pytest.mark.parametrize("likelihood", BOTH, ids=lambda v: type(v).__name__)


def problem(seed, n, n_classes, scale=1.0, correlated=True):
    rng = np.random.default_rng(seed)
    mean = 1.5 * np.sqrt(scale) * rng.normal(size=(n, n_classes))
    A = rng.normal(size=(n, n_classes, n_classes)) * np.sqrt(scale / n_classes)
    cov = A @ A.transpose(0, 2, 1)
    if not correlated:
        cov = np.stack([np.diag(np.diag(c)) for c in cov])
    return mean, cov


def labels(seed, n, n_classes):
    rng = np.random.default_rng(seed)
    Y = rng.dirichlet(np.ones(n_classes), size=n) * rng.uniform(0.5, 3.0, size=(n, 1))
    Y[: n // 2] = np.eye(n_classes)[rng.integers(0, n_classes, n // 2)]
    return Y


def central(function, x, step=1e-5):
    """Central differences of a function of (n, C) arrays with (n, ...) values: one class at a time."""
    out = []
    for c in range(x.shape[1]):
        e = np.zeros(x.shape[1])
        e[c] = step
        out.append((function(x + e) - function(x - e)) / (2.0 * step))
    return np.stack(out, axis=-1)


def exact_multiprobit(d):
    """E[Π Phi(u + d_k)] by mpmath, as a logarithm."""
    with mpmath.workdps(30):
        u = np.linspace(0.0, 100.0, 10_001)
        peak = u[np.argmax(-0.5 * u * u + log_ndtr(u + np.array(d)[:, None]).sum(axis=0))]
        points = [peak + x for x in (-14, -8, -5, -3, -2, -1, 0, 1, 2, 3, 5, 8, 14)]

        def integrand(u):
            return mpmath.npdf(u) * mpmath.fprod(mpmath.ncdf(u + x) for x in d)

        return float(mpmath.log(mpmath.quad(integrand, points)))


# ------------------------------------------------------------------------- values and derivatives


def test_softmax_at_one_point():
    f = np.array([[0.3, -1.2, 2.0]])
    p = softmax(f[0])
    Y = np.array([[0.2, 0.5, 0.6]])
    value, slope, a = Softmax().derivatives(Y, f)
    assert value[0] == pytest.approx(Y[0] @ np.log(p), rel=1e-14)
    np.testing.assert_allclose(slope[0], Y[0] - 1.3 * p, rtol=1e-13)
    W = np.diag(a[0]) - np.outer(a[0], a[0]) / a[0].sum()
    np.testing.assert_allclose(W, 1.3 * (np.diag(p) - np.outer(p, p)), atol=1e-15)
    assert Softmax().log_prob(Y, f)[0] == value[0]


@both
def test_slopes_are_central_differences(likelihood):
    f, _ = problem(0, 12, 4, scale=4.0)
    Y = labels(1, 12, 4)
    slope = likelihood.derivatives(Y, f)[1]
    np.testing.assert_allclose(slope, central(lambda x: likelihood.log_prob(Y, x), f), rtol=1e-8, atol=1e-8)


def test_softmax_second_and_third_derivatives():
    f, cov = problem(2, 9, 5)
    Y = labels(3, 9, 5)
    likelihood = Softmax()
    a = likelihood.derivatives(Y, f)[2]
    W = np.einsum("nc,cd->ncd", a, np.eye(5)) - a[:, :, None] * a[:, None, :] / a.sum(axis=1)[:, None, None]
    hessian = central(lambda x: likelihood.derivatives(Y, x)[1], f)
    np.testing.assert_allclose(-W, hessian, atol=1e-9)

    def contracted(x):
        a = likelihood.derivatives(Y, x)[2]
        W = (
            np.einsum("nc,cd->ncd", a, np.eye(5))
            - a[:, :, None] * a[:, None, :] / a.sum(axis=1)[:, None, None]
        )
        return -np.einsum("ncd,ncd->n", W, cov)

    np.testing.assert_allclose(likelihood.third(Y, f, cov), central(contracted, f), atol=1e-8)


@pytest.mark.parametrize(
    "d", [(0.0, 0.0, 0.0), (1.0, -2.0), (-8.0, -7.5, 3.0), (-30.0, -30.0, -30.0, 2.0), (-60.0, 9.0)]
)
def test_multiprobit_against_mpmath(d):
    f = np.array([[0.0, *(-x for x in d)]])
    assert MultiProbit().log_classes(f)[0, 0] == pytest.approx(exact_multiprobit(d), rel=1e-10, abs=1e-12)


def test_multiprobit_of_equal_classes():
    for n_classes in (2, 3, 10, 40):
        p = np.exp(MultiProbit().log_classes(np.zeros((1, n_classes))))
        np.testing.assert_allclose(p, 1.0 / n_classes, rtol=1e-12)


# --------------------------------------------------------------------------- two and three classes


@settings(deadline=None, max_examples=30)
@given(d=st.floats(-50.0, 50.0), v=st.floats(-8.0, 4.0), share=st.floats(-1.0, 1.0))
def test_two_classes_are_logit_and_probit(d, v, share):
    var = np.array([1.0, 0.5]) * 10.0**v
    cross = share * np.sqrt(var.prod())
    mean, cov = np.array([[0.7, 0.7 + d]]), np.array([[[var[0], cross], [cross, var[1]]]])
    d, variance = mean[:, 1] - mean[:, 0], np.maximum(var.sum() - 2.0 * cross, 0.0)
    np.testing.assert_allclose(
        Softmax().log_predict(mean, cov), Logit().log_predict(d, variance), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(
        MultiProbit().log_predict(mean, cov),
        Probit().log_predict(d / np.sqrt(2.0), variance / 2.0),
        rtol=1e-9,
        atol=1e-12,
    )
    np.testing.assert_allclose(
        MultiProbit().log_classes(mean), Probit().log_classes(d / np.sqrt(2.0)), rtol=1e-10, atol=1e-12
    )


def softmax_by_sums(mean, cov, step=0.1):
    """Three classes: the trapezoidal rule on a fine square lattice in whitened differences."""
    B = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    values, V = np.linalg.eigh(B @ cov @ B.T)
    A = V * np.sqrt(np.maximum(values, 0.0))
    z = np.arange(-8.0, 8.0 + step / 2, step)
    w = norm.pdf(z) * step
    z1, z2 = np.meshgrid(z, z)
    d = (B @ mean)[:, None, None] + A[:, 0, None, None] * z1 + A[:, 1, None, None] * z2
    p = softmax(np.stack([d[0] + d[1], d[1], np.zeros_like(z1)]), axis=0)
    return np.einsum("cij,i,j->c", p, w, w)


@pytest.mark.parametrize("scale", [1e-6, 0.1, 1.0, 10.0, 100.0])
def test_softmax_of_three_classes(scale):
    mean, cov = problem(4, 6, 3, scale)
    cov[1] = np.outer(cov[1, 0], cov[1, 0]) / cov[1, 0, 0]  # of rank one
    cov[2] = np.diag(np.diag(cov[2]))
    cov[3] += 50.0  # shifts all classes together
    truth = [softmax_by_sums(m, c, min(0.1, 0.6 / np.sqrt(scale))) for m, c in zip(mean, cov, strict=True)]
    got = np.exp(Softmax().log_predict(mean, cov))
    V = np.diagonal(cov, axis1=1, axis2=2)
    V = V[:, :, None] + V[:, None, :] - 2.0 * cov  # variances of differences
    mild = (V.sum(axis=(1, 2))[:, None] <= 4.0 * V.sum(axis=2)).all(axis=1)  # as of independent classes
    assert mild.any()
    np.testing.assert_allclose(got[mild], np.array(truth)[mild], atol=2e-8)
    np.testing.assert_allclose(got, truth, atol=2e-4)


def test_softmax_of_three_classes_in_the_tail():
    # Far below, log E[p_c] is log E[exp(f_c - log Σ exp f)] ≈ log E[exp(f_0 - f_1)] with f_2 lower still.
    mean = np.array([[-40.0, 0.0, -60.0]])
    cov = np.diag([1.0, 2.0, 1.0])[None]
    assert Softmax().log_predict(mean, cov)[0, 0] == pytest.approx(-40.0 + 1.5, rel=1e-6)


def test_bivariate_against_scipy():
    rng = np.random.default_rng(5)
    for h, k, r in zip(*rng.normal(size=(2, 20)), rng.uniform(-0.999, 0.999, 20), strict=True):
        truth, _ = dblquad(
            lambda y, x, r=r: np.exp(-(x * x - 2 * r * x * y + y * y) / (2 * (1 - r * r))),
            -9.0, h, -9.0, k, epsabs=1e-11,
        ) if abs(r) < 0.9 else (None, None)  # fmt: skip
        if truth is None:
            truth = multivariate_normal.cdf([h, k], cov=[[1.0, r], [r, 1.0]])
        else:
            truth /= 2.0 * np.pi * np.sqrt(1.0 - r * r)
        assert bivariate(*np.array([[h], [k], [r]]))[0] == pytest.approx(truth, abs=1e-10)
    for h, k in ((0.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -2.0)):
        got = bivariate(np.array([h]), np.array([k]), np.array([0.0]))[0]
        assert got == pytest.approx(norm.cdf(h) * norm.cdf(k), abs=1e-15)


# ------------------------------------------------------------------------------ more classes


def independent_truth(likelihood, mean, var):
    """Independent classes: P(c is the largest), an integral over the largest of latent value plus noise."""
    s = np.sqrt(var)
    z = np.linspace(-9.0, 9.0, 401 if s.max() > 1.5 else 181)
    w = norm.pdf(z) * (z[1] - z[0])
    x = np.arange(-12.0 - 9.0 * s.max(), 45.0 + 9.0 * s.max(), 0.25) + mean.max()
    if isinstance(likelihood, MultiProbit):
        u = (x - mean[:, None]) / np.sqrt(1.0 + var)[:, None]
        H, h = ndtr(u), norm.pdf(u) / np.sqrt(1.0 + var)[:, None]
    else:
        e = np.exp(np.minimum(mean[:, None, None] + s[:, None, None] * z - x[:, None], 300.0))
        H, h = np.exp(-e) @ w, (e * np.exp(-e)) @ w
    others = np.stack([np.delete(H, c, axis=0).prod(axis=0) for c in range(len(mean))])
    return 0.25 * (h * others).sum(axis=1)


@both
@pytest.mark.parametrize("n_classes", [4, 10])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_independent_classes(likelihood, n_classes, scale):
    mean, cov = problem(6, 4, n_classes, scale, correlated=False)
    truth = [independent_truth(likelihood, m, np.diag(c)) for m, c in zip(mean, cov, strict=True)]
    np.testing.assert_allclose(np.exp(likelihood.log_predict(mean, cov)), truth, atol=1e-8)
    # So does a covariance that differs from it by what shifts all classes together.
    cov = cov + 3.0
    np.testing.assert_allclose(np.exp(likelihood.log_predict(mean, cov)), truth, atol=1e-8)


def monte_carlo(likelihood, mean, cov, n_draws=100_000):
    """Mean and standard error of the probabilities over plain draws."""
    rng = np.random.default_rng(7)
    values, V = np.linalg.eigh(cov)
    f = mean + rng.normal(size=(n_draws, len(mean))) @ (V * np.sqrt(np.maximum(values, 0.0))).T
    if isinstance(likelihood, MultiProbit):
        f = f + rng.normal(size=f.shape)
        p = np.equal(f, f.max(axis=1, keepdims=True)).astype(float)
    else:
        p = softmax(f, axis=1)
    return p.mean(axis=0), p.std(axis=0) / np.sqrt(n_draws)


@both
@pytest.mark.parametrize(("n_classes", "scale"), [(4, 1.0), (6, 4.0), (10, 1.0)])
def test_correlated_classes_against_monte_carlo(likelihood, n_classes, scale):
    mean, cov = problem(8, 3, n_classes, scale)
    p = np.exp(likelihood.log_predict(mean, cov))
    for row, m, c in zip(p, mean, cov, strict=True):
        truth, error = monte_carlo(likelihood, m, c)
        assert np.all(np.abs(row - truth) < 4.5 * error + 1e-3)


@both
@pytest.mark.parametrize(("size", "tolerance"), [(0.1, 1e-7), (0.2, 2e-6), (0.3, 1e-5), (1.0, 1e-3)])
def test_diagonal_plus_rank_one(likelihood, size, tolerance):
    # With cov = D + u uᵀ the classes are independent given one more normal variable.
    D = np.array([1.0, 0.5, 2.0, 0.8, 0.3])
    u = size * np.array([1.0, -1.0, 0.5, 0.2, -1.5])
    mean = np.array([0.6, 0.2, 0.0, -0.3, 0.4])
    z, w = np.polynomial.hermite_e.hermegauss(24)
    terms = [independent_truth(likelihood, mean + u * x, D) for x in z]
    truth = np.tensordot(w / w.sum(), terms, axes=1)
    got = np.exp(likelihood.log_predict(mean[None], (np.diag(D) + np.outer(u, u))[None]))[0]
    np.testing.assert_allclose(got, truth, atol=tolerance)


@both
def test_covariance_of_a_posterior(likelihood):
    # (I/k + diag(a) - a aᵀ/w)⁻¹, a prior and labels seen at one place, is of that form too.
    a = np.array([0.5, 0.2, 0.1, 0.3, 0.2])
    cov = np.linalg.inv(np.eye(5) / 2.0 + np.diag(a) - np.outer(a, a) / a.sum())
    D = 1.0 / (0.5 + a)
    u = D * a / np.sqrt(a.sum() - a @ (D * a))
    np.testing.assert_allclose(np.diag(D) + np.outer(u, u), cov, rtol=1e-12)
    mean = np.array([1.0, 0.0, 0.3, 0.0, -0.4])
    z, w = np.polynomial.hermite_e.hermegauss(24)
    terms = [independent_truth(likelihood, mean + u * x, D) for x in z]
    truth = np.tensordot(w / w.sum(), terms, axes=1)
    got = np.exp(likelihood.log_predict(mean[None], cov[None]))[0]
    np.testing.assert_allclose(got, truth, atol=1e-6)


@both
@pytest.mark.parametrize("low", [-8.0, -14.0, -40.0])
def test_small_probabilities_keep_their_logarithm(likelihood, low):
    # Class 0 far below four others, independent: the tail of the one-dimensional integral.
    mean, var = np.array([low, 0.0, 0.3, -0.2, 0.1]), np.array([1.0, 0.5, 1.0, 0.2, 0.4])
    truth = np.log(independent_truth(likelihood, mean, var))
    got = likelihood.log_predict(mean[None], np.diag(var)[None])[0]
    np.testing.assert_allclose(got[1:], truth[1:], atol=1e-8)
    if truth[0] > np.log(1e-9):
        assert got[0] == pytest.approx(truth[0], rel=0.01)
    else:  # an upper bound: the probability of beating one class
        assert truth[0] <= got[0] < np.log(1e-8)


# -------------------------------------------------------------------------------- invariances


@both
@pytest.mark.parametrize("n_classes", [3, 5])
def test_shift_and_permutation(likelihood, n_classes):
    mean, cov = problem(9, 5, n_classes, 0.5, correlated=False)
    cov += 0.02 * problem(10, 5, n_classes, 1.0)[1]
    order = np.random.default_rng(11).permutation(n_classes)
    p = np.exp(likelihood.log_predict(mean, cov))
    np.testing.assert_allclose(np.exp(likelihood.log_predict(mean + 7.5, cov + 2.0)), p, atol=1e-7)
    permuted = np.exp(likelihood.log_predict(mean[:, order], cov[:, order][:, :, order]))
    np.testing.assert_allclose(permuted, p[:, order], atol=1e-7)
    np.testing.assert_allclose(likelihood.log_classes(mean + 3.0), likelihood.log_classes(mean), atol=1e-13)
    np.testing.assert_allclose(
        likelihood.log_classes(mean[:, order]), likelihood.log_classes(mean)[:, order], atol=1e-13
    )


@both
def test_rows_do_not_know_one_another(likelihood):
    mean, cov = problem(12, 7, 5, 2.0)
    whole = likelihood.log_predict(mean, cov)
    parts = np.concatenate([likelihood.log_predict(mean[i : i + 1], cov[i : i + 1]) for i in range(7)])
    np.testing.assert_allclose(whole, parts, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(whole, likelihood.log_predict(mean, cov))


@both
def test_leading_axes(likelihood):
    f = np.random.default_rng(13).normal(size=(3, 2, 6, 4))
    Y = labels(14, 6, 4)
    value, slope, _ = likelihood.derivatives(Y, f)
    assert value.shape == (3, 2, 6)
    np.testing.assert_allclose(slope[1, 0], likelihood.derivatives(Y, f[1, 0])[1], rtol=1e-13)
    np.testing.assert_allclose(value[2, 1], likelihood.log_prob(Y, f[2, 1]), rtol=1e-13)
    assert likelihood.log_classes(f).shape == f.shape


@both
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_extremes(likelihood, n_classes):
    rng = np.random.default_rng(15)
    f = rng.choice([-1e3, 0.0, 1e3, 30.0], size=(40, n_classes))
    Y = labels(16, 40, n_classes)
    out = [likelihood.log_classes(f), *likelihood.derivatives(Y, f)[:2]]
    for scale in (0.0, 1e-8, 1.0, 1e4):
        A = rng.normal(size=(40, n_classes, 1))
        cov = scale * A @ A.transpose(0, 2, 1)
        log_p = likelihood.log_predict(f, cov)
        np.testing.assert_allclose(logsumexp(log_p, axis=1), 0.0, atol=1e-12)
        out.append(log_p)
    for values in out:
        assert np.isfinite(values).all()
    assert (np.concatenate([o.ravel() for o in (out[0], *out[3:])]) <= 1e-15).all()


# ------------------------------------------------------------------------- independent averages


def expected(Y, mean, var):
    e = Softmax().expected(Y, mean, var)
    return e.value, e.slope, e.curvature


@both
def test_a_covariance_that_rounding_has_spoilt(likelihood):
    # Of rank one and huge: its smallest eigenvalues are rounding errors, some of them negative.
    u = np.array([[1.0, 1.1, -0.7, 0.3, 2.0]])
    for scale in (1e6, 1e12, 1e20):
        log_p = likelihood.log_predict(np.zeros((1, 5)), scale * u[:, :, None] * u[:, None, :])
        np.testing.assert_allclose(np.exp(log_p), [[0.0, 0.0, 0.5, 0.0, 0.5]], atol=2e-3)


@pytest.mark.parametrize("scale", [1e-6, 1e-2, 0.1, 1.0, 20.0, 400.0])
def test_expected_of_two_classes_is_logit(scale):
    rng = np.random.default_rng(17)
    mean, var = rng.normal(size=(30, 2)) * (1.0 + np.sqrt(scale)), scale * rng.uniform(0.2, 2.0, size=(30, 2))
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    truth = Logit().expected(y, mean[:, 1] - mean[:, 0], var.sum(axis=1))
    value, slope, curvature = expected(np.stack([y < 0, y > 0], axis=1), mean, var)
    np.testing.assert_allclose(value, truth.value, atol=1e-10)
    np.testing.assert_allclose(slope, np.stack([-truth.slope, truth.slope], axis=1), atol=1e-10)
    np.testing.assert_allclose(curvature, np.stack([truth.curvature] * 2, axis=1), atol=2e-10)


def test_expected_of_three_classes():
    mean, var = np.array([0.5, -1.0, 0.2]), np.array([0.7, 2.0, 0.1])
    z, w = np.polynomial.hermite_e.hermegauss(48)
    w = w / w.sum()
    f = np.stack(np.meshgrid(*(m + np.sqrt(v) * z for m, v in zip(mean, var, strict=True)), indexing="ij"))
    p = softmax(f, axis=0)

    def average(values):
        return np.einsum("...ijk,i,j,k->...", values, w, w, w)

    Y = np.array([0.5, 1.0, 0.5])
    value, slope, curvature = expected(Y[None], mean[None], var[None])
    assert value[0] == pytest.approx(Y @ average(np.log(p)), abs=1e-9)
    np.testing.assert_allclose(slope[0], Y - 2.0 * average(p), atol=1e-9)
    np.testing.assert_allclose(curvature[0], -2.0 * average(p * (1.0 - p)), atol=1e-9)


@pytest.mark.parametrize("scale", [1e-2, 0.15, 1.0, 30.0, 300.0])
def test_expected_is_consistent(scale):
    rng = np.random.default_rng(18)
    n_classes = 6
    mean = rng.normal(size=(10, n_classes)) * 2.0
    var = scale * np.exp(rng.normal(size=(10, n_classes)))
    Y = labels(19, 10, n_classes)
    _, slope, curvature = expected(Y, mean, var)
    step = 1e-3  # with the five-point formula the error is of the order of step⁴

    def differentiate(function, x):
        one, two = central(function, x, step), central(function, x, 2.0 * step)
        return (4.0 * one - two) / 3.0

    np.testing.assert_allclose(slope, differentiate(lambda m: expected(Y, m, var)[0], mean), atol=2e-9)
    second = differentiate(lambda m: expected(Y, m, var)[1], mean)
    np.testing.assert_allclose(curvature, np.diagonal(second, axis1=1, axis2=2), atol=2e-9)
    # The heat equation, in log var so that the step fits.
    by_var = differentiate(lambda u: expected(Y, mean, np.exp(u))[0], np.log(var)) / var
    np.testing.assert_allclose(curvature, 2.0 * by_var, atol=4e-9 / min(1.0, scale))


def test_expected_extremes():
    mean = np.array([[0.0, 500.0, -1e3], [1e3, 1e3, 0.0], [0.0, -200.0, 3.0]])
    var = np.array([[1e-8, 1e4, 1.0], [0.0, 0.0, 0.0], [100.0, 1.0, 1e-3]])
    value, slope, curvature = expected(np.eye(3), mean, var)
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    assert np.isfinite(curvature).all()
    assert value[1] == pytest.approx(-np.log(2.0), abs=1e-10)
    np.testing.assert_allclose(slope.sum(axis=1), 0.0, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e6])
def test_a_step_has_the_diagonal_of_the_second_derivatives_of_the_expectation(n_classes, scale):
    mean, Y = problem(3, 12, n_classes)[0], labels(4, 12, n_classes)
    var = scale * np.random.default_rng(5).uniform(0.05, 4.0, size=(12, n_classes))
    e = Softmax().expected(Y, mean, var)
    sites = Softmax().ascent_sites(Y, mean, e.slope, e.curvature)
    for c in range(n_classes):
        np.testing.assert_allclose(sites.block(c, c), -e.curvature[:, c], rtol=1e-6)


def test_a_step_of_three_classes_has_the_second_derivatives_of_the_expectation():
    likelihood, mean, Y = Softmax(), problem(3, 12, 3)[0], labels(4, 12, 3)
    var = np.random.default_rng(5).uniform(0.05, 4.0, size=(12, 3))
    e = likelihood.expected(Y, mean, var)
    sites = likelihood.ascent_sites(Y, mean, e.slope, e.curvature)
    W = np.stack([[sites.block(c, d) for d in range(3)] for c in range(3)])
    truth = central(lambda m: likelihood.expected(Y, m, var).slope, mean)
    np.testing.assert_allclose(W.transpose(2, 0, 1), -truth.transpose(0, 2, 1), atol=1e-7)
