"""What the inducing inputs miss: the exact posterior of neighbourhoods, given what q says of all other rows.

Given u the latent values of two rows are correlated, with the residual covariance k(x, z) - a(x)ᵀ a(z), which a model
with inducing inputs sets to zero. The neighbourhood N of a row are the rows whose residual covariance with it is
largest. Without the sites of N, with V = A P⁻¹ Aᵀ for the features A of N and sites of precision h and linear term nu,

    cov_- = V + V h^½ (I - h^½ V h^½)⁻¹ h^½ V,     m_- = m - cov_- (nu - h m),

and the prior of f on N given all other rows is N(m_-, cov_- + K - A Aᵀ), residual covariances included (Snelson &
Ghahramani 2007 have it as the partially independent conditional). The method itself then gives the posterior, and
its leave-one-out probability of the row is compared with that of the model. If N are all rows, it is the model without
inducing inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_solve
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.linalg import matmul_transposed, mirrored
from gpclass.core.protocols import Array, Likelihood, Sites
from gpclass.data.blocks import concatenate
from gpclass.data.rows import Rows
from gpclass.inference.variational import response
from gpclass.kernels import matrix
from gpclass.priors import DensePrior
from gpclass.sparse.loo import Marginals, counts
from gpclass.sparse.sums import features

TILE = 1 << 20
ROUNDING = 1e-10  # of the share of the variance that is left without the sites of a neighbourhood


# --------------------------------------------------------------------- the rows around some rows


@dataclass(slots=True, eq=False)
class Nearest:
    """For each centre the rows found so far, and their scores."""

    size: int
    score: list[Array]
    rows: list[Rows]

    def add(self, other: Nearest) -> None:
        """Keep the best rows of both."""
        for c, (score, rows) in enumerate(zip(other.score, other.rows, strict=True)):
            if not len(self.score[c]):
                self.score[c], self.rows[c] = score, rows
                continue
            score = np.concatenate([self.score[c], score])
            best = np.argsort(-score, kind="stable")[: self.size]
            self.score[c], self.rows[c] = score[best], concatenate([self.rows[c], rows]).take(best)


@dataclass(frozen=True, slots=True, eq=False)
class NearestStep:
    """The pass that finds the rows with the largest residual covariance with each centre, itself first."""

    kernel: Any
    Z: Array
    T: Array
    centres: Array
    size: int

    def zero(self) -> Nearest:
        """Return the result of no rows."""
        nothing = Rows(np.empty((0, self.centres.shape[1])), np.empty(0))
        return Nearest(self.size, [np.empty(0)] * len(self.centres), [nothing] * len(self.centres))

    def __call__(self, X: Array, y: Array, weight: Array | None) -> Nearest:
        """Return the best rows of a block."""
        total, block = self.zero(), Rows(X, y, weight)
        A_c = features(self.kernel, self.Z, self.T, self.centres)[0]
        step = max(64, TILE // max(len(self.Z), len(self.centres)))
        for start in range(0, len(X), step):
            part = block.take(slice(start, min(start + step, len(X))))
            A = features(self.kernel, self.Z, self.T, part.X)[0]
            R = np.abs(matrix(self.kernel, part.X, self.centres) - matmul_transposed(A, A_c))
            found = self.zero()
            for c, centre in enumerate(self.centres):
                score = np.where((centre == part.X).all(axis=1), np.inf, R[:, c])
                best = np.argsort(-score, kind="stable")[: self.size]
                found.score[c], found.rows[c] = score[best], part.take(best)
            total.add(found)
        return total


# ------------------------------------------------------------------------- the exact posterior


class GivenCovariance(Kernel):
    """A kernel over row numbers whose covariance matrix is given."""

    def __init__(self, K: Array) -> None:
        self.K = K

    def __call__(self, X: Array, Y: Array | None = None, eval_gradient: bool = False) -> Array:
        """Return the covariances of rows X and Y."""
        i = np.ravel(X).astype(int)
        j = i if Y is None else np.ravel(Y).astype(int)
        return np.asarray(self.K[np.ix_(i, j)])

    def diag(self, X: Array) -> Array:
        """Return the variances of rows X."""
        return np.asarray(self.K.diagonal()[np.ravel(X).astype(int)])

    def is_stationary(self) -> bool:
        """Return False."""
        return False


@dataclass(frozen=True, slots=True, eq=False)
class Shifted:
    """A likelihood of f = shift + g as one of g: methods have priors of mean zero.

    Labels are columns of those of the likelihood and of shifts, as `shifted_labels` makes them, so that a method may
    ask for some of the rows.
    """

    base: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.base, name)

    def derivatives(self, y: Array, f: Array) -> Any:
        """Return l, l' and l''."""
        labels, shift = _apart(y)
        return self.base.derivatives(labels, f + shift)

    def third(self, y: Array, f: Array, var: Array) -> Any:
        """Return l''' contracted with the variances."""
        labels, shift = _apart(y)
        return self.base.third(labels, f + shift, var)

    def expected(self, y: Array, mean: Array, var: Array) -> Any:
        """Return E[l], E[l'], E[l'']."""
        labels, shift = _apart(y)
        return self.base.expected(labels, mean + shift, var)

    def tilted(self, y: Array, mean: Array, var: Array, power: Any = 1.0) -> Any:
        """Return mass and moments of the tilted distribution."""
        labels, shift = _apart(y)
        return self.base.tilted(labels, mean + shift, var, power)

    def ascent_sites(self, y: Array, residual: Array, slope: Array, curvature: Array) -> Any:
        """Return the sites of an uphill step of E[l] in the means."""
        return self.base.ascent_sites(_apart(y)[0], residual, slope, curvature)


def shifted_labels(y: Array, shift: Array) -> Array:
    """Return labels (n,) or (n, C) with the shifts of their latent values beside them."""
    return np.column_stack([y, shift])


def _apart(y: Array) -> tuple[Array, Array]:
    """Return labels and shifts, each (n,) or (n, C)."""
    C = y.shape[1] // 2
    return (y[:, 0], y[:, 1]) if C == 1 else (y[:, :C], y[:, C:])


@dataclass(frozen=True, slots=True, eq=False)
class Cavity:
    """The prior of the latent values of some rows, (n, C) and (C, n, n), given all other rows."""

    mean: Array
    cov: Array


def without(at: Marginals, roots: tuple[Array, ...], g: Array, h: Array) -> Cavity:
    """Return q without the sites of some rows, of precision h and g = nu - h m, each (n, C)."""
    means, covs = [], []
    for c, C in enumerate(roots):
        W = matmul_transposed(at.A, C)
        V, root = matmul_transposed(W, W), np.sqrt(np.maximum(h[:, c], 0.0))
        inner = np.eye(len(V)) - root[:, None] * V * root
        inner.ravel()[:: len(V) + 1] += ROUNDING
        cov = V + (V * root) @ cho_solve((np.linalg.cholesky(inner), True), root[:, None] * V)
        covs.append(0.5 * (cov + cov.T))
        means.append(at.mean[:, c] - covs[-1] @ g[:, c])
    return Cavity(np.stack(means, axis=1), np.stack(covs))


def with_residual(cavity: Cavity, kernel: Any, X: Array, A: Array) -> Cavity:
    """Return the prior with the residual covariance of the rows."""
    residual = mirrored(DensePrior(kernel, X).K) - matmul_transposed(A, A)
    return replace(cavity, cov=cavity.cov + residual)


def exact_left_out(
    method: Any, likelihood: Likelihood, rows: Rows, prior: Cavity, sites: Sites, *, fixed: bool
) -> tuple[Array, Array]:
    """Return mean and (co)variance of each row from the others, by the method itself under this prior.

    ``sites``, relative to the prior mean, are where the method starts from, or ``fixed`` if they do not depend on q.
    """
    n, C = prior.mean.shape
    index, copies = np.arange(float(n))[:, None], np.maximum(counts(rows.y, rows.weight), 1.0)
    kernels = [GivenCovariance(cov) for cov in prior.cov]
    shape = prior.mean if np.ndim(rows.y) == 2 else prior.mean[:, 0]
    dense: Any = DensePrior(kernels, index, C if np.ndim(rows.y) == 2 else None)
    moved = []
    if fixed:
        q = dense.condition(sites)
    else:
        start = Sites(sites.nu.reshape(shape.shape), sites.tau.reshape(shape.shape))
        labels = shifted_labels(rows.y, shape)
        result = method(dense, Shifted(likelihood), labels, weight=rows.weight, init=start)
        q = result.conditioned
        moved = [response(rows.y, q.alpha, result.sites.tau)] if np.ndim(rows.y) == 2 else []
    mean, cov = q.left_out(copies, *moved)
    return mean + shape, cov
