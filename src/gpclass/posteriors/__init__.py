"""Posteriors: latent processes over inputs, for all methods."""

from gpclass.posteriors.gaussian import GaussianProcess
from gpclass.posteriors.mixture import Component, MixtureProcess

__all__ = ["Component", "GaussianProcess", "MixtureProcess"]
