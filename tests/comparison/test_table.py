"""The table of a comparison: as text, as a data frame and as a picture; and what it says in words."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from problems import two_moons_like
from scipy.stats import ttest_rel
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, zero_one_loss

from gpclass.comparison import Comparison, ComparisonRow, compare, score
from gpclass.evidence.check import ApproximationCheck
from gpclass.inference import EP
from gpclass.kernels import RBF
from gpclass.plotting import ComparisonDisplay

X, Y = two_moons_like(60)
QUICK = {"kernel": 4.0 * RBF(1.5), "learn": False, "n_samples": 0, "random_state": 0}


@pytest.fixture(scope="module")
def result():
    methods = {"<GP>": "laplace", "hasty": EP(max_iter=1), "line": LogisticRegression()}
    return compare(X, Y, methods=methods, cv=3, **QUICK)


def test_best(result):
    for metric, pick in (("log_loss", min), ("error", min), ("evidence", max)):
        values = [getattr(row, metric) for row in result.rows if getattr(row, metric) is not None]
        assert getattr(result.best(metric), metric) == pick(values)
    with pytest.raises(ValueError, match="No method has a value for khat"):
        result.best("khat")
    with pytest.raises(ValueError, match="metric='loss' is not valid"):
        result.best("loss")
    with pytest.raises(KeyError, match="ep"):
        result["ep"]


def test_text_is_aligned_and_says_all(result):
    lines = str(result).splitlines()
    table = lines[2:6]
    cells = ["log evidence", *(f"{row.evidence:.3f}" for row in result.rows[:2]), "–"]
    ends = [line.index(cell) + len(cell) for line, cell in zip(table, cells, strict=True)]
    assert len(set(ends)) == 1, "numbers end below their headings"
    assert re.match(r"line +– +– +– +0\.\d{4} ± 0\.\d{4} ", table[3]), "no evidence is a dash, not zero"
    assert "<GP>    2**2 * RBF(length_scale=1.5)" in lines
    assert any(line.startswith("hasty   EP(") for line in lines), "its note"
    assert max(map(len, lines)) <= 110
    assert repr(result) == str(result)


def test_a_blank_line_ends_the_table():
    lines = str(compare(X, Y, methods="laplace", cv=None, **QUICK)).splitlines()
    assert lines[4:] == ["", "laplace  2**2 * RBF(length_scale=1.5)"]


def test_frame(result):
    frame = result.to_frame()
    assert list(frame.index) == ["<GP>", "hasty", "line"]
    assert frame.loc["line", "evidence"] is pd.NA
    assert frame["log_loss"].tolist() == [row.log_loss for row in result.rows]
    assert "did not converge" in frame.loc["hasty", "note"]


def test_picture(result):
    mpl = pytest.importorskip("matplotlib")
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    axes = ComparisonDisplay(result).plot().axes_
    assert len(axes) == 3
    assert [tick.get_text() for tick in axes[0].get_yticklabels()] == ["<GP>", "hasty", "line"]
    dots = [container[0].get_xdata()[0] for container in axes[0].containers]
    assert dots == [row.log_loss for row in result.rows]
    evidences = sorted(float(line.get_xdata()[0]) for line in axes[1].lines)
    assert evidences == sorted(row.evidence for row in result.rows[:2])
    _, own = plt.subplots(1, 3)
    assert ComparisonDisplay(result).plot(own).axes_ is own
    plt.close("all")


def test_progress(capsys):
    compare(X, Y, methods="laplace", cv=2, verbose=1, **QUICK)
    err = capsys.readouterr().err
    assert "comparing" in err
    assert "fold 2 of 2" in err
    compare(X, Y, methods="laplace", cv=2, **QUICK)
    assert capsys.readouterr().err == ""


# ---------------------------------------------------------------- results whose meaning is known beforehand

N = 400
RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 2, N)


def checked(khat=0.3, shift=0.01, n_samples=1000):
    numbers = (-10.0, 0.01, khat, 500.0, n_samples, shift, 0.001, shift)
    return ApproximationCheck("X", -10.0, f"A probability moves by {shift}.", *numbers)


def row(label, p, check=None, *, ours=True, seconds=1.0):
    """Return the row of a method that gives the true class the probabilities p."""
    proba = np.empty((N, 2))
    proba[np.arange(N), CODES], proba[np.arange(N), 1 - CODES] = p, 1.0 - p
    numbers = score(np.log(proba), CODES)
    estimator = SimpleNamespace(posterior_=None) if ours else SimpleNamespace()
    if check is not None:
        numbers |= {"evidence": check.evidence, "corrected_evidence": check.corrected}
        numbers |= {"standard_error": check.standard_error, "khat": check.khat, "check": check}
    extra = {"proba": proba, "estimator": estimator, "fit_seconds": seconds}
    return ComparisonRow(label, **extra, **numbers)


def comparison(*rows):
    return Comparison(rows, np.array([0, 1]), CODES, np.arange(N), None, N)


def text(*rows):
    return " ".join(comparison(*rows).findings)


def test_ties_are_those_of_a_paired_test():
    base = RNG.uniform(0.6, 0.95, N)
    noisy = np.clip(base * np.exp(RNG.normal(0.0, 0.5, N)), 0.02, 0.98)  # another mean, but far from sure
    steady = base * 0.95  # a small difference in every row
    result = comparison(row("base", base), row("noisy", noisy), row("steady", steady))
    for label, p in (("noisy", noisy), ("steady", steady)):
        t = ttest_rel(-np.log(p), -np.log(base)).statistic
        gap = np.mean(np.log(base) - np.log(p))
        assert (label in result.tied()) == (t <= 2.0 or gap <= 0.01)
    assert "steady" not in result.tied()


def test_calibration_in_bins_of_equally_many_rows():
    p = RNG.uniform(0.02, 0.98, N)
    one = row("one", p)
    probability, frequency = comparison(one).calibration("one")
    order = np.argsort(one.proba[:, 1])
    assert_allclose(probability, one.proba[order, 1].reshape(10, -1).mean(axis=1), atol=0.01)
    assert_allclose(frequency, CODES[order].reshape(10, -1).mean(axis=1), atol=0.03)


def test_the_limit_of_khat_depends_on_the_draws():
    assert not checked(khat=0.68, n_samples=1000).reliable  # 1 - 1/3
    assert checked(khat=0.68, n_samples=10_000).reliable  # 0.7
    assert checked(khat=None).reliable


def test_what_to_use():
    good, bad = np.full(N, 0.9), np.full(N, 0.6)
    slow, fast = row("slow", good, checked(), seconds=9.0), row("fast", good, checked(), seconds=1.0)
    assert comparison(slow, fast).findings == (
        "slow has the lowest log loss, 0.105, statistically indistinguishable from fast.",
        "Use fast: no method predicts significantly better.",
    )
    for doubtful in (checked(shift=0.2), checked(khat=0.9)):
        laplace = row("laplace", good, doubtful)
        assert comparison(laplace, slow).findings[1:] == (
            "Use slow: no method predicts significantly better.",
            "The approximation of laplace is doubtful; see the notes.",
        )
        found = text(laplace, row("vi", bad, checked()))
        assert "Compare laplace with MCMC before you rely on its probabilities." in found
    only = text(row("vi", bad, checked()), row("boosting", good, ours=False))
    assert "boosting has the lowest log loss, 0.105. Use boosting" in only


def test_the_loss_of_class_frequencies_is_their_entropy():
    share = CODES.mean()
    found = text(row("vi", np.full(N, 0.5)))
    chance = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert f"better than the class frequencies alone, whose log loss is {chance:.3f}" in found


def test_failures_are_named():
    failed = ComparisonRow("mcmc", note="failed with RuntimeError: no luck")
    assert text(row("vi", np.full(N, 0.9)), failed).endswith("mcmc failed; see the notes.")


# ------------------------------------------------------------ scores


def draws(n_classes: int, seed: int, n: int = 40):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n_classes), size=n)
    codes = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    return p, codes


@given(st.integers(2, 4), st.integers(0, 2**20))
@settings(deadline=None, max_examples=30)
def test_scores_are_those_of_scikit_learn(n_classes, seed):
    p, codes = draws(n_classes, seed)
    s = score(np.log(p), codes)
    assert_allclose(s["log_loss"], log_loss(codes, p, labels=range(n_classes)), rtol=1e-12)
    assert_allclose(s["error"], zero_one_loss(codes, p.argmax(axis=1)), atol=1e-12)
    each = [brier_score_loss(codes == c, p[:, c]) for c in range(n_classes)]
    assert_allclose(s["brier"], each[1] if n_classes == 2 else sum(each), rtol=1e-12)


def test_standard_error_of_folds_by_hand():
    p, codes = np.full((6, 2), 0.5), np.array([0, 1, 0, 1, 0, 1])
    p[2:4], fold = [0.25, 0.75], np.array([0, 0, 1, 1, 2, 2])
    means = [np.log(2), -0.5 * np.log(0.25 * 0.75), np.log(2)]
    s = score(np.log(p), codes, fold=fold)
    assert_allclose(s["log_loss_error"], np.std(means, ddof=1) / np.sqrt(3))
    losses = -np.log(p[np.arange(6), codes])
    assert_allclose(score(np.log(p), codes)["log_loss_error"], np.std(losses, ddof=1) / np.sqrt(6))
    assert score(np.log(p), codes, fold=np.zeros(6))["log_loss_error"] is None
