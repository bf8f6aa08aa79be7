"""The records that the parts of the library exchange, and the protocols that those parts satisfy.

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

from gpclass.core.registry import stored

Array = NDArray[np.floating[Any]]
Index = NDArray[np.integer[Any]]
Inputs = Any  # rows of a 2-D array, or a sequence of structured objects

# ------------------------------------------------------------------------------ records


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
        """The precisions, under their name in `CoupledSites`."""
        return self.tau

    def times(self, v: Array) -> Array:
        """Return T v, where T = diag(tau) is the precision of the sites."""
        return self.tau * v

    def root(self, v: Array) -> Array:
        """Return Q v, where Q Qᵀ = T."""
        return np.sqrt(self.tau) * v

    def root_transposed(self, v: Array) -> Array:
        """Return Qᵀ v."""
        return np.sqrt(self.tau) * v

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
        out: Array = a * (v - (a * v).sum(axis=-1, keepdims=True) / a.sum(axis=-1, keepdims=True))
        return out

    def project(self, v: Array) -> Array:
        """Return (I - p pᵀ) v with the unit vectors p = (a / Σ a)^½."""
        p = np.sqrt(self.a / self.a.sum(axis=1, keepdims=True))
        out: Array = v - p * (p * v).sum(axis=1, keepdims=True)
        return out

    def root(self, v: Array) -> Array:
        """Return Q v, where Q = diag(a)^½ (I - p pᵀ) and Q Qᵀ = W."""
        return np.sqrt(self.a) * self.project(v)

    def root_transposed(self, v: Array) -> Array:
        """Return Qᵀ v."""
        return self.project(np.sqrt(self.a) * v)

    def block(self, c: int, d: int) -> Array:
        """Return the precision between the latent values c and d of each data point."""
        out: Array = self.a[:, c] * (float(c == d) - self.a[:, d] / self.a.sum(axis=1))
        return out


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
    """d log evidence / d K, not formed as a matrix: ½(alpha alphaᵀ - R) + ½ Σ (u wᵀ + w uᵀ).

    R = S B⁻¹ S stays with the ``Conditioned`` that made it; ``pairs`` holds the (u, w). ``variance`` is the adjoint
    b of the posterior's marginal variances; it adds Mᵀ diag(b) M with M = I - K R.
    """

    alpha: Array
    conditioned: Conditioned
    pairs: tuple[tuple[Array, Array], ...] = ()
    variance: Array | None = None

    def factors(self) -> tuple[list[Array], list[Array]]:
        """Return the vectors l and r of 2 G + R = Σ l rᵀ (without the term of the variances)."""
        flat = [u for pair in self.pairs for u in pair]
        swapped = [u for pair in self.pairs for u in pair[::-1]]
        return [self.alpha, *flat], [self.alpha, *swapped]


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Info:
    """The end of an iteration: ``converged`` was decided by ``residual``."""

    converged: bool
    n_iter: int
    residual: float


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The result of inference at one theta.

    ``adjoint`` and ``likelihood_gradient`` (with respect to the likelihood's own theta) are functions, because a
    caller that only needs the evidence should not compute the gradient. ``exact_gradient`` is False if EP
    set a negative precision to zero, because log p(y|f) is not concave: it is then not stationary in its sites.
    ``offset`` are prior means of the latent functions, to be added to the means of q; None for zero.
    """

    sites: AnySites
    conditioned: Conditioned
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


# -------------------------------------------------------------------------- likelihoods


@runtime_checkable
class Likelihood(Protocol):
    """p(y|f). Labels y are -1 and +1 with one latent value, rows of class weights with one per class."""

    name: ClassVar[str]

    @property
    def symmetric(self) -> bool:
        """Whether p(y|f) depends on y f alone, so that the sign of f determines the more probable class."""

    @property
    def theta(self) -> Array:
        """Logarithms of the likelihood's free parameters; empty for most."""

    @property
    def bounds(self) -> Array:
        """Bounds on theta."""

    def with_theta(self, theta: Array) -> Likelihood:
        """Return the likelihood with other parameters."""

    def several(self) -> Likelihood | None:
        """Return the likelihood of three classes or more that generalises this one, if there is one."""

    def n_latents(self, n_classes: int) -> int:
        """Return the number of latent functions for this number of classes."""

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log p(y|f), one per data point."""

    def log_classes(self, f: Array) -> Array:
        """Return log p(class|f), shape (n, number of classes)."""

    def log_predict(self, mean: Array, var: Array) -> Array:
        """Return log of p(class|f) averaged over N(f | mean, var), shape (n, number of classes)."""

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return l, l' and l'' of l(f) = log p(y|f); softmax gives `CoupledSites.a` for l''."""

    def third(self, y: Array, f: Array, var: Array) -> Array:
        """Return l''' contracted with the posterior (co)variance: var · l'''(f) with one latent value."""

    def local_sites(self, mean: Array, slope: Array, curvature: Array) -> AnySites:
        """Return the sites that have this slope and curvature at the mean, as `derivatives` gives them."""

    def negative_curvature(self, curvature: Array) -> Array | None:
        """Return the positive part of l'', where l is not concave; None if l is concave."""

    def expected(self, y: Array, mean: Array, var: Array) -> Expected:
        """Return E[l], E[l'], E[l''] under N(f | mean, var), independent over latent values."""

    @property
    def exact_ascent(self) -> bool:
        """Whether `ascent_sites` has the exact second derivatives of E[l] in the means."""

    def ascent_sites(self, y: Array, residual: Array, slope: Array, curvature: Array) -> AnySites:
        """Return the sites of an ascent step of E[l] in the means, given w E[l'] and w E[l'']."""

    def tilted(self, y: Array, mean: Array, var: Array, power: Array | float = 1.0) -> Tilted:
        """Return mass and moments of N(f | mean, var) p(y|f)^power."""


# ------------------------------------------------------------------------ Gaussian part


class Conditioned(Protocol):
    """The prior times sites: the moments of q(f) and the parts of B that the evidence needs."""

    alpha: Array  # K⁻¹ mean = nu - R K nu
    mean: Array  # of q at the data
    half_logdet: float  # ½ log|B|

    def var(self) -> Array:
        """Return the marginal variances of q at the data, or the C x C covariances of coupled latent values."""

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of B⁻¹, which is 1 - tau v."""

    def multiply_K(self, v: Array) -> Array:
        """Return K v."""

    def multiply_R(self, v: Array) -> Array:
        """Return R v, R = S B⁻¹ S."""

    def respond(self, dtau: Array) -> Array | None:
        """Return the first-order change of the variances with the precisions; None if that is not cheap."""

    def left_out(self, copies: Array) -> tuple[Array, Array]:
        """Return mean and (co)variance of the latent values of each data point without one copy of its site."""

    def covariance(self) -> Array:
        """Return the covariance of q at the data, of one latent function."""


class Prior(Protocol):
    """N(f | 0, K) at the data and at one theta.

    A prior and those made from it by `at` may share buffers: once a later one is used, earlier ones are invalid.
    """

    shape: tuple[int, ...]  # shape of the latent values: (n,), or (n, C) with one latent function per class

    def variances(self) -> Array:
        """Return the variances of the latent values."""

    def at(self, theta: Array) -> Prior:
        """Return the prior at other hyperparameters."""

    def multiply(self, v: Array) -> Array:
        """Return K v."""

    def solve(self, sites: Any, rtol: float) -> tuple[Array, Array]:
        """Return alpha and mean of the prior times the sites, to a relative accuracy of ``rtol``.

        alpha solves (I + T K) alpha = nu. With the residual of a Newton step as nu this is the step.
        """

    def condition(self, sites: Any) -> Conditioned:
        """Return the prior times the sites, exactly."""

    def pullback(self, adjoint: Adjoint) -> Array:
        """Return Σ_ij G_ij ∂K_ij/∂theta for G = d evidence / d K."""

    def posterior(self, conditioned: Any) -> Any:
        """Return q as a `gpclass.posteriors.GaussianProcess`; the prior must not be used afterwards."""

    def latent_sites(self, sites: Any) -> AnySites:
        """Return the sites as factors of the latent functions that predictions use."""


@runtime_checkable
class Inference(Protocol):
    """A frozen record of settings, called at one theta; ``init`` are the sites to start from."""

    def __call__(
        self,
        prior: Prior,
        likelihood: Likelihood,
        y: Array,
        *,
        weight: Array | None = None,
        init: AnySites | None = None,
    ) -> Result:
        """Return sites, evidence and adjoint; weight k counts a data point as k copies of it."""
