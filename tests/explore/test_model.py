"""Points, kernels, fits, pictures, decisions and the evidence of the page, each against another way to compute it."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from gpclass import GaussianProcessClassifier, bayes_decision
from gpclass.explore import files, keys, problems, steps
from gpclass.explore.fit import fit
from gpclass.explore.scene import occam, picture, scene
from gpclass.explore.state import (
    State,
    add_point,
    click,
    delete_point,
    dials,
    make_points,
    move_point,
    set_classes,
    set_kernel,
    set_theta,
)
from gpclass.kernels import RBF, ConstantKernel, kernel_names
from gpclass.likelihoods import Probit


def line(n=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 10.0, (n, 1))
    codes = np.arange(n) % 2
    return State(make_points(X, codes, view=[[0.0, 10.0]]), theta=(np.log(4.0), np.log(1.5)))


def plane(n_classes=2, n=18):
    rng = np.random.default_rng(1)
    labels = tuple(str(i) for i in range(n_classes))
    return State(make_points(rng.normal(size=(n, 2)), np.arange(n) % n_classes, labels=labels))


# ------------------------------------------------------------------------------------ points


def test_points_stay_in_the_view():
    state = move_point(add_point(line(), [4.0], 1), 8, [99.0])
    assert state.points.X[8, 0] == 10.0
    assert state.selected == 8
    assert np.isfinite(add_point(state, [np.nan], 0).points.X).all()


def test_records_do_not_change():
    state = line()
    before = state.points.X.copy()
    for action in (
        lambda: move_point(state, 0, [9.0]),
        lambda: delete_point(state),
        lambda: click(state, [5.0]),
    ):
        assert action() is not state
    np.testing.assert_array_equal(state.points.X, before)


def test_fewer_classes_take_their_points_along():
    state = set_classes(plane(4), 2)
    assert set(state.points.codes) == {0, 1}
    assert state.points.labels == ("0", "1")
    with pytest.raises(ValueError, match="two to 5"):
        set_classes(state, 6)


def test_a_csv_file_is_read_back_exactly():
    state = line()
    rows = [each.split(",") for each in files.to_csv(state).splitlines()]
    assert rows[0] == ["x", "class"]
    np.testing.assert_array_equal([float(x) for x, _ in rows[1:]], state.points.X[:, 0])


def test_keys_visit_every_point_from_left_to_right():
    state, seen = line(), []
    for _ in range(8):
        state = keys.press(state, "n")
        seen.append(state.points.X[state.selected, 0])
    assert seen == sorted(state.points.X[:, 0])
    assert keys.press(state, "p").points.X[keys.press(state, "p").selected, 0] == seen[-2]
    assert keys.press(state, "F7") is state


# ------------------------------------------------------------------------------------- model


@pytest.mark.parametrize("name", kernel_names())
@pytest.mark.parametrize("operator", ["alone", "plus", "times"])
def test_every_kernel_is_set_by_its_dials(name, operator):
    view = np.array([[0.0, 4.0], [10.0, 12.0]])
    points = make_points(np.empty((0, 2)), [], view=view, names=("a", "b"))
    state = State(points, name, operator, "rbf")
    found = dials(state)
    assert len(found) == len(state.theta)
    assert len({dial.name for dial in found}) == len(found)
    theta = np.array([0.5 * (dial.low + dial.high) for dial in found])
    np.testing.assert_allclose(set_theta(state, theta).kernel.theta, theta)


@pytest.mark.parametrize("method", ["laplace", "ep", "vi", "dirichlet"])
def test_the_picture_is_that_of_the_classifier(method):
    state = replace(line(), method=method)
    curves = picture(fit(state))
    kernel = ConstantKernel(4.0) * RBF(1.5)
    clf = GaussianProcessClassifier(kernel, inference=method, optimizer=None).fit(
        state.points.X, state.points.codes
    )
    np.testing.assert_allclose(curves.proba, clf.predict_proba(curves.sides[0][:, None]), rtol=1e-8)


def test_the_bands_are_those_of_the_latent_gaussian():
    state = line()
    curves = picture(fit(state))
    f, var = fit(state).clf.latent_mean_and_variance(curves.sides[0][:, None])
    high = f + norm.ppf(0.975) * np.sqrt(var)
    np.testing.assert_allclose(curves.latent[2][:, 0], high, atol=1e-8)
    np.testing.assert_allclose(curves.interval[1], ndtr(high), atol=1e-9)


def test_classes_without_points_have_no_probability():
    state = set_classes(line(), 4)
    proba = fit(state).proba(state.points.X)
    assert proba.shape == (8, 4)
    assert (proba[:, 2:] == 0.0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_one_class_is_told_in_a_sentence():
    state = State(make_points([[0.0], [1.0]], [1, 1]))
    assert scene(state).error.startswith("There are points of class 1 only: add points of two classes")


@pytest.mark.parametrize("state", [plane(2), plane(3)], ids=["two", "three"])
def test_a_map_has_a_row_for_each_value_of_the_second_column(state):
    maps = picture(fit(state))
    at = np.array([[maps.sides[0][3], maps.sides[1][-4]]])
    np.testing.assert_allclose(maps.proba[-4, 3], fit(state).proba(at)[0], atol=1e-10)


# --------------------------------------------------------------------------------- decisions


def test_the_boundary_is_where_expected_costs_are_equal():
    """If an error on class 1 costs four times as much, p(class 1) is 1/5 on the boundary."""
    state = replace(problems.start("interval").state, cost=4.0, costly=1)
    curves = picture(fit(state))
    assert curves.boundaries()
    p = fit(state).proba(np.array(curves.boundaries())[:, None])[:, 1]
    np.testing.assert_allclose(p, 0.2, atol=5e-3)  # between points of the grid
    proba = fit(state).proba(curves.sides[0][:, None])
    np.testing.assert_array_equal(curves.decision, bayes_decision(proba, [[0.0, 1.0], [4.0, 0.0]]))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_margins_agree_with_the_decision_and_its_reject_option(n_classes):
    state = replace(plane(n_classes), cost=3.0, costly=1, reject=0.4)
    maps = picture(fit(state))
    best = maps.margin.argmax(axis=-1)
    np.testing.assert_array_equal(np.where(best == n_classes, -1, best), maps.decision)
    assert (maps.decision == -1).any()
    assert ((maps.margin > 0).sum(axis=-1) == 1).all()


# ---------------------------------------------------------------------------------- evidence


def test_the_complexity_of_the_variational_bound_is_a_divergence():
    """KL(q || prior) of two Gaussians, from the posterior mean and covariance at the points."""
    state = replace(line(), method="vi")
    fitted = fit(state)
    parts = occam(fitted)
    K = (4.0 * RBF(1.5))(state.points.X) + 1e-10 * np.eye(8)
    mean, cov = fitted.clf.predict_latent(state.points.X, return_cov=True)
    inverse = np.linalg.inv(K)
    expected = 0.5 * (
        np.trace(inverse @ cov)
        + mean @ inverse @ mean
        - 8
        + np.linalg.slogdet(K)[1]
        - np.linalg.slogdet(cov)[1]
    )
    assert parts.complexity == pytest.approx(expected, rel=1e-4)
    # The fit of the bound is E[log p(y|f)], here by quadrature of the likelihood.
    y = np.where(state.points.codes == 1, 1.0, -1.0)
    assert parts.fit == pytest.approx(Probit().expected(y, mean, np.diag(cov)).value.sum(), abs=1e-5)


@pytest.mark.parametrize("method", ["laplace", "ep", "vi"])
@pytest.mark.parametrize("variance", [0.1, 10.0, 1e4])
def test_fit_and_complexity_have_their_signs(method, variance):
    """Probabilities are at most one and divergences at least zero, also for a variance of ten thousand."""
    state = set_theta(replace(problems.start("interval").state, method=method), np.log([variance, 18.0]))
    parts = occam(fit(state))
    assert parts.fit <= 1e-6
    assert parts.complexity >= 0.0


def test_the_fit_of_three_classes_is_near_that_of_the_bound():
    """For softmax by variational inference the two parts are those of the bound, whose complexity is not negative."""
    state = replace(plane(3), method="vi", likelihood="softmax")
    parts = occam(fit(state))
    assert parts.complexity > 0.0
    assert parts.fit > parts.evidence


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


# ------------------------------------------------------------------------- methods and others


def test_two_methods_are_compared():
    state = replace(problems.start("interval").state, method="laplace", other="ep")
    found = scene(state)
    assert found.error == ""
    assert found.words[0].startswith("Laplace and EP differ by at most 0.1")
    p, q = (each.picture.proba[:, 1] for each in (found, found.other))
    np.testing.assert_allclose(found.difference, p - q)


def test_an_impossible_second_method_leaves_the_first_one():
    state = replace(problems.start("clouds").state, likelihood="softmax", method="laplace", other="ep")
    found = scene(state)
    assert found.picture is not None
    assert found.other.picture is None
    assert "softmax has no closed tilted moments" in found.error


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


def test_the_oracle_knows_the_interval():
    oracle = problems.start("interval").oracle
    assert [oracle(np.array([x])) for x in (10.0, 40.0, 90.0)] == [1, 0, 1]


def test_draws_from_the_prior_have_its_moments():
    """Both classes are equally probable, and near points agree: P = 1/2 + arcsin(rho) / pi for probit margins."""
    base = set_theta(line(), [np.log(9.0), np.log(1.0)])
    agree, ones, pairs = 0, [], 0
    for seed in range(40):
        found = problems.draw(base, seed)
        X, codes = found.oracle.X[:, 0], found.oracle.codes
        ones.append(codes.mean())
        order = np.argsort(X)
        near = np.diff(X[order]) < 0.05
        agree += int((np.diff(codes[order])[near] == 0).sum())
        pairs += int(near.sum())
    assert np.mean(ones) == pytest.approx(0.5, abs=4 * np.std(ones) / np.sqrt(40))
    # Two labels of nearly the same f: latent correlation 9 / (9 + 1) after the noise of the probit.
    assert agree / pairs == pytest.approx(0.5 + np.arcsin(0.9) / np.pi, abs=0.03)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_draws_from_the_prior_have_all_classes(n_classes):
    found = problems.draw(plane(n_classes), 3)
    assert found.state.points.X.shape == (60, 2)
    assert len(set(found.oracle.codes)) == n_classes


# -------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("name", kernel_names())
@pytest.mark.parametrize("operator", ["alone", "times"])
def test_the_code_has_every_kernel_in_full_precision(name, operator):
    state = set_kernel(plane(), first=name, operator=operator, second="matern52")
    run(state)


@pytest.mark.filterwarnings("ignore:The chains have not mixed")
@pytest.mark.parametrize("method", ["laplace", "ep", "vi", "dirichlet", "mcmc"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.slow
def test_the_code_has_every_method(method, n_classes):
    if method == "mcmc":
        pytest.importorskip("arviz_stats")
    run(replace(plane(n_classes, 6), method=method, cost=2.5, integration="map"))


def run(state):
    """Run the code of a state as it is, but for the drawing, and compare the probabilities."""
    variables: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # few draws, as on the page
        exec(compile(files.python_code(state).partition("# Draw")[0], "explore.py", "exec"), variables)
    fitted, X = fit(state), state.points.X + 0.1
    np.testing.assert_allclose(variables["clf"].predict_proba(X), fitted.clf.predict_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(variables["clf"].predict(X), fitted.clf.predict(X))


def test_the_model_file_predicts_the_same(tmp_path):
    pytest.importorskip("safetensors")
    from gpclass import load

    state = plane(3)
    (tmp_path / "model.gpc").write_bytes(files.file_of(state, "gpc"))
    clf, X = load(tmp_path / "model.gpc"), state.points.X
    np.testing.assert_allclose(clf.predict_proba(X), fit(state).clf.predict_proba(X), rtol=1e-10)


def test_pictures_are_files_of_their_kind():
    pytest.importorskip("matplotlib")
    assert files.file_of(line(), "png").startswith(b"\x89PNG")
    assert b"<svg" in files.file_of(plane(), "svg")[:1000]
