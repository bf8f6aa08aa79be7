"""The log evidence: its two parts, fit and complexity, and its surface over two hyperparameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.explore.fit import Fit
from gpclass.explore.kernels import build
from gpclass.explore.state import State
from gpclass.explore.warned import collected
from gpclass.plotting.evidence import evidences
from gpclass.priors import DensePrior

DRAWS = 400  # of the latent functions of three classes and more
SIZES = (6, 12, 24)  # points along each side of the surface: coarse first
SPAN = 3.0  # natural logarithms around the current hyperparameters


@dataclass(frozen=True, slots=True, eq=False)
class Occam:
    """log evidence = fit - complexity.

    For the exact posterior, log p(y) = E[log p(y|f)] - KL(posterior || prior): what the labels are worth under the
    functions that remain, minus how far these are from those that were expected. The complexity of a Gaussian
    approximation q is KL(q || prior), which is not negative, and the fit is the rest; for the variational bound it is
    E[log p(y|f)] under q exactly. With three classes and more E[log p(y|f)] is averaged over draws instead.
    """

    evidence: float
    fit: float
    complexity: float


def occam(state: State, fitted: Fit) -> Occam:
    """Split the log evidence of a fit.

    Examples
    --------
    >>> from gpclass.explore.fit import fit
    >>> from gpclass.explore.points import make_points
    >>> state = State(make_points([[0.0], [10.0]], [0, 1]), method="vi")
    >>> parts = occam(state, fit(state))
    >>> round(parts.fit, 3), round(parts.complexity, 3), round(parts.evidence, 3)
    (-1.004, 0.385, -1.389)
    """
    model, evidence = fitted.clf.base_estimator_.models[0], fitted.evidence
    if evidence is None:
        raise ValueError("Draws of the latent function give no evidence: choose Laplace, EP or VI to see it.")
    if not model.is_of_labels:
        raise ValueError(
            "The evidence of Dirichlet classification is that of targets made from the labels, and has no such parts: "
            "choose Laplace, EP or VI to see them."
        )
    if model.n_latents is None:
        # KL(q || prior) = (tr B⁻¹ - n + αᵀm + log|B|) / 2 for q = prior x Gaussian sites, with B = I + SKS.
        q = DensePrior(model.kernel, model.problem.X).condition(model.sites)
        complexity = float(0.5 * ((q.inverse_diagonal() - 1.0).sum() + q.alpha @ q.mean) + q.half_logdet)
    else:
        complexity = _expected_log_likelihood(fitted, state.points.X, state.points.codes) - evidence
        if complexity < 0.0:
            raise ValueError("The approximation is too rough here for its log evidence to be split.")
    return Occam(evidence, evidence + complexity, complexity)


def _expected_log_likelihood(fitted: Fit, X: Array, codes: Any) -> float:
    """Return E[log p(y|f)] under the posterior of several classes, by draws."""
    likelihood, classes = fitted.clf.likelihood_, fitted.clf.classes_
    f = np.moveaxis(fitted.clf.sample_latent(X, DRAWS, random_state=0), 2, 0)  # [draws, n, C]
    own = np.searchsorted(classes, codes)
    return float(likelihood.log_classes(f)[:, np.arange(len(X)), own].mean(axis=0).sum())


# ------------------------------------------------------------------------------------ surface


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """Log evidence over two hyperparameters, (rows, columns); NaN where it is not known (yet)."""

    first: Array  # natural logarithms, of columns
    second: Array
    evidence: Array


def surface(state: State, fitted: Fit, chosen: tuple[int, int]) -> Iterator[Surface | None]:
    """Yield the surface, each time finer, and None after each point: a place to stop at.

    Examples
    --------
    >>> from gpclass.explore.fit import fit
    >>> from gpclass.explore.points import make_points
    >>> state = State(make_points([[0.0], [10.0]], [0, 1]))
    >>> next(found for found in surface(state, fit(state), (0, 1)) if found is not None).evidence.shape
    (6, 6)
    """
    n = len(state.theta)
    if n < 2:
        raise ValueError(
            "This kernel has one hyperparameter, and a surface needs two: choose another kernel."
        )
    if chosen[0] == chosen[1] or not all(0 <= k < n for k in chosen):
        raise ValueError("The surface needs two different hyperparameters: choose another one.")
    theta, (low, high) = np.array(state.theta), build(state.choice, state.points.view).bounds.T
    for size in SIZES:
        around = np.linspace(np.maximum(theta - SPAN, low), np.minimum(theta + SPAN, high), size)
        a, b = around[:, list(chosen)].T
        points, values = evidences(fitted.clf, theta, chosen, a, b), list[float]()
        while len(values) < size * size:
            with collected():  # far from the maximum nothing depends on a warning
                values.append(next(points))
            yield None
        if not np.isfinite(values).any():
            raise ValueError("The evidence cannot be computed around here: choose other hyperparameters.")
        yield Surface(a, b, np.reshape(values, (size, size)))
