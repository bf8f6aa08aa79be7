"""Posteriors: latent processes over inputs, for all methods."""

from gpclass.posteriors.process import GaussianProcess

__all__ = ["GaussianProcess"]
