"""The records that the parts of the library exchange.

Every Gaussian approximation of p(f | X, y) here is the prior times Gaussian sites,

    q(f)  ∝  N(f | 0, K) · Π_i exp(nu_i f_i - tau_i f_i² / 2),

and methods differ only in the rule that computes new sites from the marginals of q. With one latent function vectors
have shape (n,). With one latent function per class they have shape (n, C), and the sites of a data point may couple
its C latent values (`CoupledSites`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gpclass.core.registry import Likelihood as Likelihood
from gpclass.core.registry import stored

Array = NDArray[np.floating[Any]]
Index = NDArray[np.integer[Any]]
Inputs = Any  # rows of a 2-D array, or a sequence of structured objects
DIFFERENCE = 1e-3  # step of theta in central differences, which balances their truncation and rounding errors


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """Gaussian factors exp(nu f - tau f² / 2), one per latent value.

    ``variance`` is the marginal or cavity variance at which a method computed them; a warm start begins there.
    """

    nu: Array
    tau: Array
    variance: Array | None = None

    coupled: ClassVar = False

    @property
    def a(self) -> Array:
        """The precisions ``tau``, under the name that `CoupledSites` uses."""
        return self.tau

    def times(self, v: Array) -> Array:
        """Return T v, where T = diag(tau) is the precision of the sites."""
        return self.tau * v

    def root(self, v: Array) -> Array:
        """Return Q v, where Q Qᵀ = T; here Q is diagonal, so this is also Qᵀ v."""
        return np.sqrt(self.tau) * v

    root_transposed = root

    def block(self, c: int, d: int) -> Array:
        """Return the precision between the latent values c and d of each data point."""
        return self.tau[:, c] * float(c == d)


@stored
@dataclass(frozen=True, slots=True, eq=False)
class CoupledSites:
    """Gaussian factors that couple the C latent values of a data point: exp(nuᵀ f - ½ fᵀ W f).

    W = diag(a) - a aᵀ / Σ_c a_c depends only on differences of latent values, as the Hessian of softmax and the
    sites of the multinomial probit do. ``nu`` and ``a`` have shape (n, C).
    """

    nu: Array
    a: Array

    coupled: ClassVar = True

    def times(self, v: Array) -> Array:
        """Return W v for v of shape (n, C)."""
        a = self.a
        return a * (v - (a * v).sum(axis=-1, keepdims=True) / a.sum(axis=-1, keepdims=True))

    def project(self, v: Array) -> Array:
        """Return (I - p pᵀ) v with the unit vectors p = (a / Σ a)^½."""
        p = np.sqrt(self.a / self.a.sum(axis=1, keepdims=True))
        return v - p * (p * v).sum(axis=1, keepdims=True)

    def root(self, v: Array) -> Array:
        """Return Q v, where Q = diag(a)^½ (I - p pᵀ) and Q Qᵀ = W."""
        return np.sqrt(self.a) * self.project(v)

    def root_transposed(self, v: Array) -> Array:
        """Return Qᵀ v."""
        return self.project(np.sqrt(self.a) * v)

    def block(self, c: int, d: int) -> Array:
        """Return the precision between the latent values c and d of each data point."""
        return self.a[:, c] * (float(c == d) - self.a[:, d] / self.a.sum(axis=1))


AnySites = Sites | CoupledSites


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """E[l], E[l'] and E[l''] of l(f) = log p(y|f) under a Gaussian, one per data point.

    With several latent values per data point, slope and curvature have shape (n, C).
    """

    value: Array
    slope: Array
    curvature: Array


@dataclass(frozen=True, slots=True, eq=False)
class Tilted:
    """The tilted distribution N(f | mean, var) p(y|f)^power, with Z its normalising constant.

    ``slope`` and ``curvature`` are d log Z / d mean and -d² log Z / d mean²; ``shrink`` is the
    tilted variance over ``var``, so the tilted mean is mean + var · slope.
    """

    log_mass: Array
    slope: Array
    curvature: Array
    shrink: Array


@dataclass(frozen=True, slots=True, eq=False)
class Adjoint:
    """d log evidence / d K, not formed as a matrix: G = ½(alpha alphaᵀ - R) + ½(u alphaᵀ + alpha uᵀ).

    R = S B⁻¹ S stays with the `gpclass.priors.base.Conditioned` that made it. Without ``u`` the evidence is stationary
    in the sites.
    """

    alpha: Array
    conditioned: Any
    u: Array | float = 0.0

    def factors(self) -> tuple[Array, Array]:
        """Return matrices with 2 G + R = left rightᵀ: the columns of alpha and ½ alpha + u, in either order."""
        beta, n = 0.5 * self.alpha + self.u, len(self.alpha)
        a, b = self.alpha.reshape(n, -1), beta.reshape(n, -1)
        return np.hstack([a, b]), np.hstack([b, a])


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Info:
    """The end of an iteration; ``residual`` is the quantity whose size determines ``converged``."""

    converged: bool
    n_iter: int
    residual: float


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The result of inference at one theta.

    ``adjoint`` and ``likelihood_gradient`` (with respect to the likelihood's own theta) are functions, because a
    caller that only needs the evidence should not compute the gradient. ``exact_gradient`` is False if a
    negative precision was set to zero, because log p(y|f) is not concave: the adjoint is then incomplete.
    ``offset`` are prior means of the latent functions, to be added to the means of q; None for zero.
    """

    sites: AnySites
    conditioned: Any
    evidence: float
    adjoint: Callable[[], Adjoint]
    info: Info
    likelihood_gradient: Callable[[], Array]
    exact_gradient: bool = True
    offset: Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Weighted Gaussians that share a covariance, at some rows.

    With one latent function ``mean`` is (rows, S) and ``cov`` (rows,), the variances; with C of them ``mean`` is
    (rows, S, C) and ``cov`` (rows, C, C). ``weight`` has shape (S,). A Gaussian posterior is one part with S = 1.
    """

    mean: Array
    cov: Array
    weight: Array


@runtime_checkable
class Inference(Protocol):
    """A frozen record of settings, called at one theta; ``init`` are the sites to start from."""

    def __call__(
        self, prior: Any, likelihood: Any, y: Array, *, weight: Array | None = None, init: Any = None
    ) -> Result:
        """Return sites, evidence and adjoint; weight k counts a data point as k copies of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The log evidence at one theta.

    The next evaluation, at a nearby theta, starts from ``warm``. ``gradient`` is None if it was not requested.
    """

    evidence: float
    gradient: Array | None
    warm: Any
    info: Info


class Objective(Protocol):
    """The log evidence of a model as a function of theta, the logarithms of its hyperparameters."""

    @property
    def description(self) -> str:
        """Return the name of the method, for messages."""

    def evaluate(self, theta: Array, warm: Any = None, *, gradient: bool = True) -> Evaluation:
        """Return the evidence at theta, starting from ``warm`` if it is given."""
