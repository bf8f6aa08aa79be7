"""The moments of the latent functions of a fitted model, as ONNX operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.learning.fitted import FittedModel
from gpclass.onnx.graph import OnnxExportError, Value
from gpclass.onnx.kernels import covariances
from gpclass.posteriors import GaussianProcess


def moments(
    model: FittedModel, X: Value, variances: bool
) -> tuple[list[Value], dict[tuple[int, int], Value]]:
    """Return means and, if requested, covariances of the latent values f_c, as columns.

    With the row k_c of covariances with the inputs, the factors F_c and the root T of the posterior,

        mean_c(x) = offset_c + k_c alpha_c
        cov_cd(x) = [c = d] (k_c(x, x) - |k_c Tᵀ|² - |k_c F_cᵀ|²)                       if they are independent
        cov_cd(x) = [c = d] (k_c(x, x) - (k_c F_cᵀ)·(k_c T)) + (k_c F_cᵀ)·(k_d F_dᵀ)    if they are coupled
    """
    q = model.posterior
    if not isinstance(q, GaussianProcess):
        raise OnnxExportError(
            f"A model that was sampled ({type(q).__name__}) is an average over many draws, which "
            "has no ONNX form: fit with inference='vi', 'ep' or 'laplace' and hyperparameters='learn'."
        )
    alpha, width = q.alpha.reshape(len(q.alpha), -1), q.inputs.shape[1] if np.ndim(q.inputs) == 2 else 0
    functions = range(alpha.shape[1])
    own = [c % len(q.kernels) for c in functions]  # one kernel for all functions, or one for each
    Ks = [covariances(kernel, X, width, q.inputs) for kernel in q.kernels]
    mean = [Ks[own[c]] @ alpha[:, c : c + 1] for c in functions]
    if q.offset is not None:
        mean = [value + float(shift) for value, shift in zip(mean, q.offset, strict=True)]
    if not variances:
        return mean, {}
    priors = [covariances(kernel, X, width) for kernel in q.kernels]
    root = None if q.root is None else np.tril(q.root).astype(float)
    if root is not None and not q.coupled:
        whitened = [K @ root.T for K in Ks]
        priors = [prior - (T * T).sum() for prior, T in zip(priors, whitened, strict=True)]
    # A class without rows has a factor without rows.
    Y = [Ks[own[c]] @ F.T.astype(float) if len(F) else Ks[own[c]] * 0.0 for c, F in enumerate(q.factors)]
    cov: dict[tuple[int, int], Any] = {}
    for c in functions:
        for d in range(c + 1):
            cov[c, d] = cov[d, c] = (Y[c] * Y[d]).sum() if q.coupled else priors[own[c]] * 0.0
        reduced = priors[own[c]]
        if q.factors:
            reduced = reduced - (Y[c] * (Ks[own[c]] @ root if q.coupled else Y[c])).sum()
        cov[c, c] = cov[c, c] + reduced.maximum(0.0)
    return mean, cov
