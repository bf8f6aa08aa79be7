"""The names a user may type for a parameter of the classifier, and what they stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import CompoundKernel

from gpclass.core.protocols import Inference, Likelihood
from gpclass.inference import EP, VI, Laplace
from gpclass.kernels import Kernel
from gpclass.learning.multiclass import fit_joint_model, fit_one_vs_one, fit_one_vs_rest
from gpclass.learning.prediction import ROUTES
from gpclass.likelihoods import Logit, MultiProbit, Probit, Softmax
from gpclass.mcmc import MCMC
from gpclass.sampling import Rejection
from gpclass.sparse.settings import Inducing, inducing_of

LIKELIHOODS: dict[str, Any] = {
    "logit": Logit,
    "probit": Probit,
    "softmax": Softmax,
    "multiprobit": MultiProbit,
}
APPROXIMATIONS: dict[str, Any] = {"laplace": Laplace, "ep": EP, "vi": VI}
INFERENCES: dict[str, Any] = APPROXIMATIONS | {"mcmc": MCMC, "rejection": Rejection}
MULTI_CLASS: dict[str, Any] = {
    "joint": fit_joint_model,
    "one_vs_rest": fit_one_vs_rest,
    "one_vs_one": fit_one_vs_one,
}


def likelihood_of(clf: Any) -> Likelihood:
    """Return the likelihood that a classifier's parameters mean."""
    named = LIKELIHOODS[clf.likelihood]() if isinstance(clf.likelihood, str) else clf.likelihood
    return named  # type: ignore[no-any-return]


def inference_of(clf: Any) -> Inference:
    """Return the method that a classifier's parameters mean."""
    if isinstance(clf.inference, str):
        settings = {"max_iter": clf.max_iter_predict} if clf.inference in APPROXIMATIONS else {}
        return INFERENCES[clf.inference](**settings)  # type: ignore[no-any-return]
    return clf.inference  # type: ignore[no-any-return]


def check_parameters(clf: Any) -> None:
    """Raise ValueError for the first parameter of a classifier that is not possible."""
    joint = clf.multi_class == "joint"
    if isinstance(clf.kernel, CompoundKernel) and not (joint and len(clf.kernel.kernels or ()) > 2):
        raise ValueError("kernel cannot be a CompoundKernel")
    _check_option(
        "kernel", clf.kernel, clf.kernel is None or isinstance(clf.kernel, Kernel), "a kernel or None"
    )
    _check_name("likelihood", clf.likelihood, LIKELIHOODS, Likelihood)
    _check_name("inference", clf.inference, INFERENCES, (Inference, MCMC, Rejection))
    _check_name("multi_class", clf.multi_class, MULTI_CLASS)
    if not joint and isinstance(likelihood_of(clf), Softmax | MultiProbit):
        raise ValueError(
            f"likelihood={clf.likelihood!r} has a latent function for each class, which goes with "
            f"multi_class='joint', not with {clf.multi_class!r}."
        )
    _check_name("integration", clf.integration, ROUTES)
    _check_name("hyperparameters", clf.hyperparameters, ("learn", "sample"))
    if clf.hyperparameters == "sample" and isinstance(inference_of(clf), Rejection):
        raise ValueError(
            "hyperparameters='sample' goes with inference='mcmc' or an approximation, not with rejection."
        )
    _check_name("inducing", clf.inducing, ("auto",), (type(None), int, np.integer, np.ndarray, Inducing))
    _check_name("optimizer", clf.optimizer, ("fmin_l_bfgs_b",), (Callable, type(None)))
    _check_integer("n_restarts_optimizer", clf.n_restarts_optimizer, 0)
    _check_integer("max_iter_predict", clf.max_iter_predict, 1)


def inducing_for(clf: Any, X: Any, n_classes: int) -> Inducing | None:
    """Return the settings of inducing inputs for these rows, or None if all rows are kept."""
    settings = inducing_of(clf.inducing, len(X), n_classes)
    if settings is None:
        return None
    found = _no_inducing(clf, X, n_classes)
    if found and not isinstance(clf.inducing, str):
        raise ValueError(f"inducing={clf.inducing!r} is not possible {found}.")
    return None if found else settings


def _no_inducing(clf: Any, X: Any, n_classes: int) -> str:
    """Return why there can be no inducing inputs, or nothing."""
    inference, joint = inference_of(clf), n_classes > 2 and clf.multi_class == "joint"
    if not isinstance(inference, VI | EP | Laplace) or clf.hyperparameters == "sample":
        return "when f or the hyperparameters are sampled: use an approximation, or inducing=None"
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        return "for structured inputs: use inducing=None"
    if isinstance(inference, VI) and inference.evidence == "ep":
        return "with VI(evidence='ep'): use VI() or EP()"
    if joint and (not isinstance(inference, VI) or isinstance(likelihood_of(clf), MultiProbit)):
        return (
            "for three classes or more in one model except with inference='vi' and softmax: use them, or "
            "multi_class='one_vs_rest'"
        )
    if joint and isinstance(clf.kernel, CompoundKernel):
        return "with a kernel for each class: give one kernel, or use inducing=None"
    return ""


def takes_label_weights(clf: Any, n_classes: int) -> bool:
    """Return whether soft labels go into the model as they are; raise if it has no use for them."""
    likelihood, joint = likelihood_of(clf), clf.multi_class == "joint" and n_classes > 2
    if isinstance(likelihood, Softmax) or (joint and isinstance(likelihood, Logit)):
        return True
    if joint or isinstance(likelihood, MultiProbit):
        raise ValueError(
            f"likelihood={clf.likelihood!r} has no use for soft labels of {n_classes} classes, as its noise "
            "belongs to one label a row: use likelihood='softmax' (or 'logit')."
        )
    return False


def check_present(clf: Any, codes: Any, n_classes: int) -> None:
    """Raise if a class has no rows, and each class is to have a model of its own."""
    present = codes.any(axis=0) if codes.ndim == 2 else np.bincount(codes, minlength=n_classes) > 0
    if clf.multi_class != "joint" and not present.all():
        raise ValueError(
            f"Column {int(np.argmin(present))} of y is zero in every row of positive weight, which only "
            "multi_class='joint' can learn from: leave the column out."
        )


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
