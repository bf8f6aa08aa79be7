"""Importance sampling in the inducing values: how far the posterior of u is from the Gaussian q(u).

Given u, the latent value of row i is N(a_iᵀ u, r_i), and a method sees the row through one term,

    t_i(u) = E[log p(y_i|f_i) | u]  for the variational bound,     log E[p(y_i|f_i) | u]  for FITC,

so that what q(u) = N(mu, P⁻¹) approximates is N(u | 0, I) exp Σ t_i(u), whose integral is the best bound that these
inducing inputs allow, or FITC's evidence. With u = mu + d the log of the importance weight is

    Σ_i t_i(u) - ½ |u|² + ½ dᵀ P d - ½ log|P|.

Σ t_i(u) for all draws is one pass over the rows. Of f given u nothing is sampled: what the inducing inputs miss is not
in these numbers (see `sparse.local_check`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from gpclass.core.linalg import matmul, matmul_transposed
from gpclass.core.protocols import Array, Likelihood
from gpclass.data.rows import Data
from gpclass.priors.basis import Basis
from gpclass.sparse.engine import Factors, Q, factor
from gpclass.sparse.sums import features

TILE = 1 << 20  # latent values of one tile
NODES = ((1e-2, 3), (0.3, 5))  # residual variances up to which so many nodes average log p to 1e-6
POWER_NODES = 50  # of E[p^w], w not one


def averaged_log(likelihood: Likelihood, y: Array, mean: Array, residual: Array, centre: Array) -> Array:
    """Return E[log p(y|f)], f ~ N(mean, residual), for means of shape (n, S) or (n, S, C).

    With several classes the residual's effect is exact at the means ``centre`` (n, C) and of first order around them.
    """
    if mean.ndim == 3:
        return _averaged_classes(likelihood, y, mean, residual, centre)
    out, least = np.empty(mean.shape), 0.0
    for most, n_nodes in NODES:
        rows = np.flatnonzero((residual >= least) & (residual < most))
        z, weight = np.polynomial.hermite_e.hermegauss(n_nodes)
        std, label = np.sqrt(residual[rows, None]), y[rows, None]
        parts = (w * likelihood.log_prob(label, mean[rows] + std * x) for x, w in zip(z, weight, strict=True))
        out[rows] = sum(parts) / weight.sum()
        least = most
    rows = np.flatnonzero(residual >= least)
    if len(rows):
        out[rows] = likelihood.expected(y[rows, None], mean[rows], residual[rows, None]).value
    return out


def _averaged_classes(likelihood: Likelihood, y: Array, mean: Array, residual: Array, centre: Array) -> Array:
    def first_order(f: Array, labels: Array, r: Array) -> Array:
        """Return l + ½ r tr l'', with tr l'' = -Σ_c a_c (1 - a_c / Σ a)."""
        value, _, a = likelihood.derivatives(labels, f)
        out: Array = value - 0.5 * r * (a.sum(axis=-1) - (a * a).sum(axis=-1) / a.sum(axis=-1))
        return out

    spread = np.broadcast_to(residual[:, None], centre.shape)
    exact = likelihood.expected(y, centre, np.maximum(spread, 1e-12)).value
    rest = exact - first_order(centre, y, residual)
    out: Array = first_order(mean, y[:, None, :], residual[:, None]) + rest[:, None]
    return out


def log_averaged(likelihood: Likelihood, y: Array, mean: Array, residual: Array, weight: Array) -> Array:
    """Return log E[p(y|f)^w], f ~ N(mean, residual), for means of shape (n, S)."""
    one = weight == 1.0
    out = np.empty(mean.shape)
    if one.any():
        out[one] = likelihood.tilted(y[one, None], mean[one], residual[one, None]).log_mass
    if not one.all():
        z, share = np.polynomial.hermite_e.hermegauss(POWER_NODES)
        rows = ~one
        f = mean[rows][..., None] + np.sqrt(residual[rows])[:, None, None] * z
        powers = weight[rows][:, None, None] * likelihood.log_prob(y[rows][:, None, None], f)
        out[rows] = logsumexp(powers, b=share / share.sum(), axis=-1)
    return out


@dataclass(slots=True, eq=False)
class TermSums:
    """Σ_i t_i(u) of each draw."""

    values: Array

    def add(self, other: TermSums) -> None:
        """Add the terms of other rows."""
        self.values += other.values


@dataclass(frozen=True, slots=True, eq=False)
class TermStep:
    """The pass: ``U`` has the draws of u, (S, C, M), ``averaged`` says whether terms are FITC's."""

    kernel: Any
    likelihood: Likelihood
    Z: Array
    T: Array
    mean: Array  # (M, C)
    U: Array
    averaged: bool

    def zero(self) -> TermSums:
        """Return the sums over no rows."""
        return TermSums(np.zeros(len(self.U)))

    def __call__(self, X: Array, y: Array, weight: Array | None) -> TermSums:
        """Return the sums over a block of rows, in bounded memory."""
        total, rows = self.zero(), max(16, TILE // max(self.U[:, :, 0].size, len(self.Z)))
        for start in range(0, len(X), rows):
            part = slice(start, min(start + rows, len(X)))
            w = np.ones(len(X[part])) if weight is None else weight[part]
            total.values += self._terms(X[part], y[part], w)
        return total

    def _terms(self, X: Array, y: Array, weight: Array) -> Array:
        A, residual, _ = features(self.kernel, self.Z, self.T, X)
        f = latent_means(A, self.U)
        if y.ndim == 2:  # label weights include those of the rows
            centre = matmul(A, np.ascontiguousarray(self.mean))
            out: Array = averaged_log(self.likelihood, y, f, residual, centre).sum(axis=0)
            return out
        if self.averaged:
            return np.asarray(log_averaged(self.likelihood, y, f[..., 0], residual, weight).sum(axis=0))
        return np.asarray(weight @ averaged_log(self.likelihood, y, f[..., 0], residual, f[:, 0]))


def latent_means(A: Array, U: Array) -> Array:
    """Return a_iᵀ u of each row and draw, shape (n, S, C)."""
    S, C, M = U.shape
    return matmul_transposed(A, U.reshape(S * C, M)).reshape(len(A), S, C)


@dataclass(frozen=True, slots=True, eq=False)
class InducingTarget:
    """The posterior of u beside its Gaussian q, with the face of `posteriors.target.Target` that sampling needs.

    A draw is one row of numbers, the M values of one function after those of another.
    """

    basis: Basis
    likelihood: Likelihood
    data: Data
    q: Q
    factors: Factors
    averaged: bool

    @property
    def rank(self) -> int:
        """Number of independent directions."""
        return int(self.q.mean.size)

    @property
    def log_mass(self) -> float:
        """-½ log|P| of all functions."""
        return -sum(self.factors.half_logdets)

    def normals(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw standard normal coordinates."""
        return rng.standard_normal((n_rows, self.rank))

    def shifts(self, Z: Array) -> Array:
        """Return d with covariance P⁻¹ for each row of standard normal coordinates."""
        parts = np.split(Z, self.q.mean.shape[1], axis=1)
        return np.hstack(
            [matmul(np.ascontiguousarray(v), C) for v, C in zip(parts, self.factors.roots, strict=True)]
        )

    def draws(self, D: Array) -> Array:
        """Return u = mu + d, shape (S, C, M), for rows d."""
        return np.ascontiguousarray((self.q.mean.T.ravel() + D).reshape(len(D), *self.q.mean.T.shape))

    def remainder(self, D: Array) -> Array:
        """Return log w - log_mass for each row d of D: a pass over the rows."""
        basis, U = self.basis, self.draws(D)
        step = TermStep(basis.kernel, self.likelihood, basis.Z, basis.T, self.q.mean, U, self.averaged)
        terms = self.data.total(step).values
        d = D.reshape(U.shape)
        forms = sum(
            np.einsum("sm,sm->s", matmul(np.ascontiguousarray(d[:, c]), P), d[:, c])
            for c, P in enumerate(self.q.P)
        )
        out: Array = terms - 0.5 * np.einsum("scm,scm->s", U, U) + 0.5 * forms
        return out

    def probabilities(self, X: Array, D: Array) -> Array:
        """Return p(y=+1), shape (S, n), or those of all classes, (S, n, C), of rows X given u for rows d of D.

        The residual variance is averaged over by MacKay's approximation, which is exact for the probit.
        """
        A, residual, _ = features(self.basis.kernel, self.basis.Z, self.basis.T, X)
        f = latent_means(A, self.draws(D)).transpose(1, 0, 2)
        mackay: Any = self.likelihood
        if f.shape[2] == 1:
            return np.asarray(np.exp(mackay.mackay(f[..., 0], residual)[..., 1]))
        return np.asarray(np.exp(mackay.mackay(f, residual[:, None])))


def inducing_target(
    basis: Basis, likelihood: Likelihood, data: Data, q: Q, *, averaged: bool = False
) -> InducingTarget:
    """Return the posterior of the inducing values; ``averaged`` for FITC, whose terms are log E[p]."""
    return InducingTarget(basis, likelihood, data, q, factor(q), averaged)
