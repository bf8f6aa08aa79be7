"""Build the fitting task from the parameters of a classifier and its rows."""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import CompoundKernel

from gpclass.core.protocols import Array, Likelihood
from gpclass.data.rows import Rows
from gpclass.kernels import default_kernel, named_kernel, settable, warps
from gpclass.kernels.warped import Warp
from gpclass.labels import label_weights
from gpclass.learning.ladder import FIRST_ROWS
from gpclass.learning.maximise import Plan
from gpclass.learning.problem import Problem
from gpclass.learning.strategies import COMPARED, METHODS, MOST_CLASSES, SEVERAL, Case, Task, refusal
from gpclass.parameters import (
    AUTO,
    LIKELIHOODS,
    chooses_kernel,
    given_kernel,
    hyperprior_of,
    inference_of,
    is_dirichlet,
    likelihood_of,
)
from gpclass.sparse.settings import Inducing, inducing_of
from gpclass.training import Training

KERNEL_ROWS = 10_000  # maximum number of rows that determine transforms of columns, or the scales of a source


def candidates(clf: Any, training: Training) -> list[Any]:
    """Return copies of the classifier with the methods that ``"auto"`` considers, the slow one first.

    It is VI for two classes, a user-defined likelihood, one kernel per class or fixed hyperparameters. Otherwise it
    is Dirichlet classification, and also VI as long as there are few classes, no inducing inputs, and weights that the
    multinomial probit can use.
    """
    if clf.inference != AUTO:
        return [clf]
    n_classes, names = len(training.classes), ["vi"]
    learned = clf.optimizer is not None and clf.hyperparameters == "learn"
    learned = learned and getattr(given_kernel(clf), "n_dims", 1) > 0
    several = n_classes > 2 and clf.multi_class == "joint" and clf.likelihood == "probit"
    if several and learned and not isinstance(clf.kernel, CompoundKernel):
        dense = training.data is None and inducing_of(clf.inducing, training.n_rows, n_classes) is None
        slow = dense and n_classes <= MOST_CLASSES and _are_copies(training.weight)
        names = ["vi", "dirichlet"] if slow else ["dirichlet"]
    settled = [copy(clf) for _ in names]
    for each, name in zip(settled, names, strict=True):
        each.inference = name
    return settled


def rows_to_compare(n_rows: int, n_classes: int) -> int:
    """Return the number of rows on which methods are compared: all of a few hundred, else few enough for VI."""
    return n_rows if n_rows <= FIRST_ROWS else min(FIRST_ROWS, COMPARED // n_classes)


def make_task(clf: Any, training: Training, *, seed: int, report: Any) -> Task:
    """Return the fitting task for these rows once the method is chosen."""
    n_classes, weight = len(training.classes), training.weight
    case, likelihood, settings = resolve(clf, training)
    if case.likelihood == "softmax" and clf.likelihood == "probit" and case.method != "dirichlet":
        warnings.warn(
            "The multinomial probit supports neither inducing inputs nor weights that are not small whole numbers: the "
            "softmax likelihood is used (give likelihood='logit' to avoid this warning).",
            UserWarning,
            stacklevel=6,
        )
    labels: Any = training.codes
    if training.data is None and case.likelihood in SEVERAL:
        labels = label_weights(training.codes, n_classes, weight)
    kernel, found = kernels_for(clf, training)
    X = training.X if training.data is None else np.empty(0)
    method, prior = inference_of(clf), hyperprior_of(clf, kernel)
    problem = Problem(
        X, np.where(training.codes == 1, 1.0, -1.0), weight, settable(kernel), likelihood, method, prior
    )
    plan = Plan(
        enabled=clf.optimizer is not None,
        optimizer=clf.optimizer if callable(clf.optimizer) else None,
        n_restarts=clf.n_restarts_optimizer,
        n_jobs=clf.n_jobs,
        report=report,
        choose=chooses_kernel(clf),
        warps=found,
        asked={"kernel": clf.kernel, "hyperprior": clf.hyperprior},
    )
    init = getattr(getattr(clf, "base_estimator_", None), "sites", None) if clf.warm_start else None
    return Task(case, problem, plan, n_classes, labels, seed, settings, training.data, init)


def resolve(clf: Any, training: Training) -> tuple[Case, Likelihood, Inducing | None]:
    """Return the case that the parameters specify for these data, its likelihood and the inducing inputs.

    With ``inducing="auto"`` a case that does not support inducing inputs keeps all rows.
    """
    n_classes, passes = len(training.classes), training.data is not None
    # One factorisation of Dirichlet classification serves all classes.
    alike = passes or is_dirichlet(clf)
    settings = inducing_of(clf.inducing, 10**9 if passes else training.n_rows, 2 if alike else n_classes)
    method = getattr(inference_of(clf), "name", None)
    options = {
        "method": method if method in METHODS else "custom",
        "hyperparameters": clf.hyperparameters,
        "kernel": "per class" if isinstance(clf.kernel, CompoundKernel) else "one",
        "inputs": "vectors" if training.vectors else "structured",
        "combine": clf.multi_class if n_classes > 2 else "joint",
    }
    rows = "passes" if passes else "all" if settings is None else "inducing"
    auto = rows == "inducing" and isinstance(clf.inducing, str)
    why: str | None = ""
    for place in (rows, "all") if auto else (rows,):
        copies = place == "all" and _are_copies(training.weight)
        likelihood = _likelihood(clf, n_classes, copies=copies, passes=passes)
        name = type(likelihood).name if likelihood.n_latents(3) > 1 else "two classes"
        case = Case(likelihood=name, rows=place, **options)
        why = refusal(case)
        if why is None:
            return case, likelihood, None if place == "all" else settings or Inducing()
    raise ValueError(f"{why}.")


def _likelihood(clf: Any, n_classes: int, *, copies: bool, passes: bool) -> Likelihood:
    """Return the likelihood for this number of classes; the probit becomes softmax unless weights are ``copies``."""
    likelihood = likelihood_of(clf)
    if passes and n_classes == 2 and likelihood.n_latents(2) > 1 and not is_dirichlet(clf):
        raise ValueError(
            f"likelihood={clf.likelihood!r} is not possible for two classes in passes: use 'logit', "
            "'probit' or another likelihood with one latent function."
        )
    if n_classes == 2 or clf.multi_class != "joint":
        return likelihood
    if clf.likelihood == "probit" and clf.inference != "ep" and not copies:
        return LIKELIHOODS["softmax"]()
    joint = likelihood.several()
    if joint is None:
        raise ValueError(
            f"likelihood={clf.likelihood!r} is for two classes and cannot be used for {n_classes} classes in one "
            "model: use multi_class='one_vs_rest', or likelihood='softmax'."
        )
    return joint


def kernels_for(clf: Any, training: Training) -> tuple[Any, tuple[Warp, ...]]:
    """Return the kernel for these rows, and transforms of the columns to choose from.

    For None the kernel has all parts to choose from, and transforms are found from some of the rows.
    """
    if (given := given_kernel(clf)) is not None:
        return given, ()
    rows, coding = Rows(training.X, training.codes, training.weight), training.coding
    if training.data is not None:
        rows = training.data.sample(KERNEL_ROWS, np.random.default_rng(0))  # the same rows when resumed
    X, weight = np.asarray(rows.X, dtype=float), rows.row_weight
    groups = None if coding is None else coding.groups_
    if not chooses_kernel(clf):
        return named_kernel(clf.kernel or "rbf", X, weight, groups), ()
    some = slice(None, None, 1 + (len(X) - 1) // KERNEL_ROWS)
    numeric = None if coding is None else coding.numeric_
    found = warps(X[some], None if weight is None else weight[some], numeric)
    return default_kernel(X, weight, groups), found


def _are_copies(weight: Array | None) -> bool:
    """Return whether the weights of rows are whole numbers that are small enough to copy the rows."""
    if weight is None:
        return True
    return bool((weight == np.round(weight)).all() and weight.sum() <= 1.5 * len(weight) + 1000)
