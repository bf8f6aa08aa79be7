"""The training rows behind a prediction, and training rows whose own label is doubtful."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.checks import check_integers
from gpclass.core.protocols import Array, Index
from gpclass.kernels import diag, matrix
from gpclass.posteriors.process import GaussianProcess

NEAR = 0.1  # correlation with the closest row, below which the text says that no row is near
SOME = 100  # rows among which the covariance that all rows have in common is sought


@dataclass(frozen=True, slots=True, eq=False)
class Influences:
    """The training rows with the largest shares of the latent mean at one row, the largest first.

    Attributes
    ----------
    supports : object
        The class that positive shares make more probable: the predicted one of several classes with a latent function
        each, else the second of two, or the highest of ordered ones.
    mean : float
        The latent mean, the sum of the shares of all training rows and of the prior mean.
    carried : float
        Size of these shares relative to all shares, Σ abs(share) / Σ abs(share), between 0 and 1.
    variance_left : float
        Posterior variance divided by prior variance. Close to 1 no training rows are near, and the prediction is the
        prior's, but for what is common to all rows, such as the bias.
    closest : float
        Largest prior correlation of f(x) with a training row, apart from the smallest covariance of rows, which a bias
        gives to all of them: close to 0 no training rows are near.
    rows : ndarray of shape (n,)
        Positions in the X that was fitted, without rows of weight zero; the first of several equal rows.
    labels, shares : ndarray of shape (n,)
        Labels of these rows, and their terms alpha_i k(x, x_i) of the mean.
    distances : ndarray of shape (n,)
        Prior deviation of f(x) - f(x_i) relative to that of independent values: 0 for equal rows, 1 for unrelated ones.
    """

    supports: Any
    mean: float
    carried: float
    variance_left: float
    closest: float
    rows: Index
    labels: Any
    shares: Array
    distances: Array

    def __str__(self) -> str:
        """Return a table in text."""
        each = zip(self.rows, self.labels, self.shares, self.distances, strict=True)
        lines = [f"row {i}  {label}  share {share:+.3f}  distance {d:.3f}" for i, label, share, d in each]
        head = (
            f"latent mean {self.mean:+.3f} (positive: {self.supports}), {self.carried:.0%} from these rows; "
        )
        left = f"{self.variance_left:.0%} of the prior variance remains"
        return "\n".join([head + left + "; no training row is near" * (self.closest < NEAR), *lines])


@dataclass(frozen=True, slots=True)
class DoubtfulLabel:
    """A training row, its label, and the most probable class from the other rows, with their probabilities."""

    row: int
    label: Any
    proba: float
    likely: Any
    likely_proba: float


def influences(estimator: Any, X: Any, n: int) -> list[Influences]:
    """Return the training rows with the largest shares of the latent mean at each row of X."""
    proba, X = estimator.predict_proba(X), estimator._check_fitted_inputs(X)
    check_integers(n=n)
    models = estimator._latent_models()
    for model in models:
        if not isinstance(model.posterior, GaussianProcess) or model.problem.Z is not None or model.inducing:
            raise ValueError(
                "The latent mean is not a sum over the training rows with inducing inputs or after sampling: fit "
                "with inducing=None and inference='vi', 'ep' or 'laplace'."
            )
    codes = proba.argmax(axis=1)
    if len(models) == 1 and models[0].n_latents is None:
        codes[:] = np.argmax(models[0].likelihood.labels)
    return [_influences(estimator, models, c, X[i : i + 1], n) for i, c in enumerate(codes)]


def _influences(estimator: Any, models: Any, c: int, x: Any, n: int) -> Influences:
    """Return the shares of the mean at one row, of the latent function that supports class c."""
    model = models[c % len(models)]
    rows: Any = estimator._rows
    q, first = model.posterior, model.problem.first
    function = 0 if model.n_latents is None else c
    kernel, alpha = q.kernels[function % len(q.kernels)], q.alpha.reshape(len(q.inputs), -1)[:, function]
    k, own, prior = matrix(kernel, x, q.inputs)[0], diag(kernel, q.inputs), float(diag(kernel, x)[0])
    shares = alpha * k
    if first is not None:  # each data point stands there once for each copy
        shares, k, own = np.add.reduceat(shares, first), k[first], own[first]
    best = np.argsort(-np.abs(shares), kind="stable")[:n]
    position = np.unique(rows.home, return_index=True)[1][best]
    common = max(0.0, min(k.min(), matrix(kernel, q.inputs[:SOME]).min()))
    scale = np.sqrt((prior - common) * (own - common))
    mean, var = (float(each.ravel()[function]) for each in model.latent(x))
    return Influences(
        supports=estimator.classes_[c],
        mean=mean,
        carried=float(np.abs(shares[best]).sum() / max(np.abs(shares).sum(), 1e-300)),
        variance_left=var / prior,
        closest=float(np.max((k - common) / np.maximum(scale, 1e-300))),
        rows=position,
        labels=estimator.classes_[rows.truth[position]],
        shares=shares[best],
        distances=np.sqrt(np.maximum(1.0 - 2.0 * k[best] / (prior + own[best]), 0.0)),
    )


def doubtful_labels(estimator: Any, n: int | None) -> list[DoubtfulLabel]:
    """Return the training rows whose labels are the least probable from the other rows."""
    if n is not None:
        check_integers(n=n)
    p = estimator.loo_proba_
    if estimator._rows is None:
        raise ValueError("Labels are not stored for rows that are read in passes: fit to rows in memory.")
    return improbable(p, estimator._rows.truth, estimator.classes_)[:n]


def improbable(p: Array, truth: Any, classes: Any) -> list[DoubtfulLabel]:
    """Return all rows with their labels and probabilities, the least probable label first."""
    every, likely = np.arange(len(p)), p.argmax(axis=1)
    columns = every, classes[truth], p[every, truth], classes[likely], p[every, likely]
    order = np.argsort(columns[2], kind="stable")
    return [
        DoubtfulLabel(int(row), label, float(own), best, float(top))
        for row, label, own, best, top in zip(*(column[order] for column in columns), strict=True)
    ]
