"""Posteriors: latent processes over inputs, for all methods."""

from gpclass.posteriors.mixture import Component, MixtureProcess
from gpclass.posteriors.process import GaussianProcess

__all__ = ["Component", "GaussianProcess", "MixtureProcess"]
