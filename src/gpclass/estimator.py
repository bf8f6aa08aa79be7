"""The classifier. It checks its arguments and the data, and calls the parts that do the work."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from gpclass.core.checks import seed_of
from gpclass.core.hyperpriors import Shrinkage
from gpclass.core.progress import reporter
from gpclass.core.protocols import Inference, Likelihood
from gpclass.data.rows import Rows
from gpclass.data.sources import as_source
from gpclass.fitted import Predictions
from gpclass.learning.fitted import FittedModel, complaints
from gpclass.learning.strategies import fit_best
from gpclass.parameters import check_parameters
from gpclass.tables import TakesTables, plain_labels, read_inputs
from gpclass.tasks import Training, TrainingRows, candidates, encode_for, from_rows, from_source, make_task
from gpclass.validation import check_labels, check_weights

__all__ = ["GaussianProcessClassifier"]

# Attributes that every fit sets, and those that only a fit to columns sets.
RESULTS = {"base_estimator_", "encoder_", "_seed", "_rows", "classes_", "n_classes_"}
RESULTS |= {"log_marginal_likelihood_value_"}
FEATURES = {"n_features_in_", "feature_names_in_"}


def _in_one_model(clf: Any) -> bool:
    """Return True if the model supports partial_fit; raise AttributeError with the reason if not."""
    if clf.multi_class != "joint":
        raise AttributeError(f"partial_fit needs multi_class='joint', not {clf.multi_class!r}.")
    return True


class GaussianProcessClassifier(TakesTables, Predictions, ClassifierMixin, BaseEstimator):
    """Gaussian-process classifier, a drop-in replacement for scikit-learn's class of the same name.

    A latent function f has a Gaussian-process prior, and the likelihood turns its values into class probabilities.
    The posterior of f is approximated or sampled, and the hyperparameters are learned by maximising the evidence.

    Parameters
    ----------
    kernel : kernel, name or None, default=None
        None chooses by the evidence: RBF or Matérn with one length scale per column, a bias, and a linear part and a
        transform of the columns where they improve the evidence. Otherwise any kernel of scikit-learn or
        `gpclass.kernels`, or a name of `gpclass.kernels.kernel_names` (``"rbf"``, ``"matern32"``, ...), whose
        hyperparameters start from the scales of the columns. A `CompoundKernel` has one kernel for each of three
        classes or more, in the order of ``classes_``.
    likelihood : {"probit", "logit", "cloglog", "label_noise", "ordinal", "multiprobit", "softmax"} or object, \
            default="probit"
        p(y|f), as a name or as an object of `gpclass.likelihoods`; "ordinal" is for ordered classes. With three classes
        or more in one model the probit is the multinomial probit, and the logit is softmax; with "dirichlet" both are
        softmax.
    inference : {"auto", "laplace", "ep", "vi", "dirichlet", "mcmc", "rejection"} or object, default="auto"
        How to compute or sample p(f|X, y), as a name or a settings record of `gpclass.inference`, `gpclass.mcmc` (needs
        arviz-stats) or `gpclass.sampling` (exact draws, for a handful of rows). ``"auto"`` is ``"vi"`` for two
        classes, and for more of them ``"vi"`` or ``"dirichlet"``, whichever has the better leave-one-out score.
    optimizer : "fmin_l_bfgs_b", callable or None, default="fmin_l_bfgs_b"
        How the evidence is maximised. A callable gets ``(obj_func, initial_theta, bounds)`` and returns
        ``(theta, value)``, where ``obj_func(theta, eval_gradient=True)`` is to be minimised. None
        keeps the hyperparameters of the kernel.
    n_restarts_optimizer : int, default=0
        Number of additional runs of the optimiser, from random points between the bounds. The best run is kept.
    max_iter_predict : int, default=100
        Largest number of iterations of the approximation, if ``inference`` is a name.
    warm_start : bool, default=False
        Whether inference starts from the posterior of the previous fit, for the same numbers of rows and classes.
    copy_X_train : bool, default=True
        Whether to keep a copy of X rather than a reference to it.
    random_state : int, RandomState or None, default=None
        Used for restarts, sampling and Monte Carlo integration.
    multi_class : {"joint", "one_vs_rest", "one_vs_one"}, default="joint"
        How to treat three classes or more: in one model with one latent function per class, or as two-class models.
    n_jobs : int or None, default=None
        Number of processes for the restarts, or for the two-class problems of a multi-class one.
    hyperparameters : {"learn", "sample"}, default="learn"
        Whether hyperparameters maximise the evidence, or are sampled together with f; predictions then
        average over them. Those without a ``hyperprior`` are log-normal about the kernel's values when sampled.
    hyperprior : Shrinkage, or mapping of str to frozen scipy.stats distribution or Shrinkage, default=None
        Priors of hyperparameters, by their names in the kernel (``"k2__length_scale"``, or ``"length_scale"`` for all
        of that name). `gpclass.core.hyperpriors.Shrinkage` shrinks several length scales towards each other.
    inducing : "auto", int, array, `gpclass.sparse.Inducing` or None, default="auto"
        Inducing inputs, for more rows than n x n matrices allow: their number, the inputs themselves, or all settings.
        "auto" uses up to 2,000 of them for more than a few thousand rows; None uses none.
    class_weight : mapping, "balanced" or None, default=None
        Weights of the classes, multiplied into ``sample_weight``.
    cost_matrix : array of shape (n_classes, n_classes), default=None
        ``cost_matrix[i, j]`` is the cost of predicting class j when class i is true. By default all errors cost one.
    integration : {"exact", "map", "mackay", "monte_carlo"}, default="exact"
        How class probabilities are averaged over the latent value; see `gpclass.learning.prediction`.
    verbose : int, default=0
        Whether to show progress: the stage of the fit and its number of rows, in a line on standard error.
    categorical_features : "from_dtype", names, indices, mask or None, default="from_dtype"
        Columns to treat as categories, besides text and categorical types; see `gpclass.tables.Encoder`.

    Attributes
    ----------
    kernel_ : kernel
        The kernel with its hyperparameters; for several two-class models a `CompoundKernel` of their kernels.
    inference_ : object
        The method with its settings.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    n_classes_ : int
        Number of classes.
    log_marginal_likelihood_value_ : float or None
        Log evidence at ``kernel_.theta``; the mean over several two-class models. None after sampling.
    base_estimator_ : object
        The fitted model, or a combination of several two-class models.
    posterior_ : Posterior or list of them
        The latent process; one for each two-class model.
    history_ : History or None, or list of them
        Theta, evidence and gradient norm at every evaluation while learning.
    compared_ : tuple of Compared, or list of them
        The models that ``kernel=None`` compared: ``model`` (a description), ``n_rows``, ``value`` (the integrated
        evidence), ``objective`` (log evidence plus log prior at the best hyperparameters) and ``chosen``.
        Evidences are in nats; with Dirichlet classification they are those of its targets.
    chains_ : Chains or list of them
        The draws of f at the training rows, and of theta if it was sampled. Exists only after ``"mcmc"``.
    encoder_ : gpclass.tables.Encoder or None
        Codes tables with categories, dates or missing values; None if X has only numbers.
    n_features_in_, feature_names_in_ : number and, for data frames, names of the columns

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpclass import GaussianProcessClassifier
    >>> from gpclass.kernels import RBF
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> clf = GaussianProcessClassifier(1.0 * RBF(5.0)).fit(X[::2], y[::2])
    >>> bool(clf.score(X[1::2], y[1::2]) > 0.95)
    True
    >>> low, high = clf.predict_interval(X[1:3], level=0.9)
    >>> bool(((0 < low) & (low < high) & (high < 1)).all())
    True
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        likelihood: str | Likelihood = "probit",
        inference: str | Inference = "auto",
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        max_iter_predict: int = 100,
        warm_start: bool = False,
        copy_X_train: bool = True,
        random_state: Any = None,
        multi_class: str = "joint",
        n_jobs: int | None = None,
        hyperparameters: str = "learn",
        hyperprior: Mapping[str, Any] | Shrinkage | None = None,
        inducing: Any = "auto",
        class_weight: Any = None,
        cost_matrix: Any = None,
        integration: str = "exact",
        verbose: int = 0,
        categorical_features: Any = "from_dtype",
    ) -> None:
        self.kernel = kernel
        self.likelihood = likelihood
        self.inference = inference
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.max_iter_predict = max_iter_predict
        self.warm_start = warm_start
        self.copy_X_train = copy_X_train
        self.random_state = random_state
        self.multi_class = multi_class
        self.n_jobs = n_jobs
        self.hyperparameters = hyperparameters
        self.hyperprior = hyperprior
        self.inducing = inducing
        self.class_weight = class_weight
        self.cost_matrix = cost_matrix
        self.integration = integration
        self.verbose = verbose
        self.categorical_features = categorical_features

    # ------------------------------------------------------------------------------- fit

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None) -> Self:
        """Learn the hyperparameters and infer the latent function.

        Parameters
        ----------
        X : array-like or table of shape (n, n_features), or a sequence of objects for kernels on objects
            It may have text, dates and missing values, and may be a table of pandas, polars or Arrow.
            Rows that are read in passes and never held in memory can be given as a Dask array or data frame, the path
            of a Parquet file or folder, a source of `gpclass.data.sources`, or a function that yields blocks (X, y).
        y : array-like of shape (n,)
            Labels of any kind. For files, and optionally for a Dask data frame, the name of the column with the labels.
        sample_weight : array-like of shape (n,), default=None
            Weight k counts a row as k copies of it.
        client : distributed.Client, default=None
            The Dask cluster that works on a Dask collection or on files. None is the current client for a Dask
            collection, and this process for files.

        Returns
        -------
        self
        """
        check_parameters(self)
        seed = seed_of(self.random_state)
        source, new = as_source(X, y, sample_weight, client), copy(self)
        training = from_rows(new, X, y, sample_weight) if source is None else from_source(new, source)
        return self._take(new._fit(training, seed))

    @available_if(_in_one_model)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Update the model with further rows (streaming variational Bayes).

        The first call chooses the inducing inputs and learns the hyperparameters; later calls keep them. The posterior
        after each call is the prior of the next, so that every row is used once. Rows should be shuffled.
        ``log_marginal_likelihood_value_`` is the sum of the bounds of all calls.

        Parameters
        ----------
        X, y : rows and labels, as for ``fit``
        classes : array-like, default=None
            All classes; required in the first call if its rows do not contain all of them.
        sample_weight : array-like of shape (n,), default=None

        Returns
        -------
        self
        """
        check_parameters(self)
        seed = seed_of(self.random_state)
        model: Any = getattr(self, "base_estimator_", None)
        if getattr(model, "inducing", None) is not None:
            return self._update(model, X, y, sample_weight)
        new = copy(self)
        X, y = read_inputs(new, X, y, sample_weight, vectors=True, fitting=True)
        check_labels(y)
        known = np.unique(y if classes is None else classes)
        if len(known) < 2:
            raise ValueError("The first rows of partial_fit have only one class: give classes=[...].")
        rows, none = self._encoded(X, y, sample_weight, known), np.empty(0, dtype=np.intp)
        new._fit(Training(known, len(X), X, none, data=rows, coding=new.encoder_), seed)
        new.base_estimator_ = replace(new.base_estimator_, objective=None)  # further rows will change it
        return self._take(new)

    def _update(self, model: FittedModel, X: Any, y: Any, sample_weight: Any) -> Self:
        """Update the model with more rows; the current posterior is their prior."""
        X, y = self._check_fitted_inputs(X), np.asarray(plain_labels(y))
        if y.shape != (len(X),):
            raise ValueError(f"y has shape {y.shape}, expected ({len(X)},): one label for each row of X.")
        from gpclass.learning.passes import update

        new = copy(self)
        rows = self._encoded(X, y, sample_weight, self.classes_)
        new._keep(update(model, rows), self.classes_, None, self._seed)
        return self._take(new)

    def _encoded(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> Rows:
        """Return rows with labels in the form that the likelihood takes."""
        weight = check_weights(sample_weight, self.class_weight, y)
        return Rows(X, *encode_for(self, classes)(y, weight))

    def _take(self, new: Self) -> Self:
        """Take over the results of a fitted copy in one assignment; a failed fit leaves the previous one intact."""
        found = RESULTS | FEATURES
        others = {name: value for name, value in vars(self).items() if name not in found}
        self.__dict__ = others | {name: value for name, value in vars(new).items() if name in found}
        return self

    def _fit(self, training: Training, seed: int) -> Self:
        """Fit to rows of any kind; `fit` and `partial_fit` both call this."""
        n_classes = len(training.classes)
        if self.cost_matrix is not None:
            from gpclass.decision import check_cost

            check_cost(self.cost_matrix, n_classes, n_classes)
        with reporter(self.verbose, f"fitting {training.n_rows:,} rows") as report:
            pose = partial(make_task, training=training, seed=seed, report=report)
            fitted = fit_best(list(map(pose, candidates(self, training))))
        self._keep(fitted, training.classes, training.rows, seed)
        return self

    def _keep(self, fitted: Any, classes: Any, rows: TrainingRows | None, seed: int) -> None:
        """Store a fitted model, and warn if it did not converge or is of little use."""
        self.base_estimator_, self._seed, self._rows = fitted, seed, rows
        self.classes_, self.n_classes_ = classes, len(classes)
        for sentence, category in complaints(fitted.models, self.kernel):
            warnings.warn(sentence, category, stacklevel=4)
        evidences = [model.evidence for model in fitted.models]
        self.log_marginal_likelihood_value_: Any = None if None in evidences else np.mean(evidences)
