"""The logistic likelihood p(y|f) = sigma(y f), y = -1 or +1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit

from gpclass.core.protocols import Array
from gpclass.likelihoods.base import BinaryLikelihood
from gpclass.likelihoods.quadrature import flatten, quiet


@dataclass(frozen=True, slots=True)
class Logit(BinaryLikelihood):
    """Logistic likelihood, p(y|f) = 1 / (1 + exp(-y f)).

    Averages under a Gaussian are quadratures, accurate to 1e-9 for ``|mean|`` <= 1e3 and var <= 1e8.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.likelihoods import Logit
    >>> Logit().log_predict(np.array([-900.0]), np.array([1.0])).round(9)  # log E[sigma] ≈ mean + var/2
    array([[  -0. , -899.5]])
    """

    symmetric = True
    log_concave = True
    level = 1
    counterpart = "softmax"

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log p(y|f)."""
        with quiet():
            return np.asarray(log_expit(np.asarray(y, dtype=np.float64) * f))

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return l, l' and l'' of l(f) = log p(y|f)."""
        y = np.asarray(y, dtype=np.float64)
        z = y * f
        down = expit(-z)
        with quiet():
            return np.asarray(log_expit(z)), y * down, -down * expit(z)

    def third(self, y: Array, f: Array, var: Array) -> Array:
        """Return var · l'''(f) = var · sigma'(f) tanh(f/2), for both labels."""
        shape, (_, f, var) = flatten(y, f, var)
        with quiet():
            return np.asarray(var * (expit(f) * expit(-f) * np.tanh(0.5 * f))).reshape(shape)
