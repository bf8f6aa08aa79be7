"""Dirichlet classification with inducing inputs: q in closed form from the sums of one pass over the rows.

Row i of class y has the targets and noise variances (t1, s1) in its own class and (t0, s0) in all others
(`inference.dirichlet`), relative to prior means m_c. With whitened features a_i and residual variances r_i
(`sparse.sums`), w0 = 1 / s0, w1 = 1 / s1, and for each class the sums over its rows, multiplied by their weights,

    n_c = Σ 1,     u_c = Σ a_i,     G_c = Σ a_i a_iᵀ,     G = Σ_c G_c, u, n likewise,     R = Σ_i r_i,

the best q(u) of class c and the bound of all classes together (Titsias 2009, for noise that differs) are

    P_c = I + w0 G + (w1 - w0) G_c,     P_c mu_c = b_c = w0 (t0 - m_c) (u - u_c) + w1 (t1 - m_c) u_c,
    bound = Σ_c [log N(targets | m_c) + ½ b_cᵀ mu_c - ½ log|P_c|] - ½ (C w0 + w1 - w0) R.

For the gradient, with J_c = I - P_c⁻¹ and g_ic = tau_ic (t_ic - m_c - a_iᵀ mu_c), the adjoint of a_i is
Σ_c g_ic mu_c + F_y a_i with F_y = w0 Σ_c J_c + (w1 - w0) J_y: a second pass with one product. The input of `pull_basis`
follows from the first pass, Σ a_bar aᵀ = Σ_c mu_c mu_cᵀ + P_c - 2 I + P_c⁻¹.

All of this is linear in the label weights: a soft label counts as rows of several classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpclass.core.linalg import matmul
from gpclass.core.protocols import Array, Likelihood
from gpclass.inference.dirichlet import Targets
from gpclass.priors.inducing import Basis, pull_basis
from gpclass.sparse.engine import Engine, Fit, Q, latent_of, natural_step
from gpclass.sparse.sums import Step, TargetRule


@dataclass(frozen=True, slots=True, eq=False)
class Collapsed(Engine):
    """The data and the targets, which take the place of the likelihood.

    ``base`` and ``offset`` are the posterior and the prior means of earlier rows.
    """

    likelihood: Targets
    offset: Array | None = None

    def converge(
        self, basis: Basis, start: Q | Fit | None = None, *, gradient: bool = False, **unused: Any
    ) -> Fit:
        """Return the best q after one pass, and the gradient after a second one. No starting point is needed."""
        t, prior = self.likelihood, self.prior(basis)
        step = Step(latent_of(basis, prior, self.dtype), self.rule())
        sums = self.data.total(step)
        offset = t.offset(sums.counts) if self.offset is None else self.offset
        u, G = sums.linear, sums.curvature
        others = u.sum(axis=1, keepdims=True) - u
        sums.linear = t.low * (t.other - offset) * others + t.high * (t.own - offset) * u
        common = t.low * G.sum(axis=0)
        G *= t.high - t.low
        G += common
        q = natural_step(sums, prior)
        bound = t.log_density(sums.counts, offset) - sums.lost + _log_mass(q) - _log_mass(prior)
        theta = self._gradient(basis, q, offset, step) if gradient else None
        passes = 2 if gradient else 1
        if self.report is not None:
            for _ in range(passes):
                self.report(bound, q)
        residual, none = sums.residual / max(self.data.n_rows, 1), np.zeros(0)
        return Fit(basis, q, q, bound, 0.0, passes, theta, residual, none, sums.counts, offset)

    def rule(self, likelihood: Likelihood | None = None, offset: Array | None = None) -> TargetRule:
        """Return the rule that computes the sites of rows, relative to the prior means ``offset``."""
        return TargetRule(self.likelihood, offset)

    def _gradient(self, basis: Basis, q: Q, offset: Array, step: Step) -> Array:
        """Return the gradient of the bound, after another pass."""
        t, C, extra = self.likelihood, self.n_latents, self.likelihood.high - self.likelihood.low
        total, one = sum(q.inverses), np.eye(basis.size)
        E = matmul(q.mean.copy(), np.ascontiguousarray(q.mean.T)) + q.P.sum(axis=0) - 2.0 * C * one + total
        common = (C * t.low + extra) * one - t.low * total
        latent = replace(step.latent, mean=q.mean)
        step = replace(step, latent=latent, rule=self.rule(offset=offset), adds=False)
        step = step.with_gradient(basis, (common - extra * inverse for inverse in q.inverses))
        return pull_basis(basis, E) + self.data.total(step).theta


def _log_mass(q: Q) -> float:
    """Return Σ_c ½ muᵀ P mu - ½ log|P|."""
    return 0.5 * float(np.vdot(q.mean, q.linear)) - float(q.half_logdet.sum())
