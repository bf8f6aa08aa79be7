"""The logistic likelihood p(y|f) = sigma(y f), y = -1 or +1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit

from gpclass.core.protocols import Array, Expected, Tilted
from gpclass.likelihoods import links, logistic
from gpclass.likelihoods.base import BinaryLikelihood
from gpclass.likelihoods.quadrature import flatten, quiet
from gpclass.likelihoods.softmax import Softmax


@dataclass(frozen=True, slots=True)
class Logit(BinaryLikelihood):
    """Logistic likelihood, p(y|f) = 1 / (1 + exp(-y f)).

    Averages under a Gaussian have no closed form; they are computed to a relative error below 1e-10
    (1e-12 is usual) for ``|mean|`` <= 1e3 and var <= 1e8, logarithms of averages likewise, however small the
    average. E[link''], which changes sign, has that error relative to E[link']. ``tilted`` with a power
    other than 1 is as accurate for var <= 1e6.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.likelihoods import Logit
    >>> likelihood = Logit()
    >>> np.exp(likelihood.log_predict(np.array([0.0]), np.array([4.0]))).round(12)
    array([[0.5, 0.5]])
    >>> likelihood.log_predict(np.array([-900.0]), np.array([1.0]))  # log E[sigma] ≈ mean + var/2
    array([[  -0. , -899.5]])
    """

    symmetric = True

    @property
    def probit_scale(self) -> float:
        """Return √(8/pi), which gives Phi(f / scale) the slope of the link at 0."""
        return float(np.sqrt(8.0 / np.pi))

    def several(self) -> Softmax:
        """Return the likelihood for three classes or more that this one is a case of."""
        return Softmax()

    def link(self, f: Array) -> Array:
        """Return p(y=+1|f)."""
        out: Array = expit(np.asarray(f, dtype=np.float64))
        return out

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
        """Return var · l'''(f) = var · sigma'(f) tanh(f/2), whichever the label."""
        shape, (_, f, var) = flatten(y, f, var)
        with quiet():
            out: Array = var * (expit(f) * expit(-f) * np.tanh(0.5 * f))
        return out.reshape(shape)

    def expected(self, y: Array, mean: Array, var: Array) -> Expected:
        """Return E[l], E[l'], E[l''] under N(f | mean, var)."""
        shape, (y, mean, var) = flatten(y, mean, var)
        z = y * mean
        with quiet():
            e = links.expected(logistic.LINK, np.abs(z), var)
            # log sigma(f) = f + log sigma(-f) takes a negative z to a positive one.
            value = np.minimum(z, 0.0) - e.scale * e.value
            slope = y * np.where(z < 0.0, 1.0 - e.slope, e.slope)
            parts = (value, slope, -e.curvature / e.scale)
        return Expected(*(a.reshape(shape) for a in parts))

    def tilted(self, y: Array, mean: Array, var: Array, power: Array | float = 1.0) -> Tilted:
        """Return mass and moments of N(f | mean, var) p(y|f)^power, power from 0 to 2."""
        return links.tilted(logistic.tilted, logistic.tilted, y, mean, var, power)
