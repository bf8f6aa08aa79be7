"""Importance sampling of C latent values a datum, for the evidence of joint models and its check.

It is the algebra of `posteriors.target` in n C dimensions: with K = A Aᵀ over all functions, P = I + Aᵀ W A,
q = N(m, A P⁻¹ Aᵀ), m = A P⁻¹ Aᵀ nu, and for f = m + d, alpha = nu - W m,

    log w = Σ_i l_i(m_i + d_i) - alphaᵀ d + ½ dᵀ W d - ½ alphaᵀ m - ½ log|P|.

W is diag(a), less a aᵀ / Σa at each datum where functions are tied (`gpclass.priors.coupled`). Rows of
draws are n C values, data first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from gpclass.core.linalg import matmul_transposed, pivoted_root, row_tiles
from gpclass.core.protocols import Array, Sites

MOST_VALUES = 4000  # latent values, n C: the time grows as their cube


@dataclass(frozen=True, slots=True, eq=False)
class JointTarget:
    """The posterior of all latent functions beside a Gaussian q; names as in `posteriors.target.Target`."""

    likelihood: Any
    labels: Array  # label weights, (n, C)
    a: Array
    tied: bool
    alpha: Array  # flat, as are rows of draws
    mean: Array
    root: Array
    log_mass: float

    @property
    def rank(self) -> int:
        """Return the number of independent directions of f."""
        return int(self.root.shape[1])

    def shifts(self, Z: Array) -> Array:
        """Return d = root z for each row z of Z."""
        return matmul_transposed(Z, self.root)

    def values(self, D: Array) -> Array:
        """Return f = mean + d for each row d of D, shape (rows, n, C)."""
        out: Array = (self.mean + D).reshape(len(D), *self.labels.shape)
        return out

    def remainder(self, D: Array) -> Array:
        """Return log w - log_mass for each row d of D."""
        out = np.empty(len(D))
        for rows in row_tiles(len(D), 4 * D.shape[1]):
            log_p = np.asarray(self.likelihood.log_prob(self.labels, self.values(D[rows]))).sum(axis=1)
            shifts = D[rows].reshape(-1, *self.labels.shape)
            square = np.einsum("sic,ic->s", shifts * shifts, self.a)
            if self.tied:
                along = np.einsum("sic,ic->si", shifts, self.a / np.sqrt(self.a.sum(axis=1, keepdims=True)))
                square -= np.einsum("si,si->s", along, along)
            out[rows] = log_p - D[rows] @ self.alpha + 0.5 * square
        return out

    def classes(self, D: Array) -> Array:
        """Return p(class|f) at all data for each row d of D, shape (rows, n C)."""
        p: Array = np.exp(self.likelihood.log_classes(self.values(D)))
        return p.reshape(len(D), -1)


def make_joint_target(
    likelihood: Any, Ks: Sequence[Array], labels: Array, sites: Sites, *, tied: bool
) -> JointTarget:
    """Return the posterior beside its approximation, from prior covariances and sites on the latent values.

    Parameters
    ----------
    likelihood : Softmax or MultiProbit
    Ks : sequence of arrays of shape (n, n)
        One for all functions, or one for each.
    labels : array of shape (n, C)
        Label weights.
    sites : Sites
        nu and a of shape (n, C).
    tied : bool
        Whether W = diag(a) - a aᵀ / Σa at each datum, or diag(a).

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.evidence.joint import make_joint_target
    >>> from gpclass.likelihoods import Softmax
    >>> from gpclass.core.protocols import Sites
    >>> flat = Sites(np.zeros((1, 3)), np.zeros((1, 3)))
    >>> target = make_joint_target(Softmax(), [np.eye(1)], np.eye(1, 3), flat, tied=False)
    >>> target.rank, target.classes(np.zeros((1, 3))).round(3)
    (3, array([[0.333, 0.333, 0.333]]))
    """
    check_size(labels)
    n, n_classes = labels.shape
    roots = [pivoted_root(K)[0] for K in Ks]
    A = _prior_root([roots[c % len(roots)] for c in range(n_classes)], n)
    WA = sites.tau.ravel()[:, None] * A
    if tied:
        share = sites.tau / sites.tau.sum(axis=1, keepdims=True)
        sums = WA.reshape(n, n_classes, -1).sum(axis=1)
        WA -= (share[:, :, None] * sums[:, None, :]).reshape(WA.shape)
    P = A.T @ WA
    P[np.diag_indices_from(P)] += 1.0
    L = np.linalg.cholesky(P)
    root = np.ascontiguousarray(solve_triangular(L, A.T, lower=True, check_finite=False).T)
    nu = sites.nu.ravel()
    mean = root @ (root.T @ nu)
    m = mean.reshape(n, n_classes)
    Wm = sites.tau * m
    if tied:
        Wm -= share * Wm.sum(axis=1, keepdims=True)
    alpha = nu - Wm.ravel()
    log_mass = -0.5 * float(alpha @ mean) - float(np.log(L.diagonal()).sum())
    return JointTarget(likelihood, labels, sites.tau, tied, alpha, mean, root, log_mass)


def check_size(labels: Array) -> None:
    """Raise if there are too many latent values for importance sampling."""
    n, n_classes = labels.shape
    if n * n_classes > MOST_VALUES:
        raise ValueError(
            f"{n} rows of {n_classes} classes have {n * n_classes} latent values, too many for importance "
            f"sampling (at most {MOST_VALUES}): check a model of fewer rows."
        )


def _prior_root(roots: list[Array], n: int) -> Array:
    """Return A for all functions, rows of data first: function c has every C-th row from the c-th on."""
    n_classes, ends = len(roots), np.cumsum([0, *(root.shape[1] for root in roots)])
    A = np.zeros((n * n_classes, int(ends[-1])))
    for c, root in enumerate(roots):
        A[c::n_classes, ends[c] : ends[c + 1]] = root
    return A
