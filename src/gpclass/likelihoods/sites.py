"""How the derivatives of a likelihood become Gaussian sites: elementwise, or coupled over the classes."""

from __future__ import annotations

import numpy as np

from gpclass.core.protocols import Array, CoupledSites, Sites


class ElementwiseSites:
    """One latent value per data point: tau = -l'', set to zero where l is not concave."""

    __slots__ = ()
    exact_ascent = True

    def local_sites(self, mean: Array, slope: Array, curvature: Array) -> Sites:
        """Return the sites that have this slope and curvature at the mean."""
        tau = np.maximum(-curvature, 0.0)
        return Sites(nu=slope + tau * mean, tau=tau)

    def negative_curvature(self, curvature: Array) -> Array | None:
        """Return the positive part of l''; None if it is nowhere positive."""
        return np.maximum(curvature, 0.0) if (curvature > 0.0).any() else None

    def ascent_sites(self, y: Array, residual: Array, slope: Array, curvature: Array) -> Sites:
        """Return the sites of a Newton step of E[l] in the means."""
        return Sites(nu=residual, tau=np.maximum(-curvature, 0.0))


class CoupledClasses:
    """One latent value per class: the Hessian is diag(a) - a aᵀ / Σ a with a = w p."""

    __slots__ = ()
    exact_ascent = False

    def local_sites(self, mean: Array, slope: Array, curvature: Array) -> CoupledSites:
        """Return the sites that have this slope at the mean, ``curvature`` being a."""
        sites = CoupledSites(nu=slope, a=curvature)
        return CoupledSites(nu=slope + sites.times(mean), a=curvature)

    def negative_curvature(self, curvature: Array) -> None:
        """Return None: softmax is log-concave."""
        return

    def ascent_sites(self, y: Array, residual: Array, slope: Array, curvature: Array) -> CoupledSites:
        """Return the sites of a step of E[l] with E[p] = (y - slope) / w in the place of p, which is uphill."""
        w = y.sum(axis=1, keepdims=True)
        return CoupledSites(nu=residual, a=np.maximum(y - slope, 1e-12 * w))
