"""Likelihoods: p(y|f) of one latent value a datum, its derivatives and its averages under Gaussians.

``Logit`` and ``Probit`` are for class labels y = -1 / +1; ``Gaussian`` is the conjugate anchor against which
inference is checked. All are stateless records whose functions are elementwise in the data.
"""

from __future__ import annotations

from gpclass.likelihoods.gaussian import Gaussian
from gpclass.likelihoods.logit import Logit
from gpclass.likelihoods.probit import Probit

__all__ = ["Gaussian", "Logit", "Probit"]
