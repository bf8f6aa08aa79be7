"""Importance sampling of the inducing values: how far the posterior of u is from the Gaussian q(u).

Given u, the latent value of row i is N(a_iᵀ u, r_i), and the row contributes one term,

    t_i(u) = E[log p(y_i|f_i) | u]  for the variational bound,     log E[p(y_i|f_i) | u]  for FITC,

so that q(u) = N(mu, P⁻¹) approximates N(u | 0, I) exp Σ t_i(u). Its integral is the best bound that these
inducing inputs allow, or FITC's evidence. With u = mu + d the log of the importance weight is

    Σ_i t_i(u) - ½ |u|² + ½ dᵀ P d - ½ log|P|.

Σ t_i(u) for all draws is one pass over the rows. f given u is not sampled, so the error of the inducing inputs is not
included (see `sparse.local_check`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.special import logsumexp

from gpclass.core.linalg import matmul, matmul_transposed
from gpclass.core.protocols import Array, Likelihood
from gpclass.data.rows import Data, Rows
from gpclass.likelihoods.quadrature import hermite
from gpclass.sparse.engine import Q
from gpclass.sparse.latent import Additive, Latent, Marginals

NARROW, NODES = 0.3, 5  # up to this residual variance, this many nodes average log p to 1e-6
POWER_NODES = 50  # nodes for E[p^w] if w is not one


def averaged_log(likelihood: Likelihood, y: Array, mean: Array, residual: Array) -> Array:
    """Return E[log p(y|f)], f ~ N(mean, residual), for means of shape (n, S)."""
    out, narrow = np.zeros(mean.shape), residual < NARROW
    std, label = np.sqrt(residual[narrow, None]), y[narrow, None]
    for z, weight in zip(*hermite(NODES), strict=True):
        out[narrow] += weight * likelihood.log_prob(label, mean[narrow] + std * z)
    if not narrow.all():
        out[~narrow] = likelihood.expected(y[~narrow, None], mean[~narrow], residual[~narrow, None]).value
    return out


def averaged_classes(likelihood: Likelihood, y: Array, mean: Array, residual: Array, centre: Array) -> Array:
    """Return E[log p(y|f)], f ~ N(mean, residual), for means of shape (n, S, C).

    The residual's effect is exact at the means ``centre`` (n, C), and of first order around them.
    """

    def first_order(f: Array, labels: Array, r: Array) -> Array:
        """Return l + ½ r tr l'', with tr l'' = -Σ_c a_c (1 - a_c / Σ a)."""
        value, _, a = likelihood.derivatives(labels, f)
        out: Array = value - 0.5 * r * (a.sum(axis=-1) - (a * a).sum(axis=-1) / a.sum(axis=-1))
        return out

    spread = np.broadcast_to(np.maximum(residual, 1e-12)[:, None], centre.shape)
    rest = likelihood.expected(y, centre, spread).value - first_order(centre, y, residual)
    return first_order(mean, y[:, None, :], residual[:, None]) + rest[:, None]


def log_averaged(likelihood: Likelihood, y: Array, mean: Array, residual: Array, weight: Array) -> Array:
    """Return log E[p(y|f)^w], f ~ N(mean, residual), for means of shape (n, S)."""
    out, one = np.empty(mean.shape), weight == 1.0
    out[one] = likelihood.tilted(y[one, None], mean[one], residual[one, None]).log_mass
    z, share = hermite(POWER_NODES)
    for i in np.flatnonzero(~one):
        f = mean[i, :, None] + np.sqrt(residual[i]) * z
        out[i] = logsumexp(weight[i] * likelihood.log_prob(y[i], f), b=share, axis=-1)
    return out


@dataclass(slots=True, eq=False)
class TermSums(Additive):
    """Σ_i t_i(u) of each draw."""

    values: Array


@dataclass(frozen=True, slots=True, eq=False)
class TermStep:
    """The pass: ``U`` has the draws of u, (S, C, M), ``averaged`` says whether terms are FITC's."""

    latent: Latent
    likelihood: Likelihood
    U: Array
    averaged: bool

    def zero(self) -> TermSums:
        """Return the sums over no rows."""
        return TermSums(np.zeros(len(self.U)))

    def __call__(self, X: Array, y: Array, weight: Array | None) -> TermSums:
        """Return the sums over a block of rows, in bounded memory."""
        total = self.zero()
        for rows, at in self.latent.tiles(Rows(X, y, weight), self.U[:, :, 0].size):
            w = np.ones(len(rows)) if rows.weight is None else rows.weight
            f, r = latent_means(at, self.U), at.residual
            if np.ndim(y) == 2:  # label weights include those of the rows
                total.values += averaged_classes(self.likelihood, rows.y, f, r, at.mean).sum(axis=0)
            elif self.averaged:
                total.values += log_averaged(self.likelihood, rows.y, f[..., 0], r, w).sum(axis=0)
            else:
                total.values += w @ averaged_log(self.likelihood, rows.y, f[..., 0], r)
        return total


def latent_means(at: Marginals, U: Array) -> Array:
    """Return a_iᵀ u of each row and draw, shape (n, S, C)."""
    S, C, M = U.shape
    return matmul_transposed(at.A, U.reshape(S * C, M)).reshape(len(at.A), S, C)


@dataclass(frozen=True, slots=True, eq=False)
class InducingTarget:
    """The posterior of u and its Gaussian q, with the methods of `posteriors.target.Target` that sampling needs.

    A draw is one row of numbers, the M values of one function after those of another. ``averaged`` is for FITC, whose
    terms are log E[p].
    """

    latent: Latent
    q: Q
    data: Data
    likelihood: Likelihood
    averaged: bool = False

    @property
    def rank(self) -> int:
        """Number of independent directions."""
        return int(self.q.mean.size)

    @property
    def log_mass(self) -> float:
        """-½ log|P| of all functions."""
        return float(sum(np.log(C.diagonal()).sum() for C in self.latent.roots))

    def normals(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw standard normal coordinates."""
        return rng.standard_normal((n_rows, self.rank))

    def shifts(self, Z: Array) -> Array:
        """Return d with covariance P⁻¹ for each row of standard normal coordinates."""
        parts = zip(np.split(Z, len(self.q.P), axis=1), self.latent.roots, strict=True)
        return np.hstack([matmul(np.ascontiguousarray(part), C) for part, C in parts])

    def draws(self, D: Array) -> Array:
        """Return u = mu + d, shape (S, C, M), for rows d."""
        return np.ascontiguousarray((self.q.mean.T.ravel() + D).reshape(len(D), *self.q.mean.T.shape))

    def remainder(self, D: Array) -> Array:
        """Return log w - log_mass for each row d of D: a pass over the rows."""
        U = self.draws(D)
        out: Array = self.data.total(TermStep(self.latent, self.likelihood, U, self.averaged)).values
        out -= 0.5 * np.einsum("scm,scm->s", U, U)
        for d, P in zip(np.split(D, len(self.q.P), axis=1), self.q.P, strict=True):
            out += 0.5 * np.einsum("sm,sm->s", matmul(np.ascontiguousarray(d), P), d)
        return out

    def probabilities(self, X: Array, D: Array) -> Array:
        """Return p(y=+1), shape (S, n), or those of all classes, (S, n, C), of rows X given u for rows d of D.

        MacKay's approximation averages over the residual variance; it is exact for the probit.
        """
        at, likelihood = self.latent.at(X), cast(Any, self.likelihood)
        f = latent_means(at, self.draws(D)).transpose(1, 0, 2)
        if f.shape[2] == 1:
            return np.asarray(np.exp(likelihood.mackay(f[..., 0], at.residual)[..., 1]))
        return np.asarray(np.exp(likelihood.mackay(f, at.residual[:, None])))
