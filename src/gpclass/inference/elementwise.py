"""Local terms with one site per latent value, for the methods that iterate variances."""

from __future__ import annotations

import numpy as np

from gpclass.core.protocols import Array, Sites


class ElementwiseTerms:
    """Sites from slopes and curvatures, elementwise; a negative precision is set to zero."""

    __slots__ = ()

    def sites(self, mean: Array, slope: Array, curvature: Array) -> Sites:
        """Return the sites of q: tau = -h'', nu = h' + tau m."""
        tau = np.maximum(-curvature, 0.0)
        return Sites(nu=slope + tau * mean, tau=tau)
