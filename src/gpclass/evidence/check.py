"""The accuracy of an approximation: its evidence and probabilities compared with importance sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.checks import apart
from gpclass.core.frequencies import class_counts, frequency_evidence, no_better
from gpclass.core.protocols import Array
from gpclass.mcmc.chains import diagnose
from gpclass.posteriors.target import Target
from gpclass.sampling.checks import Seed
from gpclass.sampling.weigh import Draws, ImportanceEstimate, estimate_evidence, khat_limit

SMALL_SHIFT = 0.05  # change of a probability that is too small to matter
SMALL_GAP = 0.5  # difference of log evidences that is too small to choose a model by
MIN_ESS = 100.0  # minimum effective sample size
SMALL_MEAN_SHIFT = 0.02  # mean change of a probability that is too small to matter
SMALL_GAIN = 0.005  # gain of the log score that is too small to matter, in nats per row


@dataclass(frozen=True, slots=True, eq=False)
class ApproximationCheck:
    """An approximation compared with its correction; numbers that do not apply are None.

    A Gaussian approximation is corrected by importance sampling, inducing inputs by exact neighbourhoods of some rows.
    Draws are judged by the agreement of their halves.

    Parameters
    ----------
    method : str
    evidence : float or None
        The approximate log evidence.
    verdict : str
        The result in one sentence; another one before it if the model is no better than class frequencies.
    corrected : float or None
        The log evidence by importance sampling.
    standard_error : float or None
        Standard error of ``corrected``.
    khat : float or None
        Shape of the tail of the weights: the correction can be trusted if it is below
        min(0.7, 1 - 1/log10 n_samples).
    ess : float or None
        Effective sample size.
    n_samples : int
        Number of draws; with inducing inputs, number of rows at which leave-one-out probabilities were compared.
    largest_shift : float or None
        The largest change that the correction makes to p(y=+1) at a training input, or to the probability of
        any class if there are three or more. For draws, the change between their two halves.
    shift_error : float or None
        Standard error of ``largest_shift``.
    mean_shift : float or None
        The mean absolute change, including noise.
    gain, gain_error : float or None
        Change of the mean leave-one-out log score without inducing inputs, in nats per row, and its standard error:
        positive if the exact posterior is better.
    """

    method: str
    evidence: float | None
    verdict: str
    corrected: float | None = None
    standard_error: float | None = None
    khat: float | None = None
    ess: float | None = None
    n_samples: int = 0
    largest_shift: float = 0.0
    shift_error: float | None = None
    mean_shift: float = 0.0
    gain: float | None = None
    gain_error: float | None = None

    @property
    def reliable(self) -> bool:
        """Whether the correction can be trusted: khat is None or below its limit."""
        return self.khat is None or self.khat < khat_limit(self.n_samples)

    @property
    def doubtful(self) -> bool:
        """Whether the approximation was found inaccurate, or could not be confirmed."""
        if self.gain is not None and self.gain_error is not None:
            return self.mean_shift > SMALL_MEAN_SHIFT or self.gain > SMALL_GAIN + 2.0 * self.gain_error
        return not self.reliable or self.largest_shift > max(SMALL_SHIFT, 3.0 * (self.shift_error or 0.0))

    def __str__(self) -> str:
        rows = {
            f"log evidence, {self.method}": _text(self.evidence),
            "log evidence, corrected": _text(self.corrected, self.standard_error),
            "largest shift of p": _text(self.largest_shift, self.shift_error),
            "mean shift of p": _text(self.mean_shift),
            "gain of log score per row": _text(self.gain, self.gain_error),
            "tail of the weights, khat": "" if self.khat is None else f"{self.khat:.2f}",
            "effective draws": "" if self.ess is None else f"{self.ess:.0f} of {self.n_samples}",
        }
        width = max(len(name) for name, text in rows.items() if text)
        return "\n".join([*(f"{name:<{width}}  {text}" for name, text in rows.items() if text), self.verdict])


def _text(number: float | None, error: float | None = None) -> str:
    """Return a number with its standard error as text, or an empty text for None."""
    if number is None:
        return ""
    return f"{number:.4f}" + ("" if error is None else f" ± {error:.4f}")


def check_approximation(
    target: Target,
    *,
    evidence: float | None = None,
    method: str = "approximate",
    n_samples: int = 2000,
    rng: Seed = None,
) -> ApproximationCheck:
    """Correct an approximation by importance sampling and report how much that changes.

    Parameters
    ----------
    target : Target
        The posterior, with the sites of the method: see `gpclass.posteriors.target.make_target`.
    evidence : float, optional
        The approximate log evidence.
    method : str
        Its name in the report.
    n_samples : int
    rng : numpy Generator or seed

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.inference import EP
    >>> from gpclass.kernels import RBF
    >>> from gpclass.likelihoods import Probit
    >>> from gpclass.posteriors.target import make_target
    >>> from gpclass.priors import DensePrior
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> kernel = 4.0 * RBF(1.0)
    >>> ep = EP()(DensePrior(kernel, X), Probit(), y)
    >>> target = make_target(Probit(), kernel(X), y, ep.sites)
    >>> check_approximation(target, evidence=ep.evidence, method="EP", rng=0).verdict
    'EP is accurate for this kernel: no probability moves by more than ..., and its log evidence by 0.0...'
    """
    found, drawn = estimate_evidence(target, n_samples, np.random.default_rng(rng))
    shift, error = probability_shifts(target, drawn)
    size = np.abs(shift)
    worst = int(np.argmax(size))
    verdict = judge(method, evidence, found, float(size[worst]), float(error[worst]))
    best = found.value if found.reliable and found.ess >= MIN_ESS else evidence
    baseline = frequency_evidence(class_counts(target.y, target.weight, target.likelihood.labels))
    if best is not None and (objection := no_better(best, baseline)):
        advice = "look for better columns or another kernel before you try another method"
        verdict = f"The model {objection}; {advice}. {verdict}"
    return ApproximationCheck(
        method, evidence, verdict, found.value, found.standard_error, found.khat, found.ess, found.n_samples,
        float(size[worst]), float(error[worst]), float(size.mean()),
    )  # fmt: skip


def judge(method: str, evidence: float | None, found: ImportanceEstimate, shift: float, noise: float) -> str:
    """Return the verdict on an approximation, from its corrected evidence and the largest shift of a probability."""
    remedy = f"use {' or '.join(name for name in ('VI', 'EP') if name != method)}, or MCMC"
    if not found.reliable:
        khat, limit = apart(found.khat or 0.0, khat_limit(found.n_samples))
        return (
            f"The correction itself is unreliable, because khat = {khat} is not below {limit}, the limit for "
            f"{found.n_samples} draws: {remedy}."
        )
    if found.ess < MIN_ESS:
        return (
            f"The correction is based on only {found.ess:.0f} effective draws, too few to judge {method}: "
            f"raise n_samples to {10 * found.n_samples}, or {remedy}."
        )
    gap = 0.0 if evidence is None else found.value - evidence
    missed = abs(gap) > SMALL_GAP + 2.0 * found.standard_error
    off = f"its log evidence is too {'low' if gap > 0 else 'high'} by {abs(gap):.2g}"
    if SMALL_SHIFT < shift < 3.0 * noise:
        return f"A probability moves by {shift:.2g} ± {noise:.2g}, which may be chance: raise n_samples."
    if shift > SMALL_SHIFT:
        also = f", and {off}" if missed else ""
        return f"{method} is inaccurate for this kernel: a probability moves by {shift:.2g}{also}; {remedy}."
    if missed:
        return f"{method} gives accurate probabilities for this kernel, but {off}: do not use it to choose models."
    known = "" if evidence is None else f", and its log evidence by {abs(gap):.2g}"
    return f"{method} is accurate for this kernel: no probability moves by more than {shift:.2g}{known}."


def check_draws(method: str, evidence: float | None, p: Array, chains: Any) -> ApproximationCheck:
    """Return the report on draws, from probabilities p, (chains, draws, ...); without ``chains`` they are exact.

    The shifts are those between the first half of the draws and the second.
    """
    half, count = p.shape[1] // 2, p.shape[0] * p.shape[1]
    size = np.abs(p[:, :half].mean(axis=(0, 1)) - p[:, half:].mean(axis=(0, 1))).ravel()
    mcse, ess, words = p.std(axis=(0, 1)).ravel() / np.sqrt(count), float(count), "The draws are exact"
    if chains is not None:
        of_p, words = diagnose(p), "The chains agree"
        mcse, ess = of_p.mcse.ravel(), float(of_p.ess_bulk.min())
    verdict = f"{words}: no probability has a Monte Carlo error above {mcse.max():.2g}."
    verdict = verdict if chains is None else chains.complaint() or verdict
    worst = int(np.argmax(size))
    return ApproximationCheck(
        method, evidence, verdict, ess=ess, n_samples=count,
        largest_shift=float(size[worst]), shift_error=2.0 * float(mcse[worst]), mean_shift=float(size.mean()),
    )  # fmt: skip


def probability_shifts(target: Target, drawn: Draws) -> tuple[Array, Array]:
    """Return E_posterior[p] - E_q[p] and its error, for p(y=+1|f) or the probability of each of several classes.

    Both averages are over the same draws, so most of their noise cancels. An antithetic pair is one
    independent contribution, the sum of w (p - mean p) - w_q (p - mean_q p) over the pair.
    """

    def probabilities(D: Array) -> Array:
        """Return p at rows f = mean + d, shape (rows, n) or (rows, n C)."""
        f = target.values(target.mean + D)
        two = target.likelihood.labels is not None and len(target.likelihood.labels) == 2
        p = target.likelihood.link(f) if two else np.exp(target.likelihood.log_classes(f))
        return np.asarray(p).reshape(len(D), -1)

    w, base = drawn.weights, drawn.base
    p = np.stack([probabilities(D) for D in (drawn.D, -drawn.D)])
    mean, mean_q = np.tensordot(w, p, 2), 0.5 * base @ p.sum(axis=0)
    pairs = np.einsum("si,sij->ij", w - 0.5 * base, p)
    pairs -= np.outer(w.sum(axis=0), mean) - np.outer(base, mean_q)
    return mean - mean_q, np.sqrt(np.einsum("ij,ij->j", pairs, pairs))
