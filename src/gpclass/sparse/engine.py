"""Variational inference with inducing inputs, as passes over data that may be anywhere.

q(u) = N(mu, P⁻¹) in whitened coordinates. A pass returns sums (`sums`), and from them come

    bound = Σ E[l] - ½ Σ_c (tr P⁻¹ + muᵀmu - M + log|P|),     the natural-gradient step,     d bound / d theta

all exact for all rows. A step that lowers the bound is halved. At another theta, or with other inducing inputs, q
starts from the sites that the rows had before; then one pass is usually enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import lapack

from gpclass.core.linalg import (
    cholesky,
    clear_upper,
    matmul,
    matvec,
    mirrored,
    single,
    solve_positive,
)
from gpclass.core.protocols import Array, Likelihood
from gpclass.core.registry import stored
from gpclass.data.rows import Data, Rows
from gpclass.priors.basis import Basis, pull_basis, times_lower
from gpclass.sparse.sums import Step, Sums, precisions

LEAST = 0.1  # eigenvalue of P, the prior's being one


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Q:
    """q(u) of C latent functions in whitened coordinates: means (M, C), precisions (C, M, M)."""

    mean: Array
    P: Array

    def repeated(self, times: float) -> Q:
        """Return q for so many times as many rows of the same kind: P - I and P m are sums over the rows."""
        if times == 1.0:
            return self
        M = len(self.mean)
        P = times * self.P + (1.0 - times) * np.eye(M)
        sums = times * np.einsum("cij,jc->ci", self.P, self.mean)
        mean = np.linalg.solve(P, sums[:, :, None])[:, :, 0].T
        return Q(np.ascontiguousarray(mean), P)


def prior_q(M: int, n_latents: int) -> Q:
    """Return the prior as q."""
    return Q(np.zeros((M, n_latents)), np.tile(np.eye(M), (n_latents, 1, 1)))


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """C⁻¹ of P = C Cᵀ and P⁻¹, for each function."""

    roots: list[Array]
    inverses: list[Array]
    half_logdets: list[float]
    divergence: float  # KL(q || prior)


def factor(q: Q) -> Factors:
    """Factor the precisions."""
    roots, inverses, half_logdets, divergence = [], [], [], 0.0
    for c, P in enumerate(q.P):
        C = P.copy()
        cholesky(C)
        half_logdets.append(float(np.log(C.diagonal()).sum()))
        clear_upper(C)
        lapack.dtrtri(C.T, lower=0, overwrite_c=1)
        inverse = C.copy()
        lapack.dlauum(inverse.T, lower=0, overwrite_c=1)
        roots.append(C)
        inverses.append(mirrored(inverse))
        mu = q.mean[:, c]
        excess = float(np.trace(inverse)) + float(mu @ mu) - len(P)
        divergence += 0.5 * excess + half_logdets[-1]
    return Factors(roots, inverses, half_logdets, divergence)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """q after a number of passes at one theta; ``gap`` is about what one more would gain, in nats."""

    basis: Basis
    q: Q
    next_q: Q  # a whole step further
    bound: float
    gap: float
    passes: int
    gradient: Array | None
    residual: float  # mean of r_i
    lost: float  # nats that the residual variance costs the bound, to first order
    others: Array  # Σ E[l] of the other likelihoods
    counts: Array  # total weight of each class
    offset: Array | None = None  # prior means of the functions, if they are not zero


@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """The data and the model; ``report`` is called after every pass."""

    data: Data
    likelihood: Likelihood
    n_latents: int = 1
    dtype: Any = np.float32
    report: Callable[[float], None] | None = None
    after: Callable[[Basis, Q], None] | None = None  # given the next q after every pass
    base: Q | None = None  # the prior of q, if it is not N(0, I): the posterior of earlier rows

    def converge(
        self,
        basis: Basis,
        q: Q | None = None,
        *,
        tol: float = 1e-6,
        max_passes: int = 50,
        gradient: bool = False,
        others: tuple[Likelihood, ...] = (),
        before: Fit | None = None,
    ) -> Fit:
        """Iterate q until another step would gain less than ``tol`` nats, within ``max_passes`` passes.

        It starts from ``q``, or from the sites of the fit ``before``, which may have another basis; these cost a pass.
        """
        if before is not None:
            q = self._projected(basis, before)
        warm = q is not None
        q = prior_q(basis.size, self.n_latents) if q is None else q
        best: Fit | None = None
        # Each class steps as if the others were fixed; together the steps are at most twice too long.
        longest = 1.0 if self.n_latents == 1 else 0.6
        target, rho = q, longest
        for passes in range(1, max_passes + 1):
            factors = factor(q)
            wanted = gradient and (warm or passes > 1 or max_passes == 1)
            sums = self.data.total(self._step(basis, q, factors, wanted, others))
            bound = sums.value - (
                factors.divergence if self.base is None else _divergence(q, factors, self.base)
            )
            if self.report is not None:
                self.report(bound)
            if best is not None and bound < best.bound - 1e-9 * abs(bound) - 0.1 * tol and rho > 1e-3:
                rho *= 0.5
                q = _mixed(best.q, target, rho)
                continue
            target, half_logdets = _natural(sums, self.base)
            gap = _gap(q, factors, target, half_logdets)
            theta = self._gradient(basis, q, factors, sums) if wanted else None
            residual = sums.residual / max(self.data.n_rows, 1)
            best = Fit(
                basis, q, target, bound, gap, passes, theta, residual, sums.lost, sums.others, sums.counts
            )
            if gap <= tol and (wanted or not gradient):
                return best
            rho = min(longest, 2.0 * rho)
            q = target if rho == 1.0 else _mixed(q, target, rho)
            if self.after is not None:
                self.after(basis, q)
        if best is None:
            raise ValueError(f"max_passes={max_passes} is not possible, expected at least one pass.")
        if gradient and best.gradient is None:  # every later step lowered the bound
            end = self.converge(basis, best.q, max_passes=1, gradient=True, others=others)
            best = replace(end, passes=max_passes + 1)
        return best

    def _projected(self, basis: Basis, before: Fit) -> Q:
        """Return q from the sites of another posterior."""
        old = self._step(before.basis, before.next_q, factor(before.next_q), False, ())
        M = np.zeros((basis.size, self.n_latents))
        new = Step(basis.kernel, self.likelihood, basis.Z, self._work(basis.T), M, (), before=old)
        sums = self.data.total(new)
        if self.report is not None:
            self.report(before.bound)
        return _natural(sums, self.base)[0]

    def precisions(self, fit: Fit, rows: Rows) -> Array:
        """Return what a unit of residual variance at each row costs the bound, twice."""
        step = self._step(fit.basis, fit.next_q, factor(fit.next_q), False, ())
        return precisions(step, rows.X, rows.y, rows.weight)

    def _work(self, M: Array) -> Array:
        """Return a matrix in the precision of the work on rows."""
        return single(M) if self.dtype == np.float32 else np.ascontiguousarray(M, dtype=self.dtype)

    def _step(
        self,
        basis: Basis,
        q: Q,
        factors: Factors,
        gradient: bool,
        others: tuple[Likelihood, ...],
    ) -> Step:
        """Return what goes down to the data."""
        as_work = self._work
        alpha: Array | None = None
        pull: tuple[Array, ...] = ()
        if gradient:
            alpha = as_work(matmul(np.ascontiguousarray(basis.T.T), q.mean.copy()))
            pull = tuple(as_work(basis.T - times_lower(inverse, basis.T)) for inverse in factors.inverses)
        return Step(
            kernel=basis.kernel,
            likelihood=self.likelihood,
            Z=basis.Z,
            T=as_work(basis.T),
            mean=q.mean,
            roots=tuple(as_work(C) for C in factors.roots),
            alpha=alpha,
            pull=pull,
            others=others if gradient else (),
        )

    def _gradient(self, basis: Basis, q: Q, factors: Factors, sums: Sums) -> Array:
        M = basis.size
        E = np.zeros((M, M))
        for c, inverse in enumerate(factors.inverses):
            S = mirrored(sums.curvature[c])
            E += np.outer(q.mean[:, c], sums.slope[:, c]) + S - matmul(inverse, S)
        return pull_basis(basis, E) + sums.theta


def _divergence(q: Q, factors: Factors, base: Q) -> float:
    """Return KL(q || base)."""
    before, total = factor(base), 0.0
    for c, P in enumerate(base.P):
        d = q.mean[:, c] - base.mean[:, c]
        trace = float(np.vdot(P, factors.inverses[c])) - len(P)
        total += 0.5 * (trace + float(d @ matvec(P, d))) + factors.half_logdets[c] - before.half_logdets[c]
    return total


def _natural(sums: Sums, base: Q | None) -> tuple[Q, list[float]]:
    """Return q at the end of a whole natural-gradient step, and ½ log|P| of each function."""
    P = np.stack([mirrored(S) for S in sums.curvature])
    mean, half_logdets = np.empty(sums.linear.shape), []
    for c in range(len(P)):
        b = sums.linear[:, c]
        if base is None:
            P[c].ravel()[:: len(P[c]) + 1] += 1.0
        else:
            P[c] += base.P[c]
            b = b + matvec(base.P[c], np.ascontiguousarray(base.mean[:, c]))
        if sums.convex:
            P[c] = _bounded(P[c])
        mean[:, c], half_logdet = solve_positive(P[c], b)
        half_logdets.append(half_logdet)
    return Q(_balanced(mean), P), half_logdets


def _bounded(P: Array) -> Array:
    """Return the precision with eigenvalues of at least ``LEAST``.

    Where log p(y|f) is not concave the best precision may be smaller than the prior's, which is one, and a step may
    overshoot; it has to stay positive.
    """
    values, vectors = np.linalg.eigh(P)
    if values[0] >= LEAST:
        return P
    return matmul(vectors * np.maximum(values, LEAST), np.ascontiguousarray(vectors.T))


def _balanced(mean: Array) -> Array:
    """Return means of the functions of several classes that add up to zero, as the best ones do.

    mu_c = Σ_i g_ic a_i there, and the slopes of a data point add up to zero; steps for each class by itself would
    only creep there.
    """
    return mean - mean.mean(axis=1, keepdims=True) if mean.shape[1] > 1 else mean


def _mixed(q: Q, target: Q, rho: float) -> Q:
    """Return q a part of the way, in its natural parameters P and P mu."""
    P = (1.0 - rho) * q.P + rho * target.P
    mean = np.empty(q.mean.shape)
    for c in range(len(P)):
        b = (1.0 - rho) * matvec(q.P[c], q.mean[:, c]) + rho * matvec(target.P[c], target.mean[:, c])
        mean[:, c] = solve_positive(P[c], b)[0]
    return Q(_balanced(mean), P)


def _gap(q: Q, factors: Factors, target: Q, half_logdets: list[float]) -> float:
    """Return KL(q || target): about what the step gains."""
    gap = 0.0
    for c, P in enumerate(target.P):
        d = target.mean[:, c] - q.mean[:, c]
        trace = float(np.vdot(P, factors.inverses[c])) - len(P)
        bend = trace - 2.0 * (half_logdets[c] - factors.half_logdets[c])
        gap += 0.5 * (max(bend, 0.0) + float(d @ matvec(P, d)))
    return gap
