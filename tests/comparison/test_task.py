"""The rows of a comparison: folds, other splits and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import two_moons_like
from sklearn.dummy import DummyClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import ShuffleSplit

from gpclass.comparison import compare
from gpclass.inference import EP
from gpclass.kernels import RBF

X, Y = two_moons_like(60)
QUICK = {"kernel": 4.0 * RBF(1.5), "learn": False, "n_samples": 0, "random_state": 0}


def test_all_methods_get_the_same_folds():
    seen = []

    class Recording(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append(np.array(X))
            return super().fit(X, y)

    compare(X, Y, methods={"a": Recording(), "b": Recording()}, cv=3, random_state=0)
    for ours, theirs in zip(seen[:4], seen[4:], strict=True):
        assert_array_equal(ours, theirs)
    assert_array_equal(seen[0], X)


def test_other_splits():
    result = compare(X, Y, methods="laplace", cv=ShuffleSplit(3, test_size=10, random_state=0), **QUICK)
    assert len(result.index) == 30
    row = result.rows[0]
    assert_allclose(row.log_loss, log_loss(Y[result.index], row.proba))
    nothing = compare(X, Y, methods="laplace", cv=None, **QUICK)
    assert nothing.rows[0].proba is None
    assert "no rows scored" in str(nothing)


@pytest.mark.parametrize(("change", "message"), [
    ({"methods": ()}, "methods is empty"),
    ({"methods": "expectation"}, "inference='expectation' is not possible"),
    ({"methods": [("ep", "logit", "x")]}, "expected a pair"),
    ({"methods": [EP]}, "inference is the class EP"),
    ({"methods": {"svm": object}}, "is the class object"),
    ({"likelihood": "cauchit"}, "likelihood='cauchit' is not possible"),
    ({"cv": 1}, "cv=1 is not possible"),
    ({"cv": 50}, "smallest class has"),
    ({"X_test": X}, "Only one of X_test and y_test"),
    ({"X_test": X, "y_test": Y[:3]}, "y_test has shape"),
    ({"X_test": X, "y_test": Y + 1}, "which does not occur in y"),
    ({"X_test": X[:, :1], "y_test": Y}, "features"),
    ({"y": np.ones(60)}, "only the class"),
    ({"X": np.full((60, 2), np.nan)}, "All columns of X are constant"),
])  # fmt: skip
def test_bad_input_is_named_at_once(change, message):
    with pytest.raises(ValueError, match=message):
        compare(**({"X": X, "y": Y} | QUICK | change))
