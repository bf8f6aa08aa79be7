"""Fits that are interrupted, and what must be left of them.

Run as a script with the name of a kind of fit it interrupts that fit by SIGINT at random moments, and prints what came
of each as one line of JSON.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import gpclass
from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF
from gpclass.mcmc import MCMC, EllipticalSlice
from gpclass.sparse import Inducing

PACKAGE = str(Path(gpclass.__file__).parent)
WIDTH, FORMER_WIDTH = 4, 3
KERNEL = 2.0 * RBF(np.ones(WIDTH))
PASSES = Inducing(30, rows=(200, 400))


@dataclass(frozen=True)
class Kind:
    """One kind of fit: the parameters of the classifier, and how many rows and classes it is fitted to."""

    options: dict[str, Any]
    n_rows: int
    n_classes: int = 2

    def data(self) -> tuple[Any, Any]:
        """Return rows whose classes follow waves of the first two columns."""
        return waves(self.n_rows, WIDTH, self.n_classes)


def waves(n_rows: int, width: int, n_classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    X = rng.uniform(-2.0, 2.0, size=(n_rows, width))
    f = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n_rows)
    return X, np.argsort(np.argsort(f)) * n_classes // n_rows


KINDS = {
    "laplace": Kind({"kernel": KERNEL, "inference": "laplace"}, 500),
    "ep": Kind({"kernel": KERNEL, "inference": "ep"}, 400),
    "vi": Kind({"kernel": KERNEL, "inference": "vi"}, 400),
    "fitc laplace": Kind({"kernel": KERNEL, "inference": "laplace", "inducing": PASSES}, 1500),
    "fitc ep": Kind({"kernel": KERNEL, "inference": "ep", "inducing": PASSES}, 1000),
    "inducing": Kind({"kernel": KERNEL, "inference": "vi", "inducing": PASSES}, 2000),
    "dirichlet": Kind({"kernel": KERNEL, "inference": "dirichlet"}, 500, 3),
    "inducing dirichlet": Kind({"kernel": KERNEL, "inference": "dirichlet", "inducing": PASSES}, 2000, 3),
    "several classes": Kind({"kernel": KERNEL, "inference": "vi"}, 120, 3),
    "softmax": Kind({"kernel": KERNEL, "inference": "vi", "likelihood": "softmax"}, 120, 3),
    "one-vs-rest": Kind({"kernel": KERNEL, "inference": "laplace", "multi_class": "one_vs_rest"}, 200, 3),
    "default": Kind({}, 200),
    "default of several classes": Kind({}, 100, 3),
    "mcmc": Kind({"kernel": KERNEL, "inference": MCMC(EllipticalSlice(), n_draws=150, n_warmup=50)}, 90),
}


@dataclass
class Outcome:
    """What came of one fit."""

    kept: bool  # whether the classifier has a model of the new data
    raised: str  # the error that left fit, or nothing
    warned: int  # warnings that learning or sampling was interrupted
    sound: bool  # whether the model that it has, new or previous, predicts as it should
    seconds: float  # from the interruption to the end
    sent: bool  # whether the fit was interrupted before it ended


def interrupted(kind: Kind, sending: Callable[[], Any]) -> Outcome:
    """Fit after a previous fit of another width, with interrupts from ``sending``, and look at what is left.

    ``sending`` returns a context, whose value is a list of the times at which interrupts were sent.
    """
    former, labels = waves(40, FORMER_WIDTH, 2)
    clf = GaussianProcessClassifier(2.0 * RBF(1.0), optimizer=None, random_state=0).fit(former, labels)
    before = clf.predict_proba(former)
    clf.set_params(**{"kernel": None, "optimizer": "fmin_l_bfgs_b", **kind.options})
    X, y = kind.data()
    raised, sent = "", list[float]()  # empty if the signal comes before the context has been entered
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with sending() as sent:
                clf.fit(X, y)
        except BaseException as error:  # each kind is reported
            raised = type(error).__name__
    end = time.perf_counter()
    kept = clf.n_features_in_ == WIDTH
    if kept:
        p = clf.predict_proba(X)
        sound = p.shape == (len(X), kind.n_classes) and bool(np.allclose(p.sum(axis=1), 1.0))
        sound = sound and hasattr(clf, "kernel_")
    else:
        sound = np.array_equal(clf.predict_proba(former), before)
    warned = sum("was interrupted" in str(w.message) for w in caught)
    return Outcome(kept, raised, warned, sound, end - sent[0] if sent else 0.0, bool(sent))


def faults(outcome: Outcome) -> Iterator[str]:
    """Yield what is wrong with an outcome, whatever the moment of the interruption was."""
    if not outcome.sound:
        yield "the model that is left does not predict as it should"
    if outcome.raised not in ("", "KeyboardInterrupt"):
        yield f"{outcome.raised} was raised"
    if outcome.sent and not outcome.raised and outcome.warned != 1:
        yield f"the interruption made {outcome.warned} warnings"


# ------------------------------------------------------------------- moments by counting calls


@contextmanager
def at_call(n: int) -> Iterator[list[float]]:
    """Interrupt this process at the n-th call of a function of gpclass; ``n=0`` never. The list has a number per call.

    The number of calls does not depend on the speed of the machine.
    """
    sent, count = list[float](), 0

    def watch(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        # Python itself drops what is raised in a generator that is being deleted.
        generator = frame.f_code.co_flags & inspect.CO_GENERATOR
        if event != "call" or generator or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        count += 1
        if count == n:
            sent.append(time.perf_counter())
            signal.raise_signal(signal.SIGINT)

    sys.setprofile(watch)
    try:
        yield sent
    finally:
        sys.setprofile(None)
        at_call.count = count  # type: ignore[attr-defined]


def count_calls(kind: Kind) -> int:
    """Return how many functions of gpclass a whole fit calls."""
    interrupted(kind, lambda: at_call(0))
    return at_call.count  # type: ignore[attr-defined, no-any-return]


# ------------------------------------------------------------------------------ random moments


@contextmanager
def after_seconds(delay: float) -> Iterator[list[float]]:
    """Send SIGINT to this process after a delay, from another thread, unless the block has ended before."""
    sent, lock, over = list[float](), threading.Lock(), [False]

    def send() -> None:
        with lock:
            if not over[0]:
                sent.append(time.perf_counter())
                os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(delay, send)
    timer.start()
    try:
        yield sent
    finally:
        with lock:  # an interrupt that is being sent arrives in this block
            over[0] = True
        timer.cancel()


def study(name: str, n_moments: int, seed: int) -> None:
    """Interrupt a kind of fit at random moments of its usual duration, and print each outcome."""
    kind, rng = KINDS[name], np.random.default_rng(seed)
    interrupted(kind, lambda: at_call(0))  # imports and caches
    begin = time.perf_counter()
    interrupted(kind, lambda: after_seconds(1e6))
    whole = time.perf_counter() - begin
    for fraction in rng.uniform(0.0, 1.0, size=n_moments):
        outcome = None
        while outcome is None:
            with suppress(
                KeyboardInterrupt
            ):  # a signal that another thread received, and so arrives after the fit
                outcome = interrupted(kind, partial(after_seconds, fraction * whole))
        sys.stdout.write(json.dumps(vars(outcome)) + "\n")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    study(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
