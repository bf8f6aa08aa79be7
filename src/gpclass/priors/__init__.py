"""Priors: the covariance of the latent values at the data, at one theta."""

from gpclass.priors.classes import ClassPrior
from gpclass.priors.conditioned import NotPositiveError
from gpclass.priors.dense import DensePrior
from gpclass.priors.inducing import InducingPrior
from gpclass.priors.margins import MarginPrior

__all__ = ["ClassPrior", "DensePrior", "InducingPrior", "MarginPrior", "NotPositiveError"]
