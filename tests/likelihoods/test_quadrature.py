"""Gaussians tilted by p(y|f)^power: accuracy against mpmath, limits, identities, extremes."""

from __future__ import annotations

import warnings

import mpmath as mp
import numpy as np
import pytest
from gaussian import Gaussian
from hypothesis import given, settings
from hypothesis import strategies as st
from mp_rules import integrate, march
from scipy.stats import norm

from gpclass.core.protocols import Tilted
from gpclass.likelihoods import BinaryLikelihood, Logit, Probit

NAMES = ("log_mass", "slope", "curvature", "shrink")
RTOL, ATOL = 1e-9, 1e-10
POWERS = (0.1, 0.5, 0.9, 1.7)
CLASSES = [Logit(), Probit()]
binary = pytest.mark.parametrize("likelihood", CLASSES, ids=lambda v: type(v).__name__)
labels = st.sampled_from([-1.0, 1.0])
powers = st.one_of(st.floats(0.0, 2.0, exclude_max=True), st.sampled_from([0.0, 0.5, 2.0])).filter(
    lambda p: p != 1.0
)


def four(t: Tilted) -> tuple[np.ndarray, ...]:
    return tuple(getattr(t, name) for name in NAMES)


def arrays(*values: float) -> tuple[np.ndarray, ...]:
    return tuple(np.array([v]) for v in values)


# ----------------------------------------------------------------------------- against mpmath


def log_sigma(f: mp.mpf) -> tuple[mp.mpf, mp.mpf, mp.mpf]:
    """l, l' and -l'' of l = log sigma."""
    e = mp.exp(-abs(f))
    down = (e if f > 0 else 1) / (1 + e)
    return min(f, 0) - mp.log1p(e), down, e / (1 + e) ** 2


def log_Phi(f: mp.mpf) -> tuple[mp.mpf, mp.mpf, mp.mpf]:
    Q = mp.erfc(abs(f) / mp.sqrt(2)) / 2
    P = Q if f < 0 else 1 - Q
    rho = mp.exp(-f * f / 2) / (mp.sqrt(2 * mp.pi) * P)
    return mp.log1p(-Q) if f > 0 else mp.log(P), rho, rho * (f + rho)


def interval(probit: bool, z: mp.mpf, var: mp.mpf, power: mp.mpf) -> tuple[mp.mpf, mp.mpf, mp.mpf]:
    """Where 1 - p^power (z > 0) or p^power (z <= 0) times N(f | z, var) has its mass; the width there."""
    s = mp.sqrt(var)
    if not probit:  # exp(-f) moves the Gaussian by var towards 0
        centre = max(z - var, 0)
        return centre - 14 * s, centre + 14 * s, s
    # phi (z > 0) or phi^power moves and narrows it; on the other side of 0 it falls like exp(-|f z| / var).
    q2 = 1 / (1 + (1 if z > 0 else power) * var)
    low, high = (q2 * z + sign * 14 * s * mp.sqrt(q2) for sign in (-1, 1))
    tail = min(14 * s, 80 * var / max(abs(z), mp.mpf("1e-9")))
    if z > 0:
        return (min(low, -tail) if low < 0 else low), high, s * mp.sqrt(q2)
    return low, (max(high, tail) if high > 0 else high), s * mp.sqrt(q2)


def truth(probit: bool, z: float, var: float, power: float) -> tuple[mp.mpf, ...]:
    """log mass, slope, curvature and shrink at y = 1."""
    z, var, power = mp.mpf(z), mp.mpf(var), mp.mpf(power)
    if not probit and z < -power * var / 2:
        # sigma(f) = exp(f) sigma(-f), so Z(z) = exp(power z + power² var/2) Z(-z - power var).
        log_mass, slope, curvature, shrink = truth(probit, -z - power * var, var, power)
        return log_mass + power * z + power**2 * var / 2, power - slope, curvature, shrink
    low, high, s = interval(probit, z, var, power)
    wide = mp.sqrt(var)

    def width(f: mp.mpf) -> mp.mpf:
        return min(2 * (wide if (f < 0) == (z > 0) else s), mp.mpf(5) / 4 + abs(f) / 5)

    def g(f: mp.mpf) -> tuple[mp.mpf, ...]:
        l, first, second = log_Phi(f) if probit else log_sigma(f)
        N = mp.exp(-((f - z) ** 2) / (2 * var)) / mp.sqrt(2 * mp.pi * var)
        w = N * mp.exp(power * l)
        return -N * mp.expm1(power * l), w, w * power * first, w * (power * second - (power * first) ** 2)

    missing, mass, first, second = integrate(g, march(low, high, width), 18)
    mass = 1 - missing if z > 0 else mass
    slope = first / mass
    curvature = slope**2 + second / mass
    return (mp.log1p(-missing) if z > 0 else mp.log(mass)), slope, curvature, 1 - var * curvature


def points(n_random: int, seed: int) -> list[tuple[float, float, float]]:
    """(z, var, power): corners, the seams between the rules, and random points over the range."""
    rng = np.random.default_rng(seed)
    means = [-1000.0, -30.0, -2.0, 0.0, 0.5, 6.5, 1000.0]
    v = 10.0 ** rng.uniform(-3.0, 6.0, n_random)
    near, far = rng.normal(0.0, 5.0, n_random) * np.sqrt(v), -v * rng.uniform(-0.3, 2.5, n_random)
    z = np.clip(np.where(rng.random(n_random) < 0.5, near, far), -1e3, 1e3)
    grid = [(m, u) for u in (1e-8, 0.039, 0.49, 0.51, 60.0, 1500.0, 1e6) for m in means]
    grid += list(zip(z.tolist(), v.tolist(), strict=True))
    return [(m, u, POWERS[k % len(POWERS)]) for k, (m, u) in enumerate(grid)]


@binary
@pytest.mark.parametrize("share", [12, pytest.param(1, marks=pytest.mark.slow)])
def test_accuracy(likelihood, share) -> None:
    where = points(20, 5)[::share]
    z, var, power = np.array(where).T
    y = np.where(np.arange(z.size) % 2, 1.0, -1.0)
    log_mass, slope, curvature, shrink = four(likelihood.tilted(y, y * z, var, power))
    with mp.workdps(30):
        for row, at in zip(zip(log_mass, y * slope, curvature, shrink, strict=True), where, strict=True):
            for a, b, name in zip(row, truth(isinstance(likelihood, Probit), *at), NAMES, strict=True):
                assert abs(a - b) <= RTOL * abs(b) + ATOL, (name, at, a, mp.nstr(b, 17))


def test_truth_at_power_one_in_closed_form() -> None:
    """The quadrature of this file against Phi(z / √(1 + var)) (R&W, eq. 3.82)."""
    with mp.workdps(30):
        for z, var in ((-40.0, 7.0), (-3.0, 100.0), (2.0, 0.1), (9.0, 900.0)):
            q = 1 / mp.sqrt(1 + mp.mpf(var))
            l, rho, bend = log_Phi(z * q)
            for a, b in zip(
                truth(True, z, var, 1.0), (l, q * rho, q**2 * bend, 1 - var * q**2 * bend), strict=True
            ):
                assert abs(a - b) < 1e-15 * abs(b)


# ---------------------------------------------------------------------- identities and limits


def test_the_rule_at_power_one_is_the_closed_form_of_probit() -> None:
    z, var = (a.ravel() for a in np.meshgrid(np.linspace(-30.0, 30.0, 31), np.logspace(-4, 6, 21)))
    found, exact = BinaryLikelihood.tilted(Probit(), np.ones(z.size), z, var), Probit().tilted(1.0, z, var)
    for a, b in zip(four(found), four(exact), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


@binary
def test_continuous_at_power_one(likelihood) -> None:
    """Values at 1 ± h average to the value at 1 with an error of h²."""
    z, var = (a.ravel() for a in np.meshgrid(np.linspace(-30, 30, 25), np.logspace(-6, 6, 25)))
    y = np.ones(z.size)
    at = [four(likelihood.tilted(y, z, var, p)) for p in (0.999, 1.0, 1.001)]
    for below, one, above in zip(*at, strict=True):
        np.testing.assert_allclose(0.5 * (below + above), one, rtol=1e-4, atol=1e-11)
        assert (np.abs(below - one) <= 0.02 * np.abs(one) + 1e-11).all()


@binary
def test_small_powers_are_expectations(likelihood) -> None:
    """As power -> 0: log mass / power -> E[l], slope / power -> E[l'], curvature / power -> -E[l'']."""
    z, var = (a.ravel() for a in np.meshgrid(np.linspace(-20, 20, 21), np.logspace(-6, 1, 15)))
    y, power = np.where(np.arange(z.size) % 2, 1.0, -1.0), 1e-6
    t, e = likelihood.tilted(y, z, var, power), likelihood.expected(y, z, var)
    np.testing.assert_allclose(t.log_mass / power, e.value, rtol=2e-3, atol=1e-6)
    np.testing.assert_allclose(t.slope / power, e.slope, rtol=2e-3, atol=1e-9)
    np.testing.assert_allclose(t.curvature / power, -e.curvature, rtol=2e-3, atol=1e-9)
    nothing = likelihood.tilted(y, z, var, 0.0)
    for found, limit in zip(four(nothing), (0.0, 0.0, 0.0, 1.0), strict=True):
        np.testing.assert_allclose(found, limit, atol=1e-11)


@binary
@settings(deadline=None, max_examples=60)
@given(y=labels, mean=st.floats(-1e3, 1e3), log_var=st.floats(-8.0, 6.0), power=powers)
def test_symmetry_of_the_labels(likelihood, y, mean, log_var, power) -> None:
    y, mean, var = arrays(y, mean, 10.0**log_var)
    pairs = zip(
        four(likelihood.tilted(y, mean, var, power)),
        four(likelihood.tilted(-y, -mean, var, power)),
        strict=True,
    )
    for sign, (a, b) in zip((1, -1, 1, 1), pairs, strict=True):
        assert a == sign * b


@binary
@settings(deadline=None, max_examples=60)
@given(y=labels, mean=st.floats(-30.0, 30.0), log_var=st.floats(-3.0, 4.0), power=st.floats(0.05, 2.0))
def test_derivatives_by_differences(likelihood, y, mean, log_var, power) -> None:
    """Slope and curvature are the derivatives of the mass; shrink is 1 - var · curvature."""
    var = 10.0**log_var
    h = 1e-3 * min(1.0, np.sqrt(var) + 0.1)
    weights = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0
    at = mean + h * np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    mass, slope, curvature, shrink = four(likelihood.tilted(np.full(5, y), at, np.full(5, var), power))
    np.testing.assert_allclose(weights @ mass / h, slope[2], rtol=1e-7, atol=2e-11 * (1 + abs(mass[2])))
    np.testing.assert_allclose(
        -(weights @ slope) / h, curvature[2], rtol=1e-7, atol=2e-11 * (1 + abs(slope[2]))
    )
    np.testing.assert_allclose(shrink, 1.0 - var * curvature, rtol=1e-9, atol=1e-10)


@settings(deadline=None, max_examples=50)
@given(y=st.floats(-5, 5), mean=st.floats(-5, 5), log_var=st.floats(-4, 4), power=st.floats(0.01, 2.0))
def test_gaussian_closed_form(y, mean, log_var, power) -> None:
    """N(y | f, noise)^power = N(y | f, noise/power) · √(2 pi noise/power) / (2 pi noise)^(power/2)."""
    var, noise = 10.0**log_var, 0.3
    t = Gaussian(noise).tilted(*arrays(y, mean, var), power)
    total = var + noise / power
    constant = 0.5 * np.log(2 * np.pi * noise / power) - 0.5 * power * np.log(2 * np.pi * noise)
    truth = norm.logpdf(y, mean, np.sqrt(total)) + constant
    np.testing.assert_allclose(t.log_mass, truth, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(t.slope, (y - mean) / total, rtol=1e-12)
    np.testing.assert_allclose(t.curvature, 1.0 / total, rtol=1e-12)
    np.testing.assert_allclose(t.shrink * var, 1.0 / (1.0 / var + power / noise), rtol=1e-12)


# ------------------------------------------------------------------------- extremes and shapes


@binary
@settings(deadline=None, max_examples=60)
@given(
    y=labels,
    mean=st.floats(allow_nan=False, allow_infinity=False),
    var=st.floats(0.0, allow_nan=False, allow_infinity=False),
    power=powers,
)
def test_never_nan_never_a_warning(likelihood, y, mean, var, power) -> None:
    with warnings.catch_warnings(), np.errstate(all="warn"):
        warnings.simplefilter("error")
        t = likelihood.tilted(*arrays(y, mean, var), power)
    assert not any(np.isnan(a).any() for a in four(t))
    assert t.curvature >= 0.0
    assert 0.0 < t.shrink <= 1.0


@binary
@pytest.mark.parametrize("power", [1e-3, *POWERS, 2.0])
def test_bounds_over_the_stated_range(likelihood, power) -> None:
    m = np.concatenate([[0.0], np.logspace(-6, 3, 25)])
    mean, var = (a.ravel() for a in np.meshgrid(np.concatenate([-m, m]), np.logspace(-12, 8, 41)))
    t = likelihood.tilted(np.ones(mean.size), mean, var, power)
    assert all(np.isfinite(a).all() for a in four(t))
    assert (t.slope >= 0.0).all()
    assert (t.curvature >= 0.0).all()
    assert (t.shrink > 0.0).all()
    assert (t.shrink <= 1.0).all()


@binary
def test_zero_variance_is_the_point_itself(likelihood) -> None:
    f, y = np.linspace(-100.0, 100.0, 41), np.ones(41)
    l, l1, l2 = likelihood.derivatives(y, f)
    found = four(likelihood.tilted(y, f, np.zeros(41), 0.4))
    for a, b in zip(found, (0.4 * l, 0.4 * l1, -0.4 * l2, np.ones(41)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-300)


@binary
def test_shapes_broadcast(likelihood) -> None:
    y, mean, var = np.array([1.0, -1.0, 1.0]), np.array([[0.3], [2.0]]), np.float64(0.7)
    assert all(a.shape == (2, 3) for a in four(likelihood.tilted(y, mean, var, np.array([0.5, 1.0, 0.2]))))
    assert all(a.size == 0 for a in four(likelihood.tilted(*[np.empty(0)] * 4)))
