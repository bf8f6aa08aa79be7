"""Every seam of the library: the records that travel and the protocols its parts satisfy.

Every Gaussian approximation of p(f | X, y) here is the prior times Gaussian sites,

    q(f)  ∝  N(f | 0, K) · Π_i exp(nu_i f_i - tau_i f_i² / 2),

and methods differ only in the rule that turns the marginals of q into new sites.
Shapes are those of one latent value a datum; with C latent values a datum, vectors of
shape (n,) become (n, C) and per-datum variances and precisions become (n, C, C).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Index = NDArray[np.integer[Any]]
Inputs = Any  # rows of a 2-D array, or a sequence of structured objects

# ------------------------------------------------------------------------------ records


@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """Gaussian factors exp(nu f - tau f² / 2), one a datum.

    ``spread`` is the variance at which a method made them, if it used one; a warm start begins there.
    """

    nu: Array
    tau: Array
    spread: Array | None = None

    def times(self, v: Array) -> Array:
        """Return T v, T = diag(tau) being the precision of the sites."""
        return self.tau * v


@dataclass(frozen=True, slots=True, eq=False)
class CoupledSites:
    """Gaussian factors that tie the C latent values of a data point: exp(nuᵀ f - ½ fᵀ W f).

    W = diag(a) - a aᵀ / Σ_c a_c only knows differences of latent values, as the Hessian of softmax and the
    sites of the multinomial probit do. ``nu`` and ``a`` have shape (n, C).
    """

    nu: Array
    a: Array

    def times(self, v: Array) -> Array:
        """Return W v for v of shape (n, C)."""
        a = self.a
        out: Array = a * (v - (a * v).sum(axis=-1, keepdims=True) / a.sum(axis=-1, keepdims=True))
        return out


AnySites = Sites | CoupledSites


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """E[l], E[l'] and E[l''] of l(f) = log p(y|f) under a Gaussian, one a datum."""

    value: Array
    slope: Array
    curvature: Array


@dataclass(frozen=True, slots=True, eq=False)
class Tilted:
    """What N(f | mean, var) p(y|f)^power looks like, with Z its mass.

    ``slope`` and ``curvature`` are d log Z / d mean and -d² log Z / d mean²; ``shrink`` is the
    tilted variance over ``var``, so the tilted mean is mean + var · slope.
    """

    log_mass: Array
    slope: Array
    curvature: Array
    shrink: Array


@dataclass(frozen=True, slots=True, eq=False)
class Adjoint:
    """d log evidence / d K, never formed here: ½(alpha alphaᵀ - R) + ½ Σ (u wᵀ + w uᵀ).

    R = S B⁻¹ S stays with the ``Conditioned`` that made it; ``pairs`` holds the (u, w). A ``spread`` b,
    the adjoint of the posterior's variances, adds Mᵀ diag(b) M with M = I - K R.
    """

    alpha: Array
    conditioned: Conditioned
    pairs: tuple[tuple[Array, Array], ...] = ()
    spread: Array | None = None

    def dense(self) -> Array:
        """Return the n x n matrix, for tests."""
        G = np.outer(self.alpha, self.alpha) - self.conditioned.dense_R()
        for u, w in self.pairs:
            G += np.outer(u, w) + np.outer(w, u)
        if self.spread is not None:
            M = self.conditioned.dense_M()
            G += 2.0 * M.T @ (self.spread[:, None] * M)
        return 0.5 * G


@dataclass(frozen=True, slots=True, eq=False)
class Info:
    """How an iteration ended: ``residual`` is what ``converged`` was judged on."""

    converged: bool
    n_iter: int
    residual: float


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What inference at one theta gives.

    ``evidence`` is None where there is none; ``adjoint`` is a function, because a caller that only
    wants the evidence should not pay for the gradient.
    """

    sites: Sites
    conditioned: Conditioned
    evidence: float | None
    adjoint: Callable[[], Adjoint] | None
    info: Info


# -------------------------------------------------------------------------- likelihoods


@runtime_checkable
class Likelihood(Protocol):
    """p(y|f) for class labels. ``y`` is encoded: -1.0 / +1.0 with one latent value a datum."""

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log p(y|f), one a datum."""

    def log_classes(self, f: Array) -> Array:
        """Return log p(class|f), shape (n, number of classes)."""

    def log_predict(self, mean: Array, var: Array) -> Array:
        """Return log of p(class|f) averaged over N(f | mean, var), shape (n, number of classes)."""


@runtime_checkable
class HasDerivatives(Protocol):
    """What Laplace needs. ``log p(y|f)`` must be concave in f."""

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return l, l' and l'' of l(f) = log p(y|f)."""

    def third(self, y: Array, f: Array, var: Array) -> Array:
        """Return l''' contracted with the variance: var · l'''(f) with one latent a datum."""


@runtime_checkable
class HasExpected(Protocol):
    """What variational inference needs."""

    def expected(self, y: Array, mean: Array, var: Array) -> Expected:
        """Return E[l], E[l'], E[l''] under N(f | mean, var)."""


@runtime_checkable
class HasTilted(Protocol):
    """What expectation propagation needs."""

    def tilted(self, y: Array, mean: Array, var: Array, power: Array | float = 1.0) -> Tilted:
        """Return mass and moments of N(f | mean, var) p(y|f)^power."""


@runtime_checkable
class HasLink(Protocol):
    """A binary likelihood p(y=+1|f) = link(f), increasing, near Phi(f / scale), link(-f) = 1 - link(f)."""

    @property
    def probit_scale(self) -> float:
        """Return the scale s for which link(f) is nearest Phi(f / s): MacKay's approximation."""

    def link(self, f: Array) -> Array:
        """Return p(y=+1|f)."""

    def link_slope(self, mean: Array, var: Array) -> tuple[Array, Array]:
        """Return E[link'] and E[link''] under N(f | mean, var): d p/d mean and 2 d p/d var."""


# ------------------------------------------------------------------------ Gaussian part


class Conditioned(Protocol):
    """The prior times sites: the moments of q(f) and what the evidence needs of B."""

    alpha: Array  # K⁻¹ mean = nu - R K nu
    mean: Array  # of q at the data
    half_logdet: float  # ½ log|B|

    def var(self, tiny: float = ...) -> Array:
        """Return the marginal variances of q at the data.

        A smaller ``tiny`` is cheaper and gives fewer digits where a site is nearly flat.
        """

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of B⁻¹, which is 1 - tau v."""

    def trace_inv_B(self) -> float:
        """Return the trace of B⁻¹."""

    def multiply_K(self, v: Array) -> Array:
        """Return K v."""

    def multiply_R(self, v: Array) -> Array:
        """Return R v, R = S B⁻¹ S."""

    def dense_R(self) -> Array:
        """Return the n x n matrix R, for tests."""

    def dense_M(self) -> Array:
        """Return the n x n matrix M = I - K R, with which the posterior's covariance is M K."""

    def dense_covariance(self) -> Array:
        """Return the n x n covariance of q at the data."""


class Prior(Protocol):
    """N(f | 0, K) at the data and at one theta.

    A prior and those made from it by `at` may share buffers: using the later one ends the
    use of the earlier, except for vectors already read from it.
    """

    @property
    def n(self) -> int:
        """Return the number of data."""

    def at(self, theta: Array) -> Prior:
        """Return the prior at other hyperparameters."""

    def multiply(self, v: Array) -> Array:
        """Return K v."""

    def newton(self, tau: Array, r: Array, rtol: float) -> tuple[Array, Array]:
        """Return d and K d with (I + diag(tau) K) d = r, to a relative accuracy of ``rtol``."""

    def condition(self, sites: Sites) -> Conditioned:
        """Return the prior times the sites, exactly."""

    def pullback(self, adjoint: Adjoint) -> Array:
        """Return Σ_ij G_ij ∂K_ij/∂theta for G = d evidence / d K."""

    def posterior(self, conditioned: Conditioned) -> Posterior:
        """Return q as a process over all inputs; the prior is used up."""


class Posterior(Protocol):
    """A Gaussian process that predicts, whoever made it."""

    def latent(self, X: Inputs) -> tuple[Array, Array]:
        """Return mean and variance of f at each row of X."""

    def mean(self, X: Inputs) -> Array:
        """Return the mean of f alone."""

    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return mean and full covariance of f over the rows of X."""

    def sample(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Draw f jointly at the rows of X, shape (len(X), n_samples)."""

    def input_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return d mean / d x and d var / d x at each row of X."""


@runtime_checkable
class Inference(Protocol):
    """A frozen record of settings, called at one theta; ``init`` are the sites to start from."""

    def __call__(
        self,
        prior: Prior,
        likelihood: Any,
        y: Array,
        *,
        weight: Array | None = None,
        init: Sites | None = None,
    ) -> Result:
        """Return sites, evidence and adjoint; weight k counts a datum as k copies of it."""
