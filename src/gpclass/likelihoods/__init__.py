"""Likelihoods: p(y|f), its derivatives and its averages under Gaussians.

``Logit``, ``Probit``, ``CLogLog`` and ``LabelNoise`` are for class labels y = -1 / +1 and have one latent
value per data point, as has ``Ordinal`` for ordered classes; ``Softmax`` and ``MultiProbit`` have one per class, and
labels that are rows of weights, one per class. All are immutable records, and the result of one data point does not
depend on the others.
"""

from __future__ import annotations

from gpclass.likelihoods.base import BinaryLikelihood, ClassLikelihood
from gpclass.likelihoods.cloglog import CLogLog
from gpclass.likelihoods.label_noise import LabelNoise
from gpclass.likelihoods.logit import Logit
from gpclass.likelihoods.multiprobit import MultiProbit
from gpclass.likelihoods.ordinal import OrderWarning, Ordinal
from gpclass.likelihoods.probit import Probit
from gpclass.likelihoods.softmax import Softmax

__all__ = [
    "BinaryLikelihood",
    "CLogLog",
    "ClassLikelihood",
    "LabelNoise",
    "Logit",
    "MultiProbit",
    "OrderWarning",
    "Ordinal",
    "Probit",
    "Softmax",
]
