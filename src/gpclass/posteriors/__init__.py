"""Posteriors: latent processes over inputs, whichever method made them."""

from gpclass.posteriors.classes import ClassProcesses, IndependentProcesses
from gpclass.posteriors.gaussian import GaussianProcess
from gpclass.posteriors.mixture import Component, MixtureProcess
from gpclass.posteriors.shared import SharedProcesses

__all__ = [
    "ClassProcesses",
    "Component",
    "GaussianProcess",
    "IndependentProcesses",
    "MixtureProcess",
    "SharedProcesses",
]
