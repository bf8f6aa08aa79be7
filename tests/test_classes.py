"""Three classes and more in one model, against dense algebra, other routes and exact draws."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import dense_precision, exact_probit_evidence, margin_covariance, three_classes
from scipy.linalg import block_diag
from scipy.special import expit
from scipy.stats import multivariate_normal
from sklearn.base import clone

from gpclass import GaussianProcessClassifier
from gpclass.inference import EP, VI, Dirichlet, Laplace
from gpclass.kernels import RBF, CompoundKernel, ConstantKernel, Matern
from gpclass.likelihoods import MultiProbit, Softmax
from gpclass.mcmc import MCMC, EllipticalSlice
from gpclass.sampling import Rejection
from gpclass.sparse import Inducing

ROUTES = [
    ("laplace", "multiprobit"),
    ("ep", "multiprobit"),
    ("vi", "multiprobit"),
    ("laplace", "softmax"),
    ("vi", "softmax"),
]
TIGHT = {"laplace": Laplace(tol=1e-12), "ep": EP(tol=1e-11), "vi": VI(tol=1e-11)}
LIKELIHOODS = {"multiprobit": MultiProbit(), "softmax": Softmax()}
KERNELS = {
    "shared": 2.0 * RBF(1.3),
    "each": CompoundKernel([2.0 * RBF(1.3), ConstantKernel(0.7) * Matern(0.8, nu=2.5), 3.0 * RBF(2.0)]),
}


def fitted(X, y, inference="ep", likelihood="multiprobit", kernel=KERNELS["shared"], **options):
    inference = TIGHT.get(inference, inference) if isinstance(inference, str) else inference
    options = {"optimizer": None, "random_state": 0} | options
    return GaussianProcessClassifier(kernel, inference=inference, likelihood=likelihood, **options).fit(X, y)


def kernels_of(kernel, n_classes=3):
    return list(kernel.kernels) if isinstance(kernel, CompoundKernel) else [kernel] * n_classes


# ---------------------------------------------------------------------------------- gradients


@pytest.mark.parametrize(("inference", "likelihood"), ROUTES)
@pytest.mark.parametrize("which", KERNELS)
def test_gradients_of_the_evidence(inference, likelihood, which):
    X, y = three_classes(9, seed=3)
    clf = fitted(X, y, inference, likelihood, KERNELS[which])
    theta = clf.kernel_.theta + 0.1
    value, gradient = clf.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == clf.log_marginal_likelihood(theta)
    h = 1e-4
    for j, slope in enumerate(gradient):
        e = np.zeros_like(theta)
        e[j] = h
        at = [clf.log_marginal_likelihood(theta + k * e) for k in (-2, -1, 1, 2)]
        difference = (at[0] - 8.0 * at[1] + 8.0 * at[2] - at[3]) / (12.0 * h)
        assert_allclose(slope, difference, rtol=1e-6, atol=1e-6 * np.abs(gradient).max())


def test_gradient_with_weights():
    X, y = three_classes(15)
    clf = GaussianProcessClassifier(
        KERNELS["shared"], likelihood="softmax", inference=TIGHT["laplace"], optimizer=None
    ).fit(X, y, sample_weight=np.linspace(0.3, 2.0, 15))
    theta, h = clf.kernel_.theta, 1e-5
    _, gradient = clf.log_marginal_likelihood(theta, eval_gradient=True)
    for j, e in enumerate(np.eye(2) * h):
        pair = [clf.log_marginal_likelihood(theta + s * e) for s in (1, -1)]
        assert_allclose(gradient[j], (pair[0] - pair[1]) / (2 * h), rtol=1e-6)


def test_learning_ends_where_the_gradient_is_zero():
    X, y = three_classes(15, seed=5)
    for inference, likelihood in ROUTES:
        clf = fitted(X, y, inference, likelihood, optimizer="fmin_l_bfgs_b")
        start = clf.log_marginal_likelihood(KERNELS["shared"].theta)
        value, gradient = clf.log_marginal_likelihood(clf.kernel_.theta, eval_gradient=True)
        assert value > start
        assert np.abs(gradient).max() < 5e-2
        assert_allclose(value, clf.log_marginal_likelihood_value_, atol=1e-8)


# ------------------------------------------------------------------------------- two classes


class TestTwoClasses:
    X, y = three_classes(20, n_classes=2, seed=2)

    def test_softmax_is_logit_with_twice_the_kernel(self):
        two = fitted(self.X, self.y, "laplace", "softmax", 2.0 * RBF(1.3))
        one = fitted(self.X, self.y, "laplace", "logit", 4.0 * RBF(1.3))
        assert_allclose(two.log_marginal_likelihood_value_, one.log_marginal_likelihood_value_, rtol=1e-10)
        shift = np.array([np.log(2.0), 0.0])
        a = two.log_marginal_likelihood(two.kernel_.theta, eval_gradient=True)[1]
        b = one.log_marginal_likelihood(two.kernel_.theta + shift, eval_gradient=True)[1]
        assert_allclose(a, b, rtol=1e-8)
        Z = three_classes(15, seed=9)[0]
        assert_allclose(two.predict_proba(Z), one.predict_proba(Z), atol=1e-8)
        f, s = one.predict_latent(Z, return_std=True)
        mean, cov = two.predict_latent(Z, return_cov=True)
        d = np.array([-1.0, 1.0])
        assert_allclose(mean @ d, f, atol=1e-8)
        assert_allclose(np.einsum("c,icd,d->i", d, cov, d), s**2, atol=1e-8)

    def test_ep_does_not_mind_the_noise(self):
        # Matched moments of f + e are matched moments of f, and Phi((f_1 - f_0) / √2) is Phi(f) with K.
        two = fitted(self.X, self.y, "ep", "multiprobit")
        one = fitted(self.X, self.y, "ep", "probit")
        assert_allclose(two.log_marginal_likelihood_value_, one.log_marginal_likelihood_value_, atol=1e-8)
        Z = three_classes(15, seed=9)[0]
        assert_allclose(two.predict_proba(Z), one.predict_proba(Z), atol=1e-7)

    def test_exact_evidence(self):
        X, y = self.X[:6], self.y[:6]
        exact = exact_probit_evidence((2.0 * RBF(1.3))(X), np.where(y == 1, 1.0, -1.0))
        ep, vi = (fitted(X, y, m, "multiprobit").log_marginal_likelihood_value_ for m in ("ep", "vi"))
        assert vi <= exact + 1e-7
        assert abs(ep - exact) < 0.01

    def test_vi_of_softmax_with_two_classes_is_below_that_of_logit(self):
        # It has the same bound to maximise over fewer q: independent over the classes.
        two = fitted(self.X, self.y, "vi", "softmax", 2.0 * RBF(1.3))
        one = fitted(self.X, self.y, "vi", "logit", 4.0 * RBF(1.3))
        gap = one.log_marginal_likelihood_value_ - two.log_marginal_likelihood_value_
        assert 0.0 < gap < 1.0


# -------------------------------------------------------------------------- against the truth


def exact_draws(name, Ks, y, n_draws=4000, seed=0):
    """Return draws of f (draws, n, C) from the posterior, the log evidence and its standard error.

    The class is the argument of the largest f + noise, normal for the probit and Gumbel for softmax: all of
    that is simulated, and kept where it gives the labels.
    """
    rng, n = np.random.default_rng(seed), len(y)
    roots = [np.linalg.cholesky(K + 1e-12 * np.eye(n)) for K in Ks]
    noise = rng.standard_normal if name == "multiprobit" else rng.gumbel
    kept, tried = [], 0
    while sum(map(len, kept)) < n_draws:
        f = np.stack([rng.standard_normal((50_000, n)) @ L.T for L in roots], axis=2)
        kept.append(f[((f + noise(size=f.shape)).argmax(axis=2) == y).all(axis=1)])
        tried += len(f)
    f = np.concatenate(kept)
    return f, np.log(len(f) / tried), len(f) ** -0.5


class TestTruth:
    """A problem so small that the prior can be sampled until it agrees with the labels."""

    X = np.array([[0.0], [0.4], [1.1], [1.9], [3.0]])
    y = np.array([0, 0, 1, 2, 0])
    kernel = 3.0 * RBF(0.9)

    @pytest.fixture(scope="class", params=["multiprobit", "softmax"])
    @classmethod
    def exact(cls, request):
        f, evidence, error = exact_draws(request.param, [cls.kernel(cls.X)] * 3, cls.y)
        p = np.exp(LIKELIHOODS[request.param].log_classes(f)).mean(axis=0)
        return request.param, evidence, error, p

    def test_multiprobit_evidence_is_an_orthant_probability(self, exact):
        name, evidence, error, _ = exact
        if name != "multiprobit":
            pytest.skip("the other likelihood has no such form")
        # p(y | f, e_y) = Π Phi(g_k) = P(all g_k + noise > 0).
        S, _, _ = margin_covariance([self.kernel(self.X)] * 3, self.y)
        cov = S + np.eye(len(S))
        q = multivariate_normal(np.zeros(len(S)), cov, maxpts=400_000, abseps=1e-9, seed=0)
        truth = np.log(q.cdf(np.zeros(len(S))))
        assert abs(truth - evidence) < 4.0 * error
        for inference, low, high in (("laplace", -0.5, 0.0), ("ep", -0.03, 0.03), ("vi", -0.25, 0.0)):
            clf = fitted(self.X, self.y, inference, name, self.kernel)
            assert low < clf.log_marginal_likelihood_value_ - truth < high

    @pytest.mark.parametrize(
        ("inference", "gap", "shift"), [("laplace", 0.6, 0.2), ("ep", 0.06, 0.02), ("vi", 0.5, 0.05)]
    )
    def test_approximations_are_near(self, exact, inference, gap, shift):
        name, evidence, error, p = exact
        if (inference, name) == ("ep", "softmax"):
            pytest.skip("has no closed moments")
        clf = fitted(self.X, self.y, inference, name, self.kernel)
        off = clf.log_marginal_likelihood_value_ - evidence
        assert abs(off) < gap
        if inference == "vi":
            assert off < 3.0 * error  # it is a bound
        assert np.abs(clf.predict_proba(self.X) - p).max() < shift

    @pytest.mark.slow
    def test_chains_find_the_same(self, exact):
        pytest.importorskip("arviz_stats")
        name, _, _, p = exact
        n = 400 if name == "multiprobit" else 1500
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so few draws are not enough to be told so
            clf = fitted(self.X, self.y, MCMC(EllipticalSlice(), n_draws=n, n_warmup=100), name, self.kernel)
        assert_allclose(clf.predict_proba(self.X), p, atol=0.06)
        assert clf.chains_.f.shape == (4, n, 5, 3)
        check = clf.check_approximation(400 if name == "multiprobit" else 2000, 0)
        assert check.evidence is None
        assert check.largest_shift < 0.06

    @pytest.mark.slow
    def test_rejection_in_the_classifier(self, exact):
        name, evidence, _, p = exact
        clf = fitted(self.X, self.y, Rejection(n_draws=250), name, self.kernel)
        assert_allclose(clf.predict_proba(self.X), p, atol=0.06)
        assert_allclose(clf.log_marginal_likelihood_value_, evidence, atol=0.1)

    @pytest.mark.parametrize("inference", ["laplace", "ep", "vi"])
    def test_check_approximation_corrects_the_evidence(self, exact, inference):
        name, evidence, error, p = exact
        if (inference, name) == ("ep", "softmax"):
            pytest.skip("has no closed moments")
        clf = fitted(self.X, self.y, inference, name, self.kernel)
        check = clf.check_approximation(6000, random_state=0)
        assert check.khat < 0.7
        both = np.hypot(check.standard_error, error)
        assert abs(check.corrected - evidence) < 4.0 * both
        assert both < 0.1
        off = np.abs(clf.predict_proba(self.X) - p).max()
        assert abs(check.largest_shift - off) < 0.02 + 3.0 * check.shift_error
        assert "shift of p" in str(check)


def test_check_approximation_with_a_kernel_for_each_class():
    X, y = TestTruth.X, TestTruth.y
    kernel = CompoundKernel([3.0 * RBF(0.9), RBF(0.5), 2.0 * RBF(2.0)])
    _, evidence, error = exact_draws("softmax", [k(X) for k in kernel.kernels], y)
    check = fitted(X, y, "laplace", "softmax", kernel).check_approximation(6000, random_state=0)
    assert abs(check.corrected - evidence) < 4.0 * np.hypot(check.standard_error, error)


def test_check_approximation_refuses_what_is_too_large():
    X = np.random.default_rng(0).normal(size=(150, 2))
    with pytest.raises(ValueError, match="150 rows of 30 classes have 4500 latent values"):
        fitted(X, np.arange(150) % 30, Laplace(), "softmax").check_approximation()


@pytest.mark.slow
def test_check_approximation_counts_copies():
    X, y = three_classes(10)
    weight = np.arange(10) % 3 + 1
    for inference, likelihood in (("ep", "multiprobit"), ("laplace", "softmax")):
        a = fitted(X, y, inference, likelihood)
        a.fit(X, y, sample_weight=weight)
        b = fitted(np.repeat(X, weight, axis=0), np.repeat(y, weight), inference, likelihood)
        one, two = (c.check_approximation(4000, random_state=0) for c in (a, b))
        assert_allclose(one.corrected, two.corrected, atol=4.0 * one.standard_error + 1e-9)


# -------------------------------------------------------------------------------- identities


@pytest.mark.parametrize(("inference", "likelihood"), ROUTES)
class TestIdentities:
    X, y = three_classes(15, seed=1)
    Z = three_classes(12, seed=8)[0]

    def test_permuted_classes(self, inference, likelihood):
        order = np.array([2, 0, 1])
        a = fitted(self.X, self.y, inference, likelihood)
        b = fitted(self.X, order[self.y], inference, likelihood)
        assert_allclose(a.log_marginal_likelihood_value_, b.log_marginal_likelihood_value_, rtol=1e-8)
        assert_allclose(a.predict_proba(self.Z), b.predict_proba(self.Z)[:, order], atol=1e-6)

    @pytest.mark.slow
    def test_permuted_classes_with_a_kernel_each(self, inference, likelihood):
        order, kernels = np.array([2, 0, 1]), KERNELS["each"].kernels
        a = fitted(self.X, self.y, inference, likelihood, KERNELS["each"])
        other = CompoundKernel([kernels[k] for k in np.argsort(order)])
        b = fitted(self.X, order[self.y], inference, likelihood, other)
        assert_allclose(a.log_marginal_likelihood_value_, b.log_marginal_likelihood_value_, rtol=1e-8)
        assert_allclose(a.predict_proba(self.Z), b.predict_proba(self.Z)[:, order], atol=1e-6)

    def test_permuted_rows(self, inference, likelihood):
        order = np.random.default_rng(0).permutation(len(self.y))
        a = fitted(self.X, self.y, inference, likelihood)
        b = fitted(self.X[order], self.y[order], inference, likelihood)
        assert_allclose(a.log_marginal_likelihood_value_, b.log_marginal_likelihood_value_, rtol=1e-8)
        assert_allclose(a.predict_proba(self.Z), b.predict_proba(self.Z), atol=1e-6)
        assert_allclose(a.loo_proba_[order], b.loo_proba_, atol=1e-6)

    def test_equal_kernels_are_a_shared_one(self, inference, likelihood):
        a = fitted(self.X, self.y, inference, likelihood)
        b = fitted(self.X, self.y, inference, likelihood, CompoundKernel([KERNELS["shared"]] * 3))
        assert_allclose(a.log_marginal_likelihood_value_, b.log_marginal_likelihood_value_, rtol=1e-8)
        assert_allclose(a.predict_proba(self.Z), b.predict_proba(self.Z), atol=1e-7)
        slope = a.log_marginal_likelihood(a.kernel_.theta, eval_gradient=True)[1]
        each = b.log_marginal_likelihood(b.kernel_.theta, eval_gradient=True)[1]
        assert_allclose(each.reshape(3, 2).sum(axis=0), slope, atol=1e-5)

    def test_a_prior_of_no_variance_knows_nothing(self, inference, likelihood):
        clf = fitted(self.X, self.y, inference, likelihood, ConstantKernel(1e-10) * RBF(1.0))
        # The noise of a margin is in q too, so that what is left with the probit is the error in that.
        gap = {"laplace": 0.3, "ep": 0.05, "vi": 0.1}[inference] if likelihood == "multiprobit" else 1e-6
        assert_allclose(clf.log_marginal_likelihood_value_, -15.0 * np.log(3.0), atol=gap)
        assert_allclose(clf.predict_proba(self.Z), 1.0 / 3.0, atol=1e-6)

    def test_posterior_at_the_data(self, inference, likelihood):
        for kernel in KERNELS.values():
            model = fitted(self.X, self.y, inference, likelihood, kernel).base_estimator_
            n, sites = len(self.y), model.latent_sites
            K = block_diag(*[k(self.X) for k in kernels_of(kernel)])
            W = dense_precision(sites)
            cov = np.linalg.solve(np.eye(3 * n) + K @ W, K)
            mean, blocks = model.posterior.latent(self.X)
            assert_allclose(mean.T.ravel(), cov @ sites.nu.T.ravel(), atol=1e-5)
            assert_allclose(blocks, [cov[i::n, i::n] for i in range(n)], atol=1e-7)
            _, full = model.posterior.covariance(self.X)
            assert_allclose(full.transpose(1, 0, 3, 2).reshape(3 * n, 3 * n), cov, atol=1e-7)

    def test_leave_one_out(self, inference, likelihood):
        clf = fitted(self.X, self.y, inference, likelihood)
        keep = ~np.eye(len(self.y), dtype=bool)
        again = [
            fitted(self.X[keep[i]], self.y[keep[i]], inference, likelihood).predict_proba(self.X[i : i + 1])[
                0
            ]
            for i in range(4)
        ]
        assert np.abs(clf.loo_proba_[:4] - again).max() < 0.03
        own = clf.loo_proba_[np.arange(len(self.y)), self.y]
        assert_allclose(clf.loo_log_score_, np.log(own).mean())

    def test_warm_start_ends_where_a_cold_one_does(self, inference, likelihood):
        clf = fitted(self.X, self.y, inference, likelihood, warm_start=True)
        first = clf.log_marginal_likelihood_value_
        theta = clf.kernel_.theta
        cold = fitted(self.X, self.y, inference, likelihood, clf.kernel_.clone_with_theta(theta + 0.5))
        assert_allclose(
            clf.log_marginal_likelihood(theta + 0.5), cold.log_marginal_likelihood_value_, rtol=1e-8
        )
        assert_allclose(clf.fit(self.X, self.y).log_marginal_likelihood_value_, first, rtol=1e-8)


class TestWeights:
    X, y = three_classes(15, seed=4)
    times = np.arange(15) % 3 + 1

    @pytest.mark.parametrize(("inference", "likelihood"), ROUTES)
    def test_whole_numbers_are_copies(self, inference, likelihood):
        a = fitted(self.X, self.y, inference, likelihood)
        a.fit(self.X, self.y, sample_weight=self.times)
        X, y = np.repeat(self.X, self.times, axis=0), np.repeat(self.y, self.times)
        b = fitted(X, y, inference, likelihood)
        assert a.log_marginal_likelihood_value_ == b.log_marginal_likelihood_value_
        # A little noise, and nothing can be merged.
        c = fitted(X + 1e-9 * np.arange(len(y))[:, None], y, inference, likelihood)
        assert_allclose(a.log_marginal_likelihood_value_, c.log_marginal_likelihood_value_, rtol=1e-6)
        assert_allclose(a.predict_proba(self.X), c.predict_proba(self.X), atol=1e-5)
        assert_allclose(np.repeat(a.loo_proba_, self.times, axis=0), c.loo_proba_, atol=1e-4)

    def test_fractions_of_a_data_point_have_no_multinomial_probit(self):
        weight = np.linspace(0.2, 1.7, 15)
        clf = GaussianProcessClassifier(KERNELS["shared"], optimizer=None)
        with pytest.warns(UserWarning, match="the softmax likelihood is used"):
            clf.fit(self.X, self.y, sample_weight=weight)
        softmax = clone(clf).set_params(likelihood="softmax").fit(self.X, self.y, sample_weight=weight)
        assert_allclose(clf.predict_proba(self.X), softmax.predict_proba(self.X), atol=1e-10)

    def test_softmax_takes_them(self):
        weight = np.linspace(0.2, 1.7, 15)
        clf = GaussianProcessClassifier(KERNELS["shared"], likelihood="softmax", optimizer=None)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            half = clf.fit(self.X, self.y, sample_weight=weight).predict_proba(self.X)
        assert np.isfinite(half).all()


# ------------------------------------------------------------------------------ the classifier


class TestClassifier:
    X, y = three_classes(18, seed=6)
    Z = three_classes(9, seed=7)[0]

    @pytest.fixture(scope="class", params=ROUTES, ids="-".join)
    @classmethod
    def clf(cls, request):
        return fitted(cls.X, np.array(["x", "y", "z"])[cls.y], *request.param)

    def test_shapes(self, clf):
        assert list(clf.classes_) == ["x", "y", "z"]
        assert clf.predict_latent(self.Z).shape == (9, 3)
        mean, std = clf.predict_latent(self.Z, return_std=True)
        same, cov = clf.predict_latent(self.Z, return_cov=True)
        assert cov.shape == (9, 3, 3)
        assert_allclose(mean, same)
        assert_allclose(np.einsum("icc->ic", cov), std**2)
        assert (np.linalg.eigvalsh(cov) > -1e-9).all()

    def test_probabilities(self, clf):
        p = clf.predict_proba(self.Z)
        assert_allclose(p.sum(axis=1), 1.0)
        assert (clf.predict(self.Z) == clf.classes_[p.argmax(axis=1)]).all()
        draws = clf.sample_latent(self.Z, 4000, random_state=0)
        assert draws.shape == (9, 3, 4000)
        likelihood = clf.base_estimator_.likelihood
        each = np.exp(likelihood.log_classes(draws.transpose(2, 0, 1)))
        assert_allclose(p, each.mean(axis=0), atol=0.03)

    @pytest.mark.slow
    def test_routes_of_integration(self, clf):
        p = clf.predict_proba(self.Z)
        for route, tolerance in (("map", 0.25), ("mackay", 0.1), ("monte_carlo", 0.05)):
            other = clone(clf).set_params(integration=route).fit(self.X, self.y).predict_proba(self.Z)
            assert_allclose(other.sum(axis=1), 1.0, atol=1e-6)
            assert np.abs(other - p).max() < tolerance

    @pytest.mark.slow
    def test_intervals_contain_the_probabilities(self, clf):
        p = clf.predict_proba(self.Z)
        low, high = clf.predict_interval(self.Z, level=0.9)
        assert low.shape == high.shape == (9, 3)
        assert ((low < p) & (p < high)).mean() > 0.9
        wide = clf.predict_interval(self.Z, level=0.99)
        assert ((wide[0] <= low) & (high <= wide[1])).all()

    def test_draws_have_the_posterior_moments(self, clf):
        draws = clf.sample_latent(self.Z, 20_000, random_state=1)
        mean, cov = clf.predict_latent(self.Z, return_cov=True)
        assert_allclose(draws.mean(axis=2), mean, atol=0.06)
        away = draws - draws.mean(axis=2, keepdims=True)
        assert_allclose(np.einsum("ics,ids->icd", away, away) / 20_000, cov, atol=0.15)

    def test_pickle_and_clone(self, clf):
        again = pickle.loads(pickle.dumps(clf))
        assert (again.predict_proba(self.Z) == clf.predict_proba(self.Z)).all()
        fresh = clone(clf).fit(self.X, clf.classes_[self.y])
        assert (fresh.predict_proba(self.Z) == clf.predict_proba(self.Z)).all()

    def test_the_defaults_are_joint(self):
        clf = GaussianProcessClassifier().fit(self.X, self.y)
        assert type(clf.base_estimator_.likelihood) is MultiProbit
        assert clf.kernel_.n_dims >= 4  # a variance, two length scales, a bias
        assert clf.history_.evidence[-1] > clf.history_.evidence[0]
        logit = GaussianProcessClassifier(RBF(), likelihood="logit", optimizer=None).fit(self.X, self.y)
        assert type(logit.base_estimator_.likelihood) is Softmax

    def test_setting_the_kernel_of_each_class(self):
        clf = fitted(self.X, self.y, "laplace", "softmax", KERNELS["each"])
        theta = clf.kernel_.theta
        clf.log_marginal_likelihood(theta + 0.2, clone_kernel=False)
        assert_allclose(clf.kernel_.theta, theta + 0.2)

    @pytest.mark.filterwarnings("ignore:The optimal value found")
    def test_kernels_of_classes_are_learned_apart(self):
        clf = fitted(self.X, self.y, "laplace", "softmax", KERNELS["each"], optimizer="fmin_l_bfgs_b")
        assert len(clf.kernel_.kernels) == 3
        assert clf.log_marginal_likelihood_value_ > clf.log_marginal_likelihood(KERNELS["each"].theta)

    def test_a_compound_kernel_of_scikit_learn_will_do(self):
        from sklearn.gaussian_process.kernels import CompoundKernel as Theirs

        theirs = fitted(self.X, self.y, "laplace", "softmax", Theirs(KERNELS["each"].kernels))
        ours = fitted(self.X, self.y, "laplace", "softmax", KERNELS["each"])
        assert theirs.log_marginal_likelihood_value_ == ours.log_marginal_likelihood_value_

    def test_fewer_classes_in_a_part_of_the_rows(self):
        rows = self.y != 1
        clf = fitted(self.X[rows], self.y[rows])
        assert list(clf.classes_) == [0, 2]
        assert clf.predict_proba(self.Z).shape == (9, 2)

    def test_a_class_of_one_row(self):
        y = np.where(self.y == 2, 1, self.y)
        far = int(np.argmax(np.abs(self.X).sum(axis=1)))
        y[far] = 7
        for inference, likelihood in ROUTES:
            p = fitted(self.X, y, inference, likelihood).predict_proba(self.X)
            assert p.shape == (18, 3)
            assert p[far, 2] > np.median(p[:, 2])

    @pytest.mark.parametrize(("inference", "likelihood"), ROUTES)
    @pytest.mark.slow
    def test_an_alphabet(self, inference, likelihood):
        rng = np.random.default_rng(0)
        y = np.arange(52) % 26
        X = rng.normal(size=(26, 3))[y] + 0.1 * rng.normal(size=(52, 3))
        clf = fitted(X, y, inference, likelihood, 9.0 * RBF(0.7))
        assert clf.score(X, y) > 0.9
        p = clf.predict_proba(X)
        assert_allclose(p.sum(axis=1), 1.0, atol=1e-6)
        assert np.isfinite(clf.loo_proba_).all()


class TestTheDifference:
    """Two classes with a latent function each have the answers of one function, the difference of the two."""

    X = three_classes(20, seed=8)[0]
    y = np.where(three_classes(20, seed=8)[1] == 0, "no", "yes")
    Z = three_classes(6, seed=9)[0]

    def test_softmax_is_logit_with_twice_the_kernel(self):
        two = fitted(self.X, self.y, "laplace", "softmax", 2.0 * RBF(1.3))
        one = fitted(self.X, self.y, "laplace", "logit", 4.0 * RBF(1.3))
        assert_allclose(two.predict_interval(self.Z, 0.8), one.predict_interval(self.Z, 0.8), atol=1e-7)
        assert_allclose(
            two.latent_mean_and_variance(self.Z), one.latent_mean_and_variance(self.Z), rtol=1e-6, atol=1e-7
        )

    def test_multiprobit_is_probit_of_the_difference_over_the_root_of_two(self):
        two = fitted(self.X, self.y, "ep", "multiprobit", 2.0 * RBF(1.3))
        one = fitted(self.X, self.y, "ep", "probit", 2.0 * RBF(1.3))
        assert_allclose(two.predict_interval(self.Z, 0.8), one.predict_interval(self.Z, 0.8), atol=1e-7)
        mean, var = two.latent_mean_and_variance(self.Z)
        half, quarter = one.latent_mean_and_variance(self.Z)
        assert_allclose(mean, np.sqrt(2.0) * half, rtol=1e-6, atol=1e-7)
        assert_allclose(var, 2.0 * quarter, rtol=1e-6)

    @pytest.mark.parametrize(
        "inference", ["vi", Dirichlet(eps=0.1), Rejection(n_draws=500)], ids=lambda given: str(given)[:9]
    )
    @pytest.mark.filterwarnings("ignore:Credible intervals of Dirichlet")
    def test_the_difference_of_draws(self, inference):
        clf = fitted(self.X[:6], self.y[:6], inference, "softmax", 2.0 * RBF(1.3))
        draws = clf.sample_latent(self.Z, 40_000, random_state=0)
        assert draws.shape == (6, 2, 40_000)
        d = draws[:, 1] - draws[:, 0]
        mean, var = clf.latent_mean_and_variance(self.Z)
        assert_allclose(mean, d.mean(axis=1), atol=0.03)
        assert_allclose(var, d.var(axis=1), rtol=0.03)
        low, high = clf.predict_interval(self.Z, level=0.8)
        for end, level in ((low, 0.1), (high, 0.9)):
            assert_allclose(end, expit(np.quantile(d, level, axis=1)), atol=0.01)
        assert clf.predict_latent(self.Z).shape == (6, 2)


class TestLeaveOneOutOfVariationalSoftmax:
    """The variances of q are independent over the classes, but its means are not: leaving rows out in earnest."""

    @staticmethod
    def drawn(variance, n_classes, seed, n=24):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2.0, 2.0, (n, 2))
        F = np.linalg.cholesky((variance * RBF(1.0))(X) + 1e-9 * np.eye(n)) @ rng.standard_normal(
            (n, n_classes)
        )
        y = (F + rng.gumbel(size=F.shape)).argmax(axis=1)
        y[: 2 * n_classes] = np.tile(np.arange(n_classes), 2)  # no class may vanish with a row
        return X, y

    @staticmethod
    def error(X, y, likelihood, kernel, **options):
        """Return the mean error of every second row."""
        clf, right = fitted(X, y, VI(), likelihood, kernel, **options), []
        for i in range(0, len(y), 2):
            keep = np.delete(np.arange(len(y)), i)
            without = fitted(X[keep], y[keep], VI(), likelihood, kernel, **options)
            right.append(without.predict_proba(X[[i]])[0])
        return np.abs(clf.loo_proba_[::2] - right).mean()

    @pytest.mark.parametrize(("variance", "seed"), [(0.5, 0), (2.0, 1), (20.0, 0)])
    def test_two_classes_are_as_exact_as_the_same_model_with_one_function(self, variance, seed):
        X, y = self.drawn(variance, 2, seed)
        two = self.error(X, y, "softmax", variance * RBF(1.0))
        one = self.error(X, y, "logit", 2.0 * variance * RBF(1.0))
        assert two < 1.2 * one

    @pytest.mark.parametrize("seed", [0, 1])
    @pytest.mark.parametrize(("variance", "limit"), [(0.5, 0.0012), (2.0, 0.005), (20.0, 0.018)])
    def test_three_classes(self, variance, limit, seed):
        X, y = self.drawn(variance, 3, seed)
        assert self.error(X, y, "softmax", variance * RBF(1.0)) < limit

    def test_inducing_inputs(self):
        X, y = self.drawn(2.0, 3, 0)
        inducing = Inducing(inputs=X[::2].copy(), dtype="float64")
        assert self.error(X, y, "softmax", 2.0 * RBF(1.0), inducing=inducing) < 0.005


class TestErrors:
    X, y = three_classes(12)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"inference": "ep", "likelihood": "softmax"}, "multiprobit"),
            ({"inference": "ep", "likelihood": "logit"}, "multiprobit"),
            ({"likelihood": "softmax", "multi_class": "one_vs_rest"}, "multi_class='joint'"),
            ({"likelihood": "multiprobit", "multi_class": "one_vs_one"}, "multi_class='joint'"),
            ({"inference": "mcmc", "hyperparameters": "sample"}, "one_vs_rest"),
            ({"kernel": CompoundKernel([RBF()] * 4)}, "4 kernels for 3 classes"),
            ({"kernel": CompoundKernel([RBF()] * 3), "inference": "mcmc"}, "one kernel for all classes"),
            ({"kernel": CompoundKernel([RBF()] * 3), "multi_class": "one_vs_rest"}, "CompoundKernel"),
        ],
    )
    def test_what_does_not_go_together_is_said(self, options, words):
        with pytest.raises(ValueError, match=words):
            GaussianProcessClassifier(**{"kernel": RBF(), "optimizer": None} | options).fit(self.X, self.y)

    def test_a_kernel_each_for_two_classes(self):
        clf = GaussianProcessClassifier(CompoundKernel([RBF()] * 3), optimizer=None)
        with pytest.raises(ValueError, match="CompoundKernel"):
            clf.fit(self.X, self.y == 1)

    def test_evidence_of_chains(self):
        clf = fitted(TestTruth.X, TestTruth.y, Rejection(n_draws=50), "softmax", TestTruth.kernel)
        with pytest.raises(ValueError, match="no evidence at other"):
            clf.log_marginal_likelihood(clf.kernel_.theta)
