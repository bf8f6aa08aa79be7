"""What the displays draw is what the estimator predicts, and lines lie where they claim to."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from scipy.stats import beta
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_iris, make_moons
from sklearn.gaussian_process import GaussianProcessClassifier as Theirs
from sklearn.linear_model import LogisticRegression

from gpclass import GaussianProcessClassifier, compare
from gpclass.datasets import interval
from gpclass.kernels import RBF, Columns, CompoundKernel
from gpclass.mcmc import MCMC

mpl = pytest.importorskip("matplotlib")
mpl.use("Agg")

from gpclass.plotting import (  # noqa: E402
    CalibrationDisplay,
    ComparisonDisplay,
    EvidenceDisplay,
    LatentDisplay,
    PredictiveContourDisplay,
    RelevanceDisplay,
    TraceDisplay,
)
from gpclass.plotting.calibration import bin_counts, jeffreys  # noqa: E402
from gpclass.plotting.trace import autocorrelation, rank_counts  # noqa: E402

X, Y = make_moons(60, noise=0.25, random_state=0)
SPLIT = interval()
IRIS, SPECIES = load_iris(return_X_y=True)
IRIS = IRIS[::2, 2:]
SPECIES = np.array(["setosa", "versicolor", "virginica"])[SPECIES[::2]]


KERNEL = 4.0 * RBF(0.7)


def fit(X, y, kernel=KERNEL, **options):
    return GaussianProcessClassifier(kernel, **({"optimizer": None, "random_state": 0} | options)).fit(X, y)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def test_nothing_is_loaded_before_something_is_drawn():
    code = "import sys, gpclass.plotting, gpclass.active; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


class TestContour:
    def grid(self, display):
        return np.stack(np.meshgrid(display.x0, display.x1), axis=-1).reshape(-1, 2)

    def flips(self, clf, lines, step):
        """Return the share of points on the lines where the decision differs a step to either side."""
        found = []
        for path in lines.get_paths():
            points = path.vertices
            if len(points) < 3:
                continue
            along = np.gradient(points, axis=0)
            length = np.linalg.norm(along, axis=1)
            keep = length > 1e-9
            normal = np.stack([-along[keep, 1], along[keep, 0]], axis=1) / length[keep, None]
            sides = [clf.predict(points[keep] + sign * step * normal) for sign in (-1.0, 1.0)]
            found += [sides[0] != sides[1]]
        return np.concatenate(found).mean()

    @pytest.mark.parametrize("cost", [None, [[0, 1], [6, 0]]])
    def test_two_classes(self, cost):
        clf = fit(X, Y, cost_matrix=cost)
        display = PredictiveContourDisplay.from_estimator(clf, X, Y, grid_resolution=80, latent_std=True)
        grid = self.grid(display)
        assert_allclose(display.proba.reshape(-1, 2), clf.predict_proba(grid))
        assert_allclose(display.latent_std.ravel(), clf.predict_latent(grid, return_std=True)[1])
        assert_array_equal(display.margin[:, :, 1].ravel() > 0.0, clf.predict(grid) == 1)
        (lines,) = display.boundary_
        assert self.flips(clf, lines, 0.02) > 0.97
        threshold = 0.5 if cost is None else 1.0 / 7.0
        points = np.concatenate([path.vertices for path in lines.get_paths()])
        assert_allclose(clf.predict_proba(points)[:, 1], threshold, atol=0.01)
        assert len(display.axes_) == 2
        assert display.ax_.get_xlabel() == "$x_{1}$"

    @pytest.mark.parametrize("options", [{}, {"multi_class": "one_vs_rest"}])
    def test_three_classes(self, options):
        frame = pd.DataFrame(IRIS, columns=["petal length", "petal width"])
        clf = fit(frame, SPECIES, likelihood="logit", **options)
        settings = {"grid_resolution": 60, "latent_std": True}
        display = PredictiveContourDisplay.from_estimator(clf, frame, SPECIES, **settings)
        grid = pd.DataFrame(self.grid(display), columns=frame.columns)
        assert_allclose(display.proba.reshape(-1, 3), clf.predict_proba(grid))
        assert_array_equal(clf.classes_[display.margin.argmax(axis=2).ravel()], clf.predict(grid))
        bare = fit(IRIS, SPECIES, likelihood="logit", **options)
        assert min(self.flips(bare, lines, 0.03) for lines in display.boundary_) > 0.95
        assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("petal length", "petal width")
        if not options:  # the mean square of draws about their mean over the classes
            few = grid.iloc[::500]
            _, cov = clf.predict_latent(few, return_cov=True)
            H = np.eye(3) - 1.0 / 3.0
            mine = display.latent_std.ravel()[::500]
            assert_allclose(mine**2, np.einsum("ab,ibc,ca->i", H, cov, H) / 2.0, rtol=1e-9)

    def test_markers_are_the_rows(self):
        display = PredictiveContourDisplay.from_estimator(fit(X, Y), X, Y, grid_resolution=10)
        drawn = [dots.get_offsets() for dots in display.ax_.collections if dots.get_label() in ("0", "1")]
        assert_allclose(drawn[0], X[Y == 0])
        assert_allclose(drawn[1], X[Y == 1])

    def test_any_classifier_and_own_axes(self):
        import matplotlib.pyplot as plt

        clf = LogisticRegression().fit(X, Y)
        _, axis = plt.subplots()
        display = PredictiveContourDisplay.from_estimator(clf, X, ax=axis, grid_resolution=20)
        assert display.ax_ is axis
        points = np.concatenate([path.vertices for path in display.boundary_[0].get_paths()])
        assert_allclose(points @ clf.coef_[0] + clf.intercept_, 0.0, atol=0.02)
        with pytest.raises(ValueError, match="2 axes were given, expected 1"):
            display.plot(ax=[axis, axis])
        with pytest.raises(ValueError, match="expected two columns"):
            PredictiveContourDisplay.from_estimator(clf, SPLIT.X)

    def test_no_boundary_in_view(self):
        near = X[Y == 1][:1] + np.array([[0.0, 0.0], [0.01, 0.01]])
        clf = fit(X, Y)
        display = PredictiveContourDisplay.from_estimator(clf, near, clf.predict(near), grid_resolution=9)
        assert display.boundary_ == []
        two = fit(X, Y, likelihood="softmax")
        display = PredictiveContourDisplay.from_estimator(two, X, Y, grid_resolution=9, latent_std=True)
        _, cov = two.predict_latent(self.grid(display), return_cov=True)
        lead = cov[:, 0, 0] + cov[:, 1, 1] - 2.0 * cov[:, 0, 1]
        assert_allclose(display.latent_std.ravel() ** 2, lead / 2.0, rtol=1e-9)


class TestLatent:
    def test_arrays_are_the_predictions(self):
        clf = fit(SPLIT.X, SPLIT.y, 9.0 * RBF(15.0))
        display = LatentDisplay.from_estimator(clf, SPLIT.X, SPLIT.y, level=0.8, grid_resolution=50)
        grid = display.x[:, None]
        mean, std = clf.predict_latent(grid, return_std=True)
        assert_allclose(display.mean[:, 0], mean)
        assert_allclose(display.high[:, 0] - mean, 1.2815515655446004 * std, rtol=1e-9)
        assert_allclose(display.proba[:, 0], clf.predict_proba(grid)[:, 1])
        assert_allclose(ndtr(display.low), display.proba_low)
        drawn = display.axes_[1].lines[-1]
        assert_allclose(drawn.get_ydata(), display.proba[:, 0])

    def test_sampled_bands_are_quantiles_of_draws(self):
        clf = fit(SPLIT.X, SPLIT.y, 9.0 * RBF(15.0), inference=MCMC(n_draws=300))
        display = LatentDisplay.from_estimator(clf, SPLIT.X, SPLIT.y, grid_resolution=15)
        draws = clf.sample_latent(display.x[:, None], 40_000, random_state=1)
        low, high = np.quantile(draws, [0.025, 0.975], axis=1)
        spread = draws.std(axis=1)
        assert_allclose((display.low[:, 0] - low) / spread, 0.0, atol=0.1)
        assert_allclose((display.high[:, 0] - high) / spread, 0.0, atol=0.1)
        assert_allclose(ndtr(display.low), display.proba_low, atol=1e-5)

    def test_three_classes_have_a_curve_each(self):
        clf = fit(IRIS[:, :1], SPECIES, likelihood="softmax")
        display = LatentDisplay.from_estimator(clf, IRIS[:, :1], SPECIES, grid_resolution=20)
        assert display.proba.shape == display.high.shape == (20, 3)
        assert_allclose(display.proba.sum(axis=1), 1.0)
        assert len({line.get_linestyle() for line in display.axes_[0].lines[1:]}) == 3


class TestTrace:
    def test_autocorrelation_by_sums_and_by_law(self):
        rng = np.random.default_rng(0)
        noise = rng.standard_normal((3, 20_000))
        series = np.zeros_like(noise)
        for t in range(1, noise.shape[1]):
            series[:, t] = 0.8 * series[:, t - 1] + noise[:, t]
        found = autocorrelation(series, 5)
        assert_allclose(found.mean(axis=0), 0.8 ** np.arange(6), atol=0.03)
        away = series[0] - series[0].mean()
        direct = [away[: len(away) - k] @ away[k:] / (away @ away) for k in range(6)]
        assert_allclose(found[0], direct, rtol=1e-9)
        assert_array_equal(autocorrelation(np.ones((1, 9)), 2), [[1.0, 0.0, 0.0]])

    def test_ranks(self):
        low, high = np.arange(100.0), np.arange(100.0, 200.0)
        counts = rank_counts(np.stack([low, high]), 4)
        assert_array_equal(counts, [[50, 50, 0, 0], [0, 0, 50, 50]])

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_chains_of_an_estimator(self):
        clf = fit(SPLIT.X, SPLIT.y, 9.0 * RBF(15.0), inference=MCMC(n_draws=200, n_chains=3))
        display = TraceDisplay.from_estimator(clf, rows=[2, 5])
        assert list(display.values) == ["log likelihood", "f[2]", "f[5]"]
        assert_array_equal(display.values["f[5]"], clf.chains_.f[:, :, 5])
        assert_array_equal(display.axes_[3].lines[1].get_ydata(), clf.chains_.f[1, :, 2])
        assert_allclose(display.diagnostics["f[2]"].rhat, clf.chains_.diagnostics().rhat[2])
        assert len(display.axes_) == 10
        assert [line.get_label() for line in display.axes_[-1].lines] == [
            f"chain {i + 1}: {mean:.2f}" for i, mean in enumerate(clf.chains_.accept.mean(axis=1))
        ]
        worst = int(np.argmax(clf.chains_.diagnostics().rhat))
        assert f"f[{worst}]" in TraceDisplay.from_estimator(clf).values

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_sampled_hyperparameters_have_their_names(self):
        few = MCMC(n_draws=30, n_warmup=20, n_chains=2)
        clf = fit(SPLIT.X, SPLIT.y, 9.0 * RBF(15.0), inference=few, hyperparameters="sample")
        display = TraceDisplay.from_estimator(clf)
        assert list(display.values)[:2] == ["constant value", "length scale"]
        assert_allclose(display.values["length scale"], np.exp(clf.chains_.theta[:, :, 1]))
        assert display.axes_[3].get_yscale() == "log"

    def test_no_chains(self):
        with pytest.raises(AttributeError, match="There are no chains"):
            TraceDisplay.from_estimator(fit(X, Y))


class TestEvidence:
    def test_landscape_is_that_of_a_peer(self):
        """Scikit-learn's Laplace evidence with the logit, point by point."""
        kernel = 2.0 * RBF(3.0)
        clf = GaussianProcessClassifier(kernel, inference="laplace", likelihood="logit").fit(X, Y)
        display = EvidenceDisplay.from_estimator(clf, grid_resolution=5, span=1.0)
        peer = Theirs(kernel, optimizer=None).fit(X, Y)
        for row, second in enumerate(display.second):
            for column, first in enumerate(display.first):
                truth = peer.log_marginal_likelihood(np.log([first, second]))
                assert abs(display.evidence[row, column] - truth) < 1e-4
        assert_allclose(display.best, np.exp(clf.kernel_.theta))
        assert_allclose(display.path, np.exp(clf.history_.theta))
        assert display.evidence.max() <= clf.log_marginal_likelihood_value_ + 1e-6
        star = next(line for line in display.ax_.lines if line.get_label() == "fitted")
        assert_allclose(np.ravel(star.get_data()), display.best)

    def test_a_flat_landscape(self):
        limits = ((3.99, 4.01), (0.699, 0.701))
        display = EvidenceDisplay.from_estimator(fit(X, Y), grid_resolution=3, limits=limits)
        assert np.ptp(display.evidence) < 0.5

    def test_names_and_limits(self):
        clf = fit(X, Y, 1.0 * RBF([1.0, 2.0]))
        names = ("k2__length_scale[1]", "constant_value")
        display = EvidenceDisplay.from_estimator(
            clf, names, grid_resolution=3, limits=((0.5, 2.0), (1.0, 4.0))
        )
        assert_allclose(display.first, [0.5, 1.0, 2.0])
        assert_allclose(display.second, [1.0, 2.0, 4.0])
        truth = clf.log_marginal_likelihood(np.log([4.0, 1.0, 0.5]))
        assert_allclose(display.evidence[2, 0], truth)
        assert display.path is None
        with pytest.raises(ValueError, match="fits none of the hyperparameters"):
            EvidenceDisplay.from_estimator(clf, ("noise", 0))
        with pytest.raises(ValueError, match="choose two different ones"):
            EvidenceDisplay.from_estimator(clf, (1, 1))
        with pytest.raises(ValueError, match="There is no hyperparameter 7"):
            EvidenceDisplay.from_estimator(clf, (0, 7))


class TestRelevance:
    def test_scales_by_name_and_order(self):
        frame = pd.DataFrame(np.column_stack([X, 10.0 * X[:, 0]]), columns=["a", "b", "c"])
        clf = fit(frame, Y, 2.0 * RBF([4.0, 0.5, 1.0]))
        display = RelevanceDisplay.from_estimator(clf)
        assert_allclose(display.relevance, [[0.25, 2.0, 1.0]])
        assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["b", "c", "a"]
        scaled = RelevanceDisplay.from_estimator(clf, frame)
        assert_allclose(scaled.relevance, [[0.25, 2.0, 1.0] * frame.std(ddof=0).to_numpy()])
        scaled.plot(n_top=2)
        assert scaled.order_.tolist() == np.argsort(-scaled.relevance[0])[:2].tolist()

    def test_parts_of_a_kernel(self):
        Z = np.column_stack([X, X[:, 0] ** 2])
        clf = fit(Z, Y, Columns(RBF([2.0, 4.0]), [0, 2]) + Columns(RBF(5.0), 1))
        assert_allclose(RelevanceDisplay.from_estimator(clf).relevance, [[0.5, 0.0, 0.25], [0.0, 0.2, 0.0]])
        with pytest.raises(ValueError, match="no length scale for each column"):
            RelevanceDisplay.from_estimator(fit(X, Y))

    def test_a_kernel_for_each_class(self):
        kernel = CompoundKernel([RBF([1.0, 2.0]), RBF([4.0, 1.0]), RBF([1.0, 8.0])])
        display = RelevanceDisplay.from_estimator(fit(IRIS, SPECIES, kernel, likelihood="softmax"))
        assert_allclose(display.relevance, [[1.0, 0.5], [0.25, 1.0], [1.0, 0.125]])
        assert list(display.labels) == ["setosa", "versicolor", "virginica"]

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_sampled_scales_have_intervals(self):
        few = MCMC(n_draws=60, n_warmup=30, n_chains=2)
        clf = fit(X, Y, 2.0 * RBF([1.0, 1.0]), inference=few, hyperparameters="sample")
        display = RelevanceDisplay.from_estimator(clf, level=0.5)
        draws = np.exp(-clf.chains_.theta[:, :, 1:]).reshape(-1, 2)
        assert_allclose(display.low[0], np.quantile(draws, 0.25, axis=0))
        assert_allclose(display.high[0], np.quantile(draws, 0.75, axis=0))


class TestCalibration:
    @pytest.mark.parametrize("strategy", ["uniform", "quantile"])
    def test_curve_is_scikit_learns(self, strategy):
        rng = np.random.default_rng(0)
        p = rng.uniform(size=300) ** 2
        y = (rng.uniform(size=300) < p).astype(int)
        display = CalibrationDisplay.from_predictions(y, p, n_bins=7, strategy=strategy, level=0.9)
        true, pred = calibration_curve(y, p, n_bins=7, strategy=strategy)
        assert_allclose(display.line_.get_xydata(), np.column_stack([pred, true]))
        assert display.counts_.sum() == 300
        # Each bin by itself, from its mean: the sum of the probabilities in it.
        assert_allclose((pred * display.counts_).sum(), p.sum())
        assert_allclose((true * display.counts_).sum(), y.sum())
        hits = np.round(true * display.counts_)
        assert_allclose(display.high_[1:-1], beta.ppf(0.95, hits + 0.5, display.counts_ - hits + 0.5)[1:-1])

    def test_intervals_hold_as_often_as_they_say(self):
        rng = np.random.default_rng(1)
        p = rng.uniform(0.1, 0.9, size=4000)
        hits = rng.binomial(40, p)
        low, high = jeffreys(hits / 40, np.full(4000, 40), 0.9)
        assert abs(((low <= p) & (p <= high)).mean() - 0.9) < 0.02
        assert jeffreys(np.array([0.0]), np.array([5]), 0.9)[0] == 0.0
        assert bin_counts(np.array([0.05, 0.06, 0.95]), 10).tolist() == [2, 1]

    def test_estimators_side_by_side(self):
        clf = fit(X, Y)
        Z, z = make_moons(200, noise=0.25, random_state=1)
        first = CalibrationDisplay.from_estimator(clf, Z, z)
        second = CalibrationDisplay.from_estimator(LogisticRegression().fit(X, Y), Z, z, ax=first.ax_)
        assert first.line_.get_linestyle() != second.line_.get_linestyle()
        assert first.line_.get_marker() != second.line_.get_marker()
        again = second.plot()
        assert again.ax_ is not first.ax_

    def test_three_classes_are_judged_by_the_predicted_one(self):
        clf = fit(IRIS, SPECIES, likelihood="softmax")
        display = CalibrationDisplay.from_estimator(clf, IRIS, SPECIES, n_bins=4)
        p = clf.predict_proba(IRIS)
        true, pred = calibration_curve(clf.predict(IRIS) == SPECIES, p.max(axis=1), n_bins=4)
        assert_allclose(display.line_.get_xydata(), np.column_stack([pred, true]))
        assert "predicted class" in display.ax_.get_xlabel()


def test_comparison():
    import matplotlib.pyplot as plt

    result = compare(X, Y, methods=("laplace", "ep"), kernel=4.0 * RBF(1.0), learn=False, n_samples=200)
    _, axes = plt.subplots(1, 3)
    display = ComparisonDisplay(result).plot(ax=axes)
    assert display.axes_ is axes
    assert display.figure_ is axes[0].figure
    dots = [container[0].get_xdata()[0] for container in axes[0].containers]
    assert dots == [row.log_loss for row in result.rows]
