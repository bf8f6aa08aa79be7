"""The prior over several latent functions, one per class: N(f | 0, K_c) for each class c.

Sites may be independent over the classes (`Sites` of shape (n, C)) or coupled (`CoupledSites`); `factors` has the
algebra of both, and `shared` that of independent sites for which one factorisation serves all classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.linalg import blas

from gpclass.core.linalg import conjugate_gradient
from gpclass.core.memory import require_memory
from gpclass.core.protocols import Adjoint, AnySites, Array, Conditioned, CoupledSites, Inputs, Sites
from gpclass.kernels import diag, move
from gpclass.posteriors.gaussian import GaussianProcess
from gpclass.priors.conditioned import cavity, not_positive, refined, remove_share
from gpclass.priors.dense import fill_lower, pull_lower
from gpclass.priors.factors import CoupledFactors, IndependentFactors
from gpclass.priors.lowrank import ORDER, LowRank, nystrom_root
from gpclass.priors.shared import SharedFactors, multiply_in_double

CG_STEPS = 120  # most steps with the low-rank preconditioner: more cost as much as a factorisation
OLD_STEPS = 8  # most steps with the factors of other sites as the preconditioner
# A factorisation costs about FACTOR (2 C + 1) n³ operations, the low-rank preconditioner ORDER² n + ORDER³ / 3.
FACTOR = 0.25
LOOSEST = (
    1e-3  # relative accuracy of a Newton step: it gains three digits, and another one costs more products
)
ROUNDING = 1e-13  # keeps I - cov W invertible where the labels determine the latent values
SINGLE_FROM = 8000  # rows from which a posterior is in single precision, where that is safe
# The factorisation of A = K + D errs by about eps |A|, and |A| is hardly above the trace of K; the noise variances in D
# are above one, so that this is the largest relative error:
SINGLE_ERROR = 0.03


class ClassPrior:
    """Independent priors for C latent functions, of one kernel or of one each.

    Parameters
    ----------
    kernels : sequence of kernels
        One, shared by all functions, or C of them.
    X : inputs
    n_classes : int
    shared : bool
        Whether all sites will be `Sites` in which the precisions of a row are equal in all classes but one. One
        factorisation then serves all classes (`SharedFactors`), in two n x n matrices beside K instead of C + 2.
        It needs one kernel for all functions.
    single : bool
        Whether ``shared`` may be in single precision if there are many rows: for a posterior without a gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> prior = ClassPrior([4.0 * RBF(1.0)], np.array([[0.0], [1.0]]), 3)
    >>> prior.multiply(np.eye(2, 3)).round(4)
    array([[4.    , 2.4261, 0.    ],
           [2.4261, 4.    , 0.    ]])
    """

    def __init__(
        self, kernels: Sequence[Any], X: Inputs, n_classes: int, *, shared: bool = False, single: bool = False
    ) -> None:
        n = len(X)
        if shared and len(kernels) > 1:
            raise ValueError(
                f"One factorisation for all classes needs one kernel, not {len(kernels)}: use shared=False."
            )
        work = 2 if shared else n_classes + 1
        single = single and shared and _single_is_enough(kernels[0], X)
        require_memory(n, (1.6 if single else 3.1) if shared else n_classes + len(kernels) + 3.0)
        # One block for all that is n x n: the allocator would not give smaller ones back.
        space = np.empty((len(kernels) + work, n, n), dtype=np.float32 if single else np.float64)
        self.n_classes, self.shared = n_classes, shared
        self._fill(list(kernels), X, list(space[: len(kernels)]), space[len(kernels) :])

    def _fill(self, kernels: list[Any], X: Inputs, Ks: list[Array], space: Array) -> None:
        self.kernels, self.X, self.Ks, self._space = kernels, X, Ks, space
        self._roots: list[Array] | None = None
        self.last: CoupledFactors | None = None  # at other sites or another theta: a preconditioner
        for kernel, K in zip(kernels, Ks, strict=True):
            fill_lower(kernel, X, K)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the latent values: data points and classes."""
        return len(self.X), self.n_classes

    def at(self, theta: Array) -> ClassPrior:
        """Return the prior at theta, in the buffers of this one, which must not be used again."""
        if len(self.kernels) == 1:
            kernels = [move(self.kernels[0], theta)]
        else:
            sizes = np.cumsum([kernel.n_dims for kernel in self.kernels])[:-1]
            kernels = [move(k, t) for k, t in zip(self.kernels, np.split(theta, sizes), strict=True)]
        moved = object.__new__(ClassPrior)
        moved.n_classes, moved.shared = self.n_classes, self.shared
        moved._fill(kernels, self.X, self.Ks, self._space)
        moved.last = self.last
        return moved

    def variances(self) -> Array:
        """Return the variances of the latent values, shape (n, C)."""
        return np.stack([self.Ks[c % len(self.Ks)].diagonal() for c in range(self.shape[1])], axis=1)

    def latent_sites(self, sites: AnySites) -> AnySites:
        """Return the sites themselves, which are on the latent functions."""
        return sites

    def multiply(self, F: Array) -> Array:
        """Return K_c f_c for each column of F, shape (n, C)."""
        if self.Ks[0].dtype == np.float32:
            return multiply_in_double(self.Ks[0], F)
        if len(self.Ks) == 1:
            out: Array = blas.dsymm(1.0, self.Ks[0].T, np.asfortranarray(F), lower=0)
            return out
        return np.stack([blas.dsymv(1.0, K.T, F[:, c], lower=0) for c, K in enumerate(self.Ks)], axis=1)

    def solve(self, sites: AnySites, rtol: float) -> tuple[Array, Array]:
        """Return alpha = (I + W K)⁻¹ nu and the mean K alpha, shape (n, C).

        With W = Q Qᵀ, alpha = nu - Q x where (I + Qᵀ K Q) x = Qᵀ K nu.
        """
        nu, K_nu = sites.nu, self.multiply(sites.nu)

        def apply(x: Array) -> Array:
            X = x.reshape(nu.shape)
            return np.ravel(X + sites.root_transposed(self.multiply(sites.root(X))))

        right, energy = np.ravel(sites.root_transposed(K_nu)), float(np.vdot(nu, K_nu))
        for R, steps in self.preconditioners(sites):
            x = conjugate_gradient(
                apply, right, R.precondition, energy=energy, rtol=max(rtol, LOOSEST), max_iter=steps
            )
            if x is not None:
                alpha = nu - sites.root(x.reshape(nu.shape))
                break
        else:
            alpha = nu - self.factor(sites).solve(K_nu)
        return alpha, self.multiply(alpha)

    def preconditioners(self, sites: AnySites) -> Iterator[tuple[LowRank | CoupledFactors, int]]:
        """Yield preconditioners for these sites, and how many steps each is worth; then a factorisation is cheaper."""
        n, C = self.shape
        if self.last is not None and isinstance(sites, CoupledSites):
            yield self.last, OLD_STEPS
        if FACTOR * (2 * C + 1) * n**3 > ORDER**2 * n + ORDER**3 / 3:
            yield self.low_rank(sites), CG_STEPS

    def low_rank(self, sites: AnySites) -> LowRank:
        """Return a low-rank approximation of the factors for these sites."""
        if self._roots is None:
            rank = max(16, ORDER // self.shape[1])
            self._roots = [nystrom_root(K, rank) for K in self.Ks]
        with self._positive():
            return LowRank(self._roots, sites)

    def factor(self, sites: AnySites) -> IndependentFactors | SharedFactors:
        """Return the factors for the precision of these sites; earlier ones must not be used again."""
        if isinstance(sites, CoupledSites):
            return self.couple(sites.a)
        self.last = None
        with self._positive():
            if self.shared:
                return SharedFactors(self.Ks[0], sites.tau, self._space)
            return IndependentFactors(self.Ks, sites.tau, self._space)

    def couple(self, a: Array, *, keep: bool = False) -> CoupledFactors:
        """Return the factors for coupled sites, with what `CoupledFactors.squares` needs if ``keep`` is set."""
        if self.shared:
            raise ValueError(
                "Coupled sites need a factorisation per class: use a ClassPrior that is not shared."
            )
        self.last = None
        with self._positive():
            self.last = CoupledFactors(self.Ks, a, self._space, keep=keep)
        return self.last

    def independent_variances(self, tau: Array) -> tuple[Array, Array]:
        """Return precisions, no flatter than can be borne, and the variances of independent functions with them.

        It takes one more n x n matrix, and leaves all factors as they are.
        """
        a, var, space = np.empty(tau.shape), np.empty(tau.shape), np.empty((1, *self._space.shape[1:]))
        for c in range(self.n_classes):
            with self._positive():
                factors = IndependentFactors([self.Ks[c % len(self.Ks)]], tau[:, [c]], space)
            a[:, [c]], var[:, [c]] = factors.a, factors.variances()
        return a, np.maximum(var, 1e-12)

    @contextmanager
    def _positive(self) -> Iterator[None]:
        try:
            yield
        except np.linalg.LinAlgError:
            raise not_positive(self.kernels[0], self.Ks[0]) from None

    def condition(self, sites: AnySites) -> ClassConditioned:
        """Return q for the sites."""
        if isinstance(sites, CoupledSites):
            return CoupledConditioned(self, sites)
        return ClassConditioned(self, sites, self.factor(sites))

    def pullback(self, adjoint: Adjoint) -> Array:
        """Return Σ_ij G_ij ∂K_ij/∂theta over all functions."""
        q: Any = adjoint.conditioned
        return self.pull(q.factors, *adjoint.factors())

    def pull(self, factors: Any, lefts: list[Array], rights: list[Array]) -> Array:
        """Return dtheta for G_c = ½(Σ left_c right_cᵀ - R_cc), lefts and rights of shape (n, C)."""
        if len(self.Ks) == 1:
            return self._pull_one(0, factors.adjoint(np.hstack(lefts), np.hstack(rights)))
        each = (self._pull_one(c, factors.adjoint_of(c, lefts, rights)) for c in range(self.n_classes))
        return np.concatenate(list(each))

    def _pull_one(self, c: int, G: Array) -> Array:
        """Return Σ_ij ½ G_ij ∂K_ij/∂theta for one kernel, G being in a lower triangle."""
        half = 0.5 * G.diagonal()
        return pull_lower(self.kernels[c], self.X, self.Ks[c], half, lambda rows: G[rows, : rows.stop].copy())

    def posterior(self, conditioned: Conditioned) -> GaussianProcess:
        """Return q as a process over all inputs; the prior is used up."""
        q: Any = conditioned
        return GaussianProcess(tuple(self.kernels), self.X, q.alpha, **q.factors.posterior())


class ClassConditioned:
    """q over f for sites that are independent over the classes; ``half_logdet`` is ½ log|I + K W|."""

    factors: IndependentFactors | SharedFactors

    def __init__(
        self, prior: ClassPrior, sites: AnySites, factors: IndependentFactors | SharedFactors
    ) -> None:
        self.prior, self.factors, self._sites = prior, factors, sites
        steps = 2 if prior.Ks[0].dtype == np.float32 else 1
        self.alpha, self.mean = refined(sites.nu, self._reduce, prior.multiply, self._times_W, steps)
        self.half_logdet = factors.half_logdet

    def _times_W(self, v: Array) -> Array:
        return Sites(v, self.factors.a).times(v)  # no flatter than the factors can bear

    def _reduce(self, r: Array) -> Array:
        """Return (I + W K)⁻¹ r = r - R K r, which is also R W⁻¹ r where no site is flat, with fewer roundings."""
        if self.prior.shared:
            return self.factors.solve(r / self.factors.a)
        return r - self.factors.solve(self.prior.multiply(r))

    def var(self, tiny: float = 0.0) -> Array:
        """Return the marginal variances, shape (n, C)."""
        return np.maximum(self.factors.variances(), 1e-12)

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of B⁻¹, 1 - a v."""
        out: Array = 1.0 - self.factors.a * self.var()
        return out

    def multiply_K(self, v: Array) -> Array:
        """Return K v."""
        return self.prior.multiply(v)

    def multiply_R(self, v: Array) -> Array:
        """Return R v."""
        return self.factors.solve(v)

    def respond(self, dtau: Array) -> Array | None:
        """Return None: with several classes a factorisation is cheaper than what this would save."""
        return None

    def left_out(self, copies: Array, response: Array | None = None) -> tuple[Array, Array]:
        """Return mean and covariance of each data point's latent values without one copy of its site.

        ``response`` has the precisions with which the means respond, if they are not those of the sites.
        """
        mean, var = cavity(self, copies[:, None])
        if response is not None:
            a, wide = self.prior.independent_variances(response)
            mean, _ = remove_share(self.mean, wide, self.alpha, 1.0 - a * wide, copies[:, None])
        return mean, var[:, :, None] * np.eye(var.shape[1])


class CoupledConditioned(ClassConditioned):
    """q over f for coupled sites; its variances are C x C matrices."""

    factors: CoupledFactors

    def __init__(self, prior: ClassPrior, sites: CoupledSites) -> None:
        factors = prior.couple(sites.a)
        super().__init__(prior, sites, factors)
        self.half_logdet -= 0.5 * float(np.log(factors.a.sum(axis=1)).sum())

    def _times_W(self, v: Array) -> Array:
        return CoupledSites(v, self.factors.a).times(v)

    def var(self, tiny: float = 0.0) -> Array:
        """Return the covariances of the latent values of each data point, shape (n, C, C)."""
        return self.factors.covariances()

    def left_out(self, copies: Array, response: Array | None = None) -> tuple[Array, Array]:
        """Return mean and covariance of each data point's latent values without one copy of its site."""
        return leave_out(self.mean, self.var(), self._sites, copies)


def _single_is_enough(kernel: Any, X: Inputs) -> bool:
    """Return whether there are many rows, and single precision is safe for them."""
    rounding = float(np.finfo(np.float32).eps) / 2.0
    return len(X) >= SINGLE_FROM and float(diag(kernel, X).sum()) * rounding < SINGLE_ERROR


def leave_out(mean: Array, cov: Array, sites: AnySites, copies: Array) -> tuple[Array, Array]:
    """Return mean and covariance of each data point's latent values without one copy of its site.

    cov_c⁻¹ = cov⁻¹ - W, so cov_c = (I - cov W)⁻¹ cov and m_c = (I - cov W)⁻¹ (m - cov nu).
    """
    C = mean.shape[1]
    W = np.stack([np.stack([sites.block(c, d) for d in range(C)], axis=1) for c in range(C)], axis=1)
    W /= copies[:, None, None]
    nu = sites.nu / copies[:, None]
    right = np.concatenate([cov, (mean - np.einsum("icd,id->ic", cov, nu))[:, :, None]], axis=2)
    out = np.linalg.solve((1.0 + ROUNDING) * np.eye(C) - cov @ W, right)
    cavity: Array = 0.5 * (out[:, :, :-1] + out[:, :, :-1].transpose(0, 2, 1))
    return out[:, :, -1], cavity
