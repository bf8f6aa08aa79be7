"""Exact draws from the posterior of a few data points: propose from the prior, accept by p(y|f).

A probability is at most one, which is the bound that rejection needs; the acceptance rate is the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.checks import check_integers
from gpclass.core.protocols import Array, Inference
from gpclass.core.registry import Method
from gpclass.inference import EP
from gpclass.posteriors.target import make_target
from gpclass.sampling.accept import CHUNK, MAX_PROPOSALS, SLACK, RejectionSample, accept
from gpclass.sampling.checks import Seed


@dataclass(frozen=True, slots=True)
class Rejection(Method):
    """Settings of ``inference="rejection"``: exact posterior draws, for a few data points.

    Parameters
    ----------
    n_draws : int
    max_proposals : int
        Largest number of proposals; what would take more is refused with an error.
    learn_by : settings record
        The method whose evidence is maximised to learn the hyperparameters, before the sampling.

    Examples
    --------
    >>> from gpclass import GaussianProcessClassifier
    >>> from gpclass.kernels import RBF
    >>> clf = GaussianProcessClassifier(4.0 * RBF(1.0), inference="rejection", optimizer=None, random_state=0)
    >>> clf.fit([[0.0], [1.0], [3.0]], ["a", "a", "b"]).predict_proba([[0.5]]).round(1)
    array([[0.8, 0.2]])
    """

    n_draws: int = 4000
    max_proposals: int = 100_000_000
    learn_by: Inference = EP()  # noqa: RUF009

    def __post_init__(self) -> None:
        check_integers(n_draws=self.n_draws)
        check_integers(self.n_draws, max_proposals=self.max_proposals)


@dataclass(frozen=True, slots=True, eq=False)
class PosteriorSample(RejectionSample):
    """Independent draws of f from its posterior, shape (n_samples, n) or (n_samples, n, C)."""

    @property
    def evidence(self) -> float:
        """The log evidence: the logarithm of the mean acceptance probability."""
        return self.log_mass


def posterior_by_rejection(
    likelihood: Any,
    K: Array,
    y: Array,
    n_samples: int,
    rng: Seed = None,
    *,
    weight: Array | None = None,
    max_proposals: int = MAX_PROPOSALS,
) -> PosteriorSample:
    """Draw f from its posterior, exactly and independently, for very few data points.

    A draw takes 1 / exp(evidence) proposals on average: about a thousand with ten data points, fewer where
    the labels are what the prior expects. Infeasible problems are refused after the first few thousand
    proposals.

    Parameters
    ----------
    likelihood : Likelihood
        Class probabilities: ``log_prob(y, f)`` returns the shape (m, n) for f of shape (m, n) or (m, n, C).
    K : array of shape (n, n) or (C, n, n)
        Prior covariance, one for all latent functions or one for each.
    y : array of shape (n,) or (n, C)
    n_samples : int
    rng : numpy Generator or seed
    weight : array of shape (n,), optional
        Weight k counts a data point as k copies.
    max_proposals : int

    Returns
    -------
    PosteriorSample

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.likelihoods import Probit
    >>> from gpclass.sampling import posterior_by_rejection
    >>> K, y = np.array([[4.0, 2.0], [2.0, 4.0]]), np.array([1.0, 1.0])
    >>> posterior = posterior_by_rejection(Probit(), K, y, 10_000, rng=0)
    >>> posterior.draws.shape, round(posterior.acceptance_rate, 2)
    ((10000, 2), 0.31)
    >>> exact = np.log(0.25 + np.arcsin(2.0 / 5.0) / (2.0 * np.pi))
    >>> bool(abs(posterior.evidence - exact) < 3 * posterior.standard_error)
    True
    """
    target = make_target(likelihood, K, y, weight=weight)

    def propose(m: int, rng: np.random.Generator) -> Array:
        return target.shifts(target.normals(m, rng))

    def log_accept(F: Array) -> Array:
        l = target.pointwise(F)
        _check_log_prob(likelihood, l, (len(F), len(target.y)))
        return np.asarray(l @ target.weight)

    remedy = "MCMC, or importance_evidence for the evidence"
    chunk = max(256, CHUNK // len(target.mean))
    F, tally = accept(propose, log_accept, n_samples, rng, max_proposals, chunk, remedy)
    return PosteriorSample(np.ascontiguousarray(target.values(F)), *tally.summary(0.0))


def _check_log_prob(likelihood: Any, l: Array, expected: tuple[int, int]) -> None:
    if l.shape != expected:
        raise ValueError(
            f"{likelihood!r} returned log probabilities of shape {l.shape}, expected {expected}: if a data "
            "point has several latent values, the shape of K or y must have their number."
        )
    top = float(np.max(l))
    if np.isnan(top):
        raise ValueError(f"{likelihood!r} returned NaN as a log probability, expected numbers or -inf.")
    if top > SLACK:
        raise ValueError(
            f"{likelihood!r} has p(y|f) = {np.exp(min(top, 700.0)):.6g}, above one: draws are accepted with "
            "that probability, so it must be that of a class and not a density."
        )
