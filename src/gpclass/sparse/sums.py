"""The sums of one pass over the data, computed in the same way for a row, a block or a machine.

With K_uu = L Lᵀ row i has the whitened features a_i = L⁻¹ k(Z, x_i) and the residual variance
r_i = k(x_i, x_i) - a_iᵀ a_i (`priors.inducing`). For q(u) = N(mu, P⁻¹) of each latent function

    m_i = a_iᵀ mu,     v_i = r_i + s_i,     s_i = a_iᵀ P⁻¹ a_i.

Row i acts on u only through a site on a_iᵀ u of precision h_i and slope g_i = nu_i - h_i m_i. Without that site, as in
`priors.base.cavity`, s_i becomes s_i / (1 - h_i s_i) and m_i falls by g_i times that; r_i does not depend on the label.

A rule computes sites on a_iᵀ u from the moments of rows under q(u), with precisions h and g = nu - h m; it is the only
part in which methods differ. From the sites a pass returns Σ h a aᵀ and Σ (g + h m) a for each latent function: the
natural-gradient step of the variational bound is P = I + Σ h a aᵀ, P mu = Σ (g + h m) a (Hensman et al. 2015 in the
form of Khan & Lin 2017). If the sites belong to another q, ``before``, with other hyperparameters or other inducing
inputs, then a belongs to the new basis: the sites of the rows carry over to another basis. For the gradient

    adjoint of k(x_i, Z):  (Σ_c g_ic mu_c + W_ic F_c a_i)ᵀ L⁻¹,     of k(x_i, x_i):  -½ Σ_c h_ic,

with W = h and F = I - P⁻¹ for the bound. Sums and M x M matrices are in double precision; work on rows x M is in the
precision of ``T``, and in single precision without tiny numbers (`core.linalg.drop_tiny`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gpclass.core.frequencies import class_counts
from gpclass.core.linalg import drop_tiny, gram, matmul, routine, single, times_lower_transposed
from gpclass.core.protocols import Array, Likelihood
from gpclass.data.rows import Additive, Rows
from gpclass.inference.dirichlet import Targets
from gpclass.inference.variational import response
from gpclass.kernels import diag, matrix, pullback, pullback_diag
from gpclass.priors.base import cavity
from gpclass.priors.inducing import Basis

ROUNDING = 1e-10  # smaller curvatures E[l''] are rounding errors
TILE = 1 << 20  # maximum number of entries of an array in a tile

# ------------------------------------------------------------------- features and moments


def working(V: Array, dtype: Any) -> Array:
    """Return V with contiguous rows in this precision, without tiny numbers if it is single."""
    return single(V) if dtype == np.float32 else np.ascontiguousarray(V, dtype=float)


def nonzero(w: Array) -> Any:
    """Return the positions of nonzero w, as a slice, which needs no copies, if they are consecutive."""
    found = np.flatnonzero(w)
    first, last = found[[0, -1]] if len(found) else (0, 0)
    return found if 0 < len(found) <= last - first else slice(first, last + 1)


@dataclass(frozen=True, slots=True, eq=False)
class Latent:
    """q(u) for passes over rows: ``T`` is L⁻¹, and ``roots`` are C⁻¹ with P = C Cᵀ, one for each latent function."""

    kernel: Any
    Z: Array
    T: Array
    mean: Array  # (M, C)
    roots: tuple[Array, ...] = ()

    def at(self, X: Array, space: Array | None = None) -> Marginals:
        """Return the features and moments of rows X, in the memory of three arrays of at least as many rows."""
        K, A, work = (self.space(len(X)) if space is None else space)[:, : len(X)]
        prior_var = np.asarray(diag(self.kernel, X), dtype=float)
        scale = float(np.sqrt(prior_var.max(initial=0.0)))
        matrix(self.kernel, X, self.Z, out=K)
        np.copyto(A, K)
        drop_tiny(times_lower_transposed(A, self.T), scale)
        return Marginals(self, K, A, np.maximum(prior_var - _row_squares(A), 0.0), scale, work)

    def space(self, n_rows: int) -> Array:
        """Return memory for `at`: allocating it for every tile would take a fifth of the time of a pass."""
        return np.empty((3, n_rows, len(self.Z)), dtype=self.T.dtype)

    def tiles(self, rows: Rows, columns: int = 0) -> Iterator[tuple[Rows, Marginals]]:
        """Yield tiles of rows with their moments, valid until the next; tiles also fit arrays of this many columns."""
        step = max(64, TILE // max(columns, len(self.Z)))
        space = self.space(min(step, len(rows)))
        for start in range(0, len(rows), step):
            part = rows.take(slice(start, start + step))
            yield part, self.at(part.X, space)


@dataclass(frozen=True, eq=False)
class Marginals:
    """k(x_i, Z), features a_i and residual variances of some rows, and the magnitude of the largest feature."""

    latent: Latent
    K: Array
    A: Array
    residual: Array
    scale: float
    work: Array  # work space

    @cached_property
    def mean(self) -> Array:
        """The means m, (n, C)."""
        return np.asarray(matmul(self.A, working(self.latent.mean, self.A.dtype)), dtype=float)

    @cached_property
    def forms(self) -> Array:
        """The quadratic forms s, (n, C)."""
        out = np.empty((len(self.A), len(self.latent.roots)))
        for c, C in enumerate(self.latent.roots):
            np.copyto(self.work, self.A)
            out[:, c] = _row_squares(times_lower_transposed(self.work, C))
        return out

    @property
    def var(self) -> Array:
        """The variances v, (n, C)."""
        return np.maximum(self.residual[:, None] + self.forms, 1e-12)

    def gram(self, w: Array) -> Array:
        """Return the lower triangle of Σ w_i a_i a_iᵀ, in double."""
        if (w < 0.0).any():  # where log p(y|f) is not concave
            return self.gram(np.maximum(w, 0.0)) - self.gram(np.maximum(-w, 0.0))
        which = nonzero(w)
        root = np.sqrt(w[which])
        A = self.work[: len(root)]
        np.multiply(self.A[which], working(root[:, None], A.dtype), out=A)
        return gram(drop_tiny(A, self.scale * float(root.max())))

    def left_out(self, g: Array, h: Array, copies: Array) -> tuple[Array, Array]:
        """Return means and variances, (n, C), without one of the copies of the site of each row."""
        known = _row_squares(self.A)[:, None]
        # At a fixed point P is at least I + h a aᵀ, which bounds aᵀ P⁻¹ a; this is enforced before convergence too.
        forms = np.minimum(self.forms, known / (1.0 + np.maximum(h, 0.0) * known))
        mean, var = cavity(self.mean, forms, g, 1.0 - h * forms, np.maximum(copies, 1.0)[:, None])
        return mean, self.residual[:, None] + var


def _row_squares(A: Array) -> Array:
    """Return a_iᵀ a_i of each row, in double."""
    return np.einsum("ij,ij->i", A, A).astype(float)


# ---------------------------------------------------------------------------- the rules


class RowSites(NamedTuple):
    """The sites of some rows, g and h of shape (n, C), and their part of the bound.

    A pass adds up Σ W a aᵀ and Σ linear a for these weights, (n, C).
    """

    g: Any
    h: Array
    W: Array
    linear: Array
    value: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class BoundRule:
    """The variational bound: Σ w E[l], g = w E[l'] and h = -w E[l''].

    With several classes the means of q respond to a change with other precisions (`inference.variational.response`):
    these replace h if ``responding``.
    """

    likelihood: Likelihood
    responding: bool = False
    fixed: ClassVar[bool] = False  # whether the precisions do not depend on q

    @property
    def labels(self) -> Any:
        """The label y of each class, or None if labels are weights."""
        return self.likelihood.labels

    def __call__(self, rows: Rows, at: Marginals) -> RowSites:
        """Return the sites of rows."""
        several = np.ndim(rows.y) == 2  # label weights, which include those of the rows
        mean, var = (at.mean, at.var) if several else (at.mean[:, 0], at.var[:, 0])
        w = 1.0 if several or rows.weight is None else rows.weight
        e = self.likelihood.expected(rows.y, mean, var)
        g, h = ((w * part).reshape(at.mean.shape) for part in (e.slope, -e.curvature))
        h = np.where(h > -ROUNDING, np.maximum(h, 0.0), h)
        h = response(rows.y, g, h) if self.responding else h
        return RowSites(g, h, h, g + h * at.mean, float(np.sum(w * e.value)))


@dataclass(frozen=True, slots=True, eq=False)
class TargetRule:
    """Dirichlet classification: sites of its targets, relative to the prior means ``offset``.

    W are the label weights. Most of them are zero, and with the rows sorted by class a pass costs the same for any
    number of classes.
    """

    targets: Targets
    offset: Array | None = None
    fixed: ClassVar[bool] = True
    labels: ClassVar[None] = None  # label weights

    def __call__(self, rows: Rows, at: Marginals) -> RowSites:
        """Return the sites of rows."""
        sites = self.targets.sites(rows.y, 0.0 if self.offset is None else self.offset)
        g = None if self.offset is None else sites.nu - sites.tau * at.mean
        return RowSites(g, sites.tau, rows.y, rows.y)


# ----------------------------------------------------------------------------- the pass


@dataclass(slots=True, eq=False)
class Sums(Additive):
    """The sums that a pass returns."""

    counts: Array  # total weight of each class
    value: float  # Σ E[l]
    residual: float  # Σ r_i
    lost: float  # ½ Σ h r: loss of the bound by the residual variance, to first order
    curvature: Array  # (C, M, M): Σ W a aᵀ, lower triangles
    linear: Array  # (M, C): Σ (g + h m) a, or Σ W a
    slope: Array  # (M, C): Σ g a
    theta: Array
    others: Array  # Σ E[l] with other parameters of the likelihood
    convex: int  # number of negative h


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """The job of one pass over the rows: called with a block, it returns the `Sums` over its rows.

    ``alpha`` and ``pull`` are set by `with_gradient`, and only then are the sums for the gradient computed.
    """

    latent: Latent
    rule: Any
    before: Latent | None = None  # the q that determines the sites; None: ``latent``
    alpha: Array | None = None  # L⁻ᵀ mu, so that the means are m = k(X, Z) alpha
    pull: tuple[Array, ...] = ()  # F_c L⁻¹ for each function c, with the F_c of `with_gradient`
    others: tuple[Likelihood, ...] = ()  # likelihoods with other parameters, for the gradient
    adds: bool = True  # whether to compute the sums for a step of q

    def with_gradient(self, basis: Basis, F: Iterable[Array]) -> Step:
        """Return the step that also adds up the gradient, for the symmetric matrix F of each function."""
        T, trmm = self.latent.T, routine("trmm", self.latent.T)
        alpha = working(matmul(np.ascontiguousarray(basis.T.T), self.latent.mean.copy()), T.dtype)
        work = (working(each, T.dtype) for each in F)
        pull = tuple(drop_tiny(trmm(1.0, T.T, each.T, side=0, lower=0, overwrite_b=1).T) for each in work)
        return replace(self, alpha=alpha, pull=pull)

    def __call__(self, rows: Rows) -> Sums:
        """Return the sums over a block of data of any size, in bounded memory."""
        M, C = self.latent.mean.shape
        M = M if self.adds else 0
        square, table, theta = np.zeros((C, M, M)), np.zeros((M, C)), np.zeros(self.latent.kernel.n_dims)
        others = np.zeros(len(self.others))
        counts = np.zeros(len(self.rule.labels or range(C)))
        total = Sums(counts, 0.0, 0.0, 0.0, square, table, table.copy(), theta, others, 0)
        if rows.y.ndim == 2:
            rows = rows.take(np.argsort(rows.y.argmax(axis=1), kind="stable"))
        before, space = self.before, None
        for part, at in self.latent.tiles(rows, 0 if before is None else len(before.Z)):
            seen = at
            if before is not None:
                space = before.space(len(part)) if space is None else space
                seen = before.at(part.X, space)
            self._add(total, part, at, seen)
        return total

    def _add(self, total: Sums, rows: Rows, at: Marginals, seen: Marginals) -> None:
        """Add some rows, with the sites computed from ``seen``."""
        g, h, W, linear, value = self.rule(rows, seen)
        total.counts += class_counts(rows.y, rows.weight, self.rule.labels)
        total.value += value
        total.residual += float(at.residual.sum())
        total.lost += 0.5 * float(at.residual @ h.sum(axis=1))
        total.convex += int((h < 0.0).sum())
        for i, likelihood in enumerate(self.others):
            total.others[i] += replace(self.rule, likelihood=likelihood)(rows, seen).value
        if self.adds:
            V = linear if g is None else np.hstack([linear, g])
            sums = matmul(working(V.T, at.A.dtype), at.A).T
            total.linear += sums[:, : h.shape[1]]
            total.slope += 0.0 if g is None else sums[:, h.shape[1] :]
            for c in np.flatnonzero(W.any(axis=0)):
                total.curvature[c] += at.gram(W[:, c])
        if self.alpha is not None:
            G = self._adjoint(at, g, W)
            total.theta += pullback(self.latent.kernel, rows.X, self.latent.Z, G, K=at.K)
            total.theta += pullback_diag(self.latent.kernel, rows.X, -0.5 * h.sum(axis=1))

    def _adjoint(self, at: Marginals, g: Array, W: Array) -> Array:
        """Return the adjoint of k(x_i, Z)."""
        A, alpha = at.A, np.asarray(self.alpha)
        G = matmul(working(g, A.dtype), np.ascontiguousarray(alpha.T))
        for c in np.flatnonzero(W.any(axis=0)):
            which = nonzero(W[:, c])
            part = matmul(A[which], self.pull[c], out=at.work[: len(W[which])])
            part *= working(W[which, c, None], A.dtype)
            G[which] += part
        return drop_tiny(G, 0.0)
