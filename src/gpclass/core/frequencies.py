"""The evidence of class frequencies alone, a baseline that a model with inputs should exceed.

It is the larger evidence of two models with the same class probabilities p in all rows. In one they are equal, as for a
latent function that is zero. In the other they are unknown, with a uniform prior, and their integral is exact,

    ∫ Π_c p_c^n_c Dir(p | 1, ..., 1) dp = Γ(C) Π_c Γ(n_c + 1) / Γ(n + C),

the Dirichlet-multinomial probability of the labels in their order. A constant latent function with the probit and a
variance of one gives the same, so it is comparable with the evidence of a Gaussian process.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln

from gpclass.core.checks import apart
from gpclass.core.protocols import Array

Labels = Sequence[float] | None


def one_hot(y: Array, labels: Labels = (-1.0, 1.0)) -> Array:
    """Return label weights of shape (n, C), for label weights or for labels y that have these values by class."""
    y = np.asarray(y)
    return y if y.ndim == 2 else np.equal.outer(y, np.asarray(labels)).astype(float)


def class_counts(y: Array, weight: Array | None = None, labels: Labels = (-1.0, 1.0)) -> Array:
    """Return the total weight of each class; see `one_hot`."""
    P = one_hot(y, labels)
    return P.sum(axis=0) if weight is None else np.asarray(weight) @ P


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


def no_better(found: float, baseline: float, name: str = "log evidence", margin: float = 0.0) -> str:
    """Return a clause if a number exceeds the evidence of class frequencies by no more than ``margin``, else ''."""
    if found > baseline + margin:
        return ""
    shown, known = apart(found, baseline, 4, "g")
    return (
        f"is no better than predicting the class frequencies: its {name}, {shown}, is not "
        f"{'clearly ' if found > baseline else ''}above {known}, the log evidence of class frequencies alone"
    )
