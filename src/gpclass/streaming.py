"""Rows that are no array in memory: files, iterables of blocks, Dask collections, rows that keep coming."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gpclass.core.hyperpriors import Hyperprior
from gpclass.core.progress import reporter
from gpclass.data.rows import Rows
from gpclass.data.sources import Source, is_dask
from gpclass.inference import VI
from gpclass.kernels import bind_columns, settable
from gpclass.labels import Encode
from gpclass.learning.fitting import complaints
from gpclass.learning.maximise import Problem
from gpclass.learning.model import LearningPlan
from gpclass.likelihoods import MultiProbit, Softmax
from gpclass.parameters import check_parameters, inference_of, likelihood_of
from gpclass.sparse.engine import Engine
from gpclass.sparse.model import fit_joint_stream, fit_stream, refitted
from gpclass.sparse.settings import Inducing, inducing_of
from gpclass.validation import check_inputs, check_weights, default_kernel

F = TypeVar("F", bound=Callable[..., Any])


def lazily(*, labels: bool = False) -> Callable[[F], F]:
    """Return a decorator for predictions that are made later where X is a collection of Dask."""

    def decorate(method: F) -> F:
        @wraps(method)
        def predict(self: Any, X: Any) -> Any:
            if not is_dask(X):
                return method(self, X)
            from gpclass.data.prediction import lazy_predict

            check_is_fitted(self)
            if labels:
                return lazy_predict(partial(method, self), X, dtype=self.classes_.dtype)
            return lazy_predict(partial(method, self), X, classes=self.classes_)

        return cast(F, predict)

    return decorate


def fit_source(clf: Any, source: Source) -> None:
    """Fit a classifier to a source of rows, in passes over it."""
    if clf.class_weight is not None:
        raise ValueError(
            "class_weight is for rows in memory: give the weights of the rows as sample_weight, or as a "
            "column of the files."
        )
    classes = np.asarray(source.classes())
    settings = _check(clf, len(classes))
    if len(classes) < 2:
        raise ValueError(f"The labels have one class only, {classes[0]!r}: two or more are needed.")
    if len(classes) > 2 and clf.multi_class != "joint":
        raise ValueError(
            f"multi_class={clf.multi_class!r} needs rows in memory: in passes there is one model, 'joint'."
        )
    seed = int(check_random_state(clf.random_state).randint(2**31 - 1))
    data = source.data(Encode(classes), clf.n_jobs)
    kernel, names = clf.kernel, source.names
    if kernel is None:
        kernel = default_kernel(np.asarray(data.sample(10_000, np.random.default_rng(seed)).X, dtype=float))
    elif names is not None:
        kernel = bind_columns(kernel, names)
    problem = _problem(clf, settable(kernel))
    with reporter(clf.verbose) as report:
        plan = LearningPlan(enabled=clf.optimizer is not None, report=report)
        if len(classes) == 2:
            model: Any = fit_stream(problem, data, plan, settings, seed=seed)
        else:
            model = fit_joint_stream(problem, data, len(classes), plan, settings, seed=seed)
    clf.n_features_in_ = source.n_columns
    if names is not None:
        clf.feature_names_in_ = np.asarray(names, dtype=object)
    elif hasattr(clf, "feature_names_in_"):
        del clf.feature_names_in_
    _set(clf, model, classes, seed)
    for sentence in complaints(model, at_bounds=clf.kernel is not None):
        warnings.warn(sentence, ConvergenceWarning, stacklevel=3)


def _check(clf: Any, n_classes: int) -> Inducing:
    """Return the settings of inducing inputs, which there are however few the rows."""
    check_parameters(clf)
    inference, likelihood = inference_of(clf), likelihood_of(clf)
    if not isinstance(inference, VI) or inference.evidence == "ep" or clf.hyperparameters == "sample":
        raise ValueError(
            f"inference={clf.inference!r} with hyperparameters={clf.hyperparameters!r} needs all rows in "
            "memory: use inference='vi' and 'learn' for rows in passes."
        )
    if isinstance(likelihood, MultiProbit) or (n_classes == 2 and isinstance(likelihood, Softmax)):
        raise ValueError(
            f"likelihood={clf.likelihood!r} is not possible for {n_classes} classes in passes: use 'logit', "
            "which is softmax for three classes or more."
        )
    return inducing_of(clf.inducing, 10**9, 2) or Inducing()


def _problem(clf: Any, kernel: Any) -> Problem:
    hyperprior = None if clf.hyperprior is None else Hyperprior(kernel, clf.hyperprior)
    empty = np.empty(0)
    return Problem(empty, empty, None, kernel, likelihood_of(clf), inference_of(clf), hyperprior)


def _set(clf: Any, model: Any, classes: Any, seed: int) -> None:
    clf.base_estimator_, clf._seed, clf._home = model, seed, (None, None, None)
    clf.classes_, clf.n_classes_ = classes, len(classes)
    clf.log_marginal_likelihood_value_ = model.evidence


class Streaming:
    """What a classifier does with rows that keep coming."""

    def partial_fit(self: Any, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Learn from some rows, and keep what was learned from all before.

        The first rows choose the inducing inputs and the hyperparameters. The posterior after some rows is
        the prior of the next (streaming variational Bayes), so that each row is seen once; they should come
        shuffled, as what was made of early rows is not looked at again.
        ``log_marginal_likelihood_value_`` adds up the bounds of all calls.

        Parameters
        ----------
        X, y : rows and labels, as for ``fit``
        classes : array-like, default=None
            All classes there will ever be; to be given in the first call if they are not all in it.
        sample_weight : array-like of shape (n,), default=None

        Returns
        -------
        self
        """
        first = not hasattr(self, "base_estimator_") or not hasattr(self.base_estimator_, "fit")
        X, y = check_inputs(self, X, y, vectors=True, fitting=True) if first else _further(self, X, y)
        weight = check_weights(sample_weight, self.class_weight, y)
        known = np.unique(y if classes is None else classes) if first else self.classes_
        if len(known) < 2:
            raise ValueError(
                "The first rows of partial_fit have one class only: give all classes with classes=[...]."
            )
        settings = _check(self, len(known))
        rows = Rows(X, *Encode(known)(y, weight))
        if not first:
            self._go_on(rows)
            return self
        kernel = default_kernel(X) if self.kernel is None else settable(self.kernel)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        plan, problem = LearningPlan(enabled=self.optimizer is not None), _problem(self, kernel)
        if len(known) == 2:
            model: Any = fit_stream(problem, rows, plan, settings, seed=seed)
        else:
            model = fit_joint_stream(problem, rows, len(known), plan, settings, seed=seed)
        _set(self, replace(model, data=None), known, seed)
        return self

    def _go_on(self: Any, rows: Rows) -> None:
        """Take more rows in, with the posterior so far as the prior."""
        model = self.base_estimator_
        n_latents = len(model.fit.q.P)
        engine = Engine(rows, model.problem.likelihood, n_latents, np.float64, base=model.fit.q)
        fit = engine.settle(model.fit.basis, model.fit.q, tol=1e-6 * rows.n_rows)
        fit = replace(fit, q=fit.next_q, bound=model.evidence + fit.bound)
        report = replace(model.report, n_rows=model.report.n_rows + rows.n_rows)
        self.base_estimator_ = replace(refitted(model, fit), report=report)
        self.log_marginal_likelihood_value_ = fit.bound


def _further(clf: Any, X: Any, y: Any) -> tuple[Any, Any]:
    X = check_inputs(clf, X, vectors=True, fitting=False)
    y = np.asarray(y)
    if y.shape != (len(X),):
        raise ValueError(f"y has shape {y.shape}, expected ({len(X)},): one label for each row of X.")
    return X, y
