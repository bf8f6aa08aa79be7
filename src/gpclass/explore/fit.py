"""The classifier that a state describes, fitted to its points, and its warnings."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.estimator import GaussianProcessClassifier
from gpclass.explore.state import State
from gpclass.mcmc import MCMC
from gpclass.sampling import Rejection

# Fewer draws than by default, so that a picture follows the points.
SAMPLERS: dict[str, Any] = {
    "mcmc": MCMC(n_draws=300, n_warmup=200, thin=2),
    "rejection": Rejection(n_draws=500, max_proposals=200_000),
}
SEVERAL_CLASSES: dict[str, Any] = {**SAMPLERS, "mcmc": MCMC(n_draws=50, n_warmup=200, thin=5)}


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A fitted classifier, whose labels are positions of classes, and the warnings of its fit."""

    state: State
    clf: Any
    notes: tuple[str, ...] = ()

    @property
    def evidence(self) -> float | None:
        """The log evidence; None where sampling gives none."""
        value = self.clf.log_marginal_likelihood_value_
        return None if value is None else float(value)

    @property
    def model(self) -> Any:
        """The fitted model behind the classifier."""
        return self.clf.base_estimator_.models[0]

    def proba(self, X: Array) -> Array:
        """Return the probabilities of all classes, (n, n_classes), zero for those without points."""
        out = np.zeros((len(X), self.state.n_classes))
        out[:, self.state.points.present] = self.clf.predict_proba(X)
        return out


def settings(state: State) -> dict[str, Any]:
    """Return the arguments of the classifier that a state describes."""
    present, cost = state.points.present, state.cost_matrix
    samplers = SAMPLERS if len(present) < 3 else SEVERAL_CLASSES
    return {
        "kernel": state.kernel,
        "likelihood": state.likelihood,
        "inference": samplers.get(state.method, state.method),
        "optimizer": None,
        "integration": state.integration,
        # A model does not know classes without points.
        "cost_matrix": None if cost is None else cost[np.ix_(present, present)],
        "random_state": 0,
    }


def fit(state: State) -> Fit:
    """Fit the classifier of a state at its hyperparameters."""
    points, present = state.points, state.points.present
    if len(present) < 2:
        found = f"points of class {points.labels[present[0]]} only" if present else "no points"
        raise ValueError(f"There are {found}: add points of two classes to see what a model believes.")
    clf = GaussianProcessClassifier(**settings(state))
    with collected() as notes:
        clf.fit(points.X, points.codes)
    return Fit(state, clf, tuple(notes))


# ---------------------------------------------------------------------------------- warnings


class _Thread(threading.local):
    notes: list[str] | None = None


_here, _lock, _process = _Thread(), threading.Lock(), ExitStack()
_inside: list[None] = []  # one entry for each block that is entered, in any thread


@contextmanager
def collected() -> Iterator[list[str]]:
    """Give a list to which the warnings of this thread are added, each once.

    `warnings.catch_warnings` changes the whole process. So the first thread that enters installs one function that
    tells the threads apart, and the last one that leaves removes it.
    """
    outer, _here.notes = _here.notes, list[str]()
    with _lock:
        if not _inside:
            _process.enter_context(warnings.catch_warnings())
            warnings.simplefilter("always")
            warnings.showwarning = _show
        _inside.append(None)
    try:
        yield _here.notes
    finally:
        _here.notes = outer
        with _lock:
            _inside.pop()
            if not _inside:
                _process.close()


def _show(message: Any, *args: Any, **extra: Any) -> None:
    words = " ".join(str(message).split())
    if _here.notes is not None and words not in _here.notes:
        _here.notes.append(words)
