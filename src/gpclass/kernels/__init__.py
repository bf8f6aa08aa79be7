"""Covariance functions: scikit-learn's kernels, six more, and fast operations on all of them.

``matrix``, ``diag``, ``pullback`` and ``pullback_diag`` work for every scikit-learn kernel, with fast formulas for
registered kernels and the kernel's own methods for others. A new kernel is a subclass of `FormulaKernel` in a file
of its own, which has to be imported; the class has an example.
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

from gpclass.kernels.base import Covariances, FormulaKernel, free_sizes, move, register
from gpclass.kernels.composite import CompoundKernel, has_noise, settable
from gpclass.kernels.functions import diag, matrix, pullback, pullback_diag
from gpclass.kernels.inputs import Columns, Grouped, bind_columns
from gpclass.kernels.linear import Linear
from gpclass.kernels.names import default_kernel, kernel_names, named_kernel, takes_vectors
from gpclass.kernels.networks import GaussianUnits, NeuralNetwork
from gpclass.kernels.stationary import Profile, Stationary
from gpclass.kernels.warped import Warped, warps

__all__ = [
    "RBF",
    "Columns",
    "CompoundKernel",
    "ConstantKernel",
    "Covariances",
    "DotProduct",
    "ExpSineSquared",
    "Exponentiation",
    "FormulaKernel",
    "GaussianUnits",
    "GenericKernelMixin",
    "Grouped",
    "Hyperparameter",
    "Kernel",
    "KernelOperator",
    "Linear",
    "Matern",
    "NeuralNetwork",
    "NormalizedKernelMixin",
    "PairwiseKernel",
    "Product",
    "Profile",
    "RationalQuadratic",
    "Stationary",
    "StationaryKernelMixin",
    "Sum",
    "Warped",
    "WhiteKernel",
    "bind_columns",
    "default_kernel",
    "diag",
    "free_sizes",
    "has_noise",
    "kernel_names",
    "matrix",
    "move",
    "named_kernel",
    "pullback",
    "pullback_diag",
    "register",
    "settable",
    "takes_vectors",
    "warps",
]
