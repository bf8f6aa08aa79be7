"""Active learning: choose the rows of an unlabelled pool whose labels are most informative.

`query` chooses rows by one of two scores, in nats. With y the label of a row, f the latent function, and everything
conditional on the training data, they are::

    entropy    H[y]                     uncertainty of the label, whatever its cause: any classifier
    bald       H[y] - E_f H[y|f]        information of the label about f: I(y; f) (Houlsby et al. 2011)

Hyperparameters are kept, and no model is fitted again. `bald` needs a `GaussianProcessClassifier` with one model of
all classes (``multi_class="joint"``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, ndtri
from scipy.stats import entropy
from sklearn.utils.validation import check_is_fitted

from gpclass.core.checks import check_integers, check_option, is_integer, seed_of
from gpclass.core.linalg import row_tiles
from gpclass.core.protocols import Array
from gpclass.learning.prediction import class_draws, normals
from gpclass.likelihoods.largest import normal_points

__all__ = ["bald", "query"]

POINTS = 509  # pairs of latent values per row; a prime number, as the lattice rule requires
FANTASIES = 32  # number of label sets drawn for the rows that are already in a batch


def bald(estimator: Any, X: Any) -> Array:
    """Return the mutual information between the label of each row and the latent function.

    It is the entropy of the label minus its expected entropy if f were known, so rows whose labels are noise
    have low scores. It is an average over 1018 quantiles or lattice points of the latent values at a row, or over the
    draws of f if it was sampled.

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
    model = _joint_model(estimator)
    if model is None:
        raise ValueError(
            f"{estimator!r} has no joint model of its classes: use score 'entropy', or a "
            "GaussianProcessClassifier with multi_class='joint'."
        )
    X, posterior = estimator._check_fitted_inputs(X), model.posterior
    out, shape, weight = np.empty(len(X)), posterior.latent_shape, np.concatenate(posterior.weights)
    if len(weight) > 1:
        noise = normals(posterior, np.random.default_rng(0))
    else:  # lattice points of several values, quantiles of one
        u = (np.arange(2 * POINTS) + 0.5) / (2 * POINTS)
        noise, weight = (
            [normal_points(POINTS, shape[0]).T if shape else ndtri(u)],
            np.full(len(u), 1.0 / len(u)),
        )
    for tile in row_tiles(len(X), 4 * len(weight)):
        for rows, parts in posterior.blocks(X[tile]):
            p = np.exp(model.likelihood.log_classes(class_draws(parts, noise)))
            known = np.einsum("nsc,s->n", entr(p), weight)
            out[tile][rows] = entr(np.einsum("nsc,s->nc", p, weight)).sum(axis=1) - known
    return np.maximum(out, 0.0)


def query(
    estimator: Any, X: Any, n: int = 1, *, score: str = "bald", n_draws: int = 2000, random_state: Any = 0
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
    score : {"bald", "entropy"}, default="bald"
    n_draws : int, default=2000
        Number of draws of the latent function for a batch.
    random_state : int, RandomState or None, default=0
        For the draws.

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
    check_option("score", score, score in ("bald", "entropy"), "'bald' or 'entropy'")
    check_integers(n_draws=n_draws)
    scores = bald(estimator, X) if score == "bald" else entropy(estimator.predict_proba(X), axis=1)
    model, rng = _joint_model(estimator), np.random.default_rng(seed_of(random_state))
    if n == 1 or model is None:
        return np.argsort(-scores, kind="stable")[:n]
    f = np.moveaxis(model.posterior.sample(estimator._check_fitted_inputs(X), n_draws, rng), -1, 0)
    return greedy(np.exp(model.likelihood.log_classes(f)), n, scores, rng, noisy=score == "entropy")


def greedy(p: Array, n: int, exact: Array, rng: np.random.Generator, *, noisy: bool) -> NDArray[np.intp]:
    """Return n rows chosen one after another, from probabilities at joint draws of f, (draws, rows, C).

    Each row is scored as if those before it were labelled: the draws are weighted by the probability of labels drawn
    for these rows, and the score is averaged over the sets of labels. The exact scores of single rows are a
    control variate, which removes most of the noise. ``noisy`` scores include the entropy of labels given f.
    """
    size, rows, C = p.shape
    given_f = np.zeros((size, rows)) if noisy else entr(p).sum(axis=2)

    def mean_score(weight: Array) -> Array:
        """Return the score of each row, averaged over several weightings of the draws, (m, draws)."""
        own = (weight @ p.reshape(size, -1)).reshape(-1, rows, C)
        return np.asarray(entr(own).sum(axis=2).mean(axis=0) - weight.mean(axis=0) @ given_f)

    weight, chosen = np.full((FANTASIES, size), 1.0 / size), [int(np.argmax(exact))]
    correction = exact - mean_score(weight[:1])
    while len(chosen) < n:
        last = p[:, chosen[-1]]
        # Labels of the row chosen last, stratified over the sets to reduce variance.
        u = rng.permutation((np.arange(FANTASIES) + rng.random()) / FANTASIES)
        labels = np.minimum((np.cumsum(weight @ last, axis=1) < u[:, None]).sum(axis=1), C - 1)
        weight = weight * last.T[labels]
        weight /= weight.sum(axis=1, keepdims=True)
        worth = mean_score(weight) + correction
        worth[chosen] = -np.inf
        chosen.append(int(np.argmax(worth)))
    return np.array(chosen, dtype=np.intp)


def _joint_model(estimator: Any) -> Any:
    """Return the model of all classes of a fitted classifier, from which f can be drawn jointly, or None."""
    check_is_fitted(estimator)
    model = getattr(estimator, "base_estimator_", None)
    return model if len(getattr(model, "models", ())) == 1 else None
