"""The rows of a fit, in memory or in a source, and the fitting task that they and the parameters make."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from sklearn.gaussian_process.kernels import CompoundKernel

from gpclass.core.protocols import Array, Index, Likelihood
from gpclass.core.registry import stored
from gpclass.data.rows import Data, Rows, Source
from gpclass.kernels import default_kernel, named_kernel, settable, takes_vectors, warps
from gpclass.kernels.warped import Warp
from gpclass.learning.maximise import Plan
from gpclass.learning.problem import Problem
from gpclass.learning.strategies import METHODS, SEVERAL, Case, Task, refusal
from gpclass.likelihoods import OrderWarning
from gpclass.parameters import (
    AUTO,
    LIKELIHOODS,
    chooses_kernel,
    given_kernel,
    hyperprior_of,
    inference_of,
    is_dirichlet,
)
from gpclass.sparse.settings import Inducing, inducing_of
from gpclass.tables import read_inputs
from gpclass.tables.encoder import encode_source
from gpclass.validation import (
    Encode,
    check_labels,
    check_weights,
    label_weights,
    merge_copies,
    take,
)

MOST_CLASSES = 12  # up to this number of classes, joint VI is fast enough to be tried
KERNEL_ROWS = 10_000  # maximum number of rows that determine transforms of columns, or the scales of a source


@stored
@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """For each given row of positive weight, the merged row that contains it (``home``) and its class (``truth``)."""

    home: Index
    truth: Index


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """The rows of one fit and their classes."""

    classes: Any
    n_rows: int
    X: Any  # inputs in memory; empty for the rows of a source
    codes: Index  # classes by position; empty for the rows of a source
    weight: Array | None = None
    data: Data | None = None  # rows that are read in passes
    rows: TrainingRows | None = None  # needed for leave-one-out predictions
    vectors: bool = True
    coding: Any = None  # the encoder if X is a coded table
    order: Any = None  # the classes from lowest to highest, if the type of the labels says it


def from_rows(clf: Any, X: Any, y: Any, sample_weight: Any) -> Training:
    """Return checked rows in memory, with equal rows merged; sets the attributes of the classifier about columns."""
    vectors, dtype = takes_vectors(clf.kernel), cast(Any, getattr(y, "dtype", None))
    X, y = read_inputs(clf, X, y, sample_weight, vectors=vectors, fitting=True)
    check_labels(y)
    weight = check_weights(sample_weight, clf.class_weight, y)
    if weight is not None and not weight.all():
        kept = np.flatnonzero(weight)
        X, y, weight = take(X, kept), y[kept], weight[kept]
    classes, truth = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"GaussianProcessClassifier requires 2 or more distinct classes; got {len(classes)} class "
            f"with a positive weight ({classes}): give it rows of another class."
        )
    kernel = None if isinstance(clf.kernel, str) else clf.kernel
    X, codes, weight, home = merge_copies(X, truth, weight, kernel)
    X = np.copy(X) if clf.copy_X_train else X
    vectors = vectors and isinstance(X, np.ndarray) and X.ndim == 2
    rows = TrainingRows(home, truth)
    order = list(dtype.categories) if getattr(dtype, "ordered", False) else None
    return Training(classes, len(X), X, codes, weight, None, rows, vectors, clf.encoder_, order)


def from_source(clf: Any, source: Source) -> Training:
    """Return the rows of a source, which are read in passes and not kept; sets the columns of the classifier."""
    clf.n_features_in_ = source.n_columns
    clf.__dict__.pop("feature_names_in_", None)
    if source.names is not None:
        clf.feature_names_in_ = np.asarray(source.names, dtype=object)
    if clf.class_weight is not None:
        raise ValueError(
            "class_weight is only for rows in memory: give the weights as sample_weight, or as a "
            "column of the files."
        )
    labels, clf.encoder_ = encode_source(source, clf.categorical_features)
    classes = np.asarray(labels)
    if len(classes) < 2:
        raise ValueError(f"The labels have only one class, {classes[0]!r}: at least two are needed.")
    data = source.data(encode_for(clf, classes), clf.n_jobs, clf.encoder_)
    empty = np.empty(0, dtype=np.intp)
    return Training(classes, source.n_rows, np.empty(0), empty, data=data, coding=clf.encoder_)


# -------------------------------------------------------------------------------- the task


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


def make_task(clf: Any, training: Training, *, seed: int, report: Any) -> Task:
    """Return the fitting task for these rows once the method is chosen."""
    n_classes, weight = len(training.classes), training.weight
    case, likelihood, settings = resolve(clf, training)
    if case.likelihood == "softmax" and clf.likelihood == "probit" and case.method != "dirichlet":
        warnings.warn(
            "The multinomial probit supports neither inducing inputs nor weights that are not small whole numbers: the "
            "softmax likelihood is used (give likelihood='logit' to avoid this warning).",
            UserWarning,
            stacklevel=4,
        )
    if sentence := likelihood.caution(getattr(clf.likelihood, "order", None) or training.order):
        warnings.warn(sentence, OrderWarning, stacklevel=4)
    y: Any = training.codes
    if case.likelihood in SEVERAL:
        y, weight = label_weights(y, n_classes, weight), None
    elif case.combine == "joint":
        y = np.array(likelihood.labels)[y]
    kernel, found = kernels_for(clf, training)
    X = training.X if training.data is None else np.empty(0)
    method, prior = inference_of(clf), hyperprior_of(clf, kernel)
    problem = Problem(X, y, weight, settable(kernel), likelihood, method, prior)
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
    return Task(case, problem, plan, n_classes, seed, settings, training.data, init)


def resolve(clf: Any, training: Training) -> tuple[Case, Likelihood, Inducing | None]:
    """Return the case that the parameters specify for these data, its likelihood and the inducing inputs.

    With ``inducing="auto"`` a case that does not support inducing inputs keeps all rows.
    """
    n_classes, passes = len(training.classes), training.data is not None
    # One factorisation of Dirichlet classification serves all classes.
    first = _likelihood(clf, training.classes, training.order, copies=False, passes=passes)
    alike = passes or is_dirichlet(clf) or (clf.multi_class == "joint" and first.n_latents(n_classes) == 1)
    settings = inducing_of(clf.inducing, 10**9 if passes else training.n_rows, 2 if alike else n_classes)
    method = getattr(inference_of(clf), "name", None)
    learnable = getattr(given_kernel(clf), "n_dims", 1) > 0
    options = {
        "method": method if method in METHODS else "custom",
        "hyperparameters": clf.hyperparameters if learnable else "fixed",
        "kernel": "per class" if isinstance(clf.kernel, CompoundKernel) else "one",
        "inputs": "vectors" if training.vectors else "structured",
        "combine": clf.multi_class if n_classes > 2 else "joint",
    }
    rows = "passes" if passes else "all" if settings is None else "inducing"
    auto = rows == "inducing" and isinstance(clf.inducing, str)
    why: str | None = ""
    for place in (rows, "all") if auto else (rows,):
        copies = place == "all" and _are_copies(training.weight)
        likelihood = _likelihood(clf, training.classes, training.order, copies=copies, passes=passes)
        name = type(likelihood).name if likelihood.n_latents(3) > 1 else "two classes"
        case = Case(likelihood=name, rows=place, **options)
        why = refusal(case)
        if why is None:
            return case, likelihood, None if place == "all" else settings or Inducing()
    raise ValueError(f"{why}.")


def encode_for(clf: Any, classes: Any) -> Encode:
    """Return the encoder of labels for a fit in passes."""
    return Encode(classes, _likelihood(clf, classes, copies=False, passes=True).labels)


def _likelihood(clf: Any, classes: Any, order: Any = None, *, copies: bool, passes: bool) -> Likelihood:
    """Return the likelihood of these classes.

    The probit becomes softmax for Dirichlet classification, and for several classes unless weights are ``copies``.
    """
    given, dirichlet, n_classes = clf.likelihood, is_dirichlet(clf), len(classes)
    if dirichlet and isinstance(given, str) and given in ("probit", "logit"):
        given = "softmax"
    likelihood: Any = LIKELIHOODS[given]() if isinstance(given, str) else given
    if passes and n_classes == 2 and likelihood.n_latents(2) > 1 and not dirichlet:
        raise ValueError(
            f"likelihood={clf.likelihood!r} is not possible for two classes in passes: use 'logit', "
            "'probit' or another likelihood with one latent function."
        )
    if n_classes > 2 and clf.multi_class != "joint":
        return likelihood
    if n_classes > 2 and clf.likelihood == "probit" and clf.inference != "ep" and not copies:
        return LIKELIHOODS["softmax"]()
    joint = likelihood.several(classes, order)
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
