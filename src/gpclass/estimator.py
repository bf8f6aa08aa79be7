"""The classifier: validate, encode, resolve strings, delegate. No formula lives here."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gpclass.core.hyperpriors import Hyperprior
from gpclass.core.progress import reporter
from gpclass.core.protocols import Array, HasLink, Inference, Likelihood
from gpclass.data.sources import as_source
from gpclass.decision import bayes_decision, check_cost
from gpclass.fitted import FittedAttributes
from gpclass.kernels import bind_columns, settable
from gpclass.labels import Labelled, from_labels, from_probabilities, soft_classes
from gpclass.learning.fitting import complaints, fit_model
from gpclass.learning.maximise import Problem
from gpclass.learning.model import LatentModel, LearningPlan
from gpclass.learning.multiclass import OneVsOne, mean_evidence, split_theta
from gpclass.likelihoods import MultiProbit, Softmax
from gpclass.parameters import (
    MULTI_CLASS,
    check_parameters,
    check_present,
    inducing_for,
    inference_of,
    likelihood_of,
    takes_label_weights,
)
from gpclass.streaming import Streaming, fit_source, lazily
from gpclass.validation import check_inputs, default_kernel


class GaussianProcessClassifier(FittedAttributes, Streaming, ClassifierMixin, BaseEstimator):
    """Gaussian-process classification, a drop-in for scikit-learn's class of the same name.

    A latent function f with a Gaussian-process prior is squashed to class probabilities by a
    likelihood; its posterior is approximated or sampled by ``inference``, and the kernel's hyperparameters
    are learned by maximising the evidence, or sampled as well.

    Parameters
    ----------
    kernel : kernel, default=None
        Any kernel of scikit-learn or of `gpclass.kernels`. None is a learned ``1.0 * RBF`` with one
        length scale a column, started and bounded by the spread of each column. A `CompoundKernel` has
        one for each of three classes or more, in the order of ``classes_``.
    likelihood : {"probit", "logit", "multiprobit", "softmax"} or object, default="probit"
        p(y|f), as a name or as an object of `gpclass.likelihoods`. With three classes or more in one
        model the probit is the multinomial probit, and the logit is softmax.
    inference : {"laplace", "ep", "vi", "mcmc", "rejection"} or object, default="vi"
        How p(f|X, y) is found: approximated, as a name or as a settings record of `gpclass.inference`;
        sampled, as ``"mcmc"`` or a `gpclass.mcmc.MCMC` (needs arviz-stats); or, for a handful of rows,
        by exact draws, as ``"rejection"`` or a `gpclass.sampling.Rejection`. Before f is sampled,
        hyperparameters are learned by the evidence of EP (``learn_by`` of the record).
    optimizer : "fmin_l_bfgs_b", callable or None, default="fmin_l_bfgs_b"
        How the evidence is maximised. A callable gets ``(obj_func, initial_theta, bounds)`` and returns
        ``(theta, value)``, where ``obj_func(theta, eval_gradient=True)`` is to be minimised. None
        keeps the hyperparameters of the kernel.
    n_restarts_optimizer : int, default=0
        Further runs of the optimiser, from log-uniform draws between the bounds; the best run counts.
    max_iter_predict : int, default=100
        Iterations of the approximation at most, when ``inference`` is a name.
    warm_start : bool, default=False
        Whether a further ``fit`` on as many rows of two classes starts from the last posterior.
    copy_X_train : bool, default=True
        Whether to keep a copy of X rather than a reference to it.
    random_state : int, RandomState or None, default=None
        For the restarts, for sampling and for Monte Carlo integration.
    multi_class : {"joint", "one_vs_rest", "one_vs_one"}, default="joint"
        Three classes or more in one model, with a latent function for each, or two at a time.
    n_jobs : int or None, default=None
        Processes for the restarts, or for the two-class problems of a multi-class one.
    hyperparameters : {"learn", "sample"}, default="learn"
        Whether hyperparameters maximise the evidence, or are sampled together with f; predictions then
        average over them. Those without a ``hyperprior`` are log-normal about the kernel's values
        when sampled. An approximation given as ``inference`` is what the sampling starts from.
    hyperprior : mapping of str to frozen scipy.stats distribution, default=None
        Priors on hyperparameters on their natural scale, by the kernel's names for them
        (``{"k2__length_scale": scipy.stats.lognorm(1.0)}``, or ``"length_scale"`` for all so called).
    inducing : "auto", int, array, `gpclass.sparse.Inducing` or None, default="auto"
        Inducing inputs, for more rows than n x n matrices allow: how many, which, or all settings. "auto" has
        none up to a few thousand rows, then as many as are needed, 1,000 at most. None has none ever.
    class_weight : mapping, "balanced" or None, default=None
        Weights of the classes, multiplied into ``sample_weight``.
    cost_matrix : array of shape (n_classes, n_classes), default=None
        ``cost_matrix[i, j]`` is the cost of predicting class j when class i is true; `predict` minimises
        its expectation. None makes every error equally bad.
    integration : {"exact", "map", "mackay", "monte_carlo"}, default="exact"
        How the latent value is averaged out of the class probability; see `gpclass.learning.prediction`.
    verbose : int, default=0
        Whether to show progress on standard error.

    Attributes
    ----------
    kernel_ : kernel
        The kernel with its hyperparameters, their posterior mean (of logs) where they were sampled; for
        several two-class models a `CompoundKernel` of theirs.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; the columns of soft labels, as given.
    n_classes_ : int
        How many there are.
    log_marginal_likelihood_value_ : float or None
        Log evidence at ``kernel_.theta``; the mean over several two-class models. None where sampling
        gives none.
    base_estimator_ : object
        The fitted model, of two classes or of all, or what combines several.
    posterior_ : Posterior or list of them
        The latent process; one for each two-class model.
    history_ : History or None, or list of them
        Theta, evidence and gradient norm at every evaluation while learning.
    chains_ : Chains or list of them
        The draws of f at the training rows, of theta where it was sampled, and their diagnostics; one for
        each two-class model. Only where Markov chains were run.
    n_features_in_, feature_names_in_
        Number and, for data frames, names of the columns.

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
        inference: str | Inference = "vi",
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        max_iter_predict: int = 100,
        warm_start: bool = False,
        copy_X_train: bool = True,
        random_state: Any = None,
        multi_class: str = "joint",
        n_jobs: int | None = None,
        hyperparameters: str = "learn",
        hyperprior: Mapping[str, Any] | None = None,
        inducing: Any = "auto",
        class_weight: Any = None,
        cost_matrix: Any = None,
        integration: str = "exact",
        verbose: int = 0,
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

    # ------------------------------------------------------------------------------- fit

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None) -> Self:
        """Learn the hyperparameters and infer the latent function.

        Parameters
        ----------
        X : array-like of shape (n, n_features), or sequence of objects for kernels on such
            Also, to be passed over and never held in memory: a Dask array or data frame, the path of a
            Parquet file or folder, a source of `gpclass.sparse`, or a function that yields blocks (X, y).
        y : array-like of shape (n,) or (n, n_classes)
            Labels of any kind; or a matrix of floats, whose rows are class probabilities (soft labels).
            Its columns are the classes: their positions, or the names in a data frame. For files, and for a
            Dask data frame if one likes, the name of the column.
        sample_weight : array-like of shape (n,), default=None
            Weight k counts a row as k copies of it.
        client : distributed.Client, default=None
            Where to work on a Dask collection or on files; for the former the current one if None.

        Returns
        -------
        self
        """
        source = as_source(X, y, sample_weight, client)
        if source is not None:
            fit_source(self, source)
            return self
        check_parameters(self)
        vectors = self.kernel is None or bool(self.kernel.requires_vector_input)
        soft = soft_classes(y)
        X, y = check_inputs(self, X, y, vectors=vectors, fitting=True, several=soft is not None)
        kernel = self.kernel
        if kernel is not None and hasattr(self, "feature_names_in_"):
            kernel = bind_columns(kernel, self.feature_names_in_)
        given = (sample_weight, self.class_weight, kernel)
        if soft is None:
            data = from_labels(X, y, *given)
        else:
            data = from_probabilities(X, y, soft, *given, partial(takes_label_weights, self, len(soft)))
        classes = data.classes
        check_present(self, data.codes, len(classes))
        if self.cost_matrix is not None:
            check_cost(self.cost_matrix, len(classes), len(classes))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        problem = self._problem(np.copy(data.X) if self.copy_X_train else data.X, data, kernel)
        with reporter(self.verbose) as report:
            fitted = self._fit_models(problem, data.codes, len(classes), seed, report)
        # Only now: a fit that fails leaves the last one as it was.
        self.base_estimator_, self._seed = fitted, seed
        in_passes = hasattr(fitted.models[0], "report")  # and so nothing is known of single rows
        self._home = (None, None, None) if in_passes else (data.kept, data.home, data.truth)
        self.classes_, self.n_classes_ = classes, len(classes)
        for model in self.base_estimator_.models:
            for sentence in complaints(model, at_bounds=self.kernel is not None):
                warnings.warn(sentence, ConvergenceWarning, stacklevel=2)
        evidences = [model.evidence for model in self.base_estimator_.models]
        self.log_marginal_likelihood_value_: Any = None if None in evidences else np.mean(evidences)
        return self

    def _fit_models(self, problem: Problem, codes: Any, n_classes: int, seed: int, report: Any) -> Any:
        plan = LearningPlan(
            enabled=self.optimizer is not None,
            optimizer=self.optimizer if callable(self.optimizer) else None,
            n_restarts=self.n_restarts_optimizer,
            n_jobs=self.n_jobs,
            report=report,
            sample=self.hyperparameters == "sample",
            inducing=inducing_for(self, problem.X, n_classes),
        )
        if n_classes > 2 or isinstance(problem.likelihood, Softmax | MultiProbit):
            return MULTI_CLASS[self.multi_class](problem, codes, n_classes, plan, seed)
        last, init = getattr(self, "base_estimator_", None), None
        if self.warm_start and isinstance(last, LatentModel) and len(last.sites.tau) == len(codes):
            init = last.sites
        return fit_model(problem, plan, init=init, seed=seed)

    def _problem(self, X: Any, data: Labelled, kernel: Any) -> Problem:
        kernel = default_kernel(X, data.row_weight) if kernel is None else settable(kernel)
        likelihood, inference = likelihood_of(self), inference_of(self)
        hyperprior = None if self.hyperprior is None else Hyperprior(kernel, self.hyperprior)
        y = data.codes if data.codes.ndim == 2 else np.where(data.codes == 1, 1.0, -1.0)
        return Problem(X, y, data.weight, kernel, likelihood, inference, hyperprior)

    # ----------------------------------------------------------------------- predictions

    @lazily(labels=True)
    def predict(self, X: Any) -> Any:
        """Return the class of least expected cost for each row: the Bayes decision on `predict_proba`."""
        X, route, cost = self._check_fitted_inputs(X), self.integration, None
        if self.cost_matrix is not None:
            cost = check_cost(self.cost_matrix, self.n_classes_, self.n_classes_)
        elif route in ("exact", "mackay") and self._is_gaussian():
            route = "map"  # on the same side of one half (R&W section 3.4.2), for the price of the mean
        log_proba = self.base_estimator_.log_proba(X, route, self._rng())
        return self.classes_[bayes_decision(np.exp(log_proba), cost)]

    @lazily()
    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities, shape (n, n_classes), columns as in ``classes_``."""
        return np.exp(self.predict_log_proba(X))

    @lazily()
    def predict_log_proba(self, X: Any) -> Array:
        """Return log class probabilities, without underflow, shape (n, n_classes)."""
        X = self._check_fitted_inputs(X)
        out: Array = self.base_estimator_.log_proba(X, self.integration, self._rng())
        return out

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Array, Array]:
        """Return the central credible interval of the probability of ``classes_[1]``: (low, high).

        It is the interval of p(y|f) as f varies over its posterior, exact for two classes. For three
        classes or more it is by Monte Carlo, each bound of shape (n, n_classes).
        """
        X = self._check_fitted_inputs(X)
        bounds: tuple[Array, Array] = self._latents().interval(X, level, self._rng())
        return bounds

    def predict_latent(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the posterior mean of f, with its standard deviation or its full covariance if asked.

        For three classes or more means and deviations have shape (n, n_classes). Covariances are those of
        the classes at each row, (n, n_classes, n_classes); of separate models (n_classes, n, n).
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov are both True: ask for one of them.")
        X = self._check_fitted_inputs(X)
        if return_cov:
            return self._latents().covariance(X)
        if return_std:
            mean, var = self._latents().latent(X)
            return mean, np.sqrt(var)
        return self._latents().mean(X)

    def sample_latent(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw f jointly at the rows of X: shape (n, n_samples), or (n, n_classes, n_samples)."""
        X = self._check_fitted_inputs(X)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        draws: Array = self._latents().sample(X, n_samples, rng)
        return draws

    def proba_gradient(self, X: Any) -> Array:
        """Return the gradient of the predicted probability with respect to the inputs.

        Shape (n, n_features), of the probability of ``classes_[1]``, for two classes;
        (n, n_classes, n_features) for more.
        """
        X = self._check_fitted_inputs(X)
        gradient: Array = self._latents().proba_gradient(X, self.integration)
        return gradient

    def latent_mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        """Return mean and variance of f at each row, for two classes only (scikit-learn's method)."""
        X = self._check_fitted_inputs(X)
        if self.n_classes_ > 2:
            raise ValueError(
                "Returning the mean and variance of the latent function f is only supported for binary "
                f"classification, received {self.n_classes_} classes: use predict_latent()."
            )
        latent: tuple[Array, Array] = self._latents().latent(X)
        return latent

    # -------------------------------------------------------------------------- evidence

    def log_marginal_likelihood(
        self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        """Return the log evidence at theta, and its gradient if asked for.

        Parameters
        ----------
        theta : array-like, default=None
            Log hyperparameters: of ``kernel_``, or for several two-class models also of one kernel,
            to be shared by all. None returns ``log_marginal_likelihood_value_``.
        eval_gradient : bool, default=False
            Whether to return ``(value, gradient)``.
        clone_kernel : bool, default=True
            False also sets ``kernel_.theta`` (scikit-learn's side effect); predictions are not affected.
        """
        check_is_fitted(self)
        if theta is None:
            if eval_gradient:
                raise ValueError("Gradient can only be evaluated for theta!=None")
            return self.log_marginal_likelihood_value_
        theta, models = np.asarray(theta, dtype=float), self.base_estimator_.models
        value, gradient = mean_evidence(models, theta, eval_gradient)
        if not clone_kernel:
            for model, part in zip(models, split_theta(models, theta), strict=True):
                model.kernel.theta = part
        return (value, gradient) if eval_gradient else value

    # --------------------------------------------------------------------------- helpers

    def _latents(self) -> Any:
        if isinstance(self.base_estimator_, OneVsOne):
            raise ValueError(
                "multi_class='one_vs_one' has no latent function for each class: use 'one_vs_rest'."
            )
        return self.base_estimator_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "base_estimator_")

    def _is_gaussian(self) -> bool:
        """Whether there is one latent function, Gaussian at every input: a mixture may be skewed."""
        model = self.base_estimator_
        return isinstance(model, LatentModel) and isinstance(model.problem.likelihood, HasLink)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self._seed)

    def _check_fitted_inputs(self, X: Any) -> Any:
        check_is_fitted(self)
        vectors = bool(self.base_estimator_.models[0].kernel.requires_vector_input)
        return check_inputs(self, X, vectors=vectors, fitting=False)
