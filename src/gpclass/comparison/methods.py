"""The classifiers that are compared: one per method, and some of scikit-learn by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier as SklearnGP
from sklearn.gaussian_process.kernels import RBF, Kernel
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpclass.estimator import GaussianProcessClassifier
from gpclass.parameters import check_parameters

BASELINES = ("sklearn-gp", "logistic-regression", "gradient-boosting")


def classifiers_of(methods: Any, shared: dict[str, Any], coding: list[Any]) -> dict[str, Any]:
    """Return an unfitted classifier for each label; repeated labels are numbered.

    ``coding`` holds an encoder if the rows need one for the classifiers of scikit-learn that are given by name.
    """
    methods = [methods] if isinstance(methods, str) else methods
    named = methods.items() if isinstance(methods, Mapping) else [(_label(one), one) for one in methods]
    out: dict[str, Any] = {}
    seen = Counter[str]()
    for label, method in named:
        seen[label] += 1
        unique = f"{label} ({seen[label]})" if seen[label] > 1 else str(label)
        out[unique] = _classifier(method, shared, coding)
    if not out:
        raise ValueError("methods is empty, expected at least one.")
    return out


def _label(method: Any) -> str:
    if isinstance(method, tuple):
        return "/".join(_label(part) for part in method)
    return method if isinstance(method, str) else type(method).__name__


def _classifier(method: Any, shared: dict[str, Any], coding: list[Any]) -> Any:
    if isinstance(method, str) and method in BASELINES:
        steps = [*coding, *_baseline(method, shared["kernel"], shared["random_state"])]
        return make_pipeline(*steps) if len(steps) > 1 else steps[0]
    if not hasattr(method, "fit"):
        inference, likelihood = method if isinstance(method, tuple) else (method, shared["likelihood"])
        clf = GaussianProcessClassifier(**{**shared, "inference": inference, "likelihood": likelihood})
        check_parameters(clf)
        return clf
    if isinstance(method, type) or not hasattr(method, "predict_proba"):
        raise ValueError(f"{method!r} is not valid as a method: expected a classifier with predict_proba.")
    return clone(method)


def _baseline(name: str, kernel: Any, seed: int) -> list[Any]:
    """Return the pipeline steps of a classifier of scikit-learn that is given by name."""
    if name == "gradient-boosting":
        return [HistGradientBoostingClassifier(random_state=seed)]
    if name == "logistic-regression":
        return [StandardScaler(), LogisticRegression(max_iter=1000, random_state=seed)]
    if isinstance(kernel, Kernel):
        return [SklearnGP(kernel, random_state=seed)]
    # Scikit-learn does not learn its default kernel. A single length scale needs standardised columns.
    return [StandardScaler(), SklearnGP(1.0 * RBF(1.0), random_state=seed)]
