"""One factorisation for all classes, where each row has one precision in all of them but one.

The sites of row i have the precision b_i in every class but one, and a larger one t_i in that class, its own. With
A = K + diag(1 / b) and U_c the columns of I of the rows whose own class is c,

    K + D_c = A - U_c Δ_c U_cᵀ,     Δ = diag(1/b - 1/t) ≥ 0,

so that R_c = (K + D_c)⁻¹ follows from A⁻¹ and a system of the size of the class (Woodbury):

    M_c = I - Δ_c^½ [A⁻¹]_cc Δ_c^½ = L_c L_cᵀ,     Y_c = L_c⁻¹ Δ_c^½ U_cᵀ A⁻¹,     R_c = A⁻¹ + Y_cᵀ Y_c,
    log|K + D_c| = log|A| + log|M_c|.

The eigenvalues of M_c are between b/t and 1. All Y_c together have n rows, and Σ_c R_c = C A⁻¹ + YᵀY: about 3 n³
operations for any number of classes, and n³ without the gradient. A⁻¹ comes from the inverse T of the factor of A,
which predictions need: it is kept in the upper triangle of K, of which only the lower one counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.core.linalg import cholesky, drop_tiny, matmul, mirror, row_tiles
from gpclass.core.memory import require_memory
from gpclass.core.precision import blas_of, lapack_of
from gpclass.core.protocols import Adjoint, Array, Conditioned, Inputs, Sites
from gpclass.kernels import diag, move
from gpclass.posteriors.gaussian import GaussianProcess
from gpclass.priors.base import BaseConditioned, BasePrior, cavity, not_positive
from gpclass.priors.dense import fill_lower, pull_lower

SINGLE_FROM = 8000  # rows from which a posterior is in single precision, where that is safe
# The factorisation of A = K + D errs by about eps |A|, and |A| is hardly above the trace of K; the noise variances in D
# are above one, so that this is the largest relative error:
SINGLE_ERROR = 0.03


class SharedPrior(BasePrior):
    """The prior of one latent function per class, for sites that one factorisation serves for all classes.

    Parameters
    ----------
    kernel : kernel
    X : inputs
    n_classes : int
    single : bool
        Whether matrices may be in single precision if there are many rows: for a posterior without a gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.core.protocols import Sites
    >>> prior = SharedPrior(4.0 * RBF(1.0), np.array([[0.0], [1.0]]), 2)
    >>> prior.condition(Sites(nu=np.eye(2), tau=np.eye(2) + 1.0)).mean.round(4)
    array([[0.4248, 0.073 ],
           [0.073 , 0.4248]])
    """

    def __init__(self, kernel: Any, X: Inputs, n_classes: int, *, single: bool = False) -> None:
        n, rounding = len(X), float(np.finfo(np.float32).eps) / 2.0
        single = single and n >= SINGLE_FROM and float(diag(kernel, X).sum()) * rounding < SINGLE_ERROR
        require_memory(n, 1.6 if single else 3.1)
        # One block for all that is n x n: the allocator would not give smaller ones back.
        self.K, *self._space = np.empty((3, n, n), dtype=np.float32 if single else np.float64)
        self.kernel, self.X, self.shape = kernel, X, (n, n_classes)
        fill_lower(kernel, X, self.K)

    def move(self, theta: Array) -> None:
        """Replace the covariance by that at theta, in its own memory."""
        self.kernel = move(self.kernel, theta)
        fill_lower(self.kernel, self.X, self.K)

    def variances(self) -> Array:
        """Return the variances of the latent values."""
        return np.repeat(self.K.diagonal()[:, None], self.shape[1], axis=1)

    def multiply(self, v: Array) -> Array:
        """Return K v."""
        return multiply_all(self.K, v)

    def condition(self, sites: Sites) -> SharedConditioned:
        """Return q for the sites; earlier ones must not be used again."""
        try:
            return SharedConditioned(self.K, sites, *self._space)
        except np.linalg.LinAlgError:
            raise not_positive(self.kernel, self.K) from None

    def pullback(self, adjoint: Adjoint) -> Array:
        """Return Σ_ij G_ij ∂K_ij/∂theta."""
        q: Any = adjoint.conditioned
        G = q.twice_adjoint(*(np.hstack(vectors) for vectors in adjoint.factors()))
        return pull_lower(self.kernel, self.X, self.K, lambda rows: G[rows, : rows.stop].copy())

    def posterior(self, conditioned: Conditioned) -> GaussianProcess:
        """Return q as a process over all inputs; the prior is used up."""
        q: Any = conditioned
        return GaussianProcess((self.kernel,), self.X, q.alpha, **q.roots())


class SharedConditioned(BaseConditioned):
    """q for one set of sites; ``inverse`` and ``Y`` are the memory for A⁻¹ and Y, and the upper triangle of K for T.

    All are in the precision of K; `multiply_R` returns double. ``order`` are the rows sorted by their own classes; rows
    ``bounds[c]`` to ``bounds[c + 1]`` of Y belong to class c.
    """

    def __init__(self, K: Array, sites: Sites, inverse: Array, Y: Array) -> None:
        tau, (n, C) = sites.tau, sites.tau.shape
        self.K, self.tau, self.inverse, self.Y = K, tau, inverse, Y
        own, rows, base = tau.argmax(axis=1), np.arange(n), tau.min(axis=1)
        rest = tau.copy()
        rest[rows, own] = base
        if not (base > 0.0).all() or (rest != base[:, None]).any():
            raise ValueError(
                "The precisions of the sites of a row differ in more than one class: use DensePrior for such sites."
            )
        self.order = np.argsort(own, kind="stable")
        self.bounds = np.searchsorted(own[self.order], np.arange(C + 1))
        self.half_logdet = 0.5 * float(np.log(tau).sum()) + C * self._invert(1.0 / base)
        scale = np.sqrt(1.0 / base - 1.0 / tau[rows, own])
        self.half_logdet += sum(self._fill_Y(c, scale) for c in range(C))
        self.find_mean(sites, steps=2 if K.dtype == np.float32 else 1)

    def _invert(self, noise: Array) -> float:
        """Fill T and A⁻¹, and return ½ log|A|."""
        np.copyto(self.inverse, self.K)
        diagonal = self.inverse.ravel()[:: len(noise) + 1]
        np.add(diagonal, noise, out=diagonal, casting="same_kind")
        cholesky(self.inverse)
        half_logdet = float(np.log(diagonal).sum(dtype=float))
        lapack_of("trtri", self.K)(self.inverse.T, lower=0, overwrite_c=1)
        mirror(self.inverse, into=self.K)
        self._root_diagonal = diagonal.copy()
        lapack_of("lauum", self.K)(self.inverse.T, lower=0, overwrite_c=1)
        mirror(self.inverse)
        self._diagonal = diagonal.copy()
        return half_logdet

    def _fill_Y(self, c: int, scale: Array) -> float:
        """Fill Y_c, and return ½ log|M_c|."""
        rows, Y = self.order[self.bounds[c] : self.bounds[c + 1]], self.of_class(c)
        if not len(rows):
            return 0.0
        np.take(self.inverse, rows, axis=0, out=Y)
        own = scale[rows].astype(Y.dtype)
        Y *= own[:, None]
        M = np.take(Y, rows, axis=1)
        M *= -own
        M.ravel()[:: len(M) + 1] += 1.0
        cholesky(M)
        blas_of("trsm", Y)(1.0, M.T, Y.T, side=1, lower=0, overwrite_b=1)  # Yᵀ L⁻ᵀ
        return float(np.log(M.diagonal()).sum(dtype=float))

    def of_class(self, c: int) -> Array:
        """Return Y_c."""
        return self.Y[self.bounds[c] : self.bounds[c + 1]]

    def multiply_K(self, v: Array) -> Array:
        """Return K v."""
        return multiply_all(self.K, v)

    def multiply_R(self, v: Array) -> Array:
        """Return R_c v_c for each column of v."""
        # The lower triangle and the diagonal may hold an adjoint.
        self.inverse.ravel()[:: len(self.inverse) + 1] = self._diagonal
        v, gemv = np.asfortranarray(v, dtype=self.Y.dtype), blas_of("gemv", self.Y)
        out: Array = blas_of("symm", self.Y)(1.0, self.inverse.T, v, lower=1)
        for c in range(v.shape[1]):
            Y = self.of_class(c)
            if len(Y):
                out[:, c] += gemv(1.0, Y.T, gemv(1.0, Y.T, v[:, c], trans=1))
        return np.asarray(out, dtype=float)

    def reduce(self, v: Array) -> Array:
        """Return (I + W K)⁻¹ v as R W⁻¹ v, which rounds less than v - R K v and is possible as no site is flat."""
        return self.multiply_R(v / self.tau)

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of B⁻¹, [R_c]_ii / tau."""
        parts = [np.einsum("ij,ij->j", Y, Y) for Y in map(self.of_class, range(self.tau.shape[1]))]
        out: Array = (self._diagonal[:, None] + np.stack(parts, axis=1)) / self.tau
        return out

    def var(self) -> Array:
        """Return the marginal variances, shape (n, C)."""
        return np.maximum((1.0 - self.inverse_diagonal()) / self.tau, 1e-12)

    def left_out(self, copies: Array) -> tuple[Array, Array]:
        """Return mean and covariance of each data point's latent values without one copy of its site."""
        mean, var = cavity(self, copies[:, None])
        return mean, var[:, :, None] * np.eye(var.shape[1])

    def twice_adjoint(self, left: Array, right: Array) -> Array:
        """Return Σ left rightᵀ - Σ_c R_c, which is symmetric, in the lower triangle of the buffer of A⁻¹."""
        G = self.inverse
        blas_of("syrk", G)(-1.0, self.Y.T, beta=-float(self.tau.shape[1]), c=G.T, lower=0, overwrite_c=1)
        blas_of("syr2k", G)(0.5, left.T, right.T, beta=1.0, c=G.T, trans=1, lower=0, overwrite_c=1)
        return G

    def roots(self) -> dict[str, Any]:
        """Return the fields of a `GaussianProcess`, in the memory of these factors.

        T with TᵀT = A⁻¹, lower triangular, is common to all classes, and Y_c belongs to one.
        """
        mirror(self.K.T, into=self.inverse.T)
        self.inverse.ravel()[:: len(self.inverse) + 1] = self._root_diagonal
        Y = tuple(self.of_class(c) for c in range(self.tau.shape[1]))
        return {"root": drop_tiny(self.inverse), "factors": Y}


def multiply_all(K: Array, V: Array) -> Array:
    """Return K V for the symmetric K whose lower triangle is given, with sums in double if that is single."""
    if K.dtype == np.float64:
        out: Array = blas_of("symm", K)(1.0, K.T, np.asfortranarray(V), lower=0)
        return out
    out = np.zeros(V.shape)
    for rows in row_tiles(len(K)):
        tile = K[rows, : rows.stop].astype(float)
        tile[:, rows] = np.tril(tile[:, rows])
        out[rows] += matmul(tile, np.ascontiguousarray(V[: rows.stop]))
        tile[:, rows] = np.tril(tile[:, rows], -1)
        out[: rows.stop] += matmul(np.ascontiguousarray(tile.T), np.ascontiguousarray(V[rows]))
    return out
