"""The evidence by annealed importance sampling (Neal 2001) from q to the posterior.

The distributions on the way are  p_b(f) ∝ q(f) exp(b r(f)),  r(f) = log w(f),  b from 0 to 1: the sites are
traded for the likelihood bit by bit. q is Gaussian, so elliptical slice sampling (Murray, Adams & MacKay
2010) leaves each p_b exactly invariant and has no step size. Ellipses of q alternate with ellipses of the
prior, which reach the tails that q has not. A chain begins with a draw from q; its weight,
exp Σ (b' - b) r(f at b), has the evidence as its mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.evidence.proposal import Target, make_target
from gpclass.evidence.weights import EvidenceEstimate, summarise
from gpclass.linalg import matmul_transposed
from gpclass.protocols import Array, Sites


def annealed_evidence(
    likelihood: Any,
    K: Array,
    y: Array,
    sites: Sites,
    *,
    weight: Array | None = None,
    n_chains: int = 100,
    n_steps: int = 100,
    rng: np.random.Generator | int | None = None,
) -> EvidenceEstimate:
    """Return the evidence by annealed importance sampling, one weight a chain.

    Costs n_steps times as much a draw as `importance_evidence`, and works where that one's khat is too large.

    Parameters
    ----------
    likelihood, K, y, sites, weight
        As for `importance_evidence`.
    n_chains : int
        Independent chains; the standard error falls with their square root.
    n_steps : int
        Distributions on the way; more of them make the weights more even.
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
    if n_chains < 2 or n_steps < 1:
        raise ValueError(
            f"n_chains={n_chains} and n_steps={n_steps} are not possible: give at least two chains and "
            "one step."
        )
    target = make_target(likelihood, K, y, sites, weight)
    rng = np.random.default_rng(rng)
    D = target.shifts(rng.standard_normal((n_chains, target.rank)))
    r = target.remainder(D)
    log_weights = r / n_steps
    for k in range(1, n_steps):
        D, r = slice_step(target, D, r, k / n_steps, rng, wide=k % 2 == 0)
        log_weights += r / n_steps
    return summarise(log_weights[None], target.log_mass)[0]


def slice_step(
    target: Target, D: Array, r: Array, b: float, rng: np.random.Generator, *, wide: bool
) -> tuple[Array, Array]:
    """Move every chain, a row of D, once under q(f) exp(b r(f)); the ellipses are the prior's if ``wide``."""
    root, centre = (target.prior_root, -target.mean) if wide else (target.root, np.zeros_like(target.mean))

    def log_factor(D: Array, r: Array) -> Array:
        """Return the log density less that of the Gaussian whose ellipses are used."""
        return b * r + target.sites(D) if wide else b * r

    start, other = D - centre, matmul_transposed(rng.standard_normal((len(D), target.rank)), root)
    height = log_factor(D, r) - rng.standard_exponential(len(D))
    angle = rng.uniform(0.0, 2.0 * np.pi, size=len(D))
    low, high = angle - 2.0 * np.pi, angle.copy()
    moved, value = D.copy(), r.copy()
    open_ = np.arange(len(D))
    while open_.size:
        a = angle[open_, None]
        proposed = centre + start[open_] * np.cos(a) + other[open_] * np.sin(a)
        at = target.remainder(proposed)
        # An angle of zero is the chain's own point: if it came to that, rounding must not keep it out.
        inside = (log_factor(proposed, at) >= height[open_]) | (np.abs(angle[open_]) < 1e-12)
        moved[open_[inside]], value[open_[inside]] = proposed[inside], at[inside]
        open_ = open_[~inside]
        below = angle[open_] < 0.0
        low[open_[below]], high[open_[~below]] = angle[open_[below]], angle[open_[~below]]
        angle[open_] = rng.uniform(low[open_], high[open_])
    return moved, value
