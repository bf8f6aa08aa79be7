"""The classifier as its users meet it."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import exact_probit_evidence, two_moons_like
from scipy import integrate, stats
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier as Peer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpclass import GaussianProcessClassifier, bayes_decision
from gpclass.core import linalg
from gpclass.inference import Laplace
from gpclass.kernels import RBF, Columns, ConstantKernel, DotProduct, Matern, NeuralNetwork, WhiteKernel
from gpclass.likelihoods import Probit

X, y = two_moons_like(60)
Z = two_moons_like(11, seed=5)[0]
KERNEL = 2.0 * RBF([0.8, 1.5])


SCIKIT_LEARNS = {"inference": "laplace", "likelihood": "logit"}  # what its class does


def fixed(**options):
    return GaussianProcessClassifier(KERNEL, optimizer=None, **{**SCIKIT_LEARNS, **options})


def test_scikit_learns_arguments_attributes_and_methods_are_a_subset():
    peer, ours = Peer(KERNEL).fit(X, y), GaussianProcessClassifier(KERNEL).fit(X, y)
    assert set(peer.get_params()) <= set(ours.get_params())
    public = {name for name in dir(peer) if not name.startswith("_")}
    assert public <= set(dir(ours)), public - set(dir(ours))
    for name, value in Peer().get_params().items():
        if name != "multi_class":  # ours is one model of all classes
            assert GaussianProcessClassifier().get_params()[name] == value, name


def test_learning_ends_where_scikit_learn_ends():
    peer, ours = Peer(KERNEL).fit(X, y), GaussianProcessClassifier(KERNEL, **SCIKIT_LEARNS).fit(X, y)
    assert ours.log_marginal_likelihood_value_ >= peer.log_marginal_likelihood_value_ - 1e-6
    assert_allclose(ours.kernel_.theta, peer.kernel_.theta, atol=1e-2)
    # scikit-learn's probabilities carry the 1e-4 of its five error functions.
    assert_allclose(ours.predict_proba(Z), peer.predict_proba(Z), atol=5e-3)


@pytest.mark.parametrize("labels", [
    ("no", "yes"), (False, True), (-1, 1), (0, 1), (7, 3), (np.str_("a"), np.str_("b")),
])  # fmt: skip
def test_any_labels(labels):
    named = np.array(labels)[(y > 0).astype(int)]
    clf = fixed().fit(X, named)
    assert_array_equal(clf.classes_, np.unique(named))
    assert set(clf.predict(Z)) <= set(labels)
    column = list(clf.classes_).index(labels[1])
    assert_allclose(clf.predict_proba(Z)[:, column], fixed().fit(X, y).predict_proba(Z)[:, 1], rtol=1e-10)
    assert clf.score(X, named) > 0.8


def _average(link, mean, std):
    ends = mean - 12 * std, mean + 12 * std
    return integrate.quad(lambda f: link(f) * stats.norm.pdf(f, mean, std), *ends, epsabs=1e-13)[0]


def test_probability_is_the_average_of_the_link_over_the_latent():
    for likelihood, link in (("logit", expit), ("probit", stats.norm.cdf)):
        clf = fixed(likelihood=likelihood).fit(X, y)
        mean, std = clf.predict_latent(Z, return_std=True)
        truth = [_average(link, m, s) for m, s in zip(mean, std, strict=True)]
        assert_allclose(clf.predict_proba(Z)[:, 1], truth, rtol=1e-8)
        assert_allclose(np.exp(clf.predict_log_proba(Z)), clf.predict_proba(Z), rtol=1e-12)
        assert_allclose(clf.set_params(integration="map").predict_proba(Z)[:, 1], link(mean), rtol=1e-12)
        kappa = 1.0 / np.sqrt(1.0 + np.pi * std**2 / 8.0)
        mackay = clf.set_params(integration="mackay").predict_proba(Z)[:, 1]
        assert_allclose(mackay, link(kappa * mean) if likelihood == "logit" else truth, rtol=1e-9)
        drawn = clf.set_params(integration="monte_carlo").predict_proba(Z)
        assert np.abs(drawn[:, 1] - truth).max() < 5 * 0.5 / np.sqrt(4096)
        assert_allclose(drawn.sum(axis=1), 1.0, rtol=1e-12)
        assert_allclose(drawn[3:5], clf.predict_proba(Z[3:5]), rtol=1e-12)


def test_intervals_have_their_level():
    clf = fixed().fit(X, y)
    mean, std = clf.predict_latent(Z, return_std=True)
    low, high = clf.predict_interval(Z, level=0.8)
    draws = expit(mean[:, None] + std[:, None] * np.random.default_rng(0).standard_normal((len(Z), 40_000)))
    below = (draws < low[:, None]).mean(axis=1)
    above = (draws > high[:, None]).mean(axis=1)
    assert_allclose(below, 0.1, atol=0.01)
    assert_allclose(above, 0.1, atol=0.01)
    with pytest.raises(ValueError, match=r"level=1\.5"):
        clf.predict_interval(Z, level=1.5)


def test_the_three_forms_of_the_latent_agree():
    clf = fixed().fit(X, y)
    mean, std = clf.predict_latent(Z, return_std=True)
    assert_allclose(clf.predict_latent(Z), mean, rtol=1e-12)
    same, cov = clf.predict_latent(Z, return_cov=True)
    assert_allclose(same, mean, rtol=1e-9)
    assert_allclose(np.sqrt(cov.diagonal()), std, rtol=1e-9)
    assert_allclose(clf.latent_mean_and_variance(Z)[1], std**2, rtol=1e-12)
    draws = clf.sample_latent(Z, n_samples=20_000, random_state=0)
    assert_allclose(np.cov(draws), cov, atol=0.08 * cov.max())
    assert_array_equal(draws[:, :3], clf.sample_latent(Z, n_samples=20_000, random_state=0)[:, :3])
    with pytest.raises(ValueError, match="ask for one"):
        clf.predict_latent(Z, return_std=True, return_cov=True)


def test_weight_k_is_k_copies():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, size=len(X))
    copies = GaussianProcessClassifier().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    weighted = GaussianProcessClassifier().fit(X, y, sample_weight=counts)
    assert_allclose(weighted.kernel_.theta, copies.kernel_.theta, rtol=1e-12)
    assert_allclose(weighted.predict_proba(Z), copies.predict_proba(Z), rtol=1e-12)
    assert_allclose(
        weighted.log_marginal_likelihood_value_, copies.log_marginal_likelihood_value_, rtol=1e-12
    )
    # and really weighs: against scikit-learn on the copies, merged or not
    peer = Peer(KERNEL, optimizer=None).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    ours = fixed().fit(X, y, sample_weight=counts)
    assert_allclose(ours.log_marginal_likelihood_value_, peer.log_marginal_likelihood_value_, rtol=1e-9)


def test_copies_under_a_noisy_kernel_are_kept_apart():
    kernel = KERNEL + WhiteKernel(0.7)
    twice, labels = np.repeat(X[:20], 2, axis=0), np.repeat(y[:20], 2)
    peer = Peer(kernel, optimizer=None).fit(twice, labels)
    ours = GaussianProcessClassifier(kernel, optimizer=None, **SCIKIT_LEARNS).fit(twice, labels)
    assert_allclose(ours.log_marginal_likelihood_value_, peer.log_marginal_likelihood_value_, rtol=1e-9)


def test_class_weights_multiply_sample_weights():
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y))
    by_class = {-1.0: 3.0, 1.0: 0.5}
    both = fixed(class_weight=by_class).fit(X, y, sample_weight=weight)
    once = fixed().fit(X, y, sample_weight=weight * np.where(y > 0, 0.5, 3.0))
    assert_allclose(both.predict_proba(Z), once.predict_proba(Z), rtol=1e-10)
    assert fixed(class_weight="balanced").fit(X, y).predict_proba(Z).shape == (len(Z), 2)


def test_costs_move_the_decision_and_nothing_else():
    cost = [[0.0, 1.0], [9.0, 0.0]]
    plain, careful = fixed().fit(X, y), fixed(cost_matrix=cost).fit(X, y)
    p = plain.predict_proba(Z)
    assert_array_equal(careful.predict_proba(Z), p)
    assert_array_equal(careful.predict(Z), np.where(p[:, 1] >= 0.1, 1.0, -1.0))
    assert_array_equal(plain.predict(Z), plain.classes_[bayes_decision(p)])
    with pytest.raises(ValueError, match="cost matrix has shape"):
        fixed(cost_matrix=np.ones((3, 2))).fit(X, y)


def test_the_default_kernel_is_learned_and_knows_the_scale_of_the_columns():
    rng = np.random.default_rng(0)
    inputs = np.column_stack([1e4 * X[:, 0], 1e-3 * X[:, 1], rng.normal(size=len(X)), np.full(len(X), 3.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an irrelevant column at its bound is no news
        clf = GaussianProcessClassifier().fit(inputs, y)
    name = next(
        h.name for h in clf.kernel_.hyperparameters if h.name.endswith("length_scale") and not h.fixed
    )
    scales = clf.kernel_.get_params()[name] / inputs.std(axis=0).clip(1e-9)
    assert len(scales) == 4
    assert scales[2] > 1.5 * scales[:2].max()
    scaled = GaussianProcessClassifier().fit(inputs / [1e4, 1e-3, 1.0, 1.0], y)
    assert_allclose(clf.log_marginal_likelihood_value_, scaled.log_marginal_likelihood_value_, rtol=1e-4)
    assert (
        clf.log_marginal_likelihood_value_
        > GaussianProcessClassifier(optimizer=None).fit(inputs, y).log_marginal_likelihood_value_
    )


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_and_columns_by_name(frame):
    table = frame({"width": X[:, 0], "height": X[:, 1]})
    kernel = 2.0 * Columns(RBF(0.8), ["height"]) * Columns(Matern(1.5), "width")
    clf = GaussianProcessClassifier(kernel, optimizer=None).fit(table, y)
    assert_array_equal(clf.feature_names_in_, ["width", "height"])
    by_index = 2.0 * Columns(RBF(0.8), [1]) * Columns(Matern(1.5), 0)
    plain = GaussianProcessClassifier(by_index, optimizer=None).fit(X, y)
    assert_allclose(clf.predict_proba(frame({"width": Z[:, 0], "height": Z[:, 1]})), plain.predict_proba(Z))
    with pytest.raises(ValueError, match="names should match those that were passed during fit"):
        clf.predict(frame({"height": Z[:, 1], "width": Z[:, 0]}))
    with pytest.raises(ValueError, match="depth"):
        GaussianProcessClassifier(Columns(RBF(), "depth")).fit(table, y)


def test_structured_inputs():
    words = ["abba", "abc", "bbb", "cab", "aaa", "bca"]
    from sklearn.gaussian_process.tests._mini_sequence_kernel import MiniSeqKernel

    labels = np.array([1, 1, 0, 1, 1, 0])
    ours = GaussianProcessClassifier(MiniSeqKernel(), optimizer=None, **SCIKIT_LEARNS).fit(words, labels)
    peer = Peer(MiniSeqKernel(), optimizer=None).fit(words, labels)
    assert_allclose(ours.log_marginal_likelihood_value_, peer.log_marginal_likelihood_value_, rtol=1e-9)
    if hasattr(peer, "latent_mean_and_variance"):  # since scikit-learn 1.7
        mine, theirs = ours.latent_mean_and_variance(["ab"]), peer.latent_mean_and_variance(["ab"])
        assert_allclose(mine, theirs, rtol=1e-6)


def test_it_composes_with_scikit_learn():
    data, labels = make_classification(80, 4, random_state=0)
    pipeline = make_pipeline(StandardScaler(), GaussianProcessClassifier(1.0 * RBF(2.0), optimizer=None))
    assert cross_val_score(pipeline, data, labels, cv=3, scoring="neg_log_loss").mean() > -0.69
    grid = {"gaussianprocessclassifier__kernel__k2__length_scale": [0.01, 2.0]}
    search = GridSearchCV(pipeline, grid, cv=3, scoring="neg_log_loss").fit(data, labels)
    assert search.best_params_["gaussianprocessclassifier__kernel__k2__length_scale"] == 2.0
    clf = fixed().fit(X, y)
    assert_array_equal(pickle.loads(pickle.dumps(clf)).predict_proba(Z), clf.predict_proba(Z))
    assert not hasattr(clone(clf), "kernel_")
    assert clone(clf).get_params()["kernel"] == KERNEL


@pytest.mark.parametrize("routing", [False, True])
def test_metadata_routing(routing):
    weight = np.random.default_rng(0).uniform(0.1, 3.0, size=len(y))
    with config_context(enable_metadata_routing=routing):
        clf = fixed()
        if routing:
            pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False),
                                     clf.set_fit_request(sample_weight=True))  # fmt: skip
            pipeline.fit(X, y, sample_weight=weight)
        else:
            pipeline = make_pipeline(StandardScaler(), clf)
            pipeline.fit(X, y, gaussianprocessclassifier__sample_weight=weight)
    scaled = StandardScaler().fit_transform(X)
    assert_allclose(
        pipeline.predict_proba(X), fixed().fit(scaled, y, weight).predict_proba(scaled), rtol=1e-12
    )


def test_predictions_do_not_depend_on_the_batch():
    clf = fixed().fit(X, y)
    many = np.random.default_rng(0).normal(size=(1101, 2))
    p = clf.predict_proba(many)
    assert_allclose(
        np.vstack([clf.predict_proba(many[i : i + 100]) for i in range(0, 1101, 100)]), p, atol=1e-13
    )


def test_objects_in_place_of_names():
    clf = fixed(likelihood=Probit(), inference=Laplace(tol=1e-6)).fit(X, y)
    assert_allclose(clf.predict_proba(Z), fixed(likelihood="probit").fit(X, y).predict_proba(Z), atol=1e-6)


def test_a_warm_start_changes_nothing_but_the_work():
    clf = GaussianProcessClassifier(KERNEL, warm_start=True).fit(X, y)
    first = clf.log_marginal_likelihood_value_
    assert_allclose(clf.fit(X, y).log_marginal_likelihood_value_, first, rtol=1e-8)
    clf.fit(X[:30], y[:30])


def test_evidence_at_other_hyperparameters():
    clf = GaussianProcessClassifier(KERNEL, **SCIKIT_LEARNS).fit(X, y)
    peer = Peer(KERNEL, optimizer=None).fit(X, y)
    theta = np.array([0.3, -0.2, 0.4])
    value, gradient = clf.log_marginal_likelihood(theta, eval_gradient=True)
    theirs, their_gradient = peer.log_marginal_likelihood(theta, eval_gradient=True)
    assert_allclose(value, theirs, rtol=1e-9)
    assert_allclose(gradient, their_gradient, rtol=1e-5)
    before = clf.predict_proba(Z)
    clf.log_marginal_likelihood(theta, clone_kernel=False)
    assert_allclose(clf.kernel_.theta, theta)
    assert_array_equal(clf.predict_proba(Z), before)
    with pytest.raises(ValueError, match="Gradient can only be evaluated for theta"):
        clf.log_marginal_likelihood(eval_gradient=True)
    with pytest.raises(ValueError, match=r"theta has shape \(2,\), expected \(3,\)"):
        clf.log_marginal_likelihood(np.zeros(2))


def test_progress_is_shown_when_asked_for(capsys):
    GaussianProcessClassifier(KERNEL).fit(X, y)
    assert capsys.readouterr() == ("", "")
    GaussianProcessClassifier(KERNEL, verbose=1).fit(X, y)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "log evidence" in captured.err


BAD = [
    ({"kernel": "gaussian"}, "kernel='gaussian'"),
    ({"likelihood": "logistic"}, "likelihood='logistic'.*'logit'"),
    ({"inference": "la place"}, "inference='la place'"),
    ({"optimizer": "adam"}, "optimizer='adam'"),
    ({"integration": "simpson"}, "integration='simpson'"),
    ({"multi_class": "ovr"}, "multi_class='ovr'"),
    ({"hyperparameters": "guess"}, "hyperparameters='guess'"),
    ({"inducing": 1.5}, "inducing=1.5"),
    ({"n_restarts_optimizer": -1}, "n_restarts_optimizer=-1"),
    ({"max_iter_predict": 0}, "max_iter_predict=0"),
    ({"hyperprior": {"width": stats.norm()}}, "hyperprior names 'width'"),
    ({"hyperprior": {"length_scale": 3}}, "hyperprior\\['length_scale'\\] is 3"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=lambda v: str(v)[:30])
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        GaussianProcessClassifier(**{"kernel": KERNEL, **options}).fit(X, y)


def test_bad_data_is_named():
    hole = X.copy()
    hole[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"infinity .* in row 3, column 'b'"):
        fixed().fit(pd.DataFrame(np.nan_to_num(hole, nan=np.inf), columns=["a", "b"]), y)
    with pytest.raises(ValueError, match="NaN in row 3"):
        fixed().fit(X, y).predict(hole)
    with pytest.raises(ValueError, match="requires 2 or more distinct classes; got 1 class"):
        fixed().fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match=r"X has 1 features, but .* expecting 2"):
        fixed().fit(X, y).predict(Z[:, :1])
    with pytest.raises(NotFittedError):
        fixed().predict(Z)
    with pytest.raises(ValueError, match="Unknown label type"):
        fixed().fit(X, X[:, 0])
    for weight, message in (
        (np.ones(3), r"shape \(3,\), expected \(60,\)"),
        (np.where(y > 0, -1.0, 1.0), "is -1.0, expected a number from 0"),
        (np.where(y > 0, np.nan, 1.0), "is nan, expected a number from 0"),
        (np.zeros(60), "All sample weights are zero"),
        (np.where(y > 0, 0.0, 1.0), "got 1 class"),
    ):
        with pytest.raises(ValueError, match=message):
            fixed().fit(X, y, sample_weight=weight)


def test_a_kernel_that_is_none_is_named():
    class Crooked(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            return -super().__call__(X, Y, eval_gradient)

        def diag(self, X):
            return -np.ones(len(X))

    with pytest.raises(ValueError, match="negative eigenvalue"):
        GaussianProcessClassifier(50.0 * Crooked(3.0), optimizer=None).fit(X, y)
    huge = ConstantKernel(1e308) * ConstantKernel(1e308) * RBF()
    with pytest.raises(ValueError, match="not finite"), np.errstate(over="ignore"):
        GaussianProcessClassifier(huge, optimizer=None).fit(X, y)


def test_too_many_rows_are_refused_at_once():
    many = np.zeros((200_000, 2))
    many[:, 0] = np.arange(200_000)
    with pytest.raises(MemoryError, match=r"200,000 rows needs .* GB .* fit a subset of at most"):
        fixed(inducing=None).fit(many, many[:, 0] % 2)


def test_non_convergence_is_reported():
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 iterations"):
        fixed(max_iter_predict=1).fit(X, y)


@pytest.mark.parametrize("likelihood", ["logit", "probit"])
@pytest.mark.parametrize("integration", ["exact", "map", "mackay", "monte_carlo"])
def test_predictions_are_the_decisions_on_the_probabilities(likelihood, integration):
    clf = fixed(likelihood=likelihood, integration=integration, random_state=0).fit(X, y)
    grid = np.random.default_rng(0).normal(size=(60 if integration == "monte_carlo" else 1000, 2))
    assert_array_equal(clf.predict(grid), clf.classes_[bayes_decision(clf.predict_proba(grid))])


def test_a_valid_kernel_beyond_double_precision_is_no_end_of_learning():
    data, labels = load_breast_cancer(return_X_y=True)
    data, labels = StandardScaler().fit_transform(data)[::6], labels[::6]
    start = GaussianProcessClassifier(DotProduct() ** 2, optimizer=None).fit(data, labels)
    clf = GaussianProcessClassifier(DotProduct() ** 2).fit(data, labels)
    assert clf.log_marginal_likelihood_value_ > start.log_marginal_likelihood_value_ + 10.0


def test_constant_columns_do_not_matter():
    truth = GaussianProcessClassifier().fit(X, y).predict_proba(Z)
    for constant in (-0.7, 1000000.1, 0.0):
        wide = np.column_stack([X, np.full(len(X), constant)])
        clf = GaussianProcessClassifier().fit(wide, y)
        nudged = np.column_stack([Z, np.full(len(Z), constant + 1e-9)])
        assert np.abs(clf.predict_proba(nudged) - truth).max() < 0.05


def test_a_fit_that_fails_leaves_the_last_one():
    clf = fixed().fit(X, np.where(y > 0, "a", "b"))
    before = clf.predict(Z)
    with pytest.raises(ValueError, match="got 1 class"):
        clf.fit(X, np.full(len(X), "c"))
    with pytest.raises(ValueError, match="cost matrix"):
        clf.set_params(cost_matrix=np.ones((2, 3))).fit(X, np.where(y > 0, "c", "d"))
    assert_array_equal(clf.set_params(cost_matrix=None).predict(Z), before)
    fresh = fixed(cost_matrix=np.ones((2, 3)))
    with pytest.raises(ValueError, match="cost matrix"):
        fresh.fit(X, y)
    with pytest.raises(NotFittedError):
        fresh.predict(Z)


def test_intervals_of_several_classes_far_away():
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    clf = GaussianProcessClassifier(1e4 * RBF(1.0), optimizer=None, likelihood="probit").fit(X, labels)
    low, high = clf.predict_interval([[50.0, 50.0]])
    assert np.isfinite(low).all()
    assert ((low >= 0.0) & (low <= high) & (high <= 1.0)).all()
    with pytest.raises(ValueError, match="level=-1"):
        clf.predict_interval(Z, level=-1)


def test_columns_and_labels_that_are_no_numbers_are_named():
    frame = pd.DataFrame({"a": X[:, 0], "kind": ["red", "blue"] * (len(X) // 2)})
    with pytest.raises(ValueError, match="Column 'kind' of X has text"):
        fixed(categorical_features=None).fit(frame, y)
    mixed = np.array(["a", 1] * 30, dtype=object)
    with pytest.raises(ValueError, match="labels of the types int, str"):
        fixed().fit(X, mixed)
    with pytest.raises(ValueError, match=r"class_weight\[-1\.0\]=-1\.0 is not valid"):
        fixed(class_weight={-1.0: -1.0, 1.0: 1.0}).fit(X, y)
    with pytest.raises(ValueError, match="sample_weight cannot be read"):
        fixed().fit(X, y, sample_weight=["heavy"] * len(X))
    with pytest.raises(ValueError, match="cannot be read as a table"):
        fixed(cost_matrix="high").fit(X, y)
    with pytest.raises(ValueError, match=r"class Laplace, expected an object: Laplace\(\)"):
        fixed(inference=Laplace).fit(X, y)


def _probability_or_refusal(clf, inputs):
    try:
        return clf.predict_proba(inputs), ""
    except ValueError as refusal:
        return None, str(refusal)


def test_inputs_beyond_the_range_of_a_kernel_give_no_nan():
    far = np.full((1, 2), 1e200)
    for kernel in (Matern(1.0, nu=1.5), Matern(1.0, nu=2.5), NeuralNetwork(), RBF(), DotProduct()):
        clf = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
        with np.errstate(all="ignore"):
            p, refusal = _probability_or_refusal(clf, far)
        assert "no finite covariance at row 0" in refusal if p is None else ((p >= 0) & (p <= 1)).all()


def test_memory_for_all_classes_is_asked_for_at_once(monkeypatch):
    monkeypatch.setattr(linalg, "available_memory", lambda: 8.0 * 60**2 * 4.5)
    fixed().fit(X, y)
    with pytest.raises(MemoryError, match="60 rows needs"):
        fixed().fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))


def test_copies_are_merged_under_any_kernel_without_noise():
    twice, labels = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    for kernel in (DotProduct(), NeuralNetwork(), 1.0 * RBF()):
        clf = GaussianProcessClassifier(kernel, optimizer=None).fit(twice, labels)
        assert len(clf.base_estimator_.problem.y) == len(X)
        once = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y, sample_weight=np.full(len(X), 2))
        assert_array_equal(clf.predict_proba(Z), once.predict_proba(Z))


def test_the_check_of_the_approximation_finds_the_exact_evidence():
    few, labels = two_moons_like(6, seed=4)
    kernel = 9.0 * RBF(1.0)
    truth = exact_probit_evidence(kernel(few), labels)
    for inference in ("laplace", "ep", "vi"):
        options = {"inference": inference, "likelihood": "probit", "optimizer": None}
        check = (
            GaussianProcessClassifier(kernel, **options).fit(few, labels).check_approximation(random_state=0)
        )
        assert abs(check.corrected - truth) < 4.0 * check.standard_error + 1e-6
        assert check.evidence is not None
        assert inference[:2] in str(check).lower()
    several = GaussianProcessClassifier(kernel, optimizer=None, multi_class="one_vs_rest")
    several.fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    assert len(several.check_approximation(n_samples=200, random_state=0)) == 3
    with pytest.raises(NotFittedError):
        fixed().check_approximation()
