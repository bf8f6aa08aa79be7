"""The classifier that the options of a command describe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.estimator import GaussianProcessClassifier
from gpclass.kernels import RBF, ConstantKernel, DotProduct, Matern, NeuralNetwork, RationalQuadratic
from gpclass.parameters import INFERENCES, LIKELIHOODS, MULTI_CLASS

__all__ = ["INFERENCES", "KERNELS", "LIKELIHOODS", "MULTI_CLASS", "ModelOptions", "classifier", "kernel_of"]


def _signal() -> Any:
    return ConstantKernel(1.0, (1e-2, 1e4))


def _scales(d: int) -> dict[str, Any]:
    """Return length scales of columns that are standardised, as the classifier starts its own."""
    return {"length_scale": np.full(d, np.sqrt(d)), "length_scale_bounds": (1e-2, 1e2 * np.sqrt(d))}


def _scale(d: int) -> dict[str, Any]:
    return {"length_scale": float(np.sqrt(d)), "length_scale_bounds": (1e-2, 1e2 * np.sqrt(d))}


# By the number of columns.
KERNELS: dict[str, Callable[[int], Any]] = {
    "rbf": lambda d: None,  # the classifier's own: one length scale a column
    "rbf-shared": lambda d: _signal() * RBF(**_scale(d)),
    "matern12": lambda d: _signal() * Matern(**_scales(d), nu=0.5),
    "matern32": lambda d: _signal() * Matern(**_scales(d), nu=1.5),
    "matern52": lambda d: _signal() * Matern(**_scales(d), nu=2.5),
    "rational-quadratic": lambda d: _signal() * RationalQuadratic(**_scale(d), alpha_bounds=(1e-2, 1e3)),
    "linear": lambda d: _signal() * DotProduct(sigma_0_bounds=(1e-2, 1e2)),
    "neural-network": lambda d: _signal() * NeuralNetwork(),
}


@dataclass(frozen=True, slots=True, eq=False)
class ModelOptions:
    """What the options of a command say about the model; the defaults are those of the classifier."""

    inference: str = "vi"
    likelihood: str = "probit"
    kernel: str = "rbf"
    multi_class: str = "joint"
    hyperparameters: str = "learn"
    restarts: int = 0
    balanced: bool = False
    jobs: int | None = None
    seed: int = 0
    verbose: int = 0


def kernel_of(name: str, n_columns: int) -> Any:
    """Return the kernel of a name for so many columns."""
    return KERNELS[name](n_columns)


def classifier(options: ModelOptions, n_columns: int) -> GaussianProcessClassifier:
    """Return the classifier, not fitted."""
    return GaussianProcessClassifier(
        kernel_of(options.kernel, n_columns),
        likelihood=options.likelihood,
        inference=options.inference,
        multi_class=options.multi_class,
        hyperparameters=options.hyperparameters,
        n_restarts_optimizer=options.restarts,
        class_weight="balanced" if options.balanced else None,
        n_jobs=options.jobs,
        random_state=options.seed,
        verbose=options.verbose,
    )


def was_interrupted(clf: Any) -> bool:
    """Return whether learning or sampling was cut short; both keep an interruption to themselves."""
    return any(
        getattr(getattr(model, part, None), "interrupted", False)
        for model in clf.base_estimator_.models
        for part in ("learned", "chains")
    )
