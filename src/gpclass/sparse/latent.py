"""Features, residual variances, means and variances of rows under q(u), in tiles of bounded size.

With K_uu = L Lᵀ row i has the whitened features a_i = L⁻¹ k(Z, x_i) and the residual variance
r_i = k(x_i, x_i) - a_iᵀ a_i (`priors.basis`). For q(u) = N(mu, P⁻¹) of each latent function

    m_i = a_iᵀ mu,     v_i = r_i + s_i,     s_i = a_iᵀ P⁻¹ a_i.

Row i acts on u only through a site on a_iᵀ u of precision h_i and slope g_i = nu_i - h_i m_i. Without that site, as in
`priors.base.cavity`, s_i becomes s_i / (1 - h_i s_i) and m_i falls by g_i times that; r_i does not
depend on the label.

Work on rows x M is in the precision of ``T``, and in single precision without tiny numbers (`core.linalg.drop_tiny`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpclass.core.linalg import drop_tiny, gram, matmul, single, times_lower_transposed
from gpclass.core.protocols import Array
from gpclass.data.rows import Rows
from gpclass.kernels import diag, matrix
from gpclass.priors.base import cavity

TILE = 1 << 20  # maximum number of entries of an array in a tile


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
