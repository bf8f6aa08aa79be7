"""Warnings about fits of little use, whose probabilities hardly depend on the inputs, each with a remedy.

There is at most one such warning for a fit, for the first of these that applies:

1. All columns are constant.
2. The kernel that the user gave has one scale for columns whose standard deviations are more than 1000 times apart.
3. The log evidence does not exceed that of class frequencies alone (`gpclass.core.frequencies`).
4. The probabilities of all rows are alike.
5. The leave-one-out probabilities of all rows are alike: on the length scales of the kernel the rows are far apart.

Points 2 and 3 are for learned hyperparameters only, because fixed ones are the user's choice. Points 3 to 5 need more
than a few rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gpclass.core.frequencies import FEW, Baseline
from gpclass.core.protocols import Array
from gpclass.kernels.scales import Scales, column_scales, disparity
from gpclass.learning.fitted import FittedModel
from gpclass.learning.maximise import bound_messages
from gpclass.validation import take

ALIKE = 1e-3  # largest difference of probabilities that are alike
MAX_DISPARITY = 1e3  # ratio of standard deviations of columns
FEWEST = 10.0  # rows whose probabilities are compared at fixed hyperparameters; learned ones need `FEW`
ROWS = 500  # number of rows at which predictions are compared
TOO_NARROW = (
    "Credible intervals of Dirichlet classification are too narrow: its targets are made from the labels, and in "
    "simulations intervals of 95 % contained 40 to 90 % of the true probabilities. Use inference='vi' for intervals."
)


class DoubtfulFitWarning(UserWarning):
    """A fit whose probabilities or intervals are of little use; the message says why, and what to do."""


def complaints(models: Sequence[FittedModel], given: Any) -> Iterator[tuple[str, type[Warning]]]:
    """Yield the text and the category of every warning about a fit.

    ``given`` is the kernel as the user gave it: an object, a name or None. Bounds are reported for an object only. A
    fit that did not converge, or whose bounds exclude the scales of the data, is not judged any further.
    """
    at_bounds, explained = not isinstance(given, str | None), False
    for model in models:
        learned = at_bounds and model.learned is not None
        bounds = set(bound_messages(model.kernel)) if learned else set()
        for sentence in model.shortcomings(at_bounds=at_bounds):
            explained = explained or sentence not in bounds
            yield sentence, ConvergenceWarning
        explained = explained or (learned and _is_cut_off(model))
    if not explained and (sentence := doubt(models, given=given is not None)):
        yield sentence, DoubtfulFitWarning


def doubt(models: Sequence[FittedModel], *, given: bool = False) -> str:
    """Return in one sentence why a fit is of little use, and what to do; an empty text if it is of use.

    Several two-class models are judged by their mean evidence. ``given`` says whether the user chose the kernel.
    """
    learned, scales = all(model.learned is not None for model in models), [_scales(model) for model in models]
    if all(each is not None and not each.varies.any() for each in scales):
        return "All columns of X are constant, so that all rows look the same: give columns that differ between rows."
    ratios = [
        1.0 if s is None else disparity(model.kernel, s) for model, s in zip(models, scales, strict=True)
    ]
    if given and learned and max(ratios) > MAX_DISPARITY:
        return (
            f"The standard deviations of the columns of X are up to {max(ratios):.2g} times apart, but the kernel has "
            "one scale for all of them: standardise the columns (StandardScaler) or use one length scale per column "
            "(kernel='rbf')."
        )
    if sum(model.class_counts.sum() for model in models) < (FEW if learned else FEWEST) * len(models):
        return ""
    if learned and (objection := _objection(models)):
        return (
            f"The fit is no better than predicting the class frequencies: {objection}; try other columns, "
            "another kernel (kernel='matern12') or further starts (n_restarts_optimizer)."
        )
    if all(_are_alike(_log_proba(model)) for model in models):
        return (
            f"All rows have the same probabilities, within {ALIKE}: use other length scales, a larger signal variance "
            "or other columns."
        )
    if all(model.loo is not None and _are_alike(model.loo) for model in models):
        return (
            "On the length scales of the kernel all rows are far apart, so that no row is informative about another: "
            "standardise the columns (StandardScaler), or take the length scales from the columns (kernel='rbf')."
        )
    return ""


def _objection(models: Sequence[FittedModel]) -> str:
    """Return why the mean evidence does not show that the inputs matter; an empty text if it does or is unknown."""
    evidences = [model.evidence for model in models if model.evidence is not None]
    baselines = [baseline for model in models if (baseline := model.baseline) is not None]
    if min(len(evidences), len(baselines)) < len(models):
        return ""
    base, chance = np.mean([[each.evidence, each.chance] for each in baselines], axis=0)
    baseline = Baseline(float(base), float(chance), baselines[0].n_learned)
    if baseline.objection(float(np.mean(evidences))) and (loo := _left_out(models)) is not None:
        return baseline.objection(loo)
    return baseline.objection(float(np.mean(evidences)))


def _left_out(models: Sequence[FittedModel]) -> float | None:
    """Return the mean sum of leave-one-out scores of models whose evidence is a bound; None if it is unknown.

    With too few inducing inputs the bound may be far below the evidence of a model that predicts well.
    """
    scores = [None if model.inducing is None else model.loo_log_score() for model in models]
    totals = [s * model.class_counts.sum() for s, model in zip(scores, models, strict=True) if s is not None]
    return float(np.mean(totals)) if len(totals) == len(models) else None


def _scales(model: FittedModel) -> Scales | None:
    """Return the scales of the columns; None where inputs are not rows of numbers, or there is one inducing input."""
    X = model.problem.X
    vectors = isinstance(X, np.ndarray) and X.ndim == 2 and len(X) > 1 and model.kernel.requires_vector_input
    return column_scales(np.asarray(X, dtype=float)) if vectors else None


def _is_cut_off(model: FittedModel) -> bool:
    """Return whether a learned length scale is at a bound, and its bounds exclude the scales of the data."""
    kernel, scales, position = model.kernel, _scales(model), 0
    if scales is None or not scales.varies.any():
        return False
    least, most = np.log([scales.deviation[scales.varies].min(), scales.distance])
    for hyper in (h for h in kernel.hyperparameters if not h.fixed):
        part = slice(position, position + hyper.n_elements)
        position = part.stop
        low, high = kernel.bounds[part].T
        ended = np.isclose(low, kernel.theta[part]) | np.isclose(high, kernel.theta[part])
        if hyper.name.endswith("length_scale") and (ended & ((low > least) | (high < most))).any():
            return True
    return False


def _are_alike(log_proba: Array) -> bool:
    return len(log_proba) > 1 and bool(np.ptp(np.exp(log_proba), axis=0).max() < ALIKE)


def _log_proba(model: FittedModel) -> Array:
    """Return log class probabilities at the mean of f, at some of the rows or at some inducing inputs."""
    X = model.problem.X
    rows = np.unique(np.linspace(0, len(X) - 1, min(len(X), ROWS)).astype(int))
    if model.draws is not None:
        return model.likelihood.log_classes(model.draws[:, rows].mean(axis=0))
    return model.likelihood.log_classes(model.posterior.mean(take(X, rows)))
