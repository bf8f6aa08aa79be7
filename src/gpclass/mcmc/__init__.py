"""Markov chain Monte Carlo for the latent function: samplers, chains, diagnostics.

A sampler is a frozen record of settings with pure functions: ``init(target, f)`` returns a `ChainState`,
``step(rng, state)`` the next state and the rate of acceptance, ``adapt`` a better tuned state during the warm-up.
`sample` runs several chains side by side. A class derived from `Sampler` registers itself.
"""

from __future__ import annotations

from gpclass.mcmc.chains import Chains, ChainState, Diagnostics, Draw, Sampler
from gpclass.mcmc.elliptical import EllipticalSlice
from gpclass.mcmc.hamiltonian import HMC
from gpclass.mcmc.hyper import PseudoMarginal
from gpclass.mcmc.metropolis import BlockMetropolis
from gpclass.mcmc.run import MCMC, sample

__all__ = [
    "HMC",
    "MCMC",
    "BlockMetropolis",
    "ChainState",
    "Chains",
    "Diagnostics",
    "Draw",
    "EllipticalSlice",
    "PseudoMarginal",
    "Sampler",
    "sample",
]
