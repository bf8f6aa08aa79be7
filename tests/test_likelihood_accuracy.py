"""Accuracy of the binary likelihoods against mpmath, over the whole range of means and variances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import mpmath as mp
import numpy as np
import pytest
from mp_rules import integrate, march

from gpclass.likelihoods import Logit, Probit
from gpclass.likelihoods.probit import tail

RTOL, ATOL = 1e-9, 1e-10


def logit_averages(mean: mp.mpf, var: mp.mpf, n: int = 20) -> list[mp.mpf]:
    """E of sigma(f), sigma(-f), sigma', sigma'' and log sigma(f)."""
    mean, var = mp.mpf(mean), mp.mpf(var)
    s, norm = mp.sqrt(var), 1 / mp.sqrt(2 * mp.pi * var)
    # exp(±f) moves the Gaussian by var towards 0, and no further than that does the mass move
    ends = sorted([mean, mean - mp.sign(mean) * min(var, abs(mean))])

    def width(f: mp.mpf) -> mp.mpf:
        return min(2 * s, max(mp.mpf(3) / 2, abs(f) / 4))

    def g(f: mp.mpf) -> tuple[mp.mpf, ...]:
        N, e = norm * mp.exp(-((f - mean) ** 2) / (2 * var)), mp.exp(-abs(f))
        big, small = 1 / (1 + e), e / (1 + e)
        up, down = (big, small) if f > 0 else (small, big)
        log_up = -mp.log1p(e) + min(f, 0)
        return N * up, N * down, N * up * down, N * up * down * (down - up), N * log_up

    return integrate(g, march(ends[0] - 13 * s, ends[1] + 13 * s, width), n)


def probit_averages(mean: mp.mpf, var: mp.mpf, n: int = 18) -> list[mp.mpf]:
    """E of log Phi, (log Phi)' and (log Phi)''."""
    mean, var = mp.mpf(mean), mp.mpf(var)
    s, norm, root2 = mp.sqrt(var), 1 / mp.sqrt(2 * mp.pi * var), mp.sqrt(2)
    # to the right the integrand is phi(f) N(f), a Gaussian: its centre and its width
    centre, narrow = mean / (1 + var), s / mp.sqrt(1 + var)
    low = mean - 13 * s
    if mean > 0:
        low = centre - 13 * narrow
        low = low if low > 0 else min(low, -min(13 * s, 70 * var / mean))
    high = centre + 13 * narrow if mean > 0 else min(mean + 13 * s, mp.mpf(13))

    def width(f: mp.mpf) -> mp.mpf:
        return min(2 * s, max(mp.mpf(5) / 4, -f / 4))

    def g(f: mp.mpf) -> tuple[mp.mpf, ...]:
        N = norm * mp.exp(-((f - mean) ** 2) / (2 * var))
        Q = mp.erfc(abs(f) / root2) / 2
        P = Q if f < 0 else 1 - Q
        rho = mp.exp(-f * f / 2) / (mp.sqrt(2 * mp.pi) * P)
        return N * (mp.log1p(-Q) if f > 0 else mp.log(P)), N * rho, -N * rho * (f + rho)

    return integrate(g, march(low, high, width), n)


def points(n_random: int, seed: int) -> list[tuple[float, float]]:
    """Corners, and random points over the range."""
    rng = np.random.default_rng(seed)
    means = [-1000.0, -30.0, -2.0, 0.0, 0.5, 6.5, 1000.0]
    variances = [1e-12, 0.039, 0.3, 0.97, 3.0, 60.0, 1500.0, 1e5, 1e8]
    grid = [(m, v) for v in variances for m in means] + [(-1000.0, 2000.1), (-499.0, 1000.0), (-60.0, 119.0)]
    grid += [(m, v) for v in (0.04, 0.161, 0.64, 10.0) for m in (-10.0, -1.0, 3.0, 10.0)]
    v = 10.0 ** rng.uniform(-3.0, 4.0, n_random)
    m = np.where(
        rng.random(n_random) < 0.6, -v * rng.uniform(-0.3, 2.5, n_random), rng.normal(0.0, 30.0, n_random)
    )
    return grid + list(zip(np.clip(m, -1e3, 1e3).tolist(), v.tolist(), strict=True))


LOGIT, PROBIT = points(97, 0), points(97, 1)
# Every sixteenth point always, all of them (a minute) when asked for.
SHARES = [16, pytest.param(1, marks=pytest.mark.slow)]


class LogitTruth(NamedTuple):
    where: list[tuple[float, float]]
    truth: dict[str, list[mp.mpf]]


class ProbitTruth(NamedTuple):
    where: list[tuple[float, float]]
    truth: list[list[mp.mpf]]


def assert_close(
    found: np.ndarray, truth: Sequence[mp.mpf], where: object, scale: Sequence[mp.mpf] = ()
) -> None:
    """Relative error below RTOL, or absolute error below ATOL."""
    assert len(found) == len(truth)
    assert np.isfinite(found).all()
    for a, b, c, at in zip(found.tolist(), truth, scale or truth, where, strict=True):
        assert abs(a - b) <= RTOL * abs(c) + ATOL, (at, a, mp.nstr(b, 17))


def columns(pairs: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    mean, var = np.array(pairs).T
    return mean, var


@pytest.fixture(scope="module", params=SHARES)
def logit(request: pytest.FixtureRequest) -> LogitTruth:
    where = LOGIT[:: request.param]
    names = ("up", "down", "first", "second", "value", "log_up", "log_down", "slope", "curvature", "shrink")
    truth: dict[str, list[mp.mpf]] = {name: [] for name in names}
    with mp.workdps(36):
        for mean, var in where:
            up, down, first, second, value = logit_averages(mean, var)
            log_up = mp.log(up) if up < 0.5 else mp.log1p(-down)
            log_down = mp.log(down) if down < 0.5 else mp.log1p(-up)
            slope, curvature = first / up, (first / up) ** 2 - second / up
            if curvature < slope**2 * mp.mpf(10) ** -18:
                # All digits cancelled. sigma(f) = exp(f) sigma(-f), so Z(m) = exp(m + v/2) Z(-m - v) and
                # log Z has the same curvature at -m - v, where it is plain.
                u, _, a, b, _ = logit_averages(-mp.mpf(mean) - mp.mpf(var), var)
                curvature = (a / u) ** 2 - b / u
            row = (up, down, first, second, value, log_up, log_down, slope, curvature, 1 - var * curvature)
            for name, entry in zip(names, row, strict=True):
                truth[name].append(entry)
    return LogitTruth(where, truth)


@pytest.fixture(scope="module", params=SHARES)
def probit(request: pytest.FixtureRequest) -> ProbitTruth:
    where = PROBIT[:: request.param]
    with mp.workdps(30):
        rows = [probit_averages(m, v) for m, v in where]
    return ProbitTruth(where, [list(column) for column in zip(*rows, strict=True)])


@pytest.mark.parametrize("y", [1.0, -1.0])
def test_logit_expected(logit: LogitTruth, y: float) -> None:
    mean, var = columns(logit.where)
    found = Logit().expected(np.full(mean.size, y), y * mean, var)
    assert_close(found.value, logit.truth["value"], logit.where)
    assert_close(y * found.slope, logit.truth["down"], logit.where)
    assert_close(-found.curvature, logit.truth["first"], logit.where)


@pytest.mark.parametrize("y", [1.0, -1.0])
@pytest.mark.parametrize("name", ["log_mass", "slope", "curvature", "shrink"])
def test_logit_tilted(logit: LogitTruth, y: float, name: str) -> None:
    mean, var = columns(logit.where)
    found = getattr(Logit().tilted(np.full(mean.size, y), y * mean, var), name)
    truth = logit.truth["log_up" if name == "log_mass" else name]
    assert_close(y * found if name == "slope" else found, truth, logit.where)


def test_logit_log_predict(logit: LogitTruth) -> None:
    found = Logit().log_predict(*columns(logit.where))
    assert_close(found[:, 0], logit.truth["log_down"], logit.where)
    assert_close(found[:, 1], logit.truth["log_up"], logit.where)


@pytest.mark.parametrize("y", [1.0, -1.0])
def test_probit_expected(probit: ProbitTruth, y: float) -> None:
    mean, var = columns(probit.where)
    found = Probit().expected(np.full(mean.size, y), y * mean, var)
    assert_close(found.value, probit.truth[0], probit.where)
    assert_close(y * found.slope, probit.truth[1], probit.where)
    assert_close(found.curvature, probit.truth[2], probit.where)


def normal_tail(z: mp.mpf) -> tuple[mp.mpf, ...]:
    """log Phi, rho, kappa = z + rho, omega = 1 - rho kappa, kappa² - omega, and Phi."""
    Q = mp.erfc(abs(z) / mp.sqrt(2)) / 2
    P = Q if z < 0 else 1 - Q
    rho = mp.exp(-z * z / 2) / (mp.sqrt(2 * mp.pi) * P)
    kappa = z + rho
    omega = 1 - rho * kappa
    return (mp.log1p(-Q) if z > 0 else mp.log(P)), rho, kappa, omega, kappa**2 - omega, P


def test_probit_tilted_and_prediction_in_closed_form() -> None:
    mean, var = columns(PROBIT)
    tilted = Probit().tilted(np.ones(mean.size), mean, var)
    rows = []
    with mp.workdps(60):
        for m, v in PROBIT:
            q = 1 / mp.sqrt(1 + mp.mpf(v))
            log_Phi, rho, kappa, *_ = normal_tail(m * q)
            rows.append((log_Phi, q * rho, q**2 * rho * kappa, 1 - v * q**2 * rho * kappa))
    log_mass, slope, curvature, shrink = (list(c) for c in zip(*rows, strict=True))
    for name, truth in {
        "log_mass": log_mass,
        "slope": slope,
        "curvature": curvature,
        "shrink": shrink,
    }.items():
        assert_close(getattr(tilted, name), truth, PROBIT)
    assert_close(Probit().log_predict(mean, var)[:, 1], log_mass, PROBIT)
    assert_close(Probit().log_predict(-mean, var)[:, 0], log_mass, PROBIT)


F = [s * f for f in (1e-9, 0.01, 0.7, 2.0, 3.9, 4.1, 9.0, 25.0, 37.0, 200.0, 1e3) for s in (-1.0, 1.0)]


@pytest.mark.parametrize("y", [1.0, -1.0])
def test_probit_pointwise(y: float) -> None:
    f, ys = np.array(F), np.full(len(F), y)
    with mp.workdps(60):
        truth = [normal_tail(mp.mpf(v)) for v in F]
        slope, curvature, third = (
            [t[1] for t in truth],
            [-t[1] * t[2] for t in truth],
            [t[1] * t[4] for t in truth],
        )
    value, first, second = Probit().derivatives(ys, y * f)
    assert_close(value, [t[0] for t in truth], F)
    assert_close(Probit().log_prob(ys, y * f), [t[0] for t in truth], F)
    assert_close(y * first, slope, F)
    assert_close(second, curvature, F)
    assert_close(y * Probit().third(ys, y * f, np.full(f.size, 2.0)), [2 * t for t in third], F)
    assert_close(Probit().link(f), [t[5] for t in truth], F)
    assert_close(Probit().log_classes(f)[:, 1], [t[0] for t in truth], F)
    assert_close(tail(f)[2], [t[3] for t in truth], F)


@pytest.mark.parametrize("y", [1.0, -1.0])
def test_logit_pointwise(y: float) -> None:
    f, ys = np.array(F), np.full(len(F), y)
    with mp.workdps(40):
        up = [1 / (1 + mp.exp(-mp.mpf(v))) for v in F]
        down = [1 / (1 + mp.exp(mp.mpf(v))) for v in F]
        log_up = [-mp.log1p(mp.exp(-mp.mpf(v))) for v in F]
        second = [-a * b for a, b in zip(up, down, strict=True)]
        third = [a * b * mp.tanh(mp.mpf(v) / 2) for a, b, v in zip(up, down, F, strict=True)]
    value, slope, curvature = Logit().derivatives(ys, y * f)
    assert_close(value, log_up, F)
    assert_close(Logit().log_prob(ys, y * f), log_up, F)
    assert_close(y * slope, down, F)
    assert_close(curvature, second, F)
    assert_close(y * Logit().third(ys, y * f, np.full(f.size, 2.0)), [2 * t for t in third], F)
    assert_close(Logit().link(f), up, F)
    assert_close(Logit().log_classes(f)[:, 1], log_up, F)
