"""Scores of the rows of a pool, and the choice of the rows whose labels are most informative."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr
from sklearn.utils.validation import check_is_fitted

from gpclass.active.information import expected_entropy, greedy, reduction, reduction_by_draws
from gpclass.core.checks import check_integers, check_option, is_integer, seed_of
from gpclass.core.linalg import row_tiles
from gpclass.core.protocols import Array
from gpclass.learning.prediction import joined
from gpclass.likelihoods.largest import normal_points
from gpclass.posteriors.process import symmetric_root

POINTS = 509  # pairs of latent values per row for three classes or more: a lattice needs a prime number


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
    At the class boundary, x = 26, a label is as uncertain as far away, but less informative about f:

    >>> from gpclass import GaussianProcessClassifier, active
    >>> from gpclass.datasets import interval
    >>> from gpclass.kernels import RBF
    >>> split = interval()
    >>> clf = GaussianProcessClassifier(4.0 * RBF(10.0), optimizer=None).fit(split.X, split.y)
    >>> active.bald(clf, [[10.0], [26.0], [200.0]]).round(2)
    array([0.06, 0.12, 0.37])
    """
    model, X = _model_of(estimator), _inputs_of(estimator, X)
    likelihood, out = model.likelihood, np.empty(len(X))
    if model.n_latents is None:
        for rows, mean, std, weight in gaussians_at(model.posterior, X):
            p = np.einsum("nsc,s->nc", np.exp(likelihood.log_predict(mean, std * std)), weight)
            out[rows] = entr(p).sum(axis=1) - expected_entropy(likelihood, mean, std) @ weight
        return np.maximum(out, 0.0)
    points, rng = normal_points(POINTS, model.n_latents), np.random.default_rng(0)
    for rows in row_tiles(len(X), 4 * POINTS):
        if _is_gaussian(model):
            mean, cov = model.covariance(X[rows])
            f = mean + np.einsum("ncd,ds->snc", symmetric_root(cov), points)
            p = np.exp(likelihood.log_classes(f))
        else:
            p = _at_draws(model, X[rows], 2 * POINTS, rng)
        out[rows] = entr(p.mean(axis=0)).sum(axis=1) - entr(p).sum(axis=2).mean(axis=0)
    return np.maximum(out, 0.0)


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
    model, X = _model_of(estimator), _inputs_of(estimator, X)
    Z = X if X_target is None else _inputs_of(estimator, X_target)
    if model.n_latents is not None or not _is_gaussian(model):
        p = _at_draws(model, _joined(X, Z), n_draws, np.random.default_rng(seed_of(random_state)))
        return reduction_by_draws(p[:, : len(X)], p[:, len(X) :], np.full(n_draws, 1.0 / n_draws))
    out, step = np.empty(len(X)), max(64, len(Z))
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        mean, cov = model.covariance(_joined(X[rows], Z))
        out[rows] = reduction(model.likelihood, mean, cov, len(mean) - len(Z))
    return out


def query(
    estimator: Any,
    X: Any,
    n: int = 1,
    *,
    score: str = "bald",
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
    score : {"bald", "entropy", "expected_log_loss_reduction"}, default="bald"
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
    fine = is_integer(n) and 1 <= n <= len(X)
    check_option("n", n, fine, f"an integer from 1 to {len(X)}, the number of rows of the pool")
    check_option("score", score, score in SCORES, f"one of {', '.join(SCORES)}")
    check_integers(n_draws=n_draws)
    reduces = score == "expected_log_loss_reduction"
    options = {"X_target": X_target, "n_draws": n_draws, "random_state": random_state} if reduces else {}
    scores = SCORES[score](estimator, X, **options)
    if n == 1 or not _has_latents(estimator):
        return np.argsort(-scores, kind="stable")[:n]
    rng, rows = np.random.default_rng(seed_of(random_state)), _inputs_of(estimator, X)
    if reduces:
        rows = _joined(rows, rows if X_target is None else _inputs_of(estimator, X_target))
    p = _at_draws(_model_of(estimator), rows, n_draws, rng)
    return greedy(p[:, : len(X)], p[:, len(X) :], n, score, scores, rng)


SCORES: dict[str, Callable[..., Array]] = {
    "bald": bald,
    "entropy": entropy,
    "expected_log_loss_reduction": expected_log_loss_reduction,
}


def _at_draws(model: Any, X: Any, size: int, rng: np.random.Generator) -> Array:
    """Return p(class|f) at draws of f over all rows together, shape (size, n, C)."""
    f = np.moveaxis(model.sample(X, size, rng), -1, 0)
    return np.asarray(np.exp(model.likelihood.log_classes(f)))


def _joined(X: Any, Z: Any) -> Any:
    return np.concatenate([X, Z]) if isinstance(X, np.ndarray) else [*X, *Z]


# --------------------------------------------------------------------- the fitted model


def _has_latents(estimator: Any) -> bool:
    """Whether a fitted classifier has one model of all its classes, whose latent functions can be drawn jointly."""
    check_is_fitted(estimator)
    return len(getattr(getattr(estimator, "base_estimator_", None), "models", ())) == 1


def _model_of(estimator: Any) -> Any:
    """Return the model of all classes of a fitted classifier, or raise if it has none."""
    if not _has_latents(estimator):
        raise ValueError(
            f"{estimator!r} has no joint model of its classes: use score 'entropy', or a "
            "GaussianProcessClassifier with multi_class='joint'."
        )
    return estimator.base_estimator_


def _is_gaussian(model: Any) -> bool:
    """Whether the posterior is one Gaussian process, and not a mixture over draws."""
    return sum(map(len, model.posterior.weights)) == 1


def _inputs_of(estimator: Any, X: Any) -> Any:
    """Return the checked rows of X in the form that the fitted model takes."""
    return estimator._check_fitted_inputs(X)


def gaussians_at(posterior: Any, X: Any) -> Iterator[tuple[slice, Array, Array, Array]]:
    """Yield rows of X with means (rows, S), standard deviations (rows, S) and weights (S,).

    At each row one latent function is a mixture of S Gaussians; S is 1 unless it was sampled.
    """
    weight = np.concatenate(posterior.weights)
    for rows, parts in posterior.blocks(X):
        yield rows, *joined(parts), weight
