"""Access to the fitted model of a classifier; no other module of this package uses private parts of an estimator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpclass.core.protocols import Array
from gpclass.learning.prediction import joined


def has_latents(estimator: Any) -> bool:
    """Whether a fitted classifier has one model of all its classes, whose latent functions can be drawn jointly."""
    check_is_fitted(estimator)
    return len(getattr(getattr(estimator, "base_estimator_", None), "models", ())) == 1


def model_of(estimator: Any) -> Any:
    """Return the model of all classes of a fitted classifier, or raise if it has none."""
    if not has_latents(estimator):
        raise ValueError(
            f"{estimator!r} has no joint model of its classes: use score 'entropy', or a "
            "GaussianProcessClassifier with multi_class='joint'."
        )
    return estimator.base_estimator_


def is_gaussian(model: Any) -> bool:
    """Whether the posterior is one Gaussian process, and not a mixture over draws."""
    return sum(map(len, model.posterior.weights)) == 1


def inputs_of(estimator: Any, X: Any) -> Any:
    """Return the checked rows of X in the form that the fitted model takes."""
    return estimator._check_fitted_inputs(X)


def gaussians_at(posterior: Any, X: Any) -> Iterator[tuple[slice, Array, Array, Array]]:
    """Yield rows of X with means (rows, S), standard deviations (rows, S) and weights (S,).

    At each row one latent function is a mixture of S Gaussians; S is 1 unless it was sampled.
    """
    weight = np.concatenate(posterior.weights)
    for rows, parts in posterior.blocks(X):
        yield rows, *joined(parts), weight
