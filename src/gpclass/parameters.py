"""The parameters of the classifier: their names, the objects these mean, and which of them can be combined."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import fields, replace
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import CompoundKernel

from gpclass.core.checks import check_integers, check_numbers, check_option, is_integer
from gpclass.core.hyperpriors import NO_PRIOR, Hyperprior, Shrinkage
from gpclass.core.protocols import Array, Inference, Likelihood
from gpclass.core.registry import Method, parts
from gpclass.data.rows import Rows
from gpclass.kernels import Kernel, bind_columns, default_kernel, kernel_names, named_kernel, warps
from gpclass.kernels.warped import Warp
from gpclass.labels import Encode, label_weights
from gpclass.learning.ladder import FIRST_ROWS
from gpclass.learning.prediction import ROUTES
from gpclass.learning.strategies import COMPARED, MOST_CLASSES, SEVERAL, Case, refusal
from gpclass.sparse.settings import Inducing, inducing_of
from gpclass.training import Training

# Live views: parts that are defined later appear in them.
LIKELIHOODS = parts("likelihood")
INFERENCES = parts("inference")
MULTI_CLASS = ("joint", "one_vs_rest", "one_vs_one")
KERNEL_ROWS = 10_000  # rows from which transforms of the columns, or the scales of a source, are found
AUTO = "auto"  # for ``inference``: one of the methods of `candidates`


def method_names() -> list[str]:
    """Return the names of ``inference``."""
    return [AUTO, *INFERENCES]


def likelihood_of(clf: Any) -> Likelihood:
    """Return the likelihood that a classifier's parameters mean; with Dirichlet classification probit is softmax."""
    named = clf.likelihood
    if _is_dirichlet(clf) and isinstance(named, str) and named in ("probit", "logit"):
        named = "softmax"
    return LIKELIHOODS[named]() if isinstance(named, str) else named  # type: ignore[no-any-return]


def _is_dirichlet(clf: Any) -> bool:
    return isinstance(clf.inference, INFERENCES["dirichlet"]) or clf.inference == "dirichlet"


def is_open(clf: Any, n_classes: int) -> bool:
    """Return whether to choose the method: for three classes or more with learned hyperparameters.

    With a user-defined likelihood, or one kernel per class, ``"auto"`` is VI, as it is with two classes.
    """
    learned = clf.optimizer is not None and clf.hyperparameters == "learn"
    learned = learned and getattr(given_kernel(clf), "n_dims", 1) > 0
    several = n_classes > 2 and clf.multi_class == "joint" and clf.likelihood == "probit"
    return bool(clf.inference == AUTO and several and learned and not isinstance(clf.kernel, CompoundKernel))


def candidates(clf: Any, training: Training) -> list[Any]:
    """Return classifiers like this one with the methods that ``"auto"`` may mean, the slow one first.

    With several classes VI is one of them as long as there are few classes, no inducing inputs, and labels that the
    multinomial probit can use.
    """
    if clf.inference != AUTO:
        return [clf]
    n_classes = len(training.classes)
    names = ["vi"]
    if is_open(clf, n_classes):
        dense = training.data is None and inducing_of(clf.inducing, training.n_rows, n_classes) is None
        names = (
            ["vi", "dirichlet"] if dense and n_classes <= MOST_CLASSES and _hard(training) else ["dirichlet"]
        )
    settled = [copy(clf) for _ in names]
    for each, name in zip(settled, names, strict=True):
        each.inference = name
    return settled


def _hard(training: Training) -> bool:
    """Return whether each row has one class and a small whole number as its weight."""
    codes, weight = training.codes, training.weight
    if codes.ndim == 2:
        return bool((np.count_nonzero(codes, axis=1) == 1).all()) and _whole(codes.sum(axis=1))
    return weight is None or _whole(weight)


def rows_to_compare(n_rows: int, n_classes: int) -> int:
    """Return the number of rows on which methods are compared: all of a few hundred, else few enough for VI."""
    return n_rows if n_rows <= FIRST_ROWS else min(FIRST_ROWS, COMPARED // n_classes)


def encoder(clf: Any, classes: Any) -> Encode:
    """Return the encoder of labels for rows that are read in passes."""
    return Encode(classes, several=_is_dirichlet(clf))


def inference_of(clf: Any) -> Inference:
    """Return the method that a classifier's parameters mean."""
    if not isinstance(clf.inference, str):
        return clf.inference  # type: ignore[no-any-return]
    method = INFERENCES["vi" if clf.inference == AUTO else clf.inference]
    iterates = "max_iter" in {field.name for field in fields(method)}
    return method(max_iter=clf.max_iter_predict) if iterates else method()  # type: ignore[no-any-return]


def chooses_kernel(clf: Any) -> bool:
    """Return whether the parts of the kernel are chosen by the evidence."""
    return clf.kernel is None and clf.optimizer is not None and clf.hyperparameters == "learn"


def given_kernel(clf: Any) -> Any:
    """Return the kernel if it was given as an object, with its named columns bound to the columns of the data."""
    if clf.kernel is None or isinstance(clf.kernel, str):
        return None
    names, coded = getattr(clf, "feature_names_in_", None), getattr(clf, "encoder_", None)
    if names is not None and coded is not None:  # a name stands for all coded columns of this column
        names = [coded.group_names_[group] for group in coded.groups_]
    return clf.kernel if names is None else bind_columns(clf.kernel, names)


def kernels_for(clf: Any, training: Training) -> tuple[Any, tuple[Warp, ...]]:
    """Return the kernel that a name or None means for these rows, and transforms of the columns to choose from.

    For None the kernel has all parts to choose from, and transforms are found from some of the rows.
    """
    rows, coding = Rows(training.X, training.codes, training.weight), training.coding
    if training.data is not None:
        rows = training.data.sample(KERNEL_ROWS, np.random.default_rng(0))  # the same when resumed
    X, weight = np.asarray(rows.X, dtype=float), rows.row_weight
    groups = None if coding is None else coding.groups_
    if not chooses_kernel(clf):
        return named_kernel(clf.kernel or "rbf", X, weight, groups), ()
    some = slice(None, None, 1 + (len(X) - 1) // KERNEL_ROWS)
    numeric = None if coding is None else coding.numeric_
    found = warps(X[some], None if weight is None else weight[some], numeric)
    return default_kernel(X, weight, groups), found


def hyperprior_of(clf: Any, kernel: Any) -> Hyperprior:
    """Return the hyperpriors; length scales of an automatically chosen kernel are shrunk towards each other."""
    priors, chosen = clf.hyperprior, chooses_kernel(clf)
    if chosen and not isinstance(priors, Shrinkage):
        names = [h for h in kernel.hyperparameters if h.name.endswith("length_scale") and not h.fixed]
        several = any(h.n_elements > 1 for h in names)
        shrinkage = {"length_scale": Shrinkage()} if several else {}
        priors = {**shrinkage, **(priors or {})}
    return NO_PRIOR if priors is None else Hyperprior(kernel, priors, wide=chosen)


def check_parameters(clf: Any) -> None:
    """Raise ValueError for the first invalid parameter of a classifier."""
    joint = clf.multi_class == "joint"
    if isinstance(clf.kernel, CompoundKernel) and not (joint and len(clf.kernel.kernels or ()) > 2):
        raise ValueError("kernel cannot be a CompoundKernel")
    _check_name("kernel", clf.kernel, kernel_names(), (Kernel, type(None)))
    _check_name("likelihood", clf.likelihood, LIKELIHOODS, Likelihood)
    _check_name("inference", clf.inference, method_names(), (Inference, Method))
    _check_name("multi_class", clf.multi_class, MULTI_CLASS)
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
    priors = isinstance(clf.hyperprior, Mapping | Shrinkage | None)
    check_option(
        "hyperprior", clf.hyperprior, priors, "a mapping from names to distributions, a Shrinkage or None"
    )
    if not joint and not _is_dirichlet(clf) and likelihood_of(clf).n_latents(3) > 1:
        raise ValueError(
            f"likelihood={clf.likelihood!r} has a latent function for each class, which needs "
            f"multi_class='joint', not {clf.multi_class!r}."
        )


def resolve(
    clf: Any, n_classes: int, *, n_rows: int, vectors: bool, passes: bool = False
) -> tuple[Case, Likelihood, Inducing | None]:
    """Return the case that the parameters mean for these data, its likelihood and the inducing inputs.

    With ``inducing="auto"`` a case that does not support inducing inputs keeps all rows.
    """
    joint = n_classes > 2 and clf.multi_class == "joint"
    likelihood, inference = likelihood_of(clf), inference_of(clf)
    likelihood = _several(clf, likelihood, n_classes) if joint else likelihood
    if passes and n_classes == 2 and likelihood.n_latents(2) > 1 and not _is_dirichlet(clf):
        raise ValueError(
            f"likelihood={clf.likelihood!r} is not possible for two classes in passes: use 'logit', "
            "'probit' or another likelihood with one latent function."
        )
    method = type(inference).name if isinstance(inference, Method) else "custom"
    # One factorisation of Dirichlet classification serves all classes.
    alike = passes or _is_dirichlet(clf)
    settings = inducing_of(clf.inducing, 10**9 if passes else n_rows, 2 if alike else n_classes)

    def case(rows: str, likelihood: Likelihood) -> Case:
        return Case(
            method=method,
            likelihood=type(likelihood).name if likelihood.n_latents(3) > 1 else "two classes",
            rows=rows,
            hyperparameters="sample" if clf.hyperparameters == "sample" else "learn",
            kernel="per class" if isinstance(clf.kernel, CompoundKernel) else "one",
            inputs="vectors" if vectors else "structured",
            combine=clf.multi_class if n_classes > 2 else "joint",
        )

    rows = "passes" if passes else "all" if settings is None else "inducing"
    found = case(rows, likelihood)
    if rows != "all" and joint and found.likelihood == "multiprobit" and clf.likelihood == "probit":
        softmax = LIKELIHOODS["softmax"]()
        if refusal(case(rows, softmax)) is None:
            likelihood, found = softmax, case(rows, softmax)
            warnings.warn(
                "With inducing inputs three classes or more are fitted with the softmax likelihood, as the "
                "multinomial probit does not support them: give likelihood='logit' to avoid this warning.",
                UserWarning,
                stacklevel=6,
            )
    if refusal(found) is not None and rows == "inducing" and isinstance(clf.inducing, str):
        found, settings = case("all", likelihood), None
    why = refusal(found)
    if why is not None:
        raise ValueError(f"{why}.")
    return found, likelihood, (settings or Inducing()) if passes else settings


def _several(clf: Any, likelihood: Likelihood, n_classes: int) -> Likelihood:
    """Return the likelihood of several classes that generalises a likelihood of two classes."""
    joint = likelihood.several()
    if joint is None:
        raise ValueError(
            f"likelihood={clf.likelihood!r} is for two classes and cannot be used for {n_classes} classes in one "
            "model: use multi_class='one_vs_rest', or likelihood='softmax'."
        )
    return joint


def warn_without_effect(clf: Any, case: Case) -> None:
    """Warn about parameters that were set and have no effect in this case."""
    learning = clf.optimizer is not None and clf.hyperparameters == "learn"
    closed = case.method == "dirichlet"
    idle: Mapping[str, tuple[bool, str]] = {
        "n_restarts_optimizer": (
            clf.n_restarts_optimizer > 0 and clf.optimizer is None,
            "optimizer=None keeps the hyperparameters",
        ),
        "max_iter_predict": (
            clf.max_iter_predict != 100 and (closed or not isinstance(clf.inference, str)),
            "the method does not iterate" if closed else "inference is an object with settings of its own",
        ),
        "hyperprior": (
            clf.hyperprior is not None and not learning and clf.hyperparameters != "sample",
            "optimizer=None keeps the hyperparameters",
        ),
        "warm_start": (
            bool(clf.warm_start) and (case.strategy != "sites" or case.combine != "joint" or closed),
            "the method does not iterate" if closed else f"the strategy {case.strategy!r} starts afresh",
        ),
    }
    for name, (found, why) in idle.items():
        if found:
            warnings.warn(
                f"{name}={getattr(clf, name)!r} has no effect here: {why}.", UserWarning, stacklevel=6
            )


def labels_for(
    clf: Any, case: Case, likelihood: Likelihood, codes: Any, weight: Array | None, n_classes: int
) -> tuple[Case, Likelihood, Any]:
    """Return the labels as the case needs them: positions of classes, or label weights.

    The multinomial probit does not support fractional weights; if weights are not whole numbers, or so large
    that copies would add half of the rows again, each class is fitted against the rest instead.
    """
    if case.likelihood not in SEVERAL:
        return case, likelihood, codes
    labels = label_weights(codes, n_classes) if codes.ndim == 1 else np.asarray(codes, dtype=float)
    if weight is not None:
        labels = labels * weight[:, None]
    if not (case.likelihood == "multiprobit" and clf.likelihood != "multiprobit") or _whole(
        labels.sum(axis=1)
    ):
        return case, likelihood, labels
    warnings.warn(
        "Weights that are not small whole numbers have no meaning in the multinomial probit: each class "
        "is fitted against the rest (give multi_class='one_vs_rest', or likelihood='softmax').",
        UserWarning,
        stacklevel=6,
    )
    return replace(case, likelihood="two classes", combine="one_vs_rest"), likelihood_of(clf), codes


def _whole(copies: Array) -> bool:
    """Return whether the weights of rows are whole numbers that are small enough to copy the rows."""
    return bool((copies == np.round(copies)).all() and copies.sum() <= 1.5 * len(copies) + 1000)


def takes_label_weights(clf: Any, n_classes: int) -> bool:
    """Return whether the model takes soft labels as they are; raise if it cannot use them."""
    if is_open(clf, n_classes):
        return True  # Dirichlet classification
    likelihood, joint = likelihood_of(clf), clf.multi_class == "joint" and n_classes > 2
    several = likelihood.several() if joint else likelihood
    name = "" if several is None else getattr(type(several), "name", "")
    if name == "softmax":
        return True
    if joint or name in SEVERAL:
        raise ValueError(
            f"likelihood={clf.likelihood!r} cannot use soft labels of {n_classes} classes, as its noise "
            "belongs to one label per row: use likelihood='softmax' (or 'logit')."
        )
    return False


def check_present(clf: Any, codes: Any, n_classes: int) -> None:
    """Raise if a class has no rows although each class needs a model of its own."""
    present = codes.any(axis=0) if codes.ndim == 2 else np.bincount(codes, minlength=n_classes) > 0
    if clf.multi_class != "joint" and not present.all():
        raise ValueError(
            f"Column {int(np.argmin(present))} of y is zero in every row of positive weight, which only "
            "multi_class='joint' can learn from: leave the column out."
        )


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
    check_option(name, value, fine, f"{options}" + (" or an object that does the same" if other else ""))
