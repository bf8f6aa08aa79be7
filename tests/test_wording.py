"""Sentences that compare two numbers stay true when the numbers are rounded."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gpclass.core.frequencies import no_better
from gpclass.evidence.check import judge
from gpclass.mcmc.chains import MAX_RHAT, MIN_ESS, Diagnostics
from gpclass.sampling import ImportanceEstimate
from gpclass.sampling.weigh import khat_limit


def numbers(pattern, sentence):
    return [float(text.rstrip(",")) for text in re.search(pattern, sentence).groups()]


@pytest.mark.parametrize("excess", [1e-9, 1e-5, 0.004, 0.2])
@pytest.mark.parametrize("n_samples", [500, 20_000])
def test_khat_and_its_limit(n_samples, excess):
    khat = khat_limit(n_samples) + excess
    found = ImportanceEstimate(-3.0, 0.1, khat, 300.0, n_samples)
    verdict = judge("Laplace", -3.0, found, 0.0, 0.0)
    shown, limit = numbers(r"khat = (\S+) is not below (\S+) the limit", verdict)
    assert shown > limit


@pytest.mark.parametrize("gap", [-1e-7, 1e-7, -0.001, 0.001])
def test_an_evidence_and_that_of_class_frequencies(gap):
    words = no_better(-123.456 + gap, -123.456, margin=1.0)
    shown, known = numbers(r"its log evidence, (\S+), is not (?:clearly )?above (\S+)", words)
    assert (shown > known) == ("clearly above" in words)


def test_r_hat_and_sample_sizes():
    def complain(rhat, ess):
        values = Diagnostics(*(np.array([value]) for value in (rhat, ess, ess, 0.1)))
        return numbers(r"R-hat is (\S+) .* size is (\S+) \(", values.complaint(4))

    assert complain(MAX_RHAT + 1e-6, 1e4)[0] > MAX_RHAT
    assert complain(1.0, 4 * MIN_ESS - 0.2)[1] < 4 * MIN_ESS
