"""Names of parameters that do not exist."""

from __future__ import annotations

import pytest
from problems import two_moons_like

from gpclass import GaussianProcessClassifier
from gpclass.core.registry import parts


@pytest.mark.parametrize("kind", ["likelihood", "inference"])
def test_a_wrong_name_lists_the_right_ones(kind):
    known = list(parts(kind))
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        GaussianProcessClassifier(**{kind: "nonsense"}).fit(*two_moons_like(20))
    for name in known:
        assert repr(name) in str(caught.value)
