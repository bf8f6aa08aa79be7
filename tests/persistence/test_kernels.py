"""Which parameters of kernels a model file may hold."""

from __future__ import annotations

import numpy as np
import pytest

from gpclass.kernels import (
    RBF,
    Columns,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    FormulaKernel,
    Linear,
    Matern,
    NeuralNetwork,
    PairwiseKernel,
    Profile,
    Stationary,
    WhiteKernel,
    covariances,
)
from gpclass.persistence.codec import Decoder, Encoder
from gpclass.persistence.kernels import kernel_complaint, kernel_name

FINE = [
    RBF([1.0, 2.0], "fixed"),
    RBF(1e99, [(0.1, 1.0)]),
    RBF([1e-300, 1e300]),
    Matern(nu=np.inf),
    Matern(nu=1000.0),
    ConstantKernel(0.0) + WhiteKernel(0.0) * DotProduct(0.0) ** 0.5,
    NeuralNetwork(0.0),
    Linear(centre=[0.0, -3.0]),
    PairwiseKernel(0.0, metric="poly", pairwise_kernels_kwargs={"degree": 2}),
    Columns(RBF(), slice(None, None, 2)),
    Columns(RBF(), np.array([True, False])),
    CompoundKernel([RBF(), Matern()]),
]
WRONG = [
    RBF(0.0),
    RBF(-1.0),
    RBF(np.nan),
    RBF([[1.0, 2.0]]),
    RBF("a"),
    RBF(1.0, "free"),
    RBF(1.0, (-1.0, 1.0)),
    Matern(nu=0.0),
    Matern(nu=1e4),
    Matern(nu=-np.inf),
    Matern(nu=[1.5]),
    ConstantKernel(-1.0),
    ConstantKernel(True),
    WhiteKernel(np.inf),
    RBF() ** -1.0,
    RBF() ** 1e4,
    Linear(centre=np.nan),
    PairwiseKernel(metric="nothing"),
    PairwiseKernel(metric=len),
    PairwiseKernel(pairwise_kernels_kwargs={"n_jobs": 4}),
    Columns(RBF(), slice(None, None, 0)),
    Columns(RBF(), 0.5),
    Columns(3, [0]),
    CompoundKernel([]),
    CompoundKernel([RBF(), 3]),
]


@pytest.mark.parametrize("kernel", FINE, ids=str)
def test_possible_parameters(kernel):
    encoder = Encoder()
    code = encoder.value(kernel, "kernel")
    again = Decoder(encoder.tensors).value(code)
    assert type(again) is type(kernel)
    assert repr(again) == repr(kernel)


@pytest.mark.parametrize("kernel", WRONG, ids=range(len(WRONG)))
def test_impossible_parameters(kernel):
    sentence = kernel_complaint(kernel_name(kernel), kernel.get_params(deep=False))
    assert f"of the kernel {type(kernel).__name__} is" in sentence


def test_the_rules_of_names_do_not_hold_for_kernels_of_others(monkeypatch):
    monkeypatch.setattr(covariances, "_REGISTERED", dict(covariances._REGISTERED))

    class Hump(FormulaKernel, formulas=Stationary(lambda kernel: Profile(np.exp, np.exp, factor=-1.0))):
        def __init__(self, length_scale=1.0, nu="text", metric=(1.0, 2.0), length_scale_bounds=(1e-5, 1e5)):
            self.length_scale = length_scale
            self.nu = nu
            self.metric = metric
            self.length_scale_bounds = length_scale_bounds

    assert kernel_complaint("Hump", Hump().get_params()) == ""
    assert "length_scale of the kernel Hump" in kernel_complaint("Hump", Hump(0.0).get_params())
    assert "metric of the kernel Hump" in kernel_complaint("Hump", Hump(metric=len).get_params())
    assert "other parameters" in kernel_complaint("Hump", {"length_scale": 1.0})
