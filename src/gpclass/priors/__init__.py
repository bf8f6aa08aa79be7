"""Priors: the covariance of the latent values at the data, at one theta."""

from gpclass.priors.dense import DensePrior, NotPositiveError

__all__ = ["DensePrior", "NotPositiveError"]
