"""Covariance functions: scikit-learn's, three more, and fast functions of them all.

``matrix``, ``diag``, ``pullback``, ``pullback_diag`` and ``pullback_inputs`` work for every
scikit-learn kernel: those known here by fast formulas, any other through its own methods.
"""

from __future__ import annotations

from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    GenericKernelMixin,
    Hyperparameter,
    Kernel,
    KernelOperator,
    Matern,
    NormalizedKernelMixin,
    PairwiseKernel,
    Product,
    RationalQuadratic,
    StationaryKernelMixin,
    Sum,
    WhiteKernel,
)

from gpclass.kernels import linear  # noqa: F401  (it registers its kernels)
from gpclass.kernels.columns import Columns, bind_columns
from gpclass.kernels.composite import has_noise
from gpclass.kernels.compound import CompoundKernel, settable
from gpclass.kernels.functions import diag, matrix, pullback, pullback_diag, pullback_inputs
from gpclass.kernels.neural import NeuralNetwork
from gpclass.kernels.stationary import Profile, register_stationary
from gpclass.kernels.units import GaussianUnits

__all__ = [
    "RBF",
    "Columns",
    "CompoundKernel",
    "ConstantKernel",
    "DotProduct",
    "ExpSineSquared",
    "Exponentiation",
    "GaussianUnits",
    "GenericKernelMixin",
    "Hyperparameter",
    "Kernel",
    "KernelOperator",
    "Matern",
    "NeuralNetwork",
    "NormalizedKernelMixin",
    "PairwiseKernel",
    "Product",
    "Profile",
    "RationalQuadratic",
    "StationaryKernelMixin",
    "Sum",
    "WhiteKernel",
    "bind_columns",
    "diag",
    "has_noise",
    "matrix",
    "pullback",
    "pullback_diag",
    "pullback_inputs",
    "register_stationary",
    "settable",
]
