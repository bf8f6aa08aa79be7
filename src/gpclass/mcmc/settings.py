"""How a classifier samples: the record that stands for ``inference="mcmc"``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.protocols import Inference
from gpclass.core.registry import stored
from gpclass.inference import EP
from gpclass.mcmc.chains import Chains
from gpclass.mcmc.hamiltonian import HMC
from gpclass.mcmc.hyper import PseudoMarginal
from gpclass.mcmc.run import check_counts, sample
from gpclass.posteriors.target import Target


@stored
@dataclass(frozen=True, slots=True)
class MCMC:
    """Settings of Markov chain Monte Carlo.

    Parameters
    ----------
    sampler : HMC, EllipticalSlice or BlockMetropolis
        For the latent function, at hyperparameters that are fixed or learned.
    n_chains, n_draws, n_warmup, thin : int
        Chains; draws kept of each; steps before the first; steps from one to the next (twice as many
        where theta is sampled).
    learn_by : settings record
        The method whose evidence hyperparameters are learned by, before the sampling.
    hyper_sampler : PseudoMarginal or JointWhitened
        For theta and f together, with ``hyperparameters="sample"``.
    n_thetas : int
        Draws of theta at most that predictions average over.
    annealing : int or None
        Chains of annealed importance sampling for the log evidence; None leaves it out, as it costs
        more than the posterior.

    Examples
    --------
    >>> from gpclass import GaussianProcessClassifier
    >>> from gpclass.datasets import interval
    >>> from gpclass.kernels import RBF
    >>> from gpclass.mcmc import MCMC, EllipticalSlice
    >>> X, y, X_test, y_test = interval()
    >>> inference = MCMC(EllipticalSlice(), n_draws=1000)
    >>> clf = GaussianProcessClassifier(9.0 * RBF(10.0), inference=inference, optimizer=None, random_state=0)
    >>> clf.fit(X, y).score(X_test, y_test) > 0.9
    True
    >>> clf.chains_.f.shape
    (4, 1000, 20)
    """

    sampler: Any = HMC()  # noqa: RUF009
    n_chains: int = 4
    n_draws: int = 1000
    n_warmup: int = 500
    thin: int = 1
    learn_by: Inference = EP()  # noqa: RUF009
    hyper_sampler: Any = PseudoMarginal()  # noqa: RUF009
    n_thetas: int = 200
    annealing: int | None = None

    def __post_init__(self) -> None:
        check_counts(
            n_chains=self.n_chains,
            n_draws=self.n_draws,
            n_warmup=self.n_warmup,
            thin=self.thin,
            n_thetas=self.n_thetas,
        )
        if self.annealing is not None:
            check_counts(annealing=self.annealing)

    def run(
        self, target: Target, rng: np.random.Generator, report: Callable[[str], None] | None = None
    ) -> Chains:
        """Draw the latent function from a target, at one theta."""
        return sample(
            target,
            self.sampler,
            n_chains=self.n_chains,
            n_draws=self.n_draws,
            n_warmup=self.n_warmup,
            thin=self.thin,
            rng=rng,
            report=report,
        )
