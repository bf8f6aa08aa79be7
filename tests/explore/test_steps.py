"""Learning, the surface of the evidence, chains and checks, each against another way to compute it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from explore_states import line

from gpclass import GaussianProcessClassifier
from gpclass.explore import problems, steps
from gpclass.explore.fit import fit
from gpclass.explore.state import (
    State,
    make_points,
    set_kernel,
)
from gpclass.kernels import RBF, ConstantKernel


def test_the_surface_is_the_evidence_at_each_point():
    state = line()
    found = next(each for each in steps.surface(state, (0, 1)) if each is not None)
    i, j = 2, 4
    kernel = ConstantKernel(np.exp(found.first[j])) * RBF(np.exp(found.second[i]))
    clf = GaussianProcessClassifier(kernel, inference="ep", optimizer=None).fit(
        state.points.X, state.points.codes
    )
    assert found.evidence[i, j] == pytest.approx(clf.log_marginal_likelihood_value_, abs=1e-6)
    with pytest.raises(ValueError, match="different"):
        next(steps.surface(state, (1, 1)))
    one = set_kernel(state, first="linear")
    with pytest.raises(ValueError, match="one hyperparameter"):
        next(steps.surface(one, (0, 1)))


def test_learning_ends_near_the_classifier_which_follows_other_starts_too():
    state = problems.start("moons").state
    path = [found.fit.evidence for found, _ in steps.learn(replace(state, method="laplace"))]
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
    assert last.lines.shape == (48, 201)
    assert np.abs(last.proba - fit(state).proba(np.linspace(0, 10, 201)[:, None])).max() < 0.06


def test_the_verdict_has_an_error_bar():
    state = line()
    found = steps.verdict(state)
    numbers = re.match(r"EP: log evidence (-\d+\.\d+), corrected (-\d+\.\d+) ± (\d+\.\d+)\. \w", found)
    evidence, corrected, error = map(float, numbers.groups())
    assert evidence == pytest.approx(fit(state).evidence, abs=0.005)
    assert abs(corrected - evidence) < 0.1
    assert 0.0 <= error < 0.1
    assert "Dirichlet" in steps.verdict(replace(state, method="dirichlet"))


def test_the_most_informative_place_is_far_from_points_by_information_and_between_classes_by_entropy():
    state = State(make_points([[2.0], [3.0]], [0, 1], view=[[0.0, 20.0]]), theta=(np.log(9.0), 0.0))
    place, words = steps.question(state, "bald")
    assert place[0] > 5.0
    assert "tell most about the latent function" in words
    assert steps.question(state, "entropy")[1].endswith(f"{np.log(2.0):.2f} nats.")
