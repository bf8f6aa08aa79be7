"""Learning, the surface of the evidence, chains and checks, each against another way to compute it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from explore_states import line

from gpclass import GaussianProcessClassifier
from gpclass.explore import problems, steps
from gpclass.explore.scene import all_proba, fit
from gpclass.kernels import RBF, ConstantKernel


def test_the_surface_is_the_evidence_at_each_point():
    state = line()
    found = next(each for each in steps.surface(state) if not isinstance(each, float))
    i, j = 2, 4
    kernel = ConstantKernel(np.exp(found.first[j])) * RBF(np.exp(found.second[i]))
    clf = GaussianProcessClassifier(kernel, inference="ep", optimizer=None).fit(
        state.points.X, state.points.codes
    )
    assert found.evidence[i, j] == pytest.approx(clf.log_marginal_likelihood_value_, abs=1e-6)


def test_learning_ends_near_the_classifier_which_follows_other_starts_too():
    state = problems.start("moons")
    parts = [each for each in steps.learn(replace(state, method="laplace")) if not isinstance(each, float)]
    path = [found.picture.evidence for found, _ in parts]
    kernel = state.kernel
    clf = GaussianProcessClassifier(kernel, inference="laplace").fit(state.points.X, state.points.codes)
    assert 0.0 <= clf.log_marginal_likelihood_value_ - path[-1] + 1e-3 < 0.5
    assert (np.diff(path) > 0).all()


@pytest.mark.filterwarnings("ignore:The chains have not mixed")
@pytest.mark.slow
def test_chains_approach_the_posterior():
    """After many rounds the average is near MCMC with many draws, and EP, within their errors."""
    state = line()
    *_, last = steps.run_chains(state, chunks=12)
    assert last.n_draws == 480
    assert np.shape(last.lines) == (48, 201)
    exact = all_proba(state, fit(state)[0], np.linspace(0, 10, 201)[:, None])
    assert np.abs(last.proba - exact).max() < 0.06


def test_the_verdict_has_an_error_bar():
    state = line()
    (found,) = steps.verdicts(state)
    numbers = re.match(r"EP: corrected log evidence (-\d+\.\d+) ± (\d+\.\d+)\. \w", found)
    corrected, error = map(float, numbers.groups())
    assert abs(corrected - fit(state)[0].log_marginal_likelihood_value_) < 0.1
    assert 0.0 <= error < 0.1
    assert "Dirichlet" in next(steps.verdicts(replace(state, method="dirichlet")))
