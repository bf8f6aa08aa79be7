"""What a comparison says in words, on results whose meaning is known beforehand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import ttest_rel

from gpclass.comparison import Comparison, ComparisonRow, score
from gpclass.evidence.check import ApproximationCheck

N = 400
RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 2, N)


def checked(khat=0.3, shift=0.01, n_samples=1000):
    numbers = (-10.0, -10.0, 0.01, khat, 500.0, n_samples, shift, 0.001, shift)
    return ApproximationCheck("X", *numbers, verdict=f"A probability moves by {shift}.")


def row(label, p, check=None, *, ours=True, seconds=1.0, likelihood="probit"):
    """Return the row of a method that gives the true class the probabilities p."""
    proba = np.empty((N, 2))
    proba[np.arange(N), CODES], proba[np.arange(N), 1 - CODES] = p, 1.0 - p
    numbers = score(np.log(proba), CODES)
    estimator = SimpleNamespace(posterior_=None) if ours else SimpleNamespace()
    if check is not None:
        numbers |= {"evidence": check.evidence, "corrected_evidence": check.corrected}
        numbers |= {"standard_error": check.standard_error, "khat": check.khat, "check": check}
    extra = {"proba": proba, "estimator": estimator, "fit_seconds": seconds, "likelihood": likelihood}
    return ComparisonRow(label, **extra, **numbers)


def comparison(*rows):
    return Comparison(rows, np.array([0, 1]), CODES, np.arange(N), None, N, len(rows))


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
    with pytest.raises(ValueError, match="metric='khat' is not possible"):
        result.tied("khat")


def test_best_is_marked_where_it_means_something_only():
    good, bad = np.full(N, 0.9), np.full(N, 0.6)
    result = comparison(row("good", good, checked()), row("bad", bad, checked(khat=0.9)))
    marks = result.marks()
    assert marks["good", "log_loss"] == "*"
    assert marks["bad", "khat"] == "!"
    assert ("bad", "log_loss") not in marks
    assert {name for _, name in marks} == {"log_loss", "error", "brier", "khat"}
    shown = str(result)
    assert "0.90!" in shown
    assert "0.1054 ± 0.0000*" in shown


def test_mcmc_judges_the_others():
    mcmc = row("mcmc", np.full(N, 0.9))
    mcmc.estimator.chains_ = None
    far, near = row("laplace", np.full(N, 0.8)), row("ep", np.full(N, 0.895))
    # The distance of (0.9, 0.1) and (0.8, 0.2) in total variation is 0.1.
    wanted = "Probabilities differ from those of mcmc on average: laplace by 0.100 and ep by 0.005."
    assert wanted in text(far, near, mcmc)


def test_every_check_is_reported():
    found = text(row("laplace", np.full(N, 0.8), checked(shift=0.2)), row("ep", np.full(N, 0.9), checked()))
    assert "laplace: A probability moves by 0.2. ep: A probability moves by 0.01." in found


def test_the_limit_of_khat_depends_on_the_draws():
    assert not checked(khat=0.68, n_samples=1000).reliable  # 1 - 1/3
    assert checked(khat=0.68, n_samples=10_000).reliable  # 0.7
    assert checked(khat=None).reliable


def test_what_to_use():
    good, bad = np.full(N, 0.9), np.full(N, 0.6)
    slow, fast = row("slow", good, checked(), seconds=9.0), row("fast", good, checked(), seconds=1.0)
    assert text(slow, fast).startswith("Use fast: no method predicts better by more than chance.")
    for doubtful in (checked(shift=0.2), checked(khat=0.9)):
        assert text(row("laplace", good, doubtful), slow).startswith("Use slow: no method predicts better")
        found = text(row("laplace", good, doubtful), row("vi", bad, checked()))
        assert found.startswith(
            "No method predicts better than laplace, but the approximation should be compared"
        )
    only = text(row("vi", bad, checked()), row("boosting", good, ours=False))
    assert only.startswith("Use boosting: no method predicts better by more than chance.")
    assert "The log loss is higher with vi by 0.405." in only
    assert "class frequencies" in text(row("vi", np.full(N, 0.5), checked()), row("ep", np.full(N, 0.49)))


def test_the_loss_of_class_frequencies_is_their_entropy():
    share = CODES.mean()
    found = text(row("vi", np.full(N, 0.5)))
    assert f"whose log loss is {-share * np.log(share) - (1 - share) * np.log(1 - share):.3f}" in found


def test_distances_within_each_likelihood():
    p = np.full(N, 0.9)
    assert "Probabilities differ from those of vi on average: ep by 0.005." in text(
        row("vi", p), row("ep", p - 0.005)
    )
    two = text(
        row("a", p), row("b", p), row("c", p - 0.2, likelihood="logit"), row("d", p - 0.3, likelihood="logit")
    )
    assert "differ from those of a on average: b by 0.000." in two
    assert "differ from those of c on average: d by 0.100." in two


def test_failures_are_named():
    failed = ComparisonRow("mcmc", note="failed with RuntimeError: no luck")
    assert text(row("vi", np.full(N, 0.9)), failed).startswith("mcmc failed; the notes say why.")
