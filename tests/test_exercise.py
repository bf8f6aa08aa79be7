"""The classic exercise: every method against moments that prior draws, weighted by the likelihood, give."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, log_expit

from gpclass import GaussianProcessClassifier
from gpclass.datasets import interval
from gpclass.kernels import RBF
from gpclass.mcmc import MCMC, BlockMetropolis, EllipticalSlice
from gpclass.mcmc.chains import diagnose

pytest.importorskip("matplotlib")
SPLIT = interval()
SIGN = np.where(SPLIT.y == 1, 1.0, -1.0)
FAR = 4.5  # standard errors: twenty points, three samplers, two moments


def example():
    path = Path(__file__).parents[1] / "examples" / "exercise.py"
    spec = importlib.util.spec_from_file_location("exercise", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


exercise = example()


class Truth:
    """The posterior by many draws from the prior; nothing of the library is used."""

    def __init__(self, n_draws=300_000):
        x = SPLIT.X[:, 0]
        values, vectors = np.linalg.eigh(np.exp(-0.005 * (x[:, None] - x) ** 2))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        rng = np.random.default_rng(0)
        self.f = rng.standard_normal((n_draws, len(x))) @ root.T
        self.log_w = log_expit(SIGN * self.f).sum(axis=1)
        w = np.exp(self.log_w - self.log_w.max())
        self.evidence = float(np.log(w.mean()) + self.log_w.max())
        keep = w > 1e-6 * w.mean()  # what is left out weighs less than a millionth of the whole
        self.f, self.w = self.f[keep], w[keep] / w.sum()

    def average(self, values):
        mean = self.w @ values
        return mean, np.sqrt((self.w**2) @ (values - mean) ** 2)

    def acceptance(self):
        """Return how often prior draws are accepted: E[min(1, L'/L)], that is E[min(L, L')] / Z of pairs."""
        L = np.sort(np.exp(self.log_w - self.log_w.max()))
        above = np.arange(len(L) - 1, -1, -1.0)
        return 2.0 * float((L * above).sum()) / len(L) ** 2 / float(L.mean())


@pytest.fixture(scope="module")
def truth():
    return Truth()


@pytest.fixture(scope="module")
def fitted():
    slices = MCMC(EllipticalSlice(whiten=None), thin=6)
    clf = GaussianProcessClassifier(
        RBF(10.0), inference=slices, likelihood="logit", optimizer=None, random_state=0
    )
    return exercise.fit(SPLIT) | {"slices": clf.fit(SPLIT.X, SPLIT.y)}


@pytest.mark.parametrize("name", ["Metropolis", "HMC", "slices"])
class TestSamplers:
    @pytest.mark.slow
    def test_moments(self, truth, fitted, name):
        chains = fitted[name].chains_
        mean, error = truth.average(truth.f)
        z = (chains.f.mean(axis=(0, 1)) - mean) / np.hypot(chains.diagnostics().mcse, error)
        assert np.abs(z).max() < FAR
        spread, error = truth.average((truth.f - mean) ** 2)
        squares = (chains.f - mean) ** 2
        z = (squares.mean(axis=(0, 1)) - spread) / np.hypot(diagnose(squares).mcse, error)
        assert np.abs(z).max() < FAR

    def test_probabilities(self, truth, fitted, name):
        p, error = truth.average(expit(truth.f))
        noise = np.hypot(diagnose(expit(fitted[name].chains_.f)).mcse, error)
        z = (fitted[name].predict_proba(SPLIT.X)[:, 1] - p) / noise
        assert np.abs(z).max() < FAR

    def test_mixed(self, fitted, name):
        chains = fitted[name].chains_
        assert chains.complaint() == ""
        assert chains.diagnostics().rhat.max() <= 1.01


def test_evidence(truth, fitted):
    """Laplace is the farthest; importance sampling is right wherever it started."""
    off = {
        name: abs(fitted[name].log_marginal_likelihood_value_ - truth.evidence)
        for name in ("Laplace", "EP", "VI")
    }
    assert off["EP"] < 0.02
    assert max(off, key=off.get) == "Laplace"
    for name in ("Laplace", "EP", "VI"):
        check = fitted[name].check_approximation(n_samples=4000, random_state=0)
        assert abs(check.corrected - truth.evidence) < 4 * check.standard_error + 0.01


def test_laplace_is_nearest_to_one_half(truth, fitted):
    laplace, ep = (fitted[name].predict_proba(SPLIT.X_test)[:, 1] for name in ("Laplace", "EP"))
    clear = np.abs(ep - 0.5) > 0.1
    assert clear.sum() > 70
    assert (np.abs(laplace - 0.5) < np.abs(ep - 0.5))[clear].all()
    p, _ = truth.average(expit(truth.f))
    off = {name: np.abs(fitted[name].predict_proba(SPLIT.X)[:, 1] - p).mean() for name in ("Laplace", "EP")}
    assert off["EP"] < 0.3 * off["Laplace"]


class TestBlocks:
    def test_one_block_of_all_is_accepted_as_often_as_the_prior_says(self, truth):
        settings = MCMC(BlockMetropolis(20, adapt_size=False), n_draws=6000)
        clf = GaussianProcessClassifier(
            RBF(10.0), inference=settings, likelihood="logit", optimizer=None, random_state=0
        )
        with pytest.warns(UserWarning, match="have not mixed"):
            chains = clf.fit(SPLIT.X, SPLIT.y).chains_
        error = float(diagnose(chains.accept[..., None]).mcse[0])
        assert error < 0.01
        assert abs(chains.accept.mean() - truth.acceptance()) < 4 * error
        np.testing.assert_allclose(chains.accept_points, chains.accept.mean())

    def test_small_blocks_are_accepted_and_do_not_move(self):
        blocks = exercise.vary_blocks(SPLIT, n_draws=300)
        rate = {size: chains.accept_points.mean() for size, chains in blocks.items()}
        assert rate["1"] > rate["4"] > rate["adapted"] > rate["20"]
        assert rate["1"] > 0.99
        assert 0.2 < rate["adapted"] < 0.45
        rhat = {size: chains.diagnostics().rhat.max() for size, chains in blocks.items()}
        assert rhat["1"] > 1.5
        assert rhat["1"] > rhat["adapted"]
        for chains in blocks.values():
            assert ((chains.accept_points >= 0.0) & (chains.accept_points <= 1.0)).all()


def test_decisions_are_those_of_the_probabilities():
    """The mean of draws and the mean of their probabilities may lie on different sides of the middle."""
    clf = GaussianProcessClassifier(
        9.0 * RBF(15.0), inference="mcmc", likelihood="logit", optimizer=None, random_state=0
    )
    clf.fit(SPLIT.X, SPLIT.y)
    X = np.linspace(0.0, 99.0, 4000)[:, None]
    X = X[np.argsort(np.abs(clf.predict_latent(X)))[:40]]
    p = clf.predict_proba(X)
    assert ((clf.predict_latent(X) > 0) != (p[:, 1] > 0.5)).any(), "else this shows nothing"
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[p.argmax(axis=1)])


class TestSteps:
    """The steps of the exercise in NumPy against the library."""

    x, t = SPLIT.X[:, 0], SPLIT.y

    def test_the_mode_and_the_evidence(self, fitted):
        steps = exercise.newton(exercise.kernel(self.x, self.x), self.t)
        clf = fitted["Laplace"]
        assert steps[-1].evidence == pytest.approx(clf.log_marginal_likelihood_value_, abs=1e-9)
        np.testing.assert_allclose(steps[-1].f, clf.predict_latent(SPLIT.X), atol=1e-8)
        assert (np.diff([step.psi for step in steps]) >= -1e-12).all()  # up to rounding

    def test_the_gradient(self, fitted):
        explicit, implicit = exercise.gradient(self.x, self.t)
        clf = fitted["Laplace"]
        _, slope = clf.log_marginal_likelihood(clf.kernel_.theta, eval_gradient=True)
        assert explicit + implicit == pytest.approx(slope[0], abs=1e-8)
        assert abs(implicit) > 0.01, "else the check of the sum would not see it"

    def test_the_probabilities(self, fitted):
        at = SPLIT.X_test[:, 0]
        p = exercise.average(*exercise.predict(self.x, self.t, at))
        np.testing.assert_allclose(p, fitted["Laplace"].predict_proba(SPLIT.X_test)[:, 1], atol=1e-8)

    def test_the_evidence_by_prior_draws(self, truth):
        mean, error = exercise.monte_carlo(self.x, self.t)
        assert error < 0.007
        assert abs(mean - truth.evidence) < 0.05

    def test_the_boundary(self, fitted):
        ends = exercise.boundary(fitted["EP"])
        np.testing.assert_allclose(fitted["EP"].predict_proba(ends[:, None])[:, 1], 0.5, atol=1e-4)
        assert len(ends) == 2

    def test_the_page_shows_what_is_printed(self, fitted):
        page = (Path(__file__).parents[1] / "docs" / "guide" / "exercise.md").read_text("utf-8")
        clf = fitted["Laplace"]
        evidence, slope = clf.log_marginal_likelihood(clf.kernel_.theta, eval_gradient=True)
        assert exercise.show_prior(SPLIT) in page
        assert exercise.show_data(SPLIT) in page
        assert exercise.show_newton(SPLIT, evidence) in page
        assert exercise.show_gradient(SPLIT, slope[0]) in page
        assert exercise.show_probabilities(SPLIT, clf, fitted["HMC"]) in page
        gaussian = {name: fitted[name] for name in ("Laplace", "EP", "VI")}
        assert exercise.show_boundary(gaussian) in page


@pytest.mark.slow
def test_example_runs(fitted, monkeypatch, capsys, tmp_path):
    methods = {name: clf for name, clf in fitted.items() if name != "slices"}
    monkeypatch.setattr(exercise, "fit", lambda split: methods)
    path = tmp_path / "figures" / "exercise.png"
    exercise.main(path)
    out = capsys.readouterr().out
    for name in methods:
        assert f"\n   {name}" in out
    assert f"{fitted['EP'].log_marginal_likelihood_value_:.3f}" in out
    assert str(path) in out
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 50_000
