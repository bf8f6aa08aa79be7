"""Exact draws from the posterior of a handful of data: propose from the prior, accept with p(y|f).

A probability is at most one, so that is the bound; the rate of acceptance is the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.linalg import covariance_root, matmul_transposed
from gpclass.core.protocols import Array
from gpclass.sampling.accept import CHUNK, MAX_PROPOSALS, SLACK, accept
from gpclass.sampling.checks import Seed, check_count


@dataclass(frozen=True, slots=True, eq=False)
class PosteriorSample:
    """Independent draws of f from its posterior, and what they cost.

    Parameters
    ----------
    draws : array of shape (n_samples, n) or (n_samples, n, C)
    acceptance_rate : float
        Share of all proposals that was accepted.
    n_proposals : int
    evidence : float
        The log evidence: that of the mean probability of acceptance.
    standard_error : float
        Of ``evidence``.
    """

    draws: Array
    acceptance_rate: float
    n_proposals: int
    evidence: float
    standard_error: float


def posterior_by_rejection(
    likelihood: Any,
    K: Array,
    y: Array,
    n_samples: int,
    rng: Seed = None,
    *,
    weight: Array | None = None,
    n_latents: int | None = None,
    max_proposals: int = MAX_PROPOSALS,
) -> PosteriorSample:
    """Draw f from its posterior, exactly and independently, for very few data.

    A draw takes 1 / exp(evidence) proposals: about a thousand with ten data, fewer where the labels are what
    the prior expects. What is out of reach is refused after the first few thousand.

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
        Weight k counts a datum as k copies.
    n_latents : int, optional
        Number C of latent values a datum, where neither K nor y has it in its shape. With None and
        shapes (n, n) and (n,), f has the shape (n,).
    max_proposals : int

    Returns
    -------
    PosteriorSample

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.evidence import exact_evidence
    >>> from gpclass.likelihoods import Probit
    >>> from gpclass.sampling import posterior_by_rejection
    >>> K, y = np.array([[4.0, 2.0], [2.0, 4.0]]), np.array([1.0, 1.0])
    >>> posterior = posterior_by_rejection(Probit(), K, y, 10_000, rng=0)
    >>> posterior.draws.shape, round(posterior.acceptance_rate, 2)
    ((10000, 2), 0.31)
    >>> abs(posterior.evidence - exact_evidence(Probit(), K, y)) < 3 * posterior.standard_error
    True
    """
    K, y, w, shape = _checked(K, y, weight, n_latents)
    roots = [covariance_root(k) for k in (K if K.ndim == 3 else K[None])]
    generator = np.random.default_rng(rng)

    def propose(m: int) -> Array:
        if len(shape) == 1:
            return _prior_draws(roots[0], m, generator)
        return np.stack([_prior_draws(roots[c % len(roots)], m, generator) for c in range(shape[1])], axis=-1)

    def log_accept(f: Array) -> Array:
        l = np.asarray(likelihood.log_prob(y, f))
        _check_log_prob(likelihood, l, (len(f), len(y)))
        out: Array = l @ w
        return out

    remedy = "MCMC, or importance_evidence for the evidence"
    chunk = max(256, CHUNK // int(np.prod(shape)))
    draws, tally = accept(propose, log_accept, n_samples, generator, max_proposals, chunk, remedy)
    evidence, error = float(np.log(tally.mean)), tally.error / tally.mean
    return PosteriorSample(draws, tally.rate, tally.n_proposals, evidence, error)


def _prior_draws(A: Array, m: int, rng: np.random.Generator) -> Array:
    if A.shape[1] == 0:  # the covariance is zero
        return np.zeros((m, len(A)))
    return matmul_transposed(rng.standard_normal((m, A.shape[1])), A)


def _checked(
    K: Array, y: Array, weight: Array | None, n_latents: int | None
) -> tuple[Array, Array, Array, tuple[int, ...]]:
    """Return the three as arrays of numbers whose shapes agree, and the shape of f."""
    K, y = np.asarray(K, dtype=float), np.asarray(y)
    n = len(y) if y.ndim else 0
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    said = {a.shape[i] for a, i, has in ((K, 0, K.ndim == 3), (y, 1, y.ndim == 2)) if has}
    if n_latents is not None:
        check_count(n_latents, "n_latents")
        said.add(n_latents)
    if y.ndim not in (1, 2) or n == 0 or K.shape[-2:] != (n, n) or K.ndim not in (2, 3) or w.shape != (n,):
        raise ValueError(
            f"K, y and weight have the shapes {K.shape}, {y.shape} and {w.shape}, expected (n, n) or "
            "(C, n, n), (n,) or (n, C), and (n,)."
        )
    if len(said) > 1:
        raise ValueError(
            f"K of shape {K.shape}, y of shape {y.shape} and n_latents={n_latents} do not agree on the "
            "number of latent values a datum."
        )
    if not (np.isfinite(K).all() and np.isfinite(w).all() and (w >= 0.0).all()):
        raise ValueError("K or weight has NaN, infinity or a negative weight, expected finite numbers.")
    return K, y, w, (n, *said)


def _check_log_prob(likelihood: Any, l: Array, expected: tuple[int, int]) -> None:
    if l.shape != expected:
        raise ValueError(
            f"{likelihood!r} returned log probabilities of shape {l.shape}, expected {expected}: if a datum "
            "has several latent values, say so by n_latents."
        )
    top = float(np.max(l))
    if np.isnan(top):
        raise ValueError(f"{likelihood!r} returned NaN as a log probability, expected numbers or -inf.")
    if top > SLACK:
        raise ValueError(
            f"{likelihood!r} has p(y|f) = {np.exp(min(top, 700.0)):.6g}, above one: draws are accepted with "
            "that probability, so it must be one of classes and not a density."
        )
