"""Scores of the rows of a pool, and the choice of the rows whose labels are most informative."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr
from sklearn.utils.validation import check_is_fitted

from gpclass.core.checks import check_integers, check_option, is_integer, seed_of
from gpclass.core.linalg import row_tiles
from gpclass.core.protocols import Array
from gpclass.learning.prediction import class_draws, joined, normals
from gpclass.likelihoods.joint import normal_points

POINTS = 509  # pairs of latent values per row for three classes or more: a lattice needs a prime number
STEP = 0.25  # grid step, in standard deviations or in widths of the link, whichever is smaller
REACH, BUMP = 9.0, 40.0  # ends of the grid: standard deviations of f, and widths of the link for H[y|f]
FANTASIES = 32  # sets of labels drawn for the rows that are already in a batch


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
    model, X = _model_of(estimator), estimator._check_fitted_inputs(X)
    likelihood, posterior, out = model.likelihood, model.posterior, np.empty(len(X))
    if model.n_latents is None:
        for rows, mean, std, weight in gaussians_at(posterior, X):
            p = np.einsum("nsc,s->nc", np.exp(likelihood.log_predict(mean, std * std)), weight)
            out[rows] = entr(p).sum(axis=1) - expected_entropy(likelihood, mean, std) @ weight
        return np.maximum(out, 0.0)
    weight, noise = np.concatenate(posterior.weights), [normal_points(POINTS, model.n_latents).T]
    if len(weight) > 1:
        noise = normals(posterior.weights, posterior.latent_shape, np.random.default_rng(0))
    weight = weight if len(weight) > 1 else np.full(len(noise[0]), 1.0 / len(noise[0]))
    for tile in row_tiles(len(X), 4 * len(weight)):
        for rows, parts in posterior.blocks(X[tile]):
            p = np.exp(likelihood.log_classes(class_draws(parts, noise)))
            known = np.einsum("nsc,s->n", entr(p), weight)
            out[tile][rows] = entr(np.einsum("nsc,s->nc", p, weight)).sum(axis=1) - known
    return np.maximum(out, 0.0)


def expected_entropy(likelihood: Any, mean: Array, std: Array) -> Array:
    """Return E H[y|f] for f ~ N(mean, std²), elementwise, of a likelihood with a link function.

    Trapezoidal sums of analytic functions converge exponentially in the step (Trefethen & Weideman 2014). H[y|f]
    is a constant (zero unless labels are flipped) plus a bump about f = 0, whose width is that of the link function.
    A narrow Gaussian is summed over its own grid, a wide one over that of the bump.
    """

    def entropy(f: Array) -> Array:
        L = likelihood.log_classes(f)
        return np.asarray(-(np.exp(L) * L).sum(axis=-1))

    width, shape = likelihood.probit_scale, np.shape(mean)
    mean, std = np.ravel(mean), np.ravel(std)
    narrow, wide = np.flatnonzero(std <= width), np.flatnonzero(std > width)
    z, f = np.arange(-REACH, REACH + STEP, STEP), width * np.arange(-BUMP, BUMP + STEP, STEP)
    weight, far = np.exp(-0.5 * z * z), entropy(f[:1])[0]
    bump = (entropy(f) - far) * (STEP * width / np.sqrt(2.0 * np.pi))
    out = np.empty(mean.shape)
    for part in (narrow[rows] for rows in row_tiles(len(narrow), len(z))):
        out[part] = entropy(mean[part, None] + std[part, None] * z) @ weight / weight.sum()
    for part in (wide[rows] for rows in row_tiles(len(wide), len(f))):
        away = (f - mean[part, None]) / std[part, None]
        out[part] = far + np.exp(-0.5 * np.minimum(away * away, 1400.0)) @ bump / std[part]
    return out.reshape(shape)


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
    check_option("score", score, score in ("bald", "entropy"), "'bald' or 'entropy'")
    check_integers(n_draws=n_draws)
    scores = (bald if score == "bald" else entropy)(estimator, X)
    if n == 1 or not _has_latents(estimator):
        return np.argsort(-scores, kind="stable")[:n]
    rng, model = np.random.default_rng(seed_of(random_state)), _model_of(estimator)
    f = np.moveaxis(model.posterior.sample(estimator._check_fitted_inputs(X), n_draws, rng), -1, 0)
    return greedy(np.exp(model.likelihood.log_classes(f)), n, scores, rng, noisy=score == "entropy")


def greedy(p: Array, n: int, exact: Array, rng: np.random.Generator, *, noisy: bool) -> NDArray[np.intp]:
    """Choose n rows one by one, from probabilities at joint draws of f, (draws, rows, C).

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


def _has_latents(estimator: Any) -> bool:
    """Whether a fitted classifier has one model of all its classes, whose latent functions can be drawn jointly."""
    check_is_fitted(estimator)
    return len(getattr(getattr(estimator, "base_estimator_", None), "models", ())) == 1


def _model_of(estimator: Any) -> Any:
    if not _has_latents(estimator):
        raise ValueError(
            f"{estimator!r} has no joint model of its classes: use score 'entropy', or a "
            "GaussianProcessClassifier with multi_class='joint'."
        )
    return estimator.base_estimator_


def gaussians_at(posterior: Any, X: Any) -> Iterator[tuple[slice, Array, Array, Array]]:
    """Yield rows of X with means (rows, S), standard deviations (rows, S) and weights (S,) of one latent function.

    At each row it is a mixture of S Gaussians; S is 1 unless it was sampled.
    """
    weight = np.concatenate(posterior.weights)
    for rows, parts in posterior.blocks(X):
        yield rows, *joined(parts), weight
