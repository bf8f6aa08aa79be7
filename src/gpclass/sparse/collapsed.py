"""Dirichlet classification with inducing inputs: q in closed form from the sums of one pass over the rows.

Row i of class y has the targets and noise variances (t1, s1) in its own class and (t0, s0) in all others
(`inference.dirichlet`), relative to prior means m_c. With whitened features a_i (`priors.basis`), the residual variance
r_i, w0 = 1 / s0, w1 = 1 / s1, and for each class the sums over its rows, multiplied by their weights,

    n_c = Σ 1,     u_c = Σ a_i,     G_c = Σ a_i a_iᵀ,     G = Σ_c G_c, u, n likewise,     R = Σ_i r_i,

the best q(u) of class c and the bound of all classes together (Titsias 2009, for noise that differs) are

    P_c = I + w0 G + (w1 - w0) G_c,     P_c mu_c = b_c = w0 (t0 - m_c) (u - u_c) + w1 (t1 - m_c) u_c,
    bound = Σ_c [log N(targets | m_c) + ½ b_cᵀ mu_c - ½ log|P_c|] - ½ (C w0 + w1 - w0) R.

Every row is in one G_c, so that a pass costs the same for any number of classes. For the gradient, with J_c = I - P_c⁻¹
and g_ic = tau_ic (t_ic - m_c - a_iᵀ mu_c), the adjoint of a_i is Σ_c g_ic mu_c + F_y a_i with
F_y = w0 Σ_c J_c + (w1 - w0) J_y: a second pass with one product. What `pull_basis` needs follows from the first,
Σ a_bar aᵀ = Σ_c mu_c mu_cᵀ + P_c - 2 I + P_c⁻¹.

All of this is linear in the label weights: a soft label counts as rows of several classes, and is worked on for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import blas

from gpclass.core.linalg import drop_tiny, gram, inverse_of, matmul, matvec, mirror, multiply, single
from gpclass.core.protocols import Array, Index, Likelihood
from gpclass.data.rows import Data, Rows
from gpclass.inference.dirichlet import Targets
from gpclass.priors.basis import Basis, pull_basis
from gpclass.sparse.engine import Fit, Q
from gpclass.sparse.sums import TILE, Additive, add_pullback, as_working, features

# ------------------------------------------------------------------------ the two passes


@dataclass(slots=True, eq=False)
class ClassSums(Additive):
    """What the first pass returns."""

    residual: float  # Σ r_i
    weighted: float  # R
    counts: Array  # (C,): n_c
    linear: Array  # (M, C): u_c
    grams: Array  # (C, M, M): G_c, lower triangles


@dataclass(frozen=True, slots=True, eq=False)
class ClassStep:
    """The first pass: what goes down to the data."""

    kernel: Any
    Z: Array
    T: Array
    n_classes: int

    def zero(self) -> ClassSums:
        """Return the sums over no data."""
        M, C = len(self.Z), self.n_classes
        return ClassSums(0.0, 0.0, np.zeros(C), np.zeros((M, C)), np.zeros((C, M, M)))

    def __call__(self, X: Array, y: Array, weight: Array | None) -> ClassSums:
        """Return the sums over a block of rows with label weights (n, C), in bounded memory."""
        total = self.zero()
        share = 1.0 / np.maximum(np.count_nonzero(y, axis=1), 1)
        for c, rows, w, space in class_tiles(y, self.T, 1):
            A, residual, scale = features(self.kernel, self.Z, self.T, X[rows], space[0])
            total.counts[c] += float(w.sum())
            total.residual += float(residual @ share[rows])
            total.weighted += float(residual @ w)
            total.linear[:, c] += np.ravel(matmul(_row(w, A), A)).astype(float)
            if (w != 1.0).any():
                A *= np.sqrt(w).astype(A.dtype)[:, None]
                drop_tiny(A, scale * float(np.sqrt(w.max())))
            total.grams[c] += gram(A)
        return total


@dataclass(slots=True, eq=False)
class SlopeSums(Additive):
    """What the second pass returns: the gradient through k(x_i, Z) and k(x_i, x_i)."""

    theta: Array


@dataclass(frozen=True, slots=True, eq=False)
class SlopeStep:
    """The second pass: ``alpha`` is L⁻ᵀ mu, ``pull`` F_c L⁻¹ for each class, in the working precision."""

    kernel: Any
    Z: Array
    T: Array
    mean: Array  # (M, C)
    alpha: Array  # (M, C)
    pull: tuple[Array, ...]
    targets: Targets
    offset: Array

    def zero(self) -> SlopeSums:
        """Return the sums over no data."""
        return SlopeSums(np.zeros(self.kernel.n_dims))

    def __call__(self, X: Array, y: Array, weight: Array | None) -> SlopeSums:
        """Return the sums over a block of rows with label weights (n, C), in bounded memory."""
        total, C = self.zero(), self.mean.shape[1]
        for c, rows, w, space in class_tiles(y, self.T, 3):
            K, work, G = space
            A = features(self.kernel, self.Z, self.T, X[rows], K, work).A
            f = np.asarray(matmul(A, np.ascontiguousarray(self.mean, dtype=A.dtype)), dtype=float)
            tau, target = self.targets.of_class(c, C)
            g = tau * (target - self.offset - f)
            matmul(A, self.pull[c], out=G)
            G += matmul(as_working(g, A), np.ascontiguousarray(self.alpha.T))
            if (w != 1.0).any():
                G *= w.astype(A.dtype)[:, None]
            add_pullback(total, self, X[rows], K, drop_tiny(G, 0.0), -0.5 * float(tau.sum()) * w)
        return total


def class_tiles(labels: Array, T: Array, n_arrays: int) -> Iterator[tuple[int, Index, Array, Array]]:
    """Yield the class, the rows, their weights and ``n_arrays`` arrays of rows x M, class by class in tiles."""
    M = len(T)
    most = max(64, TILE // M)
    space = np.empty((n_arrays, min(most, len(labels)), M), dtype=T.dtype)
    for c in range(labels.shape[1]):
        found = np.flatnonzero(labels[:, c])
        for start in range(0, len(found), most):
            rows = found[start : start + most]
            yield c, rows, labels[rows, c], space[:, : len(rows)]


def _row(w: Array, A: Array) -> Array:
    return np.ascontiguousarray(w[None, :], dtype=A.dtype)


# --------------------------------------------------------------------------- the engine


@dataclass(frozen=True, slots=True, eq=False)
class Collapsed:
    """The data and the targets, with the face of `sparse.engine.Engine`; ``report`` is called after every pass.

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
        """Return the best q after one pass; a second one returns the gradient. There is nothing to start from."""
        step = ClassStep(basis.kernel, basis.Z, self._work(basis.T), self.n_latents)
        sums = self.data.total(step)
        offset = self.targets.offset(sums.counts) if self.offset is None else self.offset
        found, inverses, bound = self._solve(sums, offset)
        self._tell(bound)
        theta = None
        if gradient:
            theta = self._gradient(basis, found, inverses, offset, step)
            self._tell(bound)
        if self.after is not None:
            self.after(basis, found)
        residual = sums.residual / max(self.data.n_rows, 1)
        passes = 2 if gradient else 1
        lost, none = 0.5 * self._precision * sums.weighted, np.zeros(0)
        return Fit(basis, found, found, bound, 0.0, passes, theta, residual, lost, none, sums.counts, offset)

    @property
    def _precision(self) -> float:
        """Sum of the precisions of a row's targets."""
        return (self.n_latents - 1) * self.targets.low + self.targets.high

    def precisions(self, fit: Fit, rows: Rows) -> Array:
        """Return what a unit of residual variance at each row costs the bound, twice."""
        return self._precision * np.asarray(rows.y.sum(axis=1), dtype=float)

    def _tell(self, bound: float) -> None:
        if self.report is not None:
            self.report(bound)

    def _work(self, M: Array) -> Array:
        return single(M) if self.dtype == np.float32 else np.ascontiguousarray(M, dtype=float)

    def _solve(self, sums: ClassSums, offset: Array) -> tuple[Q, list[Array], float]:
        """Return q, the lower triangles of P⁻¹ of each class, and the bound; P takes the memory of the sums."""
        t, C, extra = self.targets, self.n_latents, self.targets.high - self.targets.low
        common, u = sums.grams[0].copy(), sums.linear.sum(axis=1)
        for G in sums.grams[1:]:
            common += G
        common *= t.low
        if self.base is None:
            common.ravel()[:: len(common) + 1] += 1.0
        bound = t.log_density(sums.counts, offset) - 0.5 * self._precision * sums.weighted
        mean, inverses = np.empty((len(u), C)), []
        for c, P in enumerate(sums.grams):
            P *= extra
            P += common
            own = sums.linear[:, c]
            b = t.low * (t.other - offset[c]) * (u - own) + t.high * (t.own - offset[c]) * own
            if self.base is not None:
                bound += _join(P, b, self.base, c)
            mirror(P)
            inverse, half_logdet = inverse_of(P)
            mean[:, c] = multiply(inverse, b)
            inverses.append(inverse)
            bound += 0.5 * float(b @ mean[:, c]) - half_logdet
        return Q(mean, sums.grams), inverses, bound

    def _gradient(self, basis: Basis, q: Q, inverses: list[Array], offset: Array, step: ClassStep) -> Array:
        t, C = self.targets, self.n_latents
        E = matmul(q.mean.copy(), np.ascontiguousarray(q.mean.T))
        diagonal = slice(None, None, basis.size + 1)
        common = np.zeros_like(E)  # w0 Σ J_c + (w1 - w0) I
        for P, inverse in zip(q.P, inverses, strict=True):
            E += P
            common -= inverse
        E -= common
        E.ravel()[diagonal] -= 2.0 * C
        common *= t.low
        common.ravel()[diagonal] += C * t.low + t.high - t.low
        pull = tuple(self._pull(common, inverse, step.T) for inverse in inverses)
        alpha = self._work(matmul(np.ascontiguousarray(basis.T.T), q.mean.copy()))
        job = SlopeStep(basis.kernel, basis.Z, step.T, q.mean, alpha, pull, t, offset)
        slopes = self.data.total(job)
        return pull_basis(basis, E) + slopes.theta  # which reads the lower triangle of E

    def _pull(self, common: Array, inverse: Array, T: Array) -> Array:
        """Return F_c L⁻¹ in the working precision."""
        F = np.multiply(inverse, self.targets.low - self.targets.high)
        F += common
        F = self._work(F)
        mirror(F)
        trmm = blas.strmm if F.dtype == np.float32 else blas.dtrmm
        return drop_tiny(trmm(1.0, T.T, F.T, side=0, lower=0, overwrite_b=1).T)


def _join(P: Array, b: Array, base: Q, c: int) -> float:
    """Add the precision of earlier rows to P and their linear term to b; return what the bound has of them."""
    mean = np.ascontiguousarray(base.mean[:, c])
    linear = matvec(base.P[c], mean)
    P += base.P[c]
    b += linear
    return inverse_of(base.P[c])[1] - 0.5 * float(linear @ mean)
