"""The Gaussian latent functions of a fitted model, with their moments as ONNX operators.

`latent_of` is the only place that looks into a fitted model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.learning.fitted import FittedModel
from gpclass.onnx.graph import OnnxExportError, Value
from gpclass.onnx.kernels import covariances
from gpclass.posteriors import GaussianProcess


@dataclass(frozen=True, slots=True, eq=False)
class Latent:
    """Gaussian latent functions f_c, and the likelihood of the classes given their values.

        mean_c(x) = offset_c + k_c alpha_c
        cov_cd(x) = [c = d] (k_c(x, x) - |k_c T|² - (k_c A_c)·(k_c B_c)) + (k_c A_c)·(k_d A_d)

    where k_c is the row k_c(x, inputs) and the last term exists only if the functions are ``coupled``.
    ``reductions`` are the pairs A_c, B_c, in which B_c may be None for the identity; ``common`` is T, None for zero.
    """

    likelihood: Any
    kernels: tuple[Any, ...]  # one for all functions, or one for each
    inputs: Any
    alpha: Array  # one column per function
    reductions: tuple[tuple[Array, Array | None], ...]
    coupled: bool = False
    common: Array | None = None
    offset: Array | None = None

    @property
    def n_functions(self) -> int:
        """Return the number of latent functions."""
        return int(self.alpha.shape[1])

    def moments(self, X: Value, variances: bool) -> tuple[list[Value], dict[tuple[int, int], Value]]:
        """Return means and, if requested, covariances of the latent values, as columns."""
        C, width = self.n_functions, self.inputs.shape[1] if np.ndim(self.inputs) == 2 else 0
        Ks = [covariances(kernel, X, width, self.inputs) for kernel in self.kernels]
        mean = [Ks[c % len(Ks)] @ self.alpha[:, c : c + 1] for c in range(C)]
        if self.offset is not None:
            mean = [value + float(shift) for value, shift in zip(mean, self.offset, strict=True)]
        cov: dict[tuple[int, int], Value] = {}
        if not variances:
            return mean, cov
        priors = [covariances(kernel, X, width) for kernel in self.kernels]
        if self.common is not None:
            shared = [K @ self.common for K in Ks]
            priors = [prior - (T * T).sum() for prior, T in zip(priors, shared, strict=True)]
        Y = [Ks[c % len(Ks)] @ left for c, (left, _) in enumerate(self.reductions)]
        for c, (left, right) in enumerate(self.reductions):
            K, prior = Ks[c % len(Ks)], priors[c % len(Ks)]
            other = Y[c] if right is left else K if right is None else K @ right
            cov[c, c] = (prior - (Y[c] * other).sum()).maximum(0.0)
            for d in range(c):
                cov[c, d] = cov[d, c] = (Y[c] * Y[d]).sum() if self.coupled else prior * 0.0
            if self.coupled:
                cov[c, c] = cov[c, c] + (Y[c] * Y[c]).sum()
        return mean, cov


def latent_of(model: FittedModel) -> Latent:
    """Return the latent functions of a fitted model, or raise if they are not Gaussian."""
    q = model.posterior
    if not isinstance(q, GaussianProcess):
        raise OnnxExportError(
            f"A model that was sampled ({type(q).__name__}) is an average over many draws, which "
            "has no ONNX form: fit with inference='vi', 'ep' or 'laplace' and hyperparameters='learn'."
        )
    root: Any = None if q.root is None else np.tril(q.root).astype(float)
    none = np.zeros((1, len(q.inputs)))  # of a class without rows
    factors = [(F if len(F) else none).T.astype(float) for F in q.factors or (root,)]
    return Latent(
        model.likelihood,
        q.kernels,
        q.inputs,
        q.alpha.reshape(len(q.alpha), -1),
        tuple((F, root if q.coupled else F) for F in factors),
        coupled=q.coupled,
        common=None if q.coupled or root is None or not q.factors else root.T,
        offset=q.offset,
    )
