"""Effects against scikit-learn's partial dependence, brute-force draws and functions known in advance."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import two_moons_like
from scipy.special import expit
from sklearn.datasets import load_iris
from sklearn.inspection import partial_dependence

from gpclass import DoubtfulFitWarning, GaussianProcessClassifier
from gpclass.kernels import RBF
from gpclass.mcmc import MCMC

X, Y = two_moons_like(60, d=3)
KERNEL = 4.0 * RBF([1.0, 2.0, 3.0])


def fit(X=X, y=Y, **options):
    return GaussianProcessClassifier(
        **{"kernel": KERNEL, "optimizer": None, "random_state": 0} | options
    ).fit(X, y)


@pytest.fixture(scope="module")
def clf():
    return fit()


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X[::2, :3], np.array(["setosa", "versicolor", "virginica"])[y[::2]]


@pytest.mark.parametrize("features", [0, (0, 2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_mean_is_the_partial_dependence(clf, features, weighted):
    weight = np.arange(60.0) if weighted else None
    ours = clf.effect(X, features, grid_resolution=6, sample_weight=weight)
    options = {"grid_resolution": 6, "sample_weight": weight, "response_method": "predict_proba"}
    theirs = partial_dependence(clf, X, features, **options)
    for mine, other in zip(np.atleast_2d(ours.grid), theirs["grid_values"], strict=True):
        assert_allclose(mine, other)
    assert_allclose(ours.mean, theirs["average"][0], atol=1e-12)


def test_the_text_of_an_effect_has_the_band_and_not_the_data(clf):
    text = str(clf.effect(X, 0, grid_resolution=3))
    assert "low=array(" in text
    assert not any(word in text for word in ("cov=", "individual=", "data="))


@pytest.mark.parametrize("features", [0, (0, 2)])
def test_individual_curves_are_those_of_the_rows(clf, features):
    options = {"grid_resolution": 4, "response_method": "predict_proba", "kind": "individual"}
    theirs = partial_dependence(clf, X, features, **options)["individual"][0]
    ours = clf.effect(X, features, grid_resolution=4)
    assert_allclose(ours.individual, theirs, atol=1e-12)
    centred = clf.effect(X, features, "latent", grid_resolution=4, centred=True)
    rows = clf.effect(X, features, "latent", grid_resolution=4).individual
    expected = rows - rows.reshape(60, -1).mean(axis=1).reshape(60, *[1] * (rows.ndim - 1))
    assert_allclose(centred.individual, expected, atol=1e-12)
    assert_allclose(centred.individual.mean(axis=0), centred.mean, atol=1e-12)


def test_ordered_classes_have_a_curve_each_and_one_latent_function(iris):
    X, y = iris
    clf = fit(X, y, likelihood="ordinal", inference="vi")
    ours = clf.effect(X, 2, grid_resolution=5, n_draws=4000)
    theirs = partial_dependence(clf, X, 2, grid_resolution=5, response_method="predict_proba")
    assert_allclose(ours.mean.T, theirs["average"], atol=1e-12)
    copies = np.repeat(X[None], 5, axis=0)
    copies[:, :, 2] = ours.grid[:, None]
    f = clf.sample_latent(copies.reshape(-1, 3), 4000, random_state=1)
    p = np.exp(clf.likelihood_.log_classes(f)).reshape(5, 75, 4000, 3).mean(axis=1)
    for end, tail in ((ours.low, 0.025), (ours.high, 0.975)):
        assert_allclose(end, np.quantile(p, tail, axis=1), atol=0.15 * p.std(axis=1).max())
    f = f.reshape(5, 75, 4000).mean(axis=1)
    latent = clf.effect(X, 2, "latent", grid_resolution=5)
    assert latent.mean.shape == (5,)
    assert latent.classes.tolist() == ["virginica"]
    assert_allclose((latent.mean - f.mean(axis=1)) / f.std(axis=1), 0.0, atol=0.1)


def test_individual_curves_of_several_classes(iris):
    X, y = iris
    clf = fit(X, y, inference="laplace", likelihood="softmax")
    effect = clf.effect(X, 2, grid_resolution=4)
    assert effect.individual.shape == (75, 4, 3)
    assert_allclose(effect.individual.mean(axis=0), effect.mean, atol=1e-12)
    changed = X.copy()
    changed[:, 2] = effect.grid[1]
    assert_allclose(effect.individual[:, 1], clf.predict_proba(changed), atol=1e-12)


@pytest.mark.parametrize("options", [{"likelihood": "softmax"}, {"multi_class": "one_vs_rest"}])
def test_mean_of_several_classes_is_the_partial_dependence(iris, options):
    X, y = iris
    clf = fit(X, y, inference="laplace", **options)
    ours = clf.effect(X, 2, grid_resolution=5)
    theirs = partial_dependence(clf, X, 2, grid_resolution=5, response_method="predict_proba")
    assert ours.classes.tolist() == ["setosa", "versicolor", "virginica"]
    assert_allclose(ours.mean.T, theirs["average"], atol=1e-12)
    assert_allclose(ours.mean.sum(axis=1), 1.0)
    assert (ours.low < ours.mean).all()
    assert (ours.mean < ours.high).all()


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("inference", ["laplace", MCMC(n_draws=400, n_warmup=100)], ids=["laplace", "mcmc"])
def test_bands_are_those_of_brute_force_draws(inference, centred):
    clf = fit(inference=inference, likelihood="logit")
    rows, G, n = np.arange(0, 60, 3), 5, 20_000
    ours = {
        kind: clf.effect(X[rows], 1, kind, level=0.9, grid_resolution=G, centred=centred, n_draws=4000)
        for kind in ("latent", "probability")
    }
    copies = np.repeat(X[rows][None], G, axis=0)
    copies[:, :, 1] = ours["latent"].grid[:, None]
    f = clf.sample_latent(copies.reshape(-1, 3), n, random_state=1).reshape(G, len(rows), n)
    for kind, values in (("latent", f), ("probability", expit(f))):
        average = values.mean(axis=1)
        if centred:
            average -= average.mean(axis=0)
        std = average.std(axis=1)
        effect = ours[kind]
        assert_allclose((effect.mean - average.mean(axis=1)) / std, 0.0, atol=0.03)
        assert_allclose(effect.std / std, 1.0, atol=0.05)
        for end, tail in (("low", 0.05), ("high", 0.95)):
            difference = getattr(effect, end) - np.quantile(average, tail, axis=1)
            assert_allclose(difference / std, 0.0, atol=0.13, err_msg=f"{kind} {end}")
        assert_allclose(effect.cov / np.outer(std, std), np.corrcoef(average), atol=0.1)


def test_two_functions_of_two_classes_have_the_effect_of_their_difference():
    one = fit(kernel=8.0 * RBF([1.0, 2.0, 3.0]), likelihood="logit", inference="laplace")
    two = fit(kernel=4.0 * RBF([1.0, 2.0, 3.0]), likelihood="softmax", inference="laplace")
    ours, theirs = one.effect(X, 0, "latent"), two.effect(X, 0, "latent")
    for name in ("mean", "low", "high", "cov"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-5, err_msg=name)


def test_columns_of_a_table_keep_their_units():
    pd = pytest.importorskip("pandas")
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(60) * 3, unit="D")
    age = np.where(np.arange(60) % 7 == 0, np.nan, X[:, 0])
    level = np.where(X[:, 1] > 0.3, "high", np.where(X[:, 1] < -0.3, "low", None))
    frame = pd.DataFrame({"day": days, "age": age, "level": level, "same": 1.0})
    clf = fit(frame, Y, kernel="rbf")
    by_day, by_level = clf.effect(frame, "day", grid_resolution=4), clf.effect(frame, 2)
    assert by_day.grid.dtype.kind == "M"
    assert days[0] < by_day.grid[0] < by_day.grid[-1] < days[-1]
    assert by_level.features == ("level",)
    assert by_level.grid.tolist() == ["high", "low", None]
    for effect, column in ((by_day, "day"), (by_level, "level"), (clf.effect(frame, "age"), "age")):
        for value, mean in zip(effect.grid, effect.mean, strict=True):
            p = clf.predict_proba(frame.assign(**{column: value}))[:, 1]
            assert_allclose(mean, p.mean(), atol=1e-9)
    assert len(clf.effect(frame, "same", "latent").mean) == 1
    assert clf.effect(frame, ("day", "level"), "latent", grid_resolution=3).mean.shape == (3, 3)


def test_errors_and_warnings(clf, iris):
    for wrong in ("height", 3, 1.5, (0, 1, 2)):
        with pytest.raises(ValueError, match="features"):
            clf.effect(X, wrong)
    with pytest.raises(ValueError, match="kind='mean' is not valid: expected 'probability' or 'latent'"):
        clf.effect(X, 0, kind="mean")
    with pytest.raises(ValueError, match=r"percentiles=.* two increasing numbers"):
        clf.effect(X, 0, percentiles=(0.9, 0.1))
    gaps = np.where(np.arange(60)[:, None] % 3 == [0, 1, 2], np.nan, X)
    with pytest.raises(ValueError, match="Column 'x1' of X has only missing values"):
        fit(gaps, kernel="rbf").effect(np.where([False, True, False], np.nan, X), 1)
    with pytest.warns(DoubtfulFitWarning, match="too narrow"):
        fit(*iris, inference="dirichlet").effect(iris[0], 0, "latent")
