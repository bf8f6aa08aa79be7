"""Likelihoods: p(y|f), its derivatives and its averages under Gaussians.

``Logit`` and ``Probit`` are for class labels y = -1 / +1 and have one latent value a datum; ``Softmax`` and
``MultiProbit`` have one a class, and labels that are rows of weights, one a class. ``Gaussian`` is the
conjugate anchor against which inference is checked. All are stateless records, and no datum's result
depends on another datum.
"""

from __future__ import annotations

from gpclass.likelihoods.gaussian import Gaussian
from gpclass.likelihoods.logit import Logit
from gpclass.likelihoods.multiprobit import MultiProbit
from gpclass.likelihoods.probit import Probit
from gpclass.likelihoods.softmax import Softmax

__all__ = ["Gaussian", "Logit", "MultiProbit", "Probit", "Softmax"]
