"""Priors: the covariance of the latent values at the data, at one theta."""

from gpclass.priors.base import NotPositiveError, Prior
from gpclass.priors.dense import DensePrior
from gpclass.priors.inducing import InducingPrior
from gpclass.priors.margins import MarginPrior

__all__ = ["DensePrior", "InducingPrior", "MarginPrior", "NotPositiveError", "Prior"]
