"""Dirichlet classification: Gaussian sites in closed form (Milios et al. 2018, section 4).

If the class probabilities of a row had a Dirichlet distribution with the parameters
alpha_c = eps + [y = c], they would be independent gamma variables divided by their sum. A log-normal variable with the
mean and variance of the gamma variable (their eq. 5) makes each class a regression with Gaussian noise,

    s = log(1 + 1 / alpha),     t = log(alpha) - s / 2,     N(t | f, s),

so no iteration is needed. Noise and target have two values each: (t1, s1) in the class of the row, (t0, s0)
in all others. For a row of weight w, a label weight L_c counts as L_c copies of the first and w - L_c of the second:

    tau_c = L_c / s1 + (w - L_c) / s0,     nu_c = L_c (t1 - m_c) / s1 + (w - L_c) (t0 - m_c) / s0,

with the prior mean m_c of function c the mean of its targets, weighted by their precisions. The evidence is the density
of the targets at f = m, times the integral of the sites: log p(t) = log N(t | m, s) + ½ nuᵀ mean - ½ log|B|.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.checks import check_integers, check_numbers
from gpclass.core.protocols import Adjoint, Array, Info, Result, Sites
from gpclass.core.registry import Method
from gpclass.priors.base import Prior

DEFAULT = 0.01  # eps if it is not chosen: the middle of the values that are tried


@dataclass(frozen=True, slots=True)
class Dirichlet(Method):
    """Dirichlet classification: regression on targets that are computed from the labels.

    Parameters
    ----------
    eps : float or None
        Parameter of every class in the Dirichlet distribution of each row, without its label. The smaller it is, the
        farther apart are the targets, and the more certain are the probabilities. With None the classifier chooses it
        by the leave-one-out log score; if called directly, the method then uses 0.01.
    rows : int or None
        Hyperparameters and ``eps`` are learned from at most this many rows, chosen at random, before all rows are
        used to predict. None learns them from all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.likelihoods import Softmax
    >>> from gpclass.priors import DensePrior
    >>> prior = DensePrior(4.0 * RBF(1.0), np.array([[0.0], [1.0], [3.0]]), 2, shared=True)
    >>> result = Dirichlet(eps=0.01)(prior, Softmax(), np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    >>> (result.offset + result.conditioned.mean).round(2)
    array([[-0.34, -4.82],
           [-0.45, -4.68],
           [-3.58, -0.6 ]])
    """

    eps: float | None = None
    rows: int | None = 1000

    comparable = False

    def __post_init__(self) -> None:
        if self.eps is not None:
            check_numbers("(0, inf)", eps=self.eps)
        if self.rows is not None:
            check_integers(2, rows=self.rows)

    @property
    def targets(self) -> Targets:
        """The targets that eps determines."""
        return Targets.at(DEFAULT if self.eps is None else self.eps)

    def __call__(
        self, prior: Prior, likelihood: Any, y: Array, *, weight: Array | None = None, init: Any = None
    ) -> Result:
        """Condition on the sites; the evidence is the density of the transformed targets, not of the labels."""
        y = np.asarray(y, dtype=float)
        if y.ndim != 2:
            raise ValueError(
                f"Dirichlet classification received labels of shape {y.shape}, expected label weights of shape (n, C)."
            )
        labels = y if weight is None else y * weight[:, None]
        t, counts = self.targets, labels.sum(axis=0)
        offset = t.offset(counts)
        sites = t.sites(labels, offset)
        q = prior.condition(sites)
        evidence = t.log_density(counts, offset) + 0.5 * float(np.vdot(sites.nu, q.mean)) - q.half_logdet
        adjoint, info = Adjoint(alpha=q.alpha, conditioned=q), Info(True, 1, 0.0)
        return Result(sites, q, evidence, lambda: adjoint, info, lambda: np.zeros(0), offset=offset)


@dataclass(frozen=True, slots=True)
class Targets:
    """The target of a row and its precision, in the row's own class and in the others."""

    own: float
    other: float
    high: float  # precision in the own class, 1 / s1
    low: float  # precision in the other classes, 1 / s0

    @classmethod
    def at(cls, eps: float) -> Targets:
        """Return the targets for one value of eps."""
        s0, s1 = np.log1p(1.0 / eps), np.log1p(1.0 / (1.0 + eps))
        values = np.log1p(eps) - 0.5 * s1, np.log(eps) - 0.5 * s0, 1.0 / s1, 1.0 / s0
        return cls(*map(float, values))

    def sites(self, labels: Array, offset: Array | float = 0.0) -> Sites:
        """Return the sites of label weights (n, C), relative to the prior means."""
        rest = labels.sum(axis=-1, keepdims=True) - labels
        tau = labels * self.high + rest * self.low
        linear = labels * (self.own * self.high) + rest * (self.other * self.low)
        return Sites(linear - tau * offset, tau)

    def offset(self, counts: Array) -> Array:
        """Return the prior means m_c for the weights of all rows of each class."""
        together = self.sites(counts)
        return together.nu / together.tau

    def log_density(self, counts: Array, offset: Array) -> float:
        """Return the log density of all targets for latent functions equal to the constants ``offset``."""
        own = np.log(self.high / (2.0 * np.pi)) - self.high * (self.own - offset) ** 2
        other = np.log(self.low / (2.0 * np.pi)) - self.low * (self.other - offset) ** 2
        return 0.5 * float((counts * own + (counts.sum() - counts) * other).sum())
