"""Learning, the surface of the evidence and checks, each against another way to compute it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from explore_states import line

from gpclass import GaussianProcessClassifier
from gpclass.explore import start, steps
from gpclass.explore.scene import draw_picture, fit
from gpclass.kernels import RBF, ConstantKernel


def test_the_surface_is_the_evidence_at_each_point():
    state = line()
    (found,) = (each for each in steps.surface(state) if each is not None)
    (first, second), evidence = found.sides, found.evidence
    i, j = 2, 4
    kernel = ConstantKernel(np.exp(first[j])) * RBF(np.exp(second[i]))
    clf = GaussianProcessClassifier(kernel, inference="vi", optimizer=None).fit(
        state.points.X, state.points.codes
    )
    assert evidence[i, j] == pytest.approx(clf.log_marginal_likelihood_value_, abs=2e-3)


def test_learning_ends_near_the_classifier_which_follows_other_starts_too():
    state = replace(start("moons"), family="rbf")
    path = [found.picture.evidence for found, _ in steps.learn(replace(state, method="laplace"))]
    kernel = state.kernel
    clf = GaussianProcessClassifier(kernel, inference="laplace").fit(state.points.X, state.points.codes)
    assert 0.0 <= clf.log_marginal_likelihood_value_ - path[-1] + 1e-3 < 0.5
    assert (np.diff(path) > 0).all()


def test_the_verdict_has_an_error_bar():
    state = line()
    (found,) = steps.verdicts(state)
    numbers = re.match(r"vi: corrected log evidence −(\d+\.\d+) ± (\d+\.\d+)\. \w", found)
    corrected, error = -float(numbers[1]), float(numbers[2])
    assert abs(corrected - fit(state)[0].log_marginal_likelihood_value_) < 0.1
    assert 0.0 <= error < 0.1
    assert "Dirichlet" in next(steps.verdicts(replace(state, method="dirichlet")))


def test_a_prediction_is_explained_by_the_points_that_change_it_most():
    state = line()
    picture = draw_picture(state)
    words, rows, shares = steps.reasons(picture, (5.0, 0.5))
    kernel, q = picture.clf.kernel_, picture.clf.posterior_
    terms = q.alpha.ravel() * kernel(np.array([[5.0]]), state.points.X)[0]
    np.testing.assert_array_equal(rows, np.argsort(-np.abs(terms))[: steps.N_ROWS])
    np.testing.assert_allclose(shares, terms[rows])
    assert words[0] == "x = 5"
    at_marker, *_ = steps.reasons(picture, state.points.markers[3])
    assert at_marker[0].startswith("Point 3, class 1: x = ")
    sampled = draw_picture(replace(state, method="mcmc"))
    assert "not a sum" in steps.reasons(sampled, (5.0, 0.5))[0][-1]
