"""Scores of active learning against dense integration, Monte Carlo and actual refits."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import entr, expit, log_expit, log_ndtr, ndtr
from scipy.stats import norm
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from gpclass import GaussianProcessClassifier, active
from gpclass.datasets import interval
from gpclass.kernels import RBF
from gpclass.likelihoods import Logit, Probit
from gpclass.mcmc import MCMC

SPLIT = interval()
KERNEL = 4.0 * RBF(10.0)
POOL = SPLIT.X_test[3::8]
LINKS = {"probit": (Probit(), ndtr, log_ndtr), "logit": (Logit(), expit, log_expit)}


def fit(X=SPLIT.X, y=SPLIT.y, **options):
    return GaussianProcessClassifier(**({"kernel": KERNEL, "optimizer": None} | options)).fit(X, y)


@pytest.fixture(scope="module")
def sampled():
    return fit(inference=MCMC(n_draws=500, thin=3), random_state=0)


def binary_entropy(f, log_link):
    a, b = log_link(f), log_link(-f)
    return -(np.exp(a) * a + np.exp(b) * b)


def label_entropy(clf, X):
    return entr(clf.predict_proba(X)).sum(axis=1)


SCORES = {"bald": active.bald, "entropy": label_entropy}


class TestBald:
    @pytest.mark.parametrize("name", ["probit", "logit"])
    def test_is_the_mutual_information(self, name):
        clf = fit(likelihood=name)
        _, link, log_link = LINKS[name]
        mean, std = clf.predict_latent(POOL, return_std=True)
        f = mean[:, None] + std[:, None] * np.linspace(-10, 10, 20001)
        weight = norm.pdf(np.linspace(-10, 10, 20001)) * 1e-3
        p = link(f) @ weight
        truth = entr(p) + entr(1 - p) - binary_entropy(f, log_link) @ weight
        assert_allclose(active.bald(clf, POOL), truth, atol=1e-4)

    def test_is_not_above_the_entropy_and_not_below_zero(self):
        clf = fit()
        score, whole = active.bald(clf, SPLIT.X_test), label_entropy(clf, SPLIT.X_test)
        assert ((score >= 0.0) & (score <= whole)).all()

    def test_sampled_posterior(self, sampled):
        p = ndtr(sampled.sample_latent(POOL, 50_000, random_state=1))
        mean = p.mean(axis=1)
        truth = entr(mean) + entr(1 - mean) - (entr(p) + entr(1 - p)).mean(axis=1)
        assert_allclose(active.bald(sampled, POOL), truth, atol=4e-3)

    def test_three_classes_by_many_draws(self):
        X, y = load_iris(return_X_y=True)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        clf = fit(X[::3], y[::3], kernel=4.0 * RBF(2.0), likelihood="softmax")
        rows = X[[1, 52, 70, 77, 110, 133]]
        rng = np.random.default_rng(0)
        score = active.bald(clf, rows)
        for i, row in enumerate(rows):
            mean, cov = clf.predict_latent([row], return_cov=True)
            raw = np.exp(rng.multivariate_normal(mean[0], cov[0], size=50_000))
            p = raw / raw.sum(axis=1, keepdims=True)
            truth = entr(p.mean(axis=0)).sum() - entr(p).sum(axis=1).mean()
            assert abs(score[i] - truth) < 4e-3

    def test_multiprobit_of_two_functions_is_the_probit(self):
        clf, two = fit(inference="ep"), fit(inference="ep", likelihood="multiprobit")
        # The difference f₁ - f₀ of two functions with noise e₁ - e₀ of variance 2 is the probit's f times √2.
        assert_allclose(active.bald(two, POOL), active.bald(clf, POOL), atol=3e-3)

    @pytest.mark.parametrize("multi_class", ["one_vs_rest", "one_vs_one"])
    def test_models_of_pairs_and_of_single_classes_are_refused(self, multi_class):
        X, y = load_iris(return_X_y=True)
        clf = fit(X[::5], y[::5], kernel=RBF(1.0), multi_class=multi_class)
        with pytest.raises(ValueError, match="has no joint model of its classes"):
            active.bald(clf, X[:2])
        assert len(active.query(clf, X[::7], n=3, score="entropy")) == 3


def test_entropy_takes_any_classifier():
    clf = LogisticRegression().fit(SPLIT.X, SPLIT.y)
    p = clf.predict_proba(POOL)
    chosen = active.query(clf, POOL, n=2, score="entropy")
    assert chosen.tolist() == np.argsort((p * np.log(p)).sum(axis=1), kind="stable")[:2].tolist()
    with pytest.raises(ValueError, match="has no joint model"):
        active.query(clf, POOL)


class TestQuery:
    def test_one_row_has_the_largest_score(self):
        clf = fit()
        for name, score in SCORES.items():
            best = np.argmax(score(clf, SPLIT.X_test))
            assert active.query(clf, SPLIT.X_test, score=name).tolist() == [best]
            assert active.query(clf, SPLIT.X_test, n=3, score=name)[0] == best

    def test_a_batch_is_diverse_and_distinct(self):
        clf = fit()
        top = np.argsort(-active.bald(clf, SPLIT.X_test))[:6]
        batch = active.query(clf, SPLIT.X_test, n=6)
        assert len(set(batch)) == 6
        assert np.ptp(SPLIT.X_test[top]) < 10.0 < np.ptp(SPLIT.X_test[batch])

    @pytest.mark.parametrize("score", ["bald", "entropy"])
    def test_second_row_is_the_best_given_the_label_of_the_first(self, score):
        """Refits with either label of the first row, weighted by its probability, judge the second."""
        clf = fit(inference="ep")
        X = SPLIT.X_test[::3]
        first, second = active.query(clf, X, n=2, score=score)
        worth = np.zeros(len(X))
        for c, p in enumerate(clf.predict_proba(X[[first]])[0]):
            refit = fit(np.vstack([SPLIT.X, X[first]]), np.append(SPLIT.y, c), inference="ep")
            worth += p * SCORES[score](refit, X)
        worth[first] = -np.inf
        assert worth[second] > 0.9 * worth.max()

    def test_batches_by_draws_agree_with_the_gaussian_ones(self, sampled):
        clf = fit(inference="ep")
        X = SPLIT.X_test[::3]
        mine = X[active.query(clf, X, n=2)].ravel()
        theirs = X[active.query(sampled, X, n=2, n_draws=10_000)].ravel()
        assert (np.abs(np.sort(mine) - np.sort(theirs)) <= 6.0).all()

    def test_three_classes(self):
        X, y = load_iris(return_X_y=True)
        clf = fit(X[::5], y[::5], kernel=4.0 * RBF(1.0), likelihood="softmax")
        assert len(set(active.query(clf, X, n=4, n_draws=500))) == 4

    def test_errors(self):
        clf = fit()
        with pytest.raises(ValueError, match="n=9 is not valid"):
            active.query(clf, POOL[:3], n=9)
        with pytest.raises(ValueError, match="score='luck' is not valid"):
            active.query(clf, POOL, score="luck")
