"""Names of parameters that do not exist."""

from __future__ import annotations

import numpy as np
import pytest
from problems import two_moons_like

from gpclass import GaussianProcessClassifier
from gpclass.core.registry import parts
from gpclass.tasks import Training, resolve


@pytest.mark.parametrize("kind", ["likelihood", "inference"])
def test_a_wrong_name_lists_the_right_ones(kind):
    known = list(parts(kind))
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        GaussianProcessClassifier(**{kind: "nonsense"}).fit(*two_moons_like(20))
    for name in known:
        assert repr(name) in str(caught.value)


def test_automatic_inducing_inputs_give_way_to_a_likelihood_without_them():
    many = Training(np.arange(3), 100_000, np.zeros((1, 1)), np.zeros(1, dtype=int))
    options = {"inference": "vi", "kernel": "rbf"}
    case, _, settings = resolve(GaussianProcessClassifier(likelihood="softmax", **options), many)
    assert case.rows == "inducing"
    assert settings is not None
    case, _, settings = resolve(GaussianProcessClassifier(likelihood="multiprobit", **options), many)
    assert case.rows == "all"
    assert settings is None
    with pytest.raises(ValueError, match="multinomial probit has no form with inducing inputs"):
        resolve(GaussianProcessClassifier(likelihood="multiprobit", inducing=50, **options), many)
