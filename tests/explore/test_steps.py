"""Learning, the surface of the evidence and checks, each against another way to compute it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from explore_states import line

from gpclass import GaussianProcessClassifier
from gpclass.explore import start, steps
from gpclass.explore.scene import fit
from gpclass.kernels import RBF, ConstantKernel


def test_the_surface_is_the_evidence_at_each_point():
    state = line()
    (found,) = (each for each in steps.surface(state) if each is not None)
    first, second, evidence = found
    i, j = 2, 4
    kernel = ConstantKernel(np.exp(first[j])) * RBF(np.exp(second[i]))
    clf = GaussianProcessClassifier(kernel, inference="ep", optimizer=None).fit(
        state.points.X, state.points.codes
    )
    assert evidence[i, j] == pytest.approx(clf.log_marginal_likelihood_value_, abs=1e-6)


def test_learning_ends_near_the_classifier_which_follows_other_starts_too():
    state = start("moons")
    path = [found.picture.evidence for found, _ in steps.learn(replace(state, method="laplace"))]
    kernel = state.kernel
    clf = GaussianProcessClassifier(kernel, inference="laplace").fit(state.points.X, state.points.codes)
    assert 0.0 <= clf.log_marginal_likelihood_value_ - path[-1] + 1e-3 < 0.5
    assert (np.diff(path) > 0).all()


def test_the_verdict_has_an_error_bar():
    state = line()
    (found,) = steps.verdicts(state)
    numbers = re.match(r"ep: corrected log evidence (-\d+\.\d+) ± (\d+\.\d+)\. \w", found)
    corrected, error = map(float, numbers.groups())
    assert abs(corrected - fit(state)[0].log_marginal_likelihood_value_) < 0.1
    assert 0.0 <= error < 0.1
    assert "Dirichlet" in next(steps.verdicts(replace(state, method="dirichlet")))
