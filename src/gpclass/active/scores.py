"""The scores of a pool, and the choice of rows by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr
from sklearn.utils import check_random_state

from gpclass.active.draws import (
    drawn_probabilities,
    greedy_by_draws,
    joint_probabilities,
    reduction_by_draws,
)
from gpclass.active.gaussian import bald_of_link, greedy, reduction
from gpclass.active.models import has_link, inputs_of, is_gaussian, joined_rows, latents_of
from gpclass.core.protocols import Array
from gpclass.estimator import GaussianProcessClassifier
from gpclass.learning.multiclass import OneVsOne
from gpclass.validation import take

__all__ = ["bald", "entropy", "expected_log_loss_reduction", "query"]

SCORES = ("bald", "entropy", "expected_log_loss_reduction")
POINTS = 1024  # of a quasi-random sequence, for three classes and more

Score = Callable[[Any, Any], Array]


def entropy(estimator: Any, X: Any) -> Array:
    """Return the entropy of the predicted class, in nats.

    Parameters
    ----------
    estimator : classifier
        Any fitted classifier with ``predict_proba``.
    X : array-like of shape (n, n_features)
        Pool of unlabelled rows.

    Returns
    -------
    ndarray of shape (n,)
        Largest where the probabilities are equal, whether for noise in the labels or for lack of data.

    Examples
    --------
    >>> from gpclass import GaussianProcessClassifier, active
    >>> from gpclass.datasets import interval
    >>> from gpclass.kernels import RBF
    >>> split = interval()
    >>> clf = GaussianProcessClassifier(4.0 * RBF(10.0), optimizer=None).fit(split.X, split.y)
    >>> active.entropy(clf, [[10.0], [26.0], [200.0]]).round(2)
    array([0.17, 0.68, 0.69])
    """
    out: Array = entr(estimator.predict_proba(X)).sum(axis=1)
    return out


def bald(estimator: Any, X: Any) -> Array:
    """Return the mutual information between a row's label and the latent function, in nats.

    Rows whose label is noise score low, however uncertain it is: the score is what is left of the entropy
    when f is known. With two classes it is by quadrature, to about 1e-10; with three or more by 1024
    quasi-random points of the latent values, or by as many draws where those are not Gaussian.

    Parameters
    ----------
    estimator : GaussianProcessClassifier
        Fitted; not with ``multi_class="one_vs_one"``, which has no latent function for each class.
    X : array-like of shape (n, n_features)
        Pool of unlabelled rows.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    Where the classes meet at x = 26 a label is as uncertain as far away, and tells less:

    >>> from gpclass import GaussianProcessClassifier, active
    >>> from gpclass.datasets import interval
    >>> from gpclass.kernels import RBF
    >>> split = interval()
    >>> clf = GaussianProcessClassifier(4.0 * RBF(10.0), optimizer=None).fit(split.X, split.y)
    >>> active.bald(clf, [[10.0], [26.0], [200.0]]).round(2)
    array([0.06, 0.12, 0.37])
    """
    model, X = latents_of(estimator), inputs_of(estimator, X)
    if has_link(model):
        return bald_of_link(model, X)
    out = np.empty(len(X))
    for rows, p in drawn_probabilities(model, X, np.random.default_rng(0), POINTS):
        out[rows] = entr(p.mean(axis=1)).sum(axis=1) - entr(p).sum(axis=2).mean(axis=1)
    return np.maximum(out, 0.0, out=out)


def expected_log_loss_reduction(
    estimator: Any, X: Any, X_target: Any = None, *, n_draws: int = 2000, random_state: Any = 0
) -> Array:
    """Return by how much the log loss at the targets is expected to fall once a row's label is known.

    With one Gaussian latent function, the posterior is conditioned on each possible label in turn: the
    label's factor tilts the marginal of f at the row, and its first two moments carry over to the targets,
    a change of rank one (EP's update, made once). Other models are conditioned by weighting joint draws.

    Parameters
    ----------
    estimator : GaussianProcessClassifier
        Fitted; not with ``multi_class="one_vs_one"``.
    X : array-like of shape (n, n_features)
        Pool of unlabelled rows.
    X_target : array-like of shape (n_targets, n_features), default=None
        Rows like those that are to be predicted. None takes the pool.
    n_draws : int, default=2000
        Draws, for models that need them.
    random_state : int, RandomState or None, default=0
        For the draws.

    Returns
    -------
    ndarray of shape (n,)
        Mean over the targets, in nats.

    Examples
    --------
    >>> from gpclass import GaussianProcessClassifier, active
    >>> from gpclass.datasets import interval
    >>> from gpclass.kernels import RBF
    >>> split = interval()
    >>> clf = GaussianProcessClassifier(4.0 * RBF(10.0), optimizer=None).fit(split.X, split.y)
    >>> gain = active.expected_log_loss_reduction(clf, [[10.0], [26.0], [200.0]], split.X_test)
    >>> gain.round(4)
    array([0.0014, 0.0021, 0.    ])
    """
    model, X = latents_of(estimator), inputs_of(estimator, X)
    Z = X if X_target is None else inputs_of(estimator, X_target)
    if is_gaussian(model):
        out, step = np.empty(len(X)), max(64, len(Z))
        for start in range(0, len(X), step):
            rows = np.arange(start, min(start + step, len(X)))
            mean, cov = model.covariance(joined_rows(take(X, rows), Z))
            out[rows] = reduction(model.problem.likelihood, mean, cov, len(rows))
        return out
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    p = joint_probabilities(model, joined_rows(X, Z), n_draws, rng)
    return reduction_by_draws(p[:, : len(X)], p[:, len(X) :])


def query(
    estimator: Any,
    X: Any,
    n: int = 1,
    *,
    score: str | Score = "bald",
    X_target: Any = None,
    n_draws: int = 2000,
    random_state: Any = 0,
) -> NDArray[np.intp]:
    """Return the positions of the n rows most worth a label, the best first.

    A batch is chosen greedily. Each further row is scored as if the rows before it had been labelled, on
    average over the labels they may turn out to have: what a chosen row will tell does not count twice.

    Parameters
    ----------
    estimator : classifier
        Fitted; a `GaussianProcessClassifier`, unless ``score`` works with others.
    X : array-like of shape (n_pool, n_features)
        Pool of unlabelled rows.
    n : int, default=1
        How many, at most as many as there are.
    score : {"bald", "entropy", "expected_log_loss_reduction"} or callable, default="bald"
        A callable gets ``(estimator, X)`` and returns a number a row; its batches are the n largest, as are
        those of the expected reduction for models that need draws.
    X_target : array-like, default=None
        For the expected reduction.
    n_draws : int, default=2000
        Draws of f, where a batch or the expected reduction needs them.
    random_state : int, RandomState or None, default=0
        For the draws.

    Returns
    -------
    ndarray of shape (n,) of int

    Examples
    --------
    >>> from gpclass import GaussianProcessClassifier, active
    >>> from gpclass.datasets import interval
    >>> from gpclass.kernels import RBF
    >>> split = interval()
    >>> clf = GaussianProcessClassifier(4.0 * RBF(10.0), optimizer=None).fit(split.X, split.y)
    >>> split.X_test[active.query(clf, split.X_test, n=3)].ravel()
    array([65., 99., 64.])
    """
    size = len(X)
    if not 1 <= n <= size:
        raise ValueError(f"n={n} rows were asked for, expected between 1 and the {size} rows of the pool.")
    if callable(score):
        return _largest(np.asarray(score(estimator, X), dtype=float), n)
    if score not in SCORES:
        raise ValueError(f"score={score!r} is not known, expected one of {', '.join(SCORES)} or a callable.")
    batch = n > 1 and (score != "entropy" or isinstance(estimator, GaussianProcessClassifier))
    if batch and (rows := _batch(estimator, X, n, score, X_target, n_draws, random_state)) is not None:
        return rows
    if score == "expected_log_loss_reduction":
        gain = expected_log_loss_reduction(estimator, X, X_target, n_draws=n_draws, random_state=random_state)
        return _largest(gain, n)
    return _largest((bald if score == "bald" else entropy)(estimator, X), n)


def _batch(
    estimator: Any, X: Any, n: int, score: str, X_target: Any, n_draws: int, random_state: Any
) -> NDArray[np.intp] | None:
    """Choose a batch greedily, or return None where that is not known how."""
    if score == "entropy" and isinstance(estimator.base_estimator_, OneVsOne):
        return None
    model, pool = latents_of(estimator), inputs_of(estimator, X)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    if is_gaussian(model):
        Z = None if X_target is None else inputs_of(estimator, X_target)
        return greedy(model, pool, Z, n, score, rng)
    if score == "expected_log_loss_reduction":
        return None
    return greedy_by_draws(joint_probabilities(model, pool, n_draws, rng), n, score == "bald", rng)


def _largest(scores: Array, n: int) -> NDArray[np.intp]:
    return np.argsort(-scores, kind="stable")[:n]
