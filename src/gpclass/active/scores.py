"""Scores of the rows of a pool, and the choice of the rows whose labels are most informative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from gpclass.active.draws import greedy, reduction_by_draws
from gpclass.active.gaussian import bald_of_link, reduction
from gpclass.active.latents import find_latents, inputs_of, latents_of
from gpclass.core.checks import check_integers, check_option, is_integer, seed_of
from gpclass.core.protocols import Array
from gpclass.validation import take

POINTS = 2 * 509  # latent values per row for three classes and more: pairs of a lattice with a prime number


def entropy(estimator: Any, X: Any) -> Array:
    """Return the entropy of the predicted class at each row, for any classifier with ``predict_proba``.

    It is largest where the probabilities are equal, because of noise in the labels or lack of data.

    Parameters
    ----------
    estimator, X
        A fitted classifier, and the pool of unlabelled rows.

    Returns
    -------
    ndarray of shape (n,)
        Entropies in nats.

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
    """Return the mutual information between the label of each row and the latent function.

    It is the entropy of the label minus its expected entropy if f were known, so rows whose labels are noise
    have low scores. With two classes it is computed by quadrature, to about 1e-10; with three or more from
    1018 lattice points of the latent values, or from as many draws if these are not Gaussian.

    Parameters
    ----------
    estimator : fitted classifier
    X : array-like of shape (n, n_features)
        Pool of unlabelled rows.

    Returns
    -------
    ndarray of shape (n,)
        Mutual information in nats.

    Examples
    --------
    Where the classes meet, at x = 26, a label is as uncertain as far away, but tells less about f:

    >>> from gpclass import GaussianProcessClassifier, active
    >>> from gpclass.datasets import interval
    >>> from gpclass.kernels import RBF
    >>> split = interval()
    >>> clf = GaussianProcessClassifier(4.0 * RBF(10.0), optimizer=None).fit(split.X, split.y)
    >>> active.bald(clf, [[10.0], [26.0], [200.0]]).round(2)
    array([0.06, 0.12, 0.37])
    """
    latents, X = latents_of(estimator), inputs_of(estimator, X)
    if latents.has_link:
        return bald_of_link(latents, X)
    out = np.empty(len(X))
    for rows, p in latents.row_probabilities(X, POINTS, np.random.default_rng(0)):
        out[rows] = entr(p.mean(axis=1)).sum(axis=1) - entr(p).sum(axis=2).mean(axis=1)
    return np.maximum(out, 0.0, out=out)


def expected_log_loss_reduction(
    estimator: Any, X: Any, X_target: Any = None, *, n_draws: int = 2000, random_state: Any = 0
) -> Array:
    """Return the expected reduction of the mean log loss at the targets once the label of a row is known.

    With one Gaussian latent function, the posterior is conditioned on each possible label by moment matching
    at the row, an update of rank one as in EP. Other models are conditioned by weighting joint draws.

    Parameters
    ----------
    estimator : GaussianProcessClassifier
    X : array-like of shape (n, n_features)
        Pool of unlabelled rows.
    X_target : array-like of shape (n_targets, n_features), default=None
        Rows like those to be predicted. None uses the pool.
    n_draws : int, default=2000
        Number of draws, for models that need them.
    random_state : int, RandomState or None, default=0
        For the draws.

    Returns
    -------
    ndarray of shape (n,)

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
    check_integers(n_draws=n_draws)
    latents, X = latents_of(estimator), inputs_of(estimator, X)
    Z = X if X_target is None else inputs_of(estimator, X_target)
    if not latents.can_condition:
        p = latents.joint_probabilities(_joined(X, Z), n_draws, _generator(random_state))
        return reduction_by_draws(p[:, : len(X)], p[:, len(X) :], np.full(n_draws, 1.0 / n_draws))
    out, step = np.empty(len(X)), max(64, len(Z))
    for start in range(0, len(X), step):
        rows = np.arange(start, min(start + step, len(X)))
        mean, cov = latents.model.covariance(_joined(take(X, rows), Z))
        out[rows] = reduction(latents.likelihood, mean, cov, len(rows))
    return out


def query(
    estimator: Any,
    X: Any,
    n: int = 1,
    *,
    score: str | Callable[[Any, Any], Array] = "bald",
    X_target: Any = None,
    n_draws: int = 2000,
    random_state: Any = 0,
) -> NDArray[np.intp]:
    """Return the positions of the n rows whose labels are most informative, the best first.

    A batch is chosen greedily: each further row is scored as if the rows before it had been labelled, averaged over
    draws of the latent function and of these labels, so that the same information does not count twice.

    Parameters
    ----------
    estimator, X
        A fitted classifier, and the pool of unlabelled rows.
    n : int, default=1
        Number of rows, at most the size of the pool.
    score : {"bald", "entropy", "expected_log_loss_reduction"} or callable, default="bald"
        A callable takes ``(estimator, X)`` and returns one number per row. Its batches are the n largest scores.
    X_target, n_draws, random_state
        As for `expected_log_loss_reduction`; batches need draws, too.

    Returns
    -------
    ndarray of int of shape (n,)

    Examples
    --------
    >>> from gpclass import GaussianProcessClassifier, active
    >>> from gpclass.datasets import interval
    >>> from gpclass.kernels import RBF
    >>> split = interval()
    >>> clf = GaussianProcessClassifier(4.0 * RBF(10.0), optimizer=None).fit(split.X, split.y)
    >>> split.X_test[active.query(clf, split.X_test, n=3)].ravel()
    array([65., 99.,  0.])
    """
    size = len(X)
    fine = is_integer(n) and 1 <= n <= size
    check_option("n", n, fine, f"an integer from 1 to {size}, the number of rows of the pool")
    check_integers(n_draws=n_draws)
    if callable(score):
        return _largest(score(estimator, X), n)
    if score not in SCORES:
        raise ValueError(f"score={score!r} is not known, expected one of {', '.join(SCORES)} or a callable.")
    reduces = score == "expected_log_loss_reduction"
    options = {"X_target": X_target, "n_draws": n_draws, "random_state": random_state} if reduces else {}
    scores = SCORES[score](estimator, X, **options)
    latents = find_latents(estimator)
    if n == 1 or latents is None:
        return _largest(scores, n)
    pool, rng = inputs_of(estimator, X), _generator(random_state)
    targets = pool if X_target is None else inputs_of(estimator, X_target)
    p = latents.joint_probabilities(_joined(pool, targets) if reduces else pool, n_draws, rng)
    return greedy(p[:, :size], p[:, size:], n, score, scores, rng)


SCORES: dict[str, Callable[..., Array]] = {
    "bald": bald,
    "entropy": entropy,
    "expected_log_loss_reduction": expected_log_loss_reduction,
}


def _joined(X: Any, Z: Any) -> Any:
    """Return the rows of both."""
    return np.concatenate([X, Z]) if isinstance(X, np.ndarray) else [*X, *Z]


def _generator(random_state: Any) -> np.random.Generator:
    return np.random.default_rng(seed_of(random_state))


def _largest(scores: Any, n: int) -> NDArray[np.intp]:
    return np.argsort(-np.asarray(scores, dtype=float), kind="stable")[:n]
