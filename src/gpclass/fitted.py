"""What a fitted classifier shows of itself: kernel, posterior, history, leave-one-out probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gpclass.core.protocols import Array
from gpclass.kernels import CompoundKernel
from gpclass.learning.multiclass import OneVsOne


class FittedAttributes:
    """Properties of a classifier with ``base_estimator_``; absent before it is fitted."""

    base_estimator_: Any
    _home: Any  # positions of the rows of positive weight, where each went when copies were merged, its class

    @property
    def kernel_(self) -> Any:
        """The kernel with its hyperparameters."""
        kernels = [model.kernel for model in self._fitted_models()]
        return kernels[0] if len(kernels) == 1 else CompoundKernel(kernels)

    @property
    def posterior_(self) -> Any:
        """The latent process, or a list of them."""
        return one_or_list([model.posterior for model in self._fitted_models()])

    @property
    def history_(self) -> Any:
        """The course of learning, or a list of them; None where nothing was learned."""
        learned = [model.learned for model in self._fitted_models()]
        return one_or_list([None if end is None else end.history for end in learned])

    @property
    def chains_(self) -> Any:
        """The chains of each model, where it was sampled."""
        chains = [getattr(model, "chains", None) for model in self._fitted_models()]
        if None in chains:
            raise AttributeError("There are no chains: they come with inference='mcmc'.")
        return one_or_list(chains)

    @property
    def loo_proba_(self) -> Array:
        """Class probabilities of each training row of positive weight, from the other rows."""
        self._fitted_models()
        if isinstance(self.base_estimator_, OneVsOne):
            raise AttributeError("multi_class='one_vs_one' has no leave-one-out probabilities.")
        if self._home[0] is None:
            raise AttributeError(
                "Variational models with inducing inputs keep no leave-one-out probabilities."
            )
        if self._home[1] is None:  # a row is in several sites
            raise AttributeError("Soft labels have leave-one-out probabilities with 'softmax' only.")
        out: Array = np.exp(self.base_estimator_.loo[self._home[1]])
        return out

    @property
    def loo_log_score_(self) -> float:
        """Mean log probability of a row's class from the other rows, averaged over soft labels."""
        p, truth = self.loo_proba_, self._home[2]
        with np.errstate(divide="ignore"):
            if truth.ndim == 1:
                return float(np.mean(np.log(p[np.arange(len(p)), truth])))
            return float(np.where(truth > 0.0, truth * np.log(p), 0.0).sum(axis=1).mean())

    def check_approximation(self, n_samples: int = 2000, random_state: Any = None) -> Any:
        """Measure how wrong the approximation is, by importance sampling from it.

        Returns an `gpclass.evidence.ApproximationCheck` (for several two-class models a list): evidence,
        corrected evidence with its standard error, how far the probabilities at the training inputs
        shift, and whether the correction can be believed.
        """
        from gpclass.learning.checking import check

        check_is_fitted(self)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        return one_or_list([check(model, n_samples, rng) for model in self.base_estimator_.models])

    def save(self, path: Any) -> None:
        """Write the fitted classifier to one file, which `gpclass.load` reads: no pickle, no code in it."""
        from gpclass.persistence import save

        check_is_fitted(self)
        save(self, path)

    def _fitted_models(self) -> Any:
        if not hasattr(self, "base_estimator_"):  # so that hasattr(clf, "kernel_") is False before fit
            raise AttributeError(f"This {type(self).__name__} is not fitted yet: call fit() first.")
        return self.base_estimator_.models


def one_or_list(items: list[Any]) -> Any:
    """Return the only item, or all of them."""
    return items[0] if len(items) == 1 else items
