"""The method ``inference="mcmc"``: the settings of Markov chain Monte Carlo for a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpclass.core.checks import check_integers
from gpclass.core.protocols import Inference
from gpclass.core.registry import Method
from gpclass.inference import EP
from gpclass.mcmc.hamiltonian import HMC
from gpclass.mcmc.hyper import PseudoMarginal
from gpclass.mcmc.sampler import Sampler


@dataclass(frozen=True, slots=True)
class MCMC(Method):
    """Settings of Markov chain Monte Carlo.

    Parameters
    ----------
    sampler : HMC, EllipticalSlice or BlockMetropolis
        For the latent function, at hyperparameters that are fixed or learned.
    n_chains, n_draws, n_warmup, thin : int
        Chains; draws kept of each; steps before the first; steps from one to the next (twice as many
        where theta is sampled).
    learn_by : settings record
        The method whose evidence is maximised to learn the hyperparameters, before the sampling.
    hyper_sampler : PseudoMarginal
        For theta and f together, with ``hyperparameters="sample"``.
    n_thetas : int
        Largest number of draws of theta that predictions average over.
    annealing : int or None
        Chains of annealed importance sampling for the log evidence; with None it is not computed, because
        it costs more than the posterior.

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

    sampler: Sampler[Any] = HMC()  # noqa: RUF009
    n_chains: int = 4
    n_draws: int = 1000
    n_warmup: int = 500
    thin: int = 1
    learn_by: Inference = EP()  # noqa: RUF009
    hyper_sampler: PseudoMarginal = PseudoMarginal()  # noqa: RUF009
    n_thetas: int = 200
    annealing: int | None = None

    def __post_init__(self) -> None:
        check_integers(**self.counts, n_thetas=self.n_thetas)
        if self.annealing is not None:
            check_integers(annealing=self.annealing)

    @property
    def counts(self) -> dict[str, int]:
        """The numbers that `sample` takes."""
        return {name: getattr(self, name) for name in ("n_chains", "n_draws", "n_warmup", "thin")}
