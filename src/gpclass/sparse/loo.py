"""Leave-one-out probabilities with inducing inputs: from the sites, in one pass over the rows.

Row i acts on the whitened inducing values u through a site on a_iᵀ u alone,

    q(u) ∝ N(u | 0, I) Π_i exp(nu_i a_iᵀ u - h_i (a_iᵀ u)² / 2),     P = I + Σ h_i a_i a_iᵀ,

and s_i = a_iᵀ P⁻¹ a_i. Without the site of row i, as in `priors.base.remove_share`,

    s_c = s / (1 - h s),     m_c = m - s_c g,     g = nu - h m,

and the latent value of the row is N(m_c, r + s_c): r is the variance that the inducing inputs do not explain, which
the row's label did not change. For Dirichlet classification the sites do not depend on q, and this is the posterior of
the other rows. For the variational bound those of the other rows would change a little if the row were not there; with
several classes its means respond with other precisions than h (`inference.variational.response`), so that s and s_c of
the means are those of another P, for which there is one more pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from gpclass.core.linalg import matmul, mirrored, times_lower_transposed
from gpclass.core.protocols import Array, Expected, Likelihood
from gpclass.data.rows import Data
from gpclass.inference.dirichlet import Targets
from gpclass.inference.variational import response
from gpclass.priors.base import remove_share
from gpclass.priors.basis import Basis, make_basis
from gpclass.sparse.collapsed import Collapsed
from gpclass.sparse.engine import Engine, Q, factor
from gpclass.sparse.objective import PassObjective
from gpclass.sparse.sums import TILE, Step, expectations, features, row_squares


class Rule(Protocol):
    """Where the sites of rows come from."""

    def __call__(self, y: Array, weight: Array | None, mean: Array, var: Array) -> tuple[Array, Array]:
        """Return g = nu - h m and the precision h at these means and variances, each of shape (n, C)."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundRule:
    """The sites of the variational bound; in the place of a likelihood, with the response of the means as curvature."""

    likelihood: Likelihood

    def __call__(self, y: Array, weight: Array | None, mean: Array, var: Array) -> tuple[Array, Array]:
        """Return w E[l'] and -w E[l'']."""
        return expectations(self.likelihood, y, weight, mean, var)[1:]

    def expected(self, y: Array, mean: Array, var: Array) -> Expected:
        """Return E[l], E[l'] and minus the precisions with which the means of several classes respond."""
        e = self.likelihood.expected(y, mean, var)
        return replace(e, curvature=-response(y, e.slope, np.maximum(-e.curvature, 0.0)))


@dataclass(frozen=True, slots=True, eq=False)
class TargetRule:
    """The sites of Dirichlet classification, relative to the prior means ``offset``."""

    targets: Targets
    offset: Array

    def __call__(self, y: Array, weight: Array | None, mean: Array, var: Array) -> tuple[Array, Array]:
        """Return what the targets lack at the means, and their precisions."""
        sites = self.targets.sites(y, self.offset)
        return sites.nu - sites.tau * mean, sites.tau


@dataclass(slots=True, eq=False)
class LeftOut:
    """What the pass returns: Σ log p(label | other rows), the number of rows, and their log probabilities in order."""

    score: float
    n_rows: int
    log_proba: list[Array] | None

    def add(self, other: LeftOut) -> None:
        """Add the rows that follow these."""
        self.score += other.score
        self.n_rows += other.n_rows
        if self.log_proba is not None and other.log_proba is not None:
            self.log_proba.extend(other.log_proba)


@dataclass(frozen=True, slots=True, eq=False)
class LeaveOut:
    """The pass: what goes down to the rows. ``keep`` returns the probabilities of all rows of positive weight."""

    kernel: Any
    likelihood: Likelihood
    rule: Rule
    Z: Array
    T: Array
    mean: Array  # (M, C)
    roots: tuple[Array, ...]  # C⁻¹ with P = C Cᵀ
    offset: Array | None
    keep: bool
    responding: tuple[Array, ...] = ()  # those of `responding_roots`

    def zero(self) -> LeftOut:
        """Return the result of no rows."""
        return LeftOut(0.0, 0, [] if self.keep else None)

    def __call__(self, X: Array, y: Array, weight: Array | None) -> LeftOut:
        """Return the result of a block of rows, in bounded memory beside it."""
        total, rows = self.zero(), max(64, TILE // len(self.Z))
        for start in range(0, len(X), rows):
            part = slice(start, min(start + rows, len(X)))
            w = None if weight is None else weight[part]
            log_p = self.likelihood.log_predict(*self.moments(X[part], y[part], w))
            truth = np.stack([y[part] < 0.0, y[part] > 0.0], axis=1) if y.ndim == 1 else y[part]
            share = truth / np.maximum(truth.sum(axis=1, keepdims=True), 1e-300)
            known = counts(y[part], w) > 0.0
            total.score += float(np.where(share[known] > 0.0, share[known] * log_p[known], 0.0).sum())
            total.n_rows += int(known.sum())
            if total.log_proba is not None:
                total.log_proba.append(log_p[known])
        return total

    def moments(self, X: Array, y: Array, weight: Array | None) -> tuple[Array, Array]:
        """Return mean and variance of the latent values of rows without one copy of each, or (n, C), (n, C, C)."""
        at = marginals(self.kernel, self.Z, self.T, self.mean, self.roots, X)
        g, h = self.rule(y, weight, at.mean, at.var)
        mean, var = left_out(at, y, g, h, counts(y, weight), self.responding)
        return likely(mean if self.offset is None else mean + self.offset, var)


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """What q says of some rows: features A, residual variances, means (n, C), and a_iᵀ P⁻¹ a_i, (n, C)."""

    A: Array
    residual: Array
    mean: Array
    forms: Array

    @property
    def var(self) -> Array:
        """The variances, (n, C)."""
        return np.maximum(self.residual[:, None] + self.forms, 1e-12)

    def left_out(self, g: Array, h: Array, counts: Array) -> tuple[Array, Array]:
        """Return means and variances, (n, C), without one copy of the site of each row."""
        known = row_squares(self.A)[:, None]
        # At a fixed point P is at least I + h a aᵀ, which bounds aᵀ P⁻¹ a; where q has not quite converged it must too.
        forms = np.minimum(self.forms, known / (1.0 + np.maximum(h, 0.0) * known))
        mean, var = remove_share(self.mean, forms, g, 1.0 - h * forms, np.maximum(counts, 1.0)[:, None])
        return mean, self.residual[:, None] + var


def left_out(
    at: Marginals, y: Array, g: Array, h: Array, counts: Array, responding: tuple[Array, ...]
) -> tuple[Array, Array]:
    """Return means and variances, (n, C), without one copy of each row, the means as they respond."""
    mean, var = at.left_out(g, h, counts)
    if responding:
        moved = replace(at, forms=quadratic_forms(at.A, responding))
        mean, _ = moved.left_out(g, response(y, g, h), counts)
    return mean, var


def marginals(kernel: Any, Z: Array, T: Array, mean: Array, roots: tuple[Array, ...], X: Array) -> Marginals:
    """Return what q(u), of means (M, C) and P⁻¹ = rootᵀ root, says of rows."""
    A, residual, _ = features(kernel, Z, T, X)
    return Marginals(A, residual, matmul(A, np.ascontiguousarray(mean)), quadratic_forms(A, roots))


def quadratic_forms(A: Array, roots: tuple[Array, ...]) -> Array:
    """Return a_iᵀ P⁻¹ a_i for P⁻¹ = rootᵀ root of each function, (n, C)."""
    return np.stack([row_squares(times_lower_transposed(A.copy(), C)) for C in roots], axis=1)


def likely(mean: Array, var: Array) -> tuple[Array, Array]:
    """Return means and variances (n, C) of independent latent values as a likelihood takes them."""
    if mean.shape[1] == 1:
        return mean[:, 0], var[:, 0]
    return mean, var[:, :, None] * np.eye(var.shape[1])


def counts(y: Array, weight: Array | None) -> Array:
    """Return the weight of each row."""
    if y.ndim == 2:
        return np.asarray(y.sum(axis=1))
    return np.ones(len(y)) if weight is None else weight


def leave_out(
    objective: PassObjective, kernel: Any, likelihood: Likelihood, q: Q, offset: Array | None
) -> LeaveOut:
    """Return the pass for q at the inducing inputs of an objective, with all that it needs in double precision."""
    engine, basis = objective.engine, make_basis(kernel, objective.Z, objective.jitter)
    rule = rule_of(engine, likelihood, offset)
    roots = tuple(factor(q).roots)
    responding = responding_roots(engine.data, rule, basis, q)
    return LeaveOut(
        kernel, likelihood, rule, basis.Z, basis.T, q.mean, roots, offset, keep=True, responding=responding
    )


def responding_roots(data: Data, rule: Any, basis: Basis, q: Q) -> tuple[Array, ...]:
    """Return C⁻¹ of the P = C Cᵀ with which the means respond, from a pass; none if it is that of the variances."""
    if q.mean.shape[1] == 1 or not isinstance(rule, BoundRule):
        return ()
    likelihood: Any = rule
    sums = data.total(Step(basis.kernel, likelihood, basis.Z, basis.T, q.mean, tuple(factor(q).roots)))
    P = np.stack([np.eye(basis.size) + mirrored(S) for S in sums.curvature])
    return tuple(factor(Q(q.mean, P)).roots)


def rule_of(engine: Engine | Collapsed, likelihood: Likelihood, offset: Array | None) -> Rule:
    """Return where the sites of an engine come from."""
    if isinstance(engine, Collapsed):
        if offset is None:
            raise ValueError("Dirichlet classification needs the prior means of its latent functions.")
        return TargetRule(engine.targets, offset)
    return BoundRule(likelihood)
