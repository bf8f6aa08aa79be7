"""The rows behind a prediction add up to its mean, and flipped labels are found."""

from __future__ import annotations

import numpy as np
import pytest
from problems import two_moons_like

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF, CompoundKernel

KERNEL = 4.0 * RBF(0.8) + 0.5
TESTS = np.array([[0.1, 0.2], [1.5, -0.5], [40.0, 40.0]])


def problem(n=40, classes=2):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 2))
    return X, np.digitize(X[:, 0] + 0.3 * rng.normal(size=n), [0.0, 0.8][: classes - 1])


@pytest.mark.parametrize(
    ("options", "classes"),
    [
        ({"inference": "laplace"}, 2),
        ({"inference": "ep"}, 2),
        ({"inference": "dirichlet"}, 2),
        ({"inference": "vi", "likelihood": "ordinal"}, 3),
        ({"inference": "vi", "likelihood": "softmax"}, 3),
        ({"inference": "laplace", "likelihood": "softmax"}, 3),
        ({"inference": "ep"}, 3),
        ({"inference": "laplace", "multi_class": "one_vs_rest"}, 3),
        ({"inference": "laplace", "likelihood": "softmax", "kernel": CompoundKernel([KERNEL, RBF(1.0), KERNEL])}, 3),
    ],
    ids=str,
)  # fmt: skip
def test_shares_add_up_to_the_mean(options, classes):
    X, y = problem(classes=classes)
    clf = GaussianProcessClassifier(**{"kernel": KERNEL, "optimizer": None} | options).fit(X, y)
    mean, std = clf.predict_latent(TESTS, return_std=True)
    offset = np.ravel(getattr(clf.posterior_, "offset", None) or [0.0] * 3) if classes == 3 else np.zeros(3)
    if options["inference"] == "dirichlet":
        offset = clf.posterior_.offset
    predicted = clf.predict_proba(TESTS).argmax(axis=1)
    kernels = getattr(clf.kernel_, "kernels", [clf.kernel_])
    for i, found in enumerate(clf.influences(TESTS, n=1000)):
        one = mean.ndim == 1
        c = classes - 1 if one else predicted[i]
        assert found.supports == clf.classes_[c]
        assert found.mean == pytest.approx(mean[i] if one else mean[i, c])
        assert found.shares.sum() == pytest.approx(found.mean - offset[c], abs=1e-9)
        assert sorted(found.rows) == list(range(len(X)))
        assert found.carried == pytest.approx(1.0)
        prior = kernels[c % len(kernels)].diag(TESTS[:1])[0]
        assert found.variance_left == pytest.approx((std[i] if one else std[i, c]) ** 2 / prior)
        np.testing.assert_array_equal(found.labels, y[found.rows])
        assert (np.diff(np.abs(found.shares)) <= 0.0).all()
    assert found.variance_left > 0.05  # far from all rows only the constant is known


def test_a_share_is_what_the_mean_loses_with_the_weight_of_the_row():
    """The mean is linear in alpha: without the term of a row, with everything else as it is, it loses the share."""
    X, y = problem()
    clf = GaussianProcessClassifier(KERNEL, optimizer=None).fit(X, y)
    for x, found in zip(TESTS, clf.influences(TESTS, n=3), strict=True):
        i = int(np.flatnonzero((clf.posterior_.inputs == X[found.rows[0]]).all(axis=1))[0])
        k = KERNEL(x[None], X[found.rows])[0]
        assert found.shares[0] == pytest.approx(clf.posterior_.alpha[i] * k[0])
        K = KERNEL(np.vstack([x, X[found.rows]]))
        deviations = np.sqrt(K[0, 0] + K.diagonal()[1:] - 2.0 * K[0, 1:])
        np.testing.assert_allclose(
            found.distances, deviations / np.sqrt(K[0, 0] + K.diagonal()[1:]), atol=1e-12
        )
        assert 0.0 < found.carried < 1.0
        assert str(found).count("\n") == 3


@pytest.mark.parametrize("classes", [2, 3])
def test_copies_are_one_row(classes):
    X, y = problem(20, classes)
    again = np.array([5, 5, 7, *range(20)])
    clf = GaussianProcessClassifier(KERNEL, optimizer=None, inference="ep").fit(X[again], y[again])
    found = clf.influences(X[5:6], n=100)[0]
    np.testing.assert_array_equal(
        np.sort(found.rows), np.sort([0, 2, *(i + 3 for i in range(20) if i not in (5, 7))])
    )
    np.testing.assert_array_equal(found.labels, y[again][found.rows])
    offset = 0.0 if getattr(clf.posterior_, "offset", None) is None else clf.posterior_.offset[found.supports]
    assert found.shares.sum() == pytest.approx(found.mean - offset)


def test_distance_is_zero_at_the_row_itself_and_one_far_away():
    X, y = problem()
    clf = GaussianProcessClassifier(4.0 * RBF(0.5), optimizer=None).fit(X, y)
    near, far = clf.influences([X[7], [90.0, 90.0]], n=40)
    assert near.distances[near.rows == 7] == pytest.approx(0.0, abs=1e-7)
    np.testing.assert_allclose(far.distances, 1.0)
    assert far.variance_left == pytest.approx(1.0)


@pytest.mark.parametrize("bias", [0.0, 50.0])
def test_text_says_when_no_row_is_near(bias):
    """A bias, which all rows tell of, does not count: however large it is, a far row is far."""
    X, y = problem()
    kernel = 4.0 * RBF(0.5) + bias if bias else 4.0 * RBF(0.5)
    clf = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
    near, far = clf.influences([X[7] + [0.1, 0.0], [90.0, 90.0]])
    assert near.closest > np.exp(-0.5 * (0.1 / 0.5) ** 2) - 1e-9
    assert far.closest == pytest.approx(0.0, abs=1e-9)
    assert "no training row is near" in str(far)
    assert "no training row is near" not in str(near)


@pytest.mark.parametrize(
    "options", [{"inducing": 5}, {"inducing": 5, "inference": "ep"}, {"inference": "rejection"}], ids=str
)
def test_models_without_shares_say_so(options):
    X, y = problem(40 if "inducing" in options else 6)
    clf = GaussianProcessClassifier(KERNEL, optimizer=None, random_state=0, **options).fit(X, y)
    with pytest.raises(ValueError, match="inducing inputs or after sampling"):
        clf.influences(X[:1])


class TestDoubtfulLabels:
    @pytest.mark.parametrize("classes", [2, 3])
    def test_flipped_labels_come_first(self, classes):
        (X, _), flipped = problem(90), [4, 31, 66]
        y = np.arange(90) % classes
        X[:, 0] = 4.0 * y + np.clip(X[:, 0], -0.7, 0.7)  # clusters with a gap between them
        X[:, 1] *= 0.3
        y[flipped] = (y[flipped] + 1) % classes
        clf = GaussianProcessClassifier(KERNEL, optimizer=None).fit(X, y)
        found = clf.doubtful_labels(3)
        assert sorted(doubt.row for doubt in found) == flipped
        assert all(doubt.label == y[doubt.row] for doubt in found)
        assert found[0].likely == (found[0].label - 1) % classes

    def test_probabilities_are_those_of_a_fit_without_the_row(self):
        X, y = two_moons_like(25)
        clf = GaussianProcessClassifier(KERNEL, optimizer=None, inference="ep").fit(X, y)
        every = clf.doubtful_labels(None)
        assert len(every) == 25
        for doubt in every[:2]:
            rest = np.arange(25) != doubt.row
            other = GaussianProcessClassifier(KERNEL, optimizer=None, inference="ep").fit(X[rest], y[rest])
            p = other.predict_proba(X[doubt.row : doubt.row + 1])[0]
            assert doubt.proba == pytest.approx(p[list(clf.classes_).index(doubt.label)], abs=0.01)
            assert doubt.likely_proba == pytest.approx(p.max(), abs=0.01)
