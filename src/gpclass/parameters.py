"""The parameters of the classifier: valid names, the objects that they stand for, and checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import CompoundKernel

from gpclass.core.checks import check_integers, check_numbers, check_option, is_integer
from gpclass.core.hyperpriors import NO_PRIOR, Hyperprior, Shrinkage
from gpclass.core.protocols import Inference, Likelihood
from gpclass.core.registry import Method, parts
from gpclass.core.text import similar
from gpclass.kernels import Kernel, bind_columns, kernel_names
from gpclass.learning.prediction import ROUTES
from gpclass.sparse.settings import Inducing

# These mappings also show parts that are registered later, such as those of a user.
LIKELIHOODS = parts("likelihood")
INFERENCES = parts("inference")
AUTO = "auto"  # value of ``inference`` that chooses among `gpclass.tasks.candidates`


def is_dirichlet(clf: Any) -> bool:
    """Return whether the method is Dirichlet classification."""
    return isinstance(clf.inference, INFERENCES["dirichlet"]) or clf.inference == "dirichlet"


def inference_of(clf: Any) -> Inference:
    """Return the inference method that the parameters specify."""
    if not isinstance(clf.inference, str):
        return clf.inference
    method = INFERENCES["vi" if clf.inference == AUTO else clf.inference]
    iterates = "max_iter" in {field.name for field in fields(method)}
    return method(max_iter=clf.max_iter_predict) if iterates else method()


def chooses_kernel(clf: Any) -> bool:
    """Return whether the parts of the kernel are chosen by the evidence."""
    return clf.kernel is None and clf.optimizer is not None and clf.hyperparameters == "learn"


def given_kernel(clf: Any) -> Any:
    """Return the kernel if it was given as an object, with its named columns bound to the columns of the data."""
    if clf.kernel is None or isinstance(clf.kernel, str):
        return None
    names, coded = getattr(clf, "feature_names_in_", None), getattr(clf, "encoder_", None)
    if names is not None and coded is not None:  # a name stands for all coded columns of its column
        names = [coded.group_names_[group] for group in coded.groups_]
    return clf.kernel if names is None else bind_columns(clf.kernel, names)


def hyperprior_of(clf: Any, kernel: Any) -> Hyperprior:
    """Return the hyperpriors; length scales of an automatically chosen kernel are shrunk towards each other."""
    priors, chosen = clf.hyperprior, chooses_kernel(clf)
    if chosen and not isinstance(priors, Shrinkage):
        names = [h for h in kernel.hyperparameters if h.name.endswith("length_scale") and not h.fixed]
        several = any(h.n_elements > 1 for h in names)
        shrinkage = {"length_scale": Shrinkage()} if several else {}
        priors = {**shrinkage, **(priors or {})}
    return NO_PRIOR if priors is None else Hyperprior.on(kernel, priors, wide=chosen)


def check_parameters(clf: Any) -> None:
    """Raise ValueError for the first invalid parameter of a classifier."""
    several = clf.multi_class == "joint" and len(getattr(clf.kernel, "kernels", None) or ()) > 2
    if isinstance(clf.kernel, CompoundKernel) and not several:
        raise ValueError("kernel cannot be a CompoundKernel")
    _check_name("kernel", clf.kernel, kernel_names(), (Kernel, type(None)))
    _check_name("likelihood", clf.likelihood, LIKELIHOODS, Likelihood)
    _check_name("inference", clf.inference, [AUTO, *INFERENCES], (Inference, Method))
    _check_name("multi_class", clf.multi_class, ("joint", "one_vs_rest", "one_vs_one"))
    _check_name("integration", clf.integration, ROUTES)
    _check_name("hyperparameters", clf.hyperparameters, ("learn", "sample"))
    _check_name("optimizer", clf.optimizer, ("fmin_l_bfgs_b",), (Callable, type(None)))
    _check_inducing(clf.inducing)
    _check_class_weight(clf.class_weight)
    check_integers(0, n_restarts_optimizer=clf.n_restarts_optimizer)
    check_integers(max_iter_predict=clf.max_iter_predict)
    for name in ("warm_start", "copy_X_train"):
        value = getattr(clf, name)
        check_option(name, value, isinstance(value, bool | np.bool_), "True or False")
    if not isinstance(clf.verbose, bool | np.bool_):
        check_integers(0, verbose=clf.verbose)
    jobs = clf.n_jobs is None or (is_integer(clf.n_jobs) and clf.n_jobs != 0)
    check_option("n_jobs", clf.n_jobs, jobs, "None or an integer other than 0, where -1 means all processors")
    priors, expected = clf.hyperprior, "a mapping from names to distributions, a Shrinkage or None"
    check_option("hyperprior", priors, isinstance(priors, Mapping | Shrinkage | None), expected)


def _check_inducing(given: Any) -> None:
    """Raise unless ``inducing`` is a number, a matrix, settings, "auto" or None."""
    matrix = isinstance(given, np.ndarray) and given.ndim == 2
    known = isinstance(given, Inducing | None) or (isinstance(given, str) and given == "auto")
    fine = known or matrix or (is_integer(given) and given >= 1)
    expected = "'auto', a positive integer, an array of shape (n, n_features), an Inducing or None"
    check_option("inducing", given, fine, expected)


def _check_class_weight(given: Any) -> None:
    """Raise unless ``class_weight`` is None, "balanced" or a mapping to numbers that are not negative."""
    if isinstance(given, Mapping):
        for label, weight in given.items():
            check_numbers("[0, inf)", **{f"class_weight[{label!r}]": weight})
        return
    fine = given is None or (isinstance(given, str) and given == "balanced")
    check_option("class_weight", given, fine, "'balanced', a mapping from classes to weights, or None")


def _check_name(name: str, value: Any, known: Iterable[str], other: Any = ()) -> None:
    """Raise unless a parameter is one of the known names, or an object of the ``other`` kind."""
    if isinstance(value, type):
        raise ValueError(f"{name} is the class {value.__name__}, expected an object: {value.__name__}().")
    fine = value in known if isinstance(value, str) else isinstance(value, other)
    options = ", ".join(repr(option) for option in known)
    expected = f"{options}{' or such an object' if other else ''}{similar(value, known)}"
    check_option(name, value, fine, expected)
