"""Inducing inputs against the exact prior, against differences, and against themselves in other blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris, make_moons
from sklearn.preprocessing import StandardScaler

from gpclass import GaussianProcessClassifier
from gpclass.core.protocols import Sites
from gpclass.data.rows import Rows
from gpclass.inference import EP, VI, Laplace
from gpclass.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from gpclass.likelihoods import Gaussian, Logit, Probit, Softmax
from gpclass.priors import DensePrior
from gpclass.priors.basis import greedy, make_basis
from gpclass.priors.inducing import InducingPrior
from gpclass.sparse import Inducing
from gpclass.sparse.engine import Engine, prior_q
from gpclass.sparse.sums import add_up, no_sums

TIGHT = {"laplace": Laplace(tol=1e-12), "ep": EP(tol=1e-11)}
KERNELS = {
    "rbf": 3.0 * RBF([0.8, 1.0, 2.0]),
    "matern": ConstantKernel(2.0) * Matern([1.0, 1.5, 0.7], nu=2.5) + ConstantKernel(0.5),
}


def problem(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(np.sin(2.0 * X[:, 0]) + 0.5 * rng.normal(size=n) > 0.0, 1.0, -1.0)
    return X, y


def large(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 2))
    f = 3.0 * np.sin(2.0 * X[:, 0]) * np.cos(X[:, 1])
    return X, (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-f))).astype(int)


def log_loss(clf, X, y):
    return -np.log(clf.predict_proba(X)[np.arange(len(y)), y]).mean()


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("likelihood", [Logit(), Probit()])
class TestAllInputsInducing:
    """With Z = X the approximation is none."""

    def test_variational(self, name, likelihood):
        X, y = problem()
        kernel = KERNELS[name]
        fit = Engine(Rows(X, y), likelihood, dtype=np.float64).settle(
            make_basis(kernel, X.copy(), 1e-12), tol=1e-13, gradient=True
        )
        prior = DensePrior(kernel, X)
        exact = VI(tol=1e-10)(prior, likelihood, y)
        assert_allclose(fit.bound, exact.evidence, atol=1e-8)
        assert_allclose(fit.gradient, prior.pullback(exact.adjoint()), atol=1e-6)
        new = problem(9, seed=1)[0]
        expected = prior.posterior(exact.conditioned).latent(new)
        assert_allclose(fit.posterior.latent(new), expected, atol=1e-6)

    @pytest.mark.parametrize("method", TIGHT)
    def test_residual_in_the_prior(self, name, likelihood, method):
        X, y = problem()
        priors = DensePrior(KERNELS[name], X), InducingPrior(KERNELS[name], X, X.copy())
        exact, found = (TIGHT[method](prior, likelihood, y) for prior in priors)
        assert_allclose(found.evidence, exact.evidence, atol=1e-8)
        gradients = [p.pullback(r.adjoint()) for p, r in zip(priors, (exact, found), strict=True)]
        assert_allclose(gradients[1], gradients[0], atol=1e-6)
        new = problem(9, seed=1)[0]
        latents = [
            p.posterior(r.conditioned).latent(new) for p, r in zip(priors, (exact, found), strict=True)
        ]
        assert_allclose(latents[1], latents[0], atol=1e-6)


class TestFewInducingInputs:
    def test_conditioned_against_dense_algebra(self):
        X, _ = problem()
        prior = InducingPrior(3.0 * RBF([0.8, 1.0, 2.0]) + WhiteKernel(0.2), X, X[:7].copy())
        K = prior.A @ prior.A.T + np.diag(prior.residual)
        rng = np.random.default_rng(1)
        sites = Sites(nu=rng.normal(size=40), tau=10.0 ** rng.uniform(-3.0, 2.0, 40))
        q = prior.condition(sites)
        cov = np.linalg.inv(np.linalg.inv(K) + np.diag(sites.tau))
        assert_allclose(K.diagonal(), 3.2)
        assert_allclose(q.mean, cov @ sites.nu, atol=1e-8)
        assert_allclose(q.var(), cov.diagonal(), rtol=1e-7)
        assert_allclose(q.inverse_diagonal(), 1.0 - sites.tau * cov.diagonal(), atol=1e-8)
        s = np.sqrt(sites.tau)
        B = np.eye(40) + s[:, None] * K * s
        assert_allclose(q.half_logdet, 0.5 * np.linalg.slogdet(B)[1], rtol=1e-10)
        assert_allclose(q.dense_R(), s[:, None] * np.linalg.inv(B) * s, atol=1e-8)
        r = rng.normal(size=40)
        d, Kd = prior.newton(sites.tau, r, 1e-9)
        assert_allclose(d + sites.tau * (K @ d), r, atol=1e-8)
        assert_allclose(Kd, K @ d, atol=1e-8)

    @pytest.mark.parametrize("method", [Laplace(tol=1e-12), EP(tol=1e-12), VI(tol=1e-11)])
    def test_gradient_with_the_residual_in_the_prior(self, method):
        X, y = problem()
        kernel, Z = 3.0 * RBF([0.8, 1.0, 2.0]) + WhiteKernel(0.1), X[:9].copy()

        def evidence(theta):
            return method(InducingPrior(kernel.clone_with_theta(theta), X, Z), Probit(), y).evidence

        prior = InducingPrior(kernel, X, Z)
        gradient = prior.pullback(method(prior, Probit(), y).adjoint())
        assert_allclose(gradient, differences(evidence, kernel.theta), rtol=1e-6, atol=1e-7)

    @pytest.mark.parametrize("weight", [None, np.arange(40) % 3 + 0.5])
    def test_gradient_of_the_bound(self, weight):
        X, y = problem()
        kernel, Z = 3.0 * RBF([0.8, 1.0, 2.0]) + WhiteKernel(0.1), X[:8].copy()
        engine = Engine(Rows(X, y, weight), Logit(), dtype=np.float64)

        def at(theta, Z):
            basis = make_basis(kernel.clone_with_theta(theta), Z, 1e-9)
            return engine.settle(basis, tol=1e-14, gradient=True, inputs=True)

        fit = at(kernel.theta, Z)
        assert_allclose(
            fit.gradient, differences(lambda t: at(t, Z).bound, kernel.theta), rtol=1e-6, atol=1e-6
        )
        by_inputs = differences(lambda z: at(kernel.theta, z.reshape(Z.shape)).bound, Z.ravel()[:6].copy(), Z)
        assert_allclose(fit.inputs.ravel()[:6], by_inputs, rtol=1e-5, atol=1e-6)

    def test_more_never_lower_the_bound(self):
        X, y = problem(60)
        bounds = []
        for m in (1, 3, 8, 20, 60):
            basis = make_basis(KERNELS["rbf"], X[:m].copy(), 1e-10)
            bounds.append(Engine(Rows(X, y), Probit(), dtype=np.float64).settle(basis, tol=1e-11).bound)
        assert (np.diff(bounds) > -1e-8).all()
        assert bounds[-1] <= VI(tol=1e-9)(DensePrior(KERNELS["rbf"], X), Probit(), y).evidence + 1e-7

    def test_gaussian_likelihood_is_the_collapsed_bound_of_regression(self):
        X, _ = problem()
        y, noise = np.sin(X[:, 0]), 0.3
        kernel, Z = KERNELS["rbf"], X[:9].copy()
        basis = make_basis(kernel, Z, 1e-12)
        fit = Engine(Rows(X, y), Gaussian(noise), dtype=np.float64).settle(basis, tol=1e-12)
        K_fu, K_uu = kernel(X, Z), kernel(Z)
        Q = K_fu @ np.linalg.solve(K_uu, K_fu.T)
        S = Q + noise * np.eye(40)
        log_density = -0.5 * (y @ np.linalg.solve(S, y) + np.linalg.slogdet(S)[1] + 40 * np.log(2.0 * np.pi))
        assert_allclose(fit.bound, log_density - np.trace(kernel(X) - Q) / (2.0 * noise), rtol=1e-7)

    def test_single_precision(self):
        X, y = large(3000)
        y = 2.0 * y - 1.0
        basis = make_basis(4.0 * RBF(1.0), X[:60].copy())
        bounds = [
            Engine(Rows(X, y), Logit(), dtype=dtype).settle(basis, tol=1e-3).bound
            for dtype in (np.float32, np.float64)
        ]
        assert_allclose(*bounds, rtol=2e-5)


def differences(f, x, whole=None, step=1e-5):
    """Return central differences; ``x`` may be the first entries of a larger argument."""
    out = np.empty(len(x))
    for i in range(len(x)):
        up, down = (np.array(x if whole is None else whole.ravel(), dtype=float) for _ in range(2))
        up[i] += step
        down[i] -= step
        out[i] = (f(up) - f(down)) / (2.0 * step)
    return out


class TestSums:
    @pytest.mark.parametrize("n_latents", [1, 3])
    def test_blocks_do_not_matter(self, n_latents):
        X, y = problem(200)
        likelihood = Logit()
        if n_latents == 3:
            y, likelihood = np.eye(3)[np.arange(200) % 3], Softmax()
        basis = make_basis(KERNELS["rbf"], X[:12].copy())
        engine = Engine(Rows(X, y), likelihood, n_latents, np.float64)
        from gpclass.sparse.engine import factor

        q = prior_q(12, n_latents)
        step = engine._step(basis, q, factor(q), True, True)
        whole, parts = add_up(step, X, y, None), no_sums(step)
        for rows in (slice(0, 7), slice(7, 120), slice(120, 200)):
            parts.add(add_up(step, X[rows], y[rows], None))
        for name in ("n", "value", "left", "curvature", "linear", "slope", "theta", "inputs"):
            assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-10, atol=1e-10)

    def test_two_classes_of_softmax_with_the_doubled_kernel_are_logit(self):
        # q is independent over classes, so that the bound is lower: the means agree where nothing is bound.
        X, y = problem()
        labels = np.stack([y < 0, y > 0], axis=1).astype(float)
        basis = make_basis(KERNELS["rbf"], X.copy(), 1e-10)
        two = Engine(Rows(X, labels), Softmax(), 2, np.float64).settle(basis, tol=1e-9, max_passes=300)
        doubled = make_basis(6.0 * RBF([0.8, 1.0, 2.0]), X.copy(), 1e-10)
        one = Engine(Rows(X, y), Logit(), 1, np.float64).settle(doubled, tol=1e-9)
        assert two.gap < 1e-9
        assert two.bound <= one.bound + 1e-8
        assert_allclose(two.q.mean.sum(axis=1), 0.0, atol=1e-5)


class TestGreedy:
    def test_it_leaves_little_over(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(500, 2))
        kernel = 2.0 * RBF(1.0)
        chosen, share = greedy(kernel, X, 40, rng)
        K = kernel(X, X[chosen])
        left = 2.0 - np.einsum("ij,ji->i", K, np.linalg.solve(kernel(X[chosen]) + 1e-10 * np.eye(40), K.T))
        assert_allclose(share, left.mean() / 2.0, atol=1e-5)
        at_random = rng.permutation(500)[:40]
        K = kernel(X, X[at_random])
        inner = np.linalg.solve(kernel(X[at_random]) + 1e-10 * np.eye(40), K.T)
        assert left.mean() < 0.3 * (2.0 - np.einsum("ij,ji->i", K, inner)).mean()
        assert len(set(chosen.tolist())) == 40

    def test_it_stops_where_nothing_is_left(self):
        rng = np.random.default_rng(0)
        X = np.repeat(rng.normal(size=(7, 2)), 20, axis=0)
        chosen, share = greedy(RBF(1.0) + WhiteKernel(0.5), X, 50, rng)
        assert len(chosen) == 7
        assert share < 1e-9

    def test_tolerance(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(2000, 2))
        few, share = greedy(RBF(1.0), X, 500, rng, tol=1e-3)
        assert len(few) < 100
        assert share <= 1e-3


def test_prediction_in_single_precision():
    X, y = large(4000)
    new = large(500, seed=1)[0]
    options = {"kernel": 30.0 * RBF(0.8), "optimizer": None, "random_state": 0}
    single = GaussianProcessClassifier(**options, inducing=Inducing(n=200)).fit(X, y)
    assert single.posterior_.beta is not None
    double = replace(single.posterior_, beta=None)
    for found, right in zip(single.posterior_.latent(new), double.latent(new), strict=True):
        assert_allclose(found, right, atol=5e-4)


class TestClassifier:
    def test_auto_is_exact_for_few_rows_and_not_for_many(self):
        X, y = large(6000)
        kernel = 4.0 * RBF(1.0)
        few = GaussianProcessClassifier(kernel, optimizer=None).fit(X[:300], y[:300])
        many = GaussianProcessClassifier(kernel, optimizer=None, random_state=0).fit(X, y)
        assert few.posterior_.inputs.shape == (300, 2)
        assert many.posterior_.inputs.shape[0] < 1000
        assert many.base_estimator_.report.n_rows == 6000

    @pytest.mark.parametrize("inference", ["vi", "ep", "laplace"])
    def test_near_the_exact_answer(self, inference):
        X, y = large(700)
        new = large(300, seed=1)[0]
        options = {"kernel": 4.0 * RBF([1.0, 1.0]), "optimizer": None, "inference": inference}
        exact = GaussianProcessClassifier(**options, inducing=None).fit(X, y)
        found = GaussianProcessClassifier(**options, inducing=80, random_state=0).fit(X, y)
        assert_allclose(found.predict_proba(new), exact.predict_proba(new), atol=2e-3)
        assert_allclose(found.log_marginal_likelihood_value_, exact.log_marginal_likelihood_value_, rtol=3e-3)

    def test_learning_finds_the_exact_hyperparameters(self):
        X, y = large(900)
        kernel = ConstantKernel(1.0, (1e-2, 1e3)) * RBF([1.0, 1.0], (0.05, 50.0))
        exact = GaussianProcessClassifier(kernel, inducing=None).fit(X, y)
        settings = Inducing(n=100, gain=1e-6, dtype="float64", max_refine=30)
        found = GaussianProcessClassifier(kernel, inducing=settings, random_state=0).fit(X, y)
        assert_allclose(found.kernel_.theta, exact.kernel_.theta, atol=0.05)
        assert_allclose(found.log_marginal_likelihood_value_, exact.log_marginal_likelihood_value_, atol=0.3)

    def test_evidence_at_theta(self):
        X, y = large(500)
        settings = Inducing(n=30, dtype="float64")
        clf = GaussianProcessClassifier(4.0 * RBF(1.0), inducing=settings, optimizer=None).fit(X, y)
        theta = clf.kernel_.theta
        value, gradient = clf.log_marginal_likelihood(theta, eval_gradient=True)
        assert_allclose(value, clf.log_marginal_likelihood_value_, rtol=1e-6)
        assert_allclose(gradient, differences(clf.log_marginal_likelihood, theta, step=1e-4), rtol=1e-3)

    def test_weights_are_copies(self):
        X, y = large(300)
        weight = np.where(np.arange(300) % 3 == 0, 2.0, 1.0)
        options = {
            "kernel": 4.0 * RBF(1.0),
            "optimizer": None,
            "inducing": Inducing(inputs=X[:40], dtype="float64"),
        }
        a = GaussianProcessClassifier(**options).fit(X, y, sample_weight=weight)
        copies = np.repeat(np.arange(300), weight.astype(int))
        b = GaussianProcessClassifier(**options).fit(X[copies], y[copies])
        assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-6)

    def test_three_classes(self):
        X, y = load_iris(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        clf = GaussianProcessClassifier(1.0 * RBF(2.0), inducing=40, random_state=0).fit(X, y)
        assert clf.score(X, y) > 0.95
        assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)
        exact = GaussianProcessClassifier(
            clf.kernel_, optimizer=None, likelihood="softmax", inducing=None
        ).fit(X, y)
        settings = Inducing(inputs=X, dtype="float64")
        same = GaussianProcessClassifier(clf.kernel_, optimizer=None, inducing=settings).fit(X, y)
        assert_allclose(same.log_marginal_likelihood_value_, exact.log_marginal_likelihood_value_, atol=1e-2)
        assert_allclose(same.predict_proba(X), exact.predict_proba(X), atol=1e-3)

    @pytest.mark.parametrize(
        ("options", "word"),
        [
            ({"inducing": 5, "inference": "mcmc"}, "sampled"),
            ({"inducing": 0}, "positive"),
            ({"inducing": 5, "inference": VI(evidence="ep")}, "VI"),
        ],
    )
    def test_what_is_not_possible_is_said(self, options, word):
        X, y = make_moons(40, random_state=0)
        with pytest.raises(ValueError, match=word):
            GaussianProcessClassifier(**options).fit(X, y)

    def test_no_leave_one_out(self):
        X, y = large(200)
        clf = GaussianProcessClassifier(inducing=10, optimizer=None).fit(X, y)
        assert not hasattr(clf, "loo_proba_")


class TestPartialFit:
    def test_it_learns_from_all_rows(self):
        X, y = large(4000)
        new = large(1000, seed=1)
        options = {"kernel": 4.0 * RBF(1.0), "optimizer": None, "inducing": 60, "random_state": 0}
        whole = GaussianProcessClassifier(**options).fit(X, y)
        parts = GaussianProcessClassifier(**options)
        losses = []
        for start in range(0, 4000, 500):
            parts.partial_fit(X[start : start + 500], y[start : start + 500])
            losses.append(log_loss(parts, *new))
        assert losses[-1] < losses[0]
        assert_allclose(losses[-1], log_loss(whole, *new), atol=5e-3)
        assert_allclose(parts.log_marginal_likelihood_value_, whole.log_marginal_likelihood_value_, rtol=0.02)

    def test_classes_to_come(self):
        X, y = large(300)
        settings = Inducing(inputs=X[:60])  # of the first rows, those of one class would be no good
        clf = GaussianProcessClassifier(2.0 * RBF(1.0), optimizer=None, inducing=settings)
        with pytest.raises(ValueError, match="classes="):
            clf.partial_fit(X[y == 0], y[y == 0])
        few = np.flatnonzero(y == 0)[:5]
        clf.partial_fit(X[few], y[few], classes=[0, 1]).partial_fit(X, y)
        assert clf.score(X, y) > 0.72
        with pytest.raises(ValueError, match="not among the classes"):
            clf.partial_fit(X, y + 5)


class TestCheckpoint:
    def test_a_killed_fit_goes_on(self, tmp_path, monkeypatch):
        X, y = large(3000)
        path = tmp_path / "state"
        kernel = 2.0 * RBF([1.0, 1.0])
        settings = Inducing(n=40, rows=(300, 600), checkpoint=path, dtype="float64")
        right = Engine.settle
        calls = []

        def dies(self, *args, **kwargs):
            fit = right(self, *args, **kwargs)
            calls.append(self.data.n_rows)
            if self.data.n_rows == 3000:
                raise MemoryError("killed")
            return fit

        monkeypatch.setattr(Engine, "settle", dies)
        with pytest.raises(MemoryError):
            GaussianProcessClassifier(kernel, inducing=settings, random_state=0).fit(X, y)
        assert path.exists()
        monkeypatch.setattr(Engine, "settle", right)
        seen = []
        report = Engine.settle
        monkeypatch.setattr(
            Engine, "settle", lambda self, *a, **k: (seen.append(self.data.n_rows), report(self, *a, **k))[1]
        )
        went_on = GaussianProcessClassifier(kernel, inducing=settings, random_state=0).fit(X, y)
        assert set(seen) == {3000}  # nothing of the first stages again
        path.unlink()
        afresh = GaussianProcessClassifier(kernel, inducing=settings, random_state=0).fit(X, y)
        assert_allclose(
            went_on.log_marginal_likelihood_value_, afresh.log_marginal_likelihood_value_, rtol=3e-4
        )

    def test_of_another_problem(self, tmp_path):
        X, y = large(400)
        settings = Inducing(n=10, checkpoint=tmp_path / "state")
        GaussianProcessClassifier(inducing=settings, random_state=0).fit(X, y)
        with pytest.raises(ValueError, match="another problem"):
            GaussianProcessClassifier(inducing=settings).fit(X[:300], y[:300])
        (tmp_path / "state").write_bytes(b"nonsense")
        with pytest.raises(ValueError, match="cannot be read"):
            GaussianProcessClassifier(inducing=settings).fit(X, y)


@pytest.mark.parametrize(
    "options",
    [{}, {"inference": "ep"}, {"classes": 3}, {"classes": 3, "multi_class": "one_vs_rest"}],
    ids=["vi", "ep", "softmax", "one_vs_rest"],
)
def test_model_files(options, tmp_path):
    import gpclass

    options = dict(options)
    X, y = load_iris(return_X_y=True)
    if options.pop("classes", 2) == 2:
        y = np.minimum(y, 1)
    clf = GaussianProcessClassifier(2.0 * RBF(1.0), optimizer=None, inducing=12, **options).fit(X, y)
    clf.save(tmp_path / "model.gpc")
    back = gpclass.load(tmp_path / "model.gpc")
    np.testing.assert_array_equal(back.predict_proba(X), clf.predict_proba(X))
    assert back.log_marginal_likelihood_value_ == clf.log_marginal_likelihood_value_


def test_what_rows_in_passes_cannot_do_is_said():
    X, y = large(300)

    def blocks():
        yield X, y

    with pytest.raises(ValueError, match="class_weight"):
        GaussianProcessClassifier(class_weight="balanced").fit(blocks)
    clf = GaussianProcessClassifier(optimizer=None, inducing=20, random_state=0).fit(blocks)
    assert clf.score(X, y) > 0.6
    with pytest.raises(ValueError, match="inducing=None"):
        clf.check_approximation()


@pytest.mark.parametrize(
    ("options", "word"),
    [({"inference": "ep"}, "inference='vi'"), ({"likelihood": "softmax"}, "'logit'")],
)
def test_passes_do_not_change_the_model_silently(options, word):
    X, y = large(60)
    for fit in (lambda clf: clf.partial_fit(X, y), lambda clf: clf.fit(lambda: [(X, y)])):
        with pytest.raises(ValueError, match=word):
            fit(GaussianProcessClassifier(**options))


def test_a_column_called_groups_is_a_column():
    pd = pytest.importorskip("pandas")
    X, y = large(60)
    frame = pd.DataFrame(X, columns=["groups", "blocks"])
    clf = GaussianProcessClassifier(2.0 * RBF(1.0), optimizer=None).fit(frame, y)
    assert clf.predict(frame).shape == (60,)
