"""The names a user may type for a parameter of the classifier, and what they stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gpclass.inference import EP, VI, Laplace
from gpclass.kernels import CompoundKernel, Kernel
from gpclass.likelihoods import Logit, Probit
from gpclass.multiclass import fit_one_vs_one, fit_one_vs_rest
from gpclass.predictive import ROUTES
from gpclass.protocols import Inference, Likelihood

LIKELIHOODS: dict[str, Any] = {"logit": Logit, "probit": Probit}
INFERENCES: dict[str, Any] = {"laplace": Laplace, "ep": EP, "vi": VI}
MULTI_CLASS: dict[str, Any] = {"one_vs_rest": fit_one_vs_rest, "one_vs_one": fit_one_vs_one}


def likelihood_of(clf: Any) -> Likelihood:
    """Return the likelihood that a classifier's parameters mean."""
    named = LIKELIHOODS[clf.likelihood]() if isinstance(clf.likelihood, str) else clf.likelihood
    return named  # type: ignore[no-any-return]


def inference_of(clf: Any) -> Inference:
    """Return the method that a classifier's parameters mean."""
    if isinstance(clf.inference, str):
        return INFERENCES[clf.inference](max_iter=clf.max_iter_predict)  # type: ignore[no-any-return]
    return clf.inference  # type: ignore[no-any-return]


def check_parameters(clf: Any) -> None:
    """Raise ValueError for the first parameter of a classifier that is not possible."""
    if isinstance(clf.kernel, CompoundKernel):
        raise ValueError("kernel cannot be a CompoundKernel")
    _check_option(
        "kernel", clf.kernel, clf.kernel is None or isinstance(clf.kernel, Kernel), "a kernel or None"
    )
    _check_name("likelihood", clf.likelihood, LIKELIHOODS, Likelihood)
    _check_name("inference", clf.inference, INFERENCES, Inference)
    _check_name("multi_class", clf.multi_class, MULTI_CLASS)
    _check_name("integration", clf.integration, ROUTES)
    _check_name("hyperparameters", clf.hyperparameters, ("learn",))
    _check_name("inducing", clf.inducing, ("auto",), type(None))
    _check_name("optimizer", clf.optimizer, ("fmin_l_bfgs_b",), (Callable, type(None)))
    _check_integer("n_restarts_optimizer", clf.n_restarts_optimizer, 0)
    _check_integer("max_iter_predict", clf.max_iter_predict, 1)


def _check_option(name: str, value: Any, fine: bool, expected: str) -> None:
    """Raise unless a parameter is fine."""
    if not fine:
        raise ValueError(f"{name}={value!r} is not possible, expected {expected}.")


def _check_name(name: str, value: Any, known: Iterable[str], other: Any = ()) -> None:
    """Raise unless a parameter is one of the known names, or an object of the ``other`` kind."""
    if isinstance(value, type):
        raise ValueError(f"{name} is the class {value.__name__}, expected an object: {value.__name__}().")
    fine = value in known if isinstance(value, str) else isinstance(value, other)
    options = ", ".join(repr(option) for option in known)
    _check_option(name, value, fine, f"{options}" + (" or an object that does the same" if other else ""))


def _check_integer(name: str, value: Any, least: int) -> None:
    """Raise unless a parameter is an integer of at least ``least``."""
    fine = isinstance(value, (int, np.integer)) and bool(value >= least)
    _check_option(name, value, fine, f"an integer of at least {least}")
