"""The latent functions of a fitted classifier; no other module of this package looks inside a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpclass.core.linalg import row_tiles
from gpclass.core.protocols import Array
from gpclass.learning.prediction import joined
from gpclass.likelihoods.joint import normal_points
from gpclass.posteriors.process import symmetric_root
from gpclass.validation import check_inputs


@dataclass(frozen=True, slots=True, eq=False)
class Latents:
    """The posterior of the latent functions, with the likelihood that turns them into class probabilities.

    ``model`` is the fitted model, or the models of one class against the rest (``separate``).
    """

    model: Any
    likelihood: Any
    separate: bool

    @property
    def has_link(self) -> bool:
        """Whether p(y=+1|f) is the link function of one latent value."""
        return not self.separate and self.likelihood.n_latents(3) == 1

    @property
    def can_condition(self) -> bool:
        """Whether there is one Gaussian latent function, to be conditioned on a label in closed form."""
        return self.has_link and self._is_gaussian

    @property
    def _is_gaussian(self) -> bool:
        return all(sum(map(len, model.posterior.weights)) == 1 for model in self.model.models)

    def probabilities(self, f: Array) -> Array:
        """Return p(class|f) for latent values of shape (..., C), or (...) with one latent function."""
        L = self.likelihood.log_classes(f)
        if self.separate:
            L = L[..., 1]
            L = L - np.logaddexp.reduce(L, axis=-1, keepdims=True)
        return np.asarray(np.exp(L))

    def joint_probabilities(self, X: Any, size: int, rng: np.random.Generator) -> Array:
        """Return p(class|f) at draws of f over all rows together, shape (size, n, C)."""
        return self.probabilities(np.moveaxis(self.model.sample(X, size, rng), -1, 0))

    def row_probabilities(self, X: Any, size: int, rng: np.random.Generator) -> Iterator[tuple[slice, Array]]:
        """Yield p(class|f) for the latent values of each row separately, shape (rows, size, C).

        The values are lattice points where the posterior is Gaussian (``size`` is twice a prime number), and random
        draws elsewhere.
        """
        for rows in row_tiles(len(X), 2 * size):
            if self._is_gaussian:
                mean, root = self._moments(X[rows])
                f = mean[:, None] + normal_points(size // 2, mean.shape[1]).T @ root.transpose(0, 2, 1)
            else:
                f = np.moveaxis(self.model.sample(X[rows], size, rng), -1, 1)
            yield rows, self.probabilities(f)

    def _moments(self, X: Any) -> tuple[Array, Array]:
        """Return the means (n, C) of the latent values of each row, and A (n, C, C) with covariance A Aᵀ."""
        if self.separate:
            mean, var = self.model.latent(X)
            return mean, np.sqrt(var)[:, :, None] * np.eye(mean.shape[1])
        mean, cov = self.model.covariance(X)
        return mean, symmetric_root(cov)


def find_latents(estimator: Any) -> Latents | None:
    """Return the latent functions of a fitted classifier, or None if it has none for each class."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "posterior_"):
        return None
    model = estimator.base_estimator_
    separate = len(model.models) > 1
    if separate and estimator.multi_class == "one_vs_one":
        return None
    return Latents(model, model.models[0].likelihood, separate)


def latents_of(estimator: Any) -> Latents:
    """Return the latent functions of a fitted classifier, or say that it has none."""
    latents = find_latents(estimator)
    if latents is None:
        raise ValueError(
            f"{estimator!r} has no latent function for each class: use score 'entropy', or a "
            "GaussianProcessClassifier with multi_class='joint'."
        )
    return latents


def inputs_of(estimator: Any, X: Any) -> Any:
    """Return the rows of X, checked, as the fitted model takes them."""
    return check_inputs(estimator, X, vectors=estimator.kernel_.requires_vector_input, fitting=False)


def gaussians_at(posterior: Any, X: Any) -> Iterator[tuple[slice, Array, Array, Array]]:
    """Yield rows of X with means (rows, S), standard deviations (rows, S) and weights (S,).

    At each row one latent function is a mixture of S Gaussians; S is 1 unless it was sampled.
    """
    weight = np.concatenate(posterior.weights)
    for rows, parts in posterior.blocks(X):
        yield rows, *joined(parts), weight
