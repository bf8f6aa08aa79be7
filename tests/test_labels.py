"""Labels of any kind in the form that likelihoods take."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning

from gpclass import GaussianProcessClassifier
from gpclass.validation import Encode


def test_matrices_are_refused():
    X, codes = np.arange(6.0)[:, None], np.array([0, 1, 2, 0, 1, 2])
    clf = GaussianProcessClassifier(optimizer=None)
    for P in (np.eye(3)[codes], np.eye(3, dtype=int)[codes]):
        with pytest.raises(ValueError, match="1d array"):
            clf.fit(X, P)
    with pytest.warns(DataConversionWarning):
        clf.fit(X, codes[:, None])


class TestEncode:
    def test_unknown_labels_are_named(self):
        encode = Encode(np.array([1, 2]))
        with pytest.raises(ValueError, match="label 3 is not among the classes, which are 1, 2"):
            encode(np.array([1, 3]), None)
        with pytest.raises(ValueError, match="label 'two' is not among the classes"):
            encode(np.array(["two"]), None)
        with pytest.raises(ValueError, match="label None is not among"):
            encode(np.array([None, 1], dtype=object), None)

    def test_texts_of_all_kinds(self):
        y = np.array(["b", "a", "b"])
        for classes in (np.array(["a", "b"]), np.array(["a", "b"], dtype=object)):
            for labels in (y, y.astype(object), y.astype("U20")):
                assert Encode(classes, (-1.0, 1.0))(labels, None)[0].tolist() == [1.0, -1.0, 1.0]
