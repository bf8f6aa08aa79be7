"""Priors: the covariance of the latent values at the data, at one theta."""

from gpclass.priors.base import NotPositiveError, Prior
from gpclass.priors.dense import DensePrior

__all__ = ["DensePrior", "NotPositiveError", "Prior"]
