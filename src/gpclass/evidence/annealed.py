"""The evidence by annealed importance sampling (Neal 2001) from q to the posterior.

The intermediate distributions are  p_b(f) ∝ q(f) exp(b r(f)),  r(f) = log w(f),  b from 0 to 1: they replace
the sites by the likelihood gradually. q is Gaussian, so elliptical slice sampling (Murray, Adams & MacKay
2010) leaves each p_b exactly invariant and has no step size. Ellipses of q alternate with ellipses of the
prior, which reach tails that q does not have. A chain starts with a draw from q; the expectation of its
weight, exp Σ (b' - b) r(f at b), is the evidence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.core.checks import check_integers
from gpclass.core.protocols import AnySites, Array
from gpclass.evidence.importance import EvidenceEstimate, summarise
from gpclass.mcmc.elliptical import slice_step
from gpclass.posteriors.target import make_target


def annealed_evidence(
    likelihood: Any,
    K: Array,
    y: Array,
    sites: AnySites,
    *,
    weight: Array | None = None,
    n_chains: int = 100,
    n_steps: int = 100,
    rng: np.random.Generator | int | None = None,
) -> EvidenceEstimate:
    """Return the evidence by annealed importance sampling, with one weight per chain.

    A draw costs n_steps times as much as in `importance_evidence`; it works where khat of that is too large.

    Parameters
    ----------
    likelihood, K, y, sites, weight
        As for `importance_evidence`.
    n_chains : int
        Independent chains; the standard error decreases with their square root.
    n_steps : int
        Intermediate distributions; more of them make the weights more even.
    rng : numpy Generator or seed

    Returns
    -------
    EvidenceEstimate
        ``n_samples`` is the number of chains.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.inference import Laplace
    >>> from gpclass.kernels import RBF
    >>> from gpclass.likelihoods import Probit
    >>> from gpclass.priors import DensePrior
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> kernel = 4.0 * RBF(1.0)
    >>> laplace = Laplace()(DensePrior(kernel, X), Probit(), y)
    >>> round(annealed_evidence(Probit(), kernel(X), y, laplace.sites, rng=0).value, 1)
    -1.9
    """
    check_integers(2, n_chains=n_chains)
    check_integers(n_steps=n_steps)
    target = make_target(likelihood, K, y, sites, weight)
    rng = np.random.default_rng(rng)
    D = target.shifts(target.normals(n_chains, rng))
    r = target.remainder(D)
    log_weights = r / n_steps
    for k in range(1, n_steps):
        D, r, _ = slice_step(target, D, r, k / n_steps, rng, wide=k % 2 == 0)
        log_weights += r / n_steps
    return summarise(log_weights[None], target.log_mass)[0]
