"""Priors over several latent functions, one a class, for joint multi-class models.

`JointPrior` is N(f | 0, K_c) for each class c, with sites of the form of `coupled`. `LeadPrior` turns the
multinomial probit into a two-class problem with a Gaussian prior. There the class of datum i is the one with
the largest f_c + e_c, e ~ N(0, 1). With the class y known, its lead over each other class,

    g_k = f_y + e_y - f_k,      p(y | f, e_y) = Π_{k≠y} Phi(g_k),

is a Gaussian process: n (C - 1) values, all of them labelled +1, with a probit likelihood. Any method for two
classes applies as it is, and a site of precision t_k on g_k is a site W with a_k = t_k, a_y = 1 on f.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import blas

from gpclass.core.linalg import clear_upper, conjugate_gradient, matmul_transposed, require_memory, row_tiles
from gpclass.core.protocols import Adjoint, Array, Index, Inputs, Sites
from gpclass.kernels import diag, matrix, pullback, pullback_diag
from gpclass.posteriors.classes import JointPosterior
from gpclass.priors.coupled import Coupled, projector
from gpclass.priors.lowrank import ORDER, LowRank, nystrom_root

CG_STEPS = 120  # beyond, a factorisation is the cheaper


class JointPrior:
    """Independent priors for C latent functions, of one kernel or of one each.

    Parameters
    ----------
    kernels : sequence of kernels
        One, shared by all functions, or C of them.
    X : inputs
    n_classes : int

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> prior = JointPrior([4.0 * RBF(1.0)], np.array([[0.0], [1.0]]), 3)
    >>> prior.multiply(np.eye(2, 3)).round(4)
    array([[4.    , 2.4261, 0.    ],
           [2.4261, 4.    , 0.    ]])
    """

    def __init__(self, kernels: Sequence[Any], X: Inputs, n_classes: int) -> None:
        n = len(X)
        self.n_classes, self.X = n_classes, X
        require_memory(n, n_classes + len(kernels) + 4.0)
        # One block for all that is n x n: the allocator would not give smaller ones back.
        space = np.empty((len(kernels) + n_classes + 2, n, n))
        self.Ks, self._space = list(space[: len(kernels)]), space[len(kernels) :]
        self._fill(list(kernels))

    def _fill(self, kernels: list[Any]) -> None:
        self.kernels = kernels
        self._roots: list[Array] | None = None
        for kernel, K in zip(kernels, self.Ks, strict=True):
            for rows in row_tiles(len(K)):
                matrix(kernel, self.X[rows], self.X[: rows.stop], out=K[rows, : rows.stop])
            K.ravel()[:: len(K) + 1] = diag(kernel, self.X)
            total = sum(float(np.tril(K[rows, : rows.stop], rows.start).sum()) for rows in row_tiles(len(K)))
            if not np.isfinite(total):
                raise ValueError(
                    f"The kernel {kernel} gave values that are not finite on the training inputs: "
                    "check its hyperparameters, their bounds and the scale of the inputs."
                )

    def move(self, theta: Array) -> JointPrior:
        """Return the prior at theta, in the buffers of this one, which must not be used again."""
        moved = object.__new__(type(self))
        for name, value in vars(self).items():
            setattr(moved, name, value)
        sizes = np.cumsum([kernel.n_dims for kernel in self.kernels])[:-1]
        moved._fill(
            [k.clone_with_theta(t) for k, t in zip(self.kernels, np.split(theta, sizes), strict=True)]
        )
        return moved

    @property
    def n_data(self) -> int:
        """Number of data."""
        return len(self.X)

    def multiply(self, F: Array) -> Array:
        """Return K_c f_c for each column of F, shape (n, C)."""
        if len(self.Ks) == 1:
            out: Array = blas.dsymm(1.0, self.Ks[0].T, np.asfortranarray(F), lower=0)
            return out
        return np.stack([blas.dsymv(1.0, K.T, F[:, c], lower=0) for c, K in enumerate(self.Ks)], axis=1)

    def at(self, theta: Array) -> JointPrior:
        """Return the prior at theta, in the buffers of this one, which must not be used again."""
        moved: JointPrior = self.move(theta)
        return moved

    def newton(self, a: Array, r: Array, rtol: float = 1e-9) -> tuple[Array, Array]:
        """Return d and K d with (I + W K) d = r, for r of shape (n, C).

        W = Q Qᵀ, Q = D^½ (I - v vᵀ), v = (a / s)^½ a unit vector at each datum. So d = r - Q x with
        (I + Qᵀ K Q) x = Qᵀ K r.
        """
        Kr, root, project = self.multiply(r), np.sqrt(a), projector(a)

        def apply(x: Array) -> Array:
            X = x.reshape(a.shape)
            return np.ravel(X + project(root * self.multiply(root * project(X))))

        x = conjugate_gradient(
            apply,
            np.ravel(project(root * Kr)),
            self.stand_in(a).precondition,
            energy=float(np.vdot(r, Kr)),
            rtol=rtol,
            max_iter=CG_STEPS,
        )
        step = self.factor(a).solve(Kr) if x is None else root * project(x.reshape(a.shape))
        d = r - step
        return d, self.multiply(d)

    def stand_in(self, a: Array) -> LowRank:
        """Return a cheap approximation of the factors for these a."""
        if self._roots is None:
            rank = max(16, ORDER // self.n_classes)
            self._roots = [nystrom_root(K, rank) for K in self.Ks]
        return LowRank(self._roots, a)

    def condition(self, sites: Sites, *, tied: bool = True) -> Any:
        """Return q for sites on the latent values, tau of them being a; not tied, diagonal ones."""
        return JointConditioned(self, sites, tied=tied)

    def pullback(self, adjoint: Adjoint) -> Array:
        """Return Σ_ij G_ij ∂K_ij/∂theta over all functions."""
        q: Any = adjoint.conditioned
        if q.prior is not self:
            raise TypeError("This prior was given the result of another prior's condition().")
        lefts, rights = [adjoint.alpha], [adjoint.alpha]
        for u, w in adjoint.pairs:
            lefts, rights = [*lefts, u, w], [*rights, w, u]
        total: Array = self.pull(q.coupled, lefts, rights)
        return total

    def posterior(self, conditioned: Any) -> JointPosterior:
        """Return q as a process over all inputs; the prior is used up."""
        coupled = conditioned.coupled
        clear_upper(coupled.L)
        return JointPosterior(
            tuple(self.kernels),
            self.X,
            self.coefficients(conditioned),
            coupled.V,
            coupled.L if coupled.tied else None,
        )

    def coefficients(self, conditioned: Any) -> Array:
        """Return alpha of the latent functions, shape (n, C)."""
        out: Array = conditioned.alpha
        return out

    def factor(self, a: Array, *, tied: bool = True) -> Coupled:
        """Return the factors for sites with these a; earlier ones must not be used again."""
        return Coupled(self.Ks, a, self._space, tied=tied)

    def latent_sites(self, sites: Sites) -> Sites:
        """Return sites on the latent values f, nu and a of shape (n, C)."""
        return sites

    def pull(self, q: Coupled, lefts: list[Array], rights: list[Array]) -> Array:
        """Return dtheta for G_c = ½(Σ left_c right_cᵀ - R_cc), lefts and rights of shape (n, C)."""
        if len(self.Ks) == 1:
            G = matmul_transposed(np.hstack(lefts), np.hstack(rights))
            q.subtract_all_R(G)
            return self._pull_one(self.kernels[0], self.Ks[0], G)
        total = []
        for c, (kernel, K) in enumerate(zip(self.kernels, self.Ks, strict=True)):
            left, right = (np.stack([part[:, c] for part in parts], axis=1) for parts in (lefts, rights))
            G = matmul_transposed(left, right)
            q.subtract_R(c, G)
            total.append(self._pull_one(kernel, K, G))
        return np.concatenate(total)

    def _pull_one(self, kernel: Any, K: Array, G: Array) -> Array:
        """Return Σ_ij ½ G_ij ∂K_ij/∂theta: the strictly lower triangle counts twice."""
        out = pullback_diag(kernel, self.X, 0.5 * G.diagonal())
        for rows in row_tiles(len(K)):
            tile = np.ascontiguousarray(G[rows, : rows.stop])
            tile[:, rows] = np.tril(tile[:, rows], -1)
            out += pullback(kernel, self.X[rows], self.X[: rows.stop], tile, K=K[rows, : rows.stop])
        return out


class JointConditioned:
    """q over f for sites on the latent values; ``half_logdet`` is ½ log|I + K W|."""

    def __init__(self, prior: JointPrior, sites: Sites, *, tied: bool = True) -> None:
        self.prior = prior
        self.coupled = prior.factor(sites.tau, tied=tied)
        alpha = self._reduce(sites.nu)
        alpha = alpha + self._reduce(sites.nu - alpha - self._times_W(prior.multiply(alpha)))
        self.alpha: Array = alpha
        self.mean: Array = prior.multiply(alpha)
        total = np.log(self.coupled.a.sum(axis=1)).sum() if tied else 0.0
        self.half_logdet = self.coupled.half_logdet - 0.5 * float(total)

    def _times_W(self, v: Array) -> Array:
        a = self.coupled.a
        if not self.coupled.tied:
            return a * v
        out: Array = a * (v - (a * v).sum(axis=1, keepdims=True) / a.sum(axis=1, keepdims=True))
        return out

    def _reduce(self, r: Array) -> Array:
        """Return (I + W K)⁻¹ r."""
        return r - self.coupled.solve(self.prior.multiply(r))

    def blocks(self) -> Array:
        """Return the covariances of the latent values of each datum, shape (n, C, C)."""
        return self.coupled.blocks()


class LeadPrior(JointPrior):
    """The prior of the leads g of the known class over the others, flattened to n (C - 1) values.

    Parameters
    ----------
    kernels, X, n_classes
        As for `JointPrior`.
    labels : array of integers of shape (n,)
        The class of each datum.
    """

    def __init__(self, kernels: Sequence[Any], X: Inputs, n_classes: int, labels: Index) -> None:
        self.labels = np.asarray(labels)
        self.others = np.ones((len(X), n_classes), dtype=bool)
        self.others[np.arange(len(X)), self.labels] = False
        super().__init__(kernels, X, n_classes)

    @property
    def n(self) -> int:
        """Number of leads."""
        return len(self.X) * (self.n_classes - 1)

    def spread(self, v: Array, own: float = 0.0) -> Array:
        """Return values of leads as (n, C), with ``own`` in the place of each datum's class."""
        out = np.full(self.others.shape, own)
        out[self.others] = v
        return out

    def down(self, v: Array) -> Array:
        """Return the coefficients of f in Σ v g: v_k of g_k is v_k of f_y and -v_k of f_k."""
        out: Array = -self.spread(v)
        out[~self.others] = -out.sum(axis=1)
        return out

    def leads(self, F: Array) -> Array:
        """Return f_y - f_k of functions of shape (n, C), flattened."""
        return (F[~self.others][:, None] - F)[self.others]

    def multiply(self, v: Array) -> Array:
        """Return the covariance of the leads times v."""
        shared = self.spread(v).sum(axis=1)  # of e_y, which all leads of a datum have in common
        out: Array = self.leads(super().multiply(self.down(v))) + np.repeat(shared, self.n_classes - 1)
        return out

    def newton(self, tau: Array, r: Array, rtol: float) -> tuple[Array, Array]:  # type: ignore[override]
        """Return d and K d with (I + diag(tau) K) d = r, by conjugate gradients or a factorisation."""
        s, Kr = np.sqrt(np.maximum(tau, 1e-14)), self.multiply(r)  # to be divided by
        R = self.stand_in(self.spread(tau, own=1.0))
        x = conjugate_gradient(
            lambda p: p + s * self.multiply(s * p),
            s * Kr,
            lambda p: R.solve(self.spread(p / s))[self.others] / s,  # as in `LeadConditioned.multiply_R`
            energy=float(r @ Kr),
            rtol=rtol,
            max_iter=CG_STEPS,
        )
        if x is not None:
            d = r - s * x
            return d, self.multiply(d)
        q = self.condition(Sites(nu=r, tau=tau))
        return q.alpha, q.mean

    def condition(self, sites: Sites, *, tied: bool = True) -> LeadConditioned:
        """Return q for sites on the leads."""
        return LeadConditioned(self, sites)

    def pullback(self, adjoint: Adjoint) -> Array:
        """Return Σ_ij G_ij ∂K_ij/∂theta: G for the leads is one for f by way of `down`."""
        if adjoint.spread is not None:
            raise NotImplementedError("VI(evidence='ep') is for two classes: use VI() or EP().")
        pairs = tuple((self.down(u), self.down(w)) for u, w in adjoint.pairs)
        return super().pullback(replace(adjoint, alpha=self.down(adjoint.alpha), pairs=pairs))

    def coefficients(self, conditioned: Any) -> Array:
        """Return alpha of the latent functions, shape (n, C)."""
        return self.down(conditioned.alpha)

    def latent_sites(self, sites: Sites) -> Sites:
        """Return sites on f: with u = f_y + e_y integrated out, nu = a Σb / s - b."""
        a, b = self.spread(sites.tau, own=1.0), self.spread(sites.nu)
        return Sites(nu=a * (b.sum(axis=1) / a.sum(axis=1))[:, None] - b, tau=a)


class LeadConditioned:
    """q over the leads, for sites of precision t and linear term b on them (the names of `Conditioned`).

    Given f, e_y is Gaussian and integrates out: the leads of a datum have the sites
    T - t tᵀ / s, s = 1 + Σ t, so that a_k = t_k and a_y = 1.
    """

    def __init__(self, prior: LeadPrior, sites: Sites) -> None:
        self.prior = prior
        self.coupled = prior.factor(prior.spread(sites.tau, own=1.0))
        self.tau = self.coupled.a[prior.others]  # no flatter than the factors can bear
        self.scale = np.sqrt(self.tau)
        self.half_logdet = self.coupled.half_logdet
        alpha = self._reduce(sites.nu)
        alpha = alpha + self._reduce(sites.nu - alpha - self.tau * prior.multiply(alpha))
        self.alpha: Array = alpha
        self.mean: Array = prior.multiply(alpha)
        self._var: Array | None = None

    def _reduce(self, r: Array) -> Array:
        """Return (I + T K)⁻¹ r = r - R K r."""
        return r - self.multiply_R(self.prior.multiply(r))

    def multiply_R(self, v: Array) -> Array:
        """Return R v.

        Were u = f_y + e_y free, f_y would be one more function compared with it, at the precision a_y = 1,
        and R that of all C of them; the inverse of a Schur complement is a block of the inverse, so
        R of the leads is its part that belongs to the other classes.
        """
        return self.coupled.solve(self.prior.spread(v))[self.prior.others]

    def multiply_K(self, v: Array) -> Array:
        """Return K v."""
        return self.prior.multiply(v)

    def var(self, tiny: float = 0.0) -> Array:
        """Return the marginal variances of the leads.

        u = f_y + e_y has, given f, the mean Σ a f / s and the variance 1 / s; g_k = u - f_k.
        """
        if self._var is None:
            a = self.coupled.a
            s = a.sum(axis=1)
            blocks, share = self.coupled.blocks(), a / s[:, None]
            q = np.einsum("icd,id->ic", blocks, share)
            r = np.einsum("ic,ic->i", q, share)
            direct = ((1.0 / s + r)[:, None] - 2.0 * q + np.einsum("icc->ic", blocks))[self.prior.others]
            # (1 - [B⁻¹]_kk) / t loses no digits where the site is strong, the sum where it is weak.
            weak = self.inverse_diagonal() > 0.9
            self._var = np.where(weak, direct, (1.0 - self.inverse_diagonal()) / self.tau)
        return self._var

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of B⁻¹."""
        out: Array = (self.coupled.marginals()[1] / self.coupled.a)[self.prior.others]
        return out

    def trace_inv_B(self) -> float:
        """Return tr B⁻¹."""
        return float(self.inverse_diagonal().sum())

    def dense_R(self) -> Array:
        """Return R as a full matrix, for tests."""
        return np.stack([self.multiply_R(e) for e in np.eye(self.prior.n)], axis=1)

    def dense_M(self) -> Array:
        """Return I - K R, for tests."""
        R = self.dense_R()
        return np.eye(len(R)) - np.stack([self.prior.multiply(column) for column in R.T], axis=1)

    def dense_covariance(self) -> Array:
        """Return the covariance of the leads, for tests."""
        K = np.stack([self.prior.multiply(e) for e in np.eye(self.prior.n)], axis=1)
        out: Array = self.dense_M() @ K
        return out
