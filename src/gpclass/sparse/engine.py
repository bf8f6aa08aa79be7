"""Variational inference with inducing inputs, in passes over data in memory, in files or on a cluster.

q(u) = N(mu, P⁻¹) in whitened coordinates. A pass returns sums (`sums`), which give

    bound = Σ E[l] - KL(q || prior),     the natural-gradient step,     d bound / d theta

all exact sums over all rows. A step that lowers the bound is halved. At another theta, or with other inducing inputs, q
starts from the sites that the rows had before; then one pass is usually enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpclass.core.linalg import cholesky, clear_upper, gram_of_lower, invert_factor, matmul, matvec, mirrored
from gpclass.core.optimisers import TOL_NATS, Tol
from gpclass.core.protocols import DIFFERENCE, Array, Evaluation, Info, Likelihood
from gpclass.core.registry import stored
from gpclass.data.rows import Data, Rows
from gpclass.priors.inducing import Basis, make_basis, pull_basis
from gpclass.sparse.sums import BoundRule, Latent, Step, Sums, working

MAX_PASSES = 50  # maximum number of passes at one theta; five or six are usual
LEAST = 0.1  # lower bound on the eigenvalues of P, which are one for the prior

# --------------------------------------------------------------------- Gaussians over u


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Q:
    """q(u) of C latent functions in whitened coordinates: means (M, C), precisions (C, M, M).

    ``roots`` are C⁻¹ with P = C Cᵀ, and ``inverses`` P⁻¹ = C⁻ᵀ C⁻¹, if `factored` has found them.
    """

    mean: Array
    P: Array
    roots: tuple[Array, ...] = field(default=(), metadata={"stored": False})
    inverses: tuple[Array, ...] = field(default=(), metadata={"stored": False})

    @property
    def half_logdet(self) -> Array:
        """½ log|P| of each function."""
        return np.array([-np.log(root.diagonal()).sum() for root in self.roots])

    @property
    def linear(self) -> Array:
        """P mu of each function, (M, C)."""
        return np.asarray(np.einsum("cij,jc->ic", self.P, self.mean))

    def balanced(self) -> Q:
        """Return q with means that add up to zero over the classes, as the optimal means do.

        At the optimum mu_c = Σ_i g_ic a_i, and the slopes of a data point add up to zero; steps of separate classes
        would converge slowly.
        """
        mean = self.mean
        return self if len(self.P) == 1 else replace(self, mean=mean - mean.mean(axis=1, keepdims=True))

    def mixed(self, other: Q, share: float) -> Q:
        """Return a Gaussian between this one and another, in the natural parameters P and P mu."""
        if share == 1.0:
            return other
        P = (1.0 - share) * self.P + share * other.P
        return solved(P, (1.0 - share) * self.linear + share * other.linear)


def prior_q(M: int, n_latents: int) -> Q:
    """Return the prior as q."""
    one = np.eye(M)
    P = np.broadcast_to(one, (n_latents, M, M))
    return Q(np.zeros((M, n_latents)), P, (one,) * n_latents, (one,) * n_latents)


def factored(q: Q) -> Q:
    """Return q with its factors."""
    if q.roots:
        return q
    roots = tuple(np.array(P, order="C") for P in q.P)
    for C in roots:
        cholesky(C)
        invert_factor(C)
        clear_upper(C)
    return replace(q, roots=roots, inverses=tuple(map(gram_of_lower, roots)))


def solved(P: Array, linear: Array) -> Q:
    """Return q from its natural parameters."""
    q = factored(Q(linear, P))
    means = [matvec(inverse, b) for inverse, b in zip(q.inverses, linear.T, strict=True)]
    return replace(q, mean=np.stack(means, axis=1))


def divergence(q: Q, other: Q) -> float:
    """Return KL(q || other)."""
    total, bends = 0.0, 2.0 * (other.half_logdet - q.half_logdet)
    for P, inverse, d, bend in zip(other.P, q.inverses, (other.mean - q.mean).T, bends, strict=True):
        total += 0.5 * (max(float(np.vdot(P, inverse)) - len(P) - bend, 0.0) + float(d @ matvec(P, d)))
    return total


def latent_of(basis: Basis, q: Q, dtype: Any = np.float64) -> Latent:
    """Return q in the form for passes over rows, in the precision of that work."""
    roots = tuple(working(root, dtype) for root in factored(q).roots)
    return Latent(basis.kernel, basis.Z, working(basis.T, dtype), q.mean, roots)


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
    others: Array  # Σ E[l] with other parameters of the likelihood
    counts: Array  # total weight of each class
    offset: Array | None = None  # prior means of the functions, if they are not zero


@stored
@dataclass(frozen=True, slots=True, eq=False)
class InducingReport:
    """q(u) at the inducing inputs, and the cost of the fit, which the fitted model keeps."""

    Z: Array = field(repr=False)
    q: Q = field(repr=False)
    n_rows: int
    n_inducing: int
    passes: int
    seconds: float
    residual: float  # mean prior variance that the inducing inputs do not explain
    jitter: float
    counts: Array  # total weight of each class


@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """The data and the model; ``report`` is called with the bound after every pass, and its q."""

    data: Data
    likelihood: Any
    n_latents: int = 1
    dtype: Any = np.float32
    report: Callable[[float, Q | None], None] | None = None
    others: tuple[Likelihood, ...] = ()  # likelihoods with other parameters, for the gradient
    base: Q | None = None  # the prior of q, if it is not N(0, I): the posterior of earlier rows

    def converge(
        self,
        basis: Basis,
        start: Q | Fit | None = None,
        *,
        tol: float = 1e-6,
        max_passes: int = MAX_PASSES,
        gradient: bool = False,
    ) -> Fit:
        """Return q, iterated until another step would gain less than ``tol`` nats, in at most ``max_passes`` passes.

        ``start`` is a q, or a fit, possibly with another basis, whose sites are projected in one more pass.
        """
        prior = self.prior(basis)
        q = self._projected(basis, prior, start) if isinstance(start, Fit) else factored(start or prior)
        # Each class steps as if the others were fixed, so all steps together are too long, by at most a factor of two.
        longest = 1.0 if self.n_latents == 1 else 0.6
        best: Fit | None = None
        rho = longest
        for passes in range(1, max_passes + 1):
            sums = self.data.total(self.step(basis, q, gradient=gradient))
            bound = sums.value - divergence(q, prior)
            if self.report is not None:
                self.report(bound, q)
            if best is not None and bound < best.bound - 1e-9 * abs(bound) - 0.1 * tol and rho > 1e-3:
                rho *= 0.5
                q = best.q.mixed(best.next_q, rho).balanced()
                continue
            target, slope = (
                natural_step(sums, prior).balanced(),
                _gradient(basis, q, sums) if gradient else None,
            )
            gap, residual = divergence(q, target), sums.residual / max(self.data.n_rows, 1)
            best = Fit(basis, q, target, bound, gap, passes, slope, residual, sums.others, sums.counts)
            if best.gap <= tol:
                return best
            rho = min(longest, 2.0 * rho)
            q = best.q.mixed(best.next_q, rho).balanced()
        if best is None:
            raise ValueError(f"max_passes={max_passes} is not valid: expected at least one pass.")
        return best

    def prior(self, basis: Basis) -> Q:
        """Return the prior of q."""
        return prior_q(basis.size, self.n_latents) if self.base is None else factored(self.base)

    def rule(self, likelihood: Likelihood, offset: Array | None = None) -> Any:
        """Return the rule that computes the sites of rows."""
        return BoundRule(likelihood)

    def step(self, basis: Basis, q: Q, *, gradient: bool = False) -> Step:
        """Return the job of a pass at q."""
        step = Step(latent_of(basis, q, self.dtype), self.rule(self.likelihood), others=self.others)
        if not gradient:
            return step
        return step.with_gradient(basis, (np.eye(basis.size) - inverse for inverse in q.inverses))

    def _projected(self, basis: Basis, prior: Q, before: Fit) -> Q:
        """Return q from the sites of another posterior."""
        old = latent_of(before.basis, before.next_q, self.dtype)
        new = latent_of(basis, prior, self.dtype)
        sums = self.data.total(Step(new, self.rule(self.likelihood), old))
        if self.report is not None:
            self.report(before.bound, None)
        return natural_step(sums, prior).balanced()

    def precisions(self, fit: Fit, rows: Rows) -> Array:
        """Return twice the loss of the bound per unit of residual variance at each row."""
        at = latent_of(fit.basis, fit.next_q, self.dtype).at(rows.X)
        return np.asarray(np.maximum(self.rule(self.likelihood)(rows, at).h.sum(axis=1), 0.0))


def natural_step(sums: Sums, prior: Q) -> Q:
    """Return q after a full natural-gradient step."""
    P = np.stack([mirrored(S) for S in sums.curvature])
    P += prior.P
    if sums.convex:
        P = np.stack([_bounded(each) for each in P])
    return solved(P, sums.linear + prior.linear)


def _bounded(P: Array) -> Array:
    """Return the precision with eigenvalues of at least ``LEAST``.

    Where log p(y|f) is not concave the best precision may be smaller than the prior's, which is one, and a step may
    overshoot; the bound keeps it positive.
    """
    values, vectors = np.linalg.eigh(P)
    if values[0] >= LEAST:
        return P
    return matmul(vectors * np.maximum(values, LEAST), np.ascontiguousarray(vectors.T))


def _gradient(basis: Basis, q: Q, sums: Sums) -> Array:
    """Return the gradient of the bound: through k(x, Z) and k(x, x) of the rows, and through L."""
    E = matmul(q.mean.copy(), np.ascontiguousarray(sums.slope.T))
    for S, inverse in zip(map(mirrored, sums.curvature), q.inverses, strict=True):
        E += S - matmul(inverse, S)
    return pull_basis(basis, E) + sums.theta


# ------------------------------------------------------------------- the bound of theta


@dataclass(slots=True, eq=False)
class PassObjective:
    """The bound at the inducing inputs Z; at every theta q is iterated to convergence, starting from the last one."""

    engine: Engine
    kernel: Any
    Z: Array
    jitter: float  # jitter relative to the prior variance
    tol: Tol = TOL_NATS  # gain of another pass, in nats, at which q has converged
    max_passes: int = MAX_PASSES
    start: Q | None = None  # where the first evaluation starts

    @property
    def description(self) -> str:
        """Name of the method, for messages."""
        return "Inference with inducing inputs"

    def evaluate(self, theta: Array, warm: Q | Fit | None = None, *, gradient: bool = True) -> Evaluation:
        """Return the bound at theta, starting from q, or from a fit elsewhere, which provides sites."""
        fit = self.fit_at(theta, self.start if warm is None else warm, gradient=gradient)
        # q may be a few nats below its optimum while theta changes; the strategy checks the last fit.
        slope = fit.gradient
        if slope is not None and len(fit.others):
            slope = np.concatenate([slope, (fit.others[0::2] - fit.others[1::2]) / (2.0 * DIFFERENCE)])
        return Evaluation(fit.bound, slope, fit, Info(True, fit.passes, fit.gap))

    def fit_at(self, theta: Array, start: Q | Fit | None, *, gradient: bool) -> Fit:
        """Return q at theta, after passes over the rows until its bound has converged."""
        kernel, likelihood, others = self._model(theta, gradient)
        return replace(self.engine, likelihood=likelihood, others=others).converge(
            make_basis(kernel, self.Z, self.jitter),
            start,
            tol=self.tol() if callable(self.tol) else self.tol,
            max_passes=self.max_passes,
            gradient=gradient,
        )

    def _model(self, theta: Array, gradient: bool) -> tuple[Any, Likelihood, tuple[Likelihood, ...]]:
        """Return kernel and likelihood at theta, and the likelihoods nearby that a gradient needs."""
        split = self.kernel.n_dims
        likelihood: Any = self.engine.likelihood
        kernel, rest = self.kernel.clone_with_theta(theta[:split]), theta[split:]
        if not len(rest):
            return kernel, likelihood, ()
        likelihood = likelihood.with_theta(rest)
        steps = DIFFERENCE * np.eye(len(rest)) if gradient else ()
        others = tuple(likelihood.with_theta(rest + sign * e) for e in steps for sign in (1.0, -1.0))
        return kernel, likelihood, others
