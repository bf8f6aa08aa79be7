"""The accuracy of an approximation: its evidence and probabilities compared with importance sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpclass.core.frequencies import Baseline, class_counts, make_baseline
from gpclass.core.protocols import Array, Index
from gpclass.evidence.importance import Draws, estimate
from gpclass.evidence.verdicts import SMALL_SHIFT, Missing, on_approximation, on_model
from gpclass.mcmc.chains import Chains, diagnose
from gpclass.posteriors.target import Target
from gpclass.sampling.checks import Seed
from gpclass.sampling.pareto import khat_limit
from gpclass.sampling.weigh import ImportanceEstimate


@dataclass(frozen=True, slots=True, eq=False)
class ApproximationCheck:
    """An approximation compared with its correction by importance sampling.

    Parameters
    ----------
    method : str
    evidence : float or None
        The approximate log evidence.
    corrected : float or None
        The log evidence by importance sampling; None if theta was sampled.
    standard_error : float or None
        Of ``corrected``.
    khat : float or None
        Shape of the tail of the weights: the correction can be trusted if it is below
        min(0.7, 1 - 1/log10 n_samples).
    ess : float
        Effective sample size.
    n_samples : int
    largest_shift : float
        The largest change that the weights make to p(y=+1) at a training input, or to the probability of
        any class if there are three or more.
    shift_error : float
        Its standard error.
    mean_shift : float
        The mean absolute change, including noise.
    verdict : str
        The result in one sentence; another one before it if the model is no better than class frequencies.
    missing : Missing or None
        With inducing inputs, what they miss: all numbers above refer to the posterior of the inducing values, which
        do not show it. If that posterior is exact (Dirichlet classification), the numbers above are None.
    """

    method: str
    evidence: float | None
    corrected: float | None
    standard_error: float | None
    khat: float | None
    ess: float
    n_samples: int
    largest_shift: float | None
    shift_error: float | None
    mean_shift: float | None
    verdict: str
    missing: Missing | None = None

    @property
    def reliable(self) -> bool:
        """Whether the correction can be trusted: khat is below its limit, or there is none."""
        return self.khat is None or self.khat < khat_limit(self.n_samples)

    @property
    def doubtful(self) -> bool:
        """Whether the approximation was found inaccurate, or could not be confirmed."""
        shift, error = self.largest_shift or 0.0, self.shift_error or 0.0
        return not self.reliable or shift > max(SMALL_SHIFT, 3.0 * error)

    def __str__(self) -> str:
        missing = self.missing
        rows = [
            (f"log evidence, {self.method}", _text(self.evidence)),
            ("log evidence, corrected", _text(self.corrected, self.standard_error)),
            ("largest shift of p", _text(self.largest_shift, self.shift_error)),
            ("mean shift of p", _text(self.mean_shift)),
            ("tail of the weights, khat", "" if self.khat is None else f"{self.khat:.2f}"),
            ("effective draws", f"{self.ess:.0f} of {self.n_samples}" if self.n_samples else ""),
            ("missed, mean shift of p", "" if missing is None else _text(missing.mean_shift)),
            ("missed, log score per row", "" if missing is None else _text(missing.gain, missing.gain_error)),
        ]
        rows = [(name, text) for name, text in rows if text]
        width = max(len(name) for name, _ in rows)
        return "\n".join([*(f"{name:<{width}}  {text}" for name, text in rows), self.verdict])


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
    baseline: Baseline | None = None,
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
    baseline : Baseline, optional
        The evidence that the model should exceed, by default that of its class frequencies.

    Returns
    -------
    ApproximationCheck

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
    found, drawn = estimate(target, n_samples, np.random.default_rng(rng))
    shift, error = probability_shifts(lambda D: _at_shifts(target, D), drawn)
    baseline = baseline or make_baseline(class_counts(target.y, target.weight))
    return make_report(method, evidence, found, shift, error, baseline=baseline)


def check_draws(
    target: Target,
    draws: Array,
    chains: Chains | None,
    evidence: float | None,
    method: str,
    n_samples: int,
    rng: np.random.Generator,
    *,
    points: Index | slice = slice(None),
    baseline: Baseline | None = None,
) -> ApproximationCheck:
    """Compare draws, shape (draws, n) or (draws, n, C), with importance sampling from the same posterior.

    ``chains`` produced the draws, None for independent draws; ``points`` are the data points of
    the target that the draws belong to, if it has more of them.
    """
    found, drawn = estimate(target, n_samples, rng)
    w = drawn.weights.ravel()
    p = _at_shifts(target, np.concatenate([drawn.D, -drawn.D]))[:, points].reshape(len(w), -1)
    mean = w @ p
    error = np.sqrt((w * w) @ (p - mean) ** 2)
    ours = probabilities(target, draws).reshape(len(draws), -1)
    own_error: Array = ours.std(axis=0) / np.sqrt(len(ours))
    if chains is not None:
        own_error = diagnose(ours.reshape(chains.n_chains, chains.n_draws, -1)).mcse
    shift, error = ours.mean(axis=0) - mean, np.hypot(error, own_error)
    remedy = "check the draws with chains_.diagnostics(), and increase their number"
    return make_report(method, evidence, found, shift, error, baseline=baseline, remedy=remedy)


def check_chains(chains: Chains, p: Array) -> ApproximationCheck:
    """Compare the first half of chains of theta and f with the second, by probabilities p, shape as of f.

    With theta sampled as well there is no importance sampling to compare with.
    """
    half = chains.n_draws // 2
    shift = p[:, :half].mean(axis=(0, 1)) - p[:, half:].mean(axis=(0, 1))
    of_p, of_theta = diagnose(p), chains.diagnostics("theta")
    verdict = of_theta.complaint(chains.n_chains) or (
        f"The chains agree: the largest R-hat is {float(of_theta.rhat.max()):.3f}, and no probability "
        f"has a Monte Carlo error above {float(of_p.mcse.max()):.2g}."
    )
    ess, count = float(min(of_theta.ess_bulk.min(), of_p.ess_bulk.min())), chains.n_chains * chains.n_draws
    shifts = _summary(shift, 2.0 * of_p.mcse)
    return ApproximationCheck("MCMC", None, None, None, None, ess, count, *shifts, verdict)


def make_report(
    method: str,
    evidence: float | None,
    found: ImportanceEstimate,
    shift: Array,
    error: Array,
    *,
    about: str = "",
    baseline: Baseline | None = None,
    remedy: str = "",
) -> ApproximationCheck:
    """Return the report on shifts of probabilities with their errors; the verdict names the method ``about``."""
    verdict = on_model(baseline, evidence, found)
    verdict += on_approximation(about or method, evidence, found, shift, error, remedy)
    numbers = found.value, found.standard_error, found.khat, found.ess, found.n_samples
    return ApproximationCheck(method, evidence, *numbers, *_summary(shift, error), verdict)


def _summary(shift: Array, error: Array) -> tuple[float, float, float]:
    """Return the largest absolute shift, its error, and the mean."""
    size = np.abs(shift)
    worst = int(np.argmax(size))
    return float(size[worst]), float(error[worst]), float(size.mean())


def probability_shifts(evaluate: Callable[[Array], Array], drawn: Draws) -> tuple[Array, Array]:
    """Return E_posterior[p] - E_q[p] for the probabilities p that ``evaluate`` returns of rows d, and its error.

    Both averages are over the same draws, so most of their noise cancels. An antithetic pair is one
    independent contribution, the sum of w (p - mean p) - w_q (p - mean_q p) over the pair.
    """
    w, base = drawn.weights, drawn.base
    p = np.stack([evaluate(D).reshape(len(D), -1) for D in (drawn.D, -drawn.D)])
    mean, mean_q = np.tensordot(w, p, 2), 0.5 * base @ p.sum(axis=0)
    pairs = np.einsum("si,sij->ij", w - 0.5 * base, p)
    pairs -= np.outer(w.sum(axis=0), mean) - np.outer(base, mean_q)
    return mean - mean_q, np.sqrt(np.einsum("ij,ij->j", pairs, pairs))


def _at_shifts(target: Target, D: Array) -> Array:
    return probabilities(target, target.values(target.mean + D))


def probabilities(target: Target, f: Array) -> Array:
    """Return p(y=+1|f), shape (rows, n, 1), or p(class|f), shape (rows, n, C)."""
    if len(target.shape) == 1:  # half the work of both classes
        return np.asarray(target.likelihood.link(f))[..., None]
    return np.asarray(np.exp(target.likelihood.log_classes(f)))
