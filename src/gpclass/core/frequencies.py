"""The evidence of class frequencies alone, a baseline that a model with inputs should exceed.

It is the larger of two: in both models all rows have the same class probabilities p. In one they are equal, as for a
latent function that is zero. In the other they are unknown, with a uniform prior, and their integral is exact,

    ∫ Π_c p_c^n_c Dir(p | 1, ..., 1) dp = Γ(C) Π_c Γ(n_c + 1) / Γ(n + C),

the Dirichlet-multinomial probability of the labels in their order. A constant latent function with the probit and a
variance of one gives the same, so it is comparable with the evidence of a Gaussian process.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, gammaln

from gpclass.core.checks import apart
from gpclass.core.protocols import Array

FEW = 30.0  # with fewer rows the evidence cannot distinguish a relation from chance
CHANCE = 0.95  # quantile of the gain of evidence for labels that have no relation to the inputs
SHARE = 0.25  # largest gain by chance, as a fraction of the log evidence of class frequencies


def class_counts(y: Array, weight: Array | None = None) -> Array:
    """Return the total weight of each class, for labels -1 and 1 or label weights of shape (n, C)."""
    y = np.asarray(y)
    if y.ndim == 2:
        out: Array = y.sum(axis=0) if weight is None else np.asarray(weight) @ y
        return out
    return np.bincount((y > 0.0).astype(int), weights=weight, minlength=2).astype(float)


def frequency_evidence(counts: Array) -> float:
    """Return the log evidence of labels of these classes without any inputs.

    Parameters
    ----------
    counts : array of shape (n_classes,)
        Number of rows of each class, or their total weight.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.evidence import frequency_evidence
    >>> frequency_evidence(np.array([9, 1]))  # 1 / 110
    -4.700...
    >>> frequency_evidence(np.array([5, 5]))  # 1 / 2**10
    -6.931...
    """
    counts = np.asarray(counts, dtype=float)
    total, n_classes = counts.sum(), len(counts)
    unknown = gammaln(n_classes) + gammaln(counts + 1.0).sum() - gammaln(total + n_classes)
    return float(max(unknown, -total * np.log(n_classes)))


@dataclass(frozen=True, slots=True)
class Baseline:
    """The log evidence of class frequencies, and the margin by which chance may exceed it.

    Learned hyperparameters raise the evidence even on labels that have no relation to the inputs: twice the gain of p
    of them is distributed as chi-squared with p degrees of freedom (Wilks).
    """

    evidence: float
    chance: float = 0.0
    n_learned: int = 0

    def objection(self, evidence: float) -> str:
        """Return a clause that says why a log evidence does not show that the inputs matter; '' if it does."""
        if evidence - self.evidence > self.chance:
            return ""
        found, known = apart(evidence, self.evidence, 4, "g")
        known = f"{known}, that of class frequencies alone"
        if evidence <= self.evidence:
            return f"its log evidence, {found}, is not above {known}"
        return (
            f"its log evidence, {found}, is above {known}, by no more than {self.n_learned} learned "
            "hyperparameters may gain by chance"
        )


def make_baseline(counts: Array, n_learned: int = 0) -> Baseline:
    """Return the baseline of labels of these classes, for a model with that many learned hyperparameters.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.core.frequencies import make_baseline
    >>> make_baseline(np.array([50, 50]), n_learned=3).objection(-68.0)
    'its log evidence, -68, is above -69.31, ... by no more than 3 learned hyperparameters may gain by chance'
    >>> make_baseline(np.array([50, 50]), n_learned=3).objection(-60.0)
    ''
    """
    evidence = frequency_evidence(counts)
    many = float(np.sum(counts)) >= FEW
    gain = 0.5 * float(chdtri(n_learned, 1.0 - CHANCE)) if n_learned else 0.0
    return Baseline(evidence, min(gain, -SHARE * evidence) if many else 0.0, n_learned)
