"""Predictions and attributes of a fitted classifier."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpclass.core.checks import check_integers, seed_of
from gpclass.core.protocols import Array
from gpclass.data.sources import is_dask
from gpclass.explanations import Explanations
from gpclass.kernels import CompoundKernel
from gpclass.learning.combine import mean_evidence, split_theta
from gpclass.learning.fitted import DoubtfulFitWarning
from gpclass.tables import read_inputs
from gpclass.tasks import TrainingRows

NO_LOO = (
    "There are no leave-one-out probabilities: they need the training rows, which a model with inducing inputs does "
    "not keep after partial_fit or in a file, and one model of all classes, not multi_class='one_vs_one'."
)
TOO_NARROW = (
    "Credible intervals of Dirichlet classification are too narrow: its targets are made from the labels, and in "
    "simulations intervals of 95 % contained 40 to 90 % of the true probabilities. Use inference='vi' for intervals."
)


def stacked(items: Any, axis: int) -> Any:
    """Return the only item, or all of them as one array."""
    return items[0] if len(items) == 1 else np.stack(items, axis=axis)


def one_or_list(items: list[Any]) -> Any:
    """Return the only item, or all of them."""
    return items[0] if len(items) == 1 else items


def per_model(get: Callable[[Any], Any], doc: str) -> property:
    """Return a property that gets a result of the fitted model, or a list with one result per two-class model."""
    return property(lambda self: one_or_list([get(model) for model in self._fitted_models()]), doc=doc)


class Predictions(Explanations):
    """Predictions and attributes of a classifier with ``base_estimator_``; absent before it is fitted."""

    base_estimator_: Any
    encoder_: Any
    classes_: Any
    n_classes_: int
    log_marginal_likelihood_value_: Any
    cost_matrix: Any
    integration: str
    _rows: TrainingRows | None
    _seed: int

    # ----------------------------------------------------------------------- predictions

    def predict(self, X: Any) -> Any:
        """Return a class for each row: the most probable one, or the one with the least expected cost.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            A Dask collection is predicted lazily.

        Returns
        -------
        ndarray of shape (n,)
            Labels. With ``cost_matrix`` they minimise the expected cost under `predict_proba`. Among classes that
            agree to nine digits the last one in ``classes_`` is chosen.
        """
        from gpclass.decision import bayes_decision, check_cost

        if is_dask(X):
            return self._lazily("predict", X)
        X, route, cost = self._check_fitted_inputs(X), self.integration, None
        if self.cost_matrix is not None:
            cost = check_cost(self.cost_matrix, self.n_classes_, self.n_classes_)
        elif route in ("exact", "mackay") and self.base_estimator_.decides_by_mean:
            route = "map"  # the sign of the mean gives the same class (R&W section 3.4.2)
        log_proba = self.base_estimator_.log_proba(X, route, np.random.default_rng(self._seed))
        return self.classes_[bayes_decision(np.exp(log_proba), cost)]

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every class, averaged over the latent function.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            A Dask collection is predicted lazily.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Columns are in the order of ``classes_``.
        """
        if is_dask(X):
            return self._lazily("predict_proba", X)
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the class probabilities, which do not underflow.

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, n_classes)
        """
        if is_dask(X):
            return self._lazily("predict_log_proba", X)
        X = self._check_fitted_inputs(X)
        rng = np.random.default_rng(self._seed)
        return np.asarray(self.base_estimator_.log_proba(X, self.integration, rng))

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Array, Array]:
        """Return credible intervals of the class probabilities.

        Intervals of Dirichlet classification are too narrow for their level, and give a warning.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        level : float, default=0.95
            Probability that the interval contains p(y|f), as f varies over its posterior.

        Returns
        -------
        low, high : ndarray of shape (n,) or (n, n_classes)
            Bounds of the probability of ``classes_[1]``, exact; for three classes or more bounds of the probability
            of every class, by Monte Carlo.
        """
        X = self._check_fitted_inputs(X)
        self._warn_of_narrow_intervals()
        return self.base_estimator_.interval(X, level, np.random.default_rng(self._seed))

    def predict_latent(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the posterior mean of the latent function, and its standard deviation or covariance if requested.

        There is one function per class with softmax, the multinomial probit, Dirichlet classification (also of two
        classes) and separate models; otherwise there is one.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        return_std, return_cov : bool, default=False
            Whether to return standard deviations, or covariances, as well.

        Returns
        -------
        mean : ndarray of shape (n,) or (n, n_classes)
        std : ndarray of the same shape, if ``return_std``
        cov : ndarray, if ``return_cov``
            Shape (n, n) for one latent function. For several, their covariance at each row, (n, n_classes,
            n_classes); for separate models (n_classes, n, n).
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov are both True: ask for one of them.")
        X, models = self._check_fitted_inputs(X), self._latent_models()
        if return_std:
            means, variances = zip(*(model.latent(X) for model in models), strict=True)
            return stacked(means, 1), np.sqrt(stacked(variances, 1))
        if return_cov:
            means, covariances = zip(*(model.covariance(X) for model in models), strict=True)
            return stacked(means, 1), stacked(covariances, 0)
        return stacked([model.posterior.mean(X) for model in models], 1)

    def sample_latent(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw the latent functions of `predict_latent` from their posterior, jointly at the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        n_samples : int, default=1
        random_state : int, RandomState or None, default=None

        Returns
        -------
        ndarray of shape (n, n_samples) or (n, n_classes, n_samples)
        """
        X = self._check_fitted_inputs(X)
        check_integers(n_samples=n_samples)
        rng = np.random.default_rng(seed_of(random_state))
        models = self._latent_models()
        return np.asarray(stacked([model.posterior.sample(X, n_samples, rng) for model in models], 1))

    def latent_mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        """Return mean and variance of f at each row, for two classes only (scikit-learn's method).

        Where each class has a latent function, f is the second one minus the first one.

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        mean, variance : ndarray of shape (n,)
        """
        X = self._check_fitted_inputs(X)
        if self.n_classes_ > 2:
            raise ValueError(
                "Returning the mean and variance of the latent function f is only supported for binary "
                f"classification, received {self.n_classes_} classes: use predict_latent()."
            )
        return self.base_estimator_.difference(X)

    def log_marginal_likelihood(
        self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        """Return the log evidence at theta, and its gradient if requested.

        Parameters
        ----------
        theta : array-like, default=None
            Log hyperparameters of ``kernel_``; for several two-class models they may also be those of one kernel,
            shared by all. None returns ``log_marginal_likelihood_value_``.
        eval_gradient : bool, default=False
            Whether to return ``(value, gradient)``.
        clone_kernel : bool, default=True
            False also sets ``kernel_.theta`` (scikit-learn's side effect); predictions are not affected.

        Returns
        -------
        value : float
        gradient : ndarray, if ``eval_gradient``
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

    def check_approximation(self, n_samples: int = 2000, random_state: Any = None) -> Any:
        """Measure how far the approximation is from the exact posterior, by importance sampling.

        Parameters
        ----------
        n_samples : int, default=2000
            Number of draws.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        gpclass.evidence.ApproximationCheck, or a list of them for several two-class models
            The evidence, its corrected value with a standard error, how far the probabilities of the training rows
            are off, whether the correction can be trusted (k-hat), and a ``verdict`` in words.
        """
        from gpclass.learning.checking import check

        check_is_fitted(self)
        check_integers(4, n_samples=n_samples)
        rng = np.random.default_rng(seed_of(random_state))
        return one_or_list([check(model, n_samples, rng) for model in self.base_estimator_.models])

    @property
    def kernel_(self) -> Any:
        """The kernel with its hyperparameters."""
        found = one_or_list([model.kernel for model in self._fitted_models()])
        return CompoundKernel(found) if isinstance(found, list) else found

    @property
    def inference_(self) -> Any:
        """The method with its settings, the same for all models."""
        return self._fitted_models()[0].problem.inference

    likelihood_ = per_model(lambda model: model.likelihood, "The likelihood with its parameters.")
    posterior_ = per_model(lambda model: model.posterior, "The latent process.")
    history_ = per_model(
        lambda model: model.learned and model.learned.history, "The history of learning, or None."
    )
    compared_ = per_model(
        lambda model: model.learned.compared if model.learned else (), "The models compared."
    )

    @property
    def chains_(self) -> Any:
        """The chains of each model, if it was sampled."""
        chains = [model.chains for model in self._fitted_models()]
        if None in chains:
            raise AttributeError("There are no chains: they need inference='mcmc'.")
        return one_or_list(chains)

    @property
    def loo_proba_(self) -> Array:
        """Class probabilities of each training row of positive weight, from the other rows.

        With inducing inputs this takes a pass over the rows, in their order.
        """
        self._fitted_models()
        loo = self.base_estimator_.loo_log_proba()
        if loo is None:
            raise AttributeError(NO_LOO)
        if self._rows is None:
            return np.asarray(np.exp(loo))
        return np.asarray(np.exp(loo[self._rows.home]))

    @property
    def loo_log_score_(self) -> float:
        """Mean log probability of a row's class from the other rows."""
        if self._rows is None:  # with inducing inputs the rows need not fit into memory
            score = self._fitted_models()[0].loo_log_score()
            if score is None:
                raise AttributeError(NO_LOO)
            return float(score)
        p, truth = self.loo_proba_, self._rows.truth
        with np.errstate(divide="ignore"):
            return float(np.mean(np.log(p[np.arange(len(p)), truth])))

    def save(self, path: Any) -> None:
        """Write the fitted classifier to one file, which `gpclass.load` reads. It contains no code.

        Parameters
        ----------
        path : str or path
        """
        from gpclass.persistence import save

        check_is_fitted(self)
        save(self, path)

    def training_rows(self) -> tuple[Array, Any]:
        """Return the rows that the model was fitted to, and their labels.

        Returns
        -------
        X : ndarray of shape (n, n_features), coded by ``encoder_`` if there is one
        y : ndarray of shape (n,) or None
            None with soft labels and with ``multi_class="one_vs_one"``, where X has the rows of all two-class models.
        """
        problems = [model.problem for model in self._fitted_models()]
        rows = self._rows
        if rows is None or any(model.inducing is not None for model in self._fitted_models()):
            raise ValueError("The training rows are not kept by a model with inducing inputs.")
        if getattr(self.base_estimator_, "pairs", ()):
            return np.concatenate([np.asarray(problem.X) for problem in problems]), None
        first = problems[0].first
        home = rows.home if first is None else first[rows.home]
        return np.asarray(problems[0].X)[home], self.classes_[rows.truth]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "base_estimator_")

    def _fitted_models(self) -> Any:
        if not hasattr(self, "base_estimator_"):  # so that hasattr(clf, "kernel_") is False before fit
            raise AttributeError(f"This {type(self).__name__} is not fitted yet: call fit() first.")
        return self.base_estimator_.models

    def _latent_models(self) -> Any:
        if getattr(self.base_estimator_, "pairs", ()):
            raise ValueError(
                "multi_class='one_vs_one' has no latent function for each class: use 'one_vs_rest'."
            )
        return self.base_estimator_.models

    def _warn_of_narrow_intervals(self) -> None:
        if not self._latent_models()[0].problem.is_of_labels:
            warnings.warn(TOO_NARROW, DoubtfulFitWarning, stacklevel=3)

    def _lazily(self, method: str, X: Any) -> Any:
        from gpclass.data.distributed import predict_lazily

        return predict_lazily(self, method, X)

    def _check_fitted_inputs(self, X: Any) -> Any:
        check_is_fitted(self)
        vectors = bool(self.base_estimator_.models[0].kernel.requires_vector_input)
        return read_inputs(self, X, vectors=vectors, fitting=False)
