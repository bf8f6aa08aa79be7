"""Variational inference with inducing inputs, in passes over data in memory, in files or on a cluster.

q(u) = N(mu, P⁻¹) in whitened coordinates. A pass returns sums (`sums`), which give

    bound = Σ E[l] - KL(q || prior),     the natural-gradient step,     d bound / d theta

all exact sums over all rows. A step that lowers the bound is halved. At another theta, or with other inducing inputs, q
starts from the sites that the rows had before; then one pass is usually enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpclass.core.linalg import (
    cholesky,
    clear_upper,
    inverse_of,
    invert_factor,
    matmul,
    matvec,
    mirror,
    mirrored,
)
from gpclass.core.protocols import Array, Likelihood
from gpclass.core.registry import stored
from gpclass.data.rows import Data, Rows
from gpclass.priors.basis import Basis, pull_basis
from gpclass.sparse.latent import Latent, working
from gpclass.sparse.sums import BoundRule, Step, Sums

LEAST = 0.1  # lower bound on the eigenvalues of P, which are one for the prior

# --------------------------------------------------------------------- Gaussians over u

Inverses = list[tuple[Array, float]]  # P⁻¹ and ½ log|P| of each function


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Q:
    """q(u) of C latent functions in whitened coordinates: means (M, C), precisions (C, M, M)."""

    mean: Array
    P: Array

    @property
    def linear(self) -> Array:
        """P mu of each function, (M, C)."""
        return np.asarray(np.einsum("cij,jc->ic", self.P, self.mean))

    def mixed(self, other: Q, share: float) -> tuple[Q, Inverses]:
        """Return a Gaussian between this one and another, in the natural parameters P and P mu."""
        P = (1.0 - share) * self.P + share * other.P
        return solved(P, (1.0 - share) * self.linear + share * other.linear)

    def repeated(self, times: float) -> Q:
        """Return q if every row occurred ``times`` times: this multiplies P - I and P mu, which are sums over rows."""
        return prior_q(*self.mean.shape).mixed(self, times)[0]


def prior_q(M: int, n_latents: int) -> Q:
    """Return the prior as q."""
    return Q(np.zeros((M, n_latents)), np.broadcast_to(np.eye(M), (n_latents, M, M)))


def inverted(P: Array) -> Inverses:
    """Return P⁻¹ and ½ log|P| of each function."""
    out = [inverse_of(each) for each in P]
    for inverse, _ in out:
        mirror(inverse)
    return out


def solved(P: Array, linear: Array) -> tuple[Q, Inverses]:
    """Return q from its natural parameters."""
    inverses = inverted(P)
    means = [matvec(inverse, b) for (inverse, _), b in zip(inverses, linear.T, strict=True)]
    return Q(np.stack(means, axis=1), P), inverses


def divergence(q: Q, inverses: Inverses, other: Q, others: Inverses) -> float:
    """Return KL(q || other)."""
    total = 0.0
    for c, P in enumerate(other.P):
        d = other.mean[:, c] - q.mean[:, c]
        trace = float(np.vdot(P, inverses[c][0])) - len(P)
        bend = trace - 2.0 * (others[c][1] - inverses[c][1])
        total += 0.5 * (max(bend, 0.0) + float(d @ matvec(P, d)))
    return total


def latent_of(basis: Basis, q: Q, dtype: Any = np.float64) -> Latent:
    """Return q in the form for passes over rows, in the precision of that work."""
    roots = []
    for P in q.P:
        C = P.copy()
        cholesky(C)
        invert_factor(C)
        clear_upper(C)
        roots.append(working(C, dtype))
    return Latent(basis.kernel, basis.Z, working(basis.T, dtype), q.mean, tuple(roots))


# --------------------------------------------------------------------------- the passes


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """q after a number of passes at one theta; ``gap`` estimates the gain of one more pass, in nats."""

    basis: Basis
    q: Q
    next_q: Q  # q after another full step
    bound: float
    gap: float
    passes: int
    gradient: Array | None
    residual: float  # mean residual variance r_i
    lost: float  # loss of the bound in nats due to the residual variance, to first order
    others: Array  # Σ E[l] with other parameters of the likelihood
    counts: Array  # total weight of each class
    offset: Array | None = None  # prior means of the functions, if they are not zero


@stored
@dataclass(frozen=True, slots=True, eq=False)
class InducingReport:
    """q(u) at the inducing inputs, and the cost of the fit, which the fitted model keeps."""

    Z: Array
    q: Q
    n_rows: int
    n_inducing: int
    passes: int
    seconds: float
    residual: float  # mean prior variance that the inducing inputs do not explain
    jitter: float
    counts: Array  # total weight of each class


@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """The data and the model; ``report`` is called with the bound after every pass."""

    data: Data
    likelihood: Any
    n_latents: int = 1
    dtype: Any = np.float32
    report: Callable[[float], None] | None = None
    after: Callable[[Q], None] | None = None  # called with the next q after every pass
    base: Q | None = None  # the prior of q, if it is not N(0, I): the posterior of earlier rows

    def converge(
        self,
        basis: Basis,
        start: Q | Fit | None = None,
        *,
        tol: float = 1e-6,
        max_passes: int = 50,
        gradient: bool = False,
        others: tuple[Likelihood, ...] = (),
    ) -> Fit:
        """Return q, iterated until another step would gain less than ``tol`` nats, in at most ``max_passes`` passes.

        ``start`` is a q, or a fit, possibly with another basis, whose sites are projected in one more pass.
        """
        prior, of_prior = self.prior(basis)
        q = self._projected(basis, prior, start) if isinstance(start, Fit) else start
        q, inverses = (prior, of_prior) if q is None else (q, inverted(q.P))
        # Each class steps as if the others were fixed, so all steps together are too long, by at most a factor of two.
        longest = 1.0 if self.n_latents == 1 else 0.6
        best: Fit | None = None
        rho = longest
        for passes in range(1, max_passes + 1):
            sums = self.data.total(self.step(basis, q, inverses, gradient=gradient, others=others))
            bound = sums.value - divergence(q, inverses, prior, of_prior)
            if self.report is not None:
                self.report(bound)
            if best is not None and bound < best.bound - 1e-9 * abs(bound) - 0.1 * tol and rho > 1e-3:
                rho *= 0.5
                q, inverses = _between(best, rho)
                continue
            target, of_target = natural_step(sums, prior)
            best = Fit(
                basis=basis,
                q=q,
                next_q=balanced(target),
                bound=bound,
                gap=divergence(q, inverses, balanced(target), of_target),
                passes=passes,
                gradient=_gradient(basis, q, inverses, sums) if gradient else None,
                residual=sums.residual / max(self.data.n_rows, 1),
                lost=sums.lost,
                others=sums.others,
                counts=sums.counts,
            )
            if best.gap <= tol:
                return best
            rho = min(longest, 2.0 * rho)
            q, inverses = _between(best, rho)
            if self.after is not None:
                self.after(q)
        if best is None:
            raise ValueError(f"max_passes={max_passes} is not valid: expected at least one pass.")
        return best

    def prior(self, basis: Basis) -> tuple[Q, Inverses]:
        """Return the prior of q."""
        if self.base is not None:
            return self.base, inverted(self.base.P)
        return prior_q(basis.size, self.n_latents), [(np.eye(basis.size), 0.0)] * self.n_latents

    def rule(self, likelihood: Likelihood, offset: Array | None = None) -> Any:
        """Return the rule that computes the sites of rows."""
        return BoundRule(likelihood)

    def step(
        self,
        basis: Basis,
        q: Q,
        inverses: Inverses,
        *,
        gradient: bool = False,
        others: tuple[Likelihood, ...] = (),
    ) -> Step:
        """Return the job of a pass at q."""
        step = Step(latent_of(basis, q, self.dtype), self.rule(self.likelihood), others=others)
        if not gradient:
            return step
        return step.with_gradient(basis, (np.eye(basis.size) - inverse for inverse, _ in inverses))

    def _projected(self, basis: Basis, prior: Q, before: Fit) -> Q:
        """Return q from the sites of another posterior."""
        old = latent_of(before.basis, before.next_q, self.dtype)
        empty = np.zeros((basis.size, self.n_latents))
        new = Latent(basis.kernel, basis.Z, working(basis.T, self.dtype), empty)
        sums = self.data.total(Step(new, self.rule(self.likelihood), old))
        if self.report is not None:
            self.report(before.bound)
        return balanced(natural_step(sums, prior)[0])

    def precisions(self, fit: Fit, rows: Rows) -> Array:
        """Return twice the loss of the bound per unit of residual variance at each row."""
        at = latent_of(fit.basis, fit.next_q, self.dtype).at(rows.X)
        return np.asarray(np.maximum(self.rule(self.likelihood)(rows, at).h.sum(axis=1), 0.0))


def natural_step(sums: Sums, prior: Q) -> tuple[Q, Inverses]:
    """Return q after a full natural-gradient step."""
    P = np.stack([mirrored(S) for S in sums.curvature])
    P += prior.P
    if sums.convex:
        P = np.stack([_bounded(each) for each in P])
    return solved(P, sums.linear + prior.linear)


def _between(fit: Fit, share: float) -> tuple[Q, Inverses]:
    """Return q after a fraction of the next step."""
    q, inverses = fit.q.mixed(fit.next_q, share)
    return balanced(q), inverses


def _bounded(P: Array) -> Array:
    """Return the precision with eigenvalues of at least ``LEAST``.

    Where log p(y|f) is not concave the best precision may be smaller than the prior's, which is one, and a step may
    overshoot; the bound keeps it positive.
    """
    values, vectors = np.linalg.eigh(P)
    if values[0] >= LEAST:
        return P
    return matmul(vectors * np.maximum(values, LEAST), np.ascontiguousarray(vectors.T))


def balanced(q: Q) -> Q:
    """Return q with means that add up to zero over the classes, as the optimal means do.

    At the optimum mu_c = Σ_i g_ic a_i, and the slopes of a data point add up to zero; steps of separate classes would
    converge slowly.
    """
    return q if len(q.P) == 1 else replace(q, mean=q.mean - q.mean.mean(axis=1, keepdims=True))


def _gradient(basis: Basis, q: Q, inverses: Inverses, sums: Sums) -> Array:
    """Return the gradient of the bound: through k(x, Z) and k(x, x) of the rows, and through L."""
    E = matmul(q.mean.copy(), np.ascontiguousarray(sums.slope.T))
    for S, (inverse, _) in zip(map(mirrored, sums.curvature), inverses, strict=True):
        E += S - matmul(inverse, S)
    return pull_basis(basis, E) + sums.theta
