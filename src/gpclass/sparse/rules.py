"""Rules for the sites of rows, the only part in which methods with inducing inputs differ.

A rule computes sites on a_iᵀ u from the moments of rows under q(u), with precisions h and g = nu - h m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gpclass.core.protocols import Array, Likelihood, Sites
from gpclass.data.rows import Rows
from gpclass.inference.dirichlet import Targets
from gpclass.inference.variational import response
from gpclass.sparse.latent import Marginals

ROUNDING = 1e-10  # a curvature E[l''] of this size has no sign


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
    those are h if ``responding``.
    """

    likelihood: Likelihood
    responding: bool = False
    fixed: ClassVar[bool] = False  # whether the precisions do not depend on q

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
    """Dirichlet classification: its targets, relative to the prior means ``offset``; g needs these.

    W are the label weights. Most of them are zero, and with the rows sorted by class a pass costs the same for any
    number of classes.
    """

    targets: Targets
    offset: Array | None = None
    fixed: ClassVar[bool] = True

    def __call__(self, rows: Rows, at: Marginals) -> RowSites:
        """Return the sites of rows."""
        sites = self.targets.sites(rows.y, np.zeros(1) if self.offset is None else self.offset)
        g = None if self.offset is None else sites.nu - sites.tau * at.mean
        return RowSites(g, sites.tau, rows.y, rows.y)


@dataclass(frozen=True, slots=True, eq=False)
class SiteRule:
    """The sites on f of Laplace and EP with FITC's prior; the labels of rows are their positions.

    ∫ N(f | a u, r) exp(nu f - tau f² / 2) df ∝ exp(nu/c a u - tau/c (a u)² / 2), c = 1 + tau r.
    """

    sites: Sites
    residual: Array
    fixed: ClassVar[bool] = False

    def __call__(self, rows: Rows, at: Marginals) -> RowSites:
        """Return the sites of rows."""
        i = rows.y.astype(int)
        nu, tau = self.sites.nu[i, None], self.sites.tau[i, None]
        c = 1.0 + tau * self.residual[i, None]
        return RowSites(nu / c - tau / c * at.mean, tau / c, tau / c, nu / c)
