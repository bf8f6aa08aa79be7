"""Dirichlet classification with inducing inputs: q in closed form from the sums of one pass over the rows.

Row i of class y has the targets and noise variances (t1, s1) in its own class and (t0, s0) in all others
(`inference.dirichlet`), relative to prior means m_c. With whitened features a_i and residual variances r_i
(`sparse.latent`), w0 = 1 / s0, w1 = 1 / s1, and for each class the sums over its rows, multiplied by their weights,

    n_c = Σ 1,     u_c = Σ a_i,     G_c = Σ a_i a_iᵀ,     G = Σ_c G_c, u, n likewise,     R = Σ_i r_i,

the best q(u) of class c and the bound of all classes together (Titsias 2009, for noise that differs) are

    P_c = I + w0 G + (w1 - w0) G_c,     P_c mu_c = b_c = w0 (t0 - m_c) (u - u_c) + w1 (t1 - m_c) u_c,
    bound = Σ_c [log N(targets | m_c) + ½ b_cᵀ mu_c - ½ log|P_c|] - ½ (C w0 + w1 - w0) R.

For the gradient, with J_c = I - P_c⁻¹ and g_ic = tau_ic (t_ic - m_c - a_iᵀ mu_c), the adjoint of a_i is
Σ_c g_ic mu_c + F_y a_i with F_y = w0 Σ_c J_c + (w1 - w0) J_y: a second pass with one product. What `pull_basis` needs
follows from the first, Σ a_bar aᵀ = Σ_c mu_c mu_cᵀ + P_c - 2 I + P_c⁻¹.

All of this is linear in the label weights: a soft label counts as rows of several classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpclass.core.linalg import inverse_of, matmul, matvec, mirror
from gpclass.core.protocols import Array, Likelihood
from gpclass.data.rows import Data, Rows
from gpclass.inference.dirichlet import Targets
from gpclass.priors.basis import Basis, pull_basis
from gpclass.sparse.engine import Fit, Q
from gpclass.sparse.latent import Latent, working
from gpclass.sparse.rules import TargetRule
from gpclass.sparse.sums import Step, Sums


@dataclass(frozen=True, slots=True, eq=False)
class Collapsed:
    """The data and the targets, used in place of `sparse.engine.Engine`; ``report`` is called after every pass.

    ``base`` and ``offset`` are the posterior and the prior means of earlier rows.
    """

    data: Data
    targets: Targets
    n_latents: int
    dtype: Any = np.float32
    report: Callable[[float], None] | None = None
    after: Callable[[Basis, Q], None] | None = None
    base: Q | None = None
    offset: Array | None = None
    likelihood: Likelihood | None = None  # has no parameters

    def converge(
        self,
        basis: Basis,
        q: Q | None = None,
        *,
        tol: float = 0.0,
        max_passes: int = 1,
        gradient: bool = False,
        others: tuple[Likelihood, ...] = (),
        before: Fit | None = None,
    ) -> Fit:
        """Return the best q after one pass, and the gradient after a second one. It needs no start."""
        empty = np.zeros((basis.size, self.n_latents))
        step = Step(Latent(basis.kernel, basis.Z, working(basis.T, self.dtype), empty), self.rule())
        sums = self.data.total(step)
        offset = self.targets.offset(sums.counts) if self.offset is None else self.offset
        q, inverses, bound = self._solve(sums, offset)
        theta = self._gradient(basis, q, inverses, offset, step) if gradient else None
        passes = 2 if gradient else 1
        if self.report is not None:
            for _ in range(passes):
                self.report(bound)
        if self.after is not None:
            self.after(basis, q)
        residual = sums.residual / max(self.data.n_rows, 1)
        none = np.zeros(0)
        return Fit(basis, q, q, bound, 0.0, passes, theta, residual, sums.lost, none, sums.counts, offset)

    def rule(self, offset: Array | None = None) -> TargetRule:
        """Return the rule that computes the sites of rows, relative to the prior means ``offset``."""
        return TargetRule(self.targets, offset)

    def precisions(self, fit: Fit, rows: Rows) -> Array:
        """Return twice the loss of the bound per unit of residual variance at each row."""
        return np.asarray(self.targets.sites(rows.y, np.zeros(1)).tau.sum(axis=1))

    def _solve(self, sums: Sums, offset: Array) -> tuple[Q, list[Array], float]:
        """Return q, P⁻¹ of each class, and the bound; P takes the memory of the sums."""
        t, u, P = self.targets, sums.linear, sums.curvature
        linear = (
            t.low * (t.other - offset) * (u.sum(axis=1, keepdims=True) - u) + t.high * (t.own - offset) * u
        )
        bound = t.log_density(sums.counts, offset) - sums.lost
        common = t.low * P.sum(axis=0)
        common += np.eye(len(u)) if self.base is None else 0.0
        P *= t.high - t.low
        P += common
        if self.base is not None:
            P += self.base.P
            linear += self.base.linear
            bound -= sum(_log_mass(*each) for each in zip(self.base.P, self.base.mean.T, strict=True))
        mean, inverses = np.empty_like(linear), []
        for c, each in enumerate(P):
            mirror(each)
            inverse, half_logdet = inverse_of(each)
            mirror(inverse)
            mean[:, c] = matvec(inverse, linear[:, c])
            inverses.append(inverse)
            bound += 0.5 * float(linear[:, c] @ mean[:, c]) - half_logdet
        return Q(mean, P), inverses, bound

    def _gradient(self, basis: Basis, q: Q, inverses: list[Array], offset: Array, step: Step) -> Array:
        """Return the gradient of the bound, after another pass."""
        t, C, extra = self.targets, self.n_latents, self.targets.high - self.targets.low
        total, one = sum(inverses), np.eye(basis.size)
        E = matmul(q.mean.copy(), np.ascontiguousarray(q.mean.T)) + q.P.sum(axis=0) - 2.0 * C * one + total
        common = (C * t.low + extra) * one - t.low * total
        step = replace(step, latent=replace(step.latent, mean=q.mean), rule=self.rule(offset))
        step = step.with_gradient(basis, (common - extra * inverse for inverse in inverses))
        return pull_basis(basis, E) + self.data.total(step).theta


def _log_mass(P: Array, mean: Array) -> float:
    """Return ½ muᵀ P mu - ½ log|P|."""
    return 0.5 * float(mean @ P @ mean) - inverse_of(P)[1]
