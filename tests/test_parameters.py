"""Parameters of the classifier: those without effect are named, and so are names that do not exist."""

from __future__ import annotations

import warnings

import pytest
from problems import two_moons_like
from scipy import stats

from gpclass import GaussianProcessClassifier
from gpclass.core.registry import parts
from gpclass.inference import Laplace
from gpclass.kernels import RBF

X, y = two_moons_like(20)
KERNEL = 2.0 * RBF(1.0)
IDLE = [
    ({"n_restarts_optimizer": 2, "optimizer": None}, "n_restarts_optimizer=2 has no effect"),
    ({"inference": Laplace(), "max_iter_predict": 50}, "max_iter_predict=50 has no effect"),
    ({"optimizer": None, "hyperprior": {"length_scale": stats.gamma(2.0)}}, "hyperprior=.* has no effect"),
    ({"optimizer": None, "warm_start": True, "inducing": 5}, "warm_start=True has no effect"),
]


@pytest.mark.parametrize(("options", "message"), IDLE, ids=[sorted(options)[0] for options, _ in IDLE])
def test_parameters_without_effect_are_told(options, message):
    options = {"inference": "laplace"} | options
    with pytest.warns(UserWarning, match=message):
        GaussianProcessClassifier(KERNEL, **options).fit(X, y)


@pytest.mark.parametrize(
    "options",
    [
        {"n_restarts_optimizer": 1},
        {"max_iter_predict": 50},
        {"hyperprior": {"length_scale": stats.gamma(2.0)}},
        {"warm_start": True, "optimizer": None},
    ],
    ids=lambda options: next(iter(options)),
)
def test_parameters_with_an_effect_are_not(options):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        GaussianProcessClassifier(KERNEL, inference="laplace", **options).fit(X, y)


@pytest.mark.parametrize("kind", ["likelihood", "inference"])
def test_a_wrong_name_lists_the_right_ones(kind):
    known = list(parts(kind))
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        GaussianProcessClassifier(**{kind: "nonsense"}).fit(X, y)
    for name in known:
        assert repr(name) in str(caught.value)
