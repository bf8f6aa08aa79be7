"""Shares of the variance against those of functions known in closed form, and costs against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.inspection import permutation_importance

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF, DotProduct

N = 400
rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, (N, 4))
# The variances of x0 and of x1 x2 / √(1/3) on [-1, 1] are 1/3: half of the variance of f each.
F = 6.0 * (X[:, 0] + np.sqrt(3.0) * X[:, 1] * X[:, 2])
Y = rng.random(N) < 1.0 / (1.0 + np.exp(-F))


@pytest.fixture(scope="module")
def table():
    kernel = 9.0 * DotProduct(0.1, sigma_0_bounds="fixed") ** 2 + 9.0 * RBF([1.0, 1.0, 1.0, 5.0])
    clf = GaussianProcessClassifier(kernel, random_state=0, inference="laplace").fit(X, Y)
    return clf, clf.importance(X, Y, max_rows=N)


def test_shares_are_those_of_the_function(table):
    _, found = table
    first, total = (dict(zip(found.features, values, strict=True)) for values in (found.first, found.total))
    assert set(found.features[:3]) == {"x0", "x1", "x2"}
    for shares, truth in ((first, (0.5, 0.0, 0.0, 0.0)), (total, (0.5, 0.5, 0.5, 0.0))):
        for j, share in enumerate(truth):
            median, low, high = shares[f"x{j}"]
            assert low <= median <= high
            assert abs(median - share) < 0.15


def test_correlated_columns_share_what_they_explain():
    """The shares of a sum of two equal columns are those of independent ones: a half each."""
    Z = np.column_stack([X[:200, 0], X[:200, 0] + 0.01 * X[:200, 1]])
    kernel = 25.0 * DotProduct(0.1, sigma_0_bounds="fixed")
    clf = GaussianProcessClassifier(kernel, optimizer=None, random_state=0, inference="ep").fit(
        Z, Z.sum(axis=1) > 0
    )
    found = clf.importance(Z, Z.sum(axis=1) > 0)
    assert_allclose(found.first.sum(axis=0)[0], 1.0, atol=0.2)
    assert found.total[:, 2].max() < 1.2


def test_costs_are_those_of_permuting(table):
    clf, found = table
    theirs = permutation_importance(clf, X, Y, scoring="neg_log_loss", n_repeats=5, random_state=1)
    for j, (cost, error) in enumerate(found.cost[np.argsort(found.features)]):
        assert abs(cost - theirs.importances_mean[j]) < 4.0 * error + 0.01
    assert 0.0 < found.cost[0, 1] < 0.1


def test_table_has_text_and_frame(table):
    _, found = table
    pytest.importorskip("pandas")
    frame = found.to_frame()
    assert frame.index.tolist() == list(found.features)
    assert frame.shape == (4, 8)
    assert_allclose(frame[["total", "total_low", "total_high"]], found.total)
    lines = str(found).splitlines()
    assert lines[1].startswith(found.features[0])
    assert lines[7].startswith(" × ".join(found.pairs[0]))
    assert len(lines) == 5 + 1 + 6


def test_interactions_are_those_of_the_function(table):
    """Half of the variance is that of the product of x1 and x2; no other pair interacts."""
    _, found = table
    assert found.pairs[0] == ("x1", "x2")
    assert found.interaction.shape == (6, 3)
    assert (np.diff(found.interaction, axis=1)[:, 1] >= 0.0).all()
    median, low, high = found.interaction[0]
    assert low < median < high
    assert abs(median - 0.5) < 0.1
    assert found.interaction[1:, 0].max() < 0.05


def test_interactions_of_levels():
    """The product of a sign and a category of two: all of the variance of f."""
    level = np.where(X[:200, 1] > 0.0, "a", "b").astype(object)
    rows = np.column_stack([X[:200, 0].astype(object), level, X[:200, 2].astype(object)])
    clf = GaussianProcessClassifier("rbf", random_state=0).fit(rows, (X[:200, 0] > 0) == (level == "a"))
    found = clf.importance(rows)
    assert found.cost is None
    assert set(found.pairs[0]) == {"x0", "x1"}
    assert found.interaction[0, 1] > 0.5
    assert "cost" not in str(found)
    assert found.to_frame().shape == (3, 6)


def test_a_quadratic_column_counts_by_its_effect():
    """A fast, small wave has the shorter length scale; a quadratic column explains more of f."""
    Z = X[:, :3]
    f = 8.0 * (Z[:, 0] ** 2 - 1.0 / 3.0) + 2.5 * np.sin(9.0 * Z[:, 1])
    kernel = 9.0 * RBF([0.9, 0.3, 5.0])
    clf = GaussianProcessClassifier(
        kernel, optimizer=None, random_state=0, likelihood="logit", inference="ep"
    )
    clf.fit(Z, rng.random(N) < 1.0 / (1.0 + np.exp(-f)))
    found = clf.importance(Z)
    assert found.features[0] == "x0"
    share = (64.0 * 4.0 / 45.0) / (64.0 * 4.0 / 45.0 + 3.125 * (1 - np.sin(18.0) / 18.0))
    assert found.first[0, 1] < share < found.first[0, 2]


def test_note_tells_of_equal_length_scales():
    f = 6.0 * X[:, 0]
    y = rng.random(N) < 1.0 / (1.0 + np.exp(-f))
    for scale, words in (([1.0] * 4, "nearly equal"), ([1.0, 30.0, 30.0, 30.0], "")):
        kernel = 9.0 * RBF(scale)
        clf = GaussianProcessClassifier(kernel, optimizer=None, random_state=0).fit(X, y)
        found = clf.importance(X, max_rows=50, n_draws=20)
        assert words in found.note
        assert bool(found.note) == bool(words)
        assert found.note in str(found)


def test_levels_count_by_their_frequencies():
    """A category that alone decides explains everything, whatever its frequency."""
    levels = np.where(np.arange(200) % 5 == 0, "rare", "common").astype(object)
    rows = np.column_stack([levels, X[:200, 0].astype(object)])
    clf = GaussianProcessClassifier("rbf", random_state=0).fit(rows, levels == "rare")
    found = clf.importance(rows, levels == "rare")
    assert found.features[0] == "x0"
    assert abs(found.first[0, 0] - 1.0) < 0.1
    assert abs(found.total[0, 0] - 1.0) < 0.1


def test_errors(table):
    clf, _ = table
    with pytest.raises(ValueError, match="y has 3 labels, expected 400"):
        clf.importance(X, Y[:3])
    with pytest.raises(ValueError, match="not among the classes"):
        clf.importance(X, np.full(N, 7))
