"""Classifiers of scikit-learn to compare with, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, Kernel
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler


def _gaussian_process(kernel: Any, seed: int) -> Any:
    """Return scikit-learn's Gaussian process, with the kernel of the comparison if that is a kernel object."""
    if isinstance(kernel, Kernel):
        return GaussianProcessClassifier(kernel, random_state=seed)
    # Scikit-learn has no default that is learned, and one length scale needs columns of one scale.
    return make_pipeline(StandardScaler(), GaussianProcessClassifier(1.0 * RBF(1.0), random_state=seed))


def _logistic_regression(kernel: Any, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, random_state=seed))


def _gradient_boosting(kernel: Any, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed)


MAKERS: dict[str, Callable[[Any, int], Any]] = {
    "sklearn-gp": _gaussian_process,
    "logistic-regression": _logistic_regression,
    "gradient-boosting": _gradient_boosting,
}
BASELINES = tuple(MAKERS)


def baseline(name: str, kernel: Any, seed: int) -> Any:
    """Return the unfitted classifier of that name, one of `BASELINES`.

    Examples
    --------
    >>> from gpclass.comparison.baselines import baseline
    >>> baseline("gradient-boosting", None, 0)
    HistGradientBoostingClassifier(random_state=0)
    """
    return MAKERS[name](kernel, seed)


def fit_options(clf: Any, weight: Any) -> dict[str, Any]:
    """Return the arguments of ``fit`` that carry the weights; in a pipeline they are for the last step."""
    if weight is None:
        return {}
    if isinstance(clf, Pipeline):
        return {f"{clf.steps[-1][0]}__sample_weight": weight}
    return {"sample_weight": weight}
