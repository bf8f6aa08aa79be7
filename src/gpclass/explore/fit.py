"""The classifier that a state describes, fitted to its points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.estimator import GaussianProcessClassifier
from gpclass.explore.kernels import kernel_at
from gpclass.explore.state import State
from gpclass.explore.warned import collected
from gpclass.mcmc import MCMC
from gpclass.sampling import Rejection

# Fewer draws than by default: a picture is to follow the points, and a line is a pixel wide.
SAMPLERS: dict[str, Any] = {
    "mcmc": MCMC(n_draws=300, n_warmup=200, thin=2),
    "rejection": Rejection(n_draws=500, max_proposals=200_000),
}
FEWER: dict[str, Any] = {"mcmc": MCMC(n_draws=50, n_warmup=200, thin=5)}  # for three classes and more


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A fitted classifier, whose labels are positions of classes, and the warnings of its fit."""

    clf: Any
    n_classes: int
    notes: tuple[str, ...] = ()

    @property
    def evidence(self) -> float | None:
        """The log evidence; None where sampling gives none."""
        value = self.clf.log_marginal_likelihood_value_
        return None if value is None else float(value)

    @property
    def present(self) -> list[int]:
        """Positions of the classes that have points."""
        return [int(code) for code in self.clf.classes_]

    def proba(self, X: Array) -> Array:
        """Return the probabilities of all classes, (n, n_classes), zero for those without points."""
        out = np.zeros((len(X), self.n_classes))
        out[:, self.present] = self.clf.predict_proba(X)
        return out


def settings(state: State, method: str | None = None) -> dict[str, Any]:
    """Return the arguments of the classifier that a state describes."""
    name = state.method if method is None else method
    present = state.points.present()
    cost = state.cost_matrix
    return {
        "kernel": kernel_at(state.choice, state.points.view, state.theta),
        "likelihood": state.likelihood,
        "inference": ({} if len(present) < 3 else FEWER).get(name, SAMPLERS.get(name, name)),
        "optimizer": None,
        "integration": state.integration,
        # Costs of classes without points have no meaning to a model that does not know them.
        "cost_matrix": None if cost is None else cost[np.ix_(present, present)],
        "random_state": 0,
    }


def fit(state: State, method: str | None = None) -> Fit:
    """Fit the classifier of a state, by its method or by another one, at its hyperparameters.

    Examples
    --------
    >>> from gpclass.explore.points import make_points
    >>> state = State(make_points([[0.0], [10.0]], [0, 1]))
    >>> fit(state).proba(state.points.X).round(2)
    array([[0.7, 0.3],
           [0.3, 0.7]])
    """
    points = state.points
    present = points.present()
    if len(present) < 2:
        found = "no points" if not present else f"points of class {points.labels[present[0]]} only"
        raise ValueError(f"There are {found}: add points of two classes to see what a model believes.")
    clf = GaussianProcessClassifier(**settings(state, method))
    with collected() as notes:
        clf.fit(points.X, points.codes)
    return Fit(clf, state.n_classes, tuple(notes))
