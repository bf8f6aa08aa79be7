"""Leave-one-out probabilities with inducing inputs: from the sites, in one pass over the rows.

Without the site of a row its latent value is normal with known mean and variance (`sparse.sums`). For Dirichlet
classification the sites do not depend on q, and this is the posterior of the other rows. For the variational bound
the sites of other rows would change a little without the row. With several classes the means respond with
other precisions (`sparse.sums.BoundRule`), whose P takes one more pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpclass.core.frequencies import Labels, one_hot
from gpclass.core.linalg import mirrored
from gpclass.core.protocols import Array, Likelihood
from gpclass.data.rows import Additive, Rows
from gpclass.inference.variational import response
from gpclass.priors.inducing import Basis
from gpclass.sparse.engine import Engine, Q, latent_of
from gpclass.sparse.sums import BoundRule, Latent, Marginals, Step


@dataclass(slots=True, eq=False)
class LeftOut(Additive):
    """The result of the pass: Σ log p(label | other rows), the number of rows, and their log probabilities in order."""

    score: float
    n_rows: int
    log_proba: list[Array]


@dataclass(frozen=True, slots=True, eq=False)
class LeaveOut:
    """The pass over the rows. With ``keep`` it returns the probabilities of all rows of positive weight."""

    latent: Latent
    rule: Any
    likelihood: Likelihood
    offset: Array | None = None  # prior means of the latent functions
    responding: Latent | None = None  # q with the precisions of `response`, if they differ
    keep: bool = True

    def __call__(self, block: Rows) -> LeftOut:
        """Return the result of a block of rows, in bounded additional memory."""
        total = LeftOut(0.0, 0, [])
        for rows, at in self.latent.tiles(block):
            known = copies(rows) > 0.0
            log_p = self.log_predict(rows, at, known)
            total.score += float(log_scores(rows.y[known], log_p, self.likelihood.labels).sum())
            total.n_rows += int(known.sum())
            total.log_proba += [log_p] if self.keep else []
        return total

    def moments(self, rows: Rows, at: Marginals) -> tuple[Array, Array]:
        """Return mean and variance of the latent values of rows without one copy of each, (n, C)."""
        g, h, *_ = self.rule(rows, at)
        mean, var = at.left_out(g, h, copies(rows))
        if self.responding is not None:
            moved = replace(at, latent=self.responding)
            mean, _ = moved.left_out(g, response(rows.y, g, h), copies(rows))
        return mean if self.offset is None else mean + self.offset, var

    def log_predict(self, rows: Rows, at: Marginals, where: Any) -> Array:
        """Return log class probabilities of some of the rows without one copy of each."""
        mean, var = (each[where] for each in self.moments(rows, at))
        if mean.shape[1] == 1:
            return self.likelihood.log_predict(mean[:, 0], var[:, 0])
        return self.likelihood.log_predict(mean, var[:, :, None] * np.eye(var.shape[1]))


def log_scores(y: Array, log_p: Array, labels: Labels) -> Array:
    """Return the log probability of the label of each row, or the average over a label of several classes."""
    truth = (P := one_hot(y, labels)) / P.sum(axis=1, keepdims=True)
    return np.where(truth > 0.0, truth * log_p, 0.0).sum(axis=1)


def copies(rows: Rows) -> Array:
    """Return the weight of each row."""
    return np.ones(len(rows)) if rows.row_weight is None else rows.row_weight


def leave_out(engine: Engine, basis: Basis, likelihood: Likelihood, q: Q, offset: Array | None) -> LeaveOut:
    """Return the pass for q at the inducing inputs of a basis, in double precision."""
    rule = engine.rule(likelihood, offset)
    step = LeaveOut(latent_of(basis, q), rule, likelihood, offset)
    if q.mean.shape[1] == 1 or rule.fixed:
        return step
    sums = engine.data.total(Step(step.latent, BoundRule(likelihood, responding=True)))
    P = engine.prior(basis).P + np.stack([mirrored(S) for S in sums.curvature])
    return replace(step, responding=latent_of(basis, Q(q.mean, P)))
