"""Markov chain Monte Carlo for the latent function: samplers, chains, diagnostics.

A sampler is a frozen record of settings with pure functions: ``init(target, f)`` returns a `State`,
``step(rng, state)`` the next state and an `Info`, ``adapt`` a better tuned state during the warm-up. `sample`
runs several chains side by side. A class derived from `Sampler` registers itself.
"""

from __future__ import annotations

from gpclass.mcmc.chains import Chains, Diagnostics
from gpclass.mcmc.elliptical import EllipticalSlice
from gpclass.mcmc.hamiltonian import HMC
from gpclass.mcmc.hyper import PseudoMarginal
from gpclass.mcmc.metropolis import BlockMetropolis
from gpclass.mcmc.run import MCMC, sample
from gpclass.mcmc.sampler import Info, Sampler, State

__all__ = [
    "HMC",
    "MCMC",
    "BlockMetropolis",
    "Chains",
    "Diagnostics",
    "EllipticalSlice",
    "Info",
    "PseudoMarginal",
    "Sampler",
    "State",
    "sample",
]
