"""What a fitted classifier has inside, as far as active learning asks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gpclass.core.protocols import Array, HasLink, HasTilted
from gpclass.learning.model import LatentModel
from gpclass.learning.multiclass import OneVsOne
from gpclass.learning.sampled import SampledModel
from gpclass.validation import check_inputs

FANTASIES = 32  # sets of labels that the earlier rows of a batch may turn out to have


def latents_of(estimator: Any) -> Any:
    """Return the fitted model, or say that it has no latent functions."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "base_estimator_") or isinstance(estimator.base_estimator_, OneVsOne):
        raise ValueError(
            f"{estimator!r} has no latent function for each class: use score 'entropy', or a "
            "GaussianProcessClassifier with multi_class='joint'."
        )
    return estimator.base_estimator_


def inputs_of(estimator: Any, X: Any) -> Any:
    """Return X as the estimator takes it."""
    vectors = bool(estimator.base_estimator_.models[0].kernel.requires_vector_input)
    return check_inputs(estimator, X, vectors=vectors, fitting=False)


def has_link(model: Any) -> bool:
    """Whether p(y=+1|f) is the link of one latent value."""
    return isinstance(model, LatentModel | SampledModel) and isinstance(model.problem.likelihood, HasLink)


def is_gaussian(model: Any) -> bool:
    """Whether there is one latent function, Gaussian, that can be conditioned on a label."""
    return isinstance(model, LatentModel) and isinstance(model.problem.likelihood, HasTilted)


def joined_rows(X: Any, Z: Any) -> Any:
    """Return the rows of both."""
    return np.concatenate([X, Z]) if isinstance(X, np.ndarray) else [*X, *Z]


def draw_labels(p: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw a class for each row of probabilities, as evenly over the rows as chance allows."""
    u = rng.permutation((np.arange(len(p)) + rng.random()) / len(p))
    labels: NDArray[np.intp] = (np.cumsum(p, axis=1) < u[:, None]).sum(axis=1)
    return np.asarray(np.minimum(labels, p.shape[1] - 1), dtype=np.intp)
